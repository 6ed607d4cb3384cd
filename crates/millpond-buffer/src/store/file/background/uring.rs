//! An io_uring with its requests ([`Uring`]). It serves all threads, or one thread that an eventfd
//! wakes.
//!
//! Each request has a slot. The slot owns the job until the kernel has said that it is done. So it
//! owns the memory and the file that the kernel copies between. A job that comes back short, or
//! that goes on in another file, is submitted again for the rest.
//!
//! A thread needs the ring exclusively (`&mut`) to prepare requests and to take completions. It
//! calls the kernel through a separate reference ([`Uring::kernel`], [`enter`]), so it does not
//! hold the ring while it waits. The kernel takes all requests that it finds prepared, from every
//! thread.
//!
//! This is the only file here with unsafe code: it hands addresses to the kernel. They are
//! addresses of memory that belongs to the jobs: buffers, or frames that the jobs have been lent.
//! Late readers may look at such frames as atomic words, as `millpond_sync::fill` allows (buffer
//! rule 5).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use io_uring::{IoUring, Probe, opcode, squeue, types};
use millpond_sync::fill::{IoTarget, IoVectors};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Job;
use crate::store::Way;
use crate::{MAX_COMBINE, PAGE_SIZE};

/// The most requests under way at a time.
pub(super) const SLOTS: usize = 256;
/// The request that reads the eventfd.
const WAKE: u64 = u64::MAX;
// A request for the pages of a read has a vector for each (`IOV_MAX`).
const _: () = assert!(MAX_COMBINE <= 1024);
/// How long to wait for the kernel to have memory, unless something is completed meanwhile.
const MEMORY_NAP_NS: i64 = 1_000_000;

struct Slot {
    job: Job,
    done: usize,
    /// Where the other bytes go, if not to one piece of memory.
    vectors: IoVectors,
}

impl Slot {
    /// The request for `length` bytes of the rest.
    fn request(&mut self, file: types::Fd, offset: u64, length: usize) -> squeue::Entry {
        let transfer = &mut self.job.transfer;
        if let Some(start) = transfer.start() {
            let (memory, length) = (start.wrapping_add(self.done), length as u32);
            return match transfer.way() {
                Way::FromStore => opcode::Read::new(file, memory, length).offset(offset).build(),
                Way::ToStore => opcode::Write::new(file, memory, length).offset(offset).build(),
            };
        }
        let mut targets = transfer.targets();
        let mut rest = &mut targets[..];
        IoTarget::advance(&mut rest, self.done);
        // Whole pages, but for the first. What follows may belong to another file.
        self.vectors = IoVectors::of(&rest[..length.div_ceil(PAGE_SIZE)]);
        let count = self.vectors.len() as u32;
        opcode::Readv::new(file, self.vectors.as_ptr().cast(), count).offset(offset).build()
    }
}

pub(super) struct Uring {
    ring: Arc<IoUring>,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    wake: Option<Wake>,
}

/// A job that the kernel is done with.
pub(super) type Ended = (Job, io::Result<()>);

/// What the request that reads the eventfd needs.
struct Wake {
    file: OwnedFd,
    buffer: Box<[u8; 8]>,
    armed: bool,
}

impl Uring {
    /// A ring for one thread, which `wake` wakes. Fails if the kernel does not allow one that can
    /// read and write.
    pub(super) fn for_one(wake: &OwnedFd) -> io::Result<Self> {
        let entries = (SLOTS + 1).next_power_of_two() as u32;
        let quiet = IoUring::builder()
            .dontfork()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(entries);
        // Kernels before 6.1 don't know these two flags.
        let ring = quiet.or_else(|_| IoUring::builder().dontfork().build(entries))?;
        let mut ring = Self::new(ring)?;
        ring.wake = Some(Wake { file: wake.try_clone()?, buffer: Box::new([0; 8]), armed: false });
        Ok(ring)
    }

    /// A ring for all threads. Fails if the kernel does not allow it.
    pub(super) fn for_all() -> io::Result<Self> {
        // A thread that computes is not interrupted for each completion, which would cost more than
        // it helps. It takes completions when it waits.
        let quiet = IoUring::builder().dontfork().setup_coop_taskrun().build(SLOTS as u32);
        // Kernels before 5.19 don't know this flag.
        let ring = quiet.or_else(|_| IoUring::builder().dontfork().build(SLOTS as u32))?;
        Self::new(ring)
    }

    fn new(ring: IoUring) -> io::Result<Self> {
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let codes = [opcode::Read::CODE, opcode::Readv::CODE, opcode::Write::CODE];
        let able = codes.map(|code| probe.is_supported(code));
        if able.contains(&false) || !ring.params().is_feature_nodrop() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self {
            ring: Arc::new(ring),
            slots: (0..SLOTS).map(|_| None).collect(),
            free: (0..SLOTS).rev().collect(),
            wake: None,
        })
    }

    /// The kernel's side, to hand over what has been prepared and to wait without holding the ring.
    pub(super) fn kernel(&self) -> Arc<IoUring> {
        Arc::clone(&self.ring)
    }

    /// The number of jobs that there is still room for.
    pub(super) fn room(&self) -> usize {
        self.free.len()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.free.len() == SLOTS
    }

    /// Prepares the request for a job; returns the job if it has ended in this call.
    pub(super) fn add(&mut self, job: Job) -> Option<Ended> {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = Some(Slot { job, done: 0, vectors: IoVectors::default() });
                self.push(slot)
            }
            None => Some((job, Err(io::ErrorKind::WouldBlock.into()))),
        }
    }

    /// Prepares the request for the rest of a job; returns how many pieces of memory it has, if it
    /// has several.
    #[cfg(all(test, not(any(loom, shuttle, miri))))]
    pub(super) fn add_rest(&mut self, job: Job, done: usize) -> usize {
        let number = self.free.pop().expect("a free slot");
        self.slots[number] = Some(Slot { job, done, vectors: IoVectors::default() });
        assert!(self.push(number).is_none(), "it has ended");
        self.slots[number].as_ref().map_or(0, |slot| slot.vectors.len())
    }

    /// Prepares the request for the rest of a slot's job, or ends the job.
    fn push(&mut self, number: usize) -> Option<Ended> {
        let slot = self.slots[number].as_mut()?;
        let Some((segment, offset, length)) = slot.job.rest(slot.done) else {
            return self.end(number, Ok(()));
        };
        // A store whose files have no descriptors has no rings (`FileStore::open_with`).
        let Some(file) = segment.descriptor() else {
            return self.end(number, Err(io::ErrorKind::Unsupported.into()));
        };
        let file = types::Fd(file.as_raw_fd());
        let request = slot.request(file, offset, length).user_data(number as u64);
        // SAFETY: The queue: only `self`, which is borrowed mutably, makes a submission queue of
        // this ring, and drops it at once. The memory: `request` has given addresses in that of the
        // slot's job, which has room for all of the job's pages. The lengths of the pieces add up
        // to those pages, and `rest` says how many bytes are left of them after `done`. So `length`
        // bytes from there are inside. The memory is a buffer on the heap that the slot alone owns,
        // or frames that the slot has been lent. Such frames stay mapped as long as the slot has
        // them, and until then other threads only look at them, as atomics. No thread touches that
        // memory, nor the slot's vectors, until the slot is emptied or filled anew. This happens
        // when the kernel has completed the request. For requests that it has not completed,
        // `Uring::abandon` leaks memory, vectors and file. The file: the slot's job holds the
        // segment, and so the descriptor, for as long.
        let pushed = unsafe { self.ring.submission_shared().push(&request) };
        // The queue has room for every slot. But it may look full while other threads hand it over:
        // the kernel may have completed requests that it has not yet taken out of the queue. Then a
        // new job goes elsewhere. For a job that goes on or is tried again the rest fails, as if
        // the device had failed. A session that needs the page reads it itself.
        if pushed.is_err() { self.end(number, Err(io::ErrorKind::WouldBlock.into())) } else { None }
    }

    /// Empties the slot of a job that the kernel is done with.
    fn end(&mut self, number: usize, result: io::Result<()>) -> Option<Ended> {
        let Slot { job, .. } = self.slots[number].take()?;
        self.free.push(number);
        Some((job, result))
    }

    /// Takes all jobs. The kernel may still use their memory and files. So these are left to it
    /// before any requester is told: a panic of one then frees nothing. The ring must not be used
    /// after that.
    pub(super) fn abandon(&mut self) -> Vec<Job> {
        self.free.clear();
        for slot in self.slots.iter_mut().flatten() {
            slot.job.leave_memory();
            std::mem::forget(std::mem::take(&mut slot.vectors));
        }
        self.slots.drain(..).flatten().map(|slot| slot.job).collect()
    }

    /// Prepares the request that ends when a thread writes to the eventfd.
    pub(super) fn arm(&mut self) {
        let Some(wake) = self.wake.as_mut().filter(|wake| !wake.armed) else { return };
        let file = types::Fd(wake.file.as_raw_fd());
        let request = opcode::Read::new(file, wake.buffer.as_mut_ptr(), 8).build().user_data(WAKE);
        // SAFETY: The queue: as above. The memory: eight bytes on the heap, owned by the ring and
        // not touched while it is armed. The descriptor is the ring's own. `Uring::drop` waits for
        // this request too, or leaks both.
        wake.armed = unsafe { self.ring.submission_shared().push(&request) }.is_ok();
    }

    /// Whether there are prepared requests that the kernel has not been given.
    pub(super) fn is_prepared(&mut self) -> bool {
        // SAFETY: as in `push`.
        !unsafe { self.ring.submission_shared() }.is_empty()
    }

    /// Hands over what has been prepared.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        if self.is_prepared() { enter(&self.ring, 0) } else { Ok(()) }
    }

    /// Hands over what has been prepared and waits for a completion, or for less.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        enter(&self.ring, 1)
    }

    /// Passes what the kernel has completed to `ended`. What isn't all done is prepared again.
    pub(super) fn reap(&mut self, mut ended: impl FnMut(Ended)) {
        let ring = Arc::clone(&self.ring);
        // SAFETY: only `self`, which is borrowed mutably, makes a completion queue of this ring,
        // and only here.
        let mut completions = unsafe { ring.completion_shared() };
        for completed in &mut completions {
            let number = completed.user_data();
            if number == WAKE {
                self.wake.iter_mut().for_each(|wake| wake.armed = false);
                continue;
            }
            if let Some(job) = self.complete(number as usize, completed.result()) {
                ended(job);
            }
        }
    }

    fn complete(&mut self, number: usize, result: i32) -> Option<Ended> {
        let slot = self.slots.get_mut(number).and_then(Option::as_mut)?;
        match usize::try_from(result) {
            Ok(0) => {
                let error = match slot.job.transfer.way() {
                    Way::FromStore => io::ErrorKind::UnexpectedEof,
                    Way::ToStore => io::ErrorKind::WriteZero,
                };
                self.end(number, Err(error.into()))
            }
            Ok(bytes) => {
                slot.done += bytes;
                self.push(number)
            }
            Err(_) => {
                let error = io::Error::from_raw_os_error(-result);
                if is_temporary(&error) { self.push(number) } else { self.end(number, Err(error)) }
            }
        }
    }
}

/// Hands over what has been prepared and waits for `completions` completions, or for less. An error
/// is one of the ring.
pub(super) fn enter(ring: &IoUring, completions: usize) -> io::Result<()> {
    #[cfg(all(test, not(any(loom, shuttle, miri))))]
    let entered = refusals::next().map_or_else(|| ring.submit_and_wait(completions), Err);
    #[cfg(not(all(test, not(any(loom, shuttle, miri)))))]
    let entered = ring.submit_and_wait(completions);
    let Err(error) = entered else { return Ok(()) };
    // For a thread that enters a ring for the first time, the kernel needs memory before all else.
    // What it has not taken stays prepared, for the next thread that enters.
    let has_no_memory = error.kind() == io::ErrorKind::OutOfMemory;
    if !has_no_memory && !is_temporary(&error) {
        return Err(error);
    }
    // A signal came; or the kernel has no memory, or too many completions, for now. Taking the
    // completions that there are makes room.
    if has_no_memory && completions > 0 {
        let limit = Timespec { tv_sec: 0, tv_nsec: MEMORY_NAP_NS };
        let _ = poll(&mut [PollFd::from_borrowed_fd(file_of(ring), PollFlags::IN)], Some(&limit));
    }
    Ok(())
}

/// Errors for tests, as if from the kernel, for a thread that enters a ring.
#[cfg(all(test, not(any(loom, shuttle, miri))))]
pub(super) mod refusals {
    use std::cell::RefCell;
    use std::io;

    thread_local! {
        static NEXT: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
    }

    pub(in super::super) fn set(error: rustix::io::Errno, calls: usize) {
        NEXT.set(vec![error.raw_os_error(); calls]);
    }

    pub(in super::super) fn left() -> usize {
        NEXT.with_borrow(Vec::len)
    }

    pub(super) fn next() -> Option<io::Error> {
        NEXT.with_borrow_mut(Vec::pop).map(io::Error::from_raw_os_error)
    }
}

/// The ring as a file, which can be read when something has been completed.
pub(super) fn file_of(ring: &IoUring) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is the ring's own, which is borrowed for as long.
    unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }
}

/// Whether to try again. (When a thread ends, the kernel cancels the requests that wait in a queue
/// of its own for that thread.)
fn is_temporary(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, ResourceBusy, WouldBlock};
    matches!(error.kind(), Interrupted | WouldBlock | ResourceBusy)
        || error.raw_os_error() == Some(Errno::CANCELED.raw_os_error())
}

impl Drop for Uring {
    /// Waits for what is under way: the kernel may still write to its memory.
    fn drop(&mut self) {
        let mut ended = Vec::new();
        if let Some(wake) = self.wake.as_ref().filter(|wake| wake.armed) {
            let _ = rustix::io::write(&wake.file, &1u64.to_ne_bytes());
        }
        while self.slots.iter().any(Option::is_some)
            || self.wake.as_ref().is_some_and(|wake| wake.armed)
        {
            if enter(&self.ring, 1).is_err() {
                // No thread shall wait for these jobs. Their memory and files stay.
                std::mem::forget(self.wake.take().map(|wake| wake.buffer));
                self.abandon().into_iter().for_each(Job::abandon);
                return;
            }
            self.reap(|job| ended.push(job));
            ended.drain(..).for_each(|(job, result)| job.finish(result));
        }
    }
}
