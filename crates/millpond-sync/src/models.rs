//! Loom's models of the latch and of the optimistic read.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p millpond-sync --release models`

use crate::atomic::{AtomicU64, Ordering};
use crate::latch::{Latch, Version};
use crate::sync::Arc;
use loom::cell::UnsafeCell;
use loom::thread;

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// What a latch protects. Loom reports any access that the latch doesn't order.
#[derive(Default)]
struct Guarded {
    latch: Latch,
    value: UnsafeCell<u64>,
}

impl Guarded {
    #[allow(unsafe_code)]
    fn add(&self) {
        self.latch.exclusive();
        // SAFETY: loom tracks the access and fails the model if it isn't exclusive.
        self.value.with_mut(|value| unsafe { *value += 1 });
        self.latch.unlock_exclusive();
    }

    #[allow(unsafe_code)]
    fn get(&self) -> u64 {
        self.latch.shared();
        // SAFETY: loom tracks the access and fails the model if a writer is there.
        let value = self.value.with(|value| unsafe { *value });
        self.latch.unlock_shared();
        value
    }
}

#[test]
fn two_writers() {
    check(3, || {
        let guarded = Arc::new(Guarded::default());
        let other = guarded.clone();
        let thread = thread::spawn(move || other.add());
        guarded.add();
        thread.join().unwrap();
        assert_eq!(guarded.get(), 2);
    });
}

#[test]
fn three_writers() {
    check(2, || {
        let guarded = Arc::new(Guarded::default());
        let threads = [(); 2].map(|()| {
            let guarded = guarded.clone();
            thread::spawn(move || guarded.add())
        });
        guarded.add();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(guarded.get(), 3);
    });
}

#[test]
fn a_writer_and_two_readers() {
    check(2, || {
        let guarded = Arc::new(Guarded::default());
        let threads = [(); 2].map(|()| {
            let guarded = guarded.clone();
            thread::spawn(move || assert!(guarded.get() <= 1))
        });
        guarded.add();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(guarded.get(), 1);
    });
}

#[test]
fn two_writers_and_a_reader() {
    check(2, || {
        let guarded = Arc::new(Guarded::default());
        let writer = {
            let guarded = guarded.clone();
            thread::spawn(move || guarded.add())
        };
        let reader = {
            let guarded = guarded.clone();
            thread::spawn(move || assert!(guarded.get() <= 2))
        };
        guarded.add();
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(guarded.get(), 2);
    });
}

#[test]
fn a_downgrade_lets_no_writer_in() {
    check(2, || {
        let guarded = Arc::new(Guarded::default());
        let writer = {
            let guarded = guarded.clone();
            thread::spawn(move || guarded.add())
        };
        guarded.add_then_look();
        writer.join().unwrap();
        assert_eq!(guarded.get(), 2);
    });
}

impl Guarded {
    #[allow(unsafe_code)]
    fn add_then_look(&self) {
        self.latch.exclusive();
        // SAFETY: as in `add`.
        let written = self.value.with_mut(|value| unsafe {
            *value += 1;
            *value
        });
        self.latch.downgrade();
        // SAFETY: as in `get`.
        assert_eq!(self.value.with(|value| unsafe { *value }), written);
        self.latch.unlock_shared();
    }
}

/// A record of two words that are always equal when whole.
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

/// A read that begins after another thread told of a change sees at least that change.
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
