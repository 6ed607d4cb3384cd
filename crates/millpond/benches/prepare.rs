//! Times what a text takes that no cache knows: parsing, analysis and planning.
//!
//! `cargo bench -p millpond --no-default-features --bench prepare`

use std::time::Instant;

use millpond::{Connection, Database, Result, Settings};

const ROUNDS: u32 = 40;
const TEXTS: u32 = 500;
/// In the largest join.
const TABLES: u32 = 10;

fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("millpond-prepare-{}", std::process::id()));
    let settings = Settings::default().with("shared_buffers", "16MB")?;
    let database = Database::open(&dir, settings)?;
    let mut connection = database.connect()?;
    connection.batch(
        "create table accounts (aid int primary key, bid int, abalance int, filler char(84));
         create table branches (bid int primary key, bbalance int, filler char(88))",
    )?;
    for table in 0..TABLES {
        connection.batch(&format!("create table j{table} (id int primary key, r int, v text)"))?;
    }
    let mut number = 0;
    time(&mut connection, "select by key", &mut number, &|number| {
        format!("SELECT abalance FROM accounts a{number} WHERE aid = $1")
    })?;
    time(&mut connection, "two tables joined", &mut number, &|number| {
        format!(
            "SELECT a.aid, a.abalance, b.bbalance FROM accounts a JOIN branches b{number} \
             ON a.bid = b{number}.bid WHERE a.aid = 5001 AND b{number}.bid > 0"
        )
        .replace("b.bbalance", &format!("b{number}.bbalance"))
    })?;
    time(&mut connection, "ten tables joined", &mut number, &|number| {
        let joined = |table: u32| format!("JOIN j{table} ON j{table}.id = j{}.r", table - 1);
        let joins: Vec<String> = (1..TABLES).map(joined).collect();
        format!("SELECT j0.v AS v{number} FROM j0 {} WHERE j0.v = 'a'", joins.join(" "))
    })?;
    time(&mut connection, "insert of 100 rows", &mut number, &|number| {
        let rows: Vec<String> = (0..100).map(|row| format!("({number}, {row}, 3)")).collect();
        format!("INSERT INTO accounts (aid, bid, abalance) VALUES {}", rows.join(", "))
    })?;
    drop(connection);
    database.shutdown()?;
    drop(database);
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}

/// Prepares texts that differ, and shows the best round.
fn time(
    connection: &mut Connection,
    name: &str,
    number: &mut u32,
    text: &dyn Fn(u32) -> String,
) -> Result<()> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let texts: Vec<String> = (0..TEXTS)
            .map(|_| {
                *number += 1;
                text(*number)
            })
            .collect();
        let start = Instant::now();
        for text in &texts {
            connection.prepare(text, &[])?;
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(TEXTS));
    }
    println!("{name}: {:.1} us", best * 1e6);
    Ok(())
}
