//! Integers that were looked up lately in a hash table, with the numbers that they have there.
//!
//! Groups are mostly few, and their key is mostly one integer. It is compared here as it is. A look
//! into the table makes bytes of it, hashes them, and compares bytes.

/// A power of two of them.
const PLACES: usize = 16;

/// Each integer has one place, which the one that came last keeps.
pub(super) struct RecentInts {
    /// An integer, and its number plus 1; 0 is none.
    places: [(i64, u32); PLACES],
}

impl Default for RecentInts {
    fn default() -> Self {
        Self { places: [(0, 0); PLACES] }
    }
}

impl RecentInts {
    /// The number of an integer, if it is known.
    #[inline]
    pub(super) fn get(&self, int: i64) -> Option<usize> {
        let (known, number) = self.places[place(int)];
        if known == int { number.checked_sub(1).map(|number| number as usize) } else { None }
    }

    /// Notes an integer's number.
    #[inline]
    pub(super) fn note(&mut self, int: i64, number: usize) {
        if let Ok(number) = u32::try_from(number + 1) {
            self.places[place(int)] = (int, number);
        }
    }

    /// Forgets all integers.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Neighbouring integers have different places, and so have most that are a power of two apart.
#[inline]
fn place(int: i64) -> usize {
    let mixed = int.cast_unsigned();
    ((mixed ^ mixed >> 4 ^ mixed >> 12) as usize) % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_the_number_that_was_noted_last() {
        let mut recent = RecentInts::default();
        for int in [0, 1, -1, i64::MIN, i64::MAX] {
            assert_eq!(recent.get(int), None, "{int}");
        }
        for int in -1000..1000i64 {
            recent.note(int, (int + 1000) as usize);
            assert_eq!(recent.get(int), Some((int + 1000) as usize));
            // Others are as they were noted, or unknown.
            for other in -1000..1000 {
                let number = recent.get(other);
                assert!(number.is_none_or(|number| number as i64 == other + 1000), "{other}");
                assert!(other <= int || number.is_none());
            }
        }
        recent.note(5, usize::MAX - 1);
        assert_eq!(recent.get(5), None);
        recent.clear();
        assert_eq!(recent.get(999), None);
    }
}
