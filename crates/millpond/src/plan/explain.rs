//! Plans as lines of text, in PostgreSQL's words where it has them.

use millpond_engine::catalog::TableDef;
use millpond_engine::table::Direction;

use super::access::{Access, IndexRange, KeyPart};
use super::{InsertSource, Plan, Planned, SelectPlan, Target};
use crate::Value;
use crate::expr::{Arith, Compare, Expr, cast};

/// The lines of a plan. Plans of the query engine explain themselves.
pub(crate) fn lines(planned: &Planned) -> Vec<String> {
    let mut lines = Vec::new();
    match &planned.plan {
        Plan::Select(plan) => select(plan, 0, &mut lines),
        Plan::Insert(plan) => {
            push(0, format!("Insert on {}", plan.table.name), &mut lines);
            match &plan.source {
                InsertSource::Values(rows) if rows.len() == 1 => {
                    push(1, "Result".into(), &mut lines)
                }
                InsertSource::Values(rows) => {
                    push(1, format!("Values Scan ({} rows)", rows.len()), &mut lines);
                }
                InsertSource::Query(inner, _) => match &inner.plan {
                    Plan::Select(plan) => select(plan, 1, &mut lines),
                    _ => push(1, "Query".into(), &mut lines),
                },
            }
        }
        Plan::Change(plan) => {
            let what = if plan.set.is_some() { "Update" } else { "Delete" };
            push(0, format!("{what} on {}", plan.table.name), &mut lines);
            match &plan.rows {
                Target::Accessed { access: found, filter, .. } => {
                    access(&plan.table, found, filter.as_ref(), 1, &mut lines);
                }
                Target::Selected(_) => push(1, "Query".into(), &mut lines),
            }
        }
        Plan::External(_) => {}
    }
    lines
}

fn push(depth: usize, text: String, lines: &mut Vec<String>) {
    lines.push(match depth {
        0 => text,
        depth => format!("{}->  {text}", " ".repeat(6 * depth - 4)),
    });
}

fn note(depth: usize, text: String, lines: &mut Vec<String>) {
    lines.push(format!("{}{text}", " ".repeat(6 * depth + 2)));
}

fn select(plan: &SelectPlan, mut depth: usize, lines: &mut Vec<String>) {
    if plan.limit.is_some() || plan.offset.is_some() {
        push(depth, "Limit".into(), lines);
        depth += 1;
    }
    if plan.lock.is_some() {
        push(depth, "LockRows".into(), lines);
        depth += 1;
    }
    let Some(table) = &plan.table else {
        push(depth, "Result".into(), lines);
        return;
    };
    if !plan.sort.is_empty() {
        push(depth, "Sort".into(), lines);
        let keys: Vec<String> = plan
            .sort
            .iter()
            .map(|key| {
                let way = if key.descending { " DESC" } else { "" };
                format!("{}{way}", show(&key.expr, table))
            })
            .collect();
        note(depth, format!("Sort Key: {}", keys.join(", ")), lines);
        depth += 1;
    }
    if plan.aggregates.is_some() {
        push(depth, "Aggregate".into(), lines);
        depth += 1;
    }
    access(table, &plan.access, plan.filter.as_ref(), depth, lines);
}

fn access(
    table: &TableDef,
    access: &Access,
    filter: Option<&Expr>,
    depth: usize,
    lines: &mut Vec<String>,
) {
    match access {
        Access::Nothing => push(depth, "Result".into(), lines),
        Access::Heap => push(depth, format!("Seq Scan on {}", table.name), lines),
        Access::Point { index, key } => {
            push(depth, format!("Index Scan using {} on {}", index.name, table.name), lines);
            let conditions = equalities(table, &index.columns, key);
            note(depth, format!("Index Cond: ({})", conditions.join(" AND ")), lines);
        }
        Access::Range(range) => index_range(table, range, depth, lines),
    }
    if let Some(filter) = filter {
        note(depth, format!("Filter: {}", show(filter, table)), lines);
    }
}

fn equalities(
    table: &TableDef,
    columns: &[millpond_engine::catalog::IndexColumn],
    parts: &[KeyPart],
) -> Vec<String> {
    parts
        .iter()
        .zip(columns)
        .map(|(part, column)| {
            format!("{} = {}", table.columns[column.column].name, show(&part.expr, table))
        })
        .collect()
}

fn index_range(table: &TableDef, range: &IndexRange, depth: usize, lines: &mut Vec<String>) {
    let way = if range.direction == Direction::Backward { " Backward" } else { "" };
    push(depth, format!("Index Scan{way} using {} on {}", range.index.name, table.name), lines);
    let mut conditions = equalities(table, &range.index.columns, &range.equal);
    if let Some(column) = range.index.columns.get(range.equal.len()) {
        let name = &table.columns[column.column].name;
        if let Some(list) = &range.list {
            let list: Vec<String> = list.iter().map(|part| show(&part.expr, table)).collect();
            conditions.push(format!("{name} IN ({})", list.join(", ")));
        }
        if let Some((part, inclusive)) = &range.from {
            let op = if *inclusive { ">=" } else { ">" };
            conditions.push(format!("{name} {op} {}", show(&part.expr, table)));
        }
        if let Some((part, inclusive)) = &range.to {
            let op = if *inclusive { "<=" } else { "<" };
            conditions.push(format!("{name} {op} {}", show(&part.expr, table)));
        }
    }
    if !conditions.is_empty() {
        note(depth, format!("Index Cond: ({})", conditions.join(" AND ")), lines);
    }
}

/// An expression as a reader would write it.
fn show(expr: &Expr, table: &TableDef) -> String {
    let all = |list: &[Expr], with: &str| {
        let parts: Vec<String> = list.iter().map(|e| show(e, table)).collect();
        parts.join(with)
    };
    match expr {
        Expr::Const(Value::Null) => "NULL".to_owned(),
        Expr::Const(
            value @ (Value::Text(_) | Value::Date(_) | Value::Timestamp(_) | Value::Timestamptz(_)),
        ) => {
            format!("'{}'", cast::to_text(&value.as_datum()).replace('\'', "''"))
        }
        Expr::Const(value) => cast::to_text(&value.as_datum()),
        Expr::Param(number) => format!("${}", number + 1),
        Expr::Column(column) => {
            table.columns.get(*column).map_or_else(|| "?".to_owned(), |c| c.name.clone())
        }
        Expr::Neg(e) => format!("(- {})", show(e, table)),
        Expr::Arith(op, pair) => {
            format!("({} {} {})", show(&pair.0, table), symbol(*op), show(&pair.1, table))
        }
        Expr::Compare(op, pair) => {
            format!("({} {} {})", show(&pair.0, table), Compare::symbol(*op), show(&pair.1, table))
        }
        Expr::And(list) => format!("({})", all(list, " AND ")),
        Expr::Or(list) => format!("({})", all(list, " OR ")),
        Expr::Not(e) => format!("(NOT {})", show(e, table)),
        Expr::IsNull(e, not) => {
            format!("({} IS {}NULL)", show(e, table), if *not { "NOT " } else { "" })
        }
        Expr::In(e, list, not) => {
            let not = if *not { "NOT " } else { "" };
            format!("({} {not}IN ({}))", show(e, table), all(list, ", "))
        }
        Expr::Cast(e, ty, _) => format!("({})::{ty}", show(e, table)),
        Expr::Concat(pair) => format!("({} || {})", show(&pair.0, table), show(&pair.1, table)),
        Expr::Coalesce(list) => format!("COALESCE({})", all(list, ", ")),
        Expr::Func(func, args) => {
            format!("{}({})", format!("{func:?}").to_lowercase(), all(args, ", "))
        }
        Expr::Like(like) => {
            let not = if like.negated { "NOT " } else { "" };
            let op = if like.ignore_case { "ILIKE" } else { "LIKE" };
            format!("({} {not}{op} {})", show(&like.value, table), show(&like.pattern, table))
        }
        Expr::IsBool(e, what, not) => {
            let what = what.map_or("UNKNOWN", |b| if b { "TRUE" } else { "FALSE" });
            format!("({} IS {}{what})", show(e, table), if *not { "NOT " } else { "" })
        }
        Expr::Distinct(pair, not) => {
            let not = if *not { "NOT " } else { "" };
            format!("({} IS {not}DISTINCT FROM {})", show(&pair.0, table), show(&pair.1, table))
        }
        Expr::Case(..) => "CASE".to_owned(),
    }
}

fn symbol(op: Arith) -> &'static str {
    match op {
        Arith::Add => "+",
        Arith::Sub => "-",
        Arith::Mul => "*",
        Arith::Div => "/",
        Arith::Rem => "%",
        Arith::Power => "^",
        Arith::BitAnd => "&",
        Arith::BitOr => "|",
        Arith::BitXor => "#",
        Arith::ShiftLeft => "<<",
        Arith::ShiftRight => ">>",
    }
}
