//! What the log knows of forks is compared with what the store has.

use std::sync::atomic::{AtomicU32, Ordering};

use super::support::REL;
use crate::*;

/// The end of the log.
const END: Lsn = Lsn(u64::from_le_bytes([1; 8]));

/// A log that knows the fork's length, and that all of its pages but one have been written to.
#[derive(Default)]
struct KnowingLog {
    least: AtomicU32,
    unwritten: AtomicU32,
}

impl LogFlush for KnowingLog {
    fn flush_to(&self, _: Lsn) -> Result<(), LogFlushError> {
        Ok(())
    }
    fn flushed(&self) -> Lsn {
        Lsn::MAX
    }
    fn least_blocks(&self, rel: RelFork) -> Option<u32> {
        (rel == REL).then(|| self.least.load(Ordering::Relaxed))
    }
    fn has_reached(&self, lsn: Lsn) -> bool {
        lsn <= END
    }
    fn may_be_zero(&self, page: PageId) -> bool {
        let block = page.block().0;
        block >= self.least.load(Ordering::Relaxed)
            || block == self.unwritten.load(Ordering::Relaxed)
    }
}

/// A store with five pages, all but the first of zeros, and a log that knows of `least` pages.
fn five(least: u32) -> (std::sync::Arc<MemoryStore>, std::sync::Arc<BufferPool>) {
    let store = std::sync::Arc::new(MemoryStore::new());
    store.create(REL).unwrap();
    store.extend(REL, BlockNumber(0), 5).unwrap();
    let mut page = [1; PAGE_SIZE];
    set_checksum(REL.page(BlockNumber(0)), &mut page);
    store.write(REL, BlockNumber(0), &[&page]).unwrap();
    let log = KnowingLog { least: least.into(), unwritten: 3.into() };
    let pool =
        BufferPool::new(PoolConfig::new(64, 2), store.clone(), std::sync::Arc::new(log)).unwrap();
    (store, pool)
}

#[test]
fn a_page_of_zeros_is_damage_unless_the_log_allows_it() {
    let (_, pool) = five(4);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let kinds = |block: u32| {
        let read = session.pin(&rel, BlockNumber(block), Wait::Allowed).map(drop);
        match read {
            Ok(()) => "read",
            Err(BufferError::Zeroed { page }) if page.block().0 == block => "zeroed",
            Err(other) => panic!("{other}"),
        }
    };
    // Twice: a page that was refused once must not be found in memory later.
    for _ in 0..2 {
        assert_eq!([0, 1, 2, 3, 4].map(kinds), ["read", "zeroed", "zeroed", "read", "read"]);
    }
}

#[test]
fn a_page_from_beyond_the_log_is_damage() {
    let (store, pool) = five(4);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let beyond = Lsn(END.get() + 1);
    for (block, lsn) in [(1, END), (2, beyond)] {
        let id = REL.page(BlockNumber(block));
        let mut page = [1; PAGE_SIZE];
        page[..8].copy_from_slice(&lsn.get().to_le_bytes());
        set_checksum(id, &mut page);
        store.write(REL, BlockNumber(block), &[&page]).unwrap();
    }
    session.pin(&rel, BlockNumber(1), Wait::Allowed).map(drop).unwrap();
    for _ in 0..2 {
        let refused = session.pin(&rel, BlockNumber(2), Wait::Allowed).map(drop).unwrap_err();
        let is_right = matches!(refused, BufferError::BeyondLog { lsn, .. } if lsn == beyond);
        assert!(is_right && refused.is_damage(), "{refused}");
    }
}

#[test]
fn a_stream_meets_damage_where_it_is() {
    let (_, pool) = five(4);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let mut stream = ReadStream::new(StreamOptions::default());
    let mut blocks = (0..5).map(BlockNumber);
    let mut next = || blocks.next();
    let mut found = Vec::new();
    while let Some(block) = stream.peek(&session, &rel, Wait::Allowed, None, &mut next) {
        found.push(session.read(&rel, block, Wait::Allowed, |page| page.u64(16)).is_ok());
        stream.advance();
    }
    assert_eq!(found, [true, false, false, true, true]);
}

#[test]
fn recovery_takes_a_page_of_zeros_for_what_it_is() {
    let (_, pool) = five(4);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let page = session.pin_or_zero(&rel, BlockNumber(1)).unwrap();
    assert!(page.read(|page| page.u64(16)).unwrap() == 0);
}

#[test]
fn a_fork_that_is_too_short_is_told_from_one_that_is_not_there() {
    let (_, pool) = five(6);
    let short = pool.relation(REL);
    assert!(matches!(short, Err(BufferError::CutShort { blocks: 5, least: 6, .. })), "{short:?}");

    let (store, pool) = five(0);
    pool.relation(REL).unwrap();
    store.remove(REL.relation).unwrap();
    let log = KnowingLog::default();
    let pool = BufferPool::new(PoolConfig::new(64, 2), store, std::sync::Arc::new(log)).unwrap();
    let missing = pool.relation(REL);
    assert!(
        matches!(&missing, Err(BufferError::Store(StoreError::Missing { rel })) if *rel == REL)
    );
    assert!(missing.is_err_and(|error| error.is_damage()));
    // The log knows nothing of other forks.
    assert_eq!(pool.relation(RelationId::constant(99).main()).unwrap().block_count(), 0);
}
