//! Stopping a server in order, within a bound.
//!
//! Sessions are told to end; their statements notice soon, wherever they are. Then a checkpoint is
//! written, and the next start has nothing to recover. What does not end in time is left behind: a
//! thread that waits for the end of the bound sees to it that the log is on disk, and ends the
//! process. Every commit that a client has heard of is in the log by then, so the next start
//! recovers it, as after a crash.

use super::signals::Signals;
use crate::run::Server;
use millpond::{Database, SqlError};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What part of the bound sessions have to end.
const SESSIONS_PART: f64 = 0.4;
/// After what part of the bound the log is flushed to leave.
const FLUSH_PART: f64 = 0.7;
/// After what part the process leaves even if the log could not be flushed. The rest is the
/// system's, to take it down.
const LEAVE_PART: f64 = 0.8;

/// Stops the server fast: within `limit`, if there is one.
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
    // What only the database's end writes, as the rest of a page trace.
    drop(database);
    stopped
}

/// Sees to it that the process leaves in time.
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
        // A device that does not answer must not keep the process.
        if thread::Builder::new().name("last flush".to_owned()).spawn(flush).is_ok() {
            let _ = flushed.recv_timeout(limit.mul_f64(LEAVE_PART - FLUSH_PART));
        }
        leave(0);
    };
    if let Err(error) = thread::Builder::new().name("shutdown".to_owned()).spawn(wait) {
        tracing::warn!(%error, "nobody will see to it that the shutdown ends in time");
    }
}
