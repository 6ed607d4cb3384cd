//! What pgbench sends, as it sends it.

mod common;

use common::{fresh, run, run_copy};
use millpond::{Executed, Params, Value, Wait};

const TABLES: &[&str] = &[
    "create table pgbench_history(tid int,bid int,aid    int,delta int,mtime timestamp,filler char(22))",
    "create table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)) with (fillfactor=100)",
    "create table pgbench_accounts(aid    int not null,bid int,abalance int,filler char(84)) with (fillfactor=100)",
    "create table pgbench_branches(bid int not null,bbalance int,filler char(88)) with (fillfactor=100)",
];

fn initialise(connection: &mut millpond::Connection, accounts: i32) {
    let found = run(
        connection,
        "drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers",
    );
    assert!(found.ends_with("DROP TABLE\n"), "{found}");
    for table in TABLES {
        assert_eq!(run(connection, table), "CREATE TABLE\n");
    }
    assert_eq!(run(connection, "begin"), "BEGIN\n");
    assert_eq!(
        run(
            connection,
            "truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers"
        ),
        "TRUNCATE TABLE\n"
    );
    assert_eq!(
        run(connection, "insert into pgbench_branches(bid,bbalance) values(1,0)"),
        "INSERT 0 1\n"
    );
    for tid in 1..=10 {
        let sql = format!("insert into pgbench_tellers(tid,bid,tbalance) values ({tid},1,0)");
        assert_eq!(run(connection, &sql), "INSERT 0 1\n");
    }
    let rows: String = (1..=accounts).map(|aid| format!("{aid}\t1\t0\t\n")).collect();
    // Cut anywhere.
    let (a, b) = rows.split_at(rows.len() / 3);
    assert_eq!(
        run_copy(connection, "copy pgbench_accounts from stdin with (freeze on)", &[a, b]),
        format!("COPY {accounts}\n")
    );
    assert_eq!(run(connection, "commit"), "COMMIT\n");
    for table in ["pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history"] {
        assert_eq!(run(connection, &format!("vacuum analyze {table}")), "VACUUM\n");
    }
    for (table, key) in
        [("pgbench_branches", "bid"), ("pgbench_tellers", "tid"), ("pgbench_accounts", "aid")]
    {
        let sql = format!("alter table {table} add primary key ({key})");
        assert_eq!(run(connection, &sql), "ALTER TABLE\n");
    }
}

#[test]
fn initialisation_and_the_default_script() {
    let fresh = fresh();
    let mut connection = fresh.database.connect().unwrap();
    initialise(&mut connection, 1000);
    for i in 1..=50 {
        let (aid, tid, delta) = (i * 17 % 1000 + 1, i % 10 + 1, i * 37 % 101 - 50);
        assert_eq!(run(&mut connection, "BEGIN;"), "BEGIN\n");
        for (sql, expected) in [
            (
                format!(
                    "UPDATE pgbench_accounts SET abalance = abalance + {delta} WHERE aid = {aid};"
                ),
                "UPDATE 1\n",
            ),
            (
                format!(
                    "UPDATE pgbench_tellers SET tbalance = tbalance + {delta} WHERE tid = {tid};"
                ),
                "UPDATE 1\n",
            ),
            (
                format!("UPDATE pgbench_branches SET bbalance = bbalance + {delta} WHERE bid = 1;"),
                "UPDATE 1\n",
            ),
            (
                format!(
                    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ({tid}, 1, {aid}, {delta}, CURRENT_TIMESTAMP);"
                ),
                "INSERT 0 1\n",
            ),
            ("END;".to_owned(), "COMMIT\n"),
        ] {
            assert_eq!(run(&mut connection, &sql), expected, "{sql}");
        }
        let found = run(
            &mut connection,
            &format!("SELECT abalance FROM pgbench_accounts WHERE aid = {aid};"),
        );
        assert!(found.starts_with("abalance\n") && found.ends_with("\nSELECT 1\n"), "{found}");
    }
    let sums = |connection: &mut millpond::Connection, sql: &str| {
        connection.query(sql, &[]).unwrap().rows[0][0].clone()
    };
    let accounts = sums(&mut connection, "select sum(abalance) from pgbench_accounts");
    assert_eq!(accounts, sums(&mut connection, "select sum(delta) from pgbench_history"));
    assert_eq!(accounts, sums(&mut connection, "select sum(tbalance) from pgbench_tellers"));
    assert_eq!(accounts, sums(&mut connection, "select sum(bbalance) from pgbench_branches"));
    assert_eq!(sums(&mut connection, "select count(*) from pgbench_history"), Value::Int8(50));
}

#[test]
fn prepared_selects_never_wait() {
    let fresh = fresh();
    let mut connection = fresh.database.connect().unwrap();
    initialise(&mut connection, 500);
    let prepared = connection
        .prepare("SELECT abalance FROM pgbench_accounts WHERE aid = $1;", &[None])
        .unwrap();
    assert_eq!(prepared.params(), [millpond::DataType::Int4]);
    let mut sink = common::Transcript::default();
    connection.set_wait(Wait::Never);
    for aid in 1..=500 {
        let mut portal = connection.bind(&prepared, Params::from_iter([Value::Int4(aid)])).unwrap();
        let executed = connection.execute_portal(&mut portal, 0, &mut sink).unwrap();
        assert_eq!(executed, Executed::Complete, "aid {aid}");
        assert_eq!(connection.sync(&mut sink).unwrap(), Executed::Complete);
    }
    assert_eq!(sink.text.matches("SELECT 1\n").count(), 500);
}
