//! Commits in two halves, in groups, and under a log that fails.

use super::*;

#[test]
fn commits_in_two_halves_and_in_the_background() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let xid = a.assign_xid().unwrap();
    let ticket = a.txns().commit_start(&a, &[], Durability::Flush).unwrap();
    assert!(!ticket.is_ready() && a.proc().is_in_commit());
    assert_eq!(status(&b, xid), XidStatus::InProgress, "not before it is durable");
    a.log().flush(ticket.lsn).unwrap();
    let csn = a.txns().commit_finish(&a, ticket).unwrap().unwrap();
    assert_eq!(status(&b, xid), XidStatus::Committed(csn));
    assert!(!a.proc().is_in_commit());
    a.assign_xid().unwrap();
    let ticket = a.txns().commit_start(&a, &[], Durability::Background).unwrap();
    assert!(ticket.is_ready());
    assert!(a.txns().commit_finish(&a, ticket).unwrap().is_some());
}

/// A crash may lose a transaction, but removed files cannot come back with it.
#[test]
fn a_commit_in_the_background_waits_for_the_log_if_it_drops_files() {
    let fixture = Fixture::new();
    let ctx = fixture.ctx();
    ctx.assign_xid().unwrap();
    let files = [RelationId::constant(20_000)];
    let ticket = ctx.txns().commit_start(&ctx, &files, Durability::Background).unwrap();
    assert!(!ticket.is_ready() && ctx.log().flushed() < ticket.lsn);
    let end = ticket.lsn;
    ctx.txns().commit_finish(&ctx, ticket).unwrap();
    assert!(ctx.log().flushed() >= end);
}

/// `commit_siblings` counts other transactions that have changed something and wait for no lock.
#[test]
fn commit_delay_applies_with_enough_active_siblings() {
    let fixture = Fixture::new();
    let ctxs = [fixture.ctx(), fixture.ctx(), fixture.ctx()];
    let waiter = fixture.ctx();
    let pause = |siblings| {
        let delay = Duration::from_micros(1);
        ctxs[0].set_commit_delay(CommitDelay { delay, siblings });
        ctxs[0].commit_pause() == delay
    };
    ctxs[0].assign_xid().unwrap();
    assert!(pause(0) && !pause(1), "the session's own transaction does not count");
    ctxs[1].assign_xid().unwrap();
    ctxs[2].txns().snapshot(&ctxs[2]);
    assert!(pause(1) && !pause(2), "nor does one that only reads");
    waiter.assign_xid().unwrap();
    assert!(pause(2) && !pause(3));
    // One of them waits for a lock.
    let table = LockTag::Relation(7);
    ctxs[0].lock(table, LockMode::AccessExclusive).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || waiter.lock(table, LockMode::AccessShare).unwrap());
        while pause(2) {
            std::thread::yield_now();
        }
        assert!(pause(1));
        // Each leading commit pauses or not, by the setting at its time.
        let pauses = || ctxs[0].log().stats().pauses;
        let before = pauses();
        assert!(pause(1));
        ctxs[0].txns().commit(&ctxs[0], &[], Durability::Flush).unwrap();
        assert_eq!(pauses(), before + 1);
    });
    ctxs[0].assign_xid().unwrap();
    ctxs[0].set_commit_delay(CommitDelay::default());
    let before = ctxs[0].log().stats().pauses;
    ctxs[0].txns().commit(&ctxs[0], &[], Durability::Flush).unwrap();
    assert_eq!(ctxs[0].log().stats().pauses, before);
}

#[test]
fn session_that_ends_during_a_commit_has_committed() {
    fn is_send<T: Send>() {}
    is_send::<Ctx>();
    let fixture = Fixture::new();
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let xid = a.assign_xid().unwrap();
    let _ticket = a.txns().commit_start(&a, &[], Durability::Flush).unwrap();
    drop(a);
    assert!(status(&b, xid).is_committed());
    b.txns().checkpoint(&b).unwrap();
}

#[test]
fn a_commit_under_a_failing_log_is_in_doubt() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let xid = a.assign_xid().unwrap();
    let ticket = a.txns().commit_start(&a, &[], Durability::Flush).unwrap();
    a.lock(LockTag::Relation(7), LockMode::AccessExclusive).unwrap();
    let waiter = std::thread::spawn(move || (b.wait_for_xid(xid), b));
    while !a.locks().list().iter().any(|lock| !lock.granted) {
        std::thread::yield_now();
    }
    fixture.shared.log.stop("a test");
    assert!(fixture.shared.log.flushed() < ticket.lsn);
    let finished = a.txns().commit_finish(&a, ticket);
    assert!(matches!(finished, Err(EngineError::InDoubt { .. })), "{finished:?}");
    let (waited, b) = waiter.join().unwrap();
    assert!(matches!(waited, Err(EngineError::InDoubt { .. })), "{waited:?}");
    assert_eq!(status(&b, xid), XidStatus::InProgress);
    assert!(a.locks().list().is_empty());
    a.assign_xid().unwrap();
    assert!(matches!(
        a.txns().commit_start(&a, &[], Durability::Flush),
        Err(EngineError::InDoubt { .. })
    ));
}
