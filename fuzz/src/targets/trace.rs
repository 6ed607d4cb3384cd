//! Page traces.

use std::io::{BufReader, Read, Write};

use millpond_buffer::trace::codec::{CHUNK_HEADER_BYTES, CHUNK_MAGIC, HEADER_BYTES, MAGIC, header};
use millpond_buffer::trace::{TraceError, TraceReader};
use millpond_lab::replay::format::{Compression, Format};
use millpond_lab::replay::{Trace, TraceBuilder};

use crate::bytes::Bytes;

pub const TOKENS: &[&[u8]] = &[
    &MAGIC,
    &CHUNK_MAGIC,
    b"\x1f\x8b\x08",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
    b"1 2 0 3\n",
    b"18446744073709551615",
    b"#\n",
    b"\r\n",
];

/// A trace of chunks. Each has flags, its length, its header from the number of records on, and its
/// records. Flags: bit 0 leaves its checksum wrong, bit 1 its length, bit 2 its first bytes.
pub fn recorded(input: &[u8]) {
    let _ = chunks(input);
    let mut input = Bytes(input);
    let mut trace = header().to_vec();
    while !input.0.is_empty() {
        let (flags, length) = (input.byte(), usize::from(input.byte()));
        let mut chunk = vec![0; 8];
        chunk.extend_from_slice(input.take(CHUNK_HEADER_BYTES - 8 + length));
        chunk.resize(chunk.len().max(CHUNK_HEADER_BYTES), 0);
        if flags & 4 == 0 {
            chunk[..4].copy_from_slice(&CHUNK_MAGIC);
        }
        let claimed = if flags & 2 == 0 { chunk.len() - CHUNK_HEADER_BYTES } else { length * 300 };
        chunk[4..8].copy_from_slice(&(claimed as u32).to_le_bytes());
        if flags & 1 == 0 {
            let summed = [&chunk[..40], &chunk[CHUNK_HEADER_BYTES..]].concat();
            chunk[40..44].copy_from_slice(&crc_fast::crc32_iscsi(&summed).to_le_bytes());
        }
        trace.append(&mut chunk);
    }
    let read = chunks(&trace);
    let mut builder = TraceBuilder::default();
    let replayed = Format::Millpond.decode(&mut trace.as_slice(), &mut builder);
    assert_eq!(replayed.is_ok(), read.is_ok(), "both readers say the same of a trace");
    if let Ok(records) = read {
        is_sensible(&builder.finish("trace"), records);
    }
}

/// The number of records in a trace.
fn chunks(trace: &[u8]) -> Result<usize, TraceError> {
    let mut reader = TraceReader::new(trace)?;
    let mut records = 0;
    while let Some(chunk) = reader.next_chunk()? {
        records += chunk.records.len();
        assert!(records * 2 <= trace.len(), "a record takes two bytes at least");
    }
    Ok(records)
}

fn is_sensible(trace: &Trace, records: usize) {
    assert_eq!(trace.len(), records);
    assert!(
        trace.distinct <= records
            && trace.pages.iter().all(|&page| (page as usize) < trace.distinct)
    );
    assert!(trace.kinds.is_empty() || trace.kinds.len() == records);
    assert_eq!(trace.next_uses().len(), records);
    let _ = trace.clone().without_bulk();
}

pub fn recorded_seeds() -> Vec<Vec<u8>> {
    let mut chunk = Vec::new();
    // The number of records, session, start, end, lost records, padding, checksum.
    let fields: [&[u8]; 7] = [
        &4u32.to_le_bytes(),
        &7u32.to_le_bytes(),
        &100u64.to_le_bytes(),
        &900u64.to_le_bytes(),
        &1u32.to_le_bytes(),
        &[0; 4],
        &[0; 4],
    ];
    fields.iter().for_each(|field| chunk.extend_from_slice(field));
    // Two relations are named, and then each is used again.
    let records = [0xf0, 0x80, 0x01, 0x14, 0xf1, 0x84, 0x02, 0x00, 0x02, 0x02, 0x11, 0x01];
    chunk.extend_from_slice(&records);
    let one = [&[0, records.len() as u8][..], &chunk].concat();
    let whole = [&header()[..], &one].concat();
    vec![one.clone(), [one.clone(), one].concat(), whole, header()[..HEADER_BYTES - 1].to_vec()]
}

const FORMATS: [Format; 6] =
    [Format::Millpond, Format::Postgres, Format::Lis, Format::Text, Format::U32le, Format::U32be];
/// The most bytes read of a decompressed trace.
const MOST_BYTES: u64 = 16 << 10;

/// A trace in a format, as a file that may be compressed. The first byte chooses the format.
pub fn replayed(input: &[u8]) {
    let mut input = Bytes(input);
    let format = input.choose(&FORMATS);
    let _ = Format::detect(input.0, "trace.lis");
    let compression = Compression::of(input.0);
    let file = compression.reader(Box::new(input.0)).take(MOST_BYTES);
    let mut contents = Vec::new();
    if compression != Compression::None {
        // Decompress once separately, to know the contents.
        let _ = compression.reader(Box::new(input.0)).take(MOST_BYTES).read_to_end(&mut contents);
    } else {
        contents.extend_from_slice(input.0);
    }
    if asks_for_much(&contents) {
        return;
    }
    let mut builder = TraceBuilder::default();
    let result = format.decode(&mut BufReader::with_capacity(512, file), &mut builder);
    if let Err(error) = &result {
        assert!(!error.to_string().is_empty());
    }
    let trace = builder.finish("trace");
    is_sensible(&trace, trace.len());
}

/// Whether a trace asks for very many blocks: one line may ask for millions, which is slow.
fn asks_for_much(contents: &[u8]) -> bool {
    let text = String::from_utf8_lossy(contents);
    let counts =
        text.lines().filter_map(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    counts.filter(|count| *count <= 1 << 20).sum::<u64>() > 4096
}

pub fn replayed_seeds() -> Vec<Vec<u8>> {
    let records = recorded_seeds().swap_remove(2);
    let postgres = [1, 2, 0, 0, 5, 0, 0, 0, 1, 2, 3, 1, 6, 0, 0, 0];
    let plain: [(u8, &[u8]); 6] = [
        (0, &records),
        (1, &postgres),
        (2, b"10 3 0 1\n# comment\r\n20 1 0 2\n"),
        (3, b"7\n8\n\n7\n"),
        (4, &[1, 0, 0, 0, 2, 0, 0, 0]),
        (5, &[0, 0, 0, 1, 0, 0, 0, 2]),
    ];
    let mut seeds = Vec::new();
    for (format, contents) in plain {
        seeds.push([&[format][..], contents].concat());
        let mut gzip = flate2::write::GzEncoder::new(vec![format], flate2::Compression::default());
        if gzip.write_all(contents).is_ok() {
            seeds.extend(gzip.finish());
        }
    }
    seeds
}
