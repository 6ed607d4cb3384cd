//! A session that can't go on just now gets an error, or it waits and says in the log what for.

use super::support::*;
use crate::arena::FENCED;
use crate::core::frame::{NoPin, OWNED};
use crate::core::loading::Loading;
use crate::replacement::reuse::take_frame;
use crate::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The session that takes a page's frame has lost the processor half-way. A caller that must not
/// wait is not kept waiting.
#[test]
fn a_page_that_is_leaving_would_block() {
    let Bench { pool, .. } = bench(2, 1);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let number = session.pin(&rel, BlockNumber(0), Wait::Allowed).unwrap().frame();
    let frame = &pool.core.frames[number];
    frame.update(|state| Some(state | OWNED)).unwrap();
    let has_tried = AtomicBool::new(false);
    let answer = std::thread::scope(|scope| {
        // If the caller waits nevertheless, this thread ends the wait.
        scope.spawn(|| {
            for _ in 0..if cfg!(miri) { 100 } else { 100_000 } {
                if has_tried.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::yield_now();
            }
            frame.update(|state| Some(state & !OWNED)).unwrap();
        });
        let answer = session.pin(&rel, BlockNumber(0), Wait::Never).map(|page| page.block());
        has_tried.store(true, Ordering::Relaxed);
        answer
    });
    assert!(matches!(answer, Err(BufferError::WouldBlock)), "{answer:?}");
    assert_eq!(number_of(&session, &rel), 0);
}

fn number_of(session: &BufferSession, rel: &RelHandle) -> u64 {
    super::support::number(session, rel, 0)
}

/// A store forgets a read. A session that wants the page waits for ever, but it says so.
#[test]
#[cfg_attr(miri, ignore = "what is forgotten is a leak to Miri")]
fn a_read_that_is_forgotten_is_reported() {
    let bench = bench(STREAM_FRAMES, 60);
    let Bench { store, pool, .. } = &bench;
    store.background.store(true, Ordering::Relaxed);
    store.cold.store(true, Ordering::Relaxed);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let mut stream = ReadStream::new(StreamOptions::default());
    let mut blocks = (0..60).step_by(2).map(BlockNumber);
    while store.begun.lock().is_empty() {
        let next = stream.peek(&session, &rel, Wait::Allowed, None, &mut || blocks.next());
        assert!(next.is_some(), "nothing is read ahead");
        stream.advance();
    }
    let mut begun = std::mem::take(&mut *store.begun.lock());
    let forgotten = begun.pop().unwrap();
    let block = forgotten.first();
    std::mem::forget(forgotten);
    drop(begun);
    let lines = Arc::new(AtomicUsize::new(0));
    let waiter = std::thread::spawn({
        let (lines, pool, rel) = (Arc::clone(&lines), Arc::clone(pool), rel.clone());
        move || {
            let count = OnLine(move || {
                lines.fetch_add(1, Ordering::Relaxed);
            });
            let session = pool.session().unwrap();
            tracing::subscriber::with_default(count, || number(&session, &rel, block.0))
        }
    });
    while lines.load(Ordering::Relaxed) < 2 {
        assert!(!waiter.is_finished(), "nothing has been read");
        std::thread::yield_now();
    }
    // As if the read had ended after all.
    drop(Loading::resume(rel.0.translation.entry(block), 0));
    assert_eq!(waiter.join().unwrap(), block.0.into());
}

/// A session has a page pinned. It believes that another page, which had the frame before, is still
/// there.
#[test]
fn a_second_pin_looks_at_the_page_too() {
    let Bench { pool, .. } = bench(2, 2);
    let session = pool.session().unwrap();
    let rel = pool.relation(REL).unwrap();
    let pin = session.pin(&rel, BlockNumber(0), Wait::Allowed).unwrap();
    let believed = REL.page(BlockNumber(1));
    let again = session.core.pin_resident(pin.frame() as u32, believed, false);
    assert_eq!(again, Err(NoPin::Changed));
    drop(pin);
    assert_eq!(session.pinned_pages(), 0);
}

/// A frame that this thread is about to fill may have been taken from its page by another.
#[test]
fn a_frame_is_fenced_before_it_is_filled() {
    let Bench { pool, .. } = bench(2, 1);
    let session = pool.session().unwrap();
    let before = FENCED.get();
    drop(take_frame(&session.core, Wait::Allowed, None).unwrap());
    assert_eq!(FENCED.get() - before, 1);
}
