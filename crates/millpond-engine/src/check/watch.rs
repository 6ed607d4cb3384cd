//! How a check reports its findings and its progress.

use std::fmt;

use millpond_buffer::BlockNumber;

/// A defect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The table, index or other part of the database.
    pub relation: String,
    /// The block, if known.
    pub block: Option<BlockNumber>,
    /// What is wrong.
    pub what: String,
}

impl Finding {
    /// A finding that concerns no block.
    pub(super) fn of(part: impl Into<String>, what: impl fmt::Display) -> Self {
        Self { relation: part.into(), block: None, what: what.to_string() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            Some(block) => write!(f, "{}, block {}: {}", self.relation, block.0, self.what),
            None => write!(f, "{}: {}", self.relation, self.what),
        }
    }
}

/// A phase of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Reading the log; counted in bytes.
    Log,
    /// Applying the log in memory; not counted.
    Recovery,
    /// Reading tables and indexes; counted in pages.
    Pages,
}

/// The progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The current phase.
    pub part: Part,
    /// How much of the phase is done.
    pub done: u64,
    /// How much there is to do in the phase; 0 if unknown.
    pub total: u64,
}

/// Receives the findings and the progress of a check. The checking thread calls it.
pub trait Watch {
    /// Called for each defect.
    fn found(&mut self, finding: Finding);

    /// Called for each page, so it should be quick.
    fn progress(&mut self, _progress: Progress) {}
}

/// Forwards findings and ignores progress.
pub(super) struct Findings<'a>(pub(super) &'a mut dyn FnMut(Finding));

impl Watch for Findings<'_> {
    fn found(&mut self, finding: Finding) {
        (self.0)(finding);
    }
}

/// Counts the progress of one phase.
pub(super) struct Meter<'a> {
    watch: &'a mut dyn Watch,
    progress: Progress,
}

impl<'a> Meter<'a> {
    pub(super) fn new(watch: &'a mut dyn Watch, part: Part, total: u64) -> Self {
        let progress = Progress { part, done: 0, total };
        watch.progress(progress);
        Self { watch, progress }
    }

    pub(super) fn step(&mut self) {
        self.reach(self.progress.done + 1);
    }

    /// Sets the number of units done.
    pub(super) fn reach(&mut self, done: u64) {
        self.progress.done = done;
        self.watch.progress(self.progress);
    }
}

impl Watch for Meter<'_> {
    fn found(&mut self, finding: Finding) {
        self.watch.found(finding);
    }
}
