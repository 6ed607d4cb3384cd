//! Limit: LIMIT, OFFSET and FETCH FIRST ... WITH TIES.

use super::Context;
use super::state::State;
use crate::error::Result;
use crate::exec::row_count;
use crate::plan::query::node::Limit;

pub(super) struct LimitState {
    input: State,
    /// How many rows are still to be passed over and to be given, once that is known.
    left: Option<(u64, u64)>,
    /// The sort key of the last row that counts.
    last: Option<Vec<u8>>,
    is_done: bool,
}

impl LimitState {
    pub(super) fn new(limit: &Limit, cx: &Context<'_>) -> Result<Self> {
        let input = State::new(&limit.input, cx)?;
        Ok(Self { input, left: None, last: None, is_done: false })
    }

    pub(super) fn rescan(&mut self) {
        self.input.rescan();
        (self.left, self.last, self.is_done) = (None, None, false);
    }

    pub(super) fn next(&mut self, limit: &Limit, cx: &mut Context<'_>) -> Result<bool> {
        let (mut offset, mut left) = match self.left {
            Some(left) => left,
            None => {
                let env = cx.env();
                let offset = row_count(limit.offset.as_ref(), &env, true)?.unwrap_or(0);
                (offset, row_count(limit.limit.as_ref(), &env, false)?.unwrap_or(u64::MAX))
            }
        };
        if self.is_done || (left == 0 && self.last.is_none()) {
            return Ok(false);
        }
        while offset > 0 {
            offset -= 1;
            if !self.input.next(&limit.input, cx)? {
                self.is_done = true;
                return Ok(false);
            }
        }
        if !self.input.next(&limit.input, cx)? {
            self.is_done = true;
            return Ok(false);
        }
        if let Some(last) = &self.last {
            self.is_done = *last != key(limit, cx)?;
            return Ok(!self.is_done);
        }
        left -= 1;
        self.left = Some((offset, left));
        if left == 0 && limit.ties.is_some() {
            self.last = Some(key(limit, cx)?);
        }
        Ok(true)
    }
}

fn key(limit: &Limit, cx: &Context<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for key in limit.ties.iter().flatten() {
        key.push(&cx.env(), &mut bytes)?;
    }
    Ok(bytes)
}
