//! Threads that fail, panic, or are not wanted any more.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::thread;

use super::super::exchange::Exchange;
use super::super::made_chunks::{Numbers, Then, rows_of, take};
use super::{OwnWork, work_off};
use crate::error::SqlError;
use crate::memory::{QueryMemory, SessionMemory};

fn run(special: Option<(u32, Then)>, most: usize) -> (Vec<[u8; 2]>, Option<SqlError>) {
    const CHUNKS: u32 = 40;
    let server = QueryMemory::new(1 << 30);
    let memory = SessionMemory::new(&server);
    memory.set_work(64 << 10, 1.0);
    let exchange = Arc::new(Exchange::new(CHUNKS, 8, &memory));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let exchange = Arc::clone(&exchange);
            thread::spawn(move || work_off(&mut Numbers::new(3, special), &exchange))
        })
        .collect();
    // The session's own work does not panic here: that would be a panic of its statement.
    let own_special = special.filter(|(_, then)| *then != Then::Panics);
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
    for _ in 0..20 {
        let (rows, error) = run(Some((17, Then::Fails)), usize::MAX);
        assert_eq!(rows, rows_of(18, 3));
        assert_eq!(error.unwrap().message, "made");
    }
}

#[test]
fn panic_of_a_thread_is_an_error() {
    let mut has_panicked = false;
    for _ in 0..100 {
        let (_, error) = run(Some((17, Then::Panics)), usize::MAX);
        // The session may have done the chunk itself.
        has_panicked |= error.is_some_and(|error| error.message.contains("panicked"));
    }
    assert!(has_panicked);
}

#[test]
fn threads_end_when_no_rows_are_wanted() {
    for most in 0..20 {
        run(None, most);
    }
}
