//! What a session is doing: the data behind `pg_stat_activity`.
//!
//! No protocol depends on it. The wait event is an atomic in the session's line, stored only around
//! waits. User, application and the like are behind a mutex that the session shares with the rare
//! observer. The running statement is in [`statement`](super::statement).

use std::sync::Arc;

use crate::types::current_timestamp;

/// What a session that does not run is waiting for. The numbers index [`WaitEvent::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum WaitEvent {
    /// It is not waiting.
    #[default]
    None = 0,
    /// A lock on a relation.
    Relation = 1,
    /// The end of a transaction.
    Transaction = 2,
    /// The tuple lock: the session's turn in the queue for a row.
    Tuple = 3,
    /// Some other lock.
    Lock = 4,
    /// The flush of the log.
    WalSync = 5,
    /// The read of a page.
    DataFileRead = 6,
    /// The client's next message.
    ClientRead = 7,
    /// The client receiving what was sent.
    ClientWrite = 8,
    /// Nothing to do, for a worker of the engine.
    Idle = 9,
    /// A commit that began before a checkpoint.
    CommitBeforeCheckpoint = 10,
    /// The end of a session's transaction, whether or not it has an id.
    VirtualTransaction = 11,
    /// An advisory lock.
    Advisory = 12,
}

impl WaitEvent {
    /// All events, by number.
    pub const ALL: [WaitEvent; 13] = [
        WaitEvent::None,
        WaitEvent::Relation,
        WaitEvent::Transaction,
        WaitEvent::Tuple,
        WaitEvent::Lock,
        WaitEvent::WalSync,
        WaitEvent::DataFileRead,
        WaitEvent::ClientRead,
        WaitEvent::ClientWrite,
        WaitEvent::Idle,
        WaitEvent::CommitBeforeCheckpoint,
        WaitEvent::VirtualTransaction,
        WaitEvent::Advisory,
    ];

    /// `wait_event_type` and `wait_event`; `None` while the session runs.
    pub fn names(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            WaitEvent::None => return None,
            WaitEvent::Relation => ("Lock", "relation"),
            WaitEvent::Transaction => ("Lock", "transactionid"),
            WaitEvent::Tuple => ("Lock", "tuple"),
            WaitEvent::Lock => ("Lock", "object"),
            WaitEvent::VirtualTransaction => ("Lock", "virtualxid"),
            WaitEvent::Advisory => ("Lock", "advisory"),
            WaitEvent::WalSync => ("IO", "WalSync"),
            WaitEvent::DataFileRead => ("IO", "DataFileRead"),
            WaitEvent::ClientRead => ("Client", "ClientRead"),
            WaitEvent::ClientWrite => ("Client", "ClientWrite"),
            WaitEvent::Idle => ("Activity", "Idle"),
            WaitEvent::CommitBeforeCheckpoint => ("IPC", "CheckpointDelayStart"),
        })
    }
}

/// `state` of pg_stat_activity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum ActivityState {
    /// Waiting for a statement.
    #[default]
    Idle,
    /// Running one.
    Active,
    /// Waiting for a statement inside a transaction.
    IdleInTransaction,
    /// The same, and the transaction has failed.
    IdleInTransactionAborted,
}

impl ActivityState {
    /// The state with this number.
    pub(super) fn of_number(number: u8) -> Self {
        use ActivityState::{Active, Idle, IdleInTransaction, IdleInTransactionAborted};
        let all = [Idle, Active, IdleInTransaction, IdleInTransactionAborted];
        all.into_iter().find(|state| *state as u8 == number).unwrap_or_default()
    }

    /// The name that pg_stat_activity shows.
    pub fn name(self) -> &'static str {
        match self {
            ActivityState::Idle => "idle",
            ActivityState::Active => "active",
            ActivityState::IdleInTransaction => "idle in transaction",
            ActivityState::IdleInTransactionAborted => "idle in transaction (aborted)",
        }
    }
}

/// Facts about a session that only observers read.
#[derive(Clone, Debug)]
pub struct Activity {
    /// `client backend`, `checkpointer`, ...
    pub kind: &'static str,
    /// User name.
    pub user: Arc<str>,
    /// Database name.
    pub database: Arc<str>,
    /// `application_name`.
    pub application: Arc<str>,
    /// The client's address and port; empty if it did not come over a network.
    pub client: Arc<str>,
    /// The server's port, to which it has connected.
    pub server_port: Option<u16>,
    /// When the session began: microseconds since 2000.
    pub started: i64,
}

impl Activity {
    /// A session that has just begun.
    pub fn new(kind: &'static str) -> Self {
        let empty: Arc<str> = Arc::from("");
        Activity {
            kind,
            user: empty.clone(),
            database: empty.clone(),
            application: empty.clone(),
            client: empty,
            server_port: None,
            started: current_timestamp(),
        }
    }
}
