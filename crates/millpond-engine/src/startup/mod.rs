//! Opening a data directory.
//!
//! 1. Lock the directory, find the end of the log, and redo the changes since the last checkpoint.
//! 2. Abort the transactions that were running at the crash.
//! 3. Read the catalog, and compare it with the forks that the log knows.
//! 4. Remove the files of dropped relations and of relations that were never committed. Compare the
//!    lengths of all other files with the log. Move away files that belong to nothing (wal rules 18
//!    and 19).
//! 5. Write a checkpoint, so that the next recovery begins here, and start the background work.
//!
//! The control file keeps the next transaction id, oid and file number (see [`State`]). Later
//! records raise them.

mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use millpond_buffer::trace::{PageTrace, TraceFile};
use millpond_buffer::{
    BufferPool, FileStore, FileStoreOptions, Fork, PoolConfig, RelFork, RelationId,
};

use crate::access::heap::HeapRelation;
use crate::access::heap::visibility::Fates;
use crate::autovacuum;
use crate::catalog::published::Published;
use crate::catalog::{CATALOG_RELATION, CatalogState, FIRST_NORMAL_OID, heap, rows};
use crate::config::EngineConfig;
use crate::ctx::{Ctx, Shared};
use crate::engine::{Engine, Findings, Parts};
use crate::error::{EngineError, EngineResult, relation_file};
use crate::maintenance::checkpointer::{Cause, CheckpointParts, Checkpoints};
use crate::maintenance::reclaimer;
use crate::proc::ProcArray;
use crate::recovery::{
    DataDirectory, Recovering, RedoFiles, RedoParts, committed_forks, mend_maps,
    missing_in_catalog, remove_dropped, set_aside, settle_lengths, unnamed,
};
use crate::rmgr;
use crate::sort::temp::TempFiles;
use crate::transam::{Transactions, Xid, XidStatus};
use crate::wal::forks::KnownFork;
use crate::wal::storage::create_fork;
use crate::wal::storage_record::StorageRecord;
use crate::wal::{Decoded, FileLogStore, Log, LogConfig, RmgrId, WalError};

pub(crate) use state::State;

/// Sessions of the engine itself: checkpointer, upkeep, reclaimer, autovacuum, start-up, and a few
/// spare ones.
const OWN_SESSIONS: usize = 8;
/// Descriptors that belong neither to a connection nor to a relation: log, directories, io_uring,
/// temporary files.
const OWN_DESCRIPTORS: usize = 64;
const CATALOG_FILLFACTOR: u8 = 100;

struct EngineRedo<'a> {
    txns: &'a Transactions,
    next_oid: u32,
    next_storage: u32,
}

impl RedoParts for EngineRedo<'_> {
    fn restore(&mut self, state: &[u8]) -> EngineResult<()> {
        if state.is_empty() {
            return Ok(());
        }
        let state = State::decode(state).ok_or_else(|| EngineError::Corruption {
            place: "control file".to_owned(),
            what: "the engine's state is too short".to_owned(),
        })?;
        self.txns.restore_next(Xid(state.next_xid));
        self.next_oid = self.next_oid.max(state.next_oid);
        self.next_storage = self.next_storage.max(state.next_storage);
        Ok(())
    }

    fn redo(&mut self, record: &Decoded<'_>, files: &mut RedoFiles) -> EngineResult<()> {
        self.txns.redo_saw(record.xid);
        match record.rmgr {
            RmgrId::Transaction => {
                for file in self.txns.redo(record.xid, record.info, record.payload)? {
                    files.drop_relation(file)?;
                }
            }
            RmgrId::Storage => {
                if let StorageRecord::Create(rel) = StorageRecord::decode(record.payload)? {
                    self.next_storage = self.next_storage.max(rel.relation.get() + 1);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

struct EngineCheckpoint {
    ctx: Ctx,
    published: Arc<Published>,
}

impl CheckpointParts for EngineCheckpoint {
    fn wait_for_commits(&mut self) {
        self.ctx.shared().procs.wait_for_commits();
    }

    fn log_statuses(&mut self) -> EngineResult<()> {
        self.ctx.txns().checkpoint(&self.ctx)
    }

    fn has_committed(&mut self, xid: Xid) -> EngineResult<bool> {
        Ok(matches!(self.ctx.status(xid)?, XidStatus::Committed(_)))
    }

    fn state(&mut self) -> Vec<u8> {
        let (next_oid, next_storage) = self.published.next_numbers();
        State { next_xid: self.ctx.txns().next_xid().0, next_oid, next_storage }.encode()
    }
}

impl Engine {
    /// Opens the data directory. Creates it if it does not exist, and recovers it after a crash.
    /// Fails if another process has it open or its format belongs to another version.
    pub fn open(config: EngineConfig) -> EngineResult<Arc<Self>> {
        let directory = DataDirectory::open(&*config.vfs, &config.path)?;
        Self::open_in(config, directory)
    }

    /// The same for a directory that the caller has already locked.
    pub(crate) fn open_in(
        config: EngineConfig,
        directory: DataDirectory,
    ) -> EngineResult<Arc<Self>> {
        open_in(config, directory)
    }
}

fn open_in(config: EngineConfig, directory: DataDirectory) -> EngineResult<Arc<Engine>> {
    let store = Arc::new(
        FileStore::open_with(directory.base(), file_options(&config)).map_err(store_error)?,
    );
    // Each connection may have a thread that scans for it.
    let workers = config.max_connections.saturating_add(config.max_parallel_workers);
    let sessions = workers.saturating_add(config.max_connections).saturating_add(OWN_SESSIONS);
    let sessions = u16::try_from(sessions).map_err(|_| EngineError::LimitExceeded {
        what: "twice \"max_connections\" plus \"max_parallel_workers\" is above 65527; lower one of them",
    })?;
    let mut recovering = find_log_end(&config, sessions, &store)?;
    let (is_new, system_id) = (recovering.is_new(), recovering.system_id());
    let start_no = recovering.start_no();
    let shared = assemble(&config, sessions, store, recovering.log())?;

    let mut parts = EngineRedo {
        txns: &shared.txns,
        next_oid: FIRST_NORMAL_OID,
        next_storage: FIRST_NORMAL_OID,
    };
    recovering.redo(&shared.pool, &mut parts)?;
    let (next_oid, next_storage) = (parts.next_oid, parts.next_storage);
    let ctx = Ctx::new(&shared, "startup")?;
    shared.txns.finish_recovery(&ctx)?;

    let forks = committed_forks(&ctx)?;
    mend_maps(&ctx, &forks)?;
    let catalog_heap = open_catalog(&ctx, is_new, usize::from(sessions))?;
    let (state, next_oid) = load_catalog(&ctx, &catalog_heap, &forks, next_oid)?;
    let (findings, next_storage) = settle_files(&ctx, &config, &forks, next_storage, start_no)?;
    let published = Arc::new(Published::new(state, next_oid, next_storage));
    drop(ctx);

    let checkpoints = start_checkpoints(&config, recovering, &shared, &published)?;
    let engine = Arc::new(Engine::assemble(Parts {
        config,
        shared,
        published,
        catalog_heap,
        checkpoints,
        system_id,
        findings,
        directory,
    }));
    start_threads(&engine)?;
    Ok(engine)
}

/// Starts the background threads. None holds a strong reference to the engine while it sleeps.
fn start_threads(engine: &Arc<Engine>) -> EngineResult<()> {
    let background = engine.background();
    let [reclaims, retires] = [engine.shared().clone(), engine.shared().clone()];
    background.spawn("millpond-reclaim", |signal| reclaimer::run(reclaims, signal))?;
    background.spawn("millpond-upkeep", |signal| reclaimer::upkeep(retires, signal))?;
    let weak = Arc::downgrade(engine);
    background.spawn("millpond-vacuum", |signal| autovacuum::run(weak, signal))
}

/// Opens the log, and finds its end.
fn find_log_end(
    config: &EngineConfig,
    sessions: u16,
    store: &FileStore,
) -> EngineResult<Recovering> {
    let log_config = LogConfig {
        segment_bytes: config.wal_segment_bytes,
        buffer_bytes: config.wal_buffer_bytes,
        max_sessions: usize::from(sessions),
        writer_delay: config.wal_writer_delay,
        flush_after_bytes: config.wal_writer_flush_after_bytes,
        redo_of: rmgr::redo_of,
    };
    let vfs = Arc::clone(&config.vfs);
    let files = FileLogStore::open_on(vfs, &config.path, log_config.segment_bytes)
        .map_err(|source| WalError::io("could not open the log's directory", source))?;
    Recovering::open(Arc::new(files), store, log_config)
}

/// Makes what all sessions share, before recovery.
fn assemble(
    config: &EngineConfig,
    sessions: u16,
    store: Arc<FileStore>,
    log: &Arc<Log>,
) -> EngineResult<Shared> {
    // Each session has one pool session; checkpoints and recovery need further ones.
    let mut pool_config = PoolConfig::new(config.buffers, usize::from(sessions) + 4);
    pool_config.max_frames = config.max_buffers;
    pool_config.io_max_concurrency = config.io_max_concurrency;
    pool_config.policy = config.replacement_policy;
    let trace = trace(config)?;
    pool_config.trace = trace.clone().map(|trace| trace as Arc<dyn PageTrace>);
    let log = Arc::clone(log);
    let pool = BufferPool::new(pool_config, store, log.clone())?;
    let procs = ProcArray::new(sessions);
    let txns = Transactions::new(Arc::clone(&procs), config.recent_statuses, Xid::FIRST);
    txns.keep_in_memory(config.old_statuses);
    let shared = Shared::new(pool, log, procs, txns);
    shared.locks.set_deadlock_timeout(config.deadlock_timeout);
    let temp_files = Arc::new(TempFiles::open(Arc::clone(&config.vfs), &config.path)?);
    Ok(Shared { bulk_access: config.bulk_access, temp_files, trace, ..shared })
}

/// Writes the checkpoint from which the next recovery begins, and starts the checkpointer.
fn start_checkpoints(
    config: &EngineConfig,
    recovering: Recovering,
    shared: &Shared,
    published: &Arc<Published>,
) -> EngineResult<Arc<Checkpoints>> {
    let parts = EngineCheckpoint {
        ctx: Ctx::new(shared, "checkpointer")?,
        published: Arc::clone(published),
    };
    let pool = Arc::clone(&shared.pool);
    let checkpoints = Checkpoints::new(recovering, pool, Box::new(parts), config)?;
    checkpoints.run(Cause::EndOfRecovery)?;
    checkpoints.start()?;
    Ok(checkpoints)
}

fn trace(config: &EngineConfig) -> EngineResult<Option<Arc<TraceFile>>> {
    let Some(path) = &config.trace_pages else { return Ok(None) };
    match TraceFile::create_on(Arc::clone(&config.vfs), path, config.trace_pages_max_bytes) {
        Ok(trace) => Ok(Some(trace)),
        Err(source) => Err(EngineError::Trace { path: path.clone(), source }),
    }
}

fn file_options(config: &EngineConfig) -> FileStoreOptions {
    let mut options = FileStoreOptions::default();
    options.io_method = config.io_method;
    options.io_workers = config.io_workers;
    options.direct_io = config.direct_io;
    options.vfs = Arc::clone(&config.vfs);
    options.reserved_descriptors = config.max_connections.saturating_add(OWN_DESCRIPTORS);
    options
}

fn store_error(error: millpond_buffer::StoreError) -> EngineError {
    EngineError::Buffer(error.into())
}

/// Opens the catalog's table. In a new database, it is the first table to be created.
fn open_catalog(ctx: &Ctx, is_new: bool, sessions: usize) -> EngineResult<HeapRelation> {
    let is_known = ctx.log().forks().get(CATALOG_RELATION.main()).is_some();
    if !is_known && !is_new && has_relations(ctx)? {
        return Err(EngineError::Corruption {
            place: "catalog".to_owned(),
            what: "the log does not know it, but there are files of tables".to_owned(),
        });
    }
    for fork in [Fork::Main, Fork::Fsm].map(|fork| CATALOG_RELATION.fork(fork)) {
        // Each fork by itself: a crash may have happened between the two.
        if ctx.log().forks().get(fork).is_none() {
            create_fork(ctx, ctx.pool(), Xid::INVALID, fork)?;
        }
    }
    let heap = HeapRelation::open(ctx.pool(), CATALOG_RELATION, CATALOG_FILLFACTOR, sessions)?;
    Ok(heap)
}

/// Whether there are files of tables or indexes.
fn has_relations(ctx: &Ctx) -> EngineResult<bool> {
    let files = ctx.pool().store().relations().map_err(store_error)?;
    Ok(files.iter().any(|file| file.get() >= FIRST_NORMAL_OID))
}

/// Reads the catalog. It must name exactly the relations that the log knows.
fn load_catalog(
    ctx: &Ctx,
    catalog: &HeapRelation,
    forks: &BTreeMap<RelFork, KnownFork>,
    next_oid: u32,
) -> EngineResult<(CatalogState, u32)> {
    let mut state = CatalogState::default();
    let mut next_oid = next_oid;
    let mut named: BTreeSet<RelationId> = BTreeSet::new();
    for table in rows::assemble(heap::load(ctx, catalog)?)? {
        let indexes = table.indexes.iter().map(|index| (&index.name, index.oid, index.storage));
        for (name, oid, storage) in indexes.chain([(&table.name, table.oid, table.storage)]) {
            next_oid = next_oid.max(oid + 1);
            if !forks.contains_key(&storage.main()) {
                let file = relation_file(storage.main());
                return Err(catalog_damage(format!(
                    "relation \"{name}\" has file {file}, of which the log knows nothing"
                )));
            }
            named.insert(storage);
        }
        state.insert(Arc::new(table));
    }
    match missing_in_catalog(forks, &named) {
        None => Ok((state, next_oid)),
        Some(rel) => Err(catalog_damage(format!(
            "no relation has file {}, which the log says is in use",
            relation_file(rel)
        ))),
    }
}

fn catalog_damage(what: String) -> EngineError {
    let place = format!("the catalog (file {})", relation_file(CATALOG_RELATION.main()));
    EngineError::Corruption { place, what }
}

/// Makes the files of `base/` and the log's knowledge of them agree. Returns the damage to report,
/// and a file number above all that exist.
fn settle_files(
    ctx: &Ctx,
    config: &EngineConfig,
    forks: &BTreeMap<RelFork, KnownFork>,
    next_storage: u32,
    start_no: u32,
) -> EngineResult<(Findings, u32)> {
    remove_dropped(ctx)?;
    let files: BTreeMap<_, _> =
        ctx.pool().store().forks().map_err(store_error)?.into_iter().collect();
    let highest = files.keys().map(|rel| rel.relation.get()).max().unwrap_or(0);
    let damaged = settle_lengths(ctx, forks, &files)?;
    let set_aside = set_aside(&*config.vfs, &config.path, start_no, &unnamed(ctx, &files))?;
    Ok((Findings { damaged, set_aside }, next_storage.max(highest.saturating_add(1))))
}
