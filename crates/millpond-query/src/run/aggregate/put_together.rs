//! The session's part of an aggregation in parts: see [`parts`](super::parts).

use super::groups::Groups;
use super::{AggregateState, Keys, PartialAggregation};
use crate::error::Result;
use crate::expr::Val;
use crate::memory::row_bytes::{self, damaged};
use crate::plan::query::node::Aggregate;
use crate::run::Context;
use crate::run::gather::{Fragment, can_settle, settled, workers_for};
use crate::run::state::State;

/// After how many groups of threads the session looks whether most of them were new.
const JUDGED_PARTS: usize = 4096;

impl AggregateState {
    /// Lets threads aggregate what they read of the input, if that is worth it.
    fn begin_parts(
        &mut self,
        aggregate: &Aggregate,
        cx: &mut Context<'_>,
    ) -> Result<Option<Box<Fragment>>> {
        if workers_for(&aggregate.input, cx.work())? == 0 {
            return Ok(None);
        }
        let of_calls = aggregate.calls.iter().flat_map(|call| call.args.iter().chain(&call.filter));
        if !can_settle(aggregate.keys.iter().chain(of_calls), &[&aggregate.input], cx)? {
            return Ok(None);
        }
        let Some(mut begun) = self.input.begin_fragment(&aggregate.input, cx)? else {
            return Ok(None);
        };
        begun.aggregate(PartialAggregation::of(aggregate, &|expr| settled(expr, cx))?);
        begun.start(cx).map(Some)
    }

    /// Puts the groups of threads together. False if threads are not worth it, or turn out not to
    /// be: nearly each row is a group of its own, or there is no room for all groups. Then the
    /// session begins anew alone.
    pub(super) fn add_parts(
        &mut self,
        aggregate: &Aggregate,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        let Some(mut fragment) = self.begin_parts(aggregate, cx)? else { return Ok(false) };
        let whole = whole(aggregate);
        let (mut groups, mut parts) = (Groups::default(), 0);
        while fragment.advance(cx)? {
            cx.work().tick()?;
            parts += 1;
            let is_judged = parts == JUDGED_PARTS;
            if is_judged && groups.len() > JUDGED_PARTS / 2
                || !self.add_part(fragment.bytes(), (&mut groups, &whole), aggregate, cx)?
            {
                drop(fragment);
                self.input = State::new(&aggregate.input, cx)?;
                self.held.clear();
                self.overflow.clear();
                return Ok(false);
            }
        }
        self.give_all(groups, aggregate, cx)?;
        Ok(true)
    }

    /// Adds a thread's group to that of the same keys. False if there is no room. `whole` are the
    /// places of all keys.
    fn add_part(
        &mut self,
        part: &[u8],
        (groups, whole): (&mut Groups, &Vec<usize>),
        aggregate: &Aggregate,
        cx: &Context<'_>,
    ) -> Result<bool> {
        let values = row_bytes::read(part)?;
        let (keys, states) = values.split_at_checked(whole.len()).ok_or_else(damaged)?;
        let keys: Keys<'_> = keys.iter().map(|key| Val::Borrowed(*key)).collect();
        groups.set_key((0, whole), &keys);
        let (held, overflow) = (&mut self.held, &mut self.overflow);
        let found = groups.calls_of(aggregate, whole, || Ok(keys), cx.work(), held, overflow)?;
        let Some(calls) = found else { return Ok(false) };
        let mut states = states.chunks_exact(3);
        for (place, (call, state)) in aggregate.calls.iter().zip(calls).enumerate() {
            if aggregate.state_of(place) != place {
                continue;
            }
            let Some(&[first, second, third]) = states.next() else { return Err(damaged()) };
            let grown = state.add_part(call, [first, second, third])?;
            if grown > 0 {
                self.held.grow(grown)?;
            }
        }
        Ok(true)
    }
}

/// The places of all keys.
pub(super) fn whole(aggregate: &Aggregate) -> Vec<usize> {
    (0..aggregate.keys.len()).collect()
}
