//! Status and commit number pages: missing, zeros or another's (transam rules 3, 9 and 10).

use super::*;
use crate::transam::chunk::{CHUNK, ChunkBits};
use crate::transam::csn_pages::{self, CSN_FILE};
use crate::transam::overflow::{Kept, Spilled};
use crate::transam::word::{Status, StatusWord};

/// Asks a block of the status pages for the status of one of its transactions.
fn asked(ctx: &Ctx, block: u64) -> Result<bool, EngineError> {
    let rel = ctx.pool().relation(clog::CLOG).unwrap();
    clog::has_committed(ctx, &rel, Xid(block * clog::CHUNKS_PER_PAGE * CHUNK + 5))
}

#[test]
fn a_status_page_that_is_missing_or_zeros_is_corruption() {
    let fixture = Fixture::new();
    let ctx = fixture.ctx();
    let rel = ctx.pool().relation(clog::CLOG).unwrap();
    assert!(!asked(&ctx, 0).unwrap());
    for what in ["missing", "kind 0"] {
        let error = asked(&ctx, 1).unwrap_err();
        assert!(matches!(error, EngineError::Corruption { .. }), "{error:?}");
        assert!(error.to_string().contains(what), "{error}");
        drop(ctx.buffers().extend(&rel, Wait::Allowed).unwrap());
    }
}

#[test]
fn skipped_status_page_is_written() {
    let fixture = Fixture::new();
    let ctx = fixture.ctx();
    let rel = ctx.pool().relation(clog::CLOG).unwrap();
    clog::set_bits(&ctx, &rel, 2 * clog::CHUNKS_PER_PAGE, &ChunkBits::default()).unwrap();
    assert!(!asked(&ctx, 1).unwrap());
}

/// No session holds a snapshot, so nothing of a chunk is kept in memory when it leaves the ring.
#[test]
fn commits_that_leave_the_ring_are_in_the_status_pages() {
    let fixture = Fixture::with(8, 64, 1);
    let ctx = fixture.ctx();
    let mut xids = Vec::new();
    for _ in 0..5 * CHUNK {
        xids.push(ctx.assign_xid().unwrap());
        commit(&ctx);
    }
    let ring = &ctx.txns().ring;
    assert!(ring.retired() > xids[0] && ring.overflow.chunks().is_empty());
    for xid in xids.into_iter().filter(|xid| *xid < ring.retired()) {
        assert_eq!(status(&ctx, xid), XidStatus::Committed(Csn::FROZEN), "{xid}");
    }
}

/// A reader was sent to the page. Meanwhile another chunk has got its place.
#[test]
fn a_page_of_commit_numbers_answers_for_its_own_chunk_only() {
    let fixture = Fixture::new();
    let ctx = fixture.ctx();
    let rel = ctx.txns().csn_file(ctx.pool()).unwrap();
    let place = |chunk| Spilled { chunk, block: BlockNumber(0) };
    let word = |index| StatusWord::new(Status::Committed(Csn(50 + index)));
    let kept = Kept { words: (0..CHUNK).map(word).collect() };
    csn_pages::write(&ctx, rel, place(7), &kept).unwrap();
    let read = |chunk| csn_pages::read(&ctx, rel, place(chunk), Xid(chunk * CHUNK + 2)).unwrap();
    assert_eq!(read(7), Some(XidStatus::Committed(Csn(52))));
    assert_eq!(read(8), None);
}

#[test]
fn commit_numbers_do_not_outlive_a_run() {
    use millpond_buffer::PageStore;
    let fixture = Fixture::new();
    fixture.shared.txns.csn_file(&fixture.shared.pool).unwrap();
    assert!(fixture.store.exists(CSN_FILE).unwrap());
    let end = fixture.shared.log.flushed();
    fixture.shared.log.abandon();
    let path = fixture.directory.path();
    let shared = Fixture::assemble(8, 64, 1, &fixture.store, path, end, 2);
    shared.txns.restore_next(fixture.shared.txns.next_xid());
    let ctx = Ctx::new(&shared, "startup").unwrap();
    shared.txns.finish_recovery(&ctx).unwrap();
    assert!(!fixture.store.exists(CSN_FILE).unwrap());
    drop(ctx);
    shared.log.abandon();
}
