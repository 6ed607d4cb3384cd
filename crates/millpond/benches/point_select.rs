//! Times the hot path of SQL: warm point selects and updates by key, prepared and as text.
//!
//! `cargo bench -p millpond --no-default-features --bench point_select`

use std::time::Instant;

use millpond::{
    ColumnDesc, CommandTag, Connection, Database, Datum, Executed, Params, Result, RowSink,
    Settings, Value, Wait,
};

/// Counts rows, and adds up what they hold, so that nothing is optimised away.
#[derive(Default)]
struct Count {
    rows: u64,
    sum: i64,
}

impl RowSink for Count {
    fn columns(&mut self, _columns: &[ColumnDesc]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        self.rows += 1;
        self.sum += row.first().and_then(Datum::as_i64).unwrap_or(0);
        Ok(())
    }

    fn complete(&mut self, _tag: CommandTag) -> Result<()> {
        Ok(())
    }

    fn discard(&mut self) {}
}

const ROWS: i32 = 100_000;

fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("millpond-point-select-{}", std::process::id()));
    let settings = Settings::default().with("synchronous_commit", "on")?;
    let database = Database::open(&dir, settings)?;
    let mut connection = database.connect()?;
    connection.batch(
        "create table accounts (aid int not null, bid int, abalance int, filler char(84))",
    )?;
    load(&mut connection)?;
    connection.batch("alter table accounts add primary key (aid); vacuum analyze accounts")?;
    connection.execute("set synchronous_commit = off", &[])?;
    connection.set_wait(Wait::Never);
    for _ in 0..3 {
        prepared(&mut connection)?;
        texts(&mut connection, "select abalance from accounts where aid = ", "")?;
        texts(&mut connection, "update accounts set abalance = abalance + 7 where aid = ", "")?;
    }
    connection.set_wait(Wait::Allowed);
    drop(connection);
    database.shutdown()?;
    drop(database);
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}

fn load(connection: &mut Connection) -> Result<()> {
    let mut sink = Count::default();
    let executed =
        connection.simple_query("copy accounts from stdin with (freeze on)", &mut sink)?;
    assert!(matches!(executed, Executed::CopyIn(_)));
    let start = Instant::now();
    let mut rows = String::new();
    for aid in 1..=ROWS {
        rows.push_str(&format!("{aid}\t1\t0\t\n"));
        if rows.len() > 60_000 {
            connection.copy_data(rows.as_bytes())?;
            rows.clear();
        }
    }
    connection.copy_data(rows.as_bytes())?;
    connection.copy_done(&mut sink)?;
    println!("copy: {:.0} rows/s", f64::from(ROWS) / start.elapsed().as_secs_f64());
    Ok(())
}

/// Scatters keys over the table.
fn key(i: u64) -> i32 {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as i32 % ROWS + 1
}

fn prepared(connection: &mut Connection) -> Result<()> {
    let statement = connection.prepare("select abalance from accounts where aid = $1", &[])?;
    let mut sink = Count::default();
    let count = 300_000u64;
    let start = Instant::now();
    for i in 0..count {
        let mut portal = connection.bind(&statement, Params::from_iter([Value::Int4(key(i))]))?;
        assert_eq!(connection.execute_portal(&mut portal, 0, &mut sink)?, Executed::Complete);
        assert_eq!(connection.sync(&mut sink)?, Executed::Complete);
    }
    report("prepared select", count, start, &sink);
    Ok(())
}

fn texts(connection: &mut Connection, before: &str, after: &str) -> Result<()> {
    let mut sink = Count::default();
    let count = 200_000u64;
    let mut sql = String::new();
    let start = Instant::now();
    let mut blocked = 0;
    for i in 0..count {
        use std::fmt::Write;
        sql.clear();
        let _ = write!(sql, "{before}{}{after}", key(i));
        let mut executed = connection.simple_query(&sql, &mut sink)?;
        while executed != Executed::Complete {
            blocked += 1;
            connection.set_wait(Wait::Allowed);
            executed = match executed {
                Executed::CommitPending(_) => connection.finish_commit(&mut sink)?,
                _ => connection.resume(&mut sink)?,
            };
            connection.set_wait(Wait::Never);
        }
    }
    report(before, count, start, &sink);
    if blocked > 0 {
        println!("    of which {blocked} had to wait");
    }
    Ok(())
}

fn report(what: &str, count: u64, start: Instant, sink: &Count) {
    let nanos = start.elapsed().as_nanos() as f64 / count as f64;
    println!("{what}: {nanos:.0} ns each ({} rows, sum {})", sink.rows, sink.sum);
}
