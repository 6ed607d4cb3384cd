//! Start-up packets: the requests before the first typed message.
//!
//! This module frames the packets and decodes their parameters, both with full checks. A packet has
//! 10 kB at most. A claimed length allocates no memory.

use super::frontend::{BadBytes, WireError};
use thiserror::Error;

/// The largest packet before start-up is complete.
pub const STARTUP_PACKET_BYTES: usize = 10_000;

const CANCEL: u32 = 80_877_102;
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// A packet before start-up is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// Asks for TLS.
    Ssl,
    /// Asks for GSSAPI encryption.
    Gss,
    /// Asks to cancel the statement of another connection.
    Cancel {
        /// The process id of that session.
        pid: i32,
        /// The secret key that the session's client received.
        secret: Vec<u8>,
    },
    /// Starts a session.
    Startup(Startup),
}

/// The parameters of a client's start-up packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Startup {
    /// The minor protocol version asked for; the major one is 3.
    pub minor: u16,
    /// The user.
    pub user: String,
    /// The database. The default is the user's name.
    pub database: String,
    /// Settings: `application_name`, `options`, ... as sent.
    pub settings: Vec<(String, String)>,
    /// Protocol options (names that begin with `_pq_.`) that the server does not know.
    pub unknown_options: Vec<String>,
}

/// Why a packet can't be decoded.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum StartupError {
    /// No start-up packet has this length.
    #[error("invalid length of startup packet")]
    Length,
    /// Another protocol version, or an invalid one.
    #[error("unsupported frontend protocol {0}.{1}: server supports 3.0 to 3.2")]
    Version(u16, u16),
    /// The list of parameters has no terminator.
    #[error("invalid startup packet layout: expected terminator as last byte")]
    Layout,
    /// Text that isn't UTF-8.
    #[error(transparent)]
    Text(#[from] WireError),
    /// No user.
    #[error("no PostgreSQL user name specified in startup packet")]
    NoUser,
}

/// Decodes the packet at the start of `input`. The number is the packet's length in bytes.
/// `Ok(None)` means that more bytes are needed.
pub fn packet(input: &[u8]) -> Result<Option<(Packet, usize)>, StartupError> {
    let Some(length) = word(input, 0) else { return Ok(None) };
    let length = length as usize;
    if !(8..=STARTUP_PACKET_BYTES).contains(&length) {
        return Err(StartupError::Length);
    }
    let Some(packet) = input.get(..length) else { return Ok(None) };
    let body = &packet[8..];
    let packet = match word(packet, 4) {
        Some(SSL) => Packet::Ssl,
        Some(GSS) => Packet::Gss,
        Some(CANCEL) => cancel(body)?,
        Some(version) => startup((version >> 16) as u16, version as u16, body)?,
        None => return Err(StartupError::Length),
    };
    Ok(Some((packet, length)))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes)
}

fn cancel(body: &[u8]) -> Result<Packet, StartupError> {
    let pid = word(body, 0).ok_or(StartupError::Length)? as i32;
    let secret = body.get(4..).unwrap_or_default();
    if !(4..=256).contains(&secret.len()) {
        return Err(StartupError::Length);
    }
    Ok(Packet::Cancel { pid, secret: secret.to_vec() })
}

fn startup(major: u16, minor: u16, body: &[u8]) -> Result<Packet, StartupError> {
    if major != 3 {
        return Err(StartupError::Version(major, minor));
    }
    let mut start = Startup { minor, ..Startup::default() };
    let mut rest = body;
    loop {
        let (name, after) = text(rest)?;
        rest = after;
        if name.is_empty() {
            break;
        }
        let (value, after) = text(rest)?;
        rest = after;
        match name {
            "user" => start.user = value.to_owned(),
            "database" => start.database = value.to_owned(),
            _ if name.starts_with("_pq_.") => start.unknown_options.push(name.to_owned()),
            _ => start.settings.push((name.to_owned(), value.to_owned())),
        }
    }
    if !rest.is_empty() {
        return Err(StartupError::Layout);
    }
    if start.user.is_empty() {
        return Err(StartupError::NoUser);
    }
    if start.database.is_empty() {
        start.database.clone_from(&start.user);
    }
    Ok(Packet::Startup(start))
}

fn text(bytes: &[u8]) -> Result<(&str, &[u8]), StartupError> {
    let end = bytes.iter().position(|b| *b == 0).ok_or(StartupError::Layout)?;
    let (text, rest) = bytes.split_at(end);
    let text = std::str::from_utf8(text).map_err(|e| WireError::Encoding(BadBytes::of(text, e)))?;
    Ok((text, rest.get(1..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use pgwire::messages::{Message as _, startup as pg};
    use proptest::prelude::*;

    #[test]
    fn a_session_starts() {
        let mut sent = pg::Startup::new();
        for (name, value) in [("user", "ada"), ("application_name", "psql"), ("_pq_.x", "1")] {
            sent.parameters.insert(name.into(), value.into());
        }
        let mut bytes = BytesMut::new();
        sent.encode(&mut bytes).expect("encodes");
        let (got, length) = packet(&bytes).expect("good").expect("complete");
        assert_eq!(length, bytes.len());
        let Packet::Startup(got) = got else { panic!("not a startup") };
        assert_eq!((got.user.as_str(), got.database.as_str(), got.minor), ("ada", "ada", 0));
        assert_eq!(got.settings, [("application_name".to_owned(), "psql".to_owned())]);
        assert_eq!(got.unknown_options, ["_pq_.x"]);
        for cut in 0..bytes.len() {
            assert_eq!(packet(&bytes[..cut]), Ok(None), "cut at {cut}");
        }
    }

    #[test]
    fn malformed_startup_packets_are_refused() {
        assert_eq!(packet(b"\0\0\0\x07"), Err(StartupError::Length));
        assert_eq!(packet(b"\x7f\0\0\0"), Err(StartupError::Length));
        assert_eq!(packet(b"\0\0\x27\x11"), Err(StartupError::Length));
        assert_eq!(packet(b"GET / HTTP/1.1\r\n"), Err(StartupError::Length));
        assert_eq!(packet(b"\0\0\0\x08\0\x02\0\0"), Err(StartupError::Version(2, 0)));
        assert_eq!(packet(b"\0\0\0\x09\0\x03\0\0\0"), Err(StartupError::NoUser));
        assert_eq!(packet(b"\0\0\0\x0a\0\x03\0\0ab"), Err(StartupError::Layout));
        assert_eq!(packet(b"\0\0\0\x0a\x04\xd2\x16\x2e\0\0"), Err(StartupError::Length));
    }

    proptest! {
        #[test]
        fn no_byte_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = packet(&bytes);
            let mut sized = (bytes.len() as u32 + 8).to_be_bytes().to_vec();
            sized.extend_from_slice(&[0, 3, 0, 0]);
            sized.extend_from_slice(&bytes);
            let _ = packet(&sized);
        }
    }
}
