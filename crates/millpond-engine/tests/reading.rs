//! A table larger than the pool, read and vacuumed with every setting of `io_method` and direct
//! I/O.
#![allow(clippy::unwrap_used)]

mod common;

use common::{accounts, close, config, create, row, run, table};
use millpond_buffer::IoMethod;
use millpond_engine::lmgr::LockMode;
use millpond_engine::table::RowBatch;
use millpond_engine::{Engine, EngineError, Session};

const ROWS: i32 = 12_000;

fn load(session: &mut Session) {
    let table = create(session, accounts());
    run(session, |s| {
        s.lock_table(&table, LockMode::RowExclusive)?;
        let mut batch = RowBatch::new();
        for id in 0..ROWS {
            s.add_to_batch(&table, &row(id, &"owner".repeat(10), i64::from(id)), &mut batch)?;
        }
        s.insert_batch(&table, &mut batch)
    })
    .unwrap();
}

fn sum(session: &mut Session) -> (usize, u64) {
    let table = table(session, "accounts");
    run(session, |s| {
        s.lock_table(&table, LockMode::AccessShare)?;
        let mut scan = s.heap_scan(&table)?;
        let (mut rows, mut bytes) = (0, 0);
        while scan.next_page(s, &mut |_, row| {
            rows += 1;
            bytes += row.iter().map(|&byte| u64::from(byte)).sum::<u64>();
            Ok(())
        })? {}
        Ok((rows, bytes))
    })
    .unwrap()
}

#[test]
fn all_read_paths_return_the_same_rows() {
    let mut expected = None;
    for direct_io in [false, true] {
        for io_method in [IoMethod::IoUring, IoMethod::Worker, IoMethod::Sync] {
            let directory = tempfile::tempdir().unwrap();
            let open = || {
                let mut config = config(directory.path());
                config.buffers = 64;
                (config.io_method, config.direct_io) = (io_method, direct_io);
                Engine::open(config)
            };
            let engine = match open() {
                Err(EngineError::Buffer(error)) if direct_io => {
                    println!("skipped: no direct I/O here: {error}");
                    continue;
                }
                opened => opened.unwrap(),
            };
            let mut session = engine.session().unwrap();
            load(&mut session);
            let loaded = sum(&mut session);
            assert_eq!(loaded.0, ROWS as usize);
            assert_eq!(*expected.get_or_insert(loaded), loaded);
            let oid = table(&session, "accounts").oid;
            session.maintenance().vacuum(oid).unwrap();
            session.maintenance().analyze(oid).unwrap();
            close(session, engine);
            let engine = open().unwrap();
            let mut session = engine.session().unwrap();
            assert_eq!(sum(&mut session), loaded);
            assert!(engine.pool().stats().read_ahead > 0, "nothing was read ahead");
        }
    }
}
