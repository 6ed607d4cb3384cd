//! Plans as lines of text, in PostgreSQL's words where it has them.

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::table::Direction;

use super::access::{Access, IndexRange, KeyBounds, KeyList, KeyPart, Matches, Tids};
use super::{
    ChangePlan, InsertPlan, InsertSource, Output, Plan, Planned, Results, SelectPlan, Target, query,
};
use crate::expr::{Arith, Compare, ElementComparison, Expr, SubPlanCall, cast};
use crate::{DataType, Value};

/// The lines of a plan. `workers` says how many threads help to scan a table, `accelerator` is the
/// setting of that name.
pub fn lines(
    planned: &Planned,
    workers: &dyn Fn(&TableDef) -> usize,
    accelerator: &str,
) -> Vec<String> {
    let mut lines = Vec::new();
    match &planned.plan {
        Plan::Select(plan) => select(plan, 0, &mut lines),
        Plan::Query(plan) => query::explain::lines(plan, (workers, accelerator), &mut lines),
        Plan::Insert(plan) => insert(plan, &mut lines),
        Plan::Change(plan) => change(plan, &mut lines),
    }
    lines
}

fn insert(plan: &InsertPlan, lines: &mut Vec<String>) {
    let rows = match &plan.source {
        InsertSource::Values(rows) => rows,
        InsertSource::Query(selected, values) => {
            let (values, returned) = (values.iter().collect(), returned(plan.returning.as_ref()));
            let table = &plan.table;
            query::explain::modification("Insert", selected, table, values, returned, lines);
            return;
        }
    };
    push(0, format!("Insert on {}", plan.table.name), lines);
    match rows.len() {
        1 => push(1, "Result".into(), lines),
        _ => push(1, "Values Scan on \"*VALUES*\"".into(), lines),
    }
}

fn change(plan: &ChangePlan, lines: &mut Vec<String>) {
    let what = if plan.set.is_some() { "Update" } else { "Delete" };
    match &plan.rows {
        Target::Accessed { access: found, filter, .. } => {
            push(0, format!("{what} on {}", plan.table.name), lines);
            let names = Names(&plan.table);
            access(&plan.table, found, filter.as_ref(), &names, 1, lines);
        }
        Target::Selected(selected) => {
            let values = plan.set.iter().flatten().map(|(_, value)| value).collect();
            let returned = returned(plan.returning.as_ref());
            let table = &plan.table;
            query::explain::modification(what, selected, table, values, returned, lines);
        }
    }
}

fn returned(returning: Option<&Output>) -> &[Expr] {
    returning.map_or(&[], |output| &output.exprs)
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

/// The columns of the only table.
struct Names<'a>(&'a TableDef);

/// What the parts of an expression are called.
pub(in crate::plan) trait Namer {
    fn column(&self, column: usize) -> String;

    fn param(&self, number: usize) -> String {
        format!("${}", number + 1)
    }

    fn subplan(&self, call: &SubPlanCall) -> String {
        format!("(SubPlan {})", call.number + 1)
    }
}

impl Namer for Names<'_> {
    fn column(&self, column: usize) -> String {
        self.0.columns.get(column).map_or_else(|| "?".to_owned(), |column| column.name.clone())
    }
}

fn select(plan: &SelectPlan, mut depth: usize, lines: &mut Vec<String>) {
    let results = &plan.results;
    limit(results, &mut depth, lines);
    if plan.lock.is_some() {
        push(depth, "LockRows".into(), lines);
        depth += 1;
    }
    let Some(table) = &plan.table else {
        push(depth, "Result".into(), lines);
        return;
    };
    let names = Names(table);
    if results.aggregates.is_some() {
        push(depth, "Aggregate".into(), lines);
        depth += 1;
    }
    access(table, &plan.access, plan.filter.as_ref(), &names, depth, lines);
}

fn limit(results: &Results, depth: &mut usize, lines: &mut Vec<String>) {
    if results.limit.is_some() || results.offset.is_some() {
        push(*depth, "Limit".into(), lines);
        *depth += 1;
    }
}

/// The condition of a Tid Scan.
pub(in crate::plan) fn tid_condition(tids: &Tids, names: &dyn Namer) -> String {
    match tids {
        Tids::Items(items) => match items.as_slice() {
            [one] => format!("(ctid = {})", show(one, names)),
            items => {
                let shown: Vec<String> = items.iter().map(|item| show(item, names)).collect();
                format!("(ctid = ANY (ARRAY[{}]))", shown.join(", "))
            }
        },
        Tids::Array(array) => format!("(ctid = ANY ({}))", show(array, names)),
    }
}

fn access(
    table: &TableDef,
    access: &Access,
    filter: Option<&Expr>,
    names: &Names<'_>,
    depth: usize,
    lines: &mut Vec<String>,
) {
    match access {
        Access::Nothing => push(depth, "Result".into(), lines),
        Access::Heap => push(depth, format!("Seq Scan on {}", table.name), lines),
        Access::Point { index, key } => {
            push(depth, format!("Index Scan using {} on {}", index.name, table.name), lines);
            let conditions = equalities(table, index, key, names);
            note(depth, format!("Index Cond: ({})", conditions.join(" AND ")), lines);
        }
        Access::Range(range) => index_range(table, range, names, depth, lines),
        Access::Tids(tids) => {
            push(depth, format!("Tid Scan on {}", table.name), lines);
            note(depth, format!("TID Cond: {}", tid_condition(tids, names)), lines);
        }
    }
    if let Some(filter) = filter {
        note(depth, format!("Filter: {}", show(filter, names)), lines);
    }
}

/// What the first columns of an index are equal to.
pub(in crate::plan) fn equalities(
    table: &TableDef,
    index: &IndexDef,
    parts: &[KeyPart],
    names: &dyn Namer,
) -> Vec<String> {
    columns(table, index).zip(parts).map(|(column, part)| equality(column, part, names)).collect()
}

fn columns<'t>(table: &'t TableDef, index: &'t IndexDef) -> impl Iterator<Item = &'t str> {
    index.columns.iter().map(|column| table.columns[column.column].name.as_str())
}

fn equality(column: &str, part: &KeyPart, names: &dyn Namer) -> String {
    match part.matches {
        Matches::Null => format!("{column} IS NULL"),
        _ => format!("{column} = {}", show(&part.expr, names)),
    }
}

/// The conditions that bounds of keys stand for.
pub(in crate::plan) fn conditions(
    table: &TableDef,
    index: &IndexDef,
    bounds: &KeyBounds,
    names: &dyn Namer,
) -> Vec<String> {
    let KeyBounds { equal, list, then, .. } = bounds;
    let mut conditions = equalities(table, index, equal, names);
    let mut columns = columns(table, index).skip(equal.len());
    if let Some(list) = list
        && let Some(name) = columns.next()
    {
        conditions.push(match list {
            KeyList::Items(parts) => {
                let list: Vec<String> = parts.iter().map(|part| show(&part.expr, names)).collect();
                format!("{name} IN ({})", list.join(", "))
            }
            KeyList::Array(part) => format!("{name} = ANY ({})", show(&part.expr, names)),
        });
        let pairs = then.iter().zip(&mut columns);
        conditions.extend(pairs.map(|(part, column)| equality(column, part, names)));
    }
    let Some(name) = columns.next() else { return conditions };
    for (end, ops) in [(&bounds.from, [">", ">="]), (&bounds.to, ["<", "<="])] {
        if let Some((part, inclusive)) = end {
            let op = ops[usize::from(*inclusive)];
            conditions.push(format!("{name} {op} {}", show(&part.expr, names)));
        }
    }
    if let Some(pattern) = &bounds.like {
        conditions.push(format!("{name} LIKE {}", show(&pattern.expr, names)));
    }
    if bounds.not_null {
        conditions.push(format!("{name} IS NOT NULL"));
    }
    conditions
}

fn index_range(
    table: &TableDef,
    range: &IndexRange,
    names: &Names<'_>,
    depth: usize,
    lines: &mut Vec<String>,
) {
    let way = if range.direction == Direction::Backward { " Backward" } else { "" };
    push(depth, format!("Index Scan{way} using {} on {}", range.index.name, table.name), lines);
    let each = range.any_of.iter();
    let each = each.map(|bounds| conditions(table, &range.index, bounds, names).join(" AND "));
    let shown = match range.any_of.len() {
        1 => each.collect(),
        _ => each.map(|one| format!("({one})")).collect::<Vec<_>>().join(" OR "),
    };
    if !shown.is_empty() {
        note(depth, format!("Index Cond: ({shown})"), lines);
    }
}

/// An expression as a reader would write it.
pub(in crate::plan) fn show(expr: &Expr, names: &dyn Namer) -> String {
    let all = |list: &[Expr], with: &str| {
        let parts: Vec<String> = list.iter().map(|e| show(e, names)).collect();
        parts.join(with)
    };
    match expr {
        Expr::Const(Value::Null) => "NULL".to_owned(),
        Expr::Const(
            value @ (Value::Text(_) | Value::Date(_) | Value::Timestamp(_) | Value::Timestamptz(_)),
        ) => {
            format!("'{}'", cast::to_text(&value.as_datum()).replace('\'', "''"))
        }
        Expr::Const(value @ Value::Other(oid, _)) => {
            let text = cast::to_text(&value.as_datum()).replace('\'', "''");
            let ty = DataType::Other { oid: *oid, typmod: -1 };
            format!("'{text}'::{ty}")
        }
        Expr::Const(value) => cast::to_text(&value.as_datum()),
        Expr::Param(number) => names.param(*number),
        Expr::Column(column) => names.column(*column),
        Expr::Neg(e) => format!("(- {})", show(e, names)),
        Expr::Arith(op, pair) => {
            format!("({} {} {})", show(&pair.0, names), symbol(*op), show(&pair.1, names))
        }
        Expr::Compare(op, pair) => {
            format!("({} {} {})", show(&pair.0, names), Compare::symbol(*op), show(&pair.1, names))
        }
        Expr::And(list) => format!("({})", all(list, " AND ")),
        Expr::Or(list) => format!("({})", all(list, " OR ")),
        Expr::Not(e) => format!("(NOT {})", show(e, names)),
        Expr::IsNull(e, not) => {
            format!("({} IS {}NULL)", show(e, names), if *not { "NOT " } else { "" })
        }
        Expr::In(e, list, not) => {
            let not = if *not { "NOT " } else { "" };
            format!("({} {not}IN ({}))", show(e, names), all(list, ", "))
        }
        Expr::Among(among) => {
            let not = if among.negated { "NOT " } else { "" };
            let constants: Vec<Expr> = among.shown().collect();
            format!("({} {not}IN ({}))", show(&among.value, names), all(&constants, ", "))
        }
        Expr::Cast(e, ty, _) => format!("({})::{ty}", show(e, names)),
        Expr::Concat(pair) => format!("({} || {})", show(&pair.0, names), show(&pair.1, names)),
        Expr::Coalesce(list) => format!("COALESCE({})", all(list, ", ")),
        Expr::Func(func, args) => {
            if let Some(ElementComparison { value, compare, all, array }) =
                expr.as_element_comparison()
            {
                let (value, array) = (show(value, names), show(array, names));
                let of = if all { "ALL" } else { "ANY" };
                return format!("({value} {} {of} ({array}))", compare.symbol());
            }
            if let Some(place) = expr.as_place_of_row() {
                return show(place, names);
            }
            if let Some((name, place)) = expr.as_column_of_row() {
                let place = show(place, names);
                return format!("{}{name}", place.strip_suffix("ctid").unwrap_or_default());
            }
            if let Some((value, operator, patterns)) = expr.as_pattern_comparison() {
                return format!("({} {operator} ({}))", show(value, names), show(patterns, names));
            }
            if let Some(elements) = expr.as_array_of() {
                return format!("ARRAY[{}]", all(elements, ", "));
            }
            format!("{}({})", func.name(), all(args, ", "))
        }
        Expr::Like(like) => {
            let not = if like.negated { "NOT " } else { "" };
            let op = if like.ignore_case { "ILIKE" } else { "LIKE" };
            format!("({} {not}{op} {})", show(&like.value, names), show(&like.pattern, names))
        }
        Expr::IsBool(e, what, not) => {
            let what = what.map_or("UNKNOWN", |b| if b { "TRUE" } else { "FALSE" });
            format!("({} IS {}{what})", show(e, names), if *not { "NOT " } else { "" })
        }
        Expr::Distinct(pair, not) => {
            let not = if *not { "NOT " } else { "" };
            format!("({} IS {not}DISTINCT FROM {})", show(&pair.0, names), show(&pair.1, names))
        }
        Expr::Case(..) => "CASE".to_owned(),
        Expr::Subquery(_) => "(SubPlan)".to_owned(),
        Expr::SubPlan(call) => names.subplan(call),
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
