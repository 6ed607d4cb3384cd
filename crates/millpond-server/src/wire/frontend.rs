//! Decodes the messages that clients send after start-up. The results borrow from the input buffer.
//!
//! pgwire's decoders copy every string and parameter, silently replace invalid UTF-8, and panic on
//! bodies that are shorter than their counts claim. The hot path can't accept that, so this module
//! has its own decoder. A property test compares it with pgwire's encoder.
//!
//! Every read is checked against the body's length. A body that is too short, too long, or holds an
//! impossible count is a [`WireError::Malformed`]: the frame's end is known, so the session
//! continues. A frame of unknown type or impossible length is a [`FrameError`]: the start of the
//! next message is unknown, so the connection ends.

use thiserror::Error;

/// The largest message after start-up, with its length word. As in PostgreSQL: 1 GiB less one byte.
pub const LARGE_MESSAGE_BYTES: usize = 0x3fff_ffff;
/// The largest message of the kinds that carry only names.
pub const SMALL_MESSAGE_BYTES: usize = 10_000;

/// A complete message: its type byte and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The type byte.
    pub kind: u8,
    /// Offset just past the message, counted from the frame's type byte. The body starts at 5.
    pub end: usize,
}

/// Why the message stream can't be followed any further.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// An unknown message type.
    #[error("invalid frontend message type {0}")]
    UnknownKind(u8),
    /// A length below 4 or above the limit of its kind.
    #[error("invalid message length")]
    Length,
}

/// Why a message can't be decoded. The session can still decode the messages after it.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// The body is too short, too long, or has an impossible count.
    #[error("{0}")]
    Malformed(&'static str),
    /// Text that isn't UTF-8, with up to four of the invalid bytes for the error message.
    #[error("invalid byte sequence for encoding \"UTF8\": {}", Hex(.0))]
    Encoding(BadBytes),
}

/// The first bytes of an invalid sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadBytes {
    bytes: [u8; 4],
    count: u8,
}

impl BadBytes {
    /// The bytes at which the standard library's check failed.
    pub fn of(bytes: &[u8], error: std::str::Utf8Error) -> Self {
        let rest = bytes.get(error.valid_up_to()..).unwrap_or_default();
        let count = error.error_len().unwrap_or(rest.len()).clamp(1, 4).min(rest.len());
        let mut kept = [0; 4];
        for (to, from) in kept.iter_mut().zip(rest.iter().take(count)) {
            *to = *from;
        }
        Self { bytes: kept, count: count as u8 }
    }
}

struct Hex<'a>(&'a BadBytes);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, byte) in self.0.bytes.iter().take(usize::from(self.0.count)).enumerate() {
            write!(f, "{}0x{byte:02x}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// The size limit of a kind of message, or `None` if the kind is unknown.
fn limit(kind: u8) -> Option<usize> {
    Some(match kind {
        b'Q' | b'P' | b'B' | b'F' | b'd' => LARGE_MESSAGE_BYTES,
        b'p' | b'X' | b'C' | b'D' | b'E' | b'H' | b'S' | b'c' | b'f' => SMALL_MESSAGE_BYTES,
        _ => return None,
    })
}

/// Finds the message at the start of `input`. `Ok(None)` means that more bytes are needed.
pub fn frame(input: &[u8]) -> Result<Option<Frame>, FrameError> {
    let Some(&kind) = input.first() else { return Ok(None) };
    let limit = limit(kind).ok_or(FrameError::UnknownKind(kind))?;
    let Some(length) = input.get(1..5).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes)
    else {
        return Ok(None);
    };
    let length = length as usize;
    if !(4..=limit).contains(&length) {
        return Err(FrameError::Length);
    }
    let end = length + 1;
    Ok((input.len() >= end).then_some(Frame { kind, end }))
}

/// What a Describe or a Close names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// A decoded message. Its texts and values are still in the input buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Run a simple query.
    Query(&'a str),
    /// Prepare a statement.
    Parse {
        /// Its name, empty for the unnamed one.
        name: &'a str,
        /// Its text.
        sql: &'a str,
        /// The types of the parameters as the client declares them; 0 leaves a type to the server.
        types: Oids<'a>,
    },
    /// Bind a statement's parameters to make a portal.
    Bind(Bind<'a>),
    /// Describe the columns and parameters of a statement or portal.
    Describe(Target, &'a str),
    /// Drop a statement or portal.
    Close(Target, &'a str),
    /// Run a portal.
    Execute {
        /// Its name, empty for the unnamed one.
        portal: &'a str,
        /// Row limit; zero or less means no limit.
        max_rows: i32,
    },
    /// The end of a batch.
    Sync,
    /// Send the replies so far.
    Flush,
    /// Data of COPY FROM STDIN.
    CopyData(&'a [u8]),
    /// The end of the COPY data.
    CopyDone,
    /// The client aborts its COPY, and gives the reason.
    CopyFail(&'a str),
    /// A function call, obsolete since PostgreSQL 7.4.
    FunctionCall,
    /// A password, which the server never asks for.
    Password,
    /// The client ends the session.
    Terminate,
}

/// The contents of a Bind message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bind<'a> {
    /// The portal's name, empty for the unnamed one.
    pub portal: &'a str,
    /// The statement's name.
    pub statement: &'a str,
    /// The formats of the parameters.
    pub formats: Formats<'a>,
    /// The parameters.
    pub params: Params<'a>,
    /// The formats that the client wants for the result.
    pub result_formats: Formats<'a>,
}

/// Type ids, as the client sent them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oids<'a>(&'a [u8]);

impl Oids<'_> {
    /// The ids in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.0.as_chunks::<4>().0.iter().map(|b| u32::from_be_bytes(*b))
    }
}

/// Format codes: none means text for all, one applies to all, otherwise one for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats<'a>(&'a [u8]);

impl Formats<'_> {
    /// The number of codes.
    pub fn count(&self) -> usize {
        self.0.len() / 2
    }

    /// The codes in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i16> + '_ {
        self.0.as_chunks::<2>().0.iter().map(|b| i16::from_be_bytes(*b))
    }

    /// The code that applies to column `i`.
    pub fn of(&self, i: usize) -> i16 {
        match self.count() {
            0 => 0,
            1 => self.iter().next().unwrap_or(0),
            _ => self.iter().nth(i).unwrap_or(0),
        }
    }
}

/// Parameters as the client sent them. Their lengths have been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> Params<'a> {
    /// The number of parameters.
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// The values in order, `None` for NULL.
    pub fn iter(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let mut rest = Body(self.bytes);
        (0..self.count).map(move |_| rest.value().unwrap_or(None))
    }
}

/// The undecoded rest of a message's body.
struct Body<'a>(&'a [u8]);

const SHORT: WireError = WireError::Malformed("insufficient data left in message");

impl<'a> Body<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, WireError> {
        Ok(self.take(1)?[0])
    }

    fn u16(&mut self) -> Result<u16, WireError> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn i32(&mut self) -> Result<i32, WireError> {
        let bytes = self.take(4)?.try_into().map_err(|_| SHORT)?;
        Ok(i32::from_be_bytes(bytes))
    }

    fn value(&mut self) -> Result<Option<&'a [u8]>, WireError> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| SHORT)?;
                self.take(length).map(Some)
            }
        }
    }

    fn text(&mut self) -> Result<&'a str, WireError> {
        // Most names are empty.
        if let [0, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok("");
        }
        let end = memchr_nul(self.0).ok_or(WireError::Malformed("invalid string in message"))?;
        let bytes = self.take(end)?;
        self.take(1)?;
        std::str::from_utf8(bytes).map_err(|e| WireError::Encoding(BadBytes::of(bytes, e)))
    }

    fn oids(&mut self) -> Result<Oids<'a>, WireError> {
        let count = usize::from(self.u16()?);
        Ok(Oids(self.take(count * 4)?))
    }

    fn formats(&mut self) -> Result<Formats<'a>, WireError> {
        let count = usize::from(self.u16()?);
        Ok(Formats(self.take(count * 2)?))
    }

    fn params(&mut self) -> Result<Params<'a>, WireError> {
        let count = self.u16()?;
        let whole = self.0;
        for _ in 0..count {
            self.value()?;
        }
        Ok(Params { count, bytes: &whole[..whole.len() - self.0.len()] })
    }

    fn target(&mut self) -> Result<Target, WireError> {
        match self.byte()? {
            b'S' => Ok(Target::Statement),
            b'P' => Ok(Target::Portal),
            _ => Err(WireError::Malformed("invalid message subtype")),
        }
    }
}

/// The position of the first zero byte. `core`'s search in `u8` slices is vectorised.
fn memchr_nul(bytes: &[u8]) -> Option<usize> {
    std::ffi::CStr::from_bytes_until_nul(bytes).ok().map(|s| s.count_bytes())
}

/// Decodes a message's body.
#[inline]
pub fn decode(kind: u8, body: &[u8]) -> Result<Message<'_>, WireError> {
    let mut rest = Body(body);
    let message = match kind {
        b'Q' => Message::Query(rest.text()?),
        b'P' => Message::Parse { name: rest.text()?, sql: rest.text()?, types: rest.oids()? },
        b'B' => Message::Bind(Bind {
            portal: rest.text()?,
            statement: rest.text()?,
            formats: rest.formats()?,
            params: rest.params()?,
            result_formats: rest.formats()?,
        }),
        b'D' => Message::Describe(rest.target()?, rest.text()?),
        b'C' => Message::Close(rest.target()?, rest.text()?),
        b'E' => Message::Execute { portal: rest.text()?, max_rows: rest.i32()? },
        b'S' => Message::Sync,
        b'H' => Message::Flush,
        b'd' => return Ok(Message::CopyData(body)),
        b'c' => Message::CopyDone,
        b'f' => Message::CopyFail(rest.text()?),
        b'F' => return Ok(Message::FunctionCall),
        b'p' => return Ok(Message::Password),
        b'X' => return Ok(Message::Terminate),
        _ => return Err(WireError::Malformed("unknown message")),
    };
    match rest.0 {
        [] => Ok(message),
        _ => Err(WireError::Malformed("invalid message format")),
    }
}

#[cfg(test)]
mod tests;
