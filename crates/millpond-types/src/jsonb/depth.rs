//! How deep values nest.

use super::{Json, MAX_DEPTH};

/// Whether a value nests deeper than a text may. What makes values of others asks, because what
/// reads them goes down level by level.
pub fn is_too_deep(value: Json<'_>) -> bool {
    is_deeper(value, MAX_DEPTH)
}

fn is_deeper(value: Json<'_>, levels: usize) -> bool {
    match (value, levels.checked_sub(1)) {
        (Json::Array(_) | Json::Object(_), None) => true,
        (Json::Array(array), Some(below)) => array.iter().any(|(part, _)| is_deeper(part, below)),
        (Json::Object(object), Some(below)) => {
            object.iter().any(|(_, part, _)| is_deeper(part, below))
        }
        _ => false,
    }
}
