//! Bulk work leaves little in the buffer pool: at most its ring of each relation. The pages that
//! other sessions use stay.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::{RC, all_of, config, create, find, index, run, table};
use millpond_buffer::{RelHandle, RelationId};
use millpond_engine::catalog::{ColumnDef, NewIndex, NewTable, TableDef};
use millpond_engine::lmgr::LockMode;
use millpond_engine::session::IndexScan;
use millpond_engine::table::{Direction, RowBatch, RowBuf};
use millpond_engine::types::{DataType, Datum};
use millpond_engine::{Engine, EngineResult, Session};

const BUFFERS: usize = 256;
/// Every ring has the largest size that this small pool allows.
const RING: usize = BUFFERS / 8;
/// About 1000 pages.
const ROWS: i32 = 8000;
const WIDTH: usize = 900;

fn wide(name: &str) -> NewTable {
    NewTable {
        name: name.into(),
        columns: vec![
            ColumnDef::new("id", DataType::Int4),
            ColumnDef::new("filler", DataType::Text),
        ],
        fillfactor: 100,
        indexes: vec![],
    }
}

/// A text of that width. Texts differ at the beginning; an index stores all of it.
fn filler(id: i32) -> String {
    let scattered = (id as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("{scattered:016x}").repeat(WIDTH / 16)
}

fn load(session: &mut Session, table: &Arc<TableDef>, rows: std::ops::Range<i32>) {
    run(session, |s| {
        s.lock_table(table, LockMode::RowExclusive)?;
        let mut batch = RowBatch::new();
        for id in rows {
            s.add_to_batch(table, &[Datum::Int4(id), Datum::Text(&filler(id))], &mut batch)?;
            if batch.byte_len() >= 64 << 10 {
                s.insert_batch(table, &mut batch)?;
            }
        }
        s.insert_batch(table, &mut batch)
    })
    .unwrap();
}

/// A pool full of the pages of a table in use, and a large table.
struct World {
    engine: Arc<Engine>,
    session: Session,
    used: Arc<TableDef>,
    _directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        config.buffers = BUFFERS;
        let engine = Engine::open(config).unwrap();
        let mut session = engine.session().unwrap();
        // More rows than fit into the pool.
        let used = create(&mut session, wide("used"));
        load(&mut session, &used, 0..ROWS / 2);
        run(&mut session, |s| {
            s.ddl().create_index(NewIndex { primary: true, ..index(used.oid, &[0]) })
        })
        .unwrap();
        let used = table(&session, "used");
        create(&mut session, wide("large"));
        let mut world = Self { engine, session, used, _directory: directory };
        world.use_some();
        world
    }

    fn large(&self) -> Arc<TableDef> {
        table(&self.session, "large")
    }

    fn relation(&self, storage: RelationId) -> RelHandle {
        self.engine.pool().relation(storage.main()).unwrap()
    }

    /// How many pages of the large table and of its indexes are in memory.
    fn pages(&self) -> usize {
        let large = self.large();
        let storages = large.indexes.iter().map(|index| index.storage).chain([large.storage]);
        storages.map(|storage| self.relation(storage).pages_in_memory()).sum()
    }

    /// Reads rows by key, spread over about 60 pages. Returns how many pages it had to fetch.
    fn use_some(&mut self) -> u64 {
        let used = Arc::clone(&self.used);
        let before = self.engine.pool().stats().misses;
        run(&mut self.session, |s| {
            s.lock_table(&used, LockMode::AccessShare)?;
            let mut row = RowBuf::new();
            for _ in 0..4 {
                for id in (0..480).step_by(8) {
                    let key = used.primary_key().unwrap();
                    assert!(s.lookup(&used, key, &[Datum::Int4(id)], &mut row)?);
                }
            }
            Ok(())
        })
        .unwrap();
        self.engine.pool().stats().misses - before
    }

    /// Runs a job between reads of the rows in use, and checks what it leaves in the pool.
    fn job(&mut self, what: &str, rings: usize, job: impl FnOnce(&mut Session, &Arc<TableDef>)) {
        // Without a checkpoint, the job would skip dirty pages of earlier jobs until the reclaimer
        // has written them.
        self.engine.checkpoint().unwrap();
        self.use_some();
        let before = self.pages();
        let large = self.large();
        job(&mut self.session, &large);
        let after = self.pages();
        assert!(after <= before + rings * RING, "{what}: {before} pages before, {after} after");
        let missed = self.use_some();
        assert!(missed <= 12, "{what}: {missed} of some 60 pages in use are gone");
    }
}

fn count(session: &mut Session, large: &Arc<TableDef>) -> usize {
    run(session, |s| {
        s.lock_table(large, LockMode::AccessShare)?;
        let mut scan = s.heap_scan(large)?;
        let mut rows = 0;
        while scan.next_page(s, &mut |_, _| {
            rows += 1;
            Ok(())
        })? {}
        Ok(rows)
    })
    .unwrap()
}

fn count_in_parallel(session: &mut Session, large: &Arc<TableDef>) -> usize {
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    let scan = session.parallel_scan(large).unwrap();
    let half = scan.blocks() / 2;
    let work = |blocks| {
        let mut worker = scan.worker(blocks).unwrap();
        let mut rows = 0;
        while worker
            .next_page(&mut |_, _| {
                rows += 1;
                Ok(())
            })
            .unwrap()
        {}
        rows
    };
    let rows = std::thread::scope(|scope| {
        let first = scope.spawn(|| work(0..half));
        work(half..scan.blocks()) + first.join().unwrap()
    });
    session.end_statement();
    session.abort();
    rows
}

/// Counts through the index that is as large as the table.
fn count_by_index(s: &Session, large: &Arc<TableDef>) -> EngineResult<usize> {
    s.lock_table(large, LockMode::AccessShare)?;
    let index = large.indexes.iter().find(|index| !index.unique).unwrap();
    let (mut scan, mut row, mut rows) = (IndexScan::new(), RowBuf::new(), 0);
    s.start_index_scan(large, index, &all_of(index), Direction::Forward, &mut scan)?;
    while scan.next(s, &mut row)? {
        rows += 1;
    }
    Ok(rows)
}

fn delete_some(session: &mut Session, large: &Arc<TableDef>) {
    run(session, |s| {
        for id in (0..ROWS).step_by(40) {
            s.delete(large, &mut find(s, large, id)?)?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn bulk_work_keeps_to_its_rings() {
    let mut world = World::new();
    world.job("load", 1, |session, large| load(session, large, 0..ROWS));
    world.job("scan", 1, |session, large| assert_eq!(count(session, large), ROWS as usize));
    world.job("parallel scan", 2, |session, large| {
        assert_eq!(count_in_parallel(session, large), ROWS as usize);
    });
    // The build reads the table and writes the index, which here has as many pages as the table.
    world.job("index build", 4, |session, large| {
        run(session, |s| s.ddl().create_index(index(large.oid, &[1]))).unwrap();
        run(session, |s| {
            s.ddl().create_index(NewIndex { primary: true, ..index(large.oid, &[0]) })
        })
        .unwrap();
    });
    world.job("index scan", 4, |session, large| {
        let rows = run(session, |s| count_by_index(s, large)).unwrap();
        assert_eq!(rows, ROWS as usize);
    });
    let large = world.large();
    delete_some(&mut world.session, &large);
    world.job("vacuum", 1, |session, large| {
        assert_eq!(session.maintenance().vacuum(large.oid).unwrap().removed, ROWS as u64 / 40);
    });
    world.job("analyze", 1, |session, large| session.maintenance().analyze(large.oid).unwrap());
    world.session.maintenance().vacuum(large.oid).unwrap();
}

#[test]
fn without_a_limit_vacuum_uses_the_whole_pool() {
    let mut world = World::new();
    world.job("load", 1, |session, large| load(session, large, 0..ROWS));
    let large = world.large();
    let before = world.pages();
    world.engine.checkpoint().unwrap();
    let mut bulk = world.session.bulk_access();
    bulk.rings.vacuum = 0;
    world.session.set_bulk_access(bulk);
    world.session.maintenance().vacuum(large.oid).unwrap();
    let after = world.pages();
    assert!(after > before + RING, "{before} pages before, {after} after");
}
