//! The replies to well-formed and malformed messages.

use super::common::raw::{self, bind, execute, message, parse, startup, sync};
use super::{Fixture, V3_0, V3_2};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::io::Write;

#[test]
fn start_up_negotiates() {
    let fixture = Fixture::new();
    let old = fixture.client();
    assert_eq!(old.secret.len(), 4);
    let new = fixture.raw().startup(V3_2);
    assert_eq!(new.secret.len(), 32);
    assert_ne!(old.pid, new.pid);

    let mut tls = fixture.raw();
    let mut answer = [0];
    tls.send(&raw::sized(&80_877_103u32.to_be_bytes()));
    std::io::Read::read_exact(&mut tls.stream, &mut answer).expect("answer");
    assert_eq!(&answer, b"N");
    tls.send(&raw::sized(&80_877_104u32.to_be_bytes()));
    std::io::Read::read_exact(&mut tls.stream, &mut answer).expect("answer");
    assert_eq!(&answer, b"N");
    tls.send(&startup(0x0003_270f, &[("user", "u"), ("_pq_.new", "1")]));
    let replies = tls.replies();
    assert_eq!(replies.iter().map(|r| r.kind).collect::<String>(), "vRSKZ");
    assert_eq!(replies[0].body[..8], [0, 3, 0, 2, 0, 0, 0, 1]);

    let mut ancient = fixture.raw();
    ancient.send(&startup(0x0002_0000, &[("user", "u")]));
    let replies = ancient.replies();
    assert_eq!(replies[0].sqlstate(), "0A000");
    assert_eq!(replies[0].field(b'S').as_deref(), Some("FATAL"));
}

#[test]
fn clients_beyond_the_limit_get_53300() {
    let fixture = Fixture::sized(2);
    let _both = (fixture.client(), fixture.client());
    let mut third = fixture.raw();
    third.send(&startup(V3_0, &[("user", "u")]));
    let replies = third.replies();
    assert_eq!((replies.len(), replies[0].sqlstate().as_str()), (1, "53300"));
}

#[test]
fn simple_queries() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    assert_eq!(client.query("rows 3").kinds(), "TDDDCZ");
    assert_eq!(client.query("").kinds(), "IZ");
    let replies = client.query("nonsense").replies();
    assert_eq!(replies.len(), 2);
    assert_eq!(replies[0].sqlstate(), "42601");
    assert_eq!(replies[0].field(b'P').as_deref(), Some("1"));
    assert_eq!(replies[0].field(b'H').as_deref(), Some("try rows"));
    // A blocking statement returns to the loop, and its discarded rows are not sent.
    assert_eq!(client.query("block 2").kinds(), "TDDCZ");
    assert_eq!(client.query("rows 1").kinds(), "TDCZ");
    // All at once.
    client.send(
        &[
            message(b'Q', &[b"rows 1\0"]),
            message(b'Q', &[b"block 1\0"]),
            message(b'Q', &[b"rows 0\0"]),
        ]
        .concat(),
    );
    assert_eq!(
        (client.kinds(), client.kinds(), client.kinds()),
        ("TDCZ".into(), "TDCZ".into(), "TCZ".into())
    );
    let replies = client.send(&message(b'F', &[b"\0\0\0\0"])).replies();
    assert_eq!(replies[0].sqlstate(), "0A000");
    let replies = client.query("fatal").replies();
    assert_eq!((replies.len(), replies[0].kind), (1, 'E'));
}

#[test]
fn one_byte_at_a_time() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    for byte in [message(b'Q', &[b"rows 2\0"]), parse("", "rows 1"), sync()].concat() {
        client.send(&[byte]);
    }
    assert_eq!(client.kinds(), "TDDCZ");
    assert_eq!(client.kinds(), "1Z");
}

#[test]
fn extended_queries_with_row_limits() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.send(
        &[
            parse("s", "rows 5"),
            message(b'D', &[b"Ss\0"]),
            bind("p", "s"),
            message(b'D', &[b"Pp\0"]),
        ]
        .concat(),
    );
    client.send(&[execute("p", 2), execute("p", 2), execute("p", 2), sync()].concat());
    assert_eq!(client.kinds(), "1tT2TDDsDDsDCZ");
    // The portal ended with its transaction; the statement did not.
    client.send(&[execute("p", 0), sync()].concat());
    let replies = client.replies();
    assert_eq!(replies[0].sqlstate(), "34000");
    client.send(&[bind("", "s"), execute("", 0), message(b'C', &[b"Ss\0"]), sync()].concat());
    assert_eq!(client.kinds(), "2DDDDDC3Z");
    client.send(&[bind("", "s"), sync()].concat());
    assert_eq!(client.replies()[0].sqlstate(), "26000");
    // Flush sends the replies so far, without a Sync.
    client.send(&[parse("", "block 1"), message(b'H', &[])].concat());
    assert_eq!(client.reply().map(|r| r.kind), Some('1'));
    client.send(&[bind("", ""), execute("", 0), sync()].concat());
    assert_eq!(client.kinds(), "2DCZ");
}

#[test]
fn errors_skip_to_sync() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    let batch =
        [parse("", "unparsable"), bind("", ""), execute("", 0), parse("x", "rows 1"), sync()];
    client.send(&[batch.concat(), message(b'Q', &[b"rows 0\0"])].concat());
    assert_eq!((client.kinds(), client.kinds()), ("EZ".into(), "TCZ".into()));
    client.send(&[parse("x", "rows 1"), parse("x", "rows 1"), bind("", "x"), sync()].concat());
    let replies = client.replies();
    assert_eq!(
        (replies[0].kind, replies[1].sqlstate().as_str(), replies[2].kind),
        ('1', "42P05", 'Z')
    );
    // Wrong counts, and text that is not UTF-8.
    client.send(&[message(b'B', &[b"\0x\0\0\0\0\x01\0\0\0\x01a\0\0"]), sync()].concat());
    assert_eq!(client.replies()[0].sqlstate(), "08P01");
    client.send(&[message(b'B', &[b"\0x\0\0\0\0\x07"]), sync()].concat());
    assert_eq!(client.replies()[0].sqlstate(), "08P01");
    client.send(&message(b'Q', &[b"\xff\xfe\0"]));
    assert_eq!(client.replies()[0].sqlstate(), "22021");
    client.send(
        &[parse("", "rows 1"), message(b'B', &[b"\0\0\0\0\0\0\0\x01\0\x05"]), sync()].concat(),
    );
    assert_eq!(client.replies()[1].sqlstate(), "22023");
    assert_eq!(client.query("rows 1").kinds(), "TDCZ");
}

#[test]
fn statements_are_prepared_in_a_pipeline() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    // In a pipeline the replies keep their order, and later messages find the statement.
    let describe = message(b'D', &[b"S\0"]);
    let batch = [
        parse("before", "rows 1"),
        parse("", "rows 2"),
        describe,
        bind("", ""),
        execute("", 0),
        parse("x", "rows 1"),
        sync(),
        message(b'Q', &[b"rows 1\0"]),
    ];
    client.send(&batch.concat());
    assert_eq!((client.kinds(), client.kinds()), ("11tT2DDC1Z".into(), "TDCZ".into()));
    client.send(&[bind("", "x"), execute("", 0), sync()].concat());
    assert_eq!(client.kinds(), "2DCZ");

    // An error skips to Sync.
    let batch = [parse("y", "unparsable"), bind("", "y"), execute("", 0), sync()];
    client.send(&[batch.concat(), message(b'Q', &[b"rows 0\0"])].concat());
    let (failed, next) = (client.replies(), client.kinds());
    assert_eq!((failed[0].sqlstate().as_str(), failed.len(), next.as_str()), ("42601", 2, "TCZ"));
    // A duplicate name is an error before the statement is planned.
    client.send(&[parse("x", "rows 1"), bind("", "x"), sync()].concat());
    let failed = client.replies();
    assert_eq!((failed[0].sqlstate().as_str(), failed.len()), ("42P05", 2));
    client.send(&[bind("", "y"), sync()].concat());
    assert_eq!(client.replies()[0].sqlstate(), "26000");

    // Flush brings the reply as well.
    client.send(&[parse("", "rows 1"), message(b'H', &[])].concat());
    assert_eq!(client.reply().map(|r| r.kind), Some('1'));
    client.send(&[bind("", ""), execute("", 0), sync()].concat());
    assert_eq!(client.kinds(), "2DCZ");
}

#[test]
fn copy_in() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.query("copy");
    assert_eq!(client.reply().map(|r| r.kind), Some('G'));
    client.send(
        &[message(b'd', &[b"abc"]), message(b'd', &[b"de"]), sync(), message(b'c', &[])].concat(),
    );
    let replies = client.replies();
    assert_eq!((replies[0].text().as_str(), replies[1].kind), ("COPY 5", 'Z'));

    client.query("copy");
    assert_eq!(client.reply().map(|r| r.kind), Some('G'));
    client.send(&message(b'f', &[b"changed my mind\0"]));
    let replies = client.replies();
    assert_eq!(replies[0].sqlstate(), "57014");
    assert!(replies[0].field(b'M').expect("message").contains("changed my mind"));

    // The client keeps sending COPY data after the error.
    client.query("copy");
    assert_eq!(client.reply().map(|r| r.kind), Some('G'));
    client
        .send(&[message(b'd', &[b"bad"]), message(b'd', &[b"more"]), message(b'c', &[])].concat());
    assert_eq!(client.replies()[0].sqlstate(), "22P04");

    // No other message is valid during a COPY.
    client.query("copy");
    assert_eq!(client.reply().map(|r| r.kind), Some('G'));
    client.send(&parse("", "rows 1"));
    assert_eq!(client.replies()[0].sqlstate(), "08P01");

    // In the extended protocol.
    client.send(&[parse("", "copy"), bind("", ""), execute("", 0), sync()].concat());
    let kinds: String = (0..3).filter_map(|_| client.reply()).map(|r| r.kind).collect();
    assert_eq!(kinds, "12G");
    client.send(&[message(b'd', &[b"abc"]), message(b'c', &[]), sync()].concat());
    assert_eq!(client.kinds(), "CZ");
    assert_eq!(client.query("rows 1").kinds(), "TDCZ");
}

#[test]
fn oversized_messages_end_the_connection_and_allocate_nothing() {
    let fixture = Fixture::new();
    for bytes in [
        &b"Q\xff\xff\xff\xff"[..],
        b"Q\x40\0\0\0",
        b"S\0\x01\0\0",
        b"Q\0\0\0\x03",
        b"\x01\0\0\0\x04",
    ] {
        let mut client = fixture.client();
        let replies = client.send(bytes).replies();
        assert_eq!(replies[0].sqlstate(), "08P01", "{bytes:?}");
        assert_eq!(replies[0].field(b'S').as_deref(), Some("FATAL"));
    }
    // A claimed length alone allocates nothing: the server only waits for more bytes.
    let mut claims: Vec<_> = (0..100).map(|_| fixture.client()).collect();
    for client in &mut claims {
        client.send(b"Q\x3f\xff\xff\xffhello");
    }
    assert_eq!(fixture.client().query("rows 1").kinds(), "TDCZ");
    for bytes in [&b"\xff\xff\xff\xff"[..], b"\0\0\x27\x11", b"\0\0\0\0", b"GET / HTTP/1.1\r\n\r\n"]
    {
        let replies = fixture.raw().send(bytes).replies();
        assert_eq!(replies[0].sqlstate(), "08P01", "{bytes:?}");
    }
}

#[test]
fn random_bytes_disturb_no_other_session() {
    let fixture = Fixture::new();
    let mut good = fixture.client();
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..500 {
        let mut client = if round % 2 == 0 { fixture.client() } else { fixture.raw() };
        let mut bytes = vec![0; random.random_range(1..200)];
        random.fill(&mut bytes[..]);
        if round % 4 == 0 {
            // A valid header with a random body gets further.
            bytes[0] = *b"QPBDCESHdcfFpX".get(random.random_range(0..14)).expect("kind");
            let length = (bytes.len() as u32).max(5) - 1;
            bytes.resize(length as usize + 1, 0);
            bytes[1..5].copy_from_slice(&length.to_be_bytes());
        }
        // The server may close the connection before everything is sent.
        let _ = client.stream.write_all(&bytes);
        drop(client);
        if round % 50 == 0 {
            assert_eq!(good.query("rows 1").kinds(), "TDCZ");
        }
    }
    assert_eq!(good.query("rows 1").kinds(), "TDCZ");
}

#[test]
fn malformed_sync_ends_skipping() {
    let fixture = Fixture::new();
    let mut client = fixture.client();
    client.send(&parse("", "unparsable"));
    client.send(&message(b'S', &[b"too much"]));
    let kinds: String = client.replies().iter().map(|reply| reply.kind).collect();
    assert_eq!(kinds, "EEZ");
    client.query("rows 1");
    let kinds: String = client.replies().iter().map(|reply| reply.kind).collect();
    assert_eq!(kinds, "TDCZ");
}
