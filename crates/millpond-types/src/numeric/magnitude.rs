//! The order of stored numbers, without taking them apart.

use std::cmp::Ordering;

use super::{LONG_SIGN, NumericRef, SHORT, SHORT_SIGN, SPECIAL};

/// What decides the order of a number that is not NaN or infinite.
#[derive(Clone, Copy)]
pub(super) struct Magnitude<'a> {
    pub(super) negative: bool,
    pub(super) weight: i32,
    /// As they are stored. Zero has none.
    pub(super) digits: &'a [u8],
}

impl<'a> NumericRef<'a> {
    /// `None` for NaN and infinities.
    #[inline]
    pub(super) fn magnitude(self) -> Option<Magnitude<'a>> {
        let (header, rest) = self.0.split_first_chunk()?;
        let header = u16::from_le_bytes(*header);
        match header & SPECIAL {
            SPECIAL => None,
            SHORT => Some(Magnitude {
                negative: header & SHORT_SIGN != 0,
                weight: i32::from(header & 0x7f) - 64,
                digits: rest,
            }),
            _ => {
                let (weight, digits) = rest.split_first_chunk()?;
                let weight = i16::from_le_bytes(*weight).into();
                Some(Magnitude { negative: header & LONG_SIGN != 0, weight, digits })
            }
        }
    }
}

impl Magnitude<'_> {
    /// Below, equal to or above zero: -1, 0, 1.
    pub(super) fn sign(&self) -> i32 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    #[inline]
    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        let sign = self.sign();
        let by_sign = sign.cmp(&other.sign());
        if by_sign.is_ne() || sign == 0 {
            return by_sign;
        }
        let order = self.weight.cmp(&other.weight).then_with(|| self.cmp_digits(other));
        if self.negative { order.reverse() } else { order }
    }

    fn cmp_digits(&self, other: &Self) -> Ordering {
        let digit = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]);
        let (own, others) = (self.digits.chunks_exact(2), other.digits.chunks_exact(2));
        own.map(digit).cmp(others.map(digit))
    }
}
