//! The beginning and end of a statement, and what its reads and changes ask the transaction for.

use super::Session;
use crate::error::EngineResult;
use crate::transam::{CommandId, Snapshot};

impl Session {
    /// Starts a statement. It sees what earlier statements of the transaction did.
    ///
    /// In REPEATABLE READ the first statement takes the transaction's snapshot here, before it
    /// locks its tables. In READ COMMITTED the statement takes its snapshot at its first read,
    /// after it has locked its tables. So it sees the commits of transactions whose locks it has
    /// waited for. PostgreSQL does the same in both cases.
    pub fn start_statement(&mut self) -> EngineResult<()> {
        self.transaction.start_statement(&self.ctx)
    }

    /// Ends a statement and its scans. Releases its snapshot if the isolation level permits, so
    /// that an idle transaction does not hold VACUUM back.
    pub fn end_statement(&mut self) {
        self.end_turn();
        self.stop.end_statement();
        self.transaction.end_statement(&self.ctx);
    }

    /// The snapshot of the running statement.
    #[inline]
    pub(crate) fn snapshot(&self) -> EngineResult<Snapshot> {
        self.transaction.snapshot(&self.ctx)
    }

    /// The id of the running command, which is about to change data for the first time. `what` is
    /// its verb, for errors.
    pub(super) fn write_command(&self, what: &'static str) -> EngineResult<CommandId> {
        self.transaction.write_command(what, self.engine.is_closing())
    }

    /// Gives up the turn at a row, if the session holds one. A statement calls it after
    /// [`RowOutcome::Changed`](crate::table::RowOutcome::Changed) when it no longer wants the row.
    /// Other sessions wait for the row, and the end of the statement, which also gives the turn up,
    /// may be far off.
    pub fn end_turn(&self) {
        self.turn.end(&self.ctx);
    }
}
