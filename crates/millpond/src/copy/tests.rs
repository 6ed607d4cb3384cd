use proptest::prelude::*;

use super::*;
use crate::{DataType, Datum};
use millpond_query::error::{Result, SqlState};
use millpond_types::format::FormatOptions;

type Rows = Vec<Vec<Option<String>>>;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("c{i}")).collect()
}

fn read_pieces(format: RowFormat, data: &[u8], piece: usize) -> Result<Rows> {
    let mut rows = Rows::new();
    let mut each = |row: &CopyRow<'_>| {
        rows.push(row.iter().map(|field| field.map(str::to_owned)).collect());
        Ok(())
    };
    let mut reader = RowReader::new(format);
    for piece in data.chunks(piece) {
        reader.feed(piece, &mut each)?;
    }
    reader.finish(&mut each)?;
    Ok(rows)
}

fn read(format: &RowFormat, data: &str) -> Rows {
    let whole = read_pieces(format.clone(), data.as_bytes(), usize::MAX).unwrap();
    for piece in 1..8 {
        assert_eq!(read_pieces(format.clone(), data.as_bytes(), piece).unwrap(), whole);
    }
    whole
}

#[track_caller]
fn fails(format: &RowFormat, data: &[u8], message: &str) {
    for piece in [1, 2, 3, usize::MAX] {
        let error = read_pieces(format.clone(), data, piece).unwrap_err();
        assert_eq!(error.message, message);
    }
}

/// The line number of the error, and the line if it is known.
fn place(format: &RowFormat, data: &[u8]) -> (u64, Option<String>) {
    let mut reader = RowReader::new(format.clone());
    let fed = reader.feed(data, &mut |_| Ok(()));
    fed.and_then(|()| reader.finish(&mut |_| Ok(()))).unwrap_err();
    (reader.line(), reader.failed_line().map(str::to_owned))
}

fn some(fields: &[&str]) -> Vec<Option<String>> {
    fields.iter().map(|field| Some((*field).to_owned())).collect()
}

#[test]
fn text_rows() {
    let format = RowFormat::text(names(3));
    let rows = read(&format, "1\tabc\t\n2\t\\N\tx\\ty\\\\\\n\n3\t\\101\\x42C\t\\q\\\nz\n");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0], some(&["1", "abc", ""]));
    assert_eq!(rows[1], [Some("2".into()), None, Some("x\ty\\\n".into())]);
    assert_eq!(rows[2], some(&["3", "ABC", "q\nz"]));
    assert_eq!(read(&format, "1\t2\t3"), [some(&["1", "2", "3"])]);
    assert_eq!(
        read(&format, "1\t2\t3\r\n4\t5\t6\r\n"),
        [some(&["1", "2", "3"]), some(&["4", "5", "6"])]
    );
    assert_eq!(read(&format, "1\t2\t3\n\\.\njunk\n"), [some(&["1", "2", "3"])]);
    assert_eq!(read(&RowFormat::text(names(1)), "\\\\N\n\n"), [some(&["\\N"]), some(&[""])]);
}

#[test]
fn csv_rows() {
    let format = RowFormat::csv(names(3));
    let rows = read(&format, "1,abc,\n2,\"a,\"\"b\"\"\nc\",\"\"\n");
    assert_eq!(rows[0], [Some("1".into()), Some("abc".into()), None]);
    assert_eq!(rows[1], some(&["2", "a,\"b\"\nc", ""]));
    let escaped = RowFormat { escape: b'\\', ..RowFormat::csv(names(1)) };
    assert_eq!(read(&escaped, "\"a\\\"b\\\\\"\n"), [some(&["a\"b\\"])]);
    let header = RowFormat { header: true, header_match: true, ..RowFormat::csv(names(2)) };
    assert_eq!(read(&header, "c0,c1\n1,2\n"), [some(&["1", "2"])]);
    fails(
        &header,
        b"c0,x\n1,2\n",
        "column name mismatch in header line field 2: got \"x\", expected \"c1\"",
    );
    let forced = RowFormat {
        force_null: vec![true],
        force_not_null: vec![false, true],
        ..RowFormat::csv(names(2))
    };
    assert_eq!(read(&forced, "\"\",\n"), [vec![None, Some(String::new())]]);
}

#[test]
fn bad_rows() {
    let format = RowFormat::text(names(2));
    assert_eq!(read(&format, "1\n"), [some(&["1"])]);
    fails(&format, b"1\t2\t3\n", "extra data after last expected column");
    fails(&format, b"1\t\xff\n", "invalid byte sequence for encoding \"UTF8\": 0xff");
    fails(&format, b"1\t\\xff\n", "invalid byte sequence for encoding \"UTF8\": 0xff");
    fails(&RowFormat::csv(names(1)), b"\"abc\n", "unterminated CSV quoted field");
    let mut reader = RowReader::new(format);
    let error = reader.feed(b"1\t2\n3\t4\t5\n", &mut |_| Ok(())).unwrap_err();
    assert_eq!((error.sqlstate, reader.line()), (SqlState::BAD_COPY_FILE_FORMAT, 2));
}

#[test]
fn first_line_decides_how_lines_end() {
    let text = RowFormat::text(names(1));
    let csv = RowFormat::csv(names(1));
    let rows = [some(&["a"]), some(&["b"])];
    for format in [&text, &csv] {
        for data in ["a\nb\n", "a\rb\r", "a\r\nb\r\n", "a\nb", "a\rb", "a\r\nb"] {
            assert_eq!(read(format, data), rows, "{data:?}");
        }
        assert_eq!(read(format, "a\r"), rows[..1]);
        assert_eq!(
            read(format, "\r\r"),
            [some(&[""]), some(&[""])].map(|row| null_of(format, row))
        );
    }
    for data in ["a\rb\n", "a\r\nb\n", "a\r\n\n"] {
        fails(&text, data.as_bytes(), "literal newline found in data");
        fails(&csv, data.as_bytes(), "unquoted newline found in data");
    }
    for data in ["a\nb\r", "a\nb\r\n", "a\r\nb\r", "a\r\nb\rc\r\n", "a\r\n\r\r"] {
        fails(&text, data.as_bytes(), "literal carriage return found in data");
        fails(&csv, data.as_bytes(), "unquoted carriage return found in data");
    }
    assert_eq!(read(&text, "a\\\nb\r\\\r\r"), [some(&["a\nb"]), some(&["\r"])]);
    assert_eq!(read(&csv, "\"a\nb\"\r\"\r\"\r"), [some(&["a\nb"]), some(&["\r"])]);
    let header = RowFormat { header: true, ..text };
    assert_eq!(read(&header, "h\ra\rb\r"), rows);
}

fn null_of(format: &RowFormat, row: Vec<Option<String>>) -> Vec<Option<String>> {
    row.into_iter().map(|field| field.filter(|field| *field != format.null)).collect()
}

#[test]
fn other_line_ends_have_hints() {
    let hint = |format: RowFormat, data: &[u8]| {
        read_pieces(format, data, usize::MAX).unwrap_err().hint.clone().unwrap_or_default()
    };
    let (text, csv) = (|| RowFormat::text(names(1)), || RowFormat::csv(names(1)));
    assert_eq!(hint(text(), b"a\rb\n"), "Use \"\\n\" to represent newline.");
    assert_eq!(hint(text(), b"a\nb\r"), "Use \"\\r\" to represent carriage return.");
    assert_eq!(hint(csv(), b"a\rb\n"), "Use quoted CSV field to represent newline.");
    assert_eq!(hint(csv(), b"a\nb\r"), "Use quoted CSV field to represent carriage return.");
}

#[test]
fn end_marker_in_text() {
    let format = RowFormat::text(names(2));
    let row = [some(&["a", "b"])];
    for data in ["a\tb\n\\.\n", "a\tb\\.\nx", "a\tb\r\n\\.\r\nx", "a\tb\r\\.\rx", "a\tb\\.\rx"] {
        assert_eq!(read(&format, data), row, "{data:?}");
    }
    assert_eq!(read(&format, "\\.\r\nx"), Rows::new());
    assert_eq!(read(&format, "a\tb\\\\.\n"), [some(&["a", "b\\."])]);
    for data in ["a\tb\n\\.", "a\\.\tb\n", "\\.x\n", "a\tb\r\n\\.x\r\n", "a\tb\r\n\\.", "\\."] {
        fails(&format, data.as_bytes(), "end-of-copy marker corrupt");
    }
    for data in ["a\tb\r\n\\.\n", "a\tb\n\\.\r\n", "a\tb\r\\.\n", "a\tb\r\n\\.\r\r"] {
        fails(&format, data.as_bytes(), "end-of-copy marker does not match previous newline style");
    }
}

#[test]
fn end_marker_in_csv() {
    let format = RowFormat::csv(names(1));
    let value = |text: &str| vec![some(&["a"]), some(&[text])];
    assert_eq!(read(&format, "a\n\\.\nb\n"), [some(&["a"])]);
    assert_eq!(read(&format, "a\n\\."), value("\\."));
    assert_eq!(read(&format, "a\n\\.b\n"), value("\\.b"));
    assert_eq!(read(&format, "a\n \\.\n"), value(" \\."));
    assert_eq!(read(&format, "a\n\"\n\\.\n\"\n"), value("\n\\.\n"));
    assert_eq!(read(&format, "a\r\n\\.\r\nb"), [some(&["a"])]);
    fails(&format, b"a\r\n\\.\n", "unquoted newline found in data");
    let message = "end-of-copy marker does not match previous newline style";
    fails(&format, b"a\n\\.\r\n", message);
}

#[test]
fn backslash_at_the_end_of_data_is_nothing() {
    let format = RowFormat::text(names(1));
    assert_eq!(read(&format, "a\\"), [some(&["a"])]);
    assert_eq!(read(&format, "a\\\\"), [some(&["a\\"])]);
    assert_eq!(read(&format, "\\N\\"), [vec![None]]);
    assert_eq!(read(&RowFormat::csv(names(1)), "\\"), [some(&["\\"])]);
}

#[test]
fn header_line() {
    let skipped = RowFormat { header: true, ..RowFormat::csv(names(1)) };
    // The quote is never closed.
    assert_eq!(read(&skipped, "\"open\na\n"), Rows::new());
    assert_eq!(read(&skipped, ""), Rows::new());
    let text = RowFormat { header: true, ..RowFormat::text(names(1)) };
    assert_eq!(read(&text, "\\xff\na\n"), [some(&["a"])]);
    let matched = RowFormat { header_match: true, ..skipped };
    fails(&matched, b"\"open\na\n", "unterminated CSV quoted field");
    let message =
        "column name mismatch in header line field 1: got null value (\"\"), expected \"c0\"";
    for data in ["", "\n", "\\.\n"] {
        fails(&matched, data.as_bytes(), message);
    }
    let message = "column name mismatch in header line field 1: got \"\", expected \"c0\"";
    let forced = RowFormat { force_null: vec![true], ..matched };
    fails(&forced, b"\"\"\n", message);
}

#[test]
fn bytes_that_are_not_text() {
    let format = RowFormat { header: true, ..RowFormat::text(names(1)) };
    let message = |bytes: &str| format!("invalid byte sequence for encoding \"UTF8\": {bytes}");
    for data in ["\0", "h\0\n", "h\na\0\tb\n", "h\na\0\r", "h\n\\.\0\n", "h\n\\0\n", "h\n\\x00\n"] {
        fails(&format, data.as_bytes(), &message("0x00"));
    }
    fails(&format, b"h\n\xc3\n", &message("0xc3 0x0a"));
    fails(&format, b"h\n\xe2(\xa1\n", &message("0xe2 0x28 0xa1"));
    fails(&format, b"h\na\xc3", &message("0xc3"));
    // The bytes shown may belong to the next line, and what is wrong before them comes first.
    fails(&format, b"h\n\xf4\nab\n", &message("0xf4 0x0a 0x61 0x62"));
    fails(&format, b"h\n\\.n\xf8ot", "end-of-copy marker corrupt");
    let two = RowFormat { null: "\\xff".to_owned(), ..RowFormat::text(names(2)) };
    fails(&two, b"\\xc3\t\\xa9\n", &message("0xc3"));
    assert_eq!(read(&two, "\\xff\t\\x41\n"), [vec![None, Some("A".to_owned())]]);
    fails(&format, b"h\na\nb\r\0\n", "literal carriage return found in data");
    assert_eq!(read(&format, "h\na\n\\.\n\0"), [some(&["a"])]);
    assert_eq!(read(&format, "h\n\u{e4}\u{20ac}\u{1f600}\n"), [some(&["\u{e4}\u{20ac}\u{1f600}"])]);
}

#[test]
fn errors_know_their_line() {
    let format = RowFormat::text(names(1));
    let known = |line: u64, text: &str| (line, Some(text.to_owned()));
    assert_eq!(place(&format, b"a\nb\tc\nd\n"), known(2, "b\tc"));
    assert_eq!(place(&format, b"a\nb\tc"), known(2, "b\tc"));
    assert_eq!(place(&format, b"a\nb\r\n"), (2, None));
    assert_eq!(place(&format, b"a\n\xff\n"), (2, None));
    let long = format!("{}\tx\n", "\u{e4}".repeat(100));
    assert_eq!(place(&format, long.as_bytes()), known(1, &format!("{}...", "\u{e4}".repeat(50))));
    let csv = RowFormat { header: true, ..RowFormat::csv(names(1)) };
    assert_eq!(place(&csv, b"h\n\"a\nb\"\nc,d\n"), known(4, "c,d"));
    assert_eq!(place(&csv, b"h\n\"a\nb"), known(3, "\"a\nb"));
    assert_eq!(place(&csv, b"h\ra\rb\xff"), (3, None));
    let mut reader = RowReader::new(csv);
    assert_eq!((reader.line(), reader.row_line()), (1, 0));
    reader.feed(b"h\na\n\"b\n", &mut |_| Ok(())).unwrap();
    assert_eq!((reader.line(), reader.row_line()), (4, 2));
}

fn field() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        Just(None),
        Just(Some("\\N".to_owned())),
        Just(Some("\\.".to_owned())),
        "[a-c\t\n\r\\\\\",é]{0,6}".prop_map(Some),
    ]
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        rows in proptest::collection::vec(proptest::collection::vec(field(), 3), 1..6),
        csv in any::<bool>(),
        piece in 1usize..40,
    ) {
        let format = if csv { RowFormat::csv(names(3)) } else { RowFormat::text(names(3)) };
        let mut writer = RowWriter::new(format.clone());
        let mut out = Vec::new();
        for row in &rows {
            let datums = Vec::from_iter(row.iter().map(|f| f.as_deref().map_or(Datum::Null, Datum::Text)));
            writer.row(&[DataType::Text; 3], &datums, &FormatOptions::default(), &mut out);
        }
        prop_assert_eq!(read_pieces(format, &out, piece).unwrap(), rows);
    }

    #[test]
    fn any_bytes_are_safe(data in proptest::collection::vec(any::<u8>(), 0..200), csv in any::<bool>(), piece in 1usize..40) {
        let format = if csv { RowFormat::csv(names(2)) } else { RowFormat::text(names(2)) };
        let _ = read_pieces(format, &data, piece);
    }
}
