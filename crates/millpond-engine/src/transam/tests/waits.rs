//! Waiting for a transaction, and for a turn at its row.

use super::*;

#[test]
fn waiters_wake_when_the_transaction_ends() {
    let fixture = Fixture::new();
    let runner = fixture.ctx();
    for round in 0..50 {
        let xid = runner.assign_xid().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let ctx = fixture.ctx();
                scope.spawn(move || {
                    ctx.wait_for_xid(xid).unwrap();
                    assert_ne!(status(&ctx, xid), XidStatus::InProgress);
                });
            }
            if round % 2 == 0 {
                commit(&runner);
            } else {
                runner.txns().abort(&runner, &[]);
            }
        });
    }
    assert!(runner.locks().list().is_empty());
}

#[test]
fn rows_are_changed_in_the_order_of_arrival() {
    let fixture = Fixture::new();
    let writer = fixture.ctx();
    let xid = writer.assign_xid().unwrap();
    let order = AtomicU64::new(0);
    let tid = crate::access::Tid::new(BlockNumber(3), 4);
    std::thread::scope(|scope| {
        for turn in 0..4 {
            let (ctx, order) = (fixture.ctx(), &order);
            let number = ctx.no();
            scope.spawn(move || {
                let held = ctx.wait_for_row(16384, tid, LockStrength::Update, xid).unwrap();
                assert_eq!(order.fetch_add(1, Ordering::SeqCst), turn);
                drop(held);
            });
            while !writer.locks().list().iter().any(|l| !l.granted && l.session == number) {
                std::thread::yield_now();
            }
        }
        commit(&writer);
    });
    assert!(writer.locks().list().is_empty());
    assert!(
        writer.wait_for_row(16384, tid, LockStrength::Update, xid).is_ok(),
        "no transaction is in the way"
    );
}

#[test]
fn two_transactions_that_wait_for_each_other_are_a_deadlock() {
    let fixture = Fixture::new();
    fixture.shared.locks.set_deadlock_timeout(Duration::from_millis(10));
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let (xa, xb) = (a.assign_xid().unwrap(), b.assign_xid().unwrap());
    let run = |ctx: Ctx, other: Xid| {
        let result = ctx.wait_for_xid(other);
        ctx.txns().abort(&ctx, &[]);
        result
    };
    let results = std::thread::scope(|scope| {
        let (a, b) = (scope.spawn(move || run(a, xb)), scope.spawn(move || run(b, xa)));
        [a.join().unwrap(), b.join().unwrap()]
    });
    let failed: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let EngineError::Deadlock { detail } = &failed[0] else { panic!("{failed:?}") };
    for line in detail.lines() {
        assert!(line.contains("waits for ShareLock on transaction "), "{line}");
    }
}

#[test]
fn row_waits_time_out_after_lock_timeout() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.ctx(), fixture.ctx());
    let xid = a.assign_xid().unwrap();
    b.set_lock_timeout(Some(Duration::from_millis(5)));
    assert!(matches!(b.wait_for_xid(xid), Err(EngineError::LockTimeout)));
    let until = LockWait::Until(Instant::now());
    assert!(matches!(b.txns().wait_for(&b, xid, until), Err(EngineError::LockTimeout)));
}
