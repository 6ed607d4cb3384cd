//! Recovery: from the state that a crash has left to that of the last acknowledged commit.
//!
//! # Steps
//!
//! 1. [`Recovering::open`] reads the control file and walks the log from the redo point to its end,
//!    without changing anything. Damage to log that had been durable is an error. So is damage to
//!    the catalog or the transaction statuses that redo would not mend (wal rule 20).
//! 2. It writes the control file with the next start number before it writes anything else (wal
//!    rule 10), and opens the log at its end. Now the pool can be made, which needs a log.
//! 3. [`Recovering::redo`] applies the records in order. Nothing is logged meanwhile: a page image
//!    would come after records that are not yet in it (wal rule 11).
//! 4. The caller takes the [`Checkpoints`](crate::maintenance::checkpointer::Checkpoints) and
//!    writes a checkpoint before it lets any session change anything.
//!
//! If the process is killed at any point, recovery begins again from the same redo point. Redo
//! gives the same pages, whichever of its results had reached the disk.

mod directory;
mod quarantine;
mod redo;
mod settle;
mod survey;

use std::sync::Arc;

use millpond_buffer::{BufferPool, Lsn, PageStore};
use millpond_sync::mutant;

pub use crate::error::DirectoryError;
pub use directory::DataDirectory;
pub(crate) use quarantine::set_aside;
pub use quarantine::{QUARANTINE, SetAside};
pub use redo::{RedoFiles, RedoParts, Redone};
pub use settle::DamagedFork;
pub(crate) use settle::{
    committed_forks, mend_maps, missing_in_catalog, remove_dropped, settle_lengths, unnamed,
};

use self::survey::Survey;
use crate::control::{Control, ControlFile};
use crate::error::{EngineError, EngineResult};
use crate::wal::forks::ForkList;
use crate::wal::reader::{LogReader, Step};
use crate::wal::{Decoded, Log, LogConfig, LogStart, LogStore, WalError};

/// A database whose log is open and whose pages are not yet recovered.
pub struct Recovering {
    store: Arc<dyn LogStore>,
    log: Arc<Log>,
    control: ControlFile,
    end: Lsn,
    /// The forks that the last checkpoint knew.
    known: ForkList,
    was_clean: bool,
    is_new: bool,
}

impl Recovering {
    /// Finds the end of the log in `store` and opens the log there. An empty store becomes a new
    /// database, unless `pages` has relations.
    pub fn open(
        store: Arc<dyn LogStore>,
        pages: &dyn PageStore,
        config: LogConfig,
    ) -> EngineResult<Self> {
        let found = ControlFile::read(Arc::clone(&store))?;
        let is_new = found.is_none();
        let mut control = match found {
            Some(control) => control,
            None => create(&store, pages)?,
        };
        let mut now = control.current().clone();
        if now.segment_bytes != store.segment_bytes() {
            return Err(WalError::Incompatible {
                what: format!(
                    "the log has segments of {} bytes, but the configuration says {}; configure the former",
                    now.segment_bytes,
                    store.segment_bytes()
                ),
            }
            .into());
        }
        let (end, survey) = find_end(&store, &now, &mut |_| {})?;
        if !mutant!("wal-start-on-damaged-files") {
            survey.check_system_forks(pages)?;
        }
        let durable = survey.durable();
        let known = survey.into_known();
        let was_clean = now.clean;
        now.clean = false;
        now.start_no = control.next_start_no();
        if let Some(damage) = control.damaged_copy() {
            tracing::warn!(%damage, "one of two copies of the control file is damaged: going on from the other one");
        }
        let start = LogStart { end, durable, redo: now.redo, start_no: now.start_no };
        if !mutant!("wal-start-without-number") {
            control.write(now)?;
        }
        let log = Log::open(Arc::clone(&store), config, start)?;
        log.set_recovering(true);
        Ok(Self { store, log, control, end, known, was_clean, is_new })
    }

    /// The log, for the pool. Nothing can be inserted until redo is over.
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Whether `open` has just created the database.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether the last run ended with a checkpoint.
    pub fn was_clean(&self) -> bool {
        self.was_clean
    }

    /// The random number that tells this database from others.
    pub fn system_id(&self) -> u64 {
        self.control.current().system_id
    }

    /// The number of this start (wal rule 10).
    pub fn start_no(&self) -> u32 {
        self.control.current().start_no
    }

    /// Applies the log to the pages. Afterwards the log takes records.
    pub fn redo(
        &mut self,
        pool: &Arc<BufferPool>,
        parts: &mut dyn RedoParts,
    ) -> EngineResult<Redone> {
        let from = self.control.current().redo;
        parts.restore(&self.control.current().state)?;
        self.log.forks().restore(&self.known);
        let redone = redo::redo(&self.store, from, self.end, &self.log, pool, parts)?;
        self.log.set_recovering(false);
        if !self.is_new {
            tracing::info!(
                records = redone.records,
                from = %from,
                to = %self.end,
                "recovered from the log"
            );
        }
        Ok(redone)
    }

    /// The log and the control file, for the checkpointer.
    pub(crate) fn into_parts(self) -> (Arc<Log>, ControlFile) {
        (self.log, self.control)
    }
}

/// Creates the first control file. The log begins with segment 1, so no record is at position 0.
fn create(store: &Arc<dyn LogStore>, pages: &dyn PageStore) -> EngineResult<ControlFile> {
    let listed = |source| WalError::io("could not list the log's segments", source);
    let first = Lsn(store.segment_bytes());
    let relations = pages.relations().map_err(|error| EngineError::Buffer(error.into()))?;
    let has_log = match store.segments().map_err(listed)?.as_slice() {
        [] => false,
        [1, ..] => {
            let mut reader = LogReader::new(Arc::clone(store), first)?;
            matches!(reader.next()?, Step::Record(_))
        }
        _ => true,
    };
    if has_log || !relations.is_empty() {
        return Err(WalError::Control {
            what: "the control file is missing, but there is data; restore the file from a backup"
                .into(),
        }
        .into());
    }
    let control = Control {
        sequence: 0,
        segment_bytes: store.segment_bytes(),
        system_id: new_system_id(),
        start_no: 0,
        clean: true,
        redo: first,
        checkpoint_end: first,
        checkpoint_time: 0,
        state: Vec::new(),
    };
    Ok(ControlFile::create(Arc::clone(store), control)?)
}

/// A number that practically no other database has.
fn new_system_id() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    if let Some(number) = millpond_sync::scheduler::number() {
        return number;
    }
    // The state of a new hasher comes from the kernel's random numbers.
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u128(millpond_sync::clock::since_1970().as_nanos());
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// Walks to the end of the log. Damage to bytes that had been durable is an error (wal rule 6).
/// `heard` is called with every record.
pub(crate) fn find_end(
    store: &Arc<dyn LogStore>,
    control: &Control,
    heard: &mut dyn FnMut(&Decoded<'_>),
) -> EngineResult<(Lsn, Survey)> {
    let mut reader = LogReader::new(Arc::clone(store), control.redo)?;
    let mut survey = Survey::new(control);
    let (end, upto, why) = loop {
        match reader.next()? {
            Step::Record(record) => {
                survey.see(&record)?;
                heard(&record);
            }
            Step::End { at, upto, why } => break (at, upto, why),
        }
    };
    let damaged = |known: String| {
        let segments = segments_of(store.segment_bytes(), end, upto);
        let what = format!("{why} ({segments}); {known}");
        Err(WalError::Corrupt { at: end, what }.into())
    };
    if end < control.checkpoint_end {
        return damaged(format!("the last checkpoint ends at {}", control.checkpoint_end));
    }
    if let Some(claim) = reader.find_claim_beyond(end)?
        && !mutant!("wal-later-claim-ignored")
    {
        return damaged(format!("the record at {claim} says that the log was durable here"));
    }
    survey.finish()?;
    tracing::debug!(%end, why, "found the end of the log");
    Ok((end, survey))
}

/// The names of the segments that hold the bytes from `start` to `end`.
fn segments_of(segment_bytes: u64, start: Lsn, end: Lsn) -> String {
    let (first, last) = (start.get() / segment_bytes, (end.get() - 1) / segment_bytes);
    match first == last {
        true => format!("segment {first:016x}"),
        false => format!("segments {first:016x} to {last:016x}"),
    }
}
