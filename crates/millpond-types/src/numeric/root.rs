//! The square root.

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;

use super::{Decimal, Numeric, NumericError, NumericRef, Parts};

impl NumericRef<'_> {
    /// The square root with `dscale` digits after the point, the last one rounded. NaN for a number
    /// below zero.
    pub fn square_root(self, dscale: u16) -> Result<Numeric, NumericError> {
        let decimal = match self.parts() {
            Parts::Finite(decimal) if decimal.negative => return Ok(Numeric::nan()),
            Parts::Finite(decimal) => decimal,
            Parts::NegInfinity => return Ok(Numeric::nan()),
            _ => return Ok(self.to_owned()),
        };
        // The root of the number times 10^2n is 10^n times the root. One digit more is for
        // rounding.
        let digits = i64::from(dscale) + 1;
        let scaled = decimal.to_big().with_scale(2 * digits).into_bigint_and_exponent().0;
        let root: BigInt = scaled.sqrt();
        Numeric::from_decimal(Decimal::from_big(&BigDecimal::new(root, digits), dscale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_rounded_in_its_last_digit() {
        for (of, dscale, expected) in [
            ("2", 3, "1.414"),
            ("2", 15, "1.414213562373095"),
            ("4.00", 2, "2.00"),
            ("0", 0, "0"),
            ("0.25", 0, "1"),
            ("0.24", 0, "0"),
            ("1e40", 0, "100000000000000000000"),
            ("-1", 2, "NaN"),
            ("Infinity", 2, "Infinity"),
        ] {
            let of: Numeric = of.parse().unwrap();
            assert_eq!(of.as_ref().square_root(dscale).unwrap().to_string(), expected);
        }
    }
}
