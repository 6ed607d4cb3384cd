//! Group commit: one thread, the leader, does the work for all threads and tasks that wait.
//!
//! The thread that holds `leader` does the work for all that wait by then. A thread that wants
//! something done first tries to lead, so a single thread needs no hand-over. If another thread
//! leads, it queues and parks. When a leader is done, it wakes one waiter that it did not cover, to
//! lead next. Then it wakes all that it did cover.
//!
//! No wake-up is lost. A waiter queues first. Then it checks whether it is covered, and tries once
//! more to lead. If that fails, the current leader has not yet looked at the queue, because a
//! leader looks after it has released `leader`.

use std::task::Waker;
use std::time::Duration;

use millpond_buffer::Lsn;
use millpond_sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use millpond_sync::sync::{Arc, Mutex, MutexGuard};
use millpond_sync::{CachePadded, mutant, parking};

/// A group of waiters and the state that only a leader uses.
pub(crate) struct Group<L> {
    leader: CachePadded<Mutex<L>>,
    queue: CachePadded<Mutex<Vec<Waiter>>>,
    /// How many are in the queue, for a leader that waits until there are more. It changes under
    /// the queue's lock.
    waiting: AtomicUsize,
    /// How many of them are tasks.
    tasks: AtomicUsize,
    /// A leader is parked on [`Group::pause_key`], or is about to be, until more have come.
    pausing: AtomicBool,
    /// How many a leader has worked for and has left, itself among them, when it was done.
    size: AtomicUsize,
}

struct Waiter {
    upto: Lsn,
    who: Who,
}

enum Who {
    Thread(Arc<Parked>),
    /// A task, and how long its leader should let others join.
    Task(Waker, Duration),
}

/// A parked thread: zero until it is woken.
struct Parked(AtomicU32);

impl Parked {
    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn park(&self) {
        while self.0.load(Ordering::Acquire) == 0 {
            parking::park(self.key(), || self.0.load(Ordering::Acquire) == 0, None);
        }
    }
}

impl Who {
    fn wake(self) {
        match self {
            Who::Thread(parked) => {
                parked.0.store(1, Ordering::Release);
                parking::unpark_one(parked.key());
            }
            Who::Task(waker, _) => waker.wake(),
        }
    }
}

impl<L> Group<L> {
    /// A group without waiters.
    pub fn new(leader: L) -> Self {
        Self {
            leader: CachePadded::new(Mutex::new(leader)),
            queue: CachePadded::default(),
            waiting: AtomicUsize::new(0),
            tasks: AtomicUsize::new(0),
            pausing: AtomicBool::new(false),
            size: AtomicUsize::new(0),
        }
    }

    /// The address on which a leader parks while it lets others join.
    pub fn pause_key(&self) -> usize {
        std::ptr::from_ref(&self.pausing).addr()
    }

    /// How many wait for a leader.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Whether a task waits for a leader.
    pub fn has_tasks(&self) -> bool {
        self.tasks.load(Ordering::SeqCst) > 0
    }

    /// How many the group had that a thread has led last, itself and those that it left included.
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Sets [`Group::size`]. Mostly it has not changed, and nothing is written that others read.
    pub fn set_size(&self, size: usize) {
        if self.size() != size {
            self.size.store(size, Ordering::Relaxed);
        }
    }

    /// Whether the leader wants to be woken when a commit joins. (SeqCst: either the leader sees
    /// the one that joins in [`Group::waiting`] and [`Group::has_tasks`], or that one sees this.)
    pub fn set_pausing(&self, is_pausing: bool) {
        self.pausing.store(is_pausing, Ordering::SeqCst);
    }

    /// Queues a waiter. Returns whether it is the first.
    fn join(&self, waiter: Waiter) -> bool {
        let mut queue = self.queue.lock();
        let is_first = queue.is_empty();
        if matches!(waiter.who, Who::Task(..)) {
            self.tasks.store(self.tasks.load(Ordering::Relaxed) + 1, Ordering::SeqCst);
        }
        queue.push(waiter);
        self.waiting.store(queue.len(), Ordering::SeqCst);
        drop(queue);
        if self.pausing.load(Ordering::SeqCst) && !mutant!("wal-join-without-wake") {
            parking::unpark_all(self.pause_key());
        }
        is_first
    }

    /// Becomes the only leader, when it can. Call [`Group::hand_over`] after dropping the result.
    pub fn lead(&self) -> MutexGuard<'_, L> {
        self.leader.lock()
    }

    /// Returns once `covers(upto)`, which the `work` of some leader makes true. A thread that is
    /// about to park, and is first in the queue, calls `prepare`: most likely it leads next.
    /// `tasks_left` is called if only tasks are left in the queue. The caller then finds them a
    /// leader.
    pub fn wait(
        &self,
        upto: Lsn,
        covers: &impl Fn(Lsn) -> bool,
        work: &impl Fn(&mut L),
        prepare: &impl Fn(),
        tasks_left: &impl Fn(),
    ) {
        let try_to_lead = || {
            let Some(mut leader) = self.leader.try_lock() else { return false };
            if !covers(upto) {
                work(&mut leader);
            }
            drop(leader);
            let (tasks, others) = self.hand_over_counting(covers);
            self.set_size(1 + others);
            if tasks {
                tasks_left();
            }
            true
        };
        while !try_to_lead() {
            let parked = Arc::new(Parked(AtomicU32::new(0)));
            let who = Who::Thread(Arc::clone(&parked));
            let is_first = self.join(Waiter { upto, who });
            if covers(upto) || try_to_lead() {
                return;
            }
            if is_first {
                prepare();
            }
            parked.park();
            if covers(upto) {
                return;
            }
        }
    }

    /// Has a task woken once `covers(upto)`. `false`: it is covered already, and the task was
    /// woken. `true`: some thread must lead for it.
    pub fn enlist(
        &self,
        upto: Lsn,
        pause: Duration,
        waker: Waker,
        covers: impl Fn(Lsn) -> bool,
    ) -> bool {
        if !covers(upto) {
            let who = Who::Task(waker.clone(), pause);
            self.join(Waiter { upto, who });
            if !covers(upto) {
                return true;
            }
        }
        waker.wake();
        false
    }

    /// The last position that a task waits for, and the longest pause that one of them wants.
    pub fn awaited_by_tasks(&self) -> Option<(Lsn, Duration)> {
        let queue = self.queue.lock();
        let tasks = queue.iter().filter_map(|waiter| match waiter.who {
            Who::Task(_, pause) => Some((waiter.upto, pause)),
            Who::Thread(_) => None,
        });
        tasks.reduce(|all, one| (all.0.max(one.0), all.1.max(one.1)))
    }

    /// Call it after leading, without holding `leader`. Wakes the next leader, then all waiters
    /// that are covered. Returns whether only tasks are left, for which some thread must lead.
    pub fn hand_over(&self, covers: impl Fn(Lsn) -> bool) -> bool {
        self.hand_over_counting(covers).0
    }

    /// The same, and how many have waited.
    fn hand_over_counting(&self, covers: impl Fn(Lsn) -> bool) -> (bool, usize) {
        let mut done = Vec::new();
        let mut queue = self.queue.lock();
        let count = queue.len();
        let mut index = 0;
        while index < queue.len() {
            if covers(queue[index].upto) {
                done.push(queue.swap_remove(index).who);
            } else {
                index += 1;
            }
        }
        let thread = queue.iter().position(|waiter| matches!(waiter.who, Who::Thread(_)));
        let next = thread.map(|index| queue.swap_remove(index).who);
        let tasks_left = next.is_none() && !queue.is_empty();
        if count > 0 {
            let is_task = |waiter: &&Waiter| matches!(waiter.who, Who::Task(..));
            self.tasks.store(queue.iter().filter(is_task).count(), Ordering::SeqCst);
            self.waiting.store(queue.len(), Ordering::SeqCst);
        }
        drop(queue);
        if let Some(next) = next {
            next.wake();
        }
        done.into_iter().for_each(Who::wake);
        (tasks_left, count)
    }
}
