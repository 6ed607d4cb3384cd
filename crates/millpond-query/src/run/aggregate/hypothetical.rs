//! Hypothetical-set aggregates: where a row would be among the sorted rows of a group.

use crate::Value;
use crate::analyze::tree::Hypothetical;
use crate::error::Result;
use crate::memory::Collected;

/// The place of a row with that key among rows that are sorted. Looks at each row whether to stop.
pub(super) fn place_of(
    key: &[u8],
    rows: &Collected,
    what: Hypothetical,
    look: impl Fn() -> Result<()>,
) -> Result<Value> {
    // Rows before the row, different ones among them, rows that are not behind it, and all.
    let (mut before, mut different, mut up_to, mut all) = (0i64, 0i64, 0i64, 0i64);
    let mut last = None;
    for own in rows.keys() {
        look()?;
        all += 1;
        if own < key {
            before += 1;
            different += i64::from(last.replace(own) != Some(own));
        }
        up_to += i64::from(own <= key);
    }
    Ok(match what {
        Hypothetical::Rank => Value::Int8(before + 1),
        Hypothetical::DenseRank => Value::Int8(different + 1),
        Hypothetical::PercentRank if all == 0 => Value::Float8(0.0),
        Hypothetical::PercentRank => Value::Float8(before as f64 / all as f64),
        Hypothetical::CumeDist => Value::Float8((up_to + 1) as f64 / (all + 1) as f64),
    })
}
