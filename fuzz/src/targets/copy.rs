//! Rows of COPY.

use millpond::copy::{RowFormat, RowReader, RowWriter};
use millpond::types::FormatOptions;
use millpond::{DataType, Datum};

use crate::bytes::Bytes;

pub const TOKENS: &[&[u8]] = &[
    b"\\N",
    b"\\.",
    b"\\.\n",
    b"\r\n",
    b"\"\"",
    b"\\\\",
    b"\\x41",
    b"\\101",
    b"a,b\n",
    b"\t",
    b"\xc3\xa9",
    b"\n",
];

type Rows = Vec<Vec<Option<String>>>;

/// The format of the rows, from the first bytes; `None` if no COPY statement can have it.
fn format(input: &mut Bytes<'_>) -> Option<RowFormat> {
    let flags = input.byte();
    let columns = (0..input.byte() % 5).map(|n| char::from(b'a' + n).to_string()).collect();
    let csv = flags & 1 != 0;
    let mut format = if csv { RowFormat::csv(columns) } else { RowFormat::text(columns) };
    format.header = flags & 2 != 0;
    format.header_match = flags & 6 == 6;
    if flags & 8 != 0 {
        format.delimiter = input.byte() & 0x7f;
    }
    if flags & 16 != 0 {
        format.null = std::str::from_utf8(input.short()).ok()?.to_owned();
    }
    if csv && flags & 32 != 0 {
        (format.quote, format.escape) = (input.byte() & 0x7f, input.byte() & 0x7f);
    }
    if csv && flags & 64 != 0 {
        let bits = input.byte();
        let list = |shift: u8| (0..3).map(|column| bits >> (shift + column) & 1 != 0).collect();
        (format.force_null, format.force_not_null) = (list(0), list(3));
    }
    is_allowed(&format).then_some(format)
}

/// The checks of the statement's options.
fn is_allowed(format: &RowFormat) -> bool {
    let delimiter = format.delimiter;
    let in_text = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'\\' || byte == b'.';
    // A string of SQL has no zero byte.
    ![delimiter, format.quote, format.escape].contains(&0)
        && !format.null.contains('\0')
        && delimiter != b'\n'
        && delimiter != b'\r'
        && !format.null.contains(['\n', '\r'])
        && (format.csv || !in_text(delimiter))
        && !(format.csv && format.quote == delimiter)
        && !format.null.as_bytes().contains(&delimiter)
}

fn read(
    format: &RowFormat,
    pieces: &mut dyn Iterator<Item = &[u8]>,
) -> (Rows, Result<u64, String>) {
    let (mut reader, mut rows) = (RowReader::new(format.clone()), Rows::new());
    let mut each = |row: &millpond::copy::CopyRow<'_>| {
        rows.push(row.iter().map(|field| field.map(str::to_owned)).collect());
        Ok(())
    };
    let mut result = Ok(());
    for piece in pieces {
        result = result.and_then(|()| reader.feed(piece, &mut each));
    }
    let result = result.and_then(|()| reader.finish(&mut each));
    let lines = reader.line();
    (rows, result.map(|()| lines).map_err(|error| format!("line {lines}: {error}")))
}

/// A stream of rows, read as a whole and in pieces.
pub fn rows(input: &[u8]) {
    let mut input = Bytes(input);
    let Some(format) = format(&mut input) else { return };
    let cut = usize::from(input.byte() % 32) + 1;
    let data = input.0;
    let whole = read(&format, &mut std::iter::once(data));
    let in_pieces = read(&format, &mut data.chunks(cut));
    assert_eq!(whole, in_pieces, "a stream reads the same in pieces of {cut} bytes");
    let is_plain = format.force_null.is_empty() && !format.columns.is_empty();
    // With other null strings, PostgreSQL's output is ambiguous, too. Other quotes may clash with
    // the other special bytes.
    let usual = format.csv && format.null.is_empty() || !format.csv && format.null == "\\N";
    if is_plain && usual && quotes_are_free(&format) {
        is_read_as_written(&format, &whole.0);
    }
}

/// Whether quotes, delimiters and escapes have no other meaning.
fn quotes_are_free(format: &RowFormat) -> bool {
    let special = [format.delimiter, format.quote, format.escape];
    let ends_lines = special.iter().any(|byte| b"\n\r".contains(byte));
    // A line of the values `` and `.`, written with a backslash between them, ends the data.
    let ends_data = b"\\.".contains(&format.delimiter);
    !format.csv || !ends_lines && !ends_data && format.escape != format.delimiter
}

fn is_read_as_written(format: &RowFormat, rows: &Rows) {
    let mut out = Vec::new();
    let mut writer = RowWriter::new(format.clone());
    writer.header(&mut out);
    let types = vec![DataType::Text; format.columns.len()];
    for row in rows {
        let row: Vec<Datum<'_>> =
            row.iter().map(|field| field.as_deref().map_or(Datum::Null, Datum::Text)).collect();
        writer.row(&types, &row, &FormatOptions::default(), &mut out);
    }
    let (again, result) = read(format, &mut std::iter::once(out.as_slice()));
    assert!(result.is_ok(), "{result:?} in {:?}", String::from_utf8_lossy(&out));
    assert_eq!(&again, rows, "rows are read as they were written");
}

pub fn seeds() -> Vec<Vec<u8>> {
    let seeds: &[&[&[u8]]] = &[
        // Flags, columns, what the flags ask for, the length of the pieces, rows.
        &[&[0, 2, 3], b"1\ttwo\n\\N\tt\\tab\n3\t\\x41\\101\\\\\n\\.\nnot read"],
        &[&[0, 1, 0], b"a\r\nb\r\n\r\nc"],
        &[&[1, 3, 7], b"1,\"two, \"\"three\"\"\",\n,\"\",\"a\nb\"\n"],
        &[&[3, 2, 1], b"a,b\r\n1,2\r\n"],
        &[&[7, 2, 4], b"a,b\n\xc3\xa9,2\n"],
        &[&[0x21, 2, b'\'', b'\\', 5], b"'it\\'s',x\n'a''b',y\n"],
        &[&[0x19, 2, b';', 4], b"NULL\x05NULL;1\n\"NULL\";2\n"],
        &[&[0x41, 3, 0b101_011, 5], b",,\n\"\",\"\",\"\"\n"],
        &[&[8, 3, b'|', 5], b"a|b|c\n\\||\\\n|\\N\n"],
    ];
    seeds.iter().map(|parts| parts.concat()).collect()
}
