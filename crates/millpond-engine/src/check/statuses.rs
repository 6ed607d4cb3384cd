//! Checks of the transaction status pages.

use std::sync::Arc;

use millpond_buffer::{BlockNumber, PAGE_SIZE};

use super::watch::{Finding, Watch};
use crate::engine::Engine;
use crate::error::{EngineError, EngineResult};
use crate::transam::clog::{CLOG, page_problem};

/// Checks every status page: its checksum, by reading it, and what the page alone can prove.
pub(super) fn check(engine: &Arc<Engine>, watch: &mut dyn Watch) -> EngineResult<()> {
    let session = engine.internal_session("check")?;
    let ctx = session.ctx();
    let next = ctx.txns().next_xid();
    let mut found = |block, what: String| {
        watch.found(Finding { relation: "transaction statuses".to_owned(), block, what });
    };
    let rel = match engine.pool().relation(CLOG).map_err(EngineError::from) {
        Ok(rel) => rel,
        Err(error) if error.is_damage() => {
            found(None, error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let mut copy = Box::new([0; PAGE_SIZE]);
    for block in (0..rel.block_count()).map(BlockNumber) {
        let read = ctx.buffers().read(&rel, block, ctx.wait(), |view| view.copy_page(&mut copy));
        match read.map_err(EngineError::from) {
            Ok(()) => {
                if let Some(what) = page_problem(&copy, block, next) {
                    found(Some(block), what);
                }
            }
            Err(error) if error.is_damage() => found(Some(block), error.to_string()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
