//! What the outcome of a change or a row lock means for the statement.

use super::Session;
use crate::access::Tid;
use crate::access::heap::{self, ChangeOutcome, HeapRelation};
use crate::error::{EngineError, EngineResult};
use crate::table::{RowBuf, RowOutcome};
use crate::transam::Isolation;

/// A change that was made, or the reason why none was.
pub(super) enum Changed {
    Done { tid: Tid, hot: bool },
    Other(RowOutcome),
}

impl Session {
    /// Turns the outcome of a change into the result that the isolation level requires.
    pub(super) fn judge(
        &self,
        heap: &HeapRelation,
        row: &mut RowBuf,
        outcome: ChangeOutcome,
    ) -> EngineResult<Changed> {
        let strict = self.transaction.isolation() == Isolation::RepeatableRead;
        Ok(match outcome {
            ChangeOutcome::Done { tid, hot } => {
                self.transaction.note_write();
                Changed::Done { tid, hot }
            }
            ChangeOutcome::Updated { .. } if strict => {
                return Err(EngineError::SerializationFailure { change: "update" });
            }
            ChangeOutcome::Deleted if strict => {
                return Err(EngineError::SerializationFailure { change: "delete" });
            }
            ChangeOutcome::Updated { next, by } => {
                let found = heap::fetch_newest(&self.ctx, heap, next, by, row.bytes_mut())?;
                match &found {
                    Some(newest) => self.turn.moved(newest.tid),
                    // If no version is found, another transaction has deleted it meanwhile.
                    None => self.turn.end(&self.ctx),
                }
                row.moved(found);
                Changed::Other(if found.is_some() { RowOutcome::Changed } else { RowOutcome::Gone })
            }
            ChangeOutcome::Deleted | ChangeOutcome::SelfModified | ChangeOutcome::Invisible => {
                Changed::Other(RowOutcome::Gone)
            }
            ChangeOutcome::InProgress { .. } | ChangeOutcome::Follow { .. } => {
                return Err(EngineError::Internal { what: "a row conflict was not waited for" });
            }
        })
    }
}
