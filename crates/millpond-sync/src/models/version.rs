//! The version word of optimistic reads: a read that validates is neither torn nor stale.

use super::check;
use crate::atomic::{AtomicU64, Ordering};
use crate::latch::Version;
use crate::sync::Arc;
use loom::thread;

/// A record of two words, which are equal unless a write is going on.
struct Record {
    version: Version,
    words: [AtomicU64; 2],
}

impl Record {
    fn new() -> Self {
        Self { version: Version::new(), words: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    fn write(&self, value: u64) {
        self.version.write_begin();
        for word in &self.words {
            word.store(value, Ordering::Relaxed);
        }
        self.version.write_end();
    }

    fn read(&self) -> Option<[u64; 2]> {
        let begun = self.version.read_begin()?;
        let seen = [0, 1].map(|at: usize| self.words[at].load(Ordering::Relaxed));
        self.version.validate(begun).then_some(seen)
    }
}

#[test]
fn a_validated_read_is_whole() {
    check(3, || {
        let record = Arc::new(Record::new());
        let writer = {
            let record = record.clone();
            thread::spawn(move || {
                record.write(1);
                record.write(2);
            })
        };
        if let Some([first, second]) = record.read() {
            assert_eq!(first, second, "torn");
        }
        writer.join().unwrap();
        assert_eq!(record.read(), Some([2, 2]));
    });
}

/// A read that begins after another thread announced a change sees at least that change.
#[test]
fn a_validated_read_is_not_stale() {
    check(3, || {
        let record = Arc::new(Record::new());
        let told = Arc::new(AtomicU64::new(0));
        let writer = {
            let (record, told) = (record.clone(), told.clone());
            thread::spawn(move || {
                record.write(1);
                told.store(1, Ordering::Release);
                record.write(2);
            })
        };
        let at_least = told.load(Ordering::Acquire);
        if let Some([first, second]) = record.read() {
            assert_eq!(first, second, "torn");
            assert!(first >= at_least, "stale");
        }
        writer.join().unwrap();
    });
}
