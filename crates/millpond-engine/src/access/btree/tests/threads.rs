//! Many threads on one tree, with pools so small that pages come and go all the time.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::lookups::Together;
use super::*;

const WRITERS: u32 = 3;

/// What the threads of a test share.
struct Storm<'a, K> {
    tree: Tree,
    /// How many entries each writer has inserted.
    done: [AtomicU32; WRITERS as usize],
    finished: AtomicBool,
    per_writer: u32,
    key: &'a K,
}

impl<K: Fn(u32) -> Vec<u8> + Sync> Storm<'_, K> {
    /// Entry `i` of a writer.
    fn number(&self, writer: u32, i: u32) -> u32 {
        (i.wrapping_mul(7919) % self.per_writer) * WRITERS + writer
    }

    /// Inserts the entries of a writer. Every fifth gets a second one, which the vacuum removes.
    fn write(&self, writer: u32) {
        let (env, rel) = (self.tree.env(), &self.tree.rel);
        for i in 0..self.per_writer {
            let n = self.number(writer, i);
            insert(&env, rel, &(self.key)(n), tid(n), None).unwrap();
            if n.is_multiple_of(5) {
                let second = Tid::new(BlockNumber(1 << 30), 1);
                insert(&env, rel, &(self.key)(n), second, None).unwrap();
            }
            self.done[writer as usize].store(i + 1, Ordering::Release);
        }
    }

    /// Looks up keys that must be there, one by one and twenty together, and asks how large a part
    /// of the tree they are.
    fn look_up(&self, seed: u64) {
        let env = self.tree.env();
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut together = Together::default();
        while !self.finished.load(Ordering::Acquire) {
            let writer = rng.random_range(0..WRITERS);
            let known = self.done[writer as usize].load(Ordering::Acquire);
            if known == 0 {
                continue;
            }
            let mut any = || self.number(writer, rng.random_range(0..known));
            let n = any();
            let tids = found(&self.tree, &env, &(self.key)(n));
            assert!(tids.contains(&tid(n)), "{n}: {tids:?}");
            let mut several: Vec<u32> = (0..20).map(|_| any()).collect();
            several.sort_by_key(|&n| (self.key)(n));
            let keys: Vec<_> = several.iter().map(|&n| (self.key)(n)).collect();
            let all = together.lookup(&self.tree, &env, &keys).unwrap();
            for (place, &n) in several.iter().enumerate() {
                assert!(all.contains(&(place, tid(n))), "{n}: {all:?}");
            }
            // Pages split, and leave the tree, on the way down.
            if let [first, .., last] = keys.as_slice() {
                let share = share_between(&env, &self.tree.rel, first, last, 1_000.0).unwrap();
                assert!((0.0..=1.0).contains(&share), "{share}");
            }
        }
    }

    /// Scans the whole tree in both directions, and removes marked entries.
    fn scan_and_vacuum(&self) {
        let env = self.tree.env();
        for direction in [Direction::Forward, Direction::Backward].into_iter().cycle() {
            if self.finished.load(Ordering::Acquire) {
                break;
            }
            let known = self.done.iter().map(|done| done.load(Ordering::Acquire));
            let expected = known.sum::<u32>() as usize;
            let seen = self.tree.scan(&env, &[], None, direction);
            let ordered = |pair: &[(Vec<u8>, Tid)]| match direction {
                Direction::Forward => pair[0] < pair[1],
                Direction::Backward => pair[0] > pair[1],
            };
            assert!(seen.windows(2).all(ordered));
            let lasting = seen.iter().filter(|(_, tid)| tid.block.get() < 1 << 30).count();
            assert!(lasting >= expected, "{lasting} < {expected}");
            self.vacuum();
        }
    }

    fn vacuum(&self) {
        let is_marked = |tid: Tid| tid.block.get() == 1 << 30;
        vacuum(&self.tree.env(), &self.tree.rel, None, &is_marked).unwrap();
    }
}

/// Writers insert disjoint keys in a scattered order, beside lookups, scans and vacuums. At the end
/// exactly the right entries must be left.
fn storm(seed: u64, frames: usize, per_writer: u32, key: impl Fn(u32) -> Vec<u8> + Sync) {
    eprintln!("seed {seed}, {frames} frames");
    let (tree, _) = Tree::created(frames);
    let (done, finished) = (Default::default(), AtomicBool::new(false));
    let storm = &Storm { tree, done, finished, per_writer, key: &key };
    std::thread::scope(|scope| {
        let write = |writer| scope.spawn(move || storm.write(writer));
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        scope.spawn(move || storm.look_up(seed));
        scope.spawn(move || storm.scan_and_vacuum());
        for writer in writers {
            writer.join().unwrap();
        }
        storm.finished.store(true, Ordering::Release);
    });
    storm.vacuum();
    let model: BTreeSet<_> = (0..per_writer * WRITERS).map(|n| (key(n), tid(n))).collect();
    storm.tree.expect(&storm.tree.env(), &model);
    // A replay of the log gives the same entries.
    let recovered = storm.tree.recover(storm.tree.log.len(), 1);
    recovered.expect(&recovered.env(), &model);
}

#[test]
fn integers_in_a_tiny_pool() {
    storm(1, 24, 4000, |n| int_key(n).to_vec());
}

#[test]
fn long_keys_make_many_levels() {
    storm(2, 40, 500, |n| [&n.reverse_bits().to_be_bytes()[..], &[3; 1200]].concat());
}

#[test]
fn few_keys_with_many_rows() {
    storm(3, 32, 3000, |n| int_key(n / 1000).to_vec());
}

#[test]
fn everything_in_memory() {
    storm(4, 600, 6000, |n| int_key(n.reverse_bits()).to_vec());
}

#[test]
fn unique_keys_under_contention_are_taken_by_one() {
    let (tree, _) = Tree::created(64);
    let wins = AtomicU32::new(0);
    const KEYS: u32 = 2000;
    std::thread::scope(|scope| {
        for thread in 0..4u16 {
            let (tree, wins) = (&tree, &wins);
            scope.spawn(move || {
                let env = tree.env();
                for n in 0..KEYS {
                    let own = Tid::new(BlockNumber(n), thread + 1);
                    let taken: UniqueCheck<'_> = &|_| Ok(UniqueVerdict::Duplicate);
                    let outcome = insert(&env, &tree.rel, &int_key(n), own, Some(taken)).unwrap();
                    if outcome == InsertOutcome::Done {
                        wins.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(wins.load(Ordering::Relaxed), KEYS);
    assert_eq!(tree.check(&tree.env()).entries, u64::from(KEYS));
}

const PER_QUEUE: u32 = 12_000;
const WINDOW: u32 = 2000;

/// Each writer inserts at the end of a queue of its own; entries die `WINDOW` behind the end.
struct Queues {
    tree: Tree,
    done: [AtomicU32; WRITERS as usize],
    finished: AtomicBool,
    /// Every operation holds this shared, as it would hold a snapshot. A session that gets it
    /// exclusively knows that all earlier operations are over.
    world: parking_lot::RwLock<()>,
}

impl Queues {
    fn key(writer: u32, i: u32) -> [u8; 5] {
        int_key(writer << 24 | i)
    }

    fn tid(writer: u32, i: u32) -> Tid {
        Tid::new(BlockNumber(writer << 24 | i), 1)
    }

    fn done(&self, writer: u32) -> u32 {
        self.done[writer as usize].load(Ordering::Acquire)
    }

    fn is_dead(&self, tid: Tid) -> bool {
        let (writer, i) = (tid.block.get() >> 24, tid.block.get() & 0xFF_FFFF);
        i < self.done(writer).saturating_sub(WINDOW)
    }

    fn vacuum(&self, env: &TestEnv) {
        vacuum(env, &self.tree.rel, None, &|tid| self.is_dead(tid)).unwrap();
    }

    fn write(&self, writer: u32) {
        let env = self.tree.env();
        for i in 0..PER_QUEUE {
            let _operation = self.world.read();
            let (key, tid) = (Self::key(writer, i), Self::tid(writer, i));
            insert(&env, &self.tree.rel, &key, tid, None).unwrap();
            self.done[writer as usize].store(i + 1, Ordering::Release);
        }
    }

    /// Looks up entries that are not dead, and sometimes scans for all of them.
    fn read(&self) {
        let env = self.tree.env();
        let mut rng = SmallRng::seed_from_u64(5);
        let mut turn = 0;
        while !self.finished.load(Ordering::Acquire) {
            let _operation = self.world.read();
            let known: Vec<u32> = (0..WRITERS).map(|writer| self.done(writer)).collect();
            let writer = rng.random_range(0..WRITERS);
            let end = known[writer as usize];
            if end == 0 {
                continue;
            }
            let i = rng.random_range(end.saturating_sub(WINDOW / 2)..end);
            let tids = found(&self.tree, &env, &Self::key(writer, i));
            let tid = Self::tid(writer, i);
            assert!(self.is_dead(tid) || tids[..] == [tid], "{writer} {i}: {tids:?}");
            if turn % 50 == 0 {
                let backward = turn % 100 != 0;
                let direction = if backward { Direction::Backward } else { Direction::Forward };
                let seen = self.tree.scan(&env, &[], None, direction);
                let seen: BTreeSet<Tid> = seen.into_iter().map(|(_, tid)| tid).collect();
                for (writer, &end) in (0..).zip(&known) {
                    for i in self.done(writer).saturating_sub(WINDOW)..end {
                        assert!(seen.contains(&Self::tid(writer, i)), "{writer} {i} was not seen");
                    }
                }
            }
            turn += 1;
        }
    }

    fn clean_up(&self) {
        let env = self.tree.env();
        while !self.finished.load(Ordering::Acquire) {
            let operation = self.world.read();
            self.vacuum(&env);
            drop(operation);
            let _alone = self.world.write();
            self.tree.log.all_over();
        }
    }
}

#[test]
fn concurrent_queues_reuse_deleted_pages() {
    let queues = Queues {
        tree: Tree::created(80).0,
        done: Default::default(),
        finished: AtomicBool::new(false),
        world: parking_lot::RwLock::new(()),
    };
    let (queues, tree) = (&queues, &queues.tree);
    std::thread::scope(|scope| {
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || queues.write(writer))).collect();
        scope.spawn(|| queues.read());
        scope.spawn(|| queues.clean_up());
        for writer in writers {
            writer.join().unwrap();
        }
        queues.finished.store(true, Ordering::Release);
    });
    let env = tree.env();
    queues.vacuum(&env);
    let left = |writer| {
        (PER_QUEUE - WINDOW..PER_QUEUE)
            .map(move |i| (Queues::key(writer, i).to_vec(), Queues::tid(writer, i)))
    };
    let model: BTreeSet<_> = (0..WRITERS).flat_map(left).collect();
    tree.expect(&env, &model);
    let used_again = tree.log.infos().iter().filter(|&&info| info == record::FREE).count();
    eprintln!("{} blocks, {used_again} pages freed", tree.rel.block_count());
    let recovered = tree.recover(tree.log.len(), 1);
    recovered.expect(&recovered.env(), &model);
}
