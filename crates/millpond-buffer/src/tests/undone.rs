//! A session or thread that ends, panics or fails in the middle of any step leaves nothing stuck
//! (rule 6). No frame, pin, latch or entry is left over, and the page is as it was.
//!
//! [`Trial`] breaks each call of the store in turn, in extending, creating, truncating, dropping
//! and writing. It breaks the call by an error or a panic, before the store has done its work or
//! after. The operation can then be repeated.

use super::*;
use crate::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

const FRAMES: usize = 4;
const BLOCKS: u32 = 8;

/// Every page can be read and latched, has the right contents, and can leave.
fn all_is_well(bench: &Bench, expected: impl Fn(u32) -> u64) {
    let (session, rel) = bench.pool.open();
    for block in 0..BLOCKS {
        let page = pin_block(&session, &rel, block);
        let page = page.try_into_exclusive().unwrap_or_else(|_| panic!("{block} is latched"));
        assert_eq!(page.u64(16), expected(block));
    }
    bench.pool.write_dirty(&session, |_| ()).unwrap();
    assert_eq!(bench.pool.reclaim(&session, FRAMES).unwrap(), FRAMES);
    bench.pool.drop_relation(REL.relation).unwrap();
    assert_eq!(bench.pool.core.free_frames(), FRAMES);
}

fn panics(work: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "has not panicked");
}

/// Lets a session do `work` while the store or the log panics.
fn interrupted(broken: impl Fn(&Bench) -> &AtomicBool, work: impl Fn(&Bench, &BufferSession)) {
    let bench = bench(FRAMES, BLOCKS);
    let (session, rel) = bench.pool.open();
    for block in 0..FRAMES as u32 {
        set_number(&session, &rel, block, 70, 7);
    }
    broken(&bench).store(true, Ordering::Relaxed);
    for _ in 0..3 {
        panics(|| work(&bench, &session));
    }
    broken(&bench).store(false, Ordering::Relaxed);
    assert_eq!(session.pinned_pages(), 0);
    // First while the session that panicked is alive, then without it.
    assert_eq!(number(&session, &rel, 1), 70);
    drop(session);
    all_is_well(&bench, |block| if block < FRAMES as u32 { 70 } else { u64::from(block) });
}

fn a_miss(bench: &Bench, session: &BufferSession) {
    let rel = bench.pool.relation(REL).unwrap();
    let _ = session.pin(&rel, BlockNumber(6), Wait::Allowed);
}

fn a_checkpoint(bench: &Bench, session: &BufferSession) {
    let _ = bench.pool.write_dirty(session, |_| ());
}

fn the_reclaimer(bench: &Bench, session: &BufferSession) {
    let _ = bench.pool.reclaim(session, 2);
}

fn shrinking(bench: &Bench, session: &BufferSession) {
    let _ = bench.pool.resize(session, 2);
}

#[test]
fn a_write_that_panics() {
    for work in [a_miss, a_checkpoint, the_reclaimer] {
        interrupted(|bench| &bench.store.panic_writes, work);
    }
}

#[test]
fn a_log_that_panics() {
    for work in [a_miss, a_checkpoint, the_reclaimer] {
        interrupted(|bench| &bench.log.panics, work);
    }
}

/// Room to read ahead is given back, too. Otherwise no session would read ahead any more. A session
/// that finds all frames in use would wait for ever for a load that does not exist.
#[test]
fn a_log_that_panics_while_frames_to_read_ahead_are_looked_for() {
    use crate::read::read_ahead::{How, LoadedRun, Urgency, load_run};
    let (frames, wait, ahead) = (64, Wait::Allowed, 70..72);
    let bench = bench(frames, 80);
    let (pool, session) = (&bench.pool, bench.pool.session().unwrap());
    let rel = pool.relation(REL).unwrap();
    let under_way = Default::default();
    let load = |ring: Option<&Ring>| {
        let how = How { wait, urgency: Urgency::Later, under_way: &under_way, at_most: 1 };
        load_run(&session.core, &rel, BlockNumber(ahead.start), 2, ring, how)
    };
    let mut others = (0..80).filter(|block| !ahead.contains(block)).map(BlockNumber).cycle();
    for _ in 0..frames {
        let ring = Ring::with_pages(pool, AccessStrategy::BulkWrite, 2).unwrap();
        while ring.len() < 2 {
            drop(session.pin_with(&rel, others.next().unwrap(), wait, Some(&ring)).unwrap());
        }
        // The log is asked once for the first frame.
        bench.log.panics_when_asked.store(2, Ordering::Relaxed);
        panics(|| _ = load(Some(&ring)));
        assert_eq!(bench.log.panics_when_asked.load(Ordering::Relaxed), 0, "another panic");
    }
    assert_eq!(load(None), LoadedRun::AtHand(2));
    let pin = |block| session.pin(&rel, BlockNumber(block), wait);
    let pins: Vec<_> = (0..64).map(|block| pin(block).unwrap()).collect();
    let full = pin(64).map(drop);
    assert!(matches!(full, Err(BufferError::NoUnpinnedBuffers { .. })), "{full:?}");
    drop(pins);
    drop(session);
    all_free_after_drop(&bench);
}

#[test]
fn a_checkpoint_whose_pace_panics() {
    let bench = bench(FRAMES, BLOCKS);
    let (session, rel) = bench.pool.open();
    for block in [0, 2] {
        set_number(&session, &rel, block, 70, 7);
    }
    panics(|| drop(bench.pool.write_dirty(&session, |_| panic!("made to panic"))));
    assert_eq!(bench.pool.write_dirty(&session, |_| ()).unwrap(), 1);
    drop(session);
    all_is_well(&bench, |block| if [0, 2].contains(&block) { 70 } else { u64::from(block) });
}

/// A pool full of dirty pages, left half-way to a smaller size by a panic.
fn half_shrunk() -> (Bench, BufferSession) {
    let bench = bench(FRAMES, BLOCKS);
    let (session, rel) = bench.pool.open();
    for block in 0..FRAMES as u32 {
        set_number(&session, &rel, block, 70, 7);
    }
    bench.store.panic_writes.store(true, Ordering::Relaxed);
    panics(|| shrinking(&bench, &session));
    bench.store.panic_writes.store(false, Ordering::Relaxed);
    (bench, session)
}

/// A pool that was left half-way between two sizes can be given either.
#[test]
fn shrinking_that_panics() {
    let (bench, session) = half_shrunk();
    assert_eq!(bench.pool.write_dirty(&session, |_| ()).unwrap(), FRAMES);
    bench.pool.resize(&session, FRAMES).unwrap();
    drop(session);
    all_is_well(&bench, |block| if block < FRAMES as u32 { 70 } else { u64::from(block) });
}

/// The next attempt to shrink, and checkpoints, deal with what a failed attempt left behind.
#[test]
fn shrinking_further_after_a_panic() {
    let (bench, session) = half_shrunk();
    bench.pool.resize(&session, 1).unwrap();
    bench.pool.write_dirty(&session, |_| ()).unwrap();
    for block in 0..FRAMES as u32 {
        let mut page = [0; PAGE_SIZE];
        bench.store.inner.read(REL, BlockNumber(block), &mut [&mut page]).unwrap();
        assert_eq!(page.u64(16), 70, "{block}");
    }
    bench.pool.resize(&session, FRAMES).unwrap();
    drop(session);
    all_is_well(&bench, |block| if block < FRAMES as u32 { 70 } else { u64::from(block) });
}

/// When a session ends with pins, even forgotten ones, the pins end with it.
#[test]
fn a_session_that_dies_with_pins() {
    let bench = bench(FRAMES, BLOCKS);
    let (session, rel) = bench.pool.open();
    for block in 0..FRAMES as u32 {
        std::mem::forget(pin_block(&session, &rel, block));
    }
    let other = bench.pool.session().unwrap();
    let full = other.pin(&rel, BlockNumber(6), Wait::Allowed).map(|_| ());
    assert!(matches!(full, Err(BufferError::NoUnpinnedBuffers { .. })), "{full:?}");
    drop((session, other));
    all_is_well(&bench, u64::from);
}

/// When a thread panics, its session's pins and latches end with it.
#[test]
fn a_thread_that_dies_while_it_changes_nothing_yet() {
    let bench = bench(FRAMES, BLOCKS);
    std::thread::scope(|scope| {
        let died = scope.spawn(|| {
            let (session, rel) = bench.pool.open();
            let _shared = pin_block(&session, &rel, 0).into_shared().unwrap();
            let mut page = pin_block(&session, &rel, 1).into_exclusive().unwrap();
            let _change = page.change();
            panic!("made to panic");
        });
        assert!(died.join().is_err());
    });
    all_is_well(&bench, u64::from);
}

#[test]
fn a_panicking_reader_holds_nothing() {
    let Bench { pool, .. } = bench(3, 3);
    let (session, rel) = pool.open();
    let read = || session.read(&rel, BlockNumber(1), Wait::Allowed, |_| panic!("made to panic"));
    let panicked: Result<Result<(), BufferError>, _> = catch_unwind(AssertUnwindSafe(read));
    assert!(panicked.is_err());
    let pinned = pin_block(&session, &rel, 1);
    assert!(pinned.try_into_exclusive().is_ok());
    assert_eq!(session.pinned_pages(), 0);
}

const STEP_FRAMES: usize = 6;
const OTHER: RelFork = RelationId::constant(8).main();

/// A pool on a store that notes its calls, and the number of failures so far.
struct Trial {
    store: Arc<TestStore>,
    pool: Arc<BufferPool>,
    session: BufferSession,
    failures: usize,
}

impl Trial {
    fn new(frames: usize, broken: Option<Breakage>) -> Self {
        let calls = Mutex::new(Some(Calls { broken, ..Calls::default() }));
        let store = Arc::new(TestStore { calls, cold: true.into(), ..TestStore::default() });
        let mut config = PoolConfig::new(frames, 4);
        config.freelists = 1;
        let pool = BufferPool::new(config, store.clone(), Arc::new(NoLog)).unwrap();
        let session = pool.session().unwrap();
        Self { store, pool, session, failures: 0 }
    }

    /// Does `work`, and does it once more if it fails or panics. The second time must succeed,
    /// since only one step is broken.
    fn surely<R>(
        &mut self,
        work: impl Fn(&Arc<BufferPool>, &BufferSession) -> Result<R, BufferError>,
    ) -> R {
        for _ in 0..2 {
            let attempt = AssertUnwindSafe(|| work(&self.pool, &self.session));
            match catch_unwind(attempt) {
                Ok(Ok(result)) => return result,
                Ok(Err(error)) => {
                    assert!(matches!(error, BufferError::Store(StoreError::Io { .. })), "{error}");
                }
                Err(_) => (),
            }
            self.failures += 1;
            assert_eq!(self.session.pinned_pages(), 0);
            assert!(self.pool.pin_counts().is_empty());
        }
        panic!("failed again");
    }

    fn extend(&mut self, rel: RelFork, to: u64) {
        self.surely(|pool, session| {
            let mut page = session.extend(&pool.relation(rel)?, Wait::Allowed)?;
            write_number(&mut page, to, 1);
            Ok(())
        });
    }

    fn number(&mut self, rel: RelFork, block: u32) -> u64 {
        self.surely(|pool, session| {
            let rel = pool.relation(rel)?;
            session.read(&rel, BlockNumber(block), Wait::Allowed, |page| page.u64(16))
        })
    }

    /// Checks that the fork has pages with these numbers, and no more.
    fn has(&mut self, rel: RelFork, numbers: &[u64]) {
        let blocks = self.surely(|pool, _| Ok(pool.relation(rel)?.block_count()));
        assert_eq!(blocks as usize, numbers.len(), "blocks of {rel}");
        for (block, number) in (0..).zip(numbers) {
            assert_eq!(self.number(rel, block), *number, "block {block} of {rel}");
        }
    }
}

/// More pages than frames, in two forks. One is dropped and made again; the other is cut and grows
/// again.
fn life(trial: &mut Trial) {
    trial.surely(|pool, _| pool.create(REL));
    trial.surely(|pool, _| pool.create(OTHER));
    (0..9).for_each(|number| trial.extend(REL, number));
    (0..3).for_each(|number| trial.extend(OTHER, 100 + number));
    trial.has(REL, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    trial.surely(|pool, _| pool.truncate(REL, 4));
    trial.has(REL, &[0, 1, 2, 3]);
    // What was cut off does not come back.
    trial.surely(|pool, session| session.extend(&pool.relation(REL)?, Wait::Allowed).map(drop));
    trial.surely(|pool, session| pool.reclaim(session, STEP_FRAMES));
    trial.has(REL, &[0, 1, 2, 3, 0]);
    trial.has(OTHER, &[100, 101, 102]);
    trial.surely(|pool, _| pool.drop_relation(OTHER.relation));
    trial.has(OTHER, &[]);
    trial.surely(|pool, _| pool.create(OTHER));
    // Made as recovery does it: the fork grows by more than a page.
    trial.surely(|pool, session| {
        session.pin_or_zero(&pool.relation(OTHER)?, BlockNumber(2)).map(drop)
    });
    trial.has(OTHER, &[0, 0, 0]);
    trial.extend(OTHER, 200);
    trial.has(OTHER, &[0, 0, 0, 200]);
    trial.surely(|pool, session| pool.write_dirty(session, |_| ()));
    trial.surely(|pool, _| pool.sync());
    trial.surely(|pool, _| pool.trim());
}

/// Pages that are read ahead, twice.
fn scans(trial: &mut Trial) {
    trial.surely(|pool, _| pool.create(REL));
    (0..40).for_each(|number| trial.extend(REL, number));
    for _ in 0..2 {
        trial.surely(|pool, session| {
            let rel = pool.relation(REL)?;
            let mut stream =
                ReadStream::new(StreamOptions { io_concurrency: 2, io_combine_limit: 2 });
            let mut source = source_of(0..40);
            while let Some(block) = stream.peek(session, &rel, Wait::Allowed, None, &mut source) {
                let number = session.read(&rel, block, Wait::Allowed, |page| page.u64(16))?;
                assert_eq!(number, u64::from(block.0));
                stream.advance();
            }
            Ok(())
        });
    }
}

#[test]
fn whatever_step_of_a_read_ahead_breaks_the_page_can_be_had() {
    let frames = 32;
    let mut whole = Trial::new(frames, None);
    scans(&mut whole);
    let calls = whole.store.calls.lock().take().unwrap().names;
    assert!(calls.iter().filter(|call| **call == "start_read").count() > 5, "{calls:?}");
    let every = if cfg!(miri) { 29 } else { 1 };
    let is_read = |step: &usize| ["read", "try_read", "start_read"].contains(&calls[*step]);
    for step in (0..calls.len()).filter(is_read).step_by(every) {
        for (panics, done) in [(false, false), (false, true), (true, false), (true, true)] {
            let broken = Breakage { step, panics, done };
            println!("{broken:?}: {}", calls[step]);
            let mut trial = Trial::new(frames, Some(broken));
            scans(&mut trial);
            // A session that can have the page after all hears nothing of an error ahead.
            assert!(trial.failures == 1 || !panics, "not noticed");
            trial.pool.drop_relation(REL.relation).unwrap();
            assert_eq!(trial.pool.core.free_frames(), frames);
        }
    }
}

/// Every page can be read and latched, and every frame becomes free.
fn nothing_is_stuck(trial: &mut Trial) {
    let other = trial.pool.session().unwrap();
    for (rel, blocks) in [(REL, 5), (OTHER, 4)] {
        let rel = trial.pool.relation(rel).unwrap();
        for block in 0..blocks {
            let page = pin_block(&other, &rel, block);
            assert!(page.try_into_exclusive().is_ok(), "{block} of {rel:?} is latched");
        }
    }
    for rel in [REL, OTHER] {
        trial.pool.drop_relation(rel.relation).unwrap();
    }
    assert_eq!(trial.pool.core.free_frames(), STEP_FRAMES);
}

#[test]
fn whatever_step_breaks_can_be_repeated() {
    let mut whole = Trial::new(STEP_FRAMES, None);
    life(&mut whole);
    let calls = whole.store.calls.lock().take().unwrap().names;
    for wanted in ["create", "remove", "block_count", "extend", "truncate", "write", "sync"] {
        assert!(calls.contains(&wanted), "{wanted} is never called");
    }
    assert!(calls.contains(&"read") && calls.len() < 200, "{calls:?}");
    nothing_is_stuck(&mut whole);
    let every = if cfg!(miri) { 29 } else { 1 };
    for step in (0..calls.len()).step_by(every) {
        for (panics, done) in [(false, false), (false, true), (true, false), (true, true)] {
            let broken = Breakage { step, panics, done };
            println!("{broken:?}: {}", calls[step]);
            let mut trial = Trial::new(STEP_FRAMES, Some(broken));
            life(&mut trial);
            // A page that can't be written is no failure if the session finds a clean one instead.
            assert!(trial.failures == 1 || calls[step] == "write" && !panics, "not noticed");
            nothing_is_stuck(&mut trial);
        }
    }
}
