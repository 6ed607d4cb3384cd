//! A hash join as a part of a fragment, which threads run: see [`gather`](crate::run::gather).

use std::mem;
use std::sync::Arc;

use super::{HashJoinState, JoinTable, Phase, after_outer, held, keeps_outer};
use crate::error::{Result, SqlError};
use crate::memory::Held;
use crate::plan::query::node::HashJoin;
use crate::run::Context;
use crate::run::gather::{Begun, Probe, can_settle, settled, workers_for};
use crate::run::state::State;

/// The inner rows of a join, for several threads.
pub(in crate::run) struct SharedTable {
    pub(in crate::run) rows: JoinTable,
    /// What they take counts as long as a fragment has them: the state of the join may be gone.
    held: Held,
}

impl HashJoinState {
    /// How many threads run the join beside the session, if a fragment ends with it.
    pub(super) fn workers(&self, join: &HashJoin, cx: &Context<'_>) -> Result<usize> {
        if !join.gathers {
            return Ok(0);
        }
        let workers = workers_for(&join.outer, cx.work())?;
        let own = join.keys.iter().map(|(outer, _)| outer).chain(&join.on);
        Ok(if workers > 0 && can_settle(own, &[&join.outer], cx)? { workers } else { 0 })
    }

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
        self.take_back(join, cx)
    }

    /// The threads end, and the table is the session's again.
    pub(super) fn take_back(&mut self, join: &HashJoin, cx: &mut Context<'_>) -> Result<()> {
        self.outer = State::new(&join.outer, cx)?;
        let shared = self.shared.take().and_then(Arc::into_inner);
        let shared = shared.ok_or_else(|| SqlError::internal("threads have a table of a join"))?;
        (self.table, self.held) = (shared.rows, shared.held);
        self.phase = after_outer(join);
        Ok(())
    }

    /// What threads do with the table, which they share from now on.
    fn share(&mut self, join: &HashJoin, cx: &Context<'_>) -> Result<Probe> {
        let keys = join.keys.iter().map(|(outer, _)| settled(outer, cx));
        let held = mem::replace(&mut self.held, held(cx.work().resources));
        let table = Arc::new(SharedTable { rows: mem::take(&mut self.table), held });
        self.shared = Some(Arc::clone(&table));
        Ok(Probe {
            kind: join.kind,
            gives_inner: join.gives_inner,
            seeks_one: join.seeks_one(),
            keys: keys.collect::<Result<_>>()?,
            on: join.on.as_ref().map(|on| settled(on, cx)).transpose()?,
            inner: self.inner_slots.clone(),
            table,
        })
    }
}
