//! VALUES.

use millpond_syntax::tree::{self, SortBy};

use super::Analyzer;
use super::level::{Clause, Level};
use super::namespace::Visible;
use super::query::{Typing, plain};
use super::targets::Target;
use super::tree::{Body, Values, column};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion, Typed};
use crate::expr::types::{Ty, unify};
use crate::plan::query::node::SlotKind;
use crate::plan::{check_target_count, check_width};
use crate::sink::ColumnDesc;

impl Analyzer<'_> {
    /// Analyzes VALUES with the ORDER BY behind it.
    pub(super) fn values(
        &self,
        written: &[Vec<tree::Expr>],
        order_by: &[SortBy],
        outer: Option<&Level<'_>>,
        settle: bool,
        binder: &mut Binder<'_>,
    ) -> Result<Typing> {
        let level = Level::new(self, outer, &[]);
        level.clause.set(Clause::Values);
        let width = written.first().map_or(0, Vec::len);
        check_target_count(width)?;
        let mut rows = Vec::with_capacity(written.len());
        for row in written {
            check_width(row, written, &self.source)?;
            let row = row.iter().map(|e| binder.bind(e, &level));
            rows.push(row.collect::<Result<Vec<Typed>>>()?);
        }
        let mut types = Vec::with_capacity(width);
        for at in 0..width {
            let ty = unify(rows.iter().map(|row| row[at].ty)).map_err(|(a, b)| {
                let error = SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("VALUES types {} and {} cannot be matched", a.base(), b.base()),
                );
                let odd = rows.iter().position(|row| row[at].ty == Ty::Known(b));
                match odd.and_then(|odd| written[odd].get(at)) {
                    Some(e) => binder.place_at(error, e),
                    None => error,
                }
            })?;
            types.push(ty);
        }
        // A literal of one row may be left to the query around it; of several, it is text.
        let unknown: Vec<bool> =
            types.iter().map(|ty| *ty == Ty::Unknown && !settle && rows.len() == 1).collect();
        let types: Vec<DataType> = types
            .into_iter()
            .map(|ty| match ty {
                Ty::Known(ty) => ty,
                Ty::Unknown => DataType::Text,
            })
            .collect();
        let mut bound = Vec::with_capacity(rows.len());
        for (row, written) in rows.into_iter().zip(written) {
            let mut exprs: Vec<Expr> = Vec::with_capacity(width);
            for (at, typed) in row.into_iter().enumerate() {
                exprs.push(match unknown[at] {
                    true => typed.expr,
                    false => binder
                        .coerce(typed, types[at], Coercion::Implicit)
                        .map_err(|error| binder.place_literal(error, &[&written[at]]))?,
                });
            }
            bound.push(exprs);
        }
        let columns: Vec<ColumnDesc> = types
            .iter()
            .enumerate()
            .map(|(at, ty)| ColumnDesc::computed(format!("column{}", at + 1), *ty))
            .collect();
        let slot = self.item_slot(SlotKind::Computed(width), "*VALUES*", &columns)?;
        let own = Visible::new(slot, "*VALUES*", None, columns.clone());
        let own = level.add(slot, own);
        level.visible.replace(own);
        let targets: Vec<Target> = columns
            .iter()
            .enumerate()
            .map(|(at, desc)| Target::of_column(column(slot, at), desc))
            .collect();
        let order_by = level.order_by(order_by, &targets, binder)?;
        let mut query = plain(Body::Values(Values { slot, rows: bound }), columns);
        query.order_by = order_by;
        let visible = level.visible.take();
        Ok(Typing { query, visible, unknown, marked: Vec::new() })
    }
}
