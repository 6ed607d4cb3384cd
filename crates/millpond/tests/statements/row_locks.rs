//! `SELECT ... FOR`: strengths, sharing, NOWAIT and SKIP LOCKED, upgrades, what becomes of rows
//! meanwhile.

#![allow(clippy::unwrap_used)]

use millpond::{Connection, Executed, Wait};

use crate::common::{Fresh, Transcript, fresh, fresh_with, run};

const STRENGTHS: [&str; 4] = ["key share", "share", "no key update", "update"];

fn table(fresh: &Fresh) -> Connection {
    let mut c = fresh.database.connect().unwrap();
    c.batch(
        "create table t (k int primary key, v int, u int unique);
         insert into t values (1, 0, 1), (2, 0, 2), (3, 0, 3), (4, 0, 4)",
    )
    .unwrap();
    c
}

/// Runs a statement in another thread, and returns when it waits for a lock (or is over).
fn waiting(
    fresh: &Fresh,
    mut c: Connection,
    sql: &'static str,
) -> std::thread::JoinHandle<(Connection, String)> {
    let locks = fresh.database.engine().locks();
    let before = locks.list().iter().filter(|lock| !lock.granted).count();
    let thread = std::thread::spawn(move || {
        let text = run(&mut c, sql);
        (c, text)
    });
    while locks.list().iter().filter(|lock| !lock.granted).count() <= before
        && !thread.is_finished()
    {
        std::thread::yield_now();
    }
    thread
}

#[test]
fn strengths_exclude_each_other_as_in_postgresql() {
    let fresh = fresh();
    let (mut a, mut b) = (table(&fresh), fresh.database.connect().unwrap());
    for (held, held_name) in STRENGTHS.iter().enumerate() {
        for (wanted, wanted_name) in STRENGTHS.iter().enumerate() {
            run(&mut a, &format!("begin; select v from t where k = 1 for {held_name}"));
            let got = run(&mut b, &format!("select v from t where k = 1 for {wanted_name} nowait"));
            // From the table in PostgreSQL's documentation.
            let conflicts = [
                [false, false, false, true],
                [false, false, true, true],
                [false, true, true, true],
                [true, true, true, true],
            ];
            assert_eq!(
                got.contains("55P03"),
                conflicts[held][wanted],
                "{held_name} then {wanted_name}: {got}"
            );
            a.batch("rollback").unwrap();
        }
    }
    let error = {
        a.batch("begin; select * from t where k = 1 for share").unwrap();
        b.execute("select * from t where k = 1 for update nowait", &[]).unwrap_err()
    };
    assert_eq!(error.message, "could not obtain lock on row in relation \"t\"");
    // Updates lock, too: more strongly if they change a unique key.
    let mut check = |change: &str, key_share_waits: bool| {
        a.batch(&format!("rollback; begin; {change}")).unwrap();
        let got = run(&mut b, "select v from t where k = 1 for key share nowait");
        assert_eq!(got.contains("55P03"), key_share_waits, "{change}: {got}");
        assert!(run(&mut b, "select v from t where k = 1 for share nowait").contains("55P03"));
    };
    check("update t set v = 1 where k = 1", false);
    check("update t set u = 10 where k = 1", true);
    check("update t set u = 1, v = 5 where k = 1", false);
    check("delete from t where k = 1", true);
    check("select * from t where k = 1 for update; update t set v = 1 where k = 1", true);
}

#[test]
fn an_update_waits_for_all_shared_locks_of_a_row() {
    let fresh = fresh();
    let mut a = table(&fresh);
    let mut b = fresh.database.connect().unwrap();
    let c = fresh.database.connect().unwrap();
    for holder in [&mut a, &mut b] {
        holder.batch("begin; select * from t where k = 1 for share").unwrap();
    }
    let update = waiting(&fresh, c, "update t set v = v + 1 where k = 1");
    a.batch("commit").unwrap();
    assert!(!update.is_finished());
    let got = run(&mut a, "select v from t where k = 1 for no key update nowait");
    assert!(got.contains("55P03"), "{got}");
    b.batch("commit").unwrap();
    let (mut c, text) = update.join().unwrap();
    assert_eq!(text, "UPDATE 1\n");
    assert_eq!(run(&mut c, "select v from t where k = 1 for update"), "v\n1\nSELECT 1\n");
}

#[test]
fn key_share_goes_with_updates_of_other_columns() {
    let fresh = fresh();
    let mut a = table(&fresh);
    let mut b = fresh.database.connect().unwrap();
    let mut c = fresh.database.connect().unwrap();
    // The lock first, the update after it, and the other way round; both times it holds the new
    // version.
    for (update_first, end) in
        [(true, "commit"), (false, "commit"), (true, "rollback"), (false, "rollback")]
    {
        let steps = [
            "begin; update t set v = v + 1 where k = 1",
            "begin; select * from t where k = 1 for key share",
        ];
        if update_first {
            a.batch(steps[0]).unwrap();
            b.batch(steps[1]).unwrap();
        } else {
            b.batch(steps[1]).unwrap();
            a.batch(steps[0]).unwrap();
        }
        a.batch(end).unwrap();
        for change in ["delete from t where k = 1", "update t set u = 9 where k = 1"] {
            c.batch("set lock_timeout = '20ms'").unwrap();
            let got = run(&mut c, change);
            assert!(got.contains("55P03"), "{change} {update_first} {end}: {got}");
        }
        assert_eq!(run(&mut c, "update t set v = v + 1 where k = 1"), "UPDATE 1\n");
        b.batch("commit").unwrap();
        assert_eq!(run(&mut c, "update t set u = 1 where k = 1"), "UPDATE 1\n");
    }
}

#[test]
fn upgrades_overtake_the_queue_and_two_of_them_are_a_deadlock() {
    let settings = millpond::Settings::default()
        .with("shared_buffers", "8MB")
        .and_then(|settings| settings.with("deadlock_timeout", "20ms"))
        .unwrap();
    let fresh = fresh_with(settings);
    let mut a = table(&fresh);
    let (mut b, c) = (fresh.database.connect().unwrap(), fresh.database.connect().unwrap());
    // A sharer may upgrade although another session waits for it.
    a.batch("begin; select * from t where k = 1 for share").unwrap();
    b.batch("begin; select * from t where k = 1 for key share").unwrap();
    let third = waiting(&fresh, c, "update t set v = v + 1 where k = 1");
    assert_eq!(run(&mut a, "update t set v = v + 10 where k = 1"), "UPDATE 1\n");
    assert_eq!(run(&mut a, "commit"), "COMMIT\n");
    let (c, text) = third.join().unwrap();
    assert_eq!(text, "UPDATE 1\n");
    b.batch("commit").unwrap();
    drop(c);
    assert_eq!(run(&mut a, "select v from t where k = 1"), "v\n11\nSELECT 1\n");
    // Two cannot.
    for c in [&mut a, &mut b] {
        c.batch("begin; select * from t where k = 1 for share").unwrap();
    }
    let other = waiting(&fresh, b, "update t set v = 2 where k = 1");
    let mine = run(&mut a, "update t set v = 1 where k = 1");
    a.batch("rollback").unwrap();
    let (mut b, theirs) = other.join().unwrap();
    b.batch("rollback").unwrap();
    assert_eq!(
        [&mine, &theirs].iter().filter(|text| text.contains("40P01")).count(),
        1,
        "{mine} {theirs}"
    );
}

#[test]
fn rows_that_would_have_to_be_waited_for_are_skipped() {
    let fresh = fresh();
    let mut a = table(&fresh);
    let mut b = fresh.database.connect().unwrap();
    let mut c = fresh.database.connect().unwrap();
    let take = "select k from t where v = 0 order by k for update skip locked limit 1";
    a.batch("begin").unwrap();
    assert_eq!(run(&mut a, take), "k\n1\nSELECT 1\n");
    b.batch("begin").unwrap();
    assert_eq!(run(&mut b, take), "k\n2\nSELECT 1\n");
    assert_eq!(run(&mut a, take), "k\n1\nSELECT 1\n");
    assert_eq!(run(&mut c, "select k from t for share skip locked"), "k\n3\n4\nSELECT 2\n");
    // In an order that has to be made, too: no more is locked than is returned.
    let last = "select k from t order by v, k desc limit 1 for update skip locked";
    assert_eq!(run(&mut b, last), "k\n4\nSELECT 1\n");
    assert_eq!(run(&mut c, last), "k\n3\nSELECT 1\n");
    assert_eq!(run(&mut c, "select k from t where k = 3 for update nowait"), "k\n3\nSELECT 1\n");
    // What is offset is locked, as in PostgreSQL.
    a.batch("rollback").unwrap();
    assert_eq!(
        run(&mut a, "begin; select k from t order by k limit 1 offset 1 for update skip locked"),
        "BEGIN\nk\n3\nSELECT 1\n"
    );
    assert!(run(&mut c, "select k from t where k = 1 for update nowait").contains("55P03"));
    a.batch("update t set v = 1 where k = 1; commit").unwrap();
    assert_eq!(
        run(&mut c, "select k from t where v = 0 for update skip locked"),
        "k\n3\nSELECT 1\n"
    );
    b.batch("rollback").unwrap();
    // Where nothing may be waited for, the answer is the same.
    a.batch("begin; select * from t where k = 1 for update").unwrap();
    c.set_wait(Wait::Never);
    assert_eq!(run(&mut c, "select k from t where k = 1 for update skip locked"), "k\nSELECT 0\n");
    assert!(run(&mut c, "select k from t where k = 1 for update nowait").contains("55P03"));
}

/// A statement that is repeated where it may wait, because it turned out to be long, returns all
/// rows that it has locked.
#[test]
fn what_a_repeated_statement_has_locked_is_returned() {
    let fresh = fresh();
    let (mut a, mut b) = (table(&fresh), fresh.database.connect().unwrap());
    let jobs: Vec<_> = (10..4000).map(|k| format!("({k}, {})", k != 10 && k != 3999)).collect();
    a.batch("create table jobs (k int primary key, done bool)").unwrap();
    a.batch(&format!("insert into jobs values {}", jobs.join(", "))).unwrap();
    b.batch("set lock_timeout = '1s'").unwrap();
    for (how, returned) in [
        ("limit 2 for update skip locked", "k\n1\n2\nSELECT 2\n"),
        ("order by k limit 2 for share", "k\n1\n2\nSELECT 2\n"),
        ("for key share", "k\n1\n2\n3999\nSELECT 3\n"),
    ] {
        a.batch("begin").unwrap();
        a.set_wait(Wait::Never);
        let mut sink = Transcript::default();
        let sql = format!("select k from jobs where not done and k > 0 {how}");
        assert_eq!(a.simple_query(&sql, &mut sink).unwrap(), Executed::WouldBlock, "{how}");
        // What came first is no longer asked for, and what comes first now was not there.
        b.batch("update jobs set done = true where k = 10").unwrap();
        b.batch("insert into jobs values (1, false), (2, false)").unwrap();
        a.set_wait(Wait::Allowed);
        assert_eq!(a.resume(&mut sink).unwrap(), Executed::Complete, "{how}");
        assert_eq!(sink.text, returned, "{how}");
        let free = run(&mut b, "select k from jobs where k = 10 for update nowait");
        assert_eq!(free, "k\n10\nSELECT 1\n", "{how}");
        a.batch("rollback").unwrap();
        b.batch("delete from jobs where k < 3; update jobs set done = false where k = 10").unwrap();
    }
    // One row to be locked is the last thing done: that needs no second attempt.
    a.set_wait(Wait::Never);
    let mut sink = Transcript::default();
    let sql = "select k from jobs where not done and k > 0 limit 1 for update skip locked";
    assert_eq!(a.simple_query(&format!("begin; {sql}"), &mut sink).unwrap(), Executed::Complete);
    assert_eq!(sink.text, "BEGIN\nk\n10\nSELECT 1\n");
}

#[test]
fn rows_are_looked_at_again_after_waiting() {
    let fresh = fresh();
    let mut a = table(&fresh);
    let b = fresh.database.connect().unwrap();
    a.batch("begin; update t set v = 7 where k = 1; update t set v = 8 where k = 2").unwrap();
    let lock = waiting(&fresh, b, "select k, v from t where v < 8 and k < 3 for share");
    a.batch("commit").unwrap();
    let (mut b, text) = lock.join().unwrap();
    assert_eq!(text, "k|v\n1|7\nSELECT 1\n");
    // REPEATABLE READ does not see what has become of the row.
    b.batch("begin isolation level repeatable read; select * from t where k = 4").unwrap();
    a.batch("update t set v = 9 where k = 3; delete from t where k = 4").unwrap();
    let got = run(&mut b, "select k from t where k = 3 for share");
    assert!(got.contains("[40001]") && got.contains("concurrent update"), "{got}");
    b.batch("rollback; begin isolation level repeatable read; select * from t where k = 3")
        .unwrap();
    a.batch("update t set v = 10 where k = 3").unwrap();
    // Except that a key is read as it was, for it is the same.
    assert_eq!(run(&mut b, "select v from t where k = 3 for key share"), "v\n9\nSELECT 1\n");
    a.batch("set lock_timeout = '20ms'").unwrap();
    assert!(run(&mut a, "delete from t where k = 3").contains("55P03"));
    assert_eq!(run(&mut a, "update t set v = 11 where k = 3"), "UPDATE 1\n");
    b.batch("rollback").unwrap();
}

#[test]
fn clauses() {
    let fresh = fresh();
    let mut a = table(&fresh);
    let mut b = fresh.database.connect().unwrap();
    for clause in [
        "for update of t",
        "for no key update of t nowait",
        "for key share of t skip locked",
        "FOR  NO /* key */ KEY UPDATE",
        "for share for update nowait",
        "for key share limit 1",
        "for no key update of t limit 1 offset 0",
        "limit 1 for update",
        "for update fetch first 1 row only",
    ] {
        let got = run(&mut a, &format!("select v from t where k = 1 {clause}"));
        assert_eq!(got, "v\n0\nSELECT 1\n", "{clause}");
    }
    // The strongest counts, and the least patient.
    a.batch("begin; select v from t where k = 1 for key share for no key update").unwrap();
    let got = run(&mut b, "select v from t where k = 1 for share nowait for key share");
    assert!(got.contains("55P03"), "{got}");
    a.batch("rollback").unwrap();
    for (sql, state, message) in [
        (
            "select v from t for update of s",
            "42P01",
            "relation \"s\" in FOR UPDATE clause not found in FROM clause",
        ),
        (
            "select v from t for key share of s",
            "42P01",
            "relation \"s\" in FOR KEY SHARE clause not found in FROM clause",
        ),
        (
            "select v from t for share of public.t",
            "42601",
            "FOR SHARE must specify unqualified relation names",
        ),
        (
            "select count(*) from t for no key update",
            "0A000",
            "FOR NO KEY UPDATE is not allowed with aggregate functions",
        ),
        ("select v from missing for update", "42P01", "relation \"missing\" does not exist"),
        ("select v from t for no update", "42601", "syntax error"),
        ("select v from t for key update", "42601", "syntax error"),
    ] {
        let got = run(&mut a, sql);
        assert!(got.contains(state) && got.contains(message), "{sql}: {got}");
    }
    let got = run(&mut a, "begin read only; select v from t where k = 1 for key share");
    assert!(got.contains("[25006]") && got.contains("SELECT FOR KEY SHARE"), "{got}");
}
