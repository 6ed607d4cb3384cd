//! Reads traces in several formats ([`Format`]), plain or compressed.
//!
//! The file's first bytes determine the format; if they can't, the file's name does. `--format`
//! overrides both. Reading any file ends in a trace or in an error that names the file and the
//! place. It takes memory in proportion to the number of accesses.

mod compression;
mod millpond;
mod numbers;
mod postgres;
mod text;

#[cfg(test)]
mod tests;

use super::trace::{TooLong, Trace, TraceBuilder};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

pub use compression::Compression;

/// How a trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Millpond's own, as recorded with --set trace_pages=FILE
    Millpond,
    /// Recordings of PostgreSQL: 8 bytes a record (process, relation, fork, extend; block,
    /// little-endian)
    Postgres,
    /// The ARC papers' .lis: lines of first block, number of blocks, ignored, request number
    Lis,
    /// Text: one block number a line
    Text,
    /// Block numbers of 32 bits, little-endian
    U32le,
    /// Block numbers of 32 bits, big-endian
    U32be,
}

/// Why a trace could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file can't be opened or read.
    #[error("could not read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The contents violate the format.
    #[error("{}: {what}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: DecodeError,
    },
    /// Neither contents nor name tell the format.
    #[error("{}: can't tell its format from its contents or name; choose one with --format", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
    },
}

/// What is wrong with a trace's bytes. Offsets are into the decompressed trace.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// Reading or decompressing failed.
    #[error("{source}, after {offset} bytes")]
    Io {
        /// The number of decompressed bytes before the error.
        offset: u64,
        /// The error.
        source: io::Error,
    },
    /// Bytes that the format does not allow.
    #[error("{what}, at byte {offset}")]
    Malformed {
        /// What is wrong.
        what: String,
        /// The offset in bytes.
        offset: u64,
    },
    /// A line that the format does not allow.
    #[error("{what}, in line {line} (at byte {offset})")]
    Line {
        /// What is wrong.
        what: String,
        /// The line, from 1.
        line: u64,
        /// The offset of the line in bytes.
        offset: u64,
    },
    /// The trace has too many accesses.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

impl DecodeError {
    fn malformed(what: impl Into<String>, offset: u64) -> Self {
        Self::Malformed { what: what.into(), offset }
    }

    /// Clarifies an error at the end of a compressed file: a decompressor's own is about its
    /// internals.
    fn cut_off(self) -> Self {
        match self {
            Self::Io { offset, .. } => {
                let what = "the compressed file ends too early";
                Self::Io { offset, source: io::Error::new(io::ErrorKind::UnexpectedEof, what) }
            }
            other => other,
        }
    }
}

/// Reads a trace from a file. Calls `watch` now and then with the number of bytes read so far.
pub fn read(path: &Path, format: Option<Format>, watch: &dyn Fn(u64)) -> Result<Trace, ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    let (file, ended) = (File::open(path).map_err(io)?, Cell::new(false));
    let watched = Watched { inner: file, read: 0, watch, ended: &ended };
    let mut file = BufReader::with_capacity(1 << 16, watched);
    let compression = Compression::of(file.fill_buf().map_err(io)?);
    let mut input = BufReader::with_capacity(1 << 16, compression.reader(Box::new(file)));
    let bad = |what: DecodeError| {
        let cut_off = compression != Compression::None && ended.get();
        ReadError::Bad { path: path.to_owned(), what: if cut_off { what.cut_off() } else { what } }
    };
    let start = input.fill_buf().map_err(|source| bad(DecodeError::Io { offset: 0, source }))?;
    let name = inner_name(path, compression);
    // An empty file is a valid trace in any format.
    let nothing = start.is_empty().then_some(Format::Text);
    let format = format.or_else(|| Format::detect(start, &name)).or(nothing);
    let format = format.ok_or_else(|| ReadError::Unknown { path: path.to_owned() })?;
    let mut builder = TraceBuilder::default();
    format.decode(&mut input, &mut builder).map_err(bad)?;
    let stem =
        Path::new(&name).file_stem().map_or(name.clone(), |stem| stem.to_string_lossy().into());
    Ok(builder.finish(&stem))
}

/// The file's name without the extension of its compression.
fn inner_name(path: &Path, compression: Compression) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match compression.extension() {
        Some(extension) => name.strip_suffix(extension).unwrap_or(&name).to_owned(),
        None => name,
    }
}

impl Format {
    /// The format of a trace with these first bytes and this name.
    #[must_use]
    pub fn detect(start: &[u8], name: &str) -> Option<Self> {
        if millpond::looks_like(start) {
            return Some(Format::Millpond);
        }
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
        match extension.as_deref() {
            Some("lis") => Some(Format::Lis),
            Some("u32le" | "le32") => Some(Format::U32le),
            Some("u32be" | "be32") => Some(Format::U32be),
            Some("bin") => Some(Format::Postgres),
            _ => text::detect(start),
        }
    }

    /// Reads accesses in this format until the input ends.
    pub fn decode(
        self,
        input: &mut dyn BufRead,
        trace: &mut TraceBuilder,
    ) -> Result<(), DecodeError> {
        match self {
            Format::Millpond => millpond::decode(input, trace),
            Format::Postgres => postgres::decode(input, trace),
            Format::Lis => text::decode_lis(input, trace),
            Format::Text => text::decode_numbers(input, trace),
            Format::U32le => numbers::decode(input, u32::from_le_bytes, trace),
            Format::U32be => numbers::decode(input, u32::from_be_bytes, trace),
        }
    }
}

/// A file that reports how far it has been read, and whether a read met the end of the file.
struct Watched<'a> {
    inner: File,
    read: u64,
    watch: &'a dyn Fn(u64),
    ended: &'a Cell<bool>,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read += count as u64;
        self.ended.set(count == 0 && !buffer.is_empty());
        (self.watch)(self.read);
        Ok(count)
    }
}

/// Fills `record` as far as the input goes. Returns the number of bytes.
fn read_record(
    input: &mut dyn BufRead,
    record: &mut [u8],
    offset: u64,
) -> Result<usize, DecodeError> {
    let mut filled = 0;
    while filled < record.len() {
        match input.read(&mut record[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(DecodeError::Io { offset: offset + filled as u64, source }),
        }
    }
    Ok(filled)
}
