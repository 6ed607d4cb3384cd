//! Other sessions change what fragments read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use millpond::{Connection, SqlState, Value};

use super::common::Fresh;
use super::{rows, together, with_tables};

/// What another session does, with the number of its round.
type Step<'a> = dyn Fn(&mut Connection, u64) + Sync + 'a;

/// Runs `act` again and again on other sessions while `read` runs.
fn beside(fresh: &Fresh, others: &[&Step<'_>], read: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for act in others {
            let mut c = fresh.database.connect().unwrap();
            let is_over = &is_over;
            scope.spawn(move || {
                for round in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    act(&mut c, round);
                }
            });
        }
        // Also when it panics.
        let _over = OnDrop(|| is_over.store(true, Ordering::Relaxed));
        read();
    });
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn sums_stay_while_others_transfer() {
    let (fresh, mut c) = with_tables();
    c.batch(
        "create table account (id int primary key, owner int, amount numeric(12, 2), note text); \
         insert into account select i, i % 10, 100, repeat('x', 300) from generate_series(1, 3000) i; \
         create table owner (id int primary key, name text); \
         insert into owner select i, 'n' || i from generate_series(0, 9) i",
    )
    .unwrap();
    c.batch("vacuum account").unwrap();
    c.batch("vacuum owner").unwrap();
    let transfer = |c: &mut Connection, round: u64| {
        let (from, to) = (round * 7919 % 3000 + 1, round * 104_729 % 3000 + 1);
        let moved = format!(
            "begin; update account set amount = amount - 7 where id = {from}; \
             update account set amount = amount + 7, note = note || 'y' where id = {to}; {}",
            if round.is_multiple_of(5) { "rollback" } else { "commit" }
        );
        match c.batch(&moved) {
            Ok(_) => {}
            Err(error) => {
                // Two transfers the other way round.
                assert_eq!(error.sqlstate, SqlState::DEADLOCK_DETECTED, "{error:?}");
                c.batch("rollback").unwrap();
            }
        }
        if round.is_multiple_of(50) {
            c.batch("vacuum account").unwrap();
        }
    };
    together(&mut c);
    let queries = [
        "select count(*), sum(amount) from account where note like 'x%'",
        "select count(*), sum(amount) from account a join owner o on o.id + 0 = a.owner \
            where length(note) > 1",
        "select count(*), sum(a.amount) from account b join account a on a.id = b.id \
            where length(b.note) > 1",
    ];
    let expected = rows(&mut c, queries[0]);
    beside(&fresh, &[&transfer, &transfer], || {
        for level in ["read committed", "repeatable read"] {
            for _ in 0..15 {
                c.batch(&format!("begin isolation level {level}")).unwrap();
                // The transaction's own transfer is part of it.
                let own = c.batch(
                    "update account set amount = amount - 1 where id = 5; \
                     update account set amount = amount + 1 where id = 2995",
                );
                if own.is_ok() {
                    for query in queries {
                        assert_eq!(rows(&mut c, query), expected, "{level}: {query}");
                    }
                }
                c.batch("rollback").unwrap();
            }
        }
    });
}

#[test]
fn definitions_change_beside_fragments() {
    let (fresh, mut c) = with_tables();
    let fill = "insert into changing select i, 'text ' || i % 7, repeat('x', 200) \
        from generate_series(1, 3000) i";
    c.batch(&format!("create table changing (id int, t text, pad text); {fill}")).unwrap();
    let change = |c: &mut Connection, round: u64| {
        let done = match round % 4 {
            0 => c.batch(&format!("begin; truncate changing; {fill}; commit")),
            1 => c.batch("vacuum changing"),
            2 => c.batch(&format!(
                "begin; drop table changing; create table changing (id int, t text, pad text); \
                 {fill}; commit"
            )),
            _ => c.batch("create index on changing (id)"),
        };
        done.unwrap();
    };
    together(&mut c);
    beside(&fresh, &[&change], || {
        for _ in 0..100 {
            let query = "select count(*), sum(id) from changing where t <> 'x'";
            match c.query(query, &[]) {
                Ok(found) => {
                    let Value::Int8(count) = found.rows[0][0] else { panic!("{found:?}") };
                    // TRUNCATE takes rows from snapshots that are older.
                    assert!([0, 3000].contains(&count), "{count} rows");
                }
                Err(error) => assert_eq!(error.sqlstate, SqlState::UNDEFINED_TABLE, "{error:?}"),
            }
        }
    });
    assert_eq!(fresh.database.query_memory_used(), 0);
}
