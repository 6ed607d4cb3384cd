//! What a restart knows about transactions.

use super::*;
use crate::wal::end_record;

/// Replays a fixture's log from `from` on into a new set of transactions over the same pages.
fn restart(fixture: &Fixture, from: Lsn) -> (crate::ctx::Shared, Vec<RelationId>) {
    fixture.shared.log.flush(fixture.shared.log.insert_position()).unwrap();
    let end = fixture.shared.log.flushed();
    fixture.shared.log.abandon();
    let files = Arc::new(FileLogStore::open(fixture.directory.path(), 1 << 20).unwrap());
    let path = fixture.directory.path();
    let shared = Fixture::assemble(8, 64, 1, &fixture.store, path, end, 2);
    let mut reader = LogReader::new(files, from).unwrap();
    let mut dropped = Vec::new();
    while let Step::Record(record) = reader.next().unwrap() {
        shared.txns.redo_saw(record.xid);
        if record.rmgr == RmgrId::Transaction {
            dropped.extend(shared.txns.redo(record.xid, record.info, record.payload).unwrap());
        }
    }
    let ctx = Ctx::new(&shared, "startup").unwrap();
    shared.txns.finish_recovery(&ctx).unwrap();
    (shared, dropped)
}

#[test]
fn recovery_knows_which_transactions_committed() {
    let fixture = Fixture::with(8, 64, 1);
    let file = RelationId::constant(20_000);
    let (mut committed, mut lost) = (Vec::new(), Vec::new());
    {
        let (a, b) = (fixture.ctx(), fixture.ctx());
        for round in 0..3_000 {
            let xid = a.assign_xid().unwrap();
            if round % 3 == 0 {
                a.txns().abort(&a, &[]);
                lost.push(xid);
            } else {
                let files: &[RelationId] = if round == 100 { &[file] } else { &[] };
                a.txns().commit(&a, files, Durability::Background).unwrap();
                committed.push(xid);
            }
        }
        lost.push(b.assign_xid().unwrap());
        // As after a crash: `b` never ends. Dropping it here only adds an abort record.
    }
    let (shared, dropped) = restart(&fixture, LOG_START);
    assert_eq!(dropped, [file]);
    let ctx = Ctx::new(&shared, "test").unwrap();
    for xid in &committed {
        assert_eq!(status(&ctx, *xid), XidStatus::Committed(Csn::FROZEN));
    }
    for xid in &lost {
        assert_eq!(status(&ctx, *xid), XidStatus::Aborted);
    }
    let next = ctx.assign_xid().unwrap();
    assert!(committed.iter().chain(&lost).all(|xid| *xid < next), "no id is given out twice");
    drop(ctx);
    shared.log.abandon();
}

#[test]
fn a_checkpoint_makes_earlier_commit_records_unnecessary() {
    let fixture = Fixture::with(8, 64, 1);
    let (ctx, running) = (fixture.ctx(), fixture.ctx());
    let open = running.assign_xid().unwrap();
    let early: Vec<Xid> = (0..1_500)
        .map(|_| {
            let xid = ctx.assign_xid().unwrap();
            commit(&ctx);
            xid
        })
        .collect();
    let redo = ctx.log().begin_checkpoint(ctx.log().maintenance_stripe(), &[]).unwrap().start;
    ctx.txns().checkpoint(&ctx).unwrap();
    ctx.pool().write_dirty(ctx.buffers(), |_| {}).unwrap();
    let late = ctx.assign_xid().unwrap();
    commit(&ctx);
    let page = ctx.buffers().read(
        &ctx.pool().relation(clog::CLOG).unwrap(),
        BlockNumber(0),
        Wait::Allowed,
        |page| millpond_buffer::PageRead::u16(page, 12),
    );
    assert_eq!(page.unwrap(), clog::CLOG_PAGE_KIND);
    drop((ctx, running));
    let (shared, _) = restart(&fixture, redo);
    let ctx = Ctx::new(&shared, "test").unwrap();
    for xid in &early {
        assert_eq!(status(&ctx, *xid), XidStatus::Committed(Csn::FROZEN), "{xid}");
    }
    assert_eq!(status(&ctx, late), XidStatus::Committed(Csn::FROZEN));
    assert_eq!(status(&ctx, open), XidStatus::Aborted);
    assert!(ctx.assign_xid().unwrap() > late);
    drop(ctx);
    shared.log.abandon();
}

#[test]
fn start_refuses_to_assign_transaction_ids_again() {
    let fixture = Fixture::with(8, 64, 1);
    {
        let ctx = fixture.ctx();
        for _ in 0..3_000 {
            ctx.assign_xid().unwrap();
            commit(&ctx);
        }
        ctx.txns().checkpoint(&ctx).unwrap();
        ctx.log().flush(ctx.log().insert_position()).unwrap();
        ctx.pool().write_dirty(ctx.buffers(), |_| {}).unwrap();
    }
    let next = fixture.shared.txns.next_xid();
    fixture.shared.log.abandon();
    let end = fixture.shared.log.flushed();
    for (known, is_right) in [(Xid::FIRST, false), (Xid(next.0 - 1_500), false), (next, true)] {
        let path = fixture.directory.path();
        let shared = Fixture::assemble(8, 64, 1, &fixture.store, path, end, 2);
        shared.txns.restore_next(known);
        let ctx = Ctx::new(&shared, "startup").unwrap();
        let result = shared.txns.finish_recovery(&ctx);
        assert_eq!(result.is_ok(), is_right, "{known}: {result:?}");
        drop(ctx);
        shared.log.abandon();
    }
}

#[test]
fn malformed_transaction_records_are_errors() {
    let fixture = Fixture::new();
    let shared = Fixture::assemble(
        2,
        64,
        1,
        &fixture.store,
        tempfile::tempdir().unwrap().path(),
        LOG_START,
        1,
    );
    let txns = &shared.txns;
    assert!(txns.redo(Xid(5), 9, &[]).is_err());
    assert!(txns.redo(Xid(5), end_record::INFO_COMMIT, &[1, 2, 3]).is_err());
    assert!(txns.redo(Xid::INVALID, end_record::INFO_NEXT_XID, &[0; 7]).is_err());
    assert!(
        fixture.shared.txns.redo(Xid(5), end_record::INFO_COMMIT, &[0; 12]).is_err(),
        "too late"
    );
    shared.log.abandon();
}
