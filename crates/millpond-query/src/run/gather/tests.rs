//! Threads that fail, panic, or are not wanted any more.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::super::exchange::{Exchange, Piece};
use super::super::made_chunks::{Numbers, Then, rows_of, take};
use super::{ChunkSource, OwnWork, work_off};
use crate::error::{Result, SqlError};
use crate::memory::{QueryMemory, SessionMemory};

/// A thread's source, which notes that the thread has begun with a chunk.
struct Noting {
    numbers: Numbers,
    has_begun: Arc<AtomicBool>,
}

impl ChunkSource for Noting {
    fn begin(&mut self, chunk: u32) {
        self.numbers.begin(chunk);
        self.has_begun.store(true, Ordering::Release);
    }

    fn fill(&mut self, piece: &mut Piece, look: &dyn Fn() -> Result<()>) -> Result<bool> {
        self.numbers.fill(piece, look)
    }
}

/// What the session takes, and the error behind it. Threads do the first chunk.
fn run(special: Option<(u32, Then)>, most: usize) -> (Vec<[u8; 2]>, Option<SqlError>) {
    const CHUNKS: u32 = 40;
    let server = QueryMemory::new(1 << 30);
    let memory = SessionMemory::new(&server);
    memory.set_work(64 << 10, 1.0);
    let exchange = Arc::new(Exchange::new(CHUNKS, 8, &memory));
    let has_begun = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (exchange, has_begun) = (Arc::clone(&exchange), Arc::clone(&has_begun));
            let mut source = Noting { numbers: Numbers::new(3, special), has_begun };
            thread::spawn(move || work_off(&mut source, &exchange))
        })
        .collect();
    while !has_begun.load(Ordering::Acquire) {
        thread::yield_now();
    }
    // What the session itself does is its statement's.
    let own_special = special.filter(|(_, then)| *then == Then::Fails);
    let mut own = OwnWork::new(Numbers::new(3, own_special));
    let taken = take(&mut own, &exchange, most);
    exchange.stop();
    for thread in threads {
        let _ = thread.join();
    }
    drop(exchange);
    assert_eq!(server.used(), 0);
    taken
}

#[test]
fn rows_come_in_order() {
    for _ in 0..20 {
        let (rows, error) = run(None, usize::MAX);
        assert_eq!((rows, error.is_none()), (rows_of(40, 3), true));
    }
}

#[test]
fn rows_before_an_error_come_first() {
    for chunk in [0, 1, 17] {
        let (rows, error) = run(Some((chunk, Then::Fails)), usize::MAX);
        assert_eq!(rows, rows_of(chunk + 1, 3));
        assert_eq!(error.unwrap().message, "made");
    }
}

#[test]
fn panic_of_a_thread_is_an_error() {
    let (rows, error) = run(Some((0, Then::Panics)), usize::MAX);
    assert!(rows.is_empty());
    assert!(error.unwrap().message.contains("panicked"));
}

#[test]
fn threads_end_when_no_rows_are_wanted() {
    for most in 0..20 {
        run(None, most);
    }
}

#[test]
fn work_on_one_row_ends_when_no_rows_are_wanted() {
    for chunk in [1, 3] {
        let (rows, _) = run(Some((chunk, Then::WorksForever)), 3);
        assert_eq!(rows, rows_of(1, 3));
    }
}
