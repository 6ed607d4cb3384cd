//! Records about files: a fork was created, or truncated.
//!
//! Removed files are listed in the record that ends their transaction. So files that a transaction
//! dropped go exactly when it commits, and files that it created go when it does not.
//!
//! A creation is done once the file is there, a truncation once the file has been cut. Until then
//! no checkpoint may make the record too old to be redone. A checkpoint waits for those in progress
//! whose records may be older than its redo point. It logs failed truncations again (wal rule 16).

use millpond_buffer::{BufferPool, Lsn, RelFork};
use millpond_sync::mutant;

use super::apply::Logging;
use super::forks::{self, CheckpointEnd};
use super::log::Log;
use super::record::{Record, RmgrId};
use super::storage_record::StorageRecord;
use crate::error::{EngineResult, WalError};
use crate::ids::{SessionNo, Xid};

/// Creates forks: first in the log, durably, then in the store. So a crash leaves no file that the
/// log doesn't know. No checkpoint ends in between, which would make the records too old for redo.
pub fn create_forks(
    session: &impl Logging,
    pool: &BufferPool,
    xid: Xid,
    forks: &[RelFork],
) -> EngineResult<()> {
    let log = session.log();
    let _not_done = (!mutant!("wal-create-unseen")).then(|| log.file_changes.read());
    let mut end = Lsn::ZERO;
    for &rel in forks {
        let (info, payload) = StorageRecord::Create(rel).encode();
        let record = Record::new(xid, RmgrId::Storage, info, &payload);
        end = log.insert(session.stripe(), &record)?.end;
        log.forks().create(rel, xid);
    }
    if !mutant!("wal-file-before-its-record") {
        log.flush(end)?;
    }
    for &rel in forks {
        pool.create(rel)?;
    }
    Ok(())
}

/// [`create_forks`] for one fork.
pub fn create_fork(
    session: &impl Logging,
    pool: &BufferPool,
    xid: Xid,
    rel: RelFork,
) -> EngineResult<()> {
    create_forks(session, pool, xid, &[rel])
}

/// Cuts a fork down to `blocks` blocks. The record is durable before the file is cut, because
/// afterwards no older record could be redone.
pub fn truncate_fork(
    session: &impl Logging,
    pool: &BufferPool,
    rel: RelFork,
    blocks: u32,
) -> EngineResult<()> {
    let (info, payload) = StorageRecord::Truncate(rel, blocks).encode();
    let record = Record::new(Xid::INVALID, RmgrId::Storage, info, &payload);
    let _not_done = session.log().file_changes.read();
    let inserted = session.log().insert(session.stripe(), &record)?;
    session.log().flush(inserted.end)?;
    session.log().forks().cut(rel, blocks);
    Ok(pool.truncate(rel, blocks)?)
}

/// For a checkpoint that has its redo point. Returns once no creation or truncation with an older
/// record is in progress. Logs again the failed truncations that have left a file too long.
pub fn settle_files(log: &Log, stripe: SessionNo, pool: &BufferPool) -> EngineResult<()> {
    drop(log.file_changes.write());
    if mutant!("wal-owed-cut-forgotten") {
        return Ok(());
    }
    pool.for_each_owed_cut(|rel, blocks| {
        let (info, payload) = StorageRecord::Truncate(rel, blocks).encode();
        log.insert(stripe, &Record::new(Xid::INVALID, RmgrId::Storage, info, &payload))?;
        Ok(())
    })
}

/// Logs the table of forks for a checkpoint that has written its pages. Returns the content of the
/// checkpoint's last record.
pub(crate) fn log_forks(
    log: &Log,
    stripe: SessionNo,
    redo: Lsn,
) -> Result<CheckpointEnd, WalError> {
    let _no_change = log.file_changes.write();
    let mut end = CheckpointEnd { redo, forks: 0 };
    for payload in forks::encode_list(redo, &log.forks().all(), &mut end.forks) {
        let record = Record::new(Xid::INVALID, RmgrId::Log, super::info::FORKS, &payload);
        log.insert(stripe, &record)?;
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use millpond_buffer::{BlockNumber, FileStore, FileStoreOptions, PoolConfig, RelationId, Wait};
    use millpond_vfs::OsVfs;
    use millpond_vfs::testing::{AskingVfs, Call};
    use parking_lot::Mutex;

    use super::*;
    use crate::testing::Fixture;
    use crate::wal::apply::tests::One;
    use crate::wal::reader::{LogReader, Step};
    use crate::wal::{FileLogStore, LogConfig, LogStart};

    /// Logs and makes a file. Returns what `look` found at the last call that opened a file: the
    /// one that made it.
    fn seen_when_made(
        look: fn(&Log) -> bool,
    ) -> (tempfile::TempDir, Arc<Log>, Arc<BufferPool>, bool) {
        let directory = tempfile::tempdir().unwrap();
        let files = Arc::new(FileLogStore::open(directory.path(), 1 << 16).unwrap());
        let config = LogConfig {
            segment_bytes: 1 << 16,
            max_sessions: 2,
            // Its thread does nothing by itself.
            writer_delay: Duration::from_secs(3600),
            ..LogConfig::default()
        };
        let (end, start_no) = (BEGIN, 1);
        let log =
            Log::open(files, config, LogStart { end, durable: end, redo: end, start_no }).unwrap();
        let seen = Arc::new(Mutex::new(None));
        let (of_log, its_seen) = (Arc::clone(&log), Arc::clone(&seen));
        let vfs = AskingVfs::new(OsVfs, move |call, _: &Path| {
            if call == Call::Open {
                *its_seen.lock() = Some(look(&of_log));
            }
            Ok(())
        });
        let mut options = FileStoreOptions::default();
        options.vfs = vfs;
        let store = FileStore::open_with(directory.path().join("base"), options).unwrap();
        let pool = BufferPool::new(PoolConfig::new(8, 2), Arc::new(store), log.clone()).unwrap();
        create_fork(&One(Arc::clone(&log)), &pool, Xid(1), MADE).unwrap();
        let seen = seen.lock().take().expect("nothing was made");
        (directory, log, pool, seen)
    }

    const BEGIN: Lsn = Lsn(1 << 16);
    const MADE: RelFork = RelationId::constant(9).main();

    /// No crash leaves a file that the log does not know (wal rule 19).
    #[test]
    fn a_file_is_made_after_its_record_is_durable() {
        let is_durable =
            |log: &Log| log.insert_position() > BEGIN && log.flushed() == log.insert_position();
        let (_directory, log, _pool, seen) = seen_when_made(is_durable);
        assert!(seen, "there is no durable record");
        log.abandon();
    }

    #[test]
    fn a_checkpoint_waits_for_the_file_of_a_logged_creation() {
        // The lock that a checkpoint takes before it goes on ([`settle_files`]).
        let (_directory, log, pool, seen) =
            seen_when_made(|log| log.file_changes.try_write().is_some());
        assert!(!seen, "a checkpoint could go on without the file");
        settle_files(&log, SessionNo(1), &pool).unwrap();
        assert!(pool.store().exists(MADE).unwrap());
        log.abandon();
    }

    /// The file could not be cut, because a page is in use.
    #[test]
    fn checkpoint_logs_a_failed_truncation_again() {
        let fixture = Fixture::new();
        let (ctx, log) = (fixture.ctx(), &fixture.shared.log);
        let rel = RelationId::constant(9).main();
        create_fork(&ctx, ctx.pool(), Xid(1), rel).unwrap();
        let handle = ctx.pool().relation(rel).unwrap();
        (0..2).for_each(|_| drop(ctx.buffers().extend(&handle, Wait::Allowed).unwrap()));
        let pinned = ctx.buffers().pin(&handle, BlockNumber(1), Wait::Allowed).unwrap();
        truncate_fork(&ctx, ctx.pool(), rel, 1).unwrap_err();
        drop(pinned);
        let redo = log.insert_position();
        settle_files(log, log.maintenance_stripe(), ctx.pool()).unwrap();
        log.flush(log.insert_position()).unwrap();
        let files = FileLogStore::open(fixture.directory.path(), 1 << 20).unwrap();
        let mut reader = LogReader::new(Arc::new(files), redo).unwrap();
        let Step::Record(record) = reader.next().unwrap() else { panic!("nothing was logged") };
        assert_eq!(record.rmgr, RmgrId::Storage);
        let again = StorageRecord::decode(record.payload).unwrap();
        assert_eq!(again, StorageRecord::Truncate(rel, 1));
    }
}
