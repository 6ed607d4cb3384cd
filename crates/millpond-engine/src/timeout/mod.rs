//! The timeouts that a session's client sets: `statement_timeout` and
//! `idle_in_transaction_session_timeout`.
//!
//! Neither belongs to an operation of the engine: a statement has many of them, and an idle session
//! has none. So the thread that serves a client says when its statements begin and end
//! ([`Cancellation`]). One thread ([`Watchdog`]) sleeps until the next deadline and stops what has
//! lasted too long. `lock_timeout` is the lock manager's ([`crate::lmgr`]).
//!
//! Time is [`millpond_sync::clock`]'s, so a simulated run has these timeouts in virtual time.

mod cancellation;
#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests;
mod watchdog;

pub use cancellation::{Cancellation, StopReason};
pub use watchdog::{DeadlineGuard, Watchdog, Watched};
