//! Who may cancel whom: the keys given to sessions at start-up.
//!
//! A cancel request arrives on a connection of its own, on any loop, while the session it means may be
//! on another loop or thread. All that is shared is this table, locked only at start-up, at the end
//! of a session and by cancel requests.

use parking_lot::Mutex;
use rand::RngCore;
use std::collections::HashMap;
use std::sync::Arc;

/// What a cancel request, or the server's end, does to a session.
pub type Interrupt = Arc<dyn Fn(Why) + Send + Sync>;

/// Why a session is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Its client asks for it.
    Cancel,
    /// The server is going down.
    Shutdown,
}

/// The table.
#[derive(Default)]
pub struct CancelKeys {
    keys: Mutex<HashMap<i32, (Vec<u8>, Interrupt)>>,
}

impl CancelKeys {
    /// Makes a key for a session: 4 bytes for protocol 3.0, 32 from 3.2 on.
    pub fn grant(&self, pid: i32, long: bool, interrupt: Interrupt) -> Vec<u8> {
        let mut secret = vec![0; if long { 32 } else { 4 }];
        rand::rng().fill_bytes(&mut secret);
        self.keys.lock().insert(pid, (secret.clone(), interrupt));
        secret
    }

    /// The session is over.
    pub fn revoke(&self, pid: i32) {
        self.keys.lock().remove(&pid);
    }

    /// Cancels what the session runs, if the secret is right. Nobody is told whether it was.
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

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.keys.lock().len()
    }

    /// Interrupts everything, for a shutdown.
    pub fn terminate_all(&self) {
        let all: Vec<Interrupt> = self.keys.lock().values().map(|(_, c)| Arc::clone(c)).collect();
        for interrupt in all {
            interrupt(Why::Shutdown);
        }
    }
}

/// Compares without telling by its time where the first difference is.
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
