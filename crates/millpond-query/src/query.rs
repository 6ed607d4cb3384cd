//! What a second executor needs of a statement: the rows of tables under its snapshot, and the
//! session that runs it.

use std::fmt::Debug;
use std::sync::{Arc, Weak};

use millpond_engine::catalog::TableDef;

use crate::DataType;
use crate::error::Result;
use crate::memory::Resources;
use crate::settings::{Configuration, Origin};
use crate::statistics::Statistics;

/// The tables under one statement's snapshot, the transaction's own writes included. Scans are
/// opened from several threads at once.
pub trait TableScanner: Send + Sync {
    /// One of `parts` disjoint parts that together are the table.
    fn scan(&self, table: &Arc<TableDef>, part: usize, parts: usize) -> Result<Box<dyn RowSource>>;

    /// An error when the statement has been cancelled or has run out of time.
    fn check_cancelled(&self) -> Result<()>;

    /// The memory and the temporary files that the query may use.
    fn resources(&self) -> &Arc<Resources>;

    /// Bytes of a table's rows.
    fn table_bytes(&self, table: &TableDef) -> u64;
}

/// The bytes of a relation's forks, and of its indexes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RelationSize {
    /// The data.
    pub main: u64,
    /// The free space map. Of an index nothing.
    pub fsm: u64,
    /// All indexes of a table. Of an index nothing.
    pub indexes: u64,
}

impl RelationSize {
    /// A table without its indexes.
    pub fn table(self) -> u64 {
        self.main + self.fsm
    }

    /// A table with its indexes.
    pub fn total(self) -> u64 {
        self.table() + self.indexes
    }
}

/// The rows of a part of a table, a page at a time.
pub trait RowSource: Send {
    /// Calls `each` for every visible row of the next page with its tuple in the table's layout;
    /// `false` at the end.
    fn next_page(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool>;

    /// How many visible rows the next page has; `None` at the end.
    fn count_page(&mut self) -> Result<Option<usize>>;
}

/// The session that runs a statement, and what the views of settings and statistics show.
#[derive(Debug, Clone, Default)]
pub struct SessionInfo {
    /// The database's name.
    pub database: String,
    /// The user's name.
    pub user: String,
    /// The session's number, as `pg_backend_pid()` gives it.
    pub pid: i32,
    /// All settings.
    pub settings: Vec<SettingInfo>,
    /// What the server counts, if there is one.
    pub statistics: Option<Arc<Statistics>>,
    /// The server that it is a session of, if it is there.
    pub server: Option<Weak<dyn Server>>,
    /// The statements that PREPARE has named.
    pub prepared: Vec<PreparedInfo>,
}

/// A row of `pg_prepared_statements`.
#[derive(Debug, Clone)]
pub struct PreparedInfo {
    /// Its name.
    pub name: String,
    /// The text that prepared it.
    pub statement: String,
    /// When that was, in microseconds since 2000.
    pub began: i64,
    /// The types of its parameters.
    pub params: Vec<DataType>,
    /// How often it has been executed.
    pub executions: i64,
}

/// A row of `pg_settings`.
#[derive(Debug, Clone, Default)]
pub struct SettingInfo {
    /// Its name.
    pub name: String,
    /// Its value as SHOW prints it.
    pub setting: String,
    /// What it does.
    pub description: String,
    /// Whether the session has set it.
    pub is_own: bool,
    /// Where the database's value comes from.
    pub origin: Origin,
    /// Whether the configuration files have another value, for the next start.
    pub is_pending: bool,
}

/// What statements ask of the server that runs them.
pub trait Server: Debug + Send + Sync {
    /// Where its settings come from, and what they are.
    fn configuration(&self) -> &Configuration;

    /// Reads the configuration files again; `false` if nothing could be applied.
    fn reload_configuration(&self) -> bool;

    /// What has been counted since the start or the last reset.
    fn statistics(&self) -> &Arc<Statistics>;

    /// When it was started, in microseconds since 2000.
    fn start_time(&self) -> i64;

    /// Whether a session has this process id.
    fn has_backend(&self, process_id: i32) -> bool;

    /// Tells a session to stop; `false` if none has this process id.
    fn signal(&self, process_id: i32, signal: Signal) -> bool;
}

/// What a session can be told by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// To cancel its running statement, if any.
    Cancel,
    /// To end.
    Terminate,
}
