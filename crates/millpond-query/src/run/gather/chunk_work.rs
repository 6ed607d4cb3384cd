//! How chunks are worked off: by threads, and by the session between the pieces that it takes.

use std::mem;

use millpond_sync::mutant;

use super::exchange::{Exchange, Piece, Taken, stopped};
use crate::error::{Result, SqlError};

/// What gives the rows of chunks, on one thread.
pub(super) trait ChunkSource {
    /// Begins with a chunk.
    fn begin(&mut self, chunk: u32);

    /// Adds rows of the chunk, until a piece is full or it is time to look. False at its end. What
    /// takes long for one row looks by itself, and fails when `look` does.
    fn fill(&mut self, piece: &mut Piece, look: &dyn Fn() -> Result<()>) -> Result<bool>;
}

/// What a thread does: chunk after chunk.
pub(super) fn work_off(source: &mut impl ChunkSource, exchange: &Exchange) {
    let mut piece = Piece::default();
    while let Some(chunk) = exchange.claim_waiting() {
        let mut claimed = Claimed { exchange, chunk, end: None };
        source.begin(chunk);
        claimed.end = Some(give_chunk(source, claimed.chunk, exchange, &mut piece));
    }
}

fn give_chunk(
    source: &mut impl ChunkSource,
    chunk: u32,
    exchange: &Exchange,
    piece: &mut Piece,
) -> Result<()> {
    let look = || if exchange.is_stopped() { Err(stopped()) } else { Ok(()) };
    loop {
        look()?;
        match source.fill(piece, &look) {
            Ok(true) if !piece.is_full() => {}
            Ok(true) => exchange.hand_over_waiting(chunk, piece)?,
            Ok(false) => return exchange.hand_over_waiting(chunk, piece),
            Err(error) if mutant!("gather-error-before-rows") => return Err(error),
            // The rows before it come first.
            Err(error) => return exchange.hand_over_waiting(chunk, piece).and(Err(error)),
        }
    }
}

/// A chunk that a thread is at. It ends with the thread's panic, too, so that the session does not
/// wait for it.
struct Claimed<'e> {
    exchange: &'e Exchange,
    chunk: u32,
    end: Option<Result<()>>,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        if self.end.is_none() && mutant!("gather-panic-leaves-chunk") {
            return;
        }
        let panicked = || Err(SqlError::internal("a thread of a scan has panicked"));
        self.exchange.end(self.chunk, self.end.take().unwrap_or_else(panicked));
    }
}

/// The session's part of the work.
pub(super) struct OwnWork<S> {
    source: S,
    /// The chunk that it is at.
    chunk: Option<u32>,
    filling: Piece,
}

impl<S: ChunkSource> OwnWork<S> {
    pub(super) fn new(source: S) -> Self {
        Self { source, chunk: None, filling: Piece::default() }
    }

    /// The next piece. While there is none, the session fills one of its own. `None` at the end.
    /// `look` fails when the statement is to stop.
    pub(super) fn next_piece(
        &mut self,
        exchange: &Exchange,
        look: &dyn Fn() -> Result<()>,
    ) -> Result<Option<Piece>> {
        loop {
            look()?;
            // A thread that was stopped knows no reason, but the session does.
            let taken = exchange.take(self.chunk).or_else(|error| look().and(Err(error)))?;
            match taken {
                Taken::Piece(piece) => return Ok(Some(piece)),
                Taken::End => return Ok(None),
                Taken::Wait => exchange.wait(),
                Taken::Scan(chunk) => {
                    if self.chunk != Some(chunk) {
                        self.chunk = Some(chunk);
                        self.source.begin(chunk);
                    }
                    self.fill(chunk, exchange, look);
                }
            }
        }
    }

    /// Goes on with its own chunk.
    fn fill(&mut self, chunk: u32, exchange: &Exchange, look: &dyn Fn() -> Result<()>) {
        let filled = self.source.fill(&mut self.filling, look);
        let handed = exchange.hand_over(chunk, &mut self.filling);
        let end = match handed.and(filled) {
            Ok(true) => return,
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        self.chunk = None;
        // What could not be handed over is of no use.
        drop(mem::take(&mut self.filling));
        exchange.end(chunk, end);
    }
}

#[cfg(all(test, shuttle))]
#[path = "models.rs"]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
#[path = "tests.rs"]
mod tests;
