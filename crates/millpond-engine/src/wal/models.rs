//! Models of the log, for loom and shuttle. They cover insertion (reserve, copy, write out, and the
//! epoch) and group commit. write_ahead.rs has the log as a whole on a disk that fails.
//!
//! Loom explores every interleaving, and every value that a relaxed load may return, for two
//! inserters and a writer. Shuttle runs more sessions, with a ring so small that they often wait
//! for room. `cargo xtask loom` and `cargo xtask shuttle` run these models.

use std::sync::Arc;

use millpond_buffer::Lsn;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::thread;

use super::insertion::Insertion;

#[cfg(all(shuttle, not(loom)))]
mod write_ahead;

/// Fills `words` words of log, each with the start of their record plus one.
fn insert(insertion: &Insertion, slot: usize, words: usize) {
    let bound = insertion.place().lsn;
    insertion.begin(slot, bound);
    let got = insertion.reserve(words * 8);
    let end = Lsn(got.lsn.get() + words as u64 * 8);
    assert!(insertion.wait_for_room(slot, got.lsn, end, |_| (), || false));
    let record: Vec<u8> =
        std::iter::repeat_n((got.lsn.get() + 1).to_le_bytes(), words).flatten().collect();
    insertion.copy_in(got.lsn, &record);
    insertion.finish(slot);
}

/// Writes out what is complete. Checks that every word belongs to the right record.
fn write_out(insertion: &Insertion, log: &mut Vec<u64>, words: usize) -> Option<(usize, u64)> {
    let (complete, blocker) = insertion.complete();
    let written = insertion.written();
    if complete > written {
        let mut bytes = vec![0; (complete.get() - written.get()) as usize];
        insertion.copy_out(written, &mut bytes);
        for (index, word) in bytes.chunks_exact(8).enumerate() {
            let at = written.get() / 8 + index as u64;
            let start = at / words as u64 * words as u64 * 8;
            let word = u64::from_le_bytes(word.try_into().unwrap());
            assert_eq!(word, start + 1, "an incomplete record was written");
            log.push(word);
        }
        insertion.set_written(complete);
    }
    blocker
}

/// `inserters` threads insert `each` records of `words` words. A writer writes them out.
fn reserve_copy_write(inserters: usize, each: usize, words: usize, ring_words: usize) {
    let insertion = Arc::new(Insertion::new(Lsn(0), ring_words * 8, inserters));
    let threads: Vec<_> = (0..inserters)
        .map(|slot| {
            let insertion = Arc::clone(&insertion);
            thread::spawn(move || (0..each).for_each(|_| insert(&insertion, slot, words)))
        })
        .collect();
    let mut log = Vec::new();
    let all = inserters * each * words;
    while log.len() < all {
        if let Some((slot, seen)) = write_out(&insertion, &mut log, words) {
            insertion.wait_for_slot(slot, seen, || false);
        } else {
            thread::yield_now();
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// An inserter that decided under an old epoch always learns of the new one. A reservation after
/// the checkpoint's start has the new epoch, one before it the old epoch.
fn epochs() {
    let insertion = Arc::new(Insertion::new(Lsn(0), 1 << 10, 3));
    let redo = Arc::new(AtomicU64::new(0));
    let inserter = |slot: usize| {
        let (insertion, redo) = (Arc::clone(&insertion), Arc::clone(&redo));
        thread::spawn(move || {
            let before = insertion.place();
            insertion.begin(slot, before.lsn);
            let got = insertion.reserve(8);
            insertion.copy_in(got.lsn, &[1; 8]);
            insertion.finish(slot);
            let redo = redo.load(Ordering::Acquire);
            if redo != 0 {
                assert_eq!(got.epoch == 1, got.lsn.get() + 1 > redo);
            }
            assert!(got.epoch >= before.epoch);
        })
    };
    let inserters = [inserter(0), inserter(1)];
    insertion.begin(2, insertion.place().lsn);
    let begun = insertion.reserve_and_begin_epoch(8);
    insertion.copy_in(begun.lsn, &[2; 8]);
    redo.store(begun.lsn.get() + 1, Ordering::Release);
    insertion.finish(2);
    inserters.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(insertion.complete(), (Lsn(24), None));
    assert_eq!(insertion.place().epoch, 1);
}

/// Threads and a task commit. Each leader works for all that wait; none is forgotten.
#[cfg(not(loom))]
fn group_commit(threads: usize, each: usize) {
    use super::group::Group;
    use std::task::{Wake, Waker};
    use std::time::Duration;

    struct Flag(AtomicU64);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(1, Ordering::Release);
        }
    }

    let group = Arc::new(Group::new(0u64));
    let position = Arc::new(AtomicU64::new(0));
    let flushed = Arc::new(AtomicU64::new(0));
    let works: Vec<_> = (0..threads)
        .map(|_| {
            let (group, position, flushed) =
                (Arc::clone(&group), Arc::clone(&position), Arc::clone(&flushed));
            thread::spawn(move || {
                for _ in 0..each {
                    let upto = Lsn(position.fetch_add(1, Ordering::AcqRel) + 1);
                    let covers = |upto: Lsn| flushed.load(Ordering::Acquire) >= upto.get();
                    let work = |synced: &mut u64| {
                        let now = position.load(Ordering::Acquire);
                        thread::yield_now();
                        assert!(now >= *synced, "two leaders at once");
                        *synced = now;
                        flushed.store(now, Ordering::Release);
                    };
                    group.wait(upto, &covers, &work, &|| (), &|| ());
                    assert!(covers(upto));
                }
            })
        })
        .collect();
    let flag = Arc::new(Flag(AtomicU64::new(0)));
    let upto = Lsn(position.fetch_add(1, Ordering::AcqRel) + 1);
    let covers = |upto: Lsn| flushed.load(Ordering::Acquire) >= upto.get();
    if group.enlist(upto, Duration::ZERO, Waker::from(Arc::clone(&flag)), covers) {
        let mut synced = group.lead();
        *synced = position.load(Ordering::Acquire);
        flushed.store(*synced, Ordering::Release);
        drop(synced);
        group.hand_over(covers);
    }
    works.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(flag.0.load(Ordering::Acquire), 1, "the task was not woken");
}

/// A leader pauses until a committer joins, however the two meet. (A lost wake-up is a deadlock.)
#[cfg(not(loom))]
fn joining_ends_a_pause() {
    use super::group::Group;
    use millpond_sync::parking;

    let group = Arc::new(Group::new(()));
    let flushed = Arc::new(AtomicU64::new(0));
    let leader = group.lead();
    let committer = {
        let (group, flushed) = (Arc::clone(&group), Arc::clone(&flushed));
        thread::spawn(move || {
            let covers = |upto: Lsn| flushed.load(Ordering::Acquire) >= upto.get();
            let work = |(): &mut ()| flushed.store(1, Ordering::Release);
            group.wait(Lsn(1), &covers, &work, &|| (), &|| ());
            assert!(covers(Lsn(1)));
        })
    };
    group.set_pausing(true);
    while group.waiting() == 0 {
        parking::park(group.pause_key(), || group.waiting() == 0, None);
    }
    group.set_pausing(false);
    flushed.store(1, Ordering::Release);
    drop(leader);
    group.hand_over(|upto| flushed.load(Ordering::Acquire) >= upto.get());
    committer.join().unwrap();
}

#[cfg(loom)]
mod with_loom {
    fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(model);
    }

    #[test]
    fn only_complete_records_are_written() {
        check(3, || super::reserve_copy_write(2, 1, 1, 4));
    }

    #[test]
    fn inserter_waits_for_room() {
        check(2, || super::reserve_copy_write(2, 1, 1, 2));
    }

    #[test]
    fn one_session_inserts_twice() {
        check(3, || super::reserve_copy_write(1, 2, 1, 2));
    }

    #[test]
    fn epochs() {
        check(3, super::epochs);
    }
}

#[cfg(all(shuttle, not(loom)))]
mod with_shuttle {
    #[test]
    fn only_complete_records_are_written() {
        shuttle::check_random(|| super::reserve_copy_write(4, 6, 3, 64), 3000);
    }

    #[test]
    fn inserter_waits_for_room() {
        shuttle::check_random(|| super::reserve_copy_write(4, 6, 2, 4), 3000);
        shuttle::check_pct(|| super::reserve_copy_write(3, 5, 2, 4), 3000, 4);
    }

    #[test]
    fn group_commit() {
        shuttle::check_random(|| super::group_commit(4, 3), 5000);
        shuttle::check_pct(|| super::group_commit(3, 3), 5000, 5);
    }

    #[test]
    fn joining_ends_a_pause() {
        shuttle::check_random(super::joining_ends_a_pause, 5000);
        shuttle::check_pct(super::joining_ends_a_pause, 5000, 4);
    }

    #[test]
    fn epochs() {
        shuttle::check_random(super::epochs, 5000);
    }
}
