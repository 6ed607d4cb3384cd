//! A thread that owns a ring: it takes jobs from a queue, hands them to the kernel, and finishes those that the kernel has done.
//!
//! What the kernel has completed is looked at (checked, published: microseconds each) only after what comes next
//! has been handed over, so that the device does not wait for that.

use super::ring::{Ended, Ring, SLOTS};
use super::{Job, Shared};

/// Serves the queue until told to stop.
pub(super) fn run(mut ring: Ring, shared: &Shared) {
    let (mut taken, mut ended) = (Vec::with_capacity(SLOTS), Vec::with_capacity(SLOTS));
    while let Some(to_do) = look(&mut ring, shared, &mut taken, &mut ended) {
        let handed_over = match to_do {
            // What has come back is looked at while the device does what it has been given instead.
            ToDo::Finish => ring.submit(),
            ToDo::Wait => ring.wait(),
        };
        if let Err(error) = &handed_over {
            tracing::error!(%error, "io_uring failed");
        }
        match to_do {
            ToDo::Finish => ended.drain(..).for_each(|(job, result)| job.finish(result)),
            ToDo::Wait => {
                shared.queue.lock().asleep = false;
                ring.reap(|job| ended.push(job));
                // The next of their kind may begin, and are then in the queue.
                ended.iter_mut().for_each(|(job, _)| job.end_turn());
            }
        }
        if handed_over.is_err() {
            return ended.drain(..).for_each(|(job, result)| job.finish(result));
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
fn look(
    ring: &mut Ring,
    shared: &Shared,
    taken: &mut Vec<Job>,
    ended: &mut Vec<Ended>,
) -> Option<ToDo> {
    let mut queue = shared.queue.lock();
    loop {
        let count = queue.jobs.len().min(ring.room());
        if count == 0 {
            break;
        }
        taken.extend(queue.jobs.drain(..count));
        drop(queue);
        ended.extend(taken.drain(..).filter_map(|job| ring.add(job)));
        queue = shared.queue.lock();
    }
    if !ended.is_empty() {
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
