//! Resizing a pool in use: no change is lost, and a pinned or unwritable page stops a shrink.
use super::support::*;
use crate::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn the_pool_grows_and_shrinks() {
    let Bench { pool, .. } = bench(16, 32);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    for block in 0..16 {
        set_number(&session, &rel, block, 100 + u64::from(block), 1);
    }
    assert_eq!((pool.frames(), pool.max_frames()), (16, 32));
    pool.resize(&session, 32).unwrap();
    assert_eq!((pool.frames(), pool.core.free_frames()), (32, 16));
    for block in 16..32 {
        number(&session, &rel, block);
    }
    assert_eq!(pool.stats().evictions, 0);
    // Pages that do not fit leave, and are written if they must be.
    pool.resize(&session, 8).unwrap();
    let stats = pool.stats();
    assert_eq!((pool.frames(), stats.evictions, stats.writes), (8, 24, 8), "{stats:?}");
    for block in 0..16 {
        assert_eq!(number(&session, &rel, block), 100 + u64::from(block));
    }
    pool.resize(&session, 9).unwrap();
    assert_eq!(pool.core.free_frames(), 1);
    for refused in [0, 33] {
        let refused = pool.resize(&session, refused);
        assert!(matches!(refused, Err(BufferError::Size { max: 32, .. })), "{refused:?}");
    }
    pool.drop_relation(REL.relation).unwrap();
    assert_eq!(pool.core.free_frames(), 9);
}

/// Rule 2.
#[test]
fn a_pinned_page_stops_shrinking_and_it_can_be_tried_again() {
    let Bench { pool, .. } = bench(16, 16);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    for block in 0..16 {
        number(&session, &rel, block);
    }
    let held = session.pin(&rel, BlockNumber(9), Wait::Allowed).unwrap();
    let error = pool.resize(&session, 4).unwrap_err();
    let BufferError::Shrinking { frames, page, .. } = error else { panic!("{error}") };
    assert_eq!((frames, page), (held.frame() + 1, Some(held.page_id())));
    assert!(error.to_string().ends_with("while pages are in use"));
    assert_eq!(pool.frames(), frames);
    // The pool uses the frames that it has, between the size that was asked for and its present
    // size.
    let free = pool.core.free_frames();
    assert_eq!(free, frames - 4 - 1);
    assert_eq!(held.read(|page| page.u64(16)).unwrap(), 9);
    drop(held);
    pool.resize(&session, 4).unwrap();
    assert_eq!((pool.frames(), pool.core.free_frames()), (4, 0));
    assert_eq!(number(&session, &rel, 9), 9);
}

#[test]
fn a_page_that_cannot_be_written_stops_shrinking() {
    let Bench { pool, store, .. } = bench(8, 8);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    for block in 0..8 {
        set_number(&session, &rel, block, 70, 1);
    }
    store.fail_writes.store(true, Ordering::Relaxed);
    assert!(matches!(pool.resize(&session, 2), Err(BufferError::Store(_))));
    assert_eq!((pool.frames(), pool.core.free_frames()), (8, 0));
    store.fail_writes.store(false, Ordering::Relaxed);
    pool.resize(&session, 2).unwrap();
    for block in 0..8 {
        assert_eq!(number(&session, &rel, block), 70);
    }
}

/// Readers, optimistic ones too, and writers beside a pool that grows and shrinks.
#[test]
fn resizing_under_load() {
    const BLOCKS: u32 = if cfg!(miri) { 12 } else { 200 };
    const ROUNDS: u32 = if cfg!(miri) { 3 } else { 60 };
    const SIZES: [usize; 5] = if cfg!(miri) { [16, 5, 12, 16, 6] } else { [128, 20, 64, 256, 40] };
    let Bench { pool, .. } = bench(if cfg!(miri) { 8 } else { 128 }, BLOCKS);
    let ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (pool, ending) = (&pool, &ending);
            scope.spawn(move || {
                let session = pool.session().unwrap();
                let rel = pool.relation(REL).unwrap();
                let mut rounds = 0u64;
                while !ending.load(Ordering::Relaxed) || rounds == 0 {
                    for block in 0..BLOCKS {
                        let seen = session
                            .read(&rel, BlockNumber(block), Wait::Allowed, |page| page.u64(16))
                            .unwrap();
                        assert_eq!(seen % 1000, u64::from(block), "another page");
                        if block % 2 == thread {
                            set_number(&session, &rel, block, seen + 1000, 1);
                        }
                    }
                    rounds += 1;
                }
                for block in (0..BLOCKS).filter(|block| block % 2 == thread) {
                    assert_eq!(number(&session, &rel, block) / 1000, rounds, "a change was lost");
                }
            });
        }
        let session = pool.session().unwrap();
        for round in 0..ROUNDS {
            let frames = SIZES[round as usize % 5];
            match pool.resize(&session, frames) {
                Ok(()) => assert_eq!(pool.frames(), frames),
                Err(BufferError::Shrinking { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        ending.store(true, Ordering::Relaxed);
    });
    let session = pool.session().unwrap();
    pool.resize(&session, 4).unwrap();
    pool.drop_relation(REL.relation).unwrap();
    assert_eq!(pool.core.free_frames(), 4);
}

#[test]
fn what_stays_free_is_shared_out_again() {
    let mut config = PoolConfig::new(400, SESSIONS);
    config.freelists = 4;
    let store = Arc::new(TestStore::default());
    let pool = BufferPool::new(config, store, Arc::new(TestLog::default())).unwrap();
    let session = pool.session().unwrap();
    pool.resize(&session, 200).unwrap();
    let lists: Vec<_> = (0..4).map(|list| pool.core.free.len_of(list, &pool.core.frames)).collect();
    assert_eq!(lists, [50; 4]);
}
