//! SEARCH and CYCLE of WITH RECURSIVE: columns that rows get beside their own.
//!
//! The start and the step each become the FROM of a SELECT that computes the further columns: the
//! start's from the row alone, the step's from the row and from those of the row that it comes
//! from. The step gives the latter behind its own columns.

use millpond_syntax::tree::{
    self, AExpr, AExprKind, CaseExpr, CaseWhen, CommonTableExpr, CteCycleClause, CteSearchClause,
    Field, FuncCall, Name, Node, Operand, SelectBody, SelectStmt,
};
use millpond_types::other::{self, RECORD};

use super::super::Analyzer;
use super::super::level::Level;
use super::super::namespace::Visible;
use super::super::query::{Typing, plain};
use super::super::tree::{Body, Distinct, FromItem, Query, Select, Slot, column};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{Binder, Coercion, Typed, field_call};
use crate::expr::types::{Ty, unify};
use crate::expr::{Arith, Expr};
use crate::plan::query::node::SlotKind;
use crate::sink::ColumnDesc;
use crate::{DataType, Value};

/// The clauses of a query of WITH.
pub(super) struct Clauses<'d> {
    search: Option<&'d CteSearchClause>,
    cycle: Option<Cycle<'d>>,
}

struct Cycle<'d> {
    clause: &'d CteCycleClause,
    /// The type of the column that marks a cycle.
    mark: DataType,
}

/// Which rows a SELECT around a part of the query is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Start,
    Step,
}

impl<'d> Clauses<'d> {
    /// The clauses of a recursive query whose own columns have these names. `None`: it has none.
    pub(super) fn of(
        analyzer: &Analyzer<'_>,
        definition: &'d CommonTableExpr,
        columns: &[ColumnDesc],
        outer: Option<&Level<'_>>,
        binder: &mut Binder<'_>,
    ) -> Result<Option<Self>> {
        let (search, cycle) = (definition.search_clause.as_ref(), definition.cycle_clause.as_ref());
        if search.is_none() && cycle.is_none() {
            return Ok(None);
        }
        let placed = |at| move |error| analyzer.source.place(error, at);
        if let Some(search) = search {
            let names = (search.search_col_list.as_slice(), "search column");
            let new = [(&search.search_seq_column, "search sequence column")];
            check_columns(names, &new, columns).map_err(placed(search.location))?;
        }
        if let Some(cycle) = cycle {
            let names = (cycle.cycle_col_list.as_slice(), "cycle column");
            let new = [
                (&cycle.cycle_mark_column, "cycle mark column"),
                (&cycle.cycle_path_column, "cycle path column"),
            ];
            check_columns(names, &new, columns).map_err(placed(cycle.location))?;
        }
        if let (Some(search), Some(cycle)) = (search, cycle) {
            let sequence = (&search.search_seq_column, "search sequence column");
            let others = [
                (&cycle.cycle_mark_column, "cycle mark column"),
                (&cycle.cycle_path_column, "cycle path column"),
            ];
            others
                .into_iter()
                .try_for_each(|other| check_differ(sequence, other))
                .map_err(placed(search.location))?;
        }
        let cycle = match cycle {
            Some(clause) => {
                let mark = mark_type(analyzer, clause, outer, binder)?;
                Some(Cycle { clause, mark })
            }
            None => None,
        };
        Ok(Some(Clauses { search, cycle }))
    }

    /// The further columns.
    pub(super) fn columns(&self) -> Vec<ColumnDesc> {
        let records =
            DataType::Other { oid: other::array_of(RECORD).map_or(0, |ty| ty.oid), typmod: -1 };
        let mut columns = Vec::new();
        if let Some(search) = self.search {
            let record = DataType::Other { oid: RECORD, typmod: -1 };
            let ty = if search.search_breadth_first { record } else { records };
            columns.push(ColumnDesc::computed(&*search.search_seq_column, ty));
        }
        if let Some(Cycle { clause, mark }) = &self.cycle {
            columns.push(ColumnDesc::computed(&*clause.cycle_mark_column, *mark));
            columns.push(ColumnDesc::computed(&*clause.cycle_path_column, records));
        }
        columns
    }

    /// Refuses sides of UNION that are not SELECTs.
    pub(super) fn check_sides(&self, left: &SelectStmt, right: &SelectStmt) -> Result<()> {
        let is_set =
            |side: &SelectStmt| matches!(side.body, SelectBody::SetOp { .. }) && is_plain(side);
        let refused = |state, side| {
            let what = format!(
                "with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT"
            );
            Err(SqlError::new(state, what))
        };
        match () {
            () if is_set(left) => refused(SqlState::FEATURE_NOT_SUPPORTED, "left"),
            () if is_set(right) => refused(SqlState::SYNTAX_ERROR, "right"),
            () => Ok(()),
        }
    }

    /// Makes the step give the further columns of the row that its own comes from.
    pub(super) fn widen_step(&self, name: &str, step: &mut Typing, own: usize) -> Result<()> {
        let not_at_top = || {
            SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "with a SEARCH or CYCLE clause, the recursive reference to WITH query \"{name}\" must be at the top level of its right-hand SELECT"
                ),
            )
        };
        let Body::Select(select) = &mut step.query.body else { return Err(not_at_top()) };
        let slot = select.from.iter().find_map(work_table).ok_or_else(not_at_top)?;
        if !matches!(select.distinct, Distinct::No) || select.grouping.is_some() {
            return Err(SqlError::unsupported("SEARCH or CYCLE of a step with groups or DISTINCT"));
        }
        for (nth, desc) in self.columns().into_iter().enumerate() {
            select.targets.push(Expr::Column(column(slot, own + nth)));
            step.query.columns.push(desc);
            step.unknown.push(false);
        }
        Ok(())
    }

    /// The SELECT around the start or the step that has all columns. `own` are the query's own.
    pub(super) fn around(
        &self,
        analyzer: &Analyzer<'_>,
        inner: Query,
        part: Part,
        own: &[ColumnDesc],
        binder: &mut Binder<'_>,
    ) -> Result<Query> {
        let further = self.columns();
        let mut named = own.to_vec();
        if part == Part::Step {
            named.extend(further.iter().cloned());
        }
        let alias = "*SELECT*".to_owned();
        let slot = analyzer.item_slot(SlotKind::Computed(named.len()), &alias, &named)?;
        let level = Level::new(analyzer, None, &[]);
        let visible = level.add(slot, Visible::new(slot, &alias, None, named));
        level.visible.replace(visible);
        let mut targets: Vec<Expr> =
            (0..own.len()).map(|place| Expr::Column(column(slot, place))).collect();
        let mut condition = None;
        if let Some(search) = self.search {
            targets.push(searched(search, part, &level, binder)?);
        }
        if let Some(cycle) = &self.cycle {
            let (mark, path) = cycle.computed(part, &level, binder)?;
            targets.extend([mark, path]);
            if part == Part::Step {
                condition = Some(binder.condition(&cycle.goes_on(), "WHERE", &level)?);
            }
        }
        let from = vec![FromItem::Subquery { slot, query: Box::new(inner), alias }];
        let select = Select { condition, ..Select::of(from, targets) };
        let columns = own.iter().cloned().chain(further).collect();
        Ok(plain(Body::Select(Box::new(select)), columns))
    }
}

impl Cycle<'_> {
    /// The mark and the path.
    fn computed(
        &self,
        part: Part,
        level: &Level<'_>,
        binder: &mut Binder<'_>,
    ) -> Result<(Expr, Expr)> {
        let clause = self.clause;
        let row = row_of(&clause.cycle_col_list);
        let mark = match part {
            Part::Start => clause.cycle_mark_default.clone(),
            Part::Step => {
                let is_there =
                    operator(AExprKind::OpAny, "=", row.clone(), named(&clause.cycle_path_column));
                let value = clause.cycle_mark_value.clone();
                let when = CaseWhen { expr: is_there, result: value, location: clause.location };
                let otherwise = Some(clause.cycle_mark_default.clone());
                let case = CaseExpr { arg: None, args: vec![when], defresult: otherwise };
                node(Node::CaseExpr(Box::new(case)))
            }
        };
        let mark = binder.bind_as(&mark, self.mark, Coercion::Implicit, level)?;
        let path = appended(part, &clause.cycle_path_column, row);
        Ok((mark, binder.output(&path, level)?.0))
    }

    /// Rows that come from a marked one are left out.
    fn goes_on(&self) -> tree::Expr {
        let mark = named(&self.clause.cycle_mark_column);
        operator(AExprKind::Op, "<>", mark, self.clause.cycle_mark_value.clone())
    }
}

/// The column by which rows are sorted.
fn searched(
    search: &CteSearchClause,
    part: Part,
    level: &Level<'_>,
    binder: &mut Binder<'_>,
) -> Result<Expr> {
    let (columns, sequence) = (&search.search_col_list, &search.search_seq_column);
    if !search.search_breadth_first {
        return Ok(binder.output(&appended(part, sequence, row_of(columns)), level)?.0);
    }
    // How many steps there are before the row, then its columns.
    let depth = match part {
        Part::Start => Expr::Const(Value::Int8(0)),
        Part::Step => {
            let (before, _) = binder.output(&named(sequence), level)?;
            let one = Expr::Const(Value::Int8(1));
            Expr::Arith(Arith::Add, Box::new((field_call(&before, 0), one)))
        }
    };
    let (mut fields, mut values) = (vec![("f1".to_owned(), DataType::Int8)], vec![depth]);
    for name in columns {
        let (value, ty) = binder.output(&named(name), level)?;
        values.push(value);
        fields.push((format!("f{}", fields.len() + 1), ty));
    }
    Ok(binder.records.make(fields, Expr::Const(Value::Bool(true)), values)?.0)
}

/// The type of the column that marks cycles.
fn mark_type(
    analyzer: &Analyzer<'_>,
    clause: &CteCycleClause,
    outer: Option<&Level<'_>>,
    binder: &mut Binder<'_>,
) -> Result<DataType> {
    let level = Level::new(analyzer, outer, &[]);
    let value = binder.bind(&clause.cycle_mark_value, &level)?;
    let other = binder.bind(&clause.cycle_mark_default, &level)?;
    let common = unify([value.ty, other.ty]).map_err(|(a, b)| {
        let what = format!("CYCLE types {} and {} cannot be matched", a.base(), b.base());
        binder
            .place_at(SqlError::new(SqlState::DATATYPE_MISMATCH, what), &clause.cycle_mark_default)
    })?;
    let ty = if let Ty::Known(ty) = common { ty } else { DataType::Text };
    for (typed, written) in [(value, &clause.cycle_mark_value), (other, &clause.cycle_mark_default)]
    {
        let Typed { expr, ty: own } = typed;
        binder
            .coerce(Typed { expr, ty: own }, ty, Coercion::Implicit)
            .map_err(|error| binder.place_literal(error, &[written]))?;
    }
    Ok(ty)
}

/// Checks the columns that a clause names, and those that it adds.
fn check_columns(
    (names, what): (&[Name], &str),
    new: &[(&Name, &str)],
    columns: &[ColumnDesc],
) -> Result<()> {
    let is_there = |name: &Name| columns.iter().any(|column| column.name == **name);
    for (at, name) in names.iter().enumerate() {
        if !is_there(name) {
            let what = format!("{what} \"{name}\" not in WITH query column list");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, what));
        }
        if names[..at].contains(name) {
            let what = format!("{what} \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, what));
        }
    }
    for (name, what) in new {
        if is_there(name) {
            let what = format!("{what} name \"{name}\" already used in WITH query column list");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, what));
        }
    }
    match new {
        [one, other] => check_differ(*one, *other),
        _ => Ok(()),
    }
}

fn check_differ((one, what): (&Name, &str), (other, whose): (&Name, &str)) -> Result<()> {
    if one != other {
        return Ok(());
    }
    let what = format!("{what} name and {whose} name are the same");
    Err(SqlError::new(SqlState::SYNTAX_ERROR, what))
}

/// A side without clauses of its own.
fn is_plain(side: &SelectStmt) -> bool {
    side.with_clause.is_none()
        && side.sort_clause.is_empty()
        && side.limit_count.is_none()
        && side.limit_offset.is_none()
        && side.locking_clause.is_empty()
}

/// Where an item of FROM has the rows of the round before.
fn work_table(item: &FromItem) -> Option<Slot> {
    match item {
        FromItem::WorkTable { slot, .. } => Some(*slot),
        FromItem::Join(join) => work_table(&join.left).or_else(|| work_table(&join.right)),
        _ => None,
    }
}

/// `ARRAY[row]`, or the array of a column with the row behind it.
fn appended(part: Part, array: &Name, row: tree::Expr) -> tree::Expr {
    if part == Part::Start {
        return node(Node::AArrayExpr(vec![row]));
    }
    let name = vec!["pg_catalog".into(), "array_append".into()];
    let call = FuncCall::new(name, vec![named(array), row], tree::CoercionForm::ExplicitCall);
    node(Node::FuncCall(Box::new(call)))
}

fn row_of(names: &[Name]) -> tree::Expr {
    let parts = names.iter().map(named).collect();
    node(Node::RowExpr(parts, tree::CoercionForm::ExplicitCall))
}

fn named(name: &Name) -> tree::Expr {
    node(Node::ColumnRef(vec![Field::String(name.clone())]))
}

fn operator(kind: AExprKind, name: &str, left: tree::Expr, right: tree::Expr) -> tree::Expr {
    let (lexpr, rexpr) = (Some(left), Operand::Expr(right));
    node(Node::AExpr(Box::new(AExpr { kind, name: vec![name.into()], lexpr, rexpr })))
}

fn node(node: Node) -> tree::Expr {
    tree::Expr { node, location: 0 }
}
