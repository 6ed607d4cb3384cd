//! The check of a database: what it costs, what it finds, and that it changes nothing.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use millpond_engine::Engine;
use millpond_engine::catalog::{ColumnDef, NewTable};
use millpond_engine::check::check_engine;
use millpond_engine::lmgr::LockMode;
use millpond_engine::types::{DataType, Datum};

/// Pages that sessions have looked at so far.
fn looks(engine: &Engine) -> u64 {
    let stats = engine.pool().stats();
    stats.hits + stats.misses
}

#[test]
fn rows_with_equal_keys_are_checked_in_n_log_n_steps() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let columns = vec![ColumnDef::new("id", DataType::Int4), ColumnDef::new("k", DataType::Text)];
    let indexes = vec![index(0, &[1])];
    let same = NewTable { name: "same".into(), columns, fillfactor: 100, indexes };
    let same = create(&mut session, same);
    let (rows, key) = (8000, "k".repeat(500));
    run(&mut session, |s| {
        s.lock_table(&same, LockMode::RowExclusive)?;
        for id in 0..rows {
            s.insert(&same, &[Datum::Int4(id), Datum::Text(&key)])?;
        }
        Ok(())
    })
    .unwrap();
    let before = looks(&engine);
    let checked = check_engine(&engine, &mut |finding| panic!("{finding}")).unwrap();
    assert_eq!((checked.rows, checked.entries), (8000, 8000));
    let looks = looks(&engine) - before;
    // A descent of two or three levels for each row, and each page once. All rows of the key are on some 16 leaves.
    assert!(looks < 6 * 8000, "{looks} looks at pages for {rows} rows");
}
