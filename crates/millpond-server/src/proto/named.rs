//! A client's prepared statements or portals by name. Most clients use the unnamed one for every
//! request, so it has its own field and needs no hashing.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// A map from names to values. The empty name is valid.
#[derive(Debug)]
pub(super) struct Named<T> {
    unnamed: Option<T>,
    /// By a quick hash whose seed no client sees, so names that collide are hard to choose.
    others: HashMap<Box<str>, T, RandomState>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { unnamed: None, others: HashMap::default() }
    }
}

impl<T> Named<T> {
    #[inline]
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.others.get(name) }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        if name.is_empty() { self.unnamed.as_mut() } else { self.others.get_mut(name) }
    }

    #[inline]
    pub(super) fn insert(&mut self, name: &str, thing: T) {
        if name.is_empty() {
            self.unnamed = Some(thing);
        } else {
            self.others.insert(name.into(), thing);
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, name: &str) {
        if name.is_empty() {
            self.unnamed = None;
        } else {
            self.others.remove(name);
        }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.unnamed = None;
        if !self.others.is_empty() {
            self.others.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_name_is_an_ordinary_name() {
        let mut named = Named::default();
        for (number, name) in ["", "a", "b"].into_iter().enumerate() {
            assert_eq!(named.get(name), None);
            named.insert(name, number);
            named.insert(name, number + 10);
        }
        *named.get_mut("").expect("there") += 1;
        assert_eq!(
            ["", "a", "b"].map(|name| named.get(name).copied()),
            [Some(11), Some(11), Some(12)]
        );
        named.remove("");
        named.remove("a");
        assert_eq!(["", "a", "b"].map(|name| named.get(name).copied()), [None, None, Some(12)]);
        named.insert("", 1);
        named.clear();
        assert_eq!(["", "b"].map(|name| named.get(name).copied()), [None, None]);
    }
}
