//! A fast shutdown within a time limit.
//!
//! The server tells the sessions to end, and their statements notice that soon. Then it writes a
//! checkpoint, so that the next start has nothing to recover. Work that does not end in time is
//! abandoned: a thread waits for most of the limit, flushes the log, and ends the process. Every
//! commit reported to a client is then in the log, so the next start recovers it, as after a crash.

use super::signals::Signals;
use crate::run::Server;
use millpond::{Database, SqlError};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The part of the limit that sessions have to end.
const SESSIONS_PART: f64 = 0.4;
/// The part of the limit after which the log is flushed for an early exit.
const FLUSH_PART: f64 = 0.7;
/// The part after which the process exits even if the log is not flushed. The system gets the rest.
const LEAVE_PART: f64 = 0.8;

/// Stops the server fast, within `limit` if there is one.
pub fn stop_fast(
    server: Server<Arc<Database>>,
    database: Arc<Database>,
    signals: &Signals,
    limit: Option<Duration>,
) -> Result<(), SqlError> {
    if let Some(limit) = limit {
        leave_after(limit, &database, signals);
    }
    if !server.stop(limit.map(|limit| limit.mul_f64(SESSIONS_PART))) {
        tracing::warn!("sessions have not ended in time");
    }
    let stopped = database.shutdown();
    // Only dropping the database writes some things, such as the rest of a page trace.
    drop(database);
    stopped
}

/// Starts a thread that exits the process in time.
fn leave_after(limit: Duration, database: &Arc<Database>, signals: &Signals) {
    let leave = signals.leaver();
    let database = Arc::downgrade(database);
    let wait = move || {
        thread::sleep(limit.mul_f64(FLUSH_PART));
        tracing::warn!("shutdown takes too long: leaving without a checkpoint");
        let (done, flushed) = mpsc::channel::<()>();
        let flush = move || {
            if let Some(database) = database.upgrade()
                && let Err(error) = database.engine().flush_log()
            {
                tracing::error!(%error, "could not flush the log");
            }
            drop(done);
        };
        // A device that does not answer must not block the exit.
        if thread::Builder::new().name("last flush".to_owned()).spawn(flush).is_ok() {
            let _ = flushed.recv_timeout(limit.mul_f64(LEAVE_PART - FLUSH_PART));
        }
        leave(0);
    };
    if let Err(error) = thread::Builder::new().name("shutdown".to_owned()).spawn(wait) {
        tracing::warn!(%error, "nothing bounds the time of the shutdown");
    }
}
