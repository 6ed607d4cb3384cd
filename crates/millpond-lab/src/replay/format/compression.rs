//! Compressed traces (gzip, xz, Zstandard), recognized by their first bytes.
//!
//! Decompression streams. An xz file that asks for more than [`XZ_MEMORY_KIB`] is refused, and a
//! wrong checksum of a Zstandard frame is an error.

use std::io::{self, BufRead, Read};

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    None,
    /// gzip.
    Gzip,
    /// xz.
    Xz,
    /// Zstandard.
    Zstd,
}

/// The most memory that an xz file may ask for: a little more than `xz -9` needs.
const XZ_MEMORY_KIB: u32 = 128 << 10;

impl Compression {
    /// The compression of a file that begins with `start`.
    #[must_use]
    pub fn of(start: &[u8]) -> Self {
        let magics: [(&[u8], Self); 3] = [
            (&[0x1f, 0x8b], Self::Gzip),
            (&[0xfd, b'7', b'z', b'X', b'Z', 0], Self::Xz),
            (&[0x28, 0xb5, 0x2f, 0xfd], Self::Zstd),
        ];
        magics
            .into_iter()
            .find(|(magic, _)| start.starts_with(magic))
            .map_or(Self::None, |found| found.1)
    }

    /// The extension of such a file's name.
    #[must_use]
    pub const fn extension(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some(".gz"),
            Self::Xz => Some(".xz"),
            Self::Zstd => Some(".zst"),
        }
    }

    /// A reader of the decompressed contents.
    #[must_use]
    pub fn reader<'a>(self, file: Box<dyn BufRead + 'a>) -> Box<dyn Read + 'a> {
        match self {
            Self::None => Box::new(file),
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            Self::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB)),
            Self::Zstd => Box::new(Zstd { state: ZstdState::Between(file) }),
        }
    }
}

type Decoder<'a> =
    ruzstd::decoding::StreamingDecoder<Box<dyn BufRead + 'a>, ruzstd::decoding::FrameDecoder>;

/// A Zstandard file: a sequence of frames.
struct Zstd<'a> {
    state: ZstdState<'a>,
}

enum ZstdState<'a> {
    Between(Box<dyn BufRead + 'a>),
    Within(Box<Decoder<'a>>),
    Broken,
}

impl Read for Zstd<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match std::mem::replace(&mut self.state, ZstdState::Broken) {
                ZstdState::Between(mut file) => {
                    if file.fill_buf()?.is_empty() {
                        self.state = ZstdState::Between(file);
                        return Ok(0);
                    }
                    let decoder = Decoder::new(file).map_err(invalid)?;
                    self.state = ZstdState::Within(Box::new(decoder));
                }
                ZstdState::Within(mut decoder) => match decoder.read(buffer)? {
                    0 => {
                        check(&decoder.decoder)?;
                        self.state = ZstdState::Between(decoder.into_inner());
                    }
                    count => {
                        self.state = ZstdState::Within(decoder);
                        return Ok(count);
                    }
                },
                ZstdState::Broken => return Err(invalid("the file is broken before here")),
            }
        }
    }
}

/// Compares a frame's checksum, if it has one.
fn check(decoder: &ruzstd::decoding::FrameDecoder) -> io::Result<()> {
    match (decoder.get_checksum_from_data(), decoder.get_calculated_checksum()) {
        (Some(stored), Some(found)) if stored != found => {
            Err(invalid("the checksum of a Zstandard frame is wrong"))
        }
        _ => Ok(()),
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
