//! Under `Wait::Never`, a change that might have to wait fails before it begins.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use millpond_buffer::Wait;
use millpond_engine::EngineError;
use millpond_engine::lmgr::LockMode;
use millpond_engine::table::{RowBuf, RowOutcome};
use millpond_engine::types::Datum;

#[test]
fn update_to_another_page_prepares_indexes_first() {
    const ROWS: i32 = 1500;
    let (_dir, _engine, mut session, accounts) = bank(ROWS);
    let key = accounts.primary_key().unwrap();
    let long = "x".repeat(200);
    let (mut refused, mut found) = (0, RowBuf::new());
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    session.lock_table(&accounts, LockMode::RowExclusive).unwrap();
    session.set_wait(Wait::Never);
    for id in 1..=ROWS {
        assert!(session.lookup(&accounts, key, &[Datum::Int4(id)], &mut found).unwrap());
        let blocks = session.engine().index_block_count(key).unwrap();
        match session.update(&accounts, &mut found, &row(id, &long, 1)) {
            Ok(outcome) => assert!(matches!(outcome, RowOutcome::Done(_)), "{outcome:?}"),
            Err(EngineError::WouldBlock) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        assert_eq!(
            session.engine().index_block_count(key).unwrap(),
            blocks,
            "a leaf was split for {id}"
        );
    }
    assert!(refused > 0 && refused < ROWS, "{refused}");
    session.set_wait(Wait::Allowed);
    session.end_statement();
    session.start_statement().unwrap();
    // The refused updates have changed nothing.
    let (count, sum) = total(&session, &accounts).unwrap();
    assert_eq!(count, ROWS as u64);
    assert_eq!(sum, 100 * i64::from(refused) + i64::from(ROWS - refused));
    session.commit().unwrap();
}
