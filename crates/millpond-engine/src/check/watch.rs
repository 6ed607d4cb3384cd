//! Who is told what a check finds, and how far it is.

use std::fmt;

use millpond_buffer::BlockNumber;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The table or index, or which other part of the database.
    pub relation: String,
    /// The block, if it can be told.
    pub block: Option<BlockNumber>,
    /// What is wrong.
    pub what: String,
}

impl Finding {
    /// One that is about no block.
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

/// What a check is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Reading the log; counted in bytes.
    Log,
    /// Applying the log in memory. It is not counted.
    Recovery,
    /// Reading tables and indexes; counted in pages.
    Pages,
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What it is busy with.
    pub part: Part,
    /// How much of that is done.
    pub done: u64,
    /// How much there is to do; 0 if that is not known.
    pub total: u64,
}

/// Hears what a check finds. It is called by the thread that checks.
pub trait Watch {
    /// Something is wrong.
    fn found(&mut self, finding: Finding);

    /// The check is that far. Called for each page, so it should be quick.
    fn progress(&mut self, _progress: Progress) {}
}

/// Hears of findings only.
pub(super) struct Findings<'a>(pub(super) &'a mut dyn FnMut(Finding));

impl Watch for Findings<'_> {
    fn found(&mut self, finding: Finding) {
        (self.0)(finding);
    }
}

/// Counts what is done of one part.
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

    /// One more is done.
    pub(super) fn step(&mut self) {
        self.reach(self.progress.done + 1);
    }

    /// So much is done.
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
