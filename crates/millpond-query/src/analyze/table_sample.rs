//! TABLESAMPLE.

use millpond_syntax::tree::{self, RangeTableSample};

use super::from::Named;
use super::level::{Clause, Level};
use super::tree::{FromItem, TableSample};
use crate::DataType;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, Coercion};
use crate::expr::types::{Ty, is_assignable};
use crate::system_relations::is_system;

impl Level<'_> {
    /// Some rows of a table. How many may depend on the queries around, but on no item beside it.
    pub(super) fn sample(
        &self,
        written: &RangeTableSample,
        binder: &mut Binder<'_>,
    ) -> Result<Named> {
        let placed = |error| self.analyzer.source.place(error, written.location);
        let (item, names) = self.named(&written.relation)?;
        let (slot, table, alias) = match item {
            FromItem::Table { table, .. } if is_system(&table) => {
                return Err(SqlError::unsupported("TABLESAMPLE of a system relation"));
            }
            FromItem::Table { slot, table, alias } => (slot, table, alias),
            _ => {
                let what =
                    "TABLESAMPLE clause can only be applied to tables and materialized views";
                let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what);
                return Err(self.analyzer.source.place(error, written.relation.location));
            }
        };
        let method = written.method.last().map_or("", |name| name);
        let is_of_catalog = |schema: &tree::Name| &**schema == "pg_catalog";
        let in_catalog = written.method.iter().rev().skip(1).all(is_of_catalog);
        let is_system = match method {
            "bernoulli" if in_catalog => false,
            "system" if in_catalog => true,
            _ => {
                let what = format!("tablesample method {method} does not exist");
                return Err(placed(SqlError::new(SqlState::UNDEFINED_OBJECT, what)));
            }
        };
        let [percent] = written.args.as_slice() else {
            let count = written.args.len();
            let what = format!("tablesample method {method} requires 1 argument, not {count}");
            return Err(placed(SqlError::new(SqlState::INVALID_TABLESAMPLE_ARGUMENT, what)));
        };
        let mut number = |e, ty, what| {
            self.seeing(Vec::new(), || {
                self.within(Clause::Function, || self.number(e, ty, what, binder))
            })
        };
        let percent = number(percent, DataType::Float4, "TABLESAMPLE")?;
        let seed = written.repeatable.as_ref();
        let seed = seed.map(|e| number(e, DataType::Float8, "REPEATABLE")).transpose()?;
        let sample = Box::new(TableSample { is_system, percent, seed });
        Ok((FromItem::Sample { slot, table, alias, sample }, names))
    }

    fn number(
        &self,
        e: &tree::Expr,
        ty: DataType,
        what: &str,
        binder: &mut Binder<'_>,
    ) -> Result<Expr> {
        let typed = binder.bind(e, self)?;
        if let Ty::Known(own) = typed.ty
            && !is_assignable(own, ty)
        {
            let what = format!("argument of {what} must be type {ty}, not type {own}");
            let error = SqlError::new(SqlState::DATATYPE_MISMATCH, what);
            return Err(binder.place_at(error, e));
        }
        binder
            .coerce(typed, ty, Coercion::Assignment)
            .map_err(|error| binder.place_literal(error, &[e]))
    }
}
