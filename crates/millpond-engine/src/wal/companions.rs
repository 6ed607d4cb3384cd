//! Whether the leader of a group of commits waits for those that are likely to come.
//!
//! Two sessions that commit one after the other fall into turns. While one's commit is synced, the
//! other's comes and must wait for the next sync, and so on: each sync is for one commit. If the
//! leader waits until the session that has just been answered commits again, one sync is for both.
//!
//! The leader expects as many as the group before had: those that it synced for, and those that
//! were waiting by then. It waits no longer than a sync takes. A wait in which no commit comes is
//! lost time, so the next ones are left out: one, then two, four, and so on. A wait that something
//! else cuts short counts only if a commit has come.
//!
//! Sessions fall into turns only if syncs are what they wait for most. If a session works for
//! longer between two commits than two syncs of each other session take, it mostly finds the log
//! free. A leader that waits then leaves processors idle, and gains nothing.

use std::time::Duration;

use millpond_sync::mutant;

/// Where syncs are faster, parking and waking a thread takes as long as what could be gained.
const LEAST_SYNC: Duration = Duration::from_micros(50);
/// The longest wait.
const LONGEST: Duration = Duration::from_millis(10);
/// The most waits that are left out one after the other.
const MOST_LEFT_OUT: u32 = 64;
/// A leader waits only if a session works no longer than this many syncs of each other session.
const SYNCS_OF_EACH: u32 = 2;
/// A new value counts for this part of an average.
const WEIGHT: u32 = 8;

/// What leaders have learnt so far.
#[derive(Debug, Default)]
pub(super) struct Companions {
    /// The time of a sync, on average.
    sync: Duration,
    /// The time that a leader's session worked between two commits, on average.
    work: Duration,
    /// How many waits are still left out.
    left_out: u32,
    /// How many are after the next wait in which no commit comes.
    penalty: u32,
}

impl Companions {
    /// Notes how long a sync has taken.
    pub(super) fn synced(&mut self, took: Duration) {
        self.sync = averaged(self.sync, took);
    }

    /// Notes how long a leader's session has worked since its last commit. Zero if it had none.
    pub(super) fn worked(&mut self, time: Duration) {
        if !time.is_zero() {
            // A rest of minutes tells no more than a short one.
            self.work = averaged(self.work, time.min(LONGEST));
        }
    }

    /// How long a leader waits, if at all. `here`: how many the group has, the leader among them.
    pub(super) fn wait(&mut self, expected: usize, here: usize) -> Option<Duration> {
        if here >= expected || self.sync < LEAST_SYNC {
            return None;
        }
        let others = u32::try_from(expected - 1).unwrap_or(u32::MAX);
        let syncs_of_others = self.sync.saturating_mul(others.saturating_mul(SYNCS_OF_EACH));
        if self.work > syncs_of_others && !mutant!("wal-wait-beside-a-free-log") {
            return None;
        }
        if let Some(left) = self.left_out.checked_sub(1) {
            self.left_out = left;
            return None;
        }
        Some(self.sync.min(LONGEST))
    }

    /// Notes whether a commit has come during a wait.
    pub(super) fn waited(&mut self, has_come: bool) {
        if has_come {
            self.penalty /= 2;
        } else if !mutant!("wal-wait-for-nobody-again") {
            self.left_out = self.penalty.max(1);
            self.penalty = (self.left_out * 2).min(MOST_LEFT_OUT);
        }
    }
}

/// The average once `next` counts, too. Zero: nothing has counted so far.
fn averaged(average: Duration, next: Duration) -> Duration {
    match average {
        Duration::ZERO => next,
        average => average - average / WEIGHT + next / WEIGHT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: Duration = Duration::from_millis(1);

    fn after_syncs(took: Duration) -> Companions {
        let mut companions = Companions::default();
        (0..10).for_each(|_| companions.synced(took));
        companions
    }

    #[test]
    fn a_leader_waits_for_as_many_as_there_were() {
        let mut companions = after_syncs(SYNC);
        assert_eq!(companions.wait(1, 1), None);
        assert_eq!(companions.wait(2, 2), None);
        for _ in 0..100 {
            let wait = companions.wait(2, 1).unwrap();
            assert!(wait <= SYNC && wait > SYNC / 2, "{wait:?}");
            companions.waited(true);
        }
    }

    #[test]
    fn fast_syncs_are_not_waited_for_and_slow_ones_not_long() {
        assert_eq!(Companions::default().wait(9, 1), None);
        assert_eq!(after_syncs(LEAST_SYNC / 2).wait(9, 1), None);
        assert_eq!(after_syncs(Duration::from_secs(9)).wait(9, 1), Some(LONGEST));
    }

    #[test]
    fn sessions_that_work_longer_than_syncs_take_are_not_waited_for() {
        let mut companions = after_syncs(SYNC);
        companions.worked(SYNC * 5);
        assert_eq!(companions.wait(2, 1), None);
        assert_eq!(companions.wait(3, 1), None);
        assert_eq!(companions.wait(4, 1), Some(SYNC), "three others have syncs, too");
        (0..30).for_each(|_| companions.worked(SYNC));
        assert_eq!(companions.wait(2, 1), Some(SYNC));
        // Neither the first commit of a session nor an hour's rest counts for much.
        companions.worked(Duration::ZERO);
        assert_eq!(companions.wait(2, 1), Some(SYNC));
        companions.worked(Duration::from_secs(3600));
        (0..10).for_each(|_| companions.worked(SYNC / 2));
        assert_eq!(companions.wait(2, 1), Some(SYNC));
    }

    #[test]
    fn waits_without_a_commit_get_rare() {
        let mut companions = after_syncs(SYNC);
        let mut waits = 0;
        for _ in 0..10_000 {
            if companions.wait(2, 1).is_some() {
                companions.waited(false);
                waits += 1;
            }
        }
        assert!((100..=10_000 / MOST_LEFT_OUT + 10).contains(&waits), "{waits}");
        // Once a commit comes they soon get frequent again.
        let rounds = (0..10_000).filter(|_| {
            let waits = companions.wait(2, 1).is_some();
            if waits {
                companions.waited(true);
            }
            waits
        });
        assert!(rounds.count() > 9_900);
    }
}
