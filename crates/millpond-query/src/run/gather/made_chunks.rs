//! Chunks of numbers, for tests of the exchange.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::chunk_work::{ChunkSource, OwnWork};
use super::exchange::{Exchange, Piece};
use crate::error::{Result, SqlError};

/// What happens in a chunk behind its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Fails,
    Panics,
    /// Until it is told to stop.
    WorksForever,
}

/// Each chunk has this number of rows.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) rows: u8,
    /// The chunk that does not end well, and how.
    pub(super) special: Option<(u32, Then)>,
    chunk: u32,
    given: u8,
}

impl Numbers {
    pub(super) fn new(rows: u8, special: Option<(u32, Then)>) -> Self {
        Self { rows, special, chunk: 0, given: 0 }
    }
}

impl ChunkSource for Numbers {
    fn begin(&mut self, chunk: u32) {
        (self.chunk, self.given) = (chunk, 0);
    }

    fn fill(&mut self, piece: &mut Piece, look: &dyn Fn() -> Result<()>) -> Result<bool> {
        while self.given < self.rows {
            piece.bytes_mut().extend([self.chunk as u8, self.given]);
            piece.end_row();
            self.given += 1;
            if piece.is_full() {
                return Ok(true);
            }
        }
        match self.special {
            Some((chunk, Then::Fails)) if chunk == self.chunk => Err(SqlError::internal("made")),
            Some((chunk, Then::Panics)) if chunk == self.chunk => panic!("made"),
            Some((chunk, Then::WorksForever)) if chunk == self.chunk => loop {
                look()?;
                std::thread::yield_now();
            },
            _ => Ok(false),
        }
    }
}

/// The rows that the session takes, at most some, and the error that comes behind them.
pub(super) fn take(
    own: &mut OwnWork<Numbers>,
    exchange: &Exchange,
    most: usize,
) -> (Vec<[u8; 2]>, Option<SqlError>) {
    let mut rows = Vec::new();
    while rows.len() < most {
        let piece = match own.next_piece(exchange, &|| Ok(())) {
            Ok(Some(piece)) => piece,
            Ok(None) => return (rows, None),
            Err(error) => return (rows, Some(error)),
        };
        rows.extend(
            (0..).map_while(|at| piece.row(at)).map(|row| <[u8; 2]>::try_from(row).unwrap()),
        );
        exchange.give_back(piece);
    }
    (rows, None)
}

/// The rows of chunks, in their order, up to and with a chunk.
pub(super) fn rows_of(chunks: u32, rows: u8) -> Vec<[u8; 2]> {
    (0..chunks as u8).flat_map(|chunk| (0..rows).map(move |row| [chunk, row])).collect()
}
