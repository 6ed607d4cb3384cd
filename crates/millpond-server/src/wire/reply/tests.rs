//! Compares the server's messages with those of pgwire's encoder.

use super::*;
use bytes::BytesMut;
use millpond::SqlState;
use pgwire::messages::Message;
use pgwire::messages::copy::{CopyInResponse, CopyOutResponse};
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};

fn assert_same(ours: impl FnOnce(&mut Vec<u8>), theirs: &impl Message) {
    let (mut out, mut bytes) = (Vec::new(), BytesMut::new());
    ours(&mut out);
    theirs.encode(&mut bytes).unwrap();
    assert_eq!(out, bytes);
}

#[test]
fn start_up_replies_are_those_of_pgwire() {
    assert_same(authentication_ok, &Authentication::Ok);
    let status = ParameterStatus::new("TimeZone".to_owned(), "Etc/UTC".to_owned());
    assert_same(|out| parameter_status(out, "TimeZone", "Etc/UTC"), &status);
    let key = BackendKeyData::new(-7, SecretKey::I32(0x0102_0304));
    assert_same(|out| backend_key_data(out, -7, &[1, 2, 3, 4]), &key);
    let key = BackendKeyData::new(7, SecretKey::Bytes(vec![9; 32].into()));
    assert_same(|out| backend_key_data(out, 7, &[9; 32]), &key);
    let unknown = vec!["_pq_.a".to_owned(), "_pq_.b".to_owned()];
    let negotiate = NegotiateProtocolVersion::new(NEWEST_PROTOCOL, unknown.clone());
    assert_same(|out| negotiate_protocol(out, &unknown), &negotiate);
}

#[test]
fn copy_replies_are_those_of_pgwire() {
    for columns in [0, 1, 300] {
        let formats = vec![0; usize::from(columns)];
        let copy = CopyInResponse::new(0, columns as i16, formats.clone());
        assert_same(|out| copy_in(out, columns), &copy);
        let copy = CopyOutResponse::new(0, columns as i16, formats);
        assert_same(|out| copy_out(out, columns), &copy);
    }
}

#[test]
fn errors_and_notices_are_those_of_pgwire() {
    let mut full = SqlError::new(SqlState::UNIQUE_VIOLATION, "twice").detail("(1)").hint("no");
    full.position = Some(12);
    full.table = Some("t".into());
    full.constraint = Some("t\0pkey".into());
    let texts = |severity: &str| {
        let fields = [
            (b'S', severity),
            (b'V', severity),
            (b'C', "23505"),
            (b'M', "twice"),
            (b'D', "(1)"),
            (b'H', "no"),
            (b'P', "12"),
            (b't', "t"),
            (b'n', "t\u{fffd}pkey"),
        ];
        fields.map(|(kind, text)| (kind, text.to_owned())).to_vec()
    };
    assert_same(|out| error(out, &full), &ErrorResponse::new(texts("ERROR")));
    assert_same(|out| notice(out, &full), &NoticeResponse::new(texts("ERROR")));
}
