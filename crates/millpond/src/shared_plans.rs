//! Plans that the connections of a database have in common.
//!
//! Hundreds of connections that run the same few statements would each have a plan of their own.
//! Each statement would bring another copy of the same plan into the processor's cache. So a
//! connection that has to plan a text looks here first. Afterwards it has a pointer to the common
//! plan, and comes here no more. The lock is taken once for each connection and text, not once for
//! each statement.
//!
//! Only plans of the committed catalog are shared. A session with an older
//! snapshot gets none, since it may have to do without the newest indexes.
//!
//! Statements that control transactions and settings have no plan. Their parse is kept instead, so
//! that a BEGIN does not go through the parser each time.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::DataType;
use millpond_query::lex::cache::Keyed;
use millpond_query::parse::Statement;
use millpond_query::plan::Planned;

/// Texts that are known at most.
const CAPACITY: usize = 1024;
/// The most that these take, in bytes. A plan is some eight times as large as its text.
const TEXT_BYTES: usize = 1 << 20;

/// What runs a text without the parser.
#[derive(Debug)]
pub(crate) enum Compiled {
    Plan(Arc<Planned>),
    /// A statement without a plan, whose text has no literals.
    Statement(Statement),
    /// Nothing: the text goes through the parser.
    Nothing,
}

impl Compiled {
    /// The plan, if it is one.
    pub(crate) fn plan(&self) -> Option<&Arc<Planned>> {
        match self {
            Compiled::Plan(planned) => Some(planned),
            Compiled::Statement(_) | Compiled::Nothing => None,
        }
    }
}

/// A text that has been compiled.
#[derive(Debug)]
pub(crate) struct Text {
    key: Box<[u8]>,
    pub(crate) compiled: Compiled,
    /// The catalog's when it was planned.
    pub(crate) generation: u64,
}

impl Text {
    pub(crate) fn new(key: &[u8], compiled: Compiled, generation: u64) -> Arc<Self> {
        Arc::new(Text { key: key.into(), compiled, generation })
    }
}

impl Keyed for Text {
    fn key(&self) -> &[u8] {
        &self.key
    }
}

/// The key of a statement that is prepared with these parameter types. No lexer's key begins like
/// this.
pub(crate) fn prepared_key(sql: &str, types: &[Option<DataType>]) -> Vec<u8> {
    let mut key = format!("\0{types:?}\0").into_bytes();
    key.extend_from_slice(sql.as_bytes());
    key
}

/// The plans of a database.
#[derive(Debug, Default)]
pub(crate) struct SharedPlans {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// All are of this state of the catalog: older ones would keep what is known of dropped tables.
    generation: u64,
    texts: HashMap<Box<[u8]>, Arc<Text>>,
    /// What the texts take together.
    bytes: usize,
}

impl Known {
    /// Whether there is room for one text more.
    fn has_room_for(&self, key: &[u8]) -> bool {
        self.texts.len() < CAPACITY && self.bytes + key.len() <= TEXT_BYTES
    }

    /// Takes out the texts that no connection's cache has. The texts of prepared statements are
    /// among them, since connections keep only their plans.
    fn take_unused(&mut self) -> Vec<(Box<[u8]>, Arc<Text>)> {
        let unused: Vec<_> =
            self.texts.extract_if(|_, text| Arc::strong_count(text) == 1).collect();
        self.bytes -= unused.iter().map(|(key, _)| key.len()).sum::<usize>();
        unused
    }
}

impl SharedPlans {
    /// What is known of a text under that state of the catalog.
    pub(crate) fn get(&self, key: &[u8], generation: u64) -> Option<Arc<Text>> {
        let known = self.known.lock();
        known.texts.get(key).filter(|text| text.generation == generation).cloned()
    }

    /// Shares what has been found out, if it holds for others.
    pub(crate) fn put(&self, text: &Arc<Text>) {
        if !is_common(&text.compiled) {
            return;
        }
        // Dropped after the lock has been given back.
        let (_older, _unused, _replaced);
        let mut known = self.known.lock();
        if text.generation < known.generation {
            return;
        }
        if text.generation > known.generation {
            known.generation = text.generation;
            known.bytes = 0;
            _older = std::mem::take(&mut known.texts);
        }
        let is_known = known.texts.contains_key(text.key());
        if !is_known && !known.has_room_for(text.key()) {
            _unused = known.take_unused();
            if !known.has_room_for(text.key()) {
                return;
            }
        }
        if !is_known {
            known.bytes += text.key().len();
        }
        _replaced = known.texts.insert(text.key().into(), Arc::clone(text));
    }
}

fn is_common(compiled: &Compiled) -> bool {
    compiled.plan().is_none_or(|planned| !planned.passing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_states_of_the_catalog_are_forgotten() {
        let plans = SharedPlans::default();
        // As many as there is room for, all in use.
        let texts: Vec<_> =
            (0..CAPACITY).map(|key| Text::new(&key.to_be_bytes(), Compiled::Nothing, 7)).collect();
        texts.iter().for_each(|text| plans.put(text));
        let first = 0usize.to_be_bytes();
        assert!(plans.get(&first, 7).is_some());
        plans.put(&Text::new(b"new", Compiled::Nothing, 7));
        assert!(plans.get(b"new", 7).is_none(), "there is no room");
        plans.put(&Text::new(b"new", Compiled::Nothing, 8));
        assert!(plans.get(b"new", 8).is_some());
        plans.put(&texts[0]);
        assert!(plans.get(&first, 7).is_none());
        assert_eq!(Arc::strong_count(&texts[0]), 1);
    }

    #[test]
    fn texts_have_a_bound_in_bytes() {
        let plans = SharedPlans::default();
        let long = |first: u8| {
            let mut key = vec![b' '; TEXT_BYTES / 4];
            key[0] = first;
            Text::new(&key, Compiled::Nothing, 7)
        };
        let mut texts: Vec<_> = (0..4).map(long).collect();
        // Again and again: each text counts once.
        for _ in 0..3 {
            texts[..3].iter().for_each(|text| plans.put(text));
        }
        plans.put(&texts[3]);
        assert!(texts.iter().all(|text| plans.get(text.key(), 7).is_some()));
        let more = Text::new(b"short", Compiled::Nothing, 7);
        plans.put(&more);
        assert!(plans.get(b"short", 7).is_none(), "all are in use");
        let unused = texts.remove(0).key().to_vec();
        plans.put(&more);
        assert!(plans.get(b"short", 7).is_some());
        assert!(plans.get(&unused, 7).is_none());
        // A new state of the catalog leaves all of the room.
        plans.put(&Text::new(b"new", Compiled::Nothing, 8));
        texts = texts.iter().map(|old| Text::new(old.key(), Compiled::Nothing, 8)).collect();
        texts.iter().for_each(|text| plans.put(text));
        assert!(texts.iter().all(|text| plans.get(text.key(), 8).is_some()));
        assert!(plans.get(b"new", 8).is_some(), "there is room for one that is not in use");
    }
}
