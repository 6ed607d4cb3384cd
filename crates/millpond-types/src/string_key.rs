//! The key of a string: its bytes, and an end that sorts before every byte.

/// Appends the key of a string. A zero byte in it becomes two bytes, because two zeros end the key.
pub(super) fn encode_string(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.contains(&0) {
        for &byte in bytes {
            out.push(byte);
            if byte == 0 {
                out.push(0xff);
            }
        }
    } else {
        out.extend_from_slice(bytes);
    }
    out.extend_from_slice(&[0, 0]);
}
