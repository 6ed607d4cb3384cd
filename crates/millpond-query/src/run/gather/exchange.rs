//! What the threads of a fragment hand to the session: rows in pieces, in the order of the table.
//!
//! The table is cut into chunks of blocks. A thread claims the next chunk, and hands over its rows
//! in pieces. The session takes the pieces of the front chunk, then those of the chunk after it. So
//! rows and errors come as they would come from one thread, and how many threads there are changes
//! no answer.
//!
//! **Bounds.** Chunks are claimed at most [`Exchange::window`] ahead of the front. A thread with a
//! full piece waits while all pieces together take more than [`Exchange::bound`] bytes. It does not
//! wait if its chunk is the front one and has no piece. So the front chunk always goes on, and then
//! the others.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use millpond_sync::atomic::{AtomicBool, Ordering};
use millpond_sync::mutant;
use millpond_sync::sync::{Condvar, Mutex, MutexGuard};

use crate::error::{Result, SqlError, SqlState};
use crate::memory::{Held, SessionMemory};

/// A piece of this size is handed over. In models each row is one.
const PIECE_BYTES: usize = if cfg!(shuttle) { 1 } else { 32 << 10 };
/// Pieces whose memory is kept for others.
const SPARE: usize = 16;
/// How long the session waits before it looks whether it is to stop.
const LOOK_AFTER: Duration = Duration::from_millis(10);

/// Rows as [`kept`](crate::run::kept) has them.
#[derive(Debug, Default)]
pub(super) struct Piece {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Piece {
    /// The memory in which a row is written, before [`Piece::end_row`].
    pub(super) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(super) fn end_row(&mut self) {
        self.ends.push(self.bytes.len());
    }

    pub(super) fn row(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before));
        self.bytes.get(start.copied().unwrap_or(0)..end)
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= PIECE_BYTES
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

pub(super) struct Exchange {
    queue: Mutex<Queue>,
    /// Threads wait for room.
    room: Condvar,
    /// The session waits for pieces.
    ready: Condvar,
    /// The session wants no more rows.
    stop: AtomicBool,
    chunks: u32,
    window: u32,
    /// For the bytes of pieces.
    bound: usize,
}

struct Queue {
    /// The chunk that is claimed next.
    next: u32,
    /// The chunk whose rows are taken.
    front: u32,
    /// What there is of the chunks from the front one on that have been claimed.
    given: VecDeque<Given>,
    bytes: usize,
    held: Held,
    spare: Vec<Piece>,
}

/// What there is of a chunk.
#[derive(Default)]
struct Given {
    pieces: VecDeque<Piece>,
    end: Option<Result<()>>,
}

/// What the session is to do.
pub(super) enum Taken {
    /// Give these rows.
    Piece(Piece),
    /// Scan this chunk: its own, or one that is its own from now on.
    Scan(u32),
    Wait,
    End,
}

impl Exchange {
    pub(super) fn new(chunks: u32, window: u32, memory: &Arc<SessionMemory>) -> Self {
        let queue = Queue {
            next: 0,
            front: 0,
            given: VecDeque::new(),
            bytes: 0,
            held: Held::new(memory, "Gather"),
            spare: Vec::new(),
        };
        Self {
            queue: Mutex::new(queue),
            room: Condvar::new(),
            ready: Condvar::new(),
            stop: AtomicBool::new(false),
            chunks,
            window,
            bound: memory.work(),
        }
    }

    /// What the session does next. `own` is the chunk that it scans itself.
    pub(super) fn take(&self, own: Option<u32>) -> Result<Taken> {
        let mut queue = self.queue.lock();
        loop {
            if queue.front >= self.chunks {
                return Ok(Taken::End);
            }
            let Some(front) = queue.given.front_mut() else { break };
            if let Some(piece) = front.pieces.pop_front() {
                queue.count_less(piece.size());
                if !mutant!("gather-take-without-wake") {
                    self.room.notify_all();
                }
                return Ok(Taken::Piece(piece));
            }
            let Some(end) = front.end.take() else { break };
            queue.given.pop_front();
            queue.front += 1;
            if !mutant!("gather-next-chunk-without-wake") {
                self.room.notify_all();
            }
            end?;
        }
        let has_room = queue.bytes < self.bound;
        Ok(match own {
            Some(own) if has_room || own == queue.front => Taken::Scan(own),
            None if has_room || queue.next == queue.front => {
                self.claim(&mut queue).map_or(Taken::Wait, Taken::Scan)
            }
            _ => Taken::Wait,
        })
    }

    /// Waits until there may be something to take, or for some time.
    pub(super) fn wait(&self) {
        let queue = self.queue.lock();
        let is_ready = queue
            .given
            .front()
            .is_some_and(|front| !front.pieces.is_empty() || front.end.is_some());
        if !is_ready {
            let _ = self.ready.wait_for(queue, LOOK_AFTER);
        }
    }

    /// The next chunk, if it is not too far ahead.
    fn claim(&self, queue: &mut Queue) -> Option<u32> {
        let chunk = queue.next;
        let is_near = chunk < queue.front + self.window || mutant!("gather-without-window");
        if chunk >= self.chunks || !is_near {
            return None;
        }
        queue.next += 1;
        queue.given.push_back(Given::default());
        Some(chunk)
    }

    /// The next chunk for a thread. `None`: there is nothing left to do.
    pub(super) fn claim_waiting(&self) -> Option<u32> {
        let mut queue = self.queue.lock();
        loop {
            if self.is_stopped() || queue.next >= self.chunks {
                return None;
            }
            if let Some(chunk) = self.claim(&mut queue) {
                return Some(chunk);
            }
            queue = self.room.wait(queue);
        }
    }

    /// Hands over rows of a chunk, once there is room.
    pub(super) fn hand_over_waiting(&self, chunk: u32, piece: &mut Piece) -> Result<()> {
        let mut queue = self.queue.lock();
        loop {
            if self.is_stopped() {
                return Err(stopped());
            }
            let is_wanted = queue.front == chunk
                && !mutant!("gather-front-waits-for-room")
                && queue.given.front().is_some_and(|front| front.pieces.is_empty());
            if queue.bytes < self.bound || is_wanted || mutant!("gather-without-bound") {
                return self.push(queue, chunk, piece);
            }
            queue = self.room.wait(queue);
        }
    }

    /// Hands over rows of a chunk. `piece` is empty then.
    pub(super) fn hand_over(&self, chunk: u32, piece: &mut Piece) -> Result<()> {
        self.push(self.queue.lock(), chunk, piece)
    }

    fn push(&self, mut queue: MutexGuard<'_, Queue>, chunk: u32, piece: &mut Piece) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        let bytes = queue.bytes + piece.size();
        queue.held.resize(bytes)?;
        queue.bytes = bytes;
        let empty = queue.spare.pop().unwrap_or_default();
        let full = mem::replace(piece, empty);
        let is_front = chunk == queue.front;
        if let Some(given) = queue.given_of(chunk) {
            given.pieces.push_back(full);
        }
        drop(queue);
        if is_front && !mutant!("gather-hand-over-without-wake") {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// Notes how a chunk has ended, after its rows have been handed over.
    pub(super) fn end(&self, chunk: u32, end: Result<()>) {
        let mut queue = self.queue.lock();
        if let Some(given) = queue.given_of(chunk) {
            given.end = Some(end);
        }
        let is_front = chunk == queue.front;
        drop(queue);
        if is_front && !mutant!("gather-end-without-wake") {
            self.ready.notify_one();
        }
    }

    /// Takes back the memory of a piece.
    pub(super) fn give_back(&self, mut piece: Piece) {
        piece.clear();
        let mut queue = self.queue.lock();
        if queue.spare.len() < SPARE {
            queue.spare.push(piece);
        }
    }

    /// No rows are wanted any more.
    pub(super) fn stop(&self) {
        // Under the lock, so that no thread begins to wait between its look and the wake-up.
        let queue = self.queue.lock();
        if mutant!("gather-stop-outside-of-lock") {
            drop(queue);
        }
        self.stop.store(true, Ordering::Relaxed);
        self.room.notify_all();
    }

    /// Whether a chunk that has just been claimed is not too far ahead, and not too much waits.
    #[cfg(all(test, shuttle))]
    pub(super) fn is_within_bounds(&self, claimed: Option<u32>) -> bool {
        let queue = self.queue.lock();
        // The front chunk's piece comes on top, and that of the session's own chunk.
        let largest = queue.given.iter().flat_map(|given| &given.pieces).map(Piece::size).max();
        claimed.is_none_or(|chunk| chunk < queue.front + self.window)
            && queue.bytes <= self.bound + 3 * largest.unwrap_or(0)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Queue {
    fn given_of(&mut self, chunk: u32) -> Option<&mut Given> {
        let chunk = if mutant!("gather-rows-go-to-front") { self.front } else { chunk };
        self.given.get_mut(chunk.checked_sub(self.front)? as usize)
    }

    fn count_less(&mut self, bytes: usize) {
        self.bytes -= bytes;
        // To count less takes nothing.
        let _ = self.held.resize(self.bytes);
    }
}

/// What ends a thread's work when no rows are wanted. The session never sees it.
#[cold]
pub(super) fn stopped() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "the session wants no more rows")
}
