//! Tests the decoder with the messages of pgwire's encoder, and with arbitrary bytes.

use super::*;
use bytes::{Bytes, BytesMut};
use pgwire::messages::{Message as _, copy, extendedquery as ext, simplequery};
use proptest::prelude::*;

fn one<'a>(bytes: &'a BytesMut) -> Message<'a> {
    let frame = frame(bytes).expect("frame").expect("complete");
    assert_eq!(frame.end, bytes.len());
    decode(frame.kind, &bytes[5..frame.end]).expect("decodes")
}

fn text() -> impl Strategy<Value = String> {
    "[^\u{0}]{0,40}"
}

proptest! {
    #[test]
    fn queries(sql in text()) {
        let mut bytes = BytesMut::new();
        simplequery::Query::new(sql.clone()).encode(&mut bytes).expect("encodes");
        prop_assert_eq!(one(&bytes), Message::Query(&sql));
    }

    #[test]
    fn parses(name in text(), sql in text(), oids in prop::collection::vec(any::<u32>(), 0..9)) {
        let mut bytes = BytesMut::new();
        ext::Parse::new(Some(name.clone()), sql.clone(), oids.clone()).encode(&mut bytes).expect("encodes");
        let Message::Parse { name: n, sql: s, types } = one(&bytes) else { panic!("not a parse") };
        prop_assert_eq!((n, s), (name.as_str(), sql.as_str()));
        prop_assert_eq!(types.iter().collect::<Vec<_>>(), oids);
    }

    #[test]
    fn binds(
        portal in text(),
        statement in text(),
        formats in prop::collection::vec(0i16..2, 0..5),
        values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..20)), 0..6),
        results in prop::collection::vec(0i16..2, 0..5),
    ) {
        let mut bytes = BytesMut::new();
        let sent = values.iter().map(|v| v.clone().map(Bytes::from)).collect();
        ext::Bind::new(Some(portal.clone()), Some(statement.clone()), formats.clone(), sent, results.clone())
            .encode(&mut bytes).expect("encodes");
        let Message::Bind(bind) = one(&bytes) else { panic!("not a bind") };
        prop_assert_eq!((bind.portal, bind.statement), (portal.as_str(), statement.as_str()));
        prop_assert_eq!(bind.formats.iter().collect::<Vec<_>>(), formats);
        prop_assert_eq!(bind.result_formats.iter().collect::<Vec<_>>(), results);
        prop_assert_eq!(bind.params.count(), values.len());
        let got: Vec<_> = bind.params.iter().map(|v| v.map(<[u8]>::to_vec)).collect();
        prop_assert_eq!(got, values);
    }

    #[test]
    fn names_and_numbers(name in text(), rows in any::<i32>(), data in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut bytes = BytesMut::new();
        ext::Execute::new(Some(name.clone()), rows).encode(&mut bytes).expect("encodes");
        prop_assert_eq!(one(&bytes), Message::Execute { portal: &name, max_rows: rows });
        bytes.clear();
        ext::Describe::new(b'S', Some(name.clone())).encode(&mut bytes).expect("encodes");
        prop_assert_eq!(one(&bytes), Message::Describe(Target::Statement, &name));
        bytes.clear();
        ext::Close::new(b'P', Some(name.clone())).encode(&mut bytes).expect("encodes");
        prop_assert_eq!(one(&bytes), Message::Close(Target::Portal, &name));
        bytes.clear();
        copy::CopyData::new(Bytes::from(data.clone())).encode(&mut bytes).expect("encodes");
        prop_assert_eq!(one(&bytes), Message::CopyData(&data));
    }

    /// No bytes cause a panic.
    #[test]
    fn no_byte_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = frame(&bytes);
        for kind in 0..=255 {
            let _ = decode(kind, &bytes);
        }
    }
}

#[test]
fn frames_wait_for_their_bytes_and_refuse_impossible_lengths() {
    assert_eq!(frame(b""), Ok(None));
    assert_eq!(frame(b"Q\0\0\0"), Ok(None));
    assert_eq!(frame(b"Q\0\0\0\x08ab"), Ok(None));
    assert_eq!(frame(b"Q\0\0\0\x03"), Err(FrameError::Length));
    assert_eq!(frame(b"Q\x7f\xff\xff\xff"), Err(FrameError::Length));
    assert_eq!(frame(b"S\0\0\xff\xff"), Err(FrameError::Length));
    assert_eq!(frame(b"\x16\x03\x01"), Err(FrameError::UnknownKind(0x16)));
}

#[test]
fn invalid_text_names_its_bytes() {
    let error = decode(b'Q', b"select '\xc3\x28'\0").expect_err("not UTF-8");
    assert_eq!(error.to_string(), "invalid byte sequence for encoding \"UTF8\": 0xc3");
    let error = decode(b'Q', b"\xff\0").expect_err("not UTF-8");
    assert_eq!(error.to_string(), "invalid byte sequence for encoding \"UTF8\": 0xff");
}

#[test]
fn wrong_counts_are_errors() {
    assert_eq!(decode(b'P', b"\0select 1\0\xff\xff"), Err(SHORT));
    assert_eq!(decode(b'B', b"\0\0\0\0\xff\xff\0\0"), Err(SHORT));
    assert_eq!(decode(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"), Err(SHORT));
    assert_eq!(decode(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"), Err(SHORT));
    assert!(decode(b'S', b"x").is_err());
    assert!(decode(b'Q', b"no end").is_err());
}
