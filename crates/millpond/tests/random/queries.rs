//! Random queries: what they read, what they return, and queries within expressions.

use crate::expressions::{Column, Generator};
use crate::joins;
use crate::tables::{TABLES, Type};

/// What a query reads: its FROM, with the columns that it gives.
#[derive(Debug, Clone)]
pub struct Source {
    /// `with ... ` or nothing.
    pub with: String,
    /// Without the word FROM.
    pub from: String,
    pub columns: Vec<Column>,
}

/// A query without ORDER BY and its columns' types.
pub struct Query {
    pub sql: String,
    pub types: Vec<Type>,
}

/// A table with an alias.
pub fn table(g: &mut Generator<'_>) -> Source {
    let table = &TABLES[g.below(TABLES.len() as u32) as usize];
    let alias = g.name();
    let columns = table
        .columns
        .iter()
        .map(|(name, ty)| Column { sql: format!("{alias}.{name}"), ty: *ty })
        .collect();
    Source { with: String::new(), from: format!("{} {alias}", table.name), columns }
}

/// The columns of a query that has this alias. A query names its columns `c0`, `c1`, ...
pub fn columns_of(alias: &str, types: &[Type]) -> Vec<Column> {
    let named = types.iter().enumerate();
    named.map(|(at, ty)| Column { sql: format!("{alias}.c{at}"), ty: *ty }).collect()
}

/// A table, a query or a list of values; with a query that may be lateral over `outer`.
fn item(g: &mut Generator<'_>, outer: &[Column], depth: u32) -> Source {
    if depth == 0 || !g.once_in(4) {
        return table(g);
    }
    let alias = g.name();
    if g.once_in(4) {
        let rows: Vec<String> = (0..3)
            .map(|_| {
                let number = g.expression(&[], Type::Int, 0);
                format!("({number}, {})", g.expression(&[], Type::Text, 0))
            })
            .collect();
        let from = format!("(values {}) {alias} (c0, c1)", rows.join(", "));
        let columns = columns_of(&alias, &[Type::Int, Type::Text]);
        return Source { with: String::new(), from, columns };
    }
    let lateral = if outer.is_empty() { "" } else { "lateral " };
    let query = query(g, outer, depth - 1);
    let from = format!("{lateral}({}) {alias}", query.sql);
    Source { with: String::new(), from, columns: columns_of(&alias, &query.types) }
}

/// One to three items, joined in any way.
pub fn source(g: &mut Generator<'_>, depth: u32) -> Source {
    let mut source = item(g, &[], depth);
    if g.once_in(8) {
        // A query of WITH, read twice.
        let (name, other) = (g.name(), g.name());
        let query = query(g, &[], 1);
        let hint = ["", "materialized ", "not materialized "][g.below(3) as usize];
        source.with = format!("with {name} as {hint}({}) ", query.sql);
        source.from = format!("{name} cross join {name} {other}");
        source.columns = columns_of(&name, &query.types);
        source.columns.extend(columns_of(&other, &query.types));
        return source;
    }
    for _ in 0..[0, 1, 1, 1, 2][g.below(5) as usize] {
        join(g, &mut source, depth);
    }
    source
}

fn join(g: &mut Generator<'_>, source: &mut Source, depth: u32) {
    let kind = ["join", "left join", "right join", "full join", "cross join"][g.below(5) as usize];
    let inner = matches!(kind, "join" | "left join" | "cross join");
    let outer = if inner && g.once_in(4) { source.columns.clone() } else { Vec::new() };
    let right = item(g, &outer, depth);
    let on = match kind {
        "cross join" => String::new(),
        // PostgreSQL wants conditions of a full join that can be hashed, or none.
        "full join" if g.once_in(4) => " on true".to_owned(),
        "full join" => format!(" on {}", equality(g, &source.columns, &right.columns)),
        _ => {
            let mut on = equality(g, &source.columns, &right.columns);
            if g.once_in(3) {
                let both = [&source.columns[..], &right.columns[..]].concat();
                on = format!("{on} and {}", g.condition(&both, 1));
            }
            format!(" on {on}")
        }
    };
    source.from = format!("{} {kind} {}{on}", source.from, right.from);
    source.columns.extend(right.columns);
}

/// An equality between columns of both sides, of one type if there is one.
pub fn equality(g: &mut Generator<'_>, left: &[Column], right: &[Column]) -> String {
    let pairs: Vec<(&Column, &Column)> = left
        .iter()
        .flat_map(|l| right.iter().map(move |r| (l, r)))
        .filter(|(l, r)| l.ty == r.ty)
        .collect();
    if pairs.is_empty() {
        return "true".to_owned();
    }
    let (l, r) = pairs[g.below(pairs.len() as u32) as usize];
    format!("{} = {}", l.sql, r.sql)
}

/// A list of targets named `c0`, `c1`, ..., and their types.
pub fn targets(g: &mut Generator<'_>, scope: &[Column], depth: u32) -> (String, Vec<Type>) {
    let count = 1 + g.below(3);
    let types: Vec<Type> = (0..count).map(|_| g.ty()).collect();
    let list: Vec<String> = types
        .iter()
        .enumerate()
        .map(|(at, ty)| format!("{} as c{at}", g.expression(scope, *ty, depth)))
        .collect();
    (list.join(", "), types)
}

/// A query of any shape, which may use columns of the query around it.
pub fn query(g: &mut Generator<'_>, outer: &[Column], depth: u32) -> Query {
    match g.below(if depth == 0 { 3 } else { 11 }) {
        8..=10 => joins::query(g, outer),
        3 => grouped(g, outer, depth),
        4 => windowed(g, outer, depth),
        5 => set_operation(g, outer, depth),
        choice => {
            let source = source(g, depth);
            let scope = [&source.columns[..], outer].concat();
            let (list, types) = targets(g, &scope, depth.min(2));
            let distinct = if choice == 2 { "distinct " } else { "" };
            let condition = where_clause(g, &scope, depth);
            let Source { with, from, .. } = source;
            Query { sql: format!("{with}select {distinct}{list} from {from}{condition}"), types }
        }
    }
}

/// ` where ...` or nothing.
fn where_clause(g: &mut Generator<'_>, scope: &[Column], depth: u32) -> String {
    if g.once_in(3) {
        return String::new();
    }
    format!(" where {}", g.condition(scope, depth.min(2)))
}

/// Aggregates that don't depend on the order of rows. The scope has the query's own columns only:
/// an aggregate over columns of the query around it alone would belong to that one.
pub fn aggregate(g: &mut Generator<'_>, scope: &[Column], depth: u32) -> (String, Type) {
    let (call, ty) = match g.below(7) {
        0 => ("count(*)".to_owned(), Type::Big),
        1 => {
            let ty = g.ty();
            (format!("count(distinct {})", g.expression(scope, ty, depth)), Type::Big)
        }
        2 => (format!("sum({})", g.expression(scope, Type::Int, depth)), Type::Big),
        3 => (format!("avg({})", g.expression(scope, Type::Int, depth)), Type::Numeric),
        4 => (format!("sum({})", g.expression(scope, Type::Numeric, depth)), Type::Numeric),
        5 => (format!("bool_or({})", g.expression(scope, Type::Bool, depth)), Type::Bool),
        _ => {
            let ty = [Type::Int, Type::Text, Type::Date, Type::Numeric][g.below(4) as usize];
            let function = ["min", "max"][g.below(2) as usize];
            (format!("{function}({})", g.expression(scope, ty, depth)), ty)
        }
    };
    if g.once_in(5) {
        return (format!("{call} filter (where {})", g.condition(scope, 1)), ty);
    }
    (call, ty)
}

fn grouped(g: &mut Generator<'_>, outer: &[Column], depth: u32) -> Query {
    let source = source(g, depth - 1);
    let scope = [&source.columns[..], outer].concat();
    let keys: Vec<Column> = (0..g.below(3))
        .map(|_| source.columns[g.below(source.columns.len() as u32) as usize].clone())
        .collect();
    let mut list: Vec<(String, Type)> = keys.iter().map(|key| (key.sql.clone(), key.ty)).collect();
    for _ in 0..1 + g.below(2) {
        let call = aggregate(g, &source.columns, 1);
        list.push(call);
    }
    let names: Vec<String> = keys.iter().map(|key| key.sql.clone()).collect();
    let by = match (names.is_empty(), g.below(5)) {
        (true, _) => String::new(),
        (false, 0) => format!(" group by rollup ({})", names.join(", ")),
        (false, 1) => format!(" group by grouping sets (({}), ())", names.join(", ")),
        _ => format!(" group by {}", names.join(", ")),
    };
    let having = if g.once_in(4) {
        let (call, ty) = aggregate(g, &source.columns, 0);
        format!(" having {call} >= {}", g.expression(&[], ty, 0))
    } else {
        String::new()
    };
    let condition = where_clause(g, &scope, 1);
    let types = list.iter().map(|(_, ty)| *ty).collect();
    let list = named(list.into_iter().map(|(sql, _)| sql));
    let Source { with, from, .. } = source;
    Query { sql: format!("{with}select {list} from {from}{condition}{by}{having}"), types }
}

/// Window functions whose answers don't depend on the order of equal rows.
fn windowed(g: &mut Generator<'_>, outer: &[Column], depth: u32) -> Query {
    let source = source(g, depth - 1);
    let scope = [&source.columns[..], outer].concat();
    let mut column = || source.columns[g.below(source.columns.len() as u32) as usize].clone();
    let (shown, partition, order) = (column(), column(), column());
    let function = ["rank()", "dense_rank()", "count(*)"][g.below(3) as usize];
    let frame = match (function, g.below(4)) {
        ("count(*)", 0) => " groups between 1 preceding and current row",
        ("count(*)", 1) => " range between current row and unbounded following",
        // EXCLUDE waits for a parser that knows it.
        ("count(*)", 2) => " groups between 1 preceding and 1 following",
        _ => "",
    };
    let partition =
        if g.once_in(3) { String::new() } else { format!("partition by {} ", partition.sql) };
    let direction = ["", " desc", " nulls first"][g.below(3) as usize];
    let over = format!("{function} over ({partition}order by {}{direction}{frame})", order.sql);
    let condition = where_clause(g, &scope, 1);
    let list = named([shown.sql.clone(), over]);
    let Source { with, from, .. } = source;
    let sql = format!("{with}select {list} from {from}{condition}");
    Query { sql, types: vec![shown.ty, Type::Big] }
}

fn set_operation(g: &mut Generator<'_>, outer: &[Column], depth: u32) -> Query {
    let types: Vec<Type> = (0..1 + g.below(2)).map(|_| g.ty()).collect();
    let left = side(g, outer, &types, depth - 1);
    let right = side(g, outer, &types, depth - 1);
    let operator = ["union", "intersect", "except"][g.below(3) as usize];
    let all = ["", " all"][g.below(2) as usize];
    Query { sql: format!("{left} {operator}{all} {right}"), types }
}

/// A query with columns of these types.
pub fn side(g: &mut Generator<'_>, outer: &[Column], types: &[Type], depth: u32) -> String {
    let source = source(g, depth.min(1));
    let scope = [&source.columns[..], outer].concat();
    let list: Vec<String> = types.iter().map(|ty| g.expression(&scope, *ty, 1)).collect();
    let condition = where_clause(g, &scope, depth.min(1));
    let Source { with, from, .. } = source;
    let sql = format!("select {} from {from}{condition}", named(list));
    if with.is_empty() { sql } else { format!("({with}{sql})") }
}

fn named(list: impl IntoIterator<Item = String>) -> String {
    let list = list.into_iter().enumerate().map(|(at, sql)| format!("{sql} as c{at}"));
    list.collect::<Vec<_>>().join(", ")
}

/// A query of one value, within an expression.
pub fn scalar(g: &mut Generator<'_>, scope: &[Column], ty: Type, depth: u32) -> String {
    let source = table(g);
    let both = [&source.columns[..], scope].concat();
    let function = ["min", "max"][g.below(2) as usize];
    let value = match ty {
        Type::Big => "count(*)".to_owned(),
        Type::Bool => format!("bool_and({})", g.expression(&source.columns, ty, depth.min(1))),
        _ => format!("{function}({})", g.expression(&source.columns, ty, depth.min(1))),
    };
    format!("(select {value} from {}{})", source.from, where_clause(g, &both, depth.min(1)))
}

/// EXISTS, IN, ANY or ALL over a query.
pub fn test(g: &mut Generator<'_>, scope: &[Column], depth: u32) -> String {
    let source = table(g);
    let both = [&source.columns[..], scope].concat();
    let condition = where_clause(g, &both, depth.min(1));
    let not = ["", "not "][g.below(2) as usize];
    if g.once_in(2) {
        return format!("({not}exists (select 1 from {}{condition}))", source.from);
    }
    let column = &source.columns[g.below(source.columns.len() as u32) as usize];
    let value = g.expression(scope, column.ty, depth.min(1));
    let query = format!("(select {} from {}{condition})", column.sql, source.from);
    let operator = ["=", "<>", "<", ">="][g.below(4) as usize];
    match g.below(4) {
        0 => format!("({value} {operator} any {query})"),
        1 => format!("({value} {operator} all {query})"),
        _ => format!("({value} {not}in {query})"),
    }
}
