//! What was acknowledged, and what a restart may show.

use std::collections::BTreeMap;

/// The contents of a table that only one session changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub rows: u64,
    pub sum: i64,
    pub indexes: usize,
}

/// A table's shape; `None` if the table does not exist.
pub(super) type Presence = Option<Shape>;

/// One writer's transactions. Each records a number, one higher than the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// The last commit that was acknowledged as durable.
    durable: i64,
    /// The last commit that was acknowledged.
    pub acknowledged: i64,
    pub is_in_doubt: bool,
}

impl Numbers {
    /// The next number's commit is acknowledged as durable, and so are those before it.
    pub fn acknowledge(&mut self) {
        self.acknowledged += 1;
        self.durable = self.acknowledged;
    }

    /// The next number's commit did not wait for the log.
    pub fn acknowledge_asynchronous(&mut self) {
        self.acknowledged += 1;
    }

    /// Checks what a restart has found, and accepts it as the new state.
    fn settle(&mut self, writer: usize, found: &mut [i64]) {
        found.sort_unstable();
        let last = found.len() as i64;
        assert!(found.iter().copied().eq(1..=last), "writer {writer} has holes: {found:?}");
        self.accept(&format!("writer {writer}"), last);
    }

    fn accept(&mut self, what: &str, last: i64) {
        let most = self.acknowledged + i64::from(self.is_in_doubt);
        let expected = self.durable..=most;
        assert!(expected.contains(&last), "{what}: {last} commits found, {self:?}");
        *self = Self { durable: last, acknowledged: last, is_in_doubt: false };
    }
}

/// All acknowledgements of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    pub writers: Vec<Numbers>,
    pub ticks: Numbers,
    /// The possible shapes of each table.
    pub tables: BTreeMap<String, Vec<Presence>>,
    pub commits: u64,
}

impl Ledger {
    pub fn new(writers: usize) -> Self {
        Self { writers: vec![Numbers::default(); writers], ..Self::default() }
    }

    /// The shape of a table, while no change of it is in doubt.
    pub fn shape(&self, name: &str) -> Presence {
        self.tables.get(name).and_then(|shapes| shapes.first().copied()).flatten()
    }

    pub fn acknowledge(&mut self, name: &str, after: Presence) {
        self.tables.insert(name.to_owned(), vec![after]);
        self.commits += 1;
    }

    /// Notes a change of a table that is in doubt.
    pub fn doubt(&mut self, name: &str, after: Presence) {
        self.tables.entry(name.to_owned()).or_insert_with(|| vec![None]).push(after);
    }

    pub fn settle_writers(&mut self, mut found: Vec<Vec<i64>>) {
        for (writer, (numbers, found)) in self.writers.iter_mut().zip(&mut found).enumerate() {
            numbers.settle(writer, found);
        }
    }

    /// Checks what a restart has found of the ticks: their number, and the sum of their numbers.
    pub fn settle_ticks(&mut self, (rows, sum): (u64, i64)) {
        let last = rows as i64;
        assert_eq!(sum, last * (last + 1) / 2, "{last} ticks have holes");
        self.ticks.accept("ticks", last);
    }

    /// Checks what a restart has found of a table.
    pub fn settle_table(&mut self, name: &str, found: Presence) {
        let shapes = self.tables.entry(name.to_owned()).or_insert_with(|| vec![None]);
        assert!(shapes.contains(&found), "table {name}: {found:?} found, {shapes:?} possible");
        *shapes = vec![found];
    }
}
