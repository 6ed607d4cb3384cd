//! All sessions want the same row.

use std::sync::atomic::{AtomicU64, Ordering};

use super::common::fresh_with;
use millpond::{Settings, Value};

const SESSIONS: usize = 64;
const UPDATES: usize = 12;

/// Sixty-four sessions add to one row, by single statements and by transactions that read it before
/// or after. Nothing is lost, no session waits for ever, and none is told of a deadlock.
#[test]
fn what_many_sessions_add_to_one_row_adds_up() {
    let settings = Settings::default()
        .with("shared_buffers", "8MB")
        .and_then(|settings| settings.with("deadlock_timeout", "20ms"))
        .and_then(|settings| settings.with("synchronous_commit", "off"))
        .unwrap();
    let fresh = fresh_with(settings);
    let mut first = fresh.database.connect().unwrap();
    first
        .batch("create table hot (id int primary key, v bigint); insert into hot values (1, 0)")
        .unwrap();
    let expected = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            let (database, expected) = (&fresh.database, &expected);
            scope.spawn(move || {
                let mut connection = database.connect().unwrap();
                let add = "update hot set v = v + $1 where id = 1";
                for number in 0..UPDATES {
                    let delta = (session * UPDATES + number) as i64;
                    match number % 4 {
                        0 | 1 => {
                            assert_eq!(connection.execute(add, &[Value::Int8(delta)]).unwrap(), 1);
                        }
                        2 => {
                            connection.batch("begin").unwrap();
                            connection
                                .query("select v from hot where id = 1 for update", &[])
                                .unwrap();
                            connection.execute(add, &[Value::Int8(delta)]).unwrap();
                            connection.batch("commit").unwrap();
                        }
                        _ => {
                            connection.batch("begin").unwrap();
                            connection.execute(add, &[Value::Int8(delta)]).unwrap();
                            connection.batch("rollback").unwrap();
                            continue;
                        }
                    }
                    expected.fetch_add(delta as u64, Ordering::Relaxed);
                }
            });
        }
    });
    let rows = first.query("select v from hot", &[]).unwrap().rows;
    assert_eq!(rows, [[Value::Int8(expected.into_inner() as i64)]]);
}
