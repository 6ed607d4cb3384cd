//! Event loops: no connection delays another, and each gets its own replies.

use super::common::raw::{Raw, cancel, message};
use super::{Fixture, V3_0, V3_2};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[test]
fn replies_do_not_wait_for_the_next_statement() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.send(&[message(b'Q', &[b"rows 1\0"]), message(b'Q', &[b"hold\0"])].concat());
    assert_eq!(client.kinds(), "TDCZ");
    fixture.strings.open_gate();
    assert_eq!(client.kinds(), "CZ");
}

#[test]
fn blocked_session_delays_no_other_session() {
    let fixture = Fixture::new();
    let (mut held, mut other) = (fixture.client(), fixture.client());
    held.query("hold").query("rows 1");
    for _ in 0..100 {
        assert_eq!(other.query("block 1").kinds(), "TDCZ");
    }
    fixture.strings.open_gate();
    assert_eq!((held.kinds(), held.kinds()), ("CZ".into(), "TDCZ".into()));
}

#[test]
fn a_commit_holds_back_its_own_reply_only() {
    let fixture = Fixture::new();
    let (mut committer, mut other) = (fixture.client(), fixture.client());
    committer.query("commit").query("rows 1");
    let deadline = Instant::now() + Duration::from_secs(60);
    while fixture.strings.wakers.lock().expect("lock").is_empty() {
        assert!(Instant::now() < deadline, "the commit was never registered");
        assert_eq!(other.query("rows 1").kinds(), "TDCZ");
    }
    for waker in fixture.strings.wakers.lock().expect("lock").drain(..) {
        waker.wake();
    }
    assert_eq!((committer.kinds(), committer.kinds()), ("CZ".into(), "TDCZ".into()));
}

#[test]
fn cancel_reaches_the_right_session() {
    let fixture = Fixture::new();
    for version in [V3_0, V3_2] {
        let mut client = fixture.raw().startup(version);
        client.query("hold");
        let mut wrong = client.secret.clone();
        wrong[0] ^= 1;
        assert_eq!(fixture.raw().send(&cancel(client.pid, &wrong)).reply(), None);
        // The request may arrive before the statement. Then the client would have to ask again.
        let secret = client.secret.clone();
        let mut canceller = fixture.raw();
        canceller.send(&cancel(client.pid, &secret));
        assert_eq!(canceller.reply(), None);
        let replies = client.replies();
        assert_eq!(replies[0].sqlstate(), "57014");
        assert_eq!(client.query("rows 1").kinds(), "TDCZ");
    }
}

#[test]
fn slow_client_delays_no_other_and_gets_all_rows() {
    let fixture = Fixture::new();
    let (mut slow, mut other) = (fixture.client(), fixture.client());
    slow.query("block 500000");
    for _ in 0..10 {
        assert_eq!(other.query("rows 1").kinds(), "TDCZ");
    }
    let replies = slow.replies();
    assert_eq!(replies.len(), 500_003);
    assert_eq!(replies[500_000].body, b"\0\x01\0\0\0\x06499999");

    // Cancel a statement that waits for its client.
    slow.query("block 500000");
    let first = slow.reply();
    assert_eq!(first.map(|r| r.kind), Some('T'));
    fixture.raw().send(&cancel(slow.pid, &slow.secret.clone()));
    let replies = slow.replies();
    assert_eq!(replies[replies.len() - 2].sqlstate(), "57014");

    // Disconnect in the middle of the result.
    slow.query("block 500000");
    assert_eq!(slow.reply().map(|r| r.kind), Some('T'));
    drop(slow);
    let deadline = Instant::now() + Duration::from_secs(60);
    while fixture.strings.sessions.load(Ordering::SeqCst) > 1 {
        assert!(Instant::now() < deadline, "the session of a vanished client lives on");
        assert_eq!(other.query("rows 1").kinds(), "TDCZ");
    }
}

#[test]
fn pipelined_replies_wait_for_the_client() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let mut batch = Vec::new();
    for _ in 0..20 {
        batch.extend(message(b'Q', &[b"rows 5000\0"]));
    }
    client.send(&batch);
    for _ in 0..20 {
        assert_eq!(client.replies().len(), 5003);
    }
}

/// A client ends its session, or a fatal error does, before it has read its replies. It gets them
/// all.
#[test]
fn unread_replies_are_sent_before_the_connection_closes() {
    let fixture = Fixture::new();
    for (last, kinds) in [(message(b'X', &[]), ""), (message(b'Q', &[b"fatal\0"]), "E")] {
        // The first query fills the socket, once or twice. In some cases the second finds no room.
        let sizes = (12_000..28_000).step_by(1000).map(|first| [first, 4000]);
        let asked = sizes.map(|sizes| {
            let mut client = fixture.client();
            let query = |rows: usize| message(b'Q', &[format!("rows {rows}\0").as_bytes()]);
            client.send(&[&query(sizes[0])[..], &query(sizes[1]), &last].concat());
            (client, sizes)
        });
        let asked: Vec<_> = asked.collect();
        std::thread::sleep(Duration::from_millis(100));
        for (mut client, sizes) in asked {
            for rows in sizes {
                assert_eq!(client.kinds(), format!("T{}CZ", "D".repeat(rows)));
            }
            assert_eq!(client.kinds(), kinds);
        }
    }
}

#[test]
fn batched_replies_reach_their_own_clients() {
    let fixture = Fixture::new();
    let mut clients: Vec<Raw> = (0..40).map(|_| fixture.client()).collect();
    for round in 0..30 {
        // Most clients ask for few rows; some repeatedly ask for more than a socket accepts.
        let asked = |i: usize| if (i + round).is_multiple_of(9) { (2000, 20) } else { (i, 1) };
        for (i, client) in clients.iter_mut().enumerate() {
            let (rows, times) = asked(i);
            let text = format!("rows {rows}\0");
            client.send(&message(b'Q', &[text.as_bytes()]).repeat(times));
        }
        if round % 10 == 9 {
            // One client disconnects with unread replies.
            clients.pop();
        }
        for (i, client) in clients.iter_mut().enumerate() {
            let (rows, times) = asked(i);
            for _ in 0..times {
                assert_eq!(client.kinds(), format!("T{}CZ", "D".repeat(rows)));
            }
        }
    }
}

#[test]
fn a_panic_ends_one_session_only() {
    let fixture = Fixture::new();
    let (mut bad, mut good) = (fixture.client(), fixture.client());
    assert_eq!(bad.query("panic").replies().len(), 0);
    assert_eq!(good.query("rows 1").kinds(), "TDCZ");
}

#[test]
fn shutdown_reports_57p01_to_clients() {
    let mut fixture = Fixture::new();
    let (mut idle, mut busy, mut copying) = (fixture.client(), fixture.client(), fixture.client());
    busy.query("hold");
    copying.query("copy");
    assert_eq!(copying.reply().map(|r| r.kind), Some('G'));
    fixture.server.take().expect("running").stop(None);
    assert_eq!(idle.replies()[0].sqlstate(), "57P01");
    assert_eq!(copying.replies()[0].sqlstate(), "57P01");
    // Its statement is interrupted first; then it gets the reason.
    let replies = [busy.replies(), busy.replies()].concat();
    assert_eq!(replies.last().map(|r| r.sqlstate()), Some("57P01".into()));
    assert_eq!(fixture.strings.sessions.load(Ordering::SeqCst), 0);
}

#[test]
fn four_hundred_clients_on_one_loop() {
    let fixture = Fixture::new();
    let mut clients: Vec<_> = (0..400).map(|_| fixture.client()).collect();
    for _ in 0..3 {
        for client in &mut clients {
            client.query("rows 1");
        }
        for client in &mut clients {
            assert_eq!(client.kinds(), "TDCZ");
        }
    }
}

#[test]
fn disconnect_during_a_blocking_statement_is_noticed() {
    let fixture = Fixture::new();
    let socket = UnixStream::connect(fixture.dir.path().join(".s.PGSQL.5433")).expect("connects");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("timeout");
    let stream = Box::new(socket.try_clone().expect("cloned"));
    let mut client = Raw { stream, pid: 0, secret: Vec::new() }.startup(V3_0);
    client.query("hold");
    // More input arrives while that statement waits on its thread, then the client's end. (If the
    // sleep is too short for that, the replies are the same.)
    std::thread::sleep(Duration::from_millis(100));
    client.query("rows 1");
    socket.shutdown(std::net::Shutdown::Write).expect("shut down");
    fixture.strings.open_gate();
    let mut kinds = String::new();
    while let Some(reply) = client.reply() {
        kinds.push(reply.kind);
    }
    assert_eq!(kinds, "CZTDCZ");
}
