//! From an aggregation of a plan to a logical plan of DataFusion.
//!
//! The row of slot `n` is a relation `tn` with columns `c0`, `c1` and so on. A condition of a scan
//! may use other slots than its own, because a nested loop looks rows up by key. It becomes a
//! condition of the join above it.

mod aggregate;
mod expression;
mod nodes;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Column, TableReference};
use datafusion::logical_expr::{Expr as Planned, LogicalPlan};
use millpond_query::plan::external::{Aggregation, LocalSurroundings, Surroundings, slot_of};
use millpond_query::query::TableScanner;
use millpond_types::DataType;

use super::errors::Failure;

pub use aggregate::Result as ResultColumn;

/// Something that has no translation is declined.
type Translated<T> = Result<T, Failure>;

/// An aggregation as DataFusion computes it.
pub struct Translation {
    pub plan: LogicalPlan,
    /// The types of the plan's columns.
    pub types: Vec<DataType>,
    /// The values of a group's keys and calls, of a row of the plan.
    pub results: Vec<ResultColumn>,
}

/// Translates an aggregation over the tables of `scanner`.
pub fn translate(
    aggregation: &Aggregation<'_>,
    scanner: &Arc<dyn TableScanner>,
) -> Translated<Translation> {
    let mut translator = Translator {
        scanner,
        surroundings: aggregation.surroundings,
        local: aggregation.surroundings.local(),
        types: HashMap::new(),
    };
    translator.aggregation(aggregation.aggregate)
}

struct Translator<'a> {
    scanner: &'a Arc<dyn TableScanner>,
    surroundings: &'a Arc<Surroundings>,
    local: LocalSurroundings,
    /// Of each slot the types of its columns; `None`: not computed here.
    types: HashMap<u16, Vec<Option<DataType>>>,
}

/// An expression with its type in SQL.
#[derive(Debug, Clone)]
struct Typed {
    expr: Planned,
    ty: DataType,
}

fn relation(slot: u16) -> TableReference {
    TableReference::bare(format!("t{slot}"))
}

fn name_of(place: usize) -> String {
    format!("c{place}")
}

/// The column of a slot.
fn column(packed: usize) -> Planned {
    let (slot, place) = slot_of(packed);
    Planned::Column(Column::new(Some(relation(slot.0)), name_of(place)))
}
