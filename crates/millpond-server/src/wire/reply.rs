//! The server's messages.
//!
//! Those that every request needs are written straight into the output buffer, without allocation;
//! the others are pgwire's, through a scratch buffer.

use bytes::BytesMut;
use millpond::{ColumnDesc, CommandTag, Severity, SqlError, TransactionStatus};
use pgwire::messages::Message;
use pgwire::messages::copy::{CopyInResponse, CopyOutResponse};
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};

/// Newest protocol version served.
const NEWEST_PROTOCOL: i32 = 0x0003_0002;

/// Appends a message: type byte, length, and what `body` appends.
#[inline]
pub fn message(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = begin(out, kind);
    body(out);
    end(out, start);
}

/// Begins a message whose body is appended by hand; `end` fills in its length.
#[inline]
pub fn begin(out: &mut Vec<u8>, kind: u8) -> usize {
    let start = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    start
}

/// Ends the message that began at `start`.
#[inline]
pub fn end(out: &mut [u8], start: usize) {
    let length = (out.len() - start - 1) as u32;
    if let Some(place) = out.get_mut(start + 1..start + 5) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// One of pgwire's messages.
fn codec(out: &mut Vec<u8>, message: &impl Message) {
    let mut bytes = BytesMut::new();
    match message.encode(&mut bytes) {
        Ok(()) => out.extend_from_slice(&bytes),
        Err(error) => tracing::error!(%error, "a reply could not be encoded"),
    }
}

/// Welcome: no password is asked for.
pub fn authentication_ok(out: &mut Vec<u8>) {
    codec(out, &Authentication::Ok);
}

/// Tells the client a setting.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    codec(out, &ParameterStatus::new(name.to_owned(), value.to_owned()));
}

/// The session's number and the secret that cancels it.
pub fn backend_key_data(out: &mut Vec<u8>, pid: i32, secret: &[u8]) {
    let secret = match <[u8; 4]>::try_from(secret) {
        Ok(short) => SecretKey::I32(i32::from_be_bytes(short)),
        Err(_) => SecretKey::Bytes(secret.to_vec().into()),
    };
    codec(out, &BackendKeyData::new(pid, secret));
}

/// The client asked for a newer protocol, or for options nobody knows.
pub fn negotiate_protocol(out: &mut Vec<u8>, unknown_options: Vec<String>) {
    codec(out, &NegotiateProtocolVersion::new(NEWEST_PROTOCOL, unknown_options));
}

/// Ready for the next request.
#[inline]
pub fn ready_for_query(out: &mut Vec<u8>, status: TransactionStatus) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status.letter()]);
}

/// A message without a body: ParseComplete `1`, BindComplete `2`, CloseComplete `3`, NoData `n`,
/// EmptyQueryResponse `I`, PortalSuspended `s`, CopyDone `c`.
#[inline]
pub fn bare(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(&[kind, 0, 0, 0, 4]);
}

/// The statement is done.
#[inline]
pub fn command_complete(out: &mut Vec<u8>, tag: CommandTag) {
    message(out, b'C', |out| {
        tag.write_to(out);
        out.push(0);
    });
}

/// The columns of a result; `format` gives each one's format code.
pub fn row_description(
    out: &mut Vec<u8>,
    columns: &[ColumnDesc],
    mut format: impl FnMut(usize) -> i16,
) {
    message(out, b'T', |out| {
        out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
        for (i, column) in columns.iter().enumerate() {
            cstring(out, &column.name);
            out.extend_from_slice(&column.table_oid.to_be_bytes());
            out.extend_from_slice(&column.attnum.to_be_bytes());
            out.extend_from_slice(&column.type_oid.to_be_bytes());
            out.extend_from_slice(&type_len(column).to_be_bytes());
            out.extend_from_slice(&column.ty.typmod().to_be_bytes());
            out.extend_from_slice(&format(i).to_be_bytes());
        }
    });
}

/// The width of a column's type, -1 where it varies.
fn type_len(column: &ColumnDesc) -> i16 {
    match column.type_oid {
        // oid, regproc, xid, cid, regclass, regtype: four bytes, which we keep in eight.
        24 | 26 | 28 | 29 | 2205 | 2206 => 4,
        // "char", name
        18 => 1,
        19 => 64,
        _ => column.ty.typlen(),
    }
}

/// The types of a statement's parameters.
pub fn parameter_description(out: &mut Vec<u8>, oids: impl ExactSizeIterator<Item = u32>) {
    message(out, b't', |out| {
        out.extend_from_slice(&(oids.len() as u16).to_be_bytes());
        for oid in oids {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    });
}

/// The client may send its COPY data, as text.
pub fn copy_in(out: &mut Vec<u8>, columns: u16) {
    codec(out, &CopyInResponse::new(0, columns as i16, vec![0; usize::from(columns)]));
}

/// COPY data follows, as text.
pub fn copy_out(out: &mut Vec<u8>, columns: u16) {
    codec(out, &CopyOutResponse::new(0, columns as i16, vec![0; usize::from(columns)]));
}

/// A piece of COPY data.
pub fn copy_data(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'd', |out| out.extend_from_slice(data));
}

/// An error.
pub fn error(out: &mut Vec<u8>, error: &SqlError) {
    codec(out, &ErrorResponse::new(fields(error)));
}

/// A notice or warning.
pub fn notice(out: &mut Vec<u8>, notice: &SqlError) {
    codec(out, &NoticeResponse::new(fields(notice)));
}

/// An error or a notice, as its severity says.
pub fn report(out: &mut Vec<u8>, report: &SqlError) {
    if report.severity < Severity::Error { notice(out, report) } else { error(out, report) }
}

fn fields(error: &SqlError) -> Vec<(u8, String)> {
    let severity = error.severity.as_str();
    let mut fields = vec![
        (b'S', severity.to_owned()),
        (b'V', severity.to_owned()),
        (b'C', error.sqlstate.as_str().to_owned()),
        (b'M', printable(&error.message)),
    ];
    let position = error.position.map(|p| p.to_string());
    let optional = [
        (b'D', &error.detail),
        (b'H', &error.hint),
        (b'P', &position),
        (b'W', &error.context),
        (b's', &error.schema),
        (b't', &error.table),
        (b'c', &error.column),
        (b'n', &error.constraint),
    ];
    for (kind, text) in optional {
        if let Some(text) = text {
            fields.push((kind, printable(text)));
        }
    }
    fields
}

/// A zero byte would end the field, and the rest would be taken for other fields.
fn printable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A zero-terminated string.
fn cstring(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|b| *b != 0));
    out.push(0);
}
