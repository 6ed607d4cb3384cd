//! Rewritings of random queries that must not change their rows.
//!
//! The first are TLP's (a query's rows are its rows where a condition is true, where it is false
//! and where it is NULL). The others are NoREC's (a condition selects as many rows as it is true
//! for).

use crate::expressions::{Column, Generator};
use crate::joins::{self, Joined};
use crate::queries::{
    Query, Source, aggregate, columns_of, equality, query, side, source, table, targets, test,
};
use crate::tables::Type;

/// Two lists of queries. The rows of the first together are the rows of the second together.
pub struct Rewriting {
    pub name: &'static str,
    pub first: Vec<String>,
    pub second: Vec<String>,
    /// Repeated rows don't count.
    pub as_set: bool,
}

impl Rewriting {
    fn new(name: &'static str, first: Vec<String>, second: Vec<String>) -> Self {
        Rewriting { name, first, second, as_set: false }
    }
}

type Make = fn(&mut Generator<'_>) -> Rewriting;

const ALL: &[Make] = &[
    parts_of_where,
    parts_of_distinct,
    parts_of_having,
    counted_condition,
    condition_of_join,
    swapped_join,
    outer_join_in_parts,
    tests_as_counts,
    in_as_any,
    kept_apart,
    parts_of_set_operation,
    union_all_is_both,
    distinct_as_groups,
    parts_of_limit,
    window_as_subquery,
    rollup_in_parts,
    joins_then_conditions,
    joins_then_conditions,
    joins_then_conditions,
    joins_in_parts,
    joins_in_parts,
    tables_in_any_order,
    tables_in_any_order,
];

/// A rewriting of a random query.
pub fn any(g: &mut Generator<'_>) -> Rewriting {
    ALL[g.below(ALL.len() as u32) as usize](g)
}

/// The conditions of TLP: a condition, its contrary, and that it is NULL.
fn parts(condition: &str) -> [String; 3] {
    [condition.to_owned(), format!("(not {condition})"), format!("({condition} is null)")]
}

fn parts_of_where(g: &mut Generator<'_>) -> Rewriting {
    let Source { with, from, columns } = source(g, 2);
    let (list, _) = targets(g, &columns, 2);
    let condition = g.condition(&columns, 3);
    let whole = format!("{with}select {list} from {from}");
    let second = parts(&condition).map(|part| format!("{whole} where {part}")).to_vec();
    Rewriting::new("WHERE in three parts", vec![whole], second)
}

fn parts_of_distinct(g: &mut Generator<'_>) -> Rewriting {
    let Source { with, from, columns } = source(g, 2);
    let (list, _) = targets(g, &columns, 1);
    let condition = g.condition(&columns, 2);
    let whole = format!("{with}select distinct {list} from {from}");
    let second = parts(&condition).map(|part| format!("{whole} where {part}")).to_vec();
    let name = "DISTINCT in three parts";
    Rewriting { as_set: true, ..Rewriting::new(name, vec![whole], second) }
}

fn parts_of_having(g: &mut Generator<'_>) -> Rewriting {
    let Source { with, from, columns } = source(g, 1);
    let key = pick(g, &columns);
    let (call, ty) = aggregate(g, &columns, 1);
    let shown = format!("{} as c0, {call} as c1", key.sql);
    let whole = format!("{with}select {shown} from {from} group by {}", key.sql);
    let condition = format!("({call} > {})", g.expression(&[key], ty, 1));
    let second = parts(&condition).map(|part| format!("{whole} having {part}")).to_vec();
    Rewriting::new("HAVING in three parts", vec![whole], second)
}

fn counted_condition(g: &mut Generator<'_>) -> Rewriting {
    let Source { with, from, columns } = source(g, 2);
    let condition = g.condition(&columns, 3);
    let first = format!("{with}select count(*) from {from} where {condition}");
    let flags = format!("{with}select {condition} as flag from {from}");
    let second = format!("select count(*) from ({flags} offset 0) counted where flag");
    Rewriting::new("NoREC", vec![first], vec![second])
}

/// Two tables, a condition over both, and targets.
fn two_tables(g: &mut Generator<'_>) -> (Source, Source, String, String) {
    let (left, right) = (table(g), table(g));
    let both = [&left.columns[..], &right.columns[..]].concat();
    let mut condition = equality(g, &left.columns, &right.columns);
    if g.once_in(2) {
        condition = format!("{condition} and {}", g.condition(&both, 2));
    }
    let (list, _) = targets(g, &both, 1);
    (left, right, condition, list)
}

fn condition_of_join(g: &mut Generator<'_>) -> Rewriting {
    let (left, right, condition, list) = two_tables(g);
    let (left, right) = (left.from, right.from);
    let first = format!("select {list} from {left} join {right} on {condition}");
    let second = format!("select {list} from {right}, {left} where {condition}");
    Rewriting::new("ON as WHERE", vec![first], vec![second])
}

fn swapped_join(g: &mut Generator<'_>) -> Rewriting {
    let (left, right, condition, list) = two_tables(g);
    let (left, right) = (left.from, right.from);
    let first = format!("select {list} from {left} left join {right} on {condition}");
    let second = format!("select {list} from {right} right join {left} on {condition}");
    Rewriting::new("LEFT as RIGHT", vec![first], vec![second])
}

fn outer_join_in_parts(g: &mut Generator<'_>) -> Rewriting {
    let (left, right) = (table(g), table(g));
    let equal = equality(g, &left.columns, &right.columns);
    let both: Vec<&str> =
        left.columns.iter().chain(&right.columns).map(|column| column.sql.as_str()).collect();
    let nulls = |columns: &[Column]| {
        columns.iter().map(|c| format!("null::{}", c.ty.name())).collect::<Vec<_>>().join(", ")
    };
    let own =
        |columns: &[Column]| columns.iter().map(|c| c.sql.clone()).collect::<Vec<_>>().join(", ");
    let list = both.join(", ");
    let full = format!("select {list} from {} full join {} on {equal}", left.from, right.from);
    let inner = format!("select {list} from {} join {} on {equal}", left.from, right.from);
    let only_left = format!(
        "select {}, {} from {} where not exists (select 1 from {} where {equal})",
        own(&left.columns),
        nulls(&right.columns),
        left.from,
        right.from
    );
    let only_right = format!(
        "select {}, {} from {} where not exists (select 1 from {} where {equal})",
        nulls(&left.columns),
        own(&right.columns),
        right.from,
        left.from
    );
    Rewriting::new("FULL in three parts", vec![full], vec![inner, only_left, only_right])
}

fn tests_as_counts(g: &mut Generator<'_>) -> Rewriting {
    let outer = source(g, 1);
    let inner = table(g);
    let both = [&inner.columns[..], &outer.columns[..]].concat();
    let condition = g.condition(&both, 2);
    let (list, _) = targets(g, &outer.columns, 1);
    let Source { with, from, .. } = outer;
    let of = format!("from {} where {condition}", inner.from);
    let whole = format!("{with}select {list} from {from} where");
    let (first, second) = if g.once_in(2) { ("exists", "> 0") } else { ("not exists", "= 0") };
    Rewriting::new(
        "EXISTS as a count",
        vec![format!("{whole} {first} (select 1 {of})")],
        vec![format!("{whole} (select count(*) {of}) {second}")],
    )
}

fn in_as_any(g: &mut Generator<'_>) -> Rewriting {
    let Source { with, from, columns } = source(g, 1);
    let ty = g.ty();
    let value = g.expression(&columns, ty, 1);
    let inner = side(g, &columns, &[ty], 1);
    let (list, _) = targets(g, &columns, 1);
    let whole = format!("{with}select {list} from {from} where {value}");
    let (first, second) = if g.once_in(2) { ("in", "= any") } else { ("not in", "<> all") };
    Rewriting::new(
        "IN as ANY",
        vec![format!("{whole} {first} ({inner})")],
        vec![format!("{whole} {second} ({inner})")],
    )
}

/// A query, as one of FROM that nothing can be moved into, or of WITH.
fn kept_apart(g: &mut Generator<'_>) -> Rewriting {
    let Query { sql, types } = query(g, &[], 2);
    let inner = columns_of("apart", &types);
    let condition = if g.once_in(2) { test(g, &inner, 1) } else { g.condition(&inner, 1) };
    let first = format!("select * from ({sql}) apart where {condition}");
    let second = if g.once_in(2) {
        format!("select * from (select * from ({sql}) q offset 0) apart where {condition}")
    } else {
        format!("with apart as materialized ({sql}) select * from apart where {condition}")
    };
    Rewriting::new("a query apart", vec![first], vec![second])
}

/// Two queries with the same columns.
fn two_sides(g: &mut Generator<'_>) -> (String, String) {
    let types: Vec<Type> = (0..1 + g.below(2)).map(|_| g.ty()).collect();
    (side(g, &[], &types, 1), side(g, &[], &types, 1))
}

fn parts_of_set_operation(g: &mut Generator<'_>) -> Rewriting {
    let (left, right) = two_sides(g);
    let second =
        vec![format!("{left} except all {right}"), format!("{left} intersect all {right}")];
    Rewriting::new("EXCEPT and INTERSECT", vec![left], second)
}

fn union_all_is_both(g: &mut Generator<'_>) -> Rewriting {
    let (left, right) = two_sides(g);
    let first = format!("{left} union all {right}");
    if g.once_in(2) {
        let distinct = format!("{left} union {right}");
        let name = "UNION as a set";
        let as_set = Rewriting::new(name, vec![distinct], vec![left, right]);
        return Rewriting { as_set: true, ..as_set };
    }
    Rewriting::new("UNION ALL", vec![first], vec![left, right])
}

fn distinct_as_groups(g: &mut Generator<'_>) -> Rewriting {
    let Source { with, from, columns } = source(g, 1);
    let (a, b) = (pick(g, &columns), pick(g, &columns));
    let condition = g.condition(&columns, 2);
    let list = format!("{} as c0, {} as c1", a.sql, b.sql);
    let of = format!("from {from} where {condition}");
    let first = format!("{with}select distinct {list} {of}");
    let second = format!("{with}select {list} {of} group by {}, {}", a.sql, b.sql);
    Rewriting::new("DISTINCT as GROUP BY", vec![first], vec![second])
}

fn parts_of_limit(g: &mut Generator<'_>) -> Rewriting {
    let Query { sql, types } = query(g, &[], 1);
    let order: Vec<String> = (1..=types.len())
        .map(|at| format!("{at}{}", ["", " desc", " nulls first"][g.below(3) as usize]))
        .collect();
    let ordered = format!("select * from ({sql}) ordered order by {}", order.join(", "));
    let count = g.below(9);
    let second = vec![format!("{ordered} limit {count}"), format!("{ordered} offset {count}")];
    Rewriting::new("LIMIT and OFFSET", vec![sql], second)
}

fn window_as_subquery(g: &mut Generator<'_>) -> Rewriting {
    let outer = table(g);
    let key = pick(g, &outer.columns);
    let list = format!("{} as c0", key.sql);
    let first = format!(
        "select {list}, count(*) over (partition by {}) as c1 from {}",
        key.sql, outer.from
    );
    // The same table under another name.
    let (name, alias) = outer.from.split_once(' ').unwrap_or_default();
    let other = key.sql.replacen(alias, "again", 1);
    let second = format!(
        "select {list}, (select count(*) from {name} again where {other} is not distinct from {}) \
         as c1 from {}",
        key.sql, outer.from
    );
    Rewriting::new("a window as a subquery", vec![first], vec![second])
}

fn rollup_in_parts(g: &mut Generator<'_>) -> Rewriting {
    let Source { with, from, columns } = source(g, 1);
    let key = pick(g, &columns);
    let (call, _) = aggregate(g, &columns, 1);
    let condition = g.condition(&columns, 1);
    let of = format!("from {from} where {condition}");
    let list = format!("{} as c0, {call} as c1", key.sql);
    let first = format!("{with}select {list} {of} group by rollup ({})", key.sql);
    let groups = format!("{with}select {list} {of} group by {}", key.sql);
    // GROUP BY () has a row even without rows, as ROLLUP has.
    let all = format!("{with}select null::{} as c0, {call} as c1 {of}", key.ty.name());
    Rewriting::new("ROLLUP in parts", vec![first], vec![groups, all])
}

/// The conditions as one value, computed after all joins.
fn joins_then_conditions(g: &mut Generator<'_>) -> Rewriting {
    let condition = g.condition(&[], 0);
    let joined = joins::joined(g, &[]).with_condition(condition);
    let Joined { from, conditions, list, .. } = &joined;
    let flags = format!("select {list}, ({}) as flag from {from}", conditions.join(" and "));
    let second = format!("select {} from ({flags} offset 0) q where flag", joined.names());
    Rewriting::new("joins, then conditions", vec![joined.sql()], vec![second])
}

fn joins_in_parts(g: &mut Generator<'_>) -> Rewriting {
    let joined = joins::joined(g, &[]);
    let condition = g.condition(&joined.columns, 1);
    let second = parts(&condition).map(|part| joined.with_condition(part).sql()).to_vec();
    Rewriting::new("joins in three parts", vec![joined.sql()], second)
}

/// The same tables the other way round, each behind a wall.
fn tables_in_any_order(g: &mut Generator<'_>) -> Rewriting {
    let joined = joins::of_tables(g);
    let turned: Vec<String> = joined.from.rsplit(", ").map(str::to_owned).collect();
    let apart = turned.iter().map(|item| match item.split_once(' ') {
        Some((table, alias)) if g.once_in(2) => {
            format!("(select * from {table} offset 0) {alias}")
        }
        _ => item.clone(),
    });
    let second = Joined { from: apart.collect::<Vec<_>>().join(", "), ..joined.clone() };
    Rewriting::new("tables in another order", vec![joined.sql()], vec![second.sql()])
}

fn pick(g: &mut Generator<'_>, columns: &[Column]) -> Column {
    columns[g.below(columns.len() as u32) as usize].clone()
}
