//! Rounding, remainders and conversions of small numbers. `None` is what does not fit: see
//! [`small`](super::small).

use super::small::{BASE, Small};

/// Whole numbers up to this are exact as floats.
const EXACT_IN_F64: u128 = 1 << 53;
/// Powers of ten up to this are exact as floats.
const EXACT_POWER_IN_F64: u32 = 22;

impl Small {
    /// Rounds half away from zero to `scale` digits after the point (before it, if negative), and
    /// shows that many.
    pub fn round(self, scale: i16) -> Option<Self> {
        self.cut(scale, |magnitude, unit| magnitude.checked_add(unit / 2))
    }

    /// Cuts behind `places` digits after the point (before it, if negative), and shows that many.
    pub fn truncate(self, places: i16) -> Option<Self> {
        self.cut(places, |magnitude, _| Some(magnitude))
    }

    /// Cuts all below a unit, which is a power of ten, off a magnitude that `adjust` has changed.
    fn cut(self, scale: i16, adjust: impl Fn(u128, u128) -> Option<u128>) -> Option<Self> {
        let dscale = scale.max(0) as u16;
        let Ok(places @ 1..) = u32::try_from(-i32::from(scale) - 4 * self.exponent) else {
            return Some(Self { dscale, ..self });
        };
        let unit = 10u128.checked_pow(places)?;
        let magnitude = adjust(self.coefficient.unsigned_abs(), unit)?;
        // Division of wider integers costs much more.
        let rest = match (u64::try_from(magnitude), u64::try_from(unit)) {
            (Ok(magnitude), Ok(unit)) => u128::from(magnitude % unit),
            _ => magnitude % unit,
        };
        let magnitude = i128::try_from(magnitude - rest).ok()?;
        let coefficient = if self.coefficient < 0 { -magnitude } else { magnitude };
        Some(Self { coefficient, dscale, ..self })
    }

    /// Whether there are at most `most` digits before the point.
    pub(super) fn has_whole_digits(self, most: i32) -> bool {
        let digits = self.coefficient.unsigned_abs().checked_ilog10();
        digits.is_none_or(|log| log as i32 + 1 + 4 * self.exponent <= most)
    }

    /// The remainder, with the sign of the dividend.
    pub(super) fn rem(self, other: Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let coefficient = self.aligned(exponent)?.checked_rem(other.aligned(exponent)?)?;
        Some(Self { coefficient, exponent, dscale: self.dscale.max(other.dscale) })
    }

    /// The number without what is behind its point, if it is 0.
    pub(super) fn whole(self) -> Option<i64> {
        let power = BASE.checked_pow(self.exponent.unsigned_abs())?;
        let whole = match self.exponent {
            0.. => self.coefficient.checked_mul(power)?,
            _ => (self.coefficient % power == 0).then_some(self.coefficient / power)?,
        };
        i64::try_from(whole).ok()
    }

    /// The nearest float, if one operation on two exact floats gives it.
    pub(super) fn to_f64(self) -> Option<f64> {
        let places = 4 * self.exponent.unsigned_abs();
        let magnitude = self.coefficient.unsigned_abs();
        if magnitude > EXACT_IN_F64 || places > EXACT_POWER_IN_F64 {
            return None;
        }
        let power = 10f64.powi(places as i32);
        let coefficient = self.coefficient as f64;
        Some(if self.exponent < 0 { coefficient / power } else { coefficient * power })
    }

    /// The number that digits with at most one point among them stand for.
    pub(super) fn parse(text: &[u8], negative: bool) -> Option<Self> {
        // With the zeros that fill the last digit of base 10000 it fits into 64 bits.
        const MOST_DIGITS: usize = 15;
        if text.len() > MOST_DIGITS + 1 {
            return None;
        }
        let (mut magnitude, mut digits, mut point) = (0i64, 0, None);
        for byte in text {
            match byte {
                b'0'..=b'9' => {
                    magnitude = magnitude * 10 + i64::from(byte - b'0');
                    digits += 1;
                }
                b'.' if point.is_none() => point = Some(digits),
                _ => return None,
            }
        }
        if digits == 0 || digits > MOST_DIGITS {
            return None;
        }
        let scale = point.map_or(0, |point| digits - point) as u16;
        let filled = 10i64.pow(u32::from(scale.next_multiple_of(4) - scale));
        let coefficient = i128::from(if negative { -magnitude } else { magnitude } * filled);
        Some(Self { coefficient, exponent: -i32::from(scale.div_ceil(4)), dscale: scale })
    }
}
