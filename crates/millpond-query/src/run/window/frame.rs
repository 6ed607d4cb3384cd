//! The frame of a row: the rows that a function sees.

use std::ops::Range;

use super::partition::Partition;
use super::range;
use crate::Value;
use crate::analyze::tree::{Bound, Exclude, FrameMode, Window};
use crate::error::{Result, SqlError, SqlState};
use crate::run::Context;
use crate::types::Zone;

/// What is the same for the frames of all rows.
pub(super) struct Frames {
    mode: FrameMode,
    start: Edge,
    end: Edge,
    exclude: Exclude,
    /// Of the only key of the order, where RANGE has an offset.
    descending: bool,
    /// The session's, whose days and months RANGE counts.
    zone: Zone,
}

/// An end of a frame, with its offset computed.
enum Edge {
    UnboundedPreceding,
    Preceding(Value),
    CurrentRow,
    Following(Value),
    UnboundedFollowing,
}

/// The rows of a frame: up to three ranges, in order, because some may be excluded.
pub(super) type Rows = smallvec::SmallVec<[Range<usize>; 3]>;

impl Frames {
    pub(super) fn new(window: &Window, cx: &Context<'_>) -> Result<Self> {
        let frame = &window.frame;
        let descending = window.order_by.first().is_some_and(|key| key.descending);
        Ok(Self {
            mode: frame.mode,
            start: edge(&frame.start, "starting", frame.mode, cx)?,
            end: edge(&frame.end, "ending", frame.mode, cx)?,
            exclude: frame.exclude,
            descending,
            zone: cx.format_options().zone,
        })
    }

    /// Whether rows are left out of frames.
    pub(super) fn has_exclusion(&self) -> bool {
        self.exclude != Exclude::NoOthers
    }

    /// The rows of a row's frame, before any are excluded.
    pub(super) fn whole(&self, partition: &Partition, row: usize) -> Result<Range<usize>> {
        let start = match (&self.start, self.mode) {
            (Edge::UnboundedPreceding, _) => 0,
            (Edge::UnboundedFollowing, _) => partition.len(),
            (Edge::CurrentRow, FrameMode::Rows) => row,
            (Edge::CurrentRow, _) => partition.peers(row).start,
            (Edge::Preceding(offset), _) => self.shifted(partition, row, offset, true, true)?,
            (Edge::Following(offset), _) => self.shifted(partition, row, offset, false, true)?,
        };
        let end = match (&self.end, self.mode) {
            (Edge::UnboundedPreceding, _) => 0,
            (Edge::UnboundedFollowing, _) => partition.len(),
            (Edge::CurrentRow, FrameMode::Rows) => row + 1,
            (Edge::CurrentRow, _) => partition.peers(row).end,
            (Edge::Preceding(offset), _) => self.shifted(partition, row, offset, true, false)?,
            (Edge::Following(offset), _) => self.shifted(partition, row, offset, false, false)?,
        };
        Ok(start..end.max(start))
    }

    /// The end of a frame that is an offset away. It is the first row of a frame that starts there,
    /// or the first one behind a frame that ends there.
    fn shifted(
        &self,
        partition: &Partition,
        row: usize,
        offset: &Value,
        preceding: bool,
        is_start: bool,
    ) -> Result<usize> {
        if self.mode == FrameMode::Range {
            let (descending, zone) = (self.descending, self.zone);
            let edge = range::Edge { offset, preceding, is_start, descending, zone };
            return edge.find(partition, row);
        }
        let offset = i128::from(offset.as_datum().as_i64().unwrap_or_default());
        let offset = if preceding { -offset } else { offset };
        if self.mode == FrameMode::Groups {
            let own = partition.group_of.get(row).copied().unwrap_or_default();
            let group = partition.group(own as i128 + offset);
            return Ok(if is_start { group.start } else { group.end });
        }
        let place = row as i128 + offset + i128::from(!is_start);
        Ok(place.clamp(0, partition.len() as i128) as usize)
    }

    /// The rows of a row's frame.
    pub(super) fn rows(&self, partition: &Partition, row: usize) -> Result<Rows> {
        let whole = self.whole(partition, row)?;
        let peers = partition.peers(row);
        let mut rows = Rows::new();
        let mut add = |from: usize, to: usize| {
            let (from, to) = (from.max(whole.start), to.min(whole.end));
            if from < to {
                rows.push(from..to);
            }
        };
        match self.exclude {
            Exclude::NoOthers => add(whole.start, whole.end),
            Exclude::CurrentRow => {
                add(whole.start, row);
                add(row + 1, whole.end);
            }
            Exclude::Group => {
                add(whole.start, peers.start);
                add(peers.end, whole.end);
            }
            Exclude::Ties => {
                add(whole.start, peers.start);
                add(row, row + 1);
                add(peers.end, whole.end);
            }
        }
        Ok(rows)
    }
}

fn edge(bound: &Bound, which: &str, mode: FrameMode, cx: &Context<'_>) -> Result<Edge> {
    let offset = |expr| -> Result<Value> {
        let value = cx.value(expr)?;
        if value.is_null() {
            let message = format!("frame {which} offset must not be null");
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        if mode != FrameMode::Range && value.as_datum().as_i64().is_some_and(|offset| offset < 0) {
            let message = format!("frame {which} offset must not be negative");
            return Err(SqlError::new(SqlState::INVALID_PRECEDING_OR_FOLLOWING_SIZE, message));
        }
        Ok(value)
    };
    Ok(match bound {
        Bound::UnboundedPreceding => Edge::UnboundedPreceding,
        Bound::Preceding(expr) => Edge::Preceding(offset(expr)?),
        Bound::CurrentRow => Edge::CurrentRow,
        Bound::Following(expr) => Edge::Following(offset(expr)?),
        Bound::UnboundedFollowing => Edge::UnboundedFollowing,
    })
}
