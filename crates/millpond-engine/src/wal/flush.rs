//! Making the log durable: group commit.
//!
//! Whoever holds `writer` is the leader: it copies all complete records out of the ring, writes them,
//! and syncs once for everybody who waits. A thread that commits first tries to become the leader
//! itself, so a lone committer hands nothing to anybody. If somebody else leads, it queues and parks; a leader that is
//! done wakes one of those it did not cover, to lead next, and then all those it did cover.
//!
//! No wake-up is lost: a waiter queues first and then tries once more to lead. If that fails, the
//! leader it met has not yet looked at the queue, for it looks after it has given up `writer`.
//!
//! The log's own thread leads for those who must not block (`on_flushed`), writes early when the
//! ring fills, makes segments ahead of time, and flushes what nobody waits for after a delay.

use std::sync::{Arc, Weak};
use std::task::Waker;
use std::thread::Thread;
use std::time::Instant;

use millpond_buffer::Lsn;
use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_sync::parking;
use parking_lot::Mutex;

use super::error::WalError;
use super::log::Log;
use super::record::{HEADER_BYTES, Record, RmgrId, padded};

/// The most that is written by one call.
const WRITE_BYTES: usize = 1 << 20;
/// Bytes of a mark that all is durable.
const MARK_BYTES: u64 = padded(HEADER_BYTES) as u64;

/// State of flushing: see the module's description.
pub(super) struct Flushing {
    flushed: CachePadded<AtomicU64>,
    writer: CachePadded<Mutex<Writer>>,
    queue: CachePadded<Mutex<Vec<Waiter>>>,
    /// Up to where the log's thread is asked to write.
    wanted: CachePadded<AtomicU64>,
    /// The log's thread has something to do.
    work: CachePadded<AtomicBool>,
    ending: AtomicBool,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
    syncs: AtomicU64,
    /// The end of the last mark, see `mark_durable`.
    marked: AtomicU64,
    /// The segment of which `on_growth` was told.
    grown: AtomicU64,
    on_growth: Mutex<Option<Box<dyn Fn(Lsn) + Send + Sync>>>,
}

struct Writer {
    written: Lsn,
    synced: Lsn,
    buffer: Vec<u8>,
}

struct Waiter {
    upto: Lsn,
    who: Who,
}

enum Who {
    Thread(Thread),
    Task(Waker),
}

impl Who {
    fn wake(self) {
        match self {
            Who::Thread(thread) => thread.unpark(),
            Who::Task(waker) => waker.wake(),
        }
    }
}

impl Flushing {
    pub fn new(start: Lsn) -> Self {
        Self {
            flushed: CachePadded::new(AtomicU64::new(start.get())),
            writer: CachePadded::new(Mutex::new(Writer {
                written: start,
                synced: start,
                buffer: Vec::new(),
            })),
            queue: CachePadded::default(),
            wanted: CachePadded::default(),
            work: CachePadded::default(),
            ending: AtomicBool::new(false),
            thread: Mutex::default(),
            syncs: AtomicU64::new(0),
            marked: AtomicU64::new(start.get()),
            grown: AtomicU64::new(0),
            on_growth: Mutex::default(),
        }
    }

    pub fn flushed(&self) -> Lsn {
        Lsn(self.flushed.load(Ordering::Acquire))
    }

    /// Gives the log's thread something to do.
    fn kick(&self) {
        if !self.work.swap(true, Ordering::AcqRel) {
            parking::unpark_one(self.work_key());
        }
    }

    fn work_key(&self) -> usize {
        std::ptr::from_ref(&*self.work).addr()
    }
}

impl Log {
    /// Returns once the log is durable up to `upto`, the end of some record.
    pub fn flush(&self, upto: Lsn) -> Result<(), WalError> {
        if self.flushed() >= upto {
            return Ok(());
        }
        let end = self.insert_position();
        if upto > end {
            return Err(WalError::BeyondEnd { wanted: upto, end });
        }
        loop {
            if let Some(result) = self.try_to_lead(upto) {
                return result;
            }
            let who = Who::Thread(std::thread::current());
            self.flushing.queue.lock().push(Waiter { upto, who });
            if self.is_settled(upto) {
                return self.outcome(upto);
            }
            if let Some(result) = self.try_to_lead(upto) {
                return result;
            }
            std::thread::park();
            if self.is_settled(upto) {
                return self.outcome(upto);
            }
        }
    }

    /// Wakes `waker` once the log is durable up to `upto`, or has stopped: ask [`Log::outcome`].
    pub fn on_flushed(&self, upto: Lsn, waker: Waker) {
        if !self.is_settled(upto) {
            self.flushing.queue.lock().push(Waiter { upto, who: Who::Task(waker.clone()) });
            if !self.is_settled(upto) {
                self.flushing.kick();
                return;
            }
        }
        waker.wake();
    }

    /// Whether what ends at `upto` is durable; an error if it never will be.
    pub fn outcome(&self, upto: Lsn) -> Result<(), WalError> {
        if self.flushed() >= upto { Ok(()) } else { self.check_running() }
    }

    /// How many syncs there have been.
    pub fn syncs(&self) -> u64 {
        self.flushing.syncs.load(Ordering::Relaxed)
    }

    /// `f` is called with the position whenever the log has grown by about a segment, and with
    /// [`Lsn::MAX`] when there is no room for another.
    pub fn on_growth(&self, f: impl Fn(Lsn) + Send + Sync + 'static) {
        *self.flushing.on_growth.lock() = Some(Box::new(f));
    }

    fn is_settled(&self, upto: Lsn) -> bool {
        self.flushed() >= upto || self.is_stopping()
    }

    fn try_to_lead(&self, upto: Lsn) -> Option<Result<(), WalError>> {
        let mut writer = self.flushing.writer.try_lock()?;
        if self.flushed() < upto {
            self.wait_for_siblings();
            let _ = self.lead(&mut writer, upto, true);
        }
        drop(writer);
        self.hand_over();
        Some(self.outcome(upto))
    }

    fn wait_for_siblings(&self) {
        if self.config.commit_delay.is_zero() {
            return;
        }
        if self.flushing.queue.lock().len() >= self.config.commit_siblings {
            std::thread::sleep(self.config.commit_delay);
        }
    }

    /// Writes everything complete, at least up to `upto`, and syncs it if `sync`.
    fn lead(&self, writer: &mut Writer, upto: Lsn, sync: bool) -> Result<(), WalError> {
        let target = loop {
            let (complete, blocker) = self.insertion.complete();
            // Only now: a hole left by an insert that met the stop counts as complete.
            self.check_running()?;
            if complete > writer.written {
                self.write_out(writer, complete)?;
            }
            match blocker {
                Some((slot, seen)) if complete < upto => {
                    self.insertion.wait_for_slot(slot, seen, || self.is_stopping());
                }
                _ => break complete,
            }
        };
        if sync && target > writer.synced {
            self.sync(writer, target)?;
        }
        Ok(())
    }

    /// Moves bytes from the ring to the store. What fails stops the log.
    fn write_out(&self, writer: &mut Writer, target: Lsn) -> Result<(), WalError> {
        let segment_bytes = self.store.segment_bytes();
        while writer.written < target {
            let at = writer.written.get();
            let (segment, offset) = (at / segment_bytes, at % segment_bytes);
            let bytes = (target.get() - at).min(segment_bytes - offset).min(WRITE_BYTES as u64);
            writer.buffer.resize(bytes as usize, 0);
            self.insertion.copy_out(writer.written, &mut writer.buffer);
            if !self.segments.allows(Lsn(at + bytes), false) {
                // The reserve is used up as well.
                self.segments.make_room(Lsn(at + bytes)).inspect_err(|error| {
                    self.stop(&error.to_string());
                })?;
            }
            let written = self.store.write(segment, offset, &writer.buffer);
            self.or_stop(written, "write", segment)?;
            writer.written = Lsn(at + bytes);
            self.insertion.set_written(writer.written);
            if offset + bytes == segment_bytes || self.segments.needs_more(writer.written) {
                self.flushing.kick();
            }
        }
        Ok(())
    }

    fn sync(&self, writer: &mut Writer, target: Lsn) -> Result<(), WalError> {
        let segment_bytes = self.store.segment_bytes();
        let first = writer.synced.get() / segment_bytes;
        for segment in first..=(target.get() - 1) / segment_bytes {
            self.or_stop(self.store.sync(segment), "sync", segment)?;
            self.flushing.syncs.fetch_add(1, Ordering::Relaxed);
        }
        writer.synced = target;
        self.flushing.flushed.store(target.get(), Ordering::Release);
        Ok(())
    }

    fn or_stop(
        &self,
        result: std::io::Result<()>,
        what: &str,
        segment: u64,
    ) -> Result<(), WalError> {
        if let Err(error) = result {
            self.stop(&format!("could not {what} log segment {segment:016x}: {error}"));
        }
        self.check_running()
    }

    /// After leading, without `writer`: wakes the next leader, then all who have what they want.
    fn hand_over(&self) {
        let stopped = self.is_stopping();
        let flushed = self.flushed();
        let mut done = Vec::new();
        let next;
        {
            let mut queue = self.flushing.queue.lock();
            let mut index = 0;
            while index < queue.len() {
                if stopped || queue[index].upto <= flushed {
                    done.push(queue.swap_remove(index).who);
                } else {
                    index += 1;
                }
            }
            let thread = queue.iter().position(|waiter| matches!(waiter.who, Who::Thread(_)));
            next = thread.map(|index| queue.swap_remove(index).who);
            if next.is_none() && !queue.is_empty() {
                self.flushing.kick();
            }
        }
        if let Some(next) = next {
            next.wake();
        }
        done.into_iter().for_each(Who::wake);
    }

    /// After a stop: nobody waits any longer.
    pub(super) fn wake_all_waiters(&self) {
        let waiters = std::mem::take(&mut *self.flushing.queue.lock());
        waiters.into_iter().for_each(|waiter| waiter.who.wake());
        self.flushing.kick();
    }

    /// Asks the log's thread to write up to `upto`, for somebody who waits for room in the ring.
    pub(super) fn ask_to_write(&self, upto: Lsn) {
        self.flushing.wanted.fetch_max(upto.get(), Ordering::AcqRel);
        self.flushing.kick();
    }

    /// Has the log's thread start writing each time another eighth of the ring is full.
    pub(super) fn write_early(&self, start: Lsn, end: Lsn) {
        let part = self.insertion.ring_bytes() / 8;
        if start.get() / part != end.get() / part {
            self.flushing.kick();
        }
    }

    pub(super) fn start_flusher(self: &Arc<Self>) -> Result<(), WalError> {
        let log = Arc::downgrade(self);
        let thread = std::thread::Builder::new()
            .name("millpond-log".into())
            .spawn(move || flusher(&log))
            .map_err(|source| WalError::io("could not start the log's thread", source))?;
        *self.flushing.thread.lock() = Some(thread);
        Ok(())
    }

    /// Flushes everything and ends the log's thread. The log cannot be used afterwards.
    pub fn close(&self) -> Result<(), WalError> {
        let result = self.flush(self.insert_position());
        self.stop_quietly();
        result
    }

    /// Ends the log's thread without flushing: for tests that crash.
    pub fn abandon(&self) {
        self.stop("abandoned");
        self.stop_quietly();
    }

    fn stop_quietly(&self) {
        self.flushing.ending.store(true, Ordering::Release);
        self.flushing.kick();
        if let Some(thread) = self.flushing.thread.lock().take() {
            let _ = thread.join();
        }
    }

    /// What the log's thread does when it is kicked, or `idle` for a while. Returns whether it ends.
    fn flusher_turn(&self, idle: bool) -> bool {
        if self.flushing.ending.load(Ordering::Acquire) {
            return true;
        }
        if self.is_stopping() {
            self.hand_over();
            return false;
        }
        let awaited = self.awaited_by_tasks();
        if awaited.is_some() || idle {
            self.lead_in_background(awaited.unwrap_or(Lsn::ZERO), true);
        }
        let wanted = Lsn(self.flushing.wanted.load(Ordering::Acquire));
        if wanted > self.insertion.written() || !self.is_caught_up() {
            self.lead_in_background(wanted, false);
        }
        self.make_segments_ahead();
        if idle {
            self.mark_durable();
        }
        false
    }

    /// The last position that a task waits for.
    fn awaited_by_tasks(&self) -> Option<Lsn> {
        let queue = self.flushing.queue.lock();
        let tasks = queue.iter().filter(|waiter| matches!(waiter.who, Who::Task(_)));
        tasks.map(|waiter| waiter.upto).max()
    }

    fn is_caught_up(&self) -> bool {
        let behind = self.insert_position().get() - self.insertion.written().get();
        behind < self.insertion.ring_bytes() / 8
    }

    fn lead_in_background(&self, upto: Lsn, sync: bool) {
        let mut writer = self.flushing.writer.lock();
        if upto > self.flushed() || writer.synced < self.insert_position() {
            let _ = self.lead(&mut writer, upto, sync);
        }
        drop(writer);
        self.hand_over();
    }

    fn make_segments_ahead(&self) {
        let position = self.insert_position();
        if self.segments.needs_more(position) {
            if let Err(error) = self.segments.make_ahead(position) {
                tracing::warn!("could not make a log segment ahead of time: {error}");
            }
        }
        let segment = position.get() / self.store.segment_bytes();
        if self.flushing.grown.swap(segment, Ordering::Relaxed) != segment {
            self.tell_growth(position);
        }
    }

    /// Tells the checkpointer where the log ends, or [`Lsn::MAX`]: that it must not grow any more.
    pub(super) fn tell_growth(&self, position: Lsn) {
        if let Some(call) = &*self.flushing.on_growth.lock() {
            call(position);
        }
    }

    /// Whether nothing but a mark of the log's own has been inserted since `end`.
    pub fn is_idle_since(&self, end: Lsn) -> bool {
        let position = self.insert_position();
        let marked = Lsn(self.flushing.marked.load(Ordering::Relaxed));
        position == end || position == marked && marked.get() == end.get() + MARK_BYTES
    }

    /// Once all is quiet and durable, a last record says so: if the bytes before it are damaged
    /// later, recovery knows that this is no torn tail (wal rule 6).
    fn mark_durable(&self) {
        let end = self.insert_position();
        if self.flushed() < end || self.flushing.marked.load(Ordering::Relaxed) == end.get() {
            return;
        }
        let mark = Record::new(Default::default(), RmgrId::Log, super::info::DURABLE, b"");
        if let Ok(mark) = self.insert(self.flusher_stripe(), &mark) {
            self.lead_in_background(mark.end, true);
            self.flushing.marked.store(mark.end.get(), Ordering::Relaxed);
        }
    }
}

fn flusher(log: &Weak<Log>) {
    loop {
        let Some(this) = log.upgrade() else { return };
        let deadline = Instant::now() + this.config.writer_delay;
        let nothing = || !this.flushing.work.load(Ordering::Acquire);
        parking::park(this.flushing.work_key(), nothing, Some(deadline));
        let idle = !this.flushing.work.swap(false, Ordering::AcqRel);
        if this.flusher_turn(idle) {
            return;
        }
    }
}
