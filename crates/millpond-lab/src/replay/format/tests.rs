//! Reads every format, compressed and not. No contents of a file make reading panic.

use super::*;
use crate::replay::trace::AccessKind;
use proptest::prelude::*;
use std::io::Write;

const ALL: [Format; 6] =
    [Format::Millpond, Format::Postgres, Format::Lis, Format::Text, Format::U32le, Format::U32be];

fn decoded(format: Format, mut bytes: &[u8]) -> Result<Trace, DecodeError> {
    let mut builder = TraceBuilder::default();
    format.decode(&mut bytes, &mut builder)?;
    Ok(builder.finish("test"))
}

fn pages(format: Format, bytes: &[u8]) -> Vec<u32> {
    decoded(format, bytes).expect("a trace").pages
}

fn refusal(format: Format, bytes: &[u8]) -> String {
    decoded(format, bytes).expect_err("a refusal").to_string()
}

#[test]
fn numbers() {
    assert_eq!(pages(Format::U32le, &[1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0]), [0, 1, 0]);
    assert_eq!(pages(Format::U32be, &[0, 0, 0, 9]), [0]);
    assert_eq!(
        refusal(Format::U32le, &[0; 6]),
        "2 byte(s) are left over: a number has 4, at byte 4"
    );
}

#[test]
fn text() {
    assert_eq!(pages(Format::Text, b"# mine\n7\n\n8\r\n7"), [0, 1, 0]);
    assert_eq!(
        refusal(Format::Text, b"7\n8\n-1\n"),
        "\"-1\" is no block number, in line 3 (at byte 4)"
    );
    assert_eq!(
        refusal(Format::Text, &[b'1'; 9000]),
        "not text: the line is too long, in line 1 (at byte 0)"
    );
    assert_eq!(refusal(Format::Text, b"1\n\xff\n"), "not text, in line 2 (at byte 2)");
}

#[test]
fn lis_requests_expand_to_blocks() {
    assert_eq!(pages(Format::Lis, b"10 3 0 1\n11 1 0 2\n10 0 0 3\n"), [0, 1, 2, 1]);
    assert_eq!(
        refusal(Format::Lis, b"10 3 0 1\n11\n"),
        "no number of blocks, in line 2 (at byte 9)"
    );
    assert_eq!(
        refusal(Format::Lis, b"0 99999999999 0 1"),
        "a request for 99999999999 blocks is too long, in line 1 (at byte 0)"
    );
    assert!(refusal(Format::Lis, b"18446744073709551615 2 0 0").contains("is too large"));
}

#[test]
fn postgres_recordings_are_read() {
    let record =
        |relation, fork, block: u32| [[1, relation, fork, 0], block.to_le_bytes()].concat();
    let bytes = [record(1, 0, 7), record(2, 0, 7), record(1, 1, 7), record(1, 0, 7)].concat();
    assert_eq!(pages(Format::Postgres, &bytes), [0, 1, 2, 0]);
    assert_eq!(
        refusal(Format::Postgres, &bytes[..13]),
        "5 byte(s) are left over: a record has 8, at byte 8"
    );
    assert_eq!(
        refusal(Format::Postgres, b"12345678"),
        "not a PostgreSQL recording: fork 51, extend 52, at byte 0"
    );
}

#[test]
fn millpond_traces_are_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("pages.trace");
    record(&path);
    let trace = read(&path, None, &|_| ()).expect("a trace");
    assert_eq!((trace.pages.as_slice(), trace.name.as_str()), ([0, 0, 1].as_slice(), "pages"));
    assert_eq!(trace.recorded_hits, Some(1));
    assert!(trace.notes.is_empty());

    // The file ends within the chunk.
    let bytes = std::fs::read(&path).expect("bytes");
    std::fs::write(&path, &bytes[..bytes.len() - 1]).expect("written");
    let trace = read(&path, None, &|_| ()).expect("a trace");
    assert_eq!((trace.len(), trace.notes.len()), (0, 1));

    let mut damaged = bytes.clone();
    damaged[50] ^= 1;
    std::fs::write(&path, &damaged).expect("written");
    let error = read(&path, None, &|_| ()).expect_err("an error").to_string();
    assert!(
        error.ends_with("pages.trace: its checksum is wrong, in the chunk at byte 16, at byte 16")
            || error.ends_with("pages.trace: its checksum is wrong, at byte 16"),
        "{error}"
    );
}

/// A pool's recording: a new page, the same page, another new page.
fn record(path: &Path) {
    use millpond_buffer::*;
    use std::sync::Arc;
    let mut config = PoolConfig::new(16, 2);
    config.trace = Some(trace::TraceFile::create(path).expect("a file"));
    let pool =
        BufferPool::new(config, Arc::new(MemoryStore::new()), Arc::new(NoLog)).expect("a pool");
    let rel = RelationId::constant(1).main();
    pool.create(rel).expect("created");
    let rel = pool.relation(rel).expect("a handle");
    let session = pool.session().expect("a session");
    drop(session.extend(&rel, Wait::Allowed).expect("a page"));
    drop(session.pin(&rel, BlockNumber(0), Wait::Allowed).expect("a page"));
    drop(session.extend(&rel, Wait::Allowed).expect("a page"));
}

/// Compresses, for `Compression::reader` to undo.
fn compressed(compression: Compression, bytes: &[u8]) -> Vec<u8> {
    match compression {
        Compression::None => bytes.to_vec(),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(bytes).expect("written");
            encoder.finish().expect("finished")
        }
        Compression::Xz => {
            let options = lzma_rust2::XzOptions::with_preset(1);
            let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).expect("an encoder");
            encoder.write_all(bytes).expect("written");
            encoder.finish().expect("finished")
        }
        Compression::Zstd => {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            ruzstd::encoding::compress_to_vec(bytes, level)
        }
    }
}

const COMPRESSIONS: [Compression; 4] =
    [Compression::None, Compression::Gzip, Compression::Xz, Compression::Zstd];

#[test]
fn compressed_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let text: String = (0..20_000).map(|at| format!("{}\n", at * 7919 % 1000)).collect();
    for compression in COMPRESSIONS {
        // Two frames or members, like those of `cat a.gz b.gz`.
        let (first, second) = text.split_at(text.len() / 2);
        let bytes = [first, second].map(|part| compressed(compression, part.as_bytes())).concat();
        let extension = compression.extension().unwrap_or_default();
        let path = dir.path().join(format!("blocks.txt{extension}"));
        std::fs::write(&path, &bytes).expect("written");
        let trace = read(&path, None, &|_| ()).expect("a trace");
        assert_eq!((trace.len(), trace.distinct), (20_000, 1000), "{compression:?}");
        assert_eq!(trace.name, "blocks");

        if compression != Compression::None {
            std::fs::write(&path, &bytes[..bytes.len() - 5]).expect("written");
            let error = read(&path, None, &|_| ()).expect_err("cut off").to_string();
            let what = ": the compressed file ends too early, after ";
            assert!(error.contains("blocks.txt") && error.contains(what), "{error}");
            // For damage before the end, the decoder that meets it reports the error.
            let mut damaged = bytes.clone();
            damaged[bytes.len() / 3..][..100].fill(0xff);
            std::fs::write(&path, &damaged).expect("written");
            let error = read(&path, None, &|_| ()).expect_err("damaged").to_string();
            assert!(!error.contains("too early"), "{error}");
        }
    }
}

#[test]
fn format_is_detected_from_contents_and_name() {
    let detect = |start: &[u8], name| Format::detect(start, name);
    assert_eq!(detect(b"MPONDTRC....", "x.bin"), Some(Format::Millpond));
    assert_eq!(detect(b"", "oltp.lis"), Some(Format::Lis));
    assert_eq!(detect(b"\0\x01", "pg.bin"), Some(Format::Postgres));
    assert_eq!(detect(b"\0\x01", "x.U32BE"), Some(Format::U32be));
    assert_eq!(detect(b"# blocks\n12\n13", "blocks"), Some(Format::Text));
    assert_eq!(detect(b"12 1 0 0\n13", "blocks"), Some(Format::Lis));
    for unknown in [b"\0\x01\x02\x03".as_slice(), b"hello\n", b"1 2\n", b""] {
        assert_eq!(detect(unknown, "blocks.dat"), None);
    }
}

#[test]
fn missing_and_unknown_files_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("none");
    let error = read(&path, None, &|_| ()).expect_err("missing").to_string();
    assert!(error.starts_with("could not read ") && error.contains("none"), "{error}");
    std::fs::write(&path, b"hello").expect("written");
    let error = read(&path, None, &|_| ()).expect_err("unknown").to_string();
    assert!(error.contains("none: can't tell its format"), "{error}");
}

#[test]
fn bulk_accesses_are_marked() {
    let mut builder = TraceBuilder::default();
    builder.push(1, AccessKind::Normal).expect("room");
    assert!(builder.finish("t").kinds.is_empty());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for format in ALL {
            let _ = decoded(format, &bytes);
        }
        for compression in COMPRESSIONS {
            let mut reader = compression.reader(Box::new(bytes.as_slice()));
            let _ = io::copy(&mut reader, &mut io::sink());
        }
    }

    /// Digits, blanks and line ends get deeper into the text formats than arbitrary bytes.
    #[test]
    fn no_text_makes_it_panic(text in "[0-9 \n]{0,200}") {
        let small = text.split_ascii_whitespace().all(|word| word.len() < 4);
        for format in [Format::Text, Format::Lis] {
            if small || format == Format::Text {
                let _ = decoded(format, text.as_bytes());
            }
        }
    }

    /// Damage in compressed files gets deeper than random first bytes.
    #[test]
    fn no_damage_makes_decompression_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let text: String = (0..300).map(|at| format!("{}\n", at * 7919 % 1000)).collect();
        for compression in COMPRESSIONS {
            let mut bytes = compressed(compression, text.as_bytes());
            for (at, flip) in &flips {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
            }
            bytes.truncate(cut.index(bytes.len() + 1));
            let mut reader = compression.reader(Box::new(bytes.as_slice())).take(1 << 20);
            let _ = io::copy(&mut reader, &mut io::sink());
        }
    }
}
