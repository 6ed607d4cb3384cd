//! Analyzes statements and compares the columns of their results, or their errors, with
//! PostgreSQL's, which are in `answers.txt`.

use std::fmt::Write;

use millpond_engine::catalog::{CatalogState, ColumnDef, IndexColumn, NewIndex, NewTable};
use millpond_engine::session::TransactionOptions;
use millpond_engine::{Engine, EngineConfig};
use millpond_types::key::KeyOrder;

use super::analyze;
use super::tree::{Analyzed, Body, Query, Select, column};
use crate::DataType;
use crate::error::Result;
use crate::expr::Expr;
use crate::expr::bind::{Binder, ParamTypes};
use crate::lex::{Literals, scan};
use crate::parse::{Source, Statement, parse, parse_lifted};

/// The tables that statements name: columns, of which the first is the primary key unless the table
/// is `v`.
const TABLES: &[(&str, &[(&str, DataType)])] = &[
    (
        "t",
        &[
            ("id", DataType::Int4),
            ("name", DataType::Text),
            ("price", DataType::Numeric { precision_scale: Some((10, 2)) }),
            ("code", DataType::Varchar(Some(5))),
            ("at", DataType::Timestamp(None)),
        ],
    ),
    ("u", &[("id", DataType::Int4), ("t_id", DataType::Int4), ("note", DataType::Text)]),
    ("v", &[("id", DataType::Int4), ("w", DataType::Int4)]),
    (
        "n",
        &[
            ("id", DataType::Int4),
            ("small", DataType::Int2),
            ("big", DataType::Int8),
            ("f", DataType::Float8),
            ("r", DataType::Float4),
            ("price", DataType::Numeric { precision_scale: None }),
            ("vc", DataType::Varchar(Some(10))),
            ("ch", DataType::Char(4)),
            ("d", DataType::Date),
            ("ts", DataType::Timestamp(None)),
            ("tz", DataType::Timestamptz(None)),
        ],
    ),
];

fn analyzed(sql: &str, catalog: &CatalogState) -> Result<Analyzed> {
    let Some(Statement::Query(query)) = parse(sql, &|| false)?.pop() else {
        panic!("no query: {sql}");
    };
    let params = match sql.contains('$') {
        true => ParamTypes::Declared(Vec::new()),
        false => ParamTypes::None,
    };
    let mut binder = Binder::new(Source::new(sql), params);
    analyze(catalog, &query.select, &mut binder)
}

fn columns(sql: &str, catalog: &CatalogState) -> Result<String> {
    let columns: Vec<String> = analyzed(sql, catalog)?
        .query
        .columns
        .iter()
        .map(|column| format!("{} {}", column.name, column.ty))
        .collect();
    Ok(format!("= {}", columns.join(" | ")))
}

fn answer(sql: &str, catalog: &CatalogState) -> String {
    let error = match columns(sql, catalog) {
        Ok(columns) => return columns,
        Err(error) => error,
    };
    let position = error.position.map_or("-".to_owned(), |position| position.to_string());
    let mut answer = format!("! {} {position} {}", error.sqlstate, error.message);
    for (letter, text) in [("D", &error.detail), ("H", &error.hint)] {
        if let Some(text) = text {
            write!(answer, "\n{letter} {text}").unwrap();
        }
    }
    answer
}

fn new_table(name: &str, columns: &[(&str, DataType)]) -> NewTable {
    let key = NewIndex {
        name: None,
        table: 0,
        columns: vec![IndexColumn { column: 0, order: KeyOrder::ASC }],
        unique: true,
        primary: true,
        constraint: true,
        fillfactor: 90,
    };
    NewTable {
        name: name.to_owned(),
        columns: columns.iter().map(|(name, ty)| ColumnDef::new(*name, *ty)).collect(),
        fillfactor: 100,
        indexes: if name == "v" { Vec::new() } else { vec![key] },
    }
}

fn with_catalog(act: impl FnOnce(&CatalogState)) {
    let dir = tempfile::tempdir().unwrap();
    let mut config = EngineConfig::new(dir.path());
    config.buffers = 1024;
    let engine = Engine::open(config).unwrap();
    let mut session = engine.session().unwrap();
    session.begin(TransactionOptions::default()).unwrap();
    session.start_statement().unwrap();
    for (name, columns) in TABLES {
        session.ddl().create_table(new_table(name, columns)).unwrap();
    }
    session.end_statement();
    session.commit().unwrap();
    act(&engine.catalog());
}

#[test]
fn columns_and_errors_are_postgresqls() {
    let answers = include_str!("answers.txt");
    with_catalog(|catalog| {
        let mut different = String::new();
        let mut seen = 0;
        for block in answers.split("\n\n") {
            let Some((sql, expected)) = block.trim().split_once('\n') else { continue };
            let sql = sql.trim_start_matches("> ");
            let found = answer(sql, catalog);
            seen += 1;
            if found != expected {
                write!(different, "> {sql}\n{expected}\nfound:\n{found}\n\n").unwrap();
            }
        }
        assert!(seen > 200, "only {seen} statements");
        assert!(different.is_empty(), "{different}");
    });
}

fn select(query: &Query) -> &Select {
    match &query.body {
        Body::Select(select) => select,
        other => panic!("no SELECT: {other:?}"),
    }
}

#[test]
fn aggregates_follow_the_keys_of_their_groups() {
    with_catalog(|catalog| {
        let sql = "select count(*), name, sum(id) + count(*) from t group by name, code";
        let query = analyzed(sql, catalog).unwrap().query;
        let select = select(&query);
        let grouping = select.grouping.as_ref().unwrap();
        assert_eq!((grouping.keys.len(), grouping.aggregates.len()), (2, 2));
        let place = |place| Expr::Column(column(grouping.slot, place));
        assert_eq!(select.targets[..2], [place(2), place(0)]);
    });
}

#[test]
fn an_aggregate_belongs_to_the_query_whose_columns_it_uses() {
    with_catalog(|catalog| {
        let query = analyzed("select (select sum(t.id)) from t", catalog).unwrap().query;
        let outer = select(&query);
        assert_eq!(outer.grouping.as_ref().map(|grouping| grouping.aggregates.len()), Some(1));
        let Expr::Subquery(subquery) = &outer.targets[0] else { panic!("{:?}", outer.targets) };
        assert!(select(&subquery.query).grouping.is_none());
    });
}

#[test]
fn a_key_that_decides_a_row_brings_its_other_columns() {
    with_catalog(|catalog| {
        let query = analyzed("select id, name from t group by id", catalog).unwrap().query;
        assert_eq!(select(&query).grouping.as_ref().unwrap().keys.len(), 2);
    });
}

#[test]
fn lifted_literals_that_decide_the_meaning_are_refused() {
    let lifted = |sql: &str, catalog: &CatalogState| {
        let (mut key, mut literals) = (Vec::new(), Literals::default());
        scan(sql, &mut key, &mut literals).unwrap();
        let Some(Statement::Query(query)) = parse_lifted(sql, &literals) else {
            panic!("no query: {sql}");
        };
        let mut binder = Binder::new(Source::new(sql), ParamTypes::lifted(&literals));
        analyze(catalog, &query.select, &mut binder).map(|_| ()).map_err(|error| error.sqlstate)
    };
    with_catalog(|catalog| {
        for sql in [
            "select id from t order by 1",
            "select name, count(*) from t group by 1",
            "select id + 1 from t group by id + 1",
            "select distinct id + 1 from t order by id + 1",
            "select distinct on (1) id from t",
            "select id from t union select id from u order by 1",
        ] {
            let state = lifted(sql, catalog).unwrap_err();
            assert_eq!(state, crate::SqlState::FEATURE_NOT_SUPPORTED, "{sql}");
        }
        let sql = "select name, sum(id + 1) from t where id > 5 group by name limit 3";
        assert_eq!(lifted(sql, catalog), Ok(()));
    });
}

#[test]
fn deep_queries_are_answered_or_refused() {
    with_catalog(|catalog| {
        let nested = |depth: usize, open: &str, core: &str, close: &str| {
            format!("{}{core}{}", open.repeat(depth), close.repeat(depth))
        };
        for depth in [10, 30, 60, 75, 200] {
            for sql in [
                nested(depth, "select (", "select max(id) from t", ")"),
                nested(depth, "select count(*) from t where exists (", "select 1", ")"),
                nested(depth, "select * from (", "select 1 as x", ") s"),
                nested(depth, "select sum((", "select t.id", ")) from t"),
                nested(depth, "with recursive a as (", "select 1 as x", ") select * from a"),
                format!("select 1{}", " union select 1".repeat(depth)),
                nested(depth, "(select 1 union ", "select 1", ")"),
                format!("select id from t where id = 1{}", " and (id, 1) < (2, id)".repeat(depth)),
            ] {
                if let Err(error) = analyzed(&sql, catalog) {
                    let known = ["54001", "42601", "0A000", "42803"];
                    assert!(known.contains(&error.sqlstate.as_str()), "{error}: {sql}");
                }
            }
        }
    });
}
