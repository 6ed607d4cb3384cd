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

fn fails(format: &RowFormat, data: &[u8], message: &str) {
    for piece in [1, 3, usize::MAX] {
        let error = read_pieces(format.clone(), data, piece).unwrap_err();
        assert_eq!(error.message, message);
    }
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
    fails(&format, b"1\n", "missing data for column \"c1\"");
    fails(&format, b"1\t2\t3\n", "extra data after last expected column");
    fails(&format, b"1\t\xff\n", "invalid byte sequence for encoding \"UTF8\": 0xff");
    fails(&format, b"1\t\\xff\n", "invalid byte sequence for encoding \"UTF8\": 0xff");
    fails(&RowFormat::csv(names(1)), b"\"abc\n", "unterminated CSV quoted field");
    let mut reader = RowReader::new(format);
    let error = reader.feed(b"1\t2\n3\n", &mut |_| Ok(())).unwrap_err();
    assert_eq!((error.sqlstate, reader.line()), (SqlState::BAD_COPY_FILE_FORMAT, 2));
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
        // A bare carriage return in the first line of a csv is a line end for neither side, because
        // it is quoted.
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
