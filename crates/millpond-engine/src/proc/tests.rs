//! Each line has one owner, interrupts reach one session, horizons hold.

use super::*;

#[test]
fn lines_are_given_out_once_and_taken_back() {
    let array = ProcArray::new(2);
    let a = array.register("client backend").unwrap();
    let b = array.register("client backend").unwrap();
    assert_ne!(a.no(), b.no());
    assert!(matches!(array.register("client backend"), Err(EngineError::TooManySessions)));
    drop(a);
    assert_eq!(array.in_use(), 1);
    assert!(array.register("client backend").is_ok());
}

#[test]
fn an_interrupt_reaches_its_session_only() {
    let array = ProcArray::new(1);
    let first = array.register("client backend").unwrap();
    let handle = first.interrupt_handle();
    handle.interrupt(Interrupt::Cancel);
    assert!(matches!(first.check_interrupts(), Err(EngineError::Cancelled)));
    assert_eq!(first.interrupt(), Some(Interrupt::Cancel));
    handle.interrupt(Interrupt::Terminate);
    assert_eq!(first.interrupt(), Some(Interrupt::Terminate));
    first.clear_statement_interrupts();
    assert!(first.check_interrupts().is_err(), "a request to end the session stays");
    drop(first);
    handle.interrupt(Interrupt::Cancel);
    let second = array.register("client backend").unwrap();
    assert!(second.check_interrupts().is_ok());
    handle.interrupt(Interrupt::Cancel);
    assert!(second.check_interrupts().is_ok());
    second.interrupt_handle().interrupt(Interrupt::Cancel);
    assert!(second.check_interrupts().is_err());
}

#[test]
fn the_published_number_is_the_oldest_held() {
    let array = ProcArray::new(2);
    let proc = array.register("client backend").unwrap();
    assert_eq!(array.oldest_snapshot(Csn(9)), Csn(9));
    assert_eq!(proc.publish_snapshot(|| Csn(4)), Csn(4));
    assert_eq!(proc.publish_snapshot(|| Csn(7)), Csn(7));
    assert_eq!(array.oldest_snapshot(Csn(9)), Csn(4));
    proc.withdraw_snapshot(Csn(4));
    assert_eq!(array.oldest_snapshot(Csn(9)), Csn(7));
    proc.withdraw_snapshot(Csn(7));
    assert_eq!(array.oldest_snapshot(Csn(9)), Csn(9));
    proc.announce_xid(Xid(5));
    assert_eq!((array.oldest_xid(Xid(8)), proc.xid()), (Xid(5), None));
    proc.publish_xid(Some(Xid(6)));
    assert_eq!((array.oldest_xid(Xid(8)), proc.xid()), (Xid(6), Some(Xid(6))));
    assert_eq!(array.session_of(Xid(6)), Some(proc.no()));
    drop(proc);
    assert_eq!(array.oldest_xid(Xid(8)), Xid(8));
}

#[test]
fn a_checkpoint_waits_for_commits_under_way_but_not_for_later_ones() {
    let array = ProcArray::new(2);
    let proc = array.register("client backend").unwrap();
    array.wait_for_commits();
    proc.enter_commit();
    let (started, is_started) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn({
        let array = array.clone();
        move || {
            started.send(()).unwrap();
            array.wait_for_commits();
        }
    });
    is_started.recv().unwrap();
    // Whether or not the waiter has parked yet, it need not wait for the next commit.
    proc.leave_commit();
    proc.enter_commit();
    if !waiter.is_finished() {
        // The waiter may have looked only now, and waits for the second commit.
        proc.leave_commit();
    }
    waiter.join().unwrap();
}
