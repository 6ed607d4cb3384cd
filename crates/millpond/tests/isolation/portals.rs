//! Portals that are half fetched, and definitions that change meanwhile.

use millpond::{Connection, Executed, Params, Portal};

use super::definitions::{Scene, scene};
use super::ground::Keep;

/// A portal over two rows that has given `rows` of them, or all if 0.
fn fetched(reader: &mut Connection, sql: &str, rows: u64) -> (Portal, Keep, Executed) {
    let prepared = reader.prepare(sql, &[]).unwrap();
    let mut portal = reader.bind(&prepared, Params::new()).unwrap();
    let mut keep = Keep::default();
    keep.described(prepared.columns().map(|columns| &**columns));
    let executed = reader.execute_portal(&mut portal, rows, &mut keep).unwrap();
    (portal, keep, executed)
}

#[test]
fn a_portal_half_fetched_keeps_its_table() {
    let Scene { mut reader, mut other, fresh } = scene();
    for change in ["truncate t", "drop table t", "create index on t (v)"] {
        reader.batch("begin").unwrap();
        let (mut portal, mut keep, executed) = fetched(&mut reader, "select * from t", 1);
        assert_eq!(executed, Executed::Suspended);
        other.batch("begin").unwrap();
        // Only a change of what the portal reads has to wait.
        let waits = !change.starts_with("create");
        let waiting = std::thread::spawn(move || {
            other.batch(change).unwrap();
            other
        });
        let locks = fresh.database.engine().locks();
        while locks.list().iter().all(|lock| lock.granted) && !waiting.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!(!waiting.is_finished(), waits, "{change}");
        assert_eq!(reader.execute_portal(&mut portal, 0, &mut keep).unwrap(), Executed::Complete);
        assert_eq!(keep.told(Ok(())), "(1, 10) (2, 20)", "{change}");
        reader.batch("commit").unwrap();
        other = waiting.join().unwrap();
        other.batch("rollback").unwrap();
    }
}

/// A session's own portal can't be waited for.
#[test]
fn a_portal_half_fetched_keeps_its_table_from_its_own_session() {
    let Scene { mut reader, fresh: _fresh, .. } = scene();
    reader.batch("create table aside (a int)").unwrap();
    for (change, refused) in [
        ("drop table aside, t", "DROP TABLE"),
        ("truncate aside, t", "TRUNCATE"),
        ("create index on t (v)", "CREATE INDEX"),
        ("alter table t add unique (v)", "ALTER TABLE"),
    ] {
        // PostgreSQL, too, minds a portal that has given all its rows; but not one that is closed.
        for (rows, closes) in [(1, false), (10, false), (0, false), (1, true), (0, true)] {
            reader.batch("begin").unwrap();
            let (portal, ..) = fetched(&mut reader, "select * from t", rows);
            if closes {
                drop(portal);
                reader.batch(change).unwrap();
                reader.batch("rollback").unwrap();
                continue;
            }
            let error = reader.batch(change).unwrap_err();
            assert_eq!(error.sqlstate.as_str(), "55006", "{error}");
            assert_eq!(
                error.message,
                format!(
                    "cannot {refused} \"t\" because it is being used by active queries in this session"
                )
            );
            reader.batch("rollback").unwrap();
            // A portal does not outlive its transaction, even if the program keeps it.
            reader.batch(&format!("begin; {change}; rollback")).unwrap();
            drop(portal);
        }
    }
}

/// An index, as long as the portal reads through it.
#[test]
fn a_portal_keeps_the_index_that_it_reads_from_its_own_session() {
    let Scene { mut reader, fresh: _fresh, .. } = scene();
    reader.batch("create index by_v on t (v); create index aside on t (id, v)").unwrap();
    for rows in [0, 1] {
        reader.batch("begin").unwrap();
        let (portal, ..) = fetched(&mut reader, "select id from t where v = 10", rows);
        let error = reader.batch("drop index by_v, aside").unwrap_err();
        assert_eq!(error.sqlstate.as_str(), "55006", "{error}");
        let refused =
            "cannot DROP INDEX \"by_v\" because it is being used by active queries in this session";
        assert_eq!(error.message, refused);
        reader.batch("rollback").unwrap();
        reader.batch("begin; drop index by_v, aside; rollback").unwrap();
        drop(portal);
    }
}
