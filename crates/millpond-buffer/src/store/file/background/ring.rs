//! An io_uring and the thread that owns it.
//!
//! Each request has a slot, which owns the job, and so the memory and the file that the kernel copies between,
//! until the kernel has said that it is done with both. A job that comes back short, or that goes on
//! in another file, is submitted again for the rest.
//!
//! What the kernel has completed is looked at (checked, copied, published: microseconds each) only after what comes next
//! has been handed over, so that the device does not wait for that.
//!
//! This is the only file here with unsafe code: handing the kernel an address. The addresses are of buffers that
//! belong to the jobs; never of the pool's frames, whose bytes late readers may look at (buffer rule 5).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use io_uring::{IoUring, Probe, opcode, types};

use super::{Job, Shared};
use crate::store::Way;

/// Requests under way at a time, at most.
const SLOTS: usize = 256;
/// The request that reads the eventfd.
const WAKE: u64 = u64::MAX;

struct Slot {
    job: Job,
    /// Bytes that have been copied.
    done: usize,
}

/// A ring with its requests.
pub(super) struct Ring {
    ring: IoUring,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// What the kernel is done with and nobody has been told of.
    ended: Vec<(Job, io::Result<()>)>,
    wake: Wake,
}

/// What the request that reads the eventfd needs.
struct Wake {
    file: OwnedFd,
    buffer: Box<[u8; 8]>,
    armed: bool,
}

impl Ring {
    /// A ring, if the kernel lets us have one that can read and write.
    pub(super) fn new(wake: &OwnedFd) -> io::Result<Self> {
        let entries = (SLOTS + 1).next_power_of_two() as u32;
        let quiet = IoUring::builder()
            .dontfork()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(entries);
        // Kernels before 6.1 don't know these two.
        let ring = quiet.or_else(|_| IoUring::builder().dontfork().build(entries))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let able = [opcode::Read::CODE, opcode::Write::CODE].map(|code| probe.is_supported(code));
        if able.contains(&false) || !ring.params().is_feature_nodrop() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self {
            ring,
            slots: (0..SLOTS).map(|_| None).collect(),
            free: (0..SLOTS).rev().collect(),
            ended: Vec::with_capacity(SLOTS),
            wake: Wake { file: wake.try_clone()?, buffer: Box::new([0; 8]), armed: false },
        })
    }

    fn is_idle(&self) -> bool {
        self.free.len() == SLOTS
    }

    /// Prepares the request for a job.
    fn add(&mut self, job: Job) {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = Some(Slot { job, done: 0 });
                self.push(slot);
            }
            None => self.ended.push((job, Err(io::ErrorKind::WouldBlock.into()))),
        }
    }

    /// Prepares the request for the rest of a slot's job, or finishes it.
    fn push(&mut self, number: usize) {
        let Some(slot) = &mut self.slots[number] else { return };
        let start = slot.job.transfer.start();
        let Some((segment, offset, length)) = slot.job.rest(slot.done) else {
            return self.end(number, Ok(()));
        };
        let file = types::Fd(segment.as_fd().as_raw_fd());
        let (memory, length) = (start.wrapping_add(slot.done), length as u32);
        let request = match slot.job.transfer.way() {
            Way::FromStore => opcode::Read::new(file, memory, length).offset(offset).build(),
            Way::ToStore => opcode::Write::new(file, memory, length).offset(offset).build(),
        };
        let request = request.user_data(number as u64);
        // SAFETY: the memory: `start` is where the buffer of the slot's job begins. It has room for all of the
        // job's pages, the lengths of the pieces add up to those, and `rest` says how many bytes are left of
        // them after `done`; so `length` bytes from there are inside. It is on the heap, owned by the slot alone
        // and not touched until the slot is finished, which happens when the kernel has completed the
        // request; `Ring::drop` waits for that, or leaks memory and file. The file: the slot's job holds the
        // segment, and so the descriptor, for as long.
        let pushed = unsafe { self.ring.submission().push(&request) };
        if pushed.is_err() {
            // Never: the queue has room for every slot.
            self.end(number, Err(io::ErrorKind::WouldBlock.into()));
        }
    }

    /// The kernel is done with a job. The next of its kind may begin, and is then in the queue.
    fn end(&mut self, number: usize, result: io::Result<()>) {
        if let Some(Slot { mut job, .. }) = self.slots[number].take() {
            self.free.push(number);
            job.end_turn();
            self.ended.push((job, result));
        }
    }

    /// Tells whoever asked.
    fn finish_ended(&mut self) {
        self.ended.drain(..).for_each(|(job, result)| job.finish(result));
    }

    /// Prepares the request that ends when somebody writes to the eventfd.
    fn arm(&mut self) {
        if self.wake.armed {
            return;
        }
        let file = types::Fd(self.wake.file.as_raw_fd());
        let request =
            opcode::Read::new(file, self.wake.buffer.as_mut_ptr(), 8).build().user_data(WAKE);
        // SAFETY: eight bytes on the heap, owned by the ring and not touched while it is armed; the descriptor is
        // the ring's own. `Ring::drop` waits for this request too, or leaks both.
        self.wake.armed = unsafe { self.ring.submission().push(&request) }.is_ok();
    }

    /// Hands over what has been prepared.
    fn submit(&mut self) -> io::Result<()> {
        let is_empty = self.ring.submission().is_empty();
        if is_empty { Ok(()) } else { self.enter(0) }
    }

    /// Hands over what has been prepared and waits for at least one completion.
    fn submit_and_wait(&mut self) -> io::Result<()> {
        self.enter(1)
    }

    fn enter(&mut self, completions: usize) -> io::Result<()> {
        match self.ring.submit_and_wait(completions) {
            Ok(_) => Ok(()),
            // A signal; or no memory, or too many completions, for now: those that there are make room.
            Err(error) if is_temporary(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deals with what the kernel has completed.
    fn reap(&mut self) {
        loop {
            let Some(completed) = self.ring.completion().next() else { return };
            let result = completed.result();
            if completed.user_data() == WAKE {
                self.wake.armed = false;
                continue;
            }
            let number = completed.user_data() as usize;
            let Some(slot) = self.slots.get_mut(number).and_then(Option::as_mut) else { continue };
            match usize::try_from(result) {
                Ok(0) => {
                    let error = match slot.job.transfer.way() {
                        Way::FromStore => io::ErrorKind::UnexpectedEof,
                        Way::ToStore => io::ErrorKind::WriteZero,
                    };
                    self.end(number, Err(error.into()));
                }
                Ok(bytes) => {
                    slot.done += bytes;
                    self.push(number);
                }
                Err(_) => {
                    let error = io::Error::from_raw_os_error(-result);
                    if is_temporary(&error) {
                        self.push(number);
                    } else {
                        self.end(number, Err(error));
                    }
                }
            }
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, ResourceBusy, WouldBlock};
    matches!(error.kind(), Interrupted | WouldBlock | ResourceBusy)
}

impl Drop for Ring {
    /// The kernel may still write to the memory of what is under way.
    fn drop(&mut self) {
        if self.wake.armed {
            let _ = rustix::io::write(&self.wake.file, &1u64.to_ne_bytes());
        }
        while !self.is_idle() || self.wake.armed {
            if self.submit_and_wait().is_err() {
                // Nobody shall wait for these jobs; their memory and files stay.
                for slot in std::mem::take(&mut self.slots).into_iter().flatten() {
                    slot.job.abandon();
                }
                std::mem::forget(std::mem::replace(&mut self.wake.buffer, Box::new([0; 8])));
                return;
            }
            self.reap();
            self.finish_ended();
        }
    }
}

/// Serves the queue until told to stop.
pub(super) fn run(mut ring: Ring, shared: &Shared) {
    let mut taken = Vec::with_capacity(SLOTS);
    while let Some(to_do) = look(&mut ring, shared, &mut taken) {
        let handed_over = match to_do {
            // What has come back is looked at while the device does what it has been given instead.
            ToDo::Finish => ring.submit(),
            ToDo::Wait => ring.submit_and_wait(),
        };
        if let Err(error) = handed_over {
            tracing::error!(%error, "io_uring failed");
            return ring.finish_ended();
        }
        match to_do {
            ToDo::Finish => ring.finish_ended(),
            ToDo::Wait => {
                shared.queue.lock().asleep = false;
                ring.reap();
            }
        }
    }
}

/// What the ring's thread does next, besides handing over what has been prepared.
#[derive(Clone, Copy)]
enum ToDo {
    /// Tell of what has ended.
    Finish,
    /// Wait for the kernel.
    Wait,
}

/// Takes jobs from the queue, by way of `taken`, which is empty; `None` if that was the end.
fn look(ring: &mut Ring, shared: &Shared, taken: &mut Vec<Job>) -> Option<ToDo> {
    let mut queue = shared.queue.lock();
    loop {
        let count = queue.jobs.len().min(ring.free.len());
        if count == 0 {
            break;
        }
        taken.extend(queue.jobs.drain(..count));
        // Without the lock: a job that ends at once may begin another, which comes to a queue.
        drop(queue);
        taken.drain(..).for_each(|job| ring.add(job));
        queue = shared.queue.lock();
    }
    if !ring.ended.is_empty() {
        return Some(ToDo::Finish);
    }
    if queue.stop && queue.jobs.is_empty() && ring.is_idle() {
        return None;
    }
    // With jobs left over there is no room: a completion wakes us, not whoever adds another job.
    queue.asleep = queue.jobs.is_empty();
    drop(queue);
    ring.arm();
    Some(ToDo::Wait)
}
