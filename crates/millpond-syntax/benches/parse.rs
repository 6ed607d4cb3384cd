//! How long texts take to become trees, beside sqlparser.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

fn insert(rows: usize) -> String {
    let rows: Vec<String> =
        (0..rows).map(|row| format!("({row}, 'name {row}', {row}.5)")).collect();
    format!("INSERT INTO ponds (id, name, depth) VALUES {}", rows.join(", "))
}

fn parse(criterion: &mut Criterion) {
    let by_key = "SELECT abalance FROM pgbench_accounts WHERE aid = 123".to_owned();
    let join = "SELECT a.aid, a.abalance, b.bbalance FROM pgbench_accounts a \
                JOIN pgbench_branches b ON a.bid = b.bid WHERE a.aid = 5001 AND b.bid > 0";
    let texts = [("by key", by_key), ("two tables", join.to_owned()), ("100 rows", insert(100))];
    for (name, text) in &texts {
        criterion.bench_function(&format!("{name}: millpond-syntax"), |bencher| {
            bencher.iter(|| millpond_syntax::parse(black_box(text)));
        });
        criterion.bench_function(&format!("{name}: sqlparser"), |bencher| {
            bencher.iter(|| Parser::parse_sql(&PostgreSqlDialect {}, black_box(text)));
        });
    }
}

criterion_group!(benches, parse);
criterion_main!(benches);
