//! What was acknowledged, and what a restart may show.

use std::collections::BTreeMap;

/// A table that one session alone changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub rows: u64,
    pub sum: i64,
    pub indexes: usize,
}

/// A table's shape; none if there is no such table.
pub(super) type Presence = Option<Shape>;

/// One writer's transactions: it records a number in each, one more each time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    pub acknowledged: i64,
    pub is_in_doubt: bool,
}

impl Numbers {
    /// Takes what a restart has found for granted.
    fn settle(&mut self, writer: usize, found: &mut [i64]) {
        found.sort_unstable();
        let last = found.len() as i64;
        assert!(found.iter().copied().eq(1..=last), "writer {writer} has holes: {found:?}");
        let most = self.acknowledged + i64::from(self.is_in_doubt);
        assert!(
            (self.acknowledged..=most).contains(&last),
            "writer {writer}: {last} commits found, {self:?}",
        );
        *self = Self { acknowledged: last, is_in_doubt: false };
    }
}

/// All that the run has been told.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    pub writers: Vec<Numbers>,
    /// The shapes that a table may have.
    pub tables: BTreeMap<String, Vec<Presence>>,
    pub commits: u64,
}

impl Ledger {
    pub fn new(writers: usize) -> Self {
        Self { writers: vec![Numbers::default(); writers], ..Self::default() }
    }

    /// The shape of a table while nothing about it is in doubt.
    pub fn shape(&self, name: &str) -> Presence {
        self.tables.get(name).and_then(|shapes| shapes.first().copied()).flatten()
    }

    /// A change of a table was acknowledged.
    pub fn acknowledge(&mut self, name: &str, after: Presence) {
        self.tables.insert(name.to_owned(), vec![after]);
        self.commits += 1;
    }

    /// A change of a table is in doubt.
    pub fn doubt(&mut self, name: &str, after: Presence) {
        self.tables.entry(name.to_owned()).or_insert_with(|| vec![None]).push(after);
    }

    /// What a restart has found of the writers.
    pub fn settle_writers(&mut self, mut found: Vec<Vec<i64>>) {
        for (writer, (numbers, found)) in self.writers.iter_mut().zip(&mut found).enumerate() {
            numbers.settle(writer, found);
        }
    }

    /// What a restart has found of a table.
    pub fn settle_table(&mut self, name: &str, found: Presence) {
        let shapes = self.tables.entry(name.to_owned()).or_insert_with(|| vec![None]);
        assert!(shapes.contains(&found), "table {name}: {found:?} found, {shapes:?} possible");
        *shapes = vec![found];
    }
}
