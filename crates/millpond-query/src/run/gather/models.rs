//! Models of the exchange: threads and the session in random schedules. Time stands still, so a
//! wake-up that is lost is a deadlock.
#![allow(clippy::unwrap_used, reason = "a model fails by panicking")]

use millpond_sync::sync::Arc;
use millpond_sync::thread;

use super::super::exchange::{Exchange, Piece};
use super::super::made_chunks::{Numbers, Then, rows_of, take};
use super::{ChunkSource, OwnWork, work_off};
use crate::error::Result;
use crate::memory::{QueryMemory, SessionMemory};

/// What a model is about.
#[derive(Clone, Copy)]
struct Case {
    threads: usize,
    chunks: u32,
    window: u32,
    /// Bytes of pieces that may wait.
    bound: usize,
    fails_at: Option<u32>,
    /// How many rows the session takes.
    most: usize,
}

const PLAIN: Case =
    Case { threads: 2, chunks: 3, window: 2, bound: 1, fails_at: None, most: usize::MAX };

/// A source that checks how far it is ahead, and how much waits.
struct Checked {
    numbers: Numbers,
    exchange: Arc<Exchange>,
}

impl ChunkSource for Checked {
    fn begin(&mut self, chunk: u32) {
        assert!(self.exchange.is_within_bounds(Some(chunk)), "chunk {chunk} is too far ahead");
        self.numbers.begin(chunk);
    }

    fn fill(&mut self, piece: &mut Piece, look: &dyn Fn() -> Result<()>) -> Result<bool> {
        assert!(self.exchange.is_within_bounds(None), "too many rows wait");
        self.numbers.fill(piece, look)
    }
}

fn run(case: Case) {
    const ROWS: u8 = 2;
    let Case { threads, chunks, window, bound, fails_at, most } = case;
    let server = QueryMemory::new(1 << 30);
    let memory = SessionMemory::new(&server);
    memory.set_work(bound, 1.0);
    let exchange = Arc::new(Exchange::new(chunks, window, &memory));
    let numbers = Numbers::new(ROWS, fails_at.map(|chunk| (chunk, Then::Fails)));
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            let exchange = Arc::clone(&exchange);
            thread::spawn(move || {
                let mut source = Checked { numbers, exchange: Arc::clone(&exchange) };
                work_off(&mut source, &exchange);
            })
        })
        .collect();
    let mut own = OwnWork::new(numbers);
    let (rows, error) = take(&mut own, &exchange, most);
    exchange.stop();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let expected = rows_of(fails_at.map_or(chunks, |chunk| chunk + 1), ROWS);
    assert_eq!(rows, expected[..most.min(expected.len())]);
    assert_eq!(error.is_some(), fails_at.is_some() && most > expected.len());
}

fn check(case: Case) {
    shuttle::check_random(move || run(case), 3000);
    shuttle::check_pct(move || run(case), 1500, 3);
}

#[test]
fn shuttle_rows_come_in_order() {
    check(PLAIN);
    check(Case { bound: 1 << 20, ..PLAIN });
    check(Case { threads: 1, window: 1, ..PLAIN });
    // A thread waits for room, because a later chunk has taken it, when its chunk becomes the
    // front.
    check(Case { window: 3, ..PLAIN });
}

#[test]
fn shuttle_rows_before_an_error_come_first() {
    check(Case { fails_at: Some(1), ..PLAIN });
}

#[test]
fn shuttle_threads_end_when_no_rows_are_wanted() {
    for most in 0..4 {
        check(Case { most, ..PLAIN });
    }
}
