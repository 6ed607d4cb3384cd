//! Parts that several expressions have in common are computed once.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion_common::Column;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::{BinaryExpr, Expr as Planned, Operator};
use datafusion_physical_plan::projection::ProjectionExec;

use super::{Operators, Translated, physical};

/// Replaces what the expressions have in common by columns; returns the rows with these.
pub(super) fn shared(input: Operators, mut exprs: Vec<&mut Planned>) -> Translated<Operators> {
    let mut uses: HashMap<Planned, usize> = HashMap::new();
    for expr in &exprs {
        expr.apply(|part| {
            if is_worth_it(part) {
                *uses.entry(part.clone()).or_default() += 1;
            }
            Ok(below(part))
        })?;
    }
    uses.retain(|_, count| *count > 1);
    if uses.is_empty() {
        return Ok(input);
    }
    let mut common: Vec<Planned> = Vec::new();
    for expr in &mut exprs {
        let replaced = std::mem::take(*expr).transform_down(|part| {
            if !uses.contains_key(&part) {
                let below = below(&part);
                return Ok(Transformed::new(part, false, below));
            }
            let at = common.iter().position(|other| *other == part).unwrap_or_else(|| {
                common.push(part);
                common.len() - 1
            });
            Ok(Transformed::new(column(at), true, TreeNodeRecursion::Jump))
        })?;
        **expr = replaced.data;
    }
    let schema = input.schema();
    let mut columns = Vec::new();
    for field in schema.fields() {
        let kept = Planned::Column(Column::new_unqualified(field.name()));
        if exprs.iter().any(|expr| expr.column_refs().iter().any(|c| c.name() == field.name())) {
            columns.push((physical(&kept, &schema)?, field.name().clone()));
        }
    }
    for (at, part) in common.iter().enumerate() {
        columns.push((physical(part, &schema)?, name_of(at)));
    }
    Ok(Arc::new(ProjectionExec::try_new(columns, input)?))
}

fn name_of(at: usize) -> String {
    format!("s{at}")
}

fn column(at: usize) -> Planned {
    Planned::Column(Column::new_unqualified(name_of(at)))
}

fn is_worth_it(part: &Planned) -> bool {
    !matches!(part, Planned::Column(_) | Planned::Literal(..))
}

/// What conditions may keep from being computed stays where it is: it may fail.
fn below(part: &Planned) -> TreeNodeRecursion {
    let is_conditional = match part {
        Planned::Case(_) => true,
        Planned::BinaryExpr(BinaryExpr { op, .. }) => matches!(op, Operator::And | Operator::Or),
        _ => false,
    };
    if is_conditional { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue }
}
