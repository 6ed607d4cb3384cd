//! What a connection hands out and answers.

use std::collections::VecDeque;
use std::sync::Arc;

pub use millpond_engine::session::CommitTicket;
use smallvec::SmallVec;

use crate::{DataType, Datum, Value};
use millpond_query::error::Result;
use millpond_query::sink::{ColumnDesc, CommandTag, CopyFormat, RowSink};

/// The values of a statement's parameters.
pub type Params = SmallVec<[Value; 4]>;

/// The parameters of a statement that has no plan of its own.
#[derive(Debug, Default)]
pub(super) struct Given<'a> {
    pub(super) types: &'a [DataType],
    pub(super) values: &'a [Value],
}

/// How a call ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executed {
    /// All is done.
    Complete,
    /// The portal has given as many rows as it was asked for, and has perhaps more.
    Suspended,
    /// Nothing has happened, because it would have had to wait. Resume it where waiting is allowed.
    WouldBlock,
    /// Committed, but not yet durable.
    CommitPending(CommitTicket),
    /// The client is to send rows.
    CopyIn(CopyFormat),
}

/// The letter that "ready for query" carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// No transaction block.
    Idle,
    /// In a transaction block.
    InTransaction,
    /// In a transaction block that has failed.
    Failed,
}

impl TransactionStatus {
    /// `I`, `T` or `E`.
    pub const fn letter(self) -> u8 {
        match self {
            TransactionStatus::Idle => b'I',
            TransactionStatus::InTransaction => b'T',
            TransactionStatus::Failed => b'E',
        }
    }
}

/// The client's identity, from its start-up packet.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The user's name.
    pub user: String,
    /// The database's name.
    pub database: String,
    /// Where the client is: its address and port. Empty for a Unix socket or an embedder.
    pub client_addr: String,
    /// The server's port, to which the client has connected; `None` for a Unix socket or an
    /// embedder.
    pub server_port: Option<u16>,
    /// Settings from the start-up packet (`application_name`, `options`, ...).
    pub settings: Vec<(String, String)>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            user: "postgres".to_owned(),
            database: "postgres".to_owned(),
            client_addr: String::new(),
            server_port: None,
            settings: Vec::new(),
        }
    }
}

/// The result of [`Connection::query`](super::Connection::query).
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// What the columns are.
    pub columns: Arc<[ColumnDesc]>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

/// What a client may know about a prepared statement.
#[derive(Debug, Clone)]
pub struct Description {
    /// The types of its parameters.
    pub params: Arc<[DataType]>,
    /// Its columns, if it returns rows.
    pub columns: Option<Arc<[ColumnDesc]>>,
}

/// Keeps rows.
#[derive(Debug, Default)]
pub(super) struct Collect {
    pub(super) rows: VecDeque<Vec<Value>>,
}

impl RowSink for Collect {
    fn columns(&mut self, _columns: &[ColumnDesc]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        self.rows.push_back(row.iter().map(Datum::to_value).collect());
        Ok(())
    }

    fn complete(&mut self, _tag: CommandTag) -> Result<()> {
        Ok(())
    }

    fn discard(&mut self) {
        self.rows.clear();
    }
}
