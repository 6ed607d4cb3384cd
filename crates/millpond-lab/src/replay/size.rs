//! Sizes of caches, in pages or in bytes with a unit.

use millpond_buffer::PAGE_SIZE;
use std::fmt;
use std::str::FromStr;

/// A number of pages, as the user wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// The number of pages.
    pub pages: usize,
    /// Whether it was given in bytes.
    in_bytes: bool,
}

impl Size {
    /// A size given as a number of pages.
    #[must_use]
    pub const fn pages(pages: usize) -> Self {
        Self { pages, in_bytes: false }
    }
}

impl fmt::Display for Size {
    /// Writes pages as a number, and bytes in the largest unit that leaves no remainder.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.in_bytes {
            return write!(f, "{}", self.pages);
        }
        let kib = self.pages * (PAGE_SIZE / 1024);
        for (unit, name) in [(1 << 30, "TB"), (1 << 20, "GB"), (1 << 10, "MB")] {
            if kib.is_multiple_of(unit) {
                return write!(f, "{}{name}", kib / unit);
            }
        }
        write!(f, "{kib}kB")
    }
}

impl FromStr for Size {
    type Err = String;

    /// `16384` is pages; `64kB`, `128MB`, `1GB`, `1TB` are bytes, in units of 1024.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "{text:?} is not a size: expected pages, like 16384, or bytes, like 128MB or 1GB"
            )
        };
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let number: usize = number.parse().map_err(|_| bad())?;
        let (factor, in_bytes) = match unit.trim().to_ascii_lowercase().as_str() {
            "" => (1, false),
            "kb" => (1 << 10, true),
            "mb" => (1 << 20, true),
            "gb" => (1 << 30, true),
            "tb" => (1usize << 40, true),
            _ => return Err(bad()),
        };
        let amount = number.checked_mul(factor).ok_or_else(bad)?;
        let pages = if in_bytes { amount / PAGE_SIZE } else { amount };
        if pages == 0 || pages > millpond_buffer::MAX_FRAMES {
            return Err(format!("{text:?} is not between 1 page and 2^31 pages of 8 kB"));
        }
        Ok(Self { pages, in_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_bytes() {
        let pages = |text: &str| text.parse::<Size>().map(|size| size.pages);
        assert_eq!(pages("1000"), Ok(1000));
        assert_eq!(pages("128MB"), Ok(16_384));
        assert_eq!(pages("8 kB"), Ok(1));
        assert_eq!(pages("1gb"), Ok(131_072));
        for bad in ["", "MB", "0", "4kB", "-1", "1.5GB", "12XB", "99999999999999999999"] {
            assert!(pages(bad).is_err(), "{bad}");
        }
        for text in ["1000", "128MB", "1GB", "24kB", "1536MB"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
    }
}
