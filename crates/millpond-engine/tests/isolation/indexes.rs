//! Indexes that are newer than a snapshot.

use millpond_engine::table::{Direction, RowBuf, TableError};
use millpond_engine::types::Datum;
use millpond_engine::{EngineError, EngineResult, Session};

use super::common::*;
use super::{Bank, next, start};

fn is_too_new<T>(result: &EngineResult<T>) -> bool {
    matches!(result, Err(EngineError::Table(TableError::IndexTooNew(_))))
}

/// The ids that the newest index of the accounts returns for a key.
fn ids_of(session: &Session, key: Datum<'_>) -> EngineResult<Vec<i64>> {
    let accounts = table(session, "accounts");
    ids_by(session, &accounts, accounts.indexes.last().unwrap(), &[key], Direction::Forward)
}

#[test]
fn index_is_not_used_by_snapshots_that_see_rows_its_creator_changed() {
    let bank = Bank::new(3);
    let accounts = &bank.accounts;
    let [mut maker, mut old, mut new] = [(); 3].map(|()| bank.session());
    let of_balance = |session: &Session, balance| ids_of(session, Datum::Int8(balance));
    start(&mut old, RR);
    assert_eq!(balance(&old, accounts, 1).unwrap(), Some(100));
    old.commit().unwrap();
    start(&mut maker, RC);
    add(&maker, accounts, 1, 50).unwrap();
    next(&mut maker);
    // This snapshot is older than the commit. The locks of the old transaction do not conflict.
    start(&mut old, RR);
    maker.ddl().create_index(index(accounts.oid, &[2])).unwrap();
    next(&mut maker);
    assert_eq!(of_balance(&maker, 150).unwrap(), [1]);
    maker.commit().unwrap();
    assert!(is_too_new(&of_balance(&old, 100)));
    old.abort();
    start(&mut new, RR);
    assert_eq!(of_balance(&new, 100).unwrap(), [2, 3]);
    assert_eq!(of_balance(&new, 150).unwrap(), [1]);
    new.commit().unwrap();
}

#[test]
fn old_snapshot_does_not_use_an_index_that_lacks_its_rows() {
    let bank = Bank::new(5);
    let accounts = &bank.accounts;
    let [mut session, mut old, mut new] = [(); 3].map(|()| bank.session());
    start(&mut old, RR);
    assert_eq!(balance(&old, accounts, 1).unwrap(), Some(100));
    let rename = |session: &mut Session| {
        // Without a lock: the definition is an older one.
        let (mut found, key) = (RowBuf::new(), accounts.primary_key().unwrap());
        assert!(session.lookup(accounts, key, &[Datum::Int4(1)], &mut found)?);
        session.update(accounts, &mut found, &row(1, "renamed", 100))
    };
    let of_owner = |session: &Session, owner| ids_of(session, Datum::Text(owner));
    // First with a change before the transaction that makes the index, then with a change in it.
    for own_change in [false, true] {
        if !own_change {
            run(&mut session, rename).unwrap();
        }
        start(&mut session, RC);
        if own_change {
            rename(&mut session).unwrap();
        }
        let index = session.ddl().create_index(index(accounts.oid, &[1])).unwrap();
        next(&mut session);
        assert_eq!(of_owner(&session, "renamed").unwrap(), [1]);
        assert_eq!(of_owner(&session, "somebody").unwrap(), [2, 3, 4, 5]);
        session.commit().unwrap();
        assert!(is_too_new(&of_owner(&old, "renamed")));
        let made = table(&old, "accounts");
        assert!(!old.is_usable(made.indexes.last().unwrap()).unwrap());
        assert!(session.is_usable(made.indexes.last().unwrap()).unwrap());
        start(&mut new, RR);
        assert_eq!(of_owner(&new, "renamed").unwrap(), [1]);
        new.abort();
        old.abort();
        assert_whole(&bank.engine);
        run(&mut session, |s| s.ddl().drop_index(index.oid, false)).unwrap();
        start(&mut old, RR);
        assert_eq!(balance(&old, &table(&old, "accounts"), 1).unwrap(), Some(100));
    }
}
