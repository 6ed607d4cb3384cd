//! Prepared statements and portals.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::in_use::Reads;
use super::types::{Description, Params};
use crate::parse::Statement;
use crate::plan::Planned;
use crate::sink::{ColumnDesc, CommandTag};
use crate::{DataType, Value};

/// A prepared statement. It belongs to the connection that prepared it.
#[derive(Debug)]
pub struct Prepared {
    pub(super) description: Description,
    pub(super) sql: String,
    /// Tells it from all others; 0 while it is being made.
    pub(super) number: u64,
    pub(super) body: Body,
}

impl Prepared {
    /// What has this plan.
    pub(super) fn of_plan(planned: Arc<Planned>, sql: &str) -> Self {
        let description =
            Description { params: Arc::clone(&planned.params), columns: planned.columns.clone() };
        let body = Body::Planned(Mutex::new(planned));
        Self { description, sql: sql.to_owned(), number: 0, body }
    }
}

/// What executing it means.
#[derive(Debug)]
pub(super) enum Body {
    Empty,
    /// A plan, made again when the catalog has changed. Locked for as long as it runs; a second connection that an
    /// embedder has given the statement to makes a plan of its own meanwhile.
    Planned(Mutex<Arc<Planned>>),
    /// Anything else is executed from its parsed form.
    Utility(Arc<Statement>),
}

impl Prepared {
    /// The types of the parameters.
    pub fn params(&self) -> &[DataType] {
        &self.description.params
    }

    /// The columns, if the statement returns rows. They don't change: if DDL has changed what the statement would
    /// return, executing it fails with "cached plan must not change result type".
    pub fn columns(&self) -> Option<&Arc<[ColumnDesc]>> {
        self.description.columns.as_ref()
    }

    /// The statement's text.
    pub fn sql(&self) -> &str {
        &self.sql
    }
}

/// A prepared statement with its parameters, ready to run or in the middle of it.
#[derive(Debug)]
pub struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) params: Params,
    pub(super) state: PortalState,
    /// What it reads, once it has been executed.
    pub(super) reads: Option<Reads>,
}

#[derive(Debug)]
pub(super) enum PortalState {
    Ready,
    /// It has begun, and is to be repeated where it may wait.
    Blocked,
    /// Rows that have been computed but not been asked for yet.
    Holding {
        rows: VecDeque<Vec<Value>>,
        tag: CommandTag,
    },
    Done,
}

impl Portal {
    /// The statement.
    pub fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }
}
