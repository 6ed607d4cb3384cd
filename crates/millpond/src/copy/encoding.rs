//! Which bytes of the data are text.

use millpond_query::error::{SqlError, SqlState};

/// What is wrong with a character can be told when this many of its bytes have come.
pub(super) const LONGEST_CHARACTER: usize = 4;

/// The bytes up to the first that is not UTF-8 or is zero.
pub(super) fn valid_prefix(bytes: &[u8]) -> &str {
    let zero = bytes.contains(&0).then(|| bytes.iter().position(|&byte| byte == 0)).flatten();
    let bytes = &bytes[..zero.unwrap_or(bytes.len())];
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// The error for bytes of which the first ones are no character. It shows as many as the first
/// byte announces.
#[cold]
pub(super) fn invalid_text(bytes: &[u8]) -> SqlError {
    let length = match bytes.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    let shown = Vec::from_iter(bytes.iter().take(length).map(|byte| format!("0x{byte:02x}")));
    let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
    SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
}
