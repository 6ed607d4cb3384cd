//! The cancel keys that sessions get at start-up.
//!
//! A cancel request arrives on its own connection, on any loop, while its session may be on another
//! loop or thread. They share only this table. It is locked only when a session starts, when a
//! session ends, and by cancel requests.

use parking_lot::Mutex;
use rand::RngCore;
use std::collections::HashMap;
use std::sync::Arc;

/// A function that interrupts a session, for a cancel request or a shutdown.
pub type OnCancel = Arc<dyn Fn(Why) + Send + Sync>;

/// Why a session is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its client asked for it.
    Cancel,
    /// The server is shutting down.
    Shutdown,
}

/// The table of keys.
#[derive(Default)]
pub struct CancelKeys {
    keys: Mutex<HashMap<i32, (Vec<u8>, OnCancel)>>,
}

impl CancelKeys {
    /// Makes a key for a session: 4 bytes for protocol 3.0, 32 bytes from 3.2 on.
    pub fn grant(&self, pid: i32, long: bool, interrupt: OnCancel) -> Vec<u8> {
        let mut secret = vec![0; if long { 32 } else { 4 }];
        rand::rng().fill_bytes(&mut secret);
        self.keys.lock().insert(pid, (secret.clone(), interrupt));
        secret
    }

    /// Removes the key of a session that ends.
    pub fn revoke(&self, pid: i32) {
        self.keys.lock().remove(&pid);
    }

    /// Cancels what the session runs, if the secret is right. The client does not learn the
    /// outcome.
    pub fn cancel(&self, pid: i32, secret: &[u8]) {
        let found = self
            .keys
            .lock()
            .get(&pid)
            .and_then(|(key, interrupt)| same(key, secret).then(|| Arc::clone(interrupt)));
        match found {
            Some(interrupt) => interrupt(Why::Cancel),
            None => tracing::debug!(pid, "cancel request without a matching session"),
        }
    }

    /// The number of sessions.
    pub fn sessions(&self) -> usize {
        self.keys.lock().len()
    }

    /// Interrupts every session, for a shutdown.
    pub fn terminate_all(&self) {
        let all: Vec<OnCancel> = self.keys.lock().values().map(|(_, c)| Arc::clone(c)).collect();
        for interrupt in all {
            interrupt(Why::Shutdown);
        }
    }
}

/// Compares two keys. The time does not depend on where the first difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn only_the_right_secret_cancels() {
        let keys = CancelKeys::default();
        let count = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&count);
        let secret = keys.grant(
            7,
            true,
            Arc::new(move |_| {
                counter.fetch_add(1, Ordering::Relaxed);
            }),
        );
        assert_eq!(secret.len(), 32);
        keys.cancel(7, &secret[..4]);
        keys.cancel(8, &secret);
        assert_eq!(count.load(Ordering::Relaxed), 0);
        keys.cancel(7, &secret);
        assert_eq!(count.load(Ordering::Relaxed), 1);
        keys.revoke(7);
        keys.cancel(7, &secret);
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}
