//! From an aggregation of a plan to operators of DataFusion.
//!
//! The planner of `millpond-query` has decided the order of joins, what is hashed, and where
//! conditions are checked. Each node becomes the operators that do this, so DataFusion plans
//! nothing. A column is called by its slot and its place in it, which is one name in a whole plan.
//!
//! A condition of a scan may use other slots than its own, because a nested loop looks rows up by
//! key. It becomes a condition of the join above it.

mod aggregate;
mod expression;
mod group;
mod join;
mod nodes;
mod operand_types;
mod share;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_common::{Column, DFSchema};
use datafusion_expr::Expr as Planned;
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use millpond_query::expr::Expr;
use millpond_query::plan::external::{Aggregation, LocalSurroundings, Surroundings, slot_of};
use millpond_query::query::TableScanner;
use millpond_types::DataType;

use super::errors::Failure;

pub use aggregate::Result as ResultColumn;

/// Something that has no translation is declined.
type Translated<T> = Result<T, Failure>;

/// Operators, in the form that inputs of operators have.
type Operators = Arc<dyn ExecutionPlan>;

/// Columns of slots, as expressions have them.
type Columns = BTreeSet<usize>;

/// An aggregation as DataFusion computes it.
pub struct Translation {
    pub plan: Operators,
    /// The types of the plan's columns.
    pub types: Vec<DataType>,
    /// The values of a group's keys and calls, of a row of the plan.
    pub results: Vec<ResultColumn>,
}

/// Translates an aggregation over the tables of `scanner`. Large tables, joins and aggregations are
/// computed in `parts`.
pub fn translate(
    aggregation: &Aggregation<'_>,
    scanner: &Arc<dyn TableScanner>,
    parts: usize,
) -> Translated<Translation> {
    let mut translator = Translator {
        scanner,
        surroundings: aggregation.surroundings,
        local: aggregation.surroundings.local(),
        types: HashMap::new(),
        passed: nodes::passed_columns(&aggregation.aggregate.input)?,
        parts,
    };
    translator.aggregation(aggregation.aggregate)
}

struct Translator<'a> {
    scanner: &'a Arc<dyn TableScanner>,
    surroundings: &'a Arc<Surroundings>,
    local: LocalSurroundings,
    /// Of each slot the types of its columns; `None`: not computed here.
    types: HashMap<u16, Vec<Option<DataType>>>,
    /// What conditions use that a scan leaves to a join.
    passed: Columns,
    parts: usize,
}

/// An expression with its type in SQL.
#[derive(Debug, Clone)]
struct Typed {
    expr: Planned,
    ty: DataType,
}

fn name_of(packed: usize) -> String {
    let (slot, place) = slot_of(packed);
    format!("t{}c{place}", slot.0)
}

/// The column of a slot.
fn column(packed: usize) -> Planned {
    Planned::Column(Column::new_unqualified(name_of(packed)))
}

/// Adds the columns that an expression uses.
fn add_columns(expr: &Expr, columns: &mut Columns) {
    expr.walk(&mut |e| {
        if let Expr::Column(column) = e {
            columns.insert(*column);
        }
    });
}

/// An expression over rows of a schema.
fn physical(expr: &Planned, schema: &SchemaRef) -> Translated<Arc<dyn PhysicalExpr>> {
    let schema = DFSchema::try_from(Arc::clone(schema))?;
    let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
    Ok(create_physical_expr(expr, &schema, &props, &context)?)
}

/// How many parts of operators' rows there are, which are computed side by side.
fn parts_of(plan: &Operators) -> usize {
    plan.output_partitioning().partition_count()
}
