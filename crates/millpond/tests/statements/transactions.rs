//! Transaction blocks, isolation levels, what an error takes back.

use crate::common::{fresh, run, script};

#[test]
fn transactions() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    script(
        &mut c,
        r#"
> create table t (a int primary key)
CREATE TABLE

> begin
BEGIN

> begin
WARNING: there is already a transaction in progress
BEGIN

> insert into t values (1)
INSERT 0 1

> select * from t
a
1
SELECT 1

> rollback
ROLLBACK

> select * from t
a
SELECT 0

> rollback
WARNING: there is no transaction in progress
ROLLBACK

> commit
WARNING: there is no transaction in progress
COMMIT

> start transaction
START TRANSACTION

> insert into t values (2)
INSERT 0 1

> insert into t values (2)
ERROR: duplicate key value violates unique constraint "t_pkey" [23505]
DETAIL: Key (a)=(2) already exists.

> select 1
ERROR: current transaction is aborted, commands ignored until end of transaction block [25P02]

> commit
ROLLBACK

> select * from t
a
SELECT 0

> insert into t values (3); insert into t values (3)
INSERT 0 1
ERROR: duplicate key value violates unique constraint "t_pkey" [23505]
DETAIL: Key (a)=(3) already exists.

> select * from t
a
SELECT 0

> insert into t values (4); begin; insert into t values (5)
INSERT 0 1
BEGIN
INSERT 0 1

> rollback
ROLLBACK

> select * from t
a
SELECT 0

> begin read only
BEGIN

> insert into t values (1)
ERROR: cannot execute INSERT in a read-only transaction [25006]

> end
ROLLBACK

> set transaction read only; insert into t values (1)
SET
ERROR: cannot execute INSERT in a read-only transaction [25006]

> set transaction isolation level repeatable read; show transaction_isolation
SET
transaction_isolation
repeatable read
SHOW

> select 1 as one; set transaction isolation level repeatable read
one
1
SELECT 1
ERROR: SET TRANSACTION ISOLATION LEVEL must be called before any query [25001]

> set transaction read only
WARNING: SET TRANSACTION can only be used in transaction blocks
SET

> begin isolation level repeatable read, deferrable
BEGIN

> show transaction_isolation
transaction_isolation
repeatable read
SHOW

> show transaction_deferrable
transaction_deferrable
on
SHOW

> commit and chain
COMMIT

> show transaction_deferrable
transaction_deferrable
on
SHOW

> show transaction isolation level
transaction_isolation
repeatable read
SHOW

> commit
COMMIT

> begin isolation level serializable
ERROR: isolation level SERIALIZABLE is not supported yet [0A000]
HINT: REPEATABLE READ is the strictest level that there is.

> begin; create table u (x int); insert into u values (1)
BEGIN
CREATE TABLE
INSERT 0 1

> select * from u
x
1
SELECT 1

> rollback
ROLLBACK

> select * from u
ERROR: relation "u" does not exist [42P01] at 15

> vacuum
VACUUM

> vacuum (buffer_usage_limit '256 kB', analyze)
VACUUM

> vacuum (buffer_usage_limit 0)
VACUUM

> analyze (buffer_usage_limit 128)
ANALYZE

> vacuum (buffer_usage_limit 100)
ERROR: BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB [22023]

> analyze (buffer_usage_limit '10 kb')
ERROR: BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB [22023]
HINT: Valid units for this parameter are "B", "kB", "MB", "GB", and "TB". Perhaps you meant "10kB".

> vacuum (buffer_usage_limit)
ERROR: buffer_usage_limit requires a parameter [42601]

> vacuum (full, buffer_usage_limit 256)
ERROR: BUFFER_USAGE_LIMIT cannot be specified for VACUUM FULL [0A000]

> begin; vacuum
BEGIN
ERROR: VACUUM cannot run inside a transaction block [25001]

> rollback
ROLLBACK

> checkpoint
CHECKPOINT
"#,
    );
}

#[test]
fn a_failing_statement_takes_back_everything() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (k int primary key, v int)").unwrap();
    let rows: Vec<String> = (1..=3000).map(|k| format!("({k}, {k})")).collect();
    c.batch(&format!("insert into t values {}", rows.join(", "))).unwrap();
    // The last row divides by zero.
    assert!(run(&mut c, "update t set v = 1 / (3000 - k)").contains("[22012]"));
    assert_eq!(
        run(&mut c, "select count(*), sum(v) from t"),
        "count|sum\n3000|4501500\nSELECT 1\n"
    );
    assert!(
        run(&mut c, &format!("insert into t values {}, (3000, 0)", "(4000, 0)"))
            .contains("[23505]")
    );
    assert_eq!(run(&mut c, "select count(*) from t where k > 3000"), "count\n0\nSELECT 1\n");
    assert_eq!(run(&mut c, "update t set v = v + 1"), "UPDATE 3000\n");
    assert_eq!(run(&mut c, "update t set k = k + 3000 where k <= 10"), "UPDATE 10\n");
    assert_eq!(run(&mut c, "delete from t where k between 11 and 2999"), "DELETE 2989\n");
    assert_eq!(
        run(&mut c, "select count(*), min(k), max(k), sum(v) from t"),
        "count|min|max|sum\n11|3000|3010|3066\nSELECT 1\n"
    );
}

#[test]
fn a_session_that_is_idle_in_a_transaction_for_too_long_is_over() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let handle = c.cancel_handle();
    c.batch("create table t (a int); set idle_in_transaction_session_timeout = '20ms'").unwrap();
    let (sender, told) = std::sync::mpsc::channel();
    struct Tell(std::sync::Mutex<std::sync::mpsc::Sender<()>>);
    impl std::task::Wake for Tell {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.lock().unwrap().send(()).unwrap();
        }
    }
    c.on_end(std::sync::Arc::new(Tell(sender.into())).into());
    c.batch("begin; insert into t values (1)").unwrap();
    told.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    let expected = "FATAL: terminating connection due to idle-in-transaction timeout [25P03]\n";
    assert!(handle.ended().is_some());
    for sql in ["insert into t values (2)", "commit"] {
        assert_eq!(run(&mut c, sql), expected);
    }
    // The transaction goes with the connection.
    drop(c);
    let mut other = fresh.database.connect().unwrap();
    assert_eq!(run(&mut other, "select * from t"), "a\nSELECT 0\n");
}
