//! Breaks each call of the store in turn, in extending, creating, truncating, dropping and writing.
//! It breaks the call by an error or a panic, before the store has done its work or after. Nothing
//! is stuck after any of these (rule 6), and the operation can be repeated.

use super::support::*;
use crate::*;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

const FRAMES: usize = 6;
const OTHER: RelFork = RelationId::constant(8).main();

/// The way in which a step is broken.
#[derive(Debug, Clone, Copy)]
struct Breakage {
    /// The number of the call of the store, counted from 0.
    step: usize,
    panics: bool,
    /// The store has done its work before the call fails.
    done: bool,
}

/// A store that counts its calls, one of which is broken.
#[derive(Default)]
struct Steps {
    inner: MemoryStore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: Vec<&'static str>,
    broken: Option<Breakage>,
}

impl Steps {
    fn step<R>(
        &self,
        name: &'static str,
        call: impl FnOnce() -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let broken = {
            let State { calls, broken } = &mut *self.state.lock();
            calls.push(name);
            broken.filter(|broken| broken.step + 1 == calls.len())
        };
        let Some(broken) = broken else { return call() };
        if broken.done {
            call()?;
        }
        assert!(!broken.panics, "made to panic");
        Err(StoreError::io(name, std::io::Error::other("made to fail")))
    }
}

impl PageStore for Steps {
    fn create(&self, rel: RelFork) -> Result<(), StoreError> {
        self.step("create", || self.inner.create(rel))
    }
    fn remove(&self, relation: RelationId) -> Result<(), StoreError> {
        self.step("remove", || self.inner.remove(relation))
    }
    fn exists(&self, rel: RelFork) -> Result<bool, StoreError> {
        self.step("exists", || self.inner.exists(rel))
    }
    fn block_count(&self, rel: RelFork) -> Result<u32, StoreError> {
        self.step("block_count", || self.inner.block_count(rel))
    }
    fn extend(&self, rel: RelFork, first: BlockNumber, count: u32) -> Result<(), StoreError> {
        self.step("extend", || self.inner.extend(rel, first, count))
    }
    fn truncate(&self, rel: RelFork, block_count: u32) -> Result<(), StoreError> {
        self.step("truncate", || self.inner.truncate(rel, block_count))
    }
    fn read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        self.step("read", || self.inner.read(rel, first, pages))
    }
    fn try_read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<bool, StoreError> {
        self.step("try_read", || self.inner.try_read(rel, first, pages).map(|_| false))
    }
    fn start_read(&self, mut read: PendingRead) {
        let result = self.step("start_read", || read.read_from(&self.inner));
        read.finish(result);
    }
    fn write(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&[u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        self.step("write", || self.inner.write(rel, first, pages))
    }
    fn sync(&self) -> Result<(), StoreError> {
        self.step("sync", || self.inner.sync())
    }
    fn relations(&self) -> Result<Vec<RelationId>, StoreError> {
        self.step("relations", || self.inner.relations())
    }
}

/// A pool on such a store, and the number of failures so far.
struct Trial {
    store: Arc<Steps>,
    pool: Arc<BufferPool>,
    session: BufferSession,
    failures: usize,
}

impl Trial {
    fn new(frames: usize, broken: Option<Breakage>) -> Self {
        let state = Mutex::new(State { broken, ..State::default() });
        let store = Arc::new(Steps { state, ..Steps::default() });
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
            let mut change = page.change();
            change.write(16, &to.to_le_bytes());
            change.publish(Lsn(1));
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
    trial.surely(|pool, session| pool.reclaim(session, FRAMES));
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
            let mut blocks = (0..40).map(BlockNumber);
            let mut source = || blocks.next();
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
    let calls = std::mem::take(&mut whole.store.state.lock().calls);
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
            let page = other.pin(&rel, BlockNumber(block), Wait::Allowed).unwrap();
            assert!(page.try_into_exclusive().is_ok(), "{block} of {rel:?} is latched");
        }
    }
    for rel in [REL, OTHER] {
        trial.pool.drop_relation(rel.relation).unwrap();
    }
    assert_eq!(trial.pool.core.free_frames(), FRAMES);
}

#[test]
fn whatever_step_breaks_can_be_repeated() {
    let mut whole = Trial::new(FRAMES, None);
    life(&mut whole);
    let calls = std::mem::take(&mut whole.store.state.lock().calls);
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
            let mut trial = Trial::new(FRAMES, Some(broken));
            life(&mut trial);
            // A page that can't be written is no failure if the session finds a clean one instead.
            assert!(trial.failures == 1 || calls[step] == "write" && !panics, "not noticed");
            nothing_is_stuck(&mut trial);
        }
    }
}
