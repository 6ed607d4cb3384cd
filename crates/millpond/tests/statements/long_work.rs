//! Expressions that take long: an event loop has no time for them, and they listen to a cancel.
#![allow(clippy::unwrap_used, reason = "tests")]

use millpond::{Executed, Wait};

use crate::common::{Transcript, fresh, run};

#[test]
fn an_event_loop_does_not_compute_for_long() {
    let fresh = fresh();
    let mut connection = fresh.database.connect().unwrap();
    for sql in [
        "select length(factorial(9000)::text)",
        "select length((7::numeric ^ 30000)::text)",
        "select length((7::numeric ^ 3000.5)::text)",
        "select repeat('ab', 20000) ~ '(a|b)*c'",
        "select regexp_count(repeat('ab', 20000), '(a|b)*c')",
        // Each row takes long enough that few are too many.
        "select max(length(repeat('ab', 10000000 + n))) from generate_series(1, 60) n",
    ] {
        connection.set_wait(Wait::Never);
        let mut sink = Transcript::default();
        assert_eq!(connection.simple_query(sql, &mut sink).unwrap(), Executed::WouldBlock, "{sql}");
        assert_eq!(sink.text, "", "{sql}");
        connection.set_wait(Wait::Allowed);
        assert_eq!(connection.resume(&mut sink).unwrap(), Executed::Complete, "{sql}");
    }
    for sql in [
        "select length(factorial(900)::text)",
        "select length((7::numeric ^ 300)::text)",
        "select 'abc' ~ '(a|b)*c'",
        "select regexp_replace(repeat('ab', 100), '(a|b)', 'c', 'g')",
    ] {
        connection.set_wait(Wait::Never);
        let executed = connection.simple_query(sql, &mut Transcript::default()).unwrap();
        assert_eq!(executed, Executed::Complete, "{sql}");
    }
}

/// A statement that turned out to be long after a row is run again, and changes each row once.
#[test]
fn a_change_that_computes_for_long_happens_once() {
    let fresh = fresh();
    let mut connection = fresh.database.connect().unwrap();
    let long = "length(factorial(9000)::text)";
    for (sql, answer) in [
        ("create table t (k int primary key, n int)", "CREATE TABLE\n"),
        (&format!("insert into t values (1, 1), (2, {long}), (3, 3)"), "INSERT 0 3\n"),
        (&format!("update t set n = n + case k when 2 then {long} else 1 end"), "UPDATE 3\n"),
        ("select k, n from t order by k", "k|n\n1|2\n2|63364\n3|4\nSELECT 3\n"),
        (&format!("delete from t where k = 1 or n > 2 * {long} - 1"), "DELETE 2\n"),
        (
            &format!("insert into t values (9, 9) returning n + {long} - {long}"),
            "?column?\n9\nINSERT 0 1\n",
        ),
        (
            &format!("update t set n = n + 1 where k = 9 returning n + {long} - {long}"),
            "?column?\n10\nUPDATE 1\n",
        ),
        (
            &format!(
                "update t set n = n + 1 from (values (9)) v (k) where t.k = v.k returning n + {long} - {long}"
            ),
            "?column?\n11\nUPDATE 1\n",
        ),
        ("select n from t where k = 9", "n\n11\nSELECT 1\n"),
    ] {
        assert_eq!(run(&mut connection, sql), answer, "{sql}");
    }
}
