//! Why a statement stops: the reason that the engine keeps, as the error that the client sees.

use millpond_engine::timeout::StopReason;

use crate::error::{SqlError, SqlState};

/// The error for the reason why a session has been asked to stop.
pub fn error(reason: StopReason) -> SqlError {
    match reason {
        StopReason::Terminate => SqlError::fatal(
            SqlState::ADMIN_SHUTDOWN,
            "terminating connection due to administrator command",
        ),
        StopReason::IdleInTransaction => SqlError::fatal(
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            "terminating connection due to idle-in-transaction timeout",
        ),
        StopReason::StatementTimeout => {
            SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to statement timeout")
        }
        StopReason::Request => {
            SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
        }
    }
}
