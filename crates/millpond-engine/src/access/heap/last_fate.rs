//! A one-entry cache of transaction fates, for look-ups that often repeat.

use std::cell::Cell;

use crate::access::heap::visibility::Fates;
use crate::error::EngineResult;
use crate::transam::{CommandId, Xid, XidStatus};

/// Remembers the last fate that was looked up. It is meant to live as long as one snapshot: a
/// transaction that was running when the snapshot was taken stays invisible to it.
pub(super) struct LastFate<'a, F> {
    fates: &'a F,
    last: Cell<(Xid, XidStatus)>,
}

impl<'a, F: Fates> LastFate<'a, F> {
    #[inline]
    pub(super) fn new(fates: &'a F) -> Self {
        Self { fates, last: Cell::new((Xid::INVALID, XidStatus::Aborted)) }
    }
}

impl<F: Fates> Fates for LastFate<'_, F> {
    #[inline]
    fn status(&self, xid: Xid) -> EngineResult<XidStatus> {
        let (last, status) = self.last.get();
        if last == xid && xid.is_valid() {
            return Ok(status);
        }
        let status = self.fates.status(xid)?;
        self.last.set((xid, status));
        Ok(status)
    }

    fn combo(&self, id: CommandId) -> EngineResult<(CommandId, CommandId)> {
        self.fates.combo(id)
    }
}
