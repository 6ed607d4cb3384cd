//! A pool, a log in memory, and trees on them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use millpond_buffer::{
    BlockNumber, BufferPool, BufferSession, ExclusivePage, Lsn, MemoryStore, NoLog, PageChange,
    PageId, PoolConfig, RelHandle, RelationId, Wait,
};
use parking_lot::Mutex;

use super::super::record::BTreeRedo;
use super::super::*;
use crate::access::Tid;
use crate::wal::{PageEdit, PageTarget, Record, RmgrRedo};
use crate::{EngineError, EngineResult};

/// A record in the test's log.
#[derive(Clone)]
pub(super) struct Logged {
    info: u8,
    blocks: Vec<(PageId, Vec<u8>)>,
    end: Lsn,
}

/// A log in memory.
#[derive(Default)]
pub(super) struct TestLog {
    records: Mutex<Vec<Logged>>,
    /// Refuses every record from now on.
    pub(super) stopped: AtomicBool,
    /// The clock of stamps. Everything up to stamp `over` is over.
    pub(super) now: AtomicU64,
    pub(super) over: AtomicU64,
}

impl TestLog {
    pub(super) fn len(&self) -> usize {
        self.records.lock().len()
    }

    /// Makes everything under way count as ended.
    pub(super) fn all_over(&self) {
        self.over.store(self.now.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// How many blocks a record has.
    pub(super) fn blocks_of(&self, record: usize) -> usize {
        self.records.lock()[record].blocks.len()
    }

    pub(super) fn infos(&self) -> Vec<u8> {
        self.records.lock().iter().map(|record| record.info).collect()
    }
}

pub(super) struct Tree {
    pub(super) pool: Arc<BufferPool>,
    pub(super) rel: RelHandle,
    pub(super) log: Arc<TestLog>,
}

pub(super) struct TestEnv {
    session: BufferSession,
    log: Arc<TestLog>,
    pub(super) wait: Wait,
    /// Called between two pages of a record.
    pub(super) between_pages: Option<Box<dyn Fn()>>,
    /// Asked whether the operation is to stop.
    pub(super) stops: Option<Box<dyn Fn() -> bool>>,
}

impl Env for TestEnv {
    fn check_interrupts(&self) -> EngineResult<()> {
        match &self.stops {
            Some(stops) if stops() => Err(EngineError::Internal { what: "told to stop" }),
            _ => Ok(()),
        }
    }

    fn buffers(&self) -> &BufferSession {
        &self.session
    }

    fn wait(&self) -> Wait {
        self.wait
    }

    fn stamp(&self) -> Stamp {
        Stamp { csn: 1, xid: self.log.now.fetch_add(1, Ordering::SeqCst) + 1 }
    }

    fn is_over(&self, stamp: Stamp) -> bool {
        stamp.xid <= self.log.over.load(Ordering::SeqCst)
    }

    fn log_and_apply(
        &self,
        pages: &mut [&mut ExclusivePage<'_>],
        record: Record<'_>,
    ) -> EngineResult<Lsn> {
        if self.log.stopped.load(Ordering::Relaxed) {
            return Err(EngineError::Internal { what: "the log has stopped" });
        }
        let blocks: Vec<_> =
            record.blocks.iter().map(|block| (block.page, block.data.to_vec())).collect();
        let end = {
            let mut records = self.log.records.lock();
            let end = Lsn(8 * (records.len() as u64 + 1));
            records.push(Logged { info: record.info, blocks: blocks.clone(), end });
            end
        };
        for (index, (page, (id, data))) in pages.iter_mut().zip(&blocks).enumerate() {
            assert_eq!(page.page_id(), *id);
            if index > 0
                && let Some(look) = &self.between_pages
            {
                look();
            }
            apply(page, record.info, index, data, end);
        }
        Ok(end)
    }
}

struct Changing<'a, 'c>(&'a mut PageChange<'c>);

impl PageTarget for Changing<'_, '_> {
    fn bytes(&self) -> &[u8; millpond_buffer::PAGE_SIZE] {
        self.0.bytes()
    }
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.0.write(offset, bytes);
    }
    fn write_page(&mut self, page: &[u8; millpond_buffer::PAGE_SIZE]) {
        self.0.write_page(page);
    }
}

fn apply(page: &mut ExclusivePage<'_>, info: u8, index: usize, data: &[u8], end: Lsn) {
    let id = page.page_id();
    let mut change = page.change();
    BTreeRedo
        .redo(info, index, data, &[], &mut PageEdit::new(id, &mut Changing(&mut change)))
        .unwrap();
    change.publish(end);
}

/// The key of an integer column, as an index has it.
pub(super) fn int_key(n: u32) -> [u8; 5] {
    let [a, b, c, d] = n.to_be_bytes();
    [1, a, b, c, d]
}

pub(super) fn tid(n: u32) -> Tid {
    Tid::new(BlockNumber(n / 100), (n % 100) as u16 + 1)
}

impl Tree {
    pub(super) fn new(frames: usize) -> Self {
        Self::with(frames, MemoryStore::new(), Arc::default())
    }

    /// An empty tree, and an environment.
    pub(super) fn created(frames: usize) -> (Self, TestEnv) {
        let tree = Self::new(frames);
        let env = tree.env();
        create(&env, &tree.rel).unwrap();
        (tree, env)
    }

    /// In a store whose pages can't be read without waiting.
    pub(super) fn in_cold_store(frames: usize) -> Self {
        Self::with(frames, MemoryStore::cold(), Arc::default())
    }

    fn with(frames: usize, store: MemoryStore, log: Arc<TestLog>) -> Self {
        let pool =
            BufferPool::new(PoolConfig::new(frames, 16), Arc::new(store), Arc::new(NoLog)).unwrap();
        let rel = RelationId::constant(9).main();
        pool.create(rel).unwrap();
        let rel = pool.relation(rel).unwrap();
        Self { pool, rel, log }
    }

    pub(super) fn env(&self) -> TestEnv {
        TestEnv {
            session: self.pool.session().unwrap(),
            log: Arc::clone(&self.log),
            wait: Wait::Allowed,
            between_pages: None,
            stops: None,
        }
    }

    /// What recovery makes of the first `records` records, each applied `times` times.
    pub(super) fn recover(&self, records: usize, times: usize) -> Tree {
        let log = TestLog {
            records: Mutex::new(self.log.records.lock()[..records].to_vec()),
            ..Default::default()
        };
        let tree = Tree::with(100, MemoryStore::new(), Arc::new(log));
        let session = tree.pool.session().unwrap();
        for _ in 0..times {
            for record in &*tree.log.records.lock() {
                for (index, (id, data)) in record.blocks.iter().enumerate() {
                    let mut page = session
                        .pin_or_zero(&tree.rel, id.block())
                        .unwrap()
                        .into_exclusive()
                        .unwrap();
                    if page.lsn() < record.end {
                        apply(&mut page, record.info, index, data, record.end);
                    }
                }
            }
        }
        drop(session);
        tree
    }

    pub(super) fn report(&self, env: &TestEnv) -> CheckReport {
        check(env, &self.rel, &mut |_, _| {}).unwrap()
    }

    /// Checks that the tree is whole.
    pub(super) fn check(&self, env: &TestEnv) -> CheckReport {
        let report = self.report(env);
        assert!(report.problems.is_empty(), "{:#?}", report.problems);
        report
    }

    pub(super) fn scan(
        &self,
        env: &TestEnv,
        lower: &[u8],
        upper: Option<&[u8]>,
        direction: Direction,
    ) -> Vec<(Vec<u8>, Tid)> {
        let mut cursor = Cursor::new(lower, upper, direction);
        let mut found = Vec::new();
        while let Some(tid) = cursor.next(env, &self.rel).unwrap() {
            found.push((cursor.key().to_vec(), tid));
        }
        found
    }

    /// Checks that the tree is whole and has exactly these entries, in both directions.
    pub(super) fn expect(&self, env: &TestEnv, model: &BTreeSet<(Vec<u8>, Tid)>) {
        self.check(env);
        let forward = self.scan(env, &[], None, Direction::Forward);
        assert!(
            forward.iter().eq(model.iter()),
            "{} entries, expected {}",
            forward.len(),
            model.len()
        );
        let backward = self.scan(env, &[], None, Direction::Backward);
        assert!(backward.iter().rev().eq(model.iter()));
        for (key, tid) in model.iter().step_by(5) {
            assert!(contains(env, &self.rel, key, *tid).unwrap(), "{key:?} {tid}");
            for other in [Tid::from_u64(tid.to_u64() + 1), Tid::MIN, Tid::MAX] {
                let is_there = model.contains(&(key.clone(), other));
                let found = contains(env, &self.rel, key, other).unwrap();
                assert_eq!(found, is_there, "{key:?} {other}");
            }
        }
    }

    /// Overwrites bytes of a page without the tree's knowledge.
    pub(super) fn deface(&self, env: &TestEnv, block: u32, at: usize, bytes: &[u8]) {
        let mut page = env
            .session
            .pin(&self.rel, BlockNumber(block), Wait::Allowed)
            .unwrap()
            .into_exclusive()
            .unwrap();
        let mut change = page.change();
        change.write(at, bytes);
        change.publish_unlogged();
    }
}
