//! The seam for a second executor, which aggregates large inputs faster.
//!
//! Every plan can be run by this crate. An [`Accelerator`] may run an aggregation of tables and
//! joins instead, if it has the same rows. It says when it can't tell; then the rows are computed
//! here. So it decides how fast an answer is, and neither what it is nor what an error says.

use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::advisory::Notices;
use crate::error::Result;
use crate::expr::{Env, Facts, Row};
use crate::query::TableScanner;
use crate::run::average_of;
use crate::settings::SessionSettings;
use crate::{DataType, Datum, Value};

pub use super::access::{Access, KeyBounds, KeyList, conjuncts};
pub use super::query::node::{Aggregate, HashJoin, NestedLoop, Node, Scan};
pub use super::query::node_walk::each_scan;
pub use crate::analyze::tree::{
    AggregateCall, AggregateFunction, JoinKind, Slot, column as packed, slot_of,
};

/// An aggregation, as a plan has it.
#[derive(Debug)]
pub struct Aggregation<'a> {
    /// What is to be computed.
    pub aggregate: &'a Aggregate,
    /// What its expressions see.
    pub surroundings: &'a Arc<Surroundings>,
}

/// What became of an aggregation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The rows are those of PostgreSQL.
    Done,
    /// It is not known whether they are, or there are none: whatever was given does not count.
    Declined,
}

/// Takes the values of keys and calls of one group.
pub type Each<'e> = &'e mut dyn FnMut(&[Datum<'_>]) -> Result<()>;

/// A second executor. One per database.
pub trait Accelerator: Debug + Send + Sync {
    /// Runs an aggregation over the tables of `scanner`. An error ends the statement: it is for
    /// what would happen to the statement here, too, such as a cancel.
    fn run(
        &self,
        aggregation: &Aggregation<'_>,
        scanner: Arc<dyn TableScanner>,
        each: Each<'_>,
    ) -> Result<Outcome>;
}

/// What the expressions of a statement see beside rows. Threads share it.
#[derive(Debug)]
pub struct Surroundings {
    params: Arc<[Value]>,
    now: i64,
    /// Each thread takes a copy, because functions may leave notes in them.
    settings: Mutex<SessionSettings>,
}

impl Surroundings {
    pub(crate) fn new(env: &Env<'_>) -> Self {
        Self {
            params: env.params.into(),
            now: env.facts.now,
            settings: Mutex::new(env.facts.settings.clone()),
        }
    }

    /// The same, for one thread.
    pub fn local(&self) -> LocalSurroundings {
        LocalSurroundings {
            params: Arc::clone(&self.params),
            now: self.now,
            settings: self.settings.lock().clone(),
            notices: Notices::default(),
        }
    }
}

/// What the expressions of a statement see beside rows, on one thread.
#[derive(Debug)]
pub struct LocalSurroundings {
    params: Arc<[Value]>,
    now: i64,
    settings: SessionSettings,
    notices: Notices,
}

impl LocalSurroundings {
    /// Lets `act` evaluate expressions that don't ask for the session, and are short work.
    pub fn with<R>(&self, act: impl FnOnce(&Env<'_>) -> R) -> R {
        self.looking(None, act)
    }

    /// The same for work that may take long: it fails when `look` does.
    pub(crate) fn looking<R>(
        &self,
        look: Option<&dyn Fn() -> Result<()>>,
        act: impl FnOnce(&Env<'_>) -> R,
    ) -> R {
        let facts = Facts {
            now: self.now,
            user: "",
            database: "",
            process_id: 0,
            long_text: None,
            settings: &self.settings,
            session: None,
            look,
            server: None,
            notices: &self.notices,
            only_locks: false,
        };
        act(&Env { row: Row::None, params: &self.params, facts: &facts, subplans: None })
    }
}

/// The average of `count` values whose sum is known, as `avg` gives it in type `ty`.
pub fn average(sum: &Datum<'_>, count: i64, ty: DataType) -> Result<Value> {
    average_of(sum, count, ty)
}
