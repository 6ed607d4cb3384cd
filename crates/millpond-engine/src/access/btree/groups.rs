//! How many entries of a tree are equal in the beginnings of their keys: an estimate for planners.
//!
//! It looks at the first entries of a scan, since a LIMIT of groups reads just those. Without a
//! snapshot the answer may be wrong, as that of [`share_between`]: it must not be used to find
//! rows.

use millpond_buffer::RelHandle;

use super::{Cursor, Direction, Env, share_between};
use crate::EngineResult;
use crate::types::key::AFTER;

/// At most this many entries are read, all in the first leaf.
const MOST_ENTRIES: u32 = 128;

/// About how many of a tree's `entries` the first `wanted` groups of a scan have. `prefix` is the
/// length of what the keys of a group have in common. `None` if there is no entry.
pub fn rows_of_groups<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    (wanted, direction): (f64, Direction),
    prefix: &dyn Fn(&[u8]) -> Option<usize>,
    entries: f64,
) -> EngineResult<Option<f64>> {
    let mut cursor = Cursor::new(&[], None, direction);
    // Of the groups that have ended, and of the last one.
    let (mut groups, mut rows) = (0.0, 0.0);
    let (mut group, mut own_rows) = (Vec::new(), 0.0);
    for _ in 0..MOST_ENTRIES {
        if cursor.next(env, rel)?.is_none() || own_rows > 0.0 && cursor.leaves() > 1 {
            break;
        }
        let key = cursor.key();
        let own = prefix(key).and_then(|length| key.get(..length)).unwrap_or(key);
        if own_rows > 0.0 && group != own {
            (groups, rows, own_rows) = (groups + 1.0, rows + own_rows, 0.0);
            if groups >= wanted {
                return Ok(Some(rows));
            }
        }
        if own_rows == 0.0 {
            group.clear();
            group.extend_from_slice(own);
        }
        own_rows += 1.0;
    }
    if own_rows == 0.0 {
        return Ok(None);
    }
    // The last group may go on for long. Those after it are taken to be like all of these.
    let mut end = group.clone();
    end.push(AFTER);
    let within = share_between(env, rel, &group, &end, entries)? * entries;
    // What is within a part of a leaf is not known.
    let is_long = within > f64::from(2 * MOST_ENTRIES);
    let rows = rows + if is_long { within } else { own_rows };
    Ok(Some(rows / (groups + 1.0) * wanted))
}
