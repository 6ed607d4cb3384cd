//! What a thread has made of the last few texts that it met, such as regular expressions.
//!
//! A query mostly applies one pattern to many rows, so its text is parsed once, not once a row.

use std::rc::Rc;

use crate::error::Result;

/// How many things are kept.
const KEPT: usize = 32;
/// Longer texts are not kept, so that a thread's memory stays small.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// Things made of texts and options `O`, the last used first.
pub(crate) struct Recent<O, T>(Vec<(String, O, Rc<T>)>);

impl<O: PartialEq, T> Recent<O, T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The thing made of this text, by `make` if it is not kept.
    pub(crate) fn get(
        &mut self,
        text: &str,
        options: O,
        make: impl FnOnce(&str, &O) -> Result<T>,
    ) -> Result<Rc<T>> {
        let known =
            |(own, own_options, _): &(String, O, Rc<T>)| *own_options == options && own == text;
        if let Some(place) = self.0.iter().position(known) {
            self.0[..=place].rotate_right(1);
            return Ok(Rc::clone(&self.0[0].2));
        }
        let made = Rc::new(make(text, &options)?);
        if text.len() <= MAX_KEPT_BYTES {
            self.0.truncate(KEPT - 1);
            self.0.insert(0, (text.to_owned(), options, Rc::clone(&made)));
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_used_are_kept() {
        let (mut recent, mut made) = (Recent::new(), 0);
        let mut get = |text: &str, options: u8| {
            let result = recent.get(text, options, |text, options| {
                made += 1;
                Ok(format!("{text} {options}"))
            });
            (result.unwrap(), made)
        };
        assert_eq!(get("a", 1), (Rc::new("a 1".to_owned()), 1));
        assert_eq!(get("a", 2), (Rc::new("a 2".to_owned()), 2));
        assert_eq!(get("a", 1), (Rc::new("a 1".to_owned()), 2));
        for n in 0..KEPT - 1 {
            assert_eq!(get(&n.to_string(), 0).1, 3 + n);
        }
        let before = KEPT + 1;
        assert_eq!((get("a", 1).1, get("a", 2).1), (before, before + 1));
        let long = "x".repeat(MAX_KEPT_BYTES + 1);
        assert_eq!((get(&long, 0).1, get(&long, 0).1), (before + 2, before + 3));
    }
}
