//! The end of a transaction that is due, with the tag that its client waits for.

use super::session::Block;
use super::transaction::{Ended, Pending};
use super::{Connection, Executed};
use millpond_query::error::Result;
use millpond_query::sink::RowSink;

impl Connection {
    /// Has an implicit transaction commit next.
    pub(super) fn end_pipeline(&mut self) {
        if self.session.block == Block::Implicit && self.pending.is_none() {
            self.pending = Some(Pending::commit(None));
        }
    }

    /// Ends the transaction if that is due, and says what is due when it has ended.
    pub(super) fn settle(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        let Some(pending) = self.pending else { return Ok(Executed::Complete) };
        if pending.commit {
            match self.session.commit_now() {
                Ok(Ended::Done) => {}
                Ok(Ended::WouldBlock) => return Ok(Executed::WouldBlock),
                Ok(Ended::Pending(ticket)) => {
                    self.committing = Some(ticket);
                    self.pending = Some(Pending { commit: false, ..pending });
                    return Ok(Executed::CommitPending(ticket));
                }
                Err(error) => return Err(self.statement_failed(error, sink)),
            }
        }
        self.pending = None;
        if let Some(options) = pending.chain {
            self.session.chain(options)?;
        }
        if let Some(tag) = pending.tag
            && let Err(error) = sink.complete(tag)
        {
            return Err(self.statement_failed(error, sink));
        }
        Ok(if pending.suspended { Executed::Suspended } else { Executed::Complete })
    }
}
