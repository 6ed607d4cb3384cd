use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use millpond_engine::catalog::{CatalogState, TableDef};

use super::{PlanRequest, Planner};
use millpond_query::error::Result;
use millpond_query::memory::{QueryMemory, Resources, SessionMemory};
use millpond_query::query::{RowSource, SessionInfo, TableScanner};
use millpond_query::{SqlError, SqlState};
use millpond_types::{DataType, Datum, Value};

/// Plans with ample memory.
fn planner(niceness: i32) -> Planner {
    Planner::new(niceness, 1000, &QueryMemory::new(1 << 30)).unwrap()
}

/// A database without tables.
struct Nothing(Arc<Resources>);

impl Nothing {
    fn new() -> Arc<Self> {
        let memory = SessionMemory::new(&QueryMemory::new(1 << 30));
        memory.set_work(4 << 20, 2.0);
        let (temp_files, temp_space) = Default::default();
        Arc::new(Self(Arc::new(Resources { memory, temp_files, temp_space })))
    }
}

impl TableScanner for Nothing {
    fn scan(&self, _: &Arc<TableDef>, _: usize, _: usize) -> Result<Box<dyn RowSource>> {
        Err(SqlError::internal("there are no tables"))
    }

    fn check_cancelled(&self) -> Result<()> {
        Ok(())
    }

    fn session(&self) -> SessionInfo {
        SessionInfo {
            database: "postgres".into(),
            user: "postgres".into(),
            pid: 42,
            ..SessionInfo::default()
        }
    }

    fn resources(&self) -> &Arc<Resources> {
        &self.0
    }

    fn relation_size(&self, _: u32) -> Result<Option<millpond_query::query::RelationSize>> {
        Ok(None)
    }

    fn relation_filenode(&self, _: u32) -> Option<u32> {
        None
    }
}

fn run(planner: &Planner, sql: &str, params: &[Value]) -> Result<Vec<Vec<String>>> {
    let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql)
        .map_err(|error| SqlError::new(SqlState::SYNTAX_ERROR, error.to_string()))?;
    let Statement::Query(query) = statements.remove(0) else { panic!("not a query: {sql}") };
    let catalog = Arc::new(CatalogState::default());
    let zone = millpond_types::format::Zone::UTC;
    let request = PlanRequest { catalog: &catalog, zone };
    let plan = planner.plan(&request, query, &[])?;
    let mut stream = plan.open(Nothing::new(), params)?;
    let mut rows = vec![plan.columns.iter().map(|column| column.name.clone()).collect()];
    let lock = &mut |_, _| Err(SqlError::internal("there is nobody to lock for"));
    while let Some(batch) = stream.next_batch(lock)? {
        let mut row = Vec::new();
        for index in 0..batch.rows() {
            batch.row(index, &mut row);
            rows.push(
                row.iter()
                    .zip(&plan.columns)
                    .map(|(datum, column)| shown(column.ty, datum))
                    .collect(),
            );
        }
    }
    Ok(rows)
}

fn shown(ty: DataType, datum: &Datum<'_>) -> String {
    millpond_types::format::text::to_string(
        ty,
        datum,
        &millpond_types::format::FormatOptions::default(),
    )
    .unwrap_or_else(|| "NULL".to_owned())
}

fn check(planner: &Planner, sql: &str, expected: &[&[&str]]) {
    match run(planner, sql, &[]) {
        Ok(rows) => assert_eq!(rows, expected, "{sql}"),
        Err(error) => panic!("{sql}: {error}"),
    }
}

#[test]
fn expressions_and_names_are_postgresqls() {
    let planner = planner(0);
    check(&planner, "select 1", &[&["?column?"], &["1"]]);
    check(&planner, "select 1, 1 as a, 2 as a", &[&["?column?", "a", "a"], &["1", "1", "2"]]);
    check(&planner, "select count(*) from (values (1), (2)) t(x)", &[&["count"], &["2"]]);
    check(&planner, "select 1.5 + 1", &[&["?column?"], &["2.5"]]);
    check(
        &planner,
        "select x, count(*) from (values ('a'), ('b'), ('a')) t(x) group by x order by count desc",
        &[&["x", "count"], &["a", "2"], &["b", "1"]],
    );
    check(
        &planner,
        "select current_database(), pg_backend_pid()",
        &[&["current_database", "pg_backend_pid"], &["postgres", "42"]],
    );
    check(
        &planner,
        "select avg(x), sum(x::bigint) from (values (1), (2)) t(x)",
        &[&["avg", "sum"], &["1.5000000000000000", "3"]],
    );
    check(
        &planner,
        "select x, (select y from (values (1, 'one')) u(z, y) where z = x), exists (select 1 from (values (2)) w(v) where v = x) from (values (1), (2)) t(x) order by x",
        &[&["x", "y", "exists"], &["1", "one", "f"], &["2", "NULL", "t"]],
    );
    check(
        &planner,
        "select date '2000-01-01', timestamp '1999-12-31 23:59:59.5'",
        &[&["date", "timestamp"], &["2000-01-01", "1999-12-31 23:59:59.5"]],
    );
    check(
        &planner,
        "select g, g * 2 from generate_series(1, 2) g order by g",
        &[&["g", "?column?"], &["1", "2"], &["2", "4"]],
    );
    check(
        &planner,
        "with recursive t(n) as (select 1 union all select n + 1 from t where n < 3) select sum(n) from t",
        &[&["sum"], &["6"]],
    );
}

#[test]
fn errors_have_their_codes() {
    let planner = planner(0);
    let cases = [
        ("select 1 / 0", SqlState::DIVISION_BY_ZERO),
        ("select * from nowhere", SqlState::UNDEFINED_TABLE),
        ("select nothing from (values (1)) t(x)", SqlState::UNDEFINED_COLUMN),
        ("select no_such_function(1)", SqlState::UNDEFINED_FUNCTION),
        ("select 'x'::int", SqlState::INVALID_TEXT_REPRESENTATION),
        (
            "select 2147483647 + 1 + x from (values (2147483647)) t(x)",
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        ),
    ];
    for (sql, state) in cases {
        match run(&planner, sql, &[]) {
            Ok(rows) => panic!("{sql} gave {rows:?}"),
            Err(error) => assert_eq!(error.sqlstate, state, "{sql}: {error}"),
        }
    }
}

#[test]
fn parameters_get_types_and_values() {
    let planner = planner(0);
    let rows = run(
        &planner,
        "select x from (values (1), (2), (3)) t(x) where x > $1 order by x",
        &[Value::Int8(1)],
    );
    assert_eq!(rows.unwrap(), [["x"], ["2"], ["3"]]);
}

#[test]
fn system_views_answer() {
    let planner = planner(0);
    check(
        &planner,
        "select nspname from pg_namespace order by 1",
        &[&["nspname"], &["information_schema"], &["pg_catalog"], &["public"]],
    );
    check(
        &planner,
        "select typname from pg_catalog.pg_type where oid = 23",
        &[&["typname"], &["int4"]],
    );
    check(
        &planner,
        "select pg_catalog.format_type(1043, 14)",
        &[&["format_type"], &["character varying(10)"]],
    );
}

/// The `nice` value of each thread of this process that has the name.
#[cfg(target_os = "linux")]
fn niceness_of(name: &str) -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let stats =
        tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).ok());
    // Number (name) and then, from the state on, fields without brackets: the 17th is the value.
    let fields = stats.filter_map(|stat| {
        let (head, rest) = stat.rsplit_once(") ")?;
        head.ends_with(&format!("({name}")).then(|| rest.split(' ').nth(16)?.parse().ok())?
    });
    fields.collect()
}

#[cfg(target_os = "linux")]
#[test]
fn the_threads_of_queries_give_way() {
    let here = rustix::process::getpriority_process(None).unwrap();
    if here > 14 {
        println!("skipped: these tests already run at the lowest priority");
        return;
    }
    let planner = planner(5);
    check(&planner, "select 1", &[&["?column?"], &["1"]]);
    assert!(niceness_of("millpond-query").contains(&(here + 5)));
}

#[test]
fn an_abandoned_run_ends_where_its_operators_are() {
    let planner = planner(0);
    for sql in [
        // The filter of a join: hours without a row.
        "select count(*) from generate_series(1,1000000) a(x), generate_series(1,1000000) b(y) where a.x * b.y % 7 = 9",
        "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r",
        "select sum(x) from generate_series(1, 1000000000000) a(x)",
        "select x from generate_series(1, 1000000000000) a(x)",
    ] {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        let Statement::Query(query) = statements.remove(0) else { panic!("not a query: {sql}") };
        let catalog = Arc::new(CatalogState::default());
        let zone = millpond_types::format::Zone::UTC;
        let request = PlanRequest { catalog: &catalog, zone };
        let plan = planner.plan(&request, query, &[]).unwrap();
        drop(plan.open(Nothing::new(), &[]).unwrap());
        // They would go on for hours.
        while planner.is_computing() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn functions_of_extensions_do_not_exist() {
    let error = run(&planner(0), "select levenshtein('kitten', 'sitting')", &[]).unwrap_err();
    assert_eq!(error.sqlstate, SqlState::UNDEFINED_FUNCTION);
}
