//! Bytes as text and text as bytes: hex, base64, the escape format, and character sets.

use super::string::check_length;
use crate::error::{Result, SqlError, SqlState};
use crate::types::bytea;

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

pub(super) fn encode(bytes: &[u8], form: &str) -> Result<String> {
    check_length(bytes.len().saturating_mul(2))?;
    match form.to_ascii_lowercase().as_str() {
        "hex" => Ok(hex(bytes)),
        "base64" => Ok(to_base64(bytes)),
        "escape" => {
            let text = escape(bytes);
            check_length(text.len())?;
            Ok(text)
        }
        _ => Err(invalid(format!("unrecognized encoding: \"{form}\""))),
    }
}

pub(super) fn decode(text: &str, form: &str) -> Result<Vec<u8>> {
    match form.to_ascii_lowercase().as_str() {
        "hex" => Ok(bytea::parse_hex(text)?),
        "base64" => from_base64(text),
        "escape" => bytea::parse_escape(text.as_bytes()).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                "invalid input syntax for type bytea",
            )
        }),
        _ => Err(invalid(format!("unrecognized encoding: \"{form}\""))),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// Zero bytes and those of the upper half in octal, a backslash doubled.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            0 | 0x80.. => out.push_str(&format!("\\{byte:03o}")),
            _ => out.push(char::from(byte)),
        }
    }
    out
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters in a line.
const LINE: usize = 76;

fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() / 3 * 4 + 4);
    let mut in_line = 0;
    for group in bytes.chunks(3) {
        let byte = |n: usize| u32::from(group.get(n).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place > group.len() {
                out.push('=');
            } else {
                out.push(char::from(BASE64[(bits >> (18 - 6 * place) & 63) as usize]));
            }
        }
        in_line += 4;
        if in_line == LINE {
            out.push('\n');
            in_line = 0;
        }
    }
    out
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut filled) = (0u32, 0);
    // The number of bytes in the last group, once an equals sign has been seen.
    let mut last: Option<usize> = None;
    for c in text.chars() {
        let value = match c {
            ' ' | '\t' | '\n' | '\r' => continue,
            '=' => {
                if last.is_none() {
                    last = Some(match filled {
                        2 => 1,
                        3 => 2,
                        _ => {
                            return Err(invalid("unexpected \"=\" while decoding base64 sequence"));
                        }
                    });
                }
                0
            }
            'A'..='Z' => c as u32 - 'A' as u32,
            'a'..='z' => c as u32 - 'a' as u32 + 26,
            '0'..='9' => c as u32 - '0' as u32 + 52,
            '+' => 62,
            '/' => 63,
            _ => {
                return Err(invalid(format!(
                    "invalid symbol \"{c}\" found while decoding base64 sequence"
                )));
            }
        };
        bits = bits << 6 | value;
        filled += 1;
        if filled == 4 {
            let bytes = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
            out.extend_from_slice(&bytes[..last.unwrap_or(3)]);
            (bits, filled) = (0, 0);
        }
    }
    if filled != 0 {
        return Err(invalid("invalid base64 end sequence")
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

/// A character set that texts are converted from and to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Charset {
    Utf8,
    Latin1,
    Ascii,
}

/// The character set of that name; `role` is what a message calls it.
fn charset(name: &str, role: &str) -> Result<Charset> {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    match plain.as_str() {
        "utf8" | "unicode" => Ok(Charset::Utf8),
        "latin1" | "iso88591" => Ok(Charset::Latin1),
        "sqlascii" => Ok(Charset::Ascii),
        "abc" | "alt" | "win" | "vscii" | "tcvn" | "tcvn5712" | "mskanji" | "shiftjis" => {
            Err(SqlError::unsupported(format!("the encoding {name}")))
        }
        windows if windows.starts_with("windows") => {
            Err(SqlError::unsupported(format!("the encoding {name}")))
        }
        "latin2" | "latin3" | "latin4" | "latin5" | "latin6" | "latin7" | "latin8" | "latin9"
        | "latin10" | "win1250" | "win1251" | "win1252" | "win1253" | "win1254" | "win1255"
        | "win1256" | "win1257" | "win1258" | "win866" | "win874" | "koi8r" | "koi8u" | "koi8"
        | "eucjp" | "euccn" | "euckr" | "euctw" | "eucjis2004" | "sjis" | "shiftjis2004"
        | "big5" | "gbk" | "gb18030" | "uhc" | "johab" | "mulinternal" | "iso88595"
        | "iso88596" | "iso88597" | "iso88598" => {
            Err(SqlError::unsupported(format!("the encoding {name}")))
        }
        _ if role.is_empty() => Err(invalid(format!("invalid encoding name \"{name}\""))),
        _ => Err(invalid(format!("invalid {role} encoding name \"{name}\""))),
    }
}

/// The text that bytes stand for in a character set.
pub(super) fn convert_from(bytes: &[u8], name: &str, role: &str) -> Result<String> {
    match charset(name, role)? {
        Charset::Latin1 => {
            let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
            crate::types::text::check_text(&text)?;
            Ok(text)
        }
        Charset::Utf8 | Charset::Ascii => utf8(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Result<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(crate::types::text::check_text(text)?.to_owned()),
        Err(error) => {
            let rest = &bytes[error.valid_up_to()..];
            // The message shows as many bytes as the first of them announces.
            let announced = match rest.first() {
                Some(0xc2..=0xdf) => 2,
                Some(0xe0..=0xef) => 3,
                Some(0xf0..=0xf7) => 4,
                _ => 1,
            };
            let shown: Vec<String> =
                rest.iter().take(announced).map(|byte| format!("0x{byte:02x}")).collect();
            Err(SqlError::new(
                SqlState::CHARACTER_NOT_IN_REPERTOIRE,
                format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")),
            ))
        }
    }
}

/// The bytes that stand for a text in a character set.
pub(super) fn convert_to(text: &str, name: &str) -> Result<Vec<u8>> {
    match charset(name, "destination")? {
        Charset::Utf8 | Charset::Ascii => Ok(text.as_bytes().to_vec()),
        Charset::Latin1 => text.chars().map(latin1).collect(),
    }
}

fn latin1(c: char) -> Result<u8> {
    u8::try_from(u32::from(c)).map_err(|_| {
        let bytes: Vec<String> =
            c.to_string().bytes().map(|byte| format!("0x{byte:02x}")).collect();
        SqlError::new(
            SqlState::UNTRANSLATABLE_CHARACTER,
            format!(
                "character with byte sequence {} in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\"",
                bytes.join(" ")
            ),
        )
    })
}
