//! What system relations are computed from, beside the catalog: the session.

use millpond_buffer::PAGE_SIZE;
use millpond_engine::session::Session;

use crate::query::SessionInfo;
use crate::system_relations::Host;

/// The session that runs the statement.
pub(super) struct SessionHost<'c> {
    pub(super) session: &'c Session,
    pub(super) info: &'c dyn Fn() -> SessionInfo,
}

impl Host for SessionHost<'_> {
    fn session(&self) -> SessionInfo {
        (self.info)()
    }

    fn relation_bytes(&self, oid: u32) -> u64 {
        let (catalog, engine) = (self.session.catalog(), self.session.engine());
        let blocks = match (catalog.table(oid), catalog.index(oid)) {
            (Some(table), _) => engine.block_count(table),
            (None, Some((_, index))) => engine.index_block_count(index),
            (None, None) => Ok(0),
        };
        blocks.map_or(0, |blocks| u64::from(blocks) * PAGE_SIZE as u64)
    }
}
