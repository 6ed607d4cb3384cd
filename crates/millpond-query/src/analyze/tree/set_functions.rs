//! Functions that return rows.

use std::sync::Arc;

use super::Slot;
use crate::expr::{Definition, Expr, Func};
use crate::system_relations::source_of;

/// Functions of a select list that return rows, side by side. Each row before them becomes as many
/// as the longest of them gives.
#[derive(Debug, Clone)]
pub(crate) struct SetStep {
    pub(crate) slot: Slot,
    pub(crate) functions: Vec<SetFunction>,
}

/// A function that returns rows.
#[derive(Debug, Clone, PartialEq)]
pub struct SetFunction {
    pub(crate) kind: SetFunctionKind,
    pub(crate) args: Vec<Expr>,
    /// How many columns it has.
    pub(crate) columns: usize,
}

impl SetFunction {
    /// Whether it gives plain values, not rows.
    pub(crate) fn is_of_values(&self) -> bool {
        self.columns == 1 && !matches!(self.kind, SetFunctionKind::Records(..))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SetFunctionKind {
    /// A function of the catalog that returns rows.
    Rows(Func),
    /// One whose call defines the columns of its rows.
    Records(Func, Arc<Definition>),
    /// A function whose rows are those of the system relation of this number.
    System(u32),
    /// A function that returns one value, as a row. Its only argument is the call itself.
    Value,
}

impl SetFunctionKind {
    /// The function's name, unless it is that of an expression.
    pub(crate) fn name(&self) -> Option<&'static str> {
        match self {
            Self::Rows(func) | Self::Records(func, _) => Some(func.name()),
            Self::System(oid) => source_of(*oid).map(|view| view.name),
            Self::Value => None,
        }
    }

    /// The function of the catalog.
    pub(crate) fn func(&self) -> Option<Func> {
        match self {
            Self::Rows(func) | Self::Records(func, _) => Some(*func),
            Self::System(_) | Self::Value => None,
        }
    }
}
