//! The loop of a thread that owns a ring. It takes jobs from a queue, hands them to the kernel, and
//! finishes those that the kernel has completed. Finishing a job (checking and publishing its
//! pages) takes microseconds. So the thread first hands over the next jobs, to keep the device
//! busy.

use super::uring::{Ended, SLOTS, Uring};
use super::{Job, Shared};

/// Serves the queue until told to stop.
pub(super) fn run(mut ring: Uring, shared: &Shared) {
    let (mut taken, mut ended) = (Vec::with_capacity(SLOTS), Vec::with_capacity(SLOTS));
    while let Some(to_do) = look(&mut ring, shared, &mut taken, &mut ended) {
        let handed_over = match to_do {
            // The thread finishes completed jobs while the device works on what it has been given.
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
                // The next of their kind may begin; they are in the queue after this.
                ended.iter_mut().for_each(|(job, _)| job.end_turn());
            }
        }
        if handed_over.is_err() {
            return ended.drain(..).for_each(|(job, result)| job.finish(result));
        }
    }
}

/// The next step of the ring's thread, apart from handing over what has been prepared.
#[derive(Clone, Copy)]
enum ToDo {
    /// Finish the jobs that have ended.
    Finish,
    /// Wait for the kernel.
    Wait,
}

/// Takes jobs from the queue, by way of `taken`, which is empty. `None`: the thread was told to
/// stop, and all jobs have ended.
fn look(
    ring: &mut Uring,
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
    // Jobs are left over only when there is no room. Then a completion wakes this thread; a session
    // that adds another job does not.
    queue.asleep = queue.jobs.is_empty();
    drop(queue);
    ring.arm();
    Some(ToDo::Wait)
}
