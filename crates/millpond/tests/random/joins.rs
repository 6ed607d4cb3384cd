//! Joins of two to five tables, as a planner has to order them: outer joins in any tree, semi- and
//! anti-joins, equalities that imply others, and ORs over several tables.

use crate::expressions::{Column, Generator};
use crate::queries::{Query, Source, equality, targets};
use crate::tables::{LARGE, TABLES, Table, Type, constant};

/// A join, the columns of its tables, the conditions of its WHERE, and what it returns.
#[derive(Clone)]
pub struct Joined {
    pub from: String,
    pub columns: Vec<Column>,
    pub conditions: Vec<String>,
    pub list: String,
    pub types: Vec<Type>,
}

impl Joined {
    pub fn sql(&self) -> String {
        let condition = match self.conditions.is_empty() {
            true => String::new(),
            false => format!(" where {}", self.conditions.join(" and ")),
        };
        format!("select {} from {}{condition}", self.list, self.from)
    }

    /// The same with one condition more.
    pub fn with_condition(&self, condition: String) -> Joined {
        let mut joined = self.clone();
        joined.conditions.push(condition);
        joined
    }

    /// The names of what it returns.
    pub fn names(&self) -> String {
        (0..self.types.len()).map(|at| format!("c{at}")).collect::<Vec<_>>().join(", ")
    }
}

/// A join as a query of rows, or of numbers that tell many rows apart.
pub fn query(g: &mut Generator<'_>, outer: &[Column]) -> Query {
    let mut joined = joined(g, outer);
    if g.once_in(2) {
        let column = pick(g, &joined.columns);
        joined.list = format!("count(*) as c0, count({}) as c1", column.sql);
        joined.types = vec![Type::Big, Type::Big];
        if column.ty != Type::Bool {
            joined.list = format!("{}, min({}) as c2", joined.list, column.sql);
            joined.types.push(column.ty);
        }
    }
    Query { sql: joined.sql(), types: joined.types }
}

/// A join of any kind. Its WHERE may use columns of the query around it.
pub fn joined(g: &mut Generator<'_>, outer: &[Column]) -> Joined {
    let count = 2 + g.below(4);
    if g.once_in(3) {
        let (source, conditions) = list(g, count);
        return finished(g, source, conditions, outer);
    }
    let source = tree(g, count);
    finished(g, source, Vec::new(), outer)
}

/// A join of tables with commas between them.
pub fn of_tables(g: &mut Generator<'_>) -> Joined {
    let count = 2 + g.below(4);
    let (source, conditions) = list(g, count);
    finished(g, source, conditions, &[])
}

fn finished(
    g: &mut Generator<'_>,
    source: Source,
    mut conditions: Vec<String>,
    outer: &[Column],
) -> Joined {
    let Source { from, columns, .. } = source;
    let scope = [&columns[..], outer].concat();
    for _ in 0..g.below(4) {
        let condition = condition(g, &scope);
        conditions.push(condition);
    }
    let (list, types) = targets(g, &columns, 1);
    Joined { from, columns, conditions, list, types }
}

fn table(g: &mut Generator<'_>) -> Source {
    let at = g.below(TABLES.len() as u32 + 1) as usize;
    source(&g.name(), TABLES.get(at).unwrap_or(&LARGE))
}

fn source(alias: &str, table: &Table) -> Source {
    let named = |(name, ty): &(&str, Type)| Column { sql: format!("{alias}.{name}"), ty: *ty };
    let columns = table.columns.iter().map(named).collect();
    Source { with: String::new(), from: format!("{} {alias}", table.name), columns }
}

/// Tables with commas between them, and equalities that connect each with one before.
fn list(g: &mut Generator<'_>, count: u32) -> (Source, Vec<String>) {
    let mut whole = table(g);
    let mut conditions = Vec::new();
    for _ in 1..count {
        let next = table(g);
        conditions.push(equality(g, &whole.columns, &next.columns));
        whole.from = format!("{}, {}", whole.from, next.from);
        whole.columns.extend(next.columns);
    }
    (whole, conditions)
}

/// Joins of all kinds, nested to the left, to the right, or both.
fn tree(g: &mut Generator<'_>, count: u32) -> Source {
    if count == 1 {
        return table(g);
    }
    let left_count = 1 + g.below(count - 1);
    let (left, right) = (tree(g, left_count), tree(g, count - left_count));
    let kinds = ["join", "join", "join", "left join", "left join", "right join", "full join"];
    let kind = kinds[g.below(kinds.len() as u32) as usize];
    let mut on = equality(g, &left.columns, &right.columns);
    if g.once_in(3) {
        on = format!("{on} and {}", equality(g, &left.columns, &right.columns));
    }
    let columns = [&left.columns[..], &right.columns[..]].concat();
    // PostgreSQL wants conditions of a full join that can be hashed.
    if kind != "full join" && g.once_in(3) {
        on = format!("{on} and {}", condition(g, &columns));
    }
    let of = |source: &Source| match source.from.contains(" join ") {
        true => format!("({})", source.from),
        false => source.from.clone(),
    };
    let from = format!("{} {kind} {} on {on}", of(&left), of(&right));
    Source { with: String::new(), from, columns }
}

/// One condition of WHERE or ON.
fn condition(g: &mut Generator<'_>, scope: &[Column]) -> String {
    match g.below(10) {
        0 | 1 => equality(g, scope, scope),
        2 => format!("{} is {}null", pick(g, scope).sql, ["", "not "][g.below(2) as usize]),
        3 | 4 => compared(g, scope),
        5 | 6 => either(g, scope),
        7 | 8 => matched(g, scope),
        _ => g.condition(scope, 1),
    }
}

/// A column beside a constant.
fn compared(g: &mut Generator<'_>, scope: &[Column]) -> String {
    let column = pick(g, scope);
    let value = constant(&mut g.rng, column.ty);
    let operator = ["=", "=", "=", "<", ">=", "<>"][g.below(6) as usize];
    format!("{} {operator} {value}", column.sql)
}

/// An OR of two or three ANDs, which may have a part in common.
fn either(g: &mut Generator<'_>, scope: &[Column]) -> String {
    let common = if g.once_in(2) { Some(equality(g, scope, scope)) } else { None };
    let arms: Vec<String> = (0..2 + g.below(2))
        .map(|_| {
            let mut parts: Vec<String> = common.iter().cloned().collect();
            for _ in 0..1 + g.below(2) {
                let part =
                    if g.once_in(4) { equality(g, scope, scope) } else { compared(g, scope) };
                parts.push(part);
            }
            parts.join(" and ")
        })
        .collect();
    format!("({})", arms.join(" or "))
}

/// A semi-join or an anti-join: EXISTS or IN over a table, or over two.
fn matched(g: &mut Generator<'_>, scope: &[Column]) -> String {
    let count = 1 + u32::from(g.once_in(4));
    let (inner, mut conditions) = list(g, count);
    let not = ["", "not "][g.below(2) as usize];
    let both = [&inner.columns[..], scope].concat();
    if g.once_in(3) {
        conditions.push(compared(g, &inner.columns));
    }
    if g.once_in(4) {
        conditions.push(equality(g, &both, &both));
    }
    if g.once_in(2) {
        conditions.push(equality(g, &inner.columns, scope));
        let condition = conditions.join(" and ");
        return format!("{not}exists (select 1 from {} where {condition})", inner.from);
    }
    let column = pick(g, &inner.columns);
    let same: Vec<Column> = scope.iter().filter(|other| other.ty == column.ty).cloned().collect();
    let value = match same.is_empty() {
        true => constant(&mut g.rng, column.ty),
        false => pick(g, &same).sql,
    };
    let condition = match conditions.is_empty() {
        true => String::new(),
        false => format!(" where {}", conditions.join(" and ")),
    };
    format!("{value} {not}in (select {} from {}{condition})", column.sql, inner.from)
}

fn pick(g: &mut Generator<'_>, columns: &[Column]) -> Column {
    columns[g.below(columns.len() as u32) as usize].clone()
}
