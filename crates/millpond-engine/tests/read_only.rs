//! Proves that hot reads write nothing shared, for whole transactions.
//!
//! Everything that an engine shares between its sessions is mapped read-only. This is *all* memory
//! that any thread allocated while the engine was opened, its table filled and its caches warmed.
//! It includes the pool (frames, descriptors, entries), the lock tables, the status ring and the
//! commit clock. It also includes the catalog with all definitions, and the log's control and ring.
//! Then sessions run a million transactions through the engine's API. Each is a prepared select by
//! key, or a scan of ten rows of an index. A write to shared memory would end the process.
//!
//! What remains writable:
//!
//! - what a session allocates for itself ([`millpond_engine::Session`] and its parts) and its
//!   stack: the sessions are created after the shared memory is complete;
//! - parts of shared tables of which each belongs to one session: [`EXEMPT`], which the test
//!   compares with what is really exempt;
//! - the statics of the process, which mprotect cannot tell apart. (The engine has none that a
//!   statement writes.)
//!
//! The test ends background threads first, since they write.
//!
//! The controls are child processes that do the same and then write to one shared object, each in
//! another part of the engine. They must die of SIGSEGV. A control that only reads must not.
//!
//! ```sh
//! cargo test -p millpond-engine --features audit --test read_only
//! ```
#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use common::{accounts, config, create, row, run};
use millpond_buffer::IoMethod;
use millpond_engine::catalog::TableDef;
use millpond_engine::lmgr::{LockMode, LockTag};
use millpond_engine::session::IndexScan;
use millpond_engine::table::{Direction, KeyRange, RowBatch, RowBuf};
use millpond_engine::types::Datum;
use millpond_engine::types::key::{NextColumn, RangeEnd};
use millpond_engine::{Engine, Session};
use millpond_sync::audit::place::{self, PlacingAllocator, Protected};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

#[global_allocator]
static ALLOCATOR: PlacingAllocator = PlacingAllocator;

/// Shared tables of which one session writes each part, and why others read it.
const EXEMPT: [(&str, &str); 8] = [
    ("sessions' lines", "its snapshot and id, for vacuum's horizon"),
    ("sessions' desks", "what it waits for, for views and for the session that wakes it"),
    ("sessions' statements", "what it runs, for views (without SQL, nothing)"),
    ("fast-path lock slots", "its weak relation locks, for strong lockers"),
    ("pins", "its pins, for sessions that take frames (a hot read has none)"),
    ("striped counters", "its counts, for views"),
    (
        "log insertion slots",
        "where it inserts, for the thread that writes the log (a read does not)",
    ),
    ("log scratch", "room to encode records in (a read does not)"),
];

const ROWS: i32 = 20_000;
/// Rows inserted after the vacuum: a reader looks up the status of their transaction.
const YOUNG: i32 = 2_000;
const SESSIONS: u64 = 4;
const TRANSACTIONS: usize = 1_000_000;
/// One in this many transactions is a scan.
const SCAN_EVERY: usize = 8;
const SCANNED: i32 = 10;

/// The environment variables that tell a child process its control and its directory.
const CONTROL: &str = "MILLPOND_CONTROL";
const DIRECTORY: &str = "MILLPOND_CONTROL_DIRECTORY";

fn main() -> ExitCode {
    if let (Ok(control), Ok(directory)) = (std::env::var(CONTROL), std::env::var(DIRECTORY)) {
        return in_child(&control, Path::new(&directory));
    }
    // Before shared memory is recorded, so that the buffer of standard output is not part of it.
    println!("{TRANSACTIONS} transactions of {SESSIONS} sessions, with what they share read-only");
    let directory = tempfile::tempdir().unwrap();
    proof(&directory.path().join("proof"));
    for (control, _) in CONTROLS {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.env(CONTROL, control).env(DIRECTORY, directory.path().join(control));
        let status = child.status().unwrap();
        if control == "nothing" {
            assert!(status.success(), "{control}: {status}");
        } else {
            assert_eq!(status.signal(), Some(SIGSEGV), "{control}: {status}");
        }
        println!("control, writes to {control}: {status}");
    }
    ExitCode::SUCCESS
}

const SIGSEGV: i32 = 11;

/// An engine with all its shared memory in the shared place, idle and warm.
fn warm_engine(path: &Path) -> (Arc<Engine>, Arc<TableDef>) {
    place::shared(|| {
        let mut config = config(path);
        config.buffers = 2048;
        config.io_method = IoMethod::Sync;
        let engine = Engine::open(config).unwrap();
        let mut session = engine.session().unwrap();
        create(&mut session, accounts());
        insert(&mut session, 0..ROWS - YOUNG);
        let oid = common::table(&session, "accounts").oid;
        session.maintenance().vacuum(oid).unwrap();
        session.maintenance().analyze(oid).unwrap();
        insert(&mut session, ROWS - YOUNG..ROWS);
        engine.checkpoint().unwrap();
        engine.end_background_work();
        // Read until no access changes a page's usage count, and everything that is created at
        // first use exists.
        let table = common::table(&session, "accounts");
        let mut reader = Reader::new(&table);
        for id in 0..ROWS - SCANNED {
            reader.select(&mut session, id);
            reader.scan(&mut session, id);
        }
        (engine, table)
    })
}

fn insert(session: &mut Session, ids: std::ops::Range<i32>) {
    let table = common::table(session, "accounts");
    for start in ids.clone().step_by(500) {
        run(session, |s| {
            s.lock_table(&table, LockMode::RowExclusive)?;
            let mut batch = RowBatch::new();
            for id in start..(start + 500).min(ids.end) {
                s.add_to_batch(&table, &row(id, "somebody", balance(id)), &mut batch)?;
            }
            s.insert_batch(&table, &mut batch)
        })
        .unwrap();
    }
}

fn balance(id: i32) -> i64 {
    i64::from(id) * 7 + 3
}

/// The prepared statements of a session: memory that it reuses.
struct Reader {
    table: Arc<TableDef>,
    row: RowBuf,
    range: KeyRange,
    scan: IndexScan,
}

impl Reader {
    fn new(table: &Arc<TableDef>) -> Self {
        let (row, range, scan) = (RowBuf::new(), KeyRange::default(), IndexScan::new());
        Self { table: Arc::clone(table), row, range, scan }
    }

    /// `select balance from accounts where id = $1`
    fn select(&mut self, session: &mut Session, id: i32) {
        let (table, row) = (&self.table, &mut self.row);
        run(session, |s| {
            s.lock_table(table, LockMode::AccessShare)?;
            let key = table.primary_key().unwrap();
            assert!(s.lookup(table, key, &[Datum::Int4(id)], row)?, "{id} is missing");
            assert_eq!(row.column(table, 2).unwrap().as_i64(), Some(balance(id)));
            Ok(())
        })
        .unwrap();
    }

    /// `select id, balance from accounts where id >= $1 and id < $1 + 10 order by id`
    fn scan(&mut self, session: &mut Session, first: i32) {
        let Self { table, row, range, scan } = self;
        run(session, |s| {
            s.lock_table(table, LockMode::AccessShare)?;
            let index = table.primary_key().unwrap();
            let end = |id, inclusive| Some(RangeEnd { value: Datum::Int4(id), inclusive });
            let (from, to) = (end(first, true), end(first + SCANNED, false));
            let ids = NextColumn::Value { from, to };
            index.keys.range(&[], ids, &mut range.lower, &mut range.upper).unwrap();
            s.start_index_scan(table, index, range, Direction::Forward, scan)?;
            let mut expected = first;
            while scan.next(s, row)? {
                assert_eq!(row.column(table, 0).unwrap().as_i64(), Some(i64::from(expected)));
                assert_eq!(row.column(table, 2).unwrap().as_i64(), Some(balance(expected)));
                expected += 1;
            }
            assert_eq!(expected, first + SCANNED);
            Ok(())
        })
        .unwrap();
    }
}

/// Creates sessions. Their first transactions fill their private caches.
fn sessions(engine: &Arc<Engine>, table: &Arc<TableDef>, count: u64) -> Vec<(Session, Reader)> {
    let session = |_| {
        let (mut session, mut reader) = (engine.session().unwrap(), Reader::new(table));
        reader.select(&mut session, 1);
        reader.scan(&mut session, 1);
        (session, reader)
    };
    (0..count).map(session).collect()
}

fn proof(path: &Path) {
    let (engine, table) = warm_engine(path);
    let sessions = sessions(&engine, &table, SESSIONS);
    assert!(place::is_shared(&*engine) && place::is_shared(&*table));
    assert!(
        place::is_shared(&**engine.pool()) && place::is_shared(&**table.primary_key().unwrap())
    );
    let mut exempt = place::session_owned_names();
    let mut expected = EXEMPT.map(|(name, _)| name);
    exempt.sort_unstable();
    expected.sort_unstable();
    assert_eq!(exempt, expected, "not what this test says is exempt");

    let protected = Protected::new().unwrap();
    let begun = Instant::now();
    let sessions: Vec<_> = std::thread::scope(|scope| {
        let thread = |(seed, (mut session, mut reader)): (u64, (Session, Reader))| {
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed);
                for nth in 0..TRANSACTIONS / SESSIONS as usize {
                    let id = random.random_range(0..ROWS - SCANNED);
                    match nth % SCAN_EVERY {
                        0 => reader.scan(&mut session, id),
                        _ => reader.select(&mut session, id),
                    }
                }
                (session, reader)
            })
        };
        let threads: Vec<_> = (0..).zip(sessions).map(thread).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (elapsed, mib) = (begun.elapsed(), protected.bytes() >> 20);
    drop(protected);
    println!("{TRANSACTIONS} transactions in {elapsed:.1?}, {mib} MiB read-only");
    drop(sessions);
}

type Write = fn(&mut Session, &mut Reader);

/// What each control writes to, and how. All but the first must end the process.
const CONTROLS: [(&str, Write); 7] = [
    ("nothing", |session, reader| reader.select(session, 7)),
    ("transactions", |session, reader| {
        let _ = run(session, |s| common::add(s, &reader.table, 7, 1));
    }),
    ("locks", |session, reader| {
        // A strong mode raises the relation's counter.
        let tag = LockTag::Relation(reader.table.oid);
        let _ = run(session, |s| s.locks().acquire(tag, LockMode::AccessExclusive, false));
    }),
    ("lock partitions", |session, reader| {
        // A mode that is neither weak nor strong uses the lock table at once.
        let tag = LockTag::Relation(reader.table.oid);
        let _ = run(session, |s| s.locks().acquire(tag, LockMode::ShareUpdateExclusive, false));
    }),
    ("catalog", |_, reader| drop(Arc::clone(&reader.table))),
    ("pool", |session, reader| {
        // Looking up a handle takes the mutex of the pool's table.
        let _ = session.engine().pool().relation(reader.table.storage.main());
    }),
    ("log", |session, _| session.engine().log().stop("as a control")),
];

fn in_child(control: &str, directory: &Path) -> ExitCode {
    let write = CONTROLS.iter().find(|(name, _)| *name == control).unwrap().1;
    let (engine, table) = warm_engine(directory);
    let (mut session, mut reader) = sessions(&engine, &table, 1).remove(0);
    let protected = Protected::new().unwrap();
    write(&mut session, &mut reader);
    drop(protected);
    drop(session);
    ExitCode::SUCCESS
}
