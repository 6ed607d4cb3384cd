//! A hash join as a part of a fragment, which threads run: see [`gather`](crate::run::gather).

use std::mem;
use std::sync::Arc;

use super::{HashJoinState, Phase, after_outer, keeps_outer};
use crate::error::{Result, SqlError};
use crate::plan::query::node::HashJoin;
use crate::run::Context;
use crate::run::gather::{Begun, Probe, settled, workers_for};
use crate::run::state::State;

impl HashJoinState {
    /// Runs the join and what is below it on several cores, if that is worth it.
    pub(super) fn gather(&mut self, join: &HashJoin, cx: &mut Context<'_>) -> Result<()> {
        if let Some(mut begun) = self.begin_outer(join, cx)? {
            begun.probe(self.share(join, cx)?);
            self.outer = State::Fragment(begun.start(cx)?);
            self.phase = if join.gives_inner { Phase::Marking } else { Phase::Gathered };
        }
        Ok(())
    }

    /// The join as a part of the fragment of a node above it. `None` if there is no such fragment,
    /// or if it ends below the join.
    pub(in crate::run) fn begin<'p>(
        &mut self,
        join: &'p HashJoin,
        cx: &mut Context<'_>,
    ) -> Result<Option<Begun<'p>>> {
        self.build(join, workers_for(&join.outer, cx.work())?, cx)?;
        self.phase = Phase::NextOuter;
        let Some(mut begun) = self.begin_outer(join, cx)? else { return Ok(None) };
        begun.probe(self.share(join, cx)?);
        Ok(Some(begun))
    }

    /// What is below the join, for a fragment that the join is a part of.
    fn begin_outer<'p>(
        &mut self,
        join: &'p HashJoin,
        cx: &mut Context<'_>,
    ) -> Result<Option<Begun<'p>>> {
        if self.batches.is_none() && self.table.is_empty() && !keeps_outer(join) {
            // No outer row is read.
            return Ok(None);
        }
        let Some(begun) = self.outer.begin_fragment(&join.outer, cx)? else { return Ok(None) };
        if self.batches.is_none() {
            return Ok(Some(begun));
        }
        // Only the session looks for rows in files.
        self.outer = State::Fragment(begun.start(cx)?);
        Ok(None)
    }

    /// Waits for the threads, which give no rows.
    pub(super) fn mark(&mut self, join: &HashJoin, cx: &mut Context<'_>) -> Result<()> {
        while self.outer.next(&join.outer, cx)? {}
        // The threads end, and the table is the session's again.
        self.outer = State::new(&join.outer, cx)?;
        let table = self.shared.take().and_then(Arc::into_inner);
        self.table = table.ok_or_else(|| SqlError::internal("threads have a table of a join"))?;
        self.phase = after_outer(join);
        Ok(())
    }

    /// What threads do with the table, which they share from now on.
    fn share(&mut self, join: &HashJoin, cx: &Context<'_>) -> Result<Probe> {
        let keys = join.keys.iter().map(|(outer, _)| settled(outer, cx));
        let table = Arc::new(mem::take(&mut self.table));
        self.shared = Some(Arc::clone(&table));
        Ok(Probe {
            kind: join.kind,
            gives_inner: join.gives_inner,
            keys: keys.collect::<Result<_>>()?,
            on: join.on.as_ref().map(|on| settled(on, cx)).transpose()?,
            inner: self.inner_slots.clone(),
            table,
        })
    }
}
