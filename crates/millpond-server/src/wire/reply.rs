//! The server's messages, appended to the output buffer.

use millpond::{ColumnDesc, CommandTag, Severity, SqlError, TransactionStatus};

/// The newest protocol version that the server supports.
const NEWEST_PROTOCOL: i32 = 0x0003_0002;

/// Appends a message: the type byte, the length, and what `body` appends.
#[inline]
pub fn message(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = begin(out, kind);
    body(out);
    end(out, start);
}

/// Begins a message whose body the caller appends; [`end`] fills in its length.
#[inline]
fn begin(out: &mut Vec<u8>, kind: u8) -> usize {
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

/// AuthenticationOk. The server asks for no password.
pub fn authentication_ok(out: &mut Vec<u8>) {
    message(out, b'R', |out| out.extend_from_slice(&0i32.to_be_bytes()));
}

/// Reports a setting to the client.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, b'S', |out| {
        cstring(out, name);
        cstring(out, value);
    });
}

/// The session's process id, and the secret key that cancels it.
pub fn backend_key_data(out: &mut Vec<u8>, pid: i32, secret: &[u8]) {
    message(out, b'K', |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        out.extend_from_slice(secret);
    });
}

/// Answers a client that asked for a newer protocol, or for unknown protocol options.
pub fn negotiate_protocol(out: &mut Vec<u8>, unknown_options: &[String]) {
    message(out, b'v', |out| {
        out.extend_from_slice(&NEWEST_PROTOCOL.to_be_bytes());
        out.extend_from_slice(&(unknown_options.len() as u32).to_be_bytes());
        unknown_options.iter().for_each(|option| cstring(out, option));
    });
}

/// ReadyForQuery, with the transaction status.
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

/// CommandComplete, with the command's tag.
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
            // In one piece: so there is one look whether there is room.
            let mut rest = [0; 18];
            rest[..4].copy_from_slice(&column.table_oid.to_be_bytes());
            rest[4..6].copy_from_slice(&column.attnum.to_be_bytes());
            rest[6..10].copy_from_slice(&column.type_oid.to_be_bytes());
            rest[10..12].copy_from_slice(&type_len(column).to_be_bytes());
            rest[12..16].copy_from_slice(&column.ty.typmod().to_be_bytes());
            rest[16..].copy_from_slice(&format(i).to_be_bytes());
            out.extend_from_slice(&rest);
        }
    });
}

/// The width in bytes of a column's type; -1 if it varies.
fn type_len(column: &ColumnDesc) -> i16 {
    match column.type_oid {
        // oid, regproc, regclass, regtype: four bytes, stored in eight.
        24 | 26 | 2205 | 2206 => 4,
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

/// Asks the client for COPY data in text format.
pub fn copy_in(out: &mut Vec<u8>, columns: u16) {
    message(out, b'G', |out| copy_format(out, columns));
}

/// Announces COPY data in text format.
pub fn copy_out(out: &mut Vec<u8>, columns: u16) {
    message(out, b'H', |out| copy_format(out, columns));
}

/// The format codes: text for the whole and for each column.
fn copy_format(out: &mut Vec<u8>, columns: u16) {
    out.push(0);
    out.extend_from_slice(&columns.to_be_bytes());
    out.resize(out.len() + 2 * usize::from(columns), 0);
}

/// A piece of COPY data.
pub fn copy_data(out: &mut Vec<u8>, data: &[u8]) {
    message(out, b'd', |out| out.extend_from_slice(data));
}

/// An error.
pub fn error(out: &mut Vec<u8>, error: &SqlError) {
    message(out, b'E', |out| fields(out, error));
}

/// A notice or warning.
pub fn notice(out: &mut Vec<u8>, notice: &SqlError) {
    message(out, b'N', |out| fields(out, notice));
}

/// An error or a notice, according to its severity.
pub fn report(out: &mut Vec<u8>, report: &SqlError) {
    if report.severity < Severity::Error { notice(out, report) } else { error(out, report) }
}

/// The fields of an error or a notice.
fn fields(out: &mut Vec<u8>, error: &SqlError) {
    let position = error.position.map(|position| position.to_string());
    let fields = [
        (b'S', Some(error.severity.as_str())),
        (b'V', Some(error.severity.as_str())),
        (b'C', Some(error.sqlstate.as_str())),
        (b'M', Some(&error.message)),
        (b'D', error.detail.as_deref()),
        (b'H', error.hint.as_deref()),
        (b'P', position.as_deref()),
        (b'W', error.context.as_deref()),
        (b's', error.schema.as_deref()),
        (b't', error.table.as_deref()),
        (b'c', error.column.as_deref()),
        (b'n', error.constraint.as_deref()),
    ];
    for (kind, text) in fields {
        let Some(text) = text else { continue };
        out.push(kind);
        // A zero byte would end the field, and the client would read the rest as other fields.
        cstring(out, &text.replace('\0', "\u{fffd}"));
    }
    out.push(0);
}

/// A zero-terminated string.
fn cstring(out: &mut Vec<u8>, text: &str) {
    let has_zeros = text.bytes().fold(false, |found, byte| found | (byte == 0));
    match has_zeros {
        false => out.extend_from_slice(text.as_bytes()),
        true => out.extend(text.bytes().filter(|b| *b != 0)),
    }
    out.push(0);
}

#[cfg(test)]
mod tests;
