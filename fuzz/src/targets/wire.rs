//! Messages that clients send.

use millpond_server::wire::frontend::{Bind, Message, Target, decode, frame};
use millpond_server::wire::startup::{Packet, Startup, packet};

pub const STARTUP_TOKENS: &[&[u8]] =
    &[b"user\0", b"database\0", b"_pq_.", b"options\0", b"\0\x03\0\0"];

/// A stream of messages.
pub fn message(mut input: &[u8]) {
    while let Ok(Some(found)) = frame(input) {
        assert!(found.end >= 5 && found.end <= input.len(), "a message lies in what was received");
        assert_eq!(frame(&input[..found.end - 1]), Ok(None), "a message that has not all come yet");
        let body = &input[5..found.end];
        match decode(found.kind, body) {
            Ok(message) => is_written_as_read(found.kind, body, &message),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        input = &input[found.end..];
    }
}

fn is_written_as_read(kind: u8, body: &[u8], message: &Message<'_>) {
    let mut out = Vec::new();
    let text = |out: &mut Vec<u8>, text: &str| {
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    };
    match message {
        Message::Query(sql) | Message::CopyFail(sql) => text(&mut out, sql),
        Message::Parse { name, sql, types } => {
            text(&mut out, name);
            text(&mut out, sql);
            out.extend_from_slice(&(types.iter().len() as u16).to_be_bytes());
            types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
        }
        Message::Bind(bind) => write_bind(bind, &mut out),
        Message::Describe(target, name) | Message::Close(target, name) => {
            out.push(if *target == Target::Statement { b'S' } else { b'P' });
            text(&mut out, name);
        }
        Message::Execute { portal, max_rows } => {
            text(&mut out, portal);
            out.extend_from_slice(&max_rows.to_be_bytes());
        }
        Message::CopyData(data) => out.extend_from_slice(data),
        Message::Sync | Message::Flush | Message::CopyDone => {}
        // Their bodies are not decoded.
        Message::FunctionCall | Message::Password | Message::Terminate => return,
    }
    assert_eq!(out, body, "a message of kind {kind} is written as it was read");
}

fn write_bind(bind: &Bind<'_>, out: &mut Vec<u8>) {
    for name in [bind.portal, bind.statement] {
        out.extend_from_slice(name.as_bytes());
        out.push(0);
    }
    let formats = |formats: &millpond_server::wire::frontend::Formats<'_>, out: &mut Vec<u8>| {
        out.extend_from_slice(&(formats.count() as u16).to_be_bytes());
        formats.iter().for_each(|code| out.extend_from_slice(&code.to_be_bytes()));
        let _ = (formats.of(0), formats.of(1), formats.of(usize::MAX));
    };
    formats(&bind.formats, out);
    out.extend_from_slice(&(bind.params.count() as u16).to_be_bytes());
    assert_eq!(bind.params.iter().count(), bind.params.count());
    for value in bind.params.iter() {
        let length = value.map_or(-1, |value| value.len() as i32);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(value.unwrap_or_default());
    }
    formats(&bind.result_formats, out);
}

fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
    out
}

pub fn message_seeds() -> Vec<Vec<u8>> {
    let bind = b"p\0s\0\0\x02\0\0\0\x01\0\x02\0\0\0\x03abc\xff\xff\xff\xff\0\x01\0\x01";
    let bodies: &[(u8, &[u8])] = &[
        (b'Q', b"SELECT 1\0"),
        (b'P', b"s\0SELECT $1\0\0\x02\0\0\0\x17\0\0\0\x19"),
        (b'B', bind),
        (b'D', b"Ss\0"),
        (b'D', b"P\0"),
        (b'C', b"Ss\0"),
        (b'E', b"p\0\0\0\0\x0a"),
        (b'S', b""),
        (b'H', b""),
        (b'd', b"1\ttwo\n"),
        (b'c', b""),
        (b'f', b"no more\0"),
        (b'F', b"\0\0\0\x01"),
        (b'p', b"secret\0"),
        (b'X', b""),
    ];
    let mut seeds: Vec<Vec<u8>> = bodies.iter().map(|(kind, body)| framed(*kind, body)).collect();
    seeds.push(seeds.concat());
    seeds
}

/// A start-up packet.
pub fn startup(input: &[u8]) {
    let Ok(found) = packet(input) else { return };
    let Some((found, length)) = found else { return };
    assert!((8..=input.len()).contains(&length), "a packet lies in what was received");
    assert_eq!(packet(&input[..length - 1]), Ok(None), "a packet that has not all come yet");
    match found {
        Packet::Ssl | Packet::Gss => {}
        Packet::Cancel { pid, secret } => {
            let mut body = pid.to_be_bytes().to_vec();
            body.extend_from_slice(&secret);
            assert_eq!(body, input[8..length], "a cancel request is written as it was read");
        }
        Packet::Startup(start) => {
            let bytes = write_startup(&start);
            // The written packet may have a database name that the input left out.
            if bytes.len() <= millpond_server::wire::startup::STARTUP_PACKET_BYTES {
                let length = bytes.len();
                assert_eq!(packet(&bytes), Ok(Some((Packet::Startup(start), length))));
            }
        }
    }
}

fn write_startup(start: &Startup) -> Vec<u8> {
    let mut body = vec![0, 3];
    body.extend_from_slice(&start.minor.to_be_bytes());
    let mut pair = |name: &str, value: &str| {
        for text in [name, value] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
    };
    pair("user", &start.user);
    pair("database", &start.database);
    start.settings.iter().for_each(|(name, value)| pair(name, value));
    start.unknown_options.iter().for_each(|name| pair(name, ""));
    body.push(0);
    let mut out = (body.len() as u32 + 4).to_be_bytes().to_vec();
    out.append(&mut body);
    out
}

pub fn startup_seeds() -> Vec<Vec<u8>> {
    let start = Startup {
        minor: 2,
        user: "ada".into(),
        database: "library".into(),
        settings: vec![
            ("application_name".into(), "psql".into()),
            ("options".into(), "-c x=1".into()),
        ],
        unknown_options: vec!["_pq_.command_tag".into()],
    };
    let request = |code: u32, rest: &[u8]| {
        let mut out = (rest.len() as u32 + 8).to_be_bytes().to_vec();
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(rest);
        out
    };
    vec![
        write_startup(&start),
        write_startup(&Startup { user: "u".into(), database: "u".into(), ..Startup::default() }),
        request(80_877_102, b"\0\0\0\x01abcd"),
        request(80_877_103, b""),
        request(80_877_104, b""),
        request(2 << 16, b""),
    ]
}
