//! How many entries of a tree are equal in the beginnings of their keys: an estimate for planners.
//!
//! It looks at the first entries of a scan, since a LIMIT of groups reads just those. Without a
//! snapshot the answer may be wrong, as that of [`share_between`]: it must not be used to find
//! rows.

use millpond_buffer::RelHandle;

use super::{Cursor, Direction, Env, share_between};
use crate::EngineResult;
use crate::types::key::AFTER;

/// So many entries are looked at, unless the first leaf has fewer.
const MOST_ENTRIES: u32 = 128;

/// About how many of a tree's `entries` each of the groups has that come first in a direction.
/// `prefix` is the length of what the keys of a group have in common. `None` if there is no entry.
pub fn rows_of_group<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    direction: Direction,
    prefix: &dyn Fn(&[u8]) -> Option<usize>,
    entries: f64,
) -> EngineResult<Option<f64>> {
    let mut cursor = Cursor::new(&[], None, direction);
    let (mut seen, mut groups, mut group) = (0, 0, Vec::new());
    while seen < MOST_ENTRIES && cursor.next(env, rel)?.is_some() {
        if seen > 0 && cursor.leaves() > 1 {
            break;
        }
        let key = cursor.key();
        let own = prefix(key).and_then(|length| key.get(..length)).unwrap_or(key);
        if groups == 0 || group != own {
            group.clear();
            group.extend_from_slice(own);
            groups += 1;
        }
        seen += 1;
    }
    Ok(match groups {
        0 => None,
        1 => {
            let mut end = group.clone();
            end.push(AFTER);
            let share = share_between(env, rel, &group, &end)?;
            Some((share * entries).max(f64::from(seen)))
        }
        _ => Some(f64::from(seen) / f64::from(groups)),
    })
}
