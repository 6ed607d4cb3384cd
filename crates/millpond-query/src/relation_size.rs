//! Which files a relation has, and how large they are.

use millpond_buffer::{PAGE_SIZE, RelationId};
use millpond_engine::catalog::CatalogState;
use millpond_engine::{Engine, EngineResult};

use crate::error::{Result, SqlError, SqlState};
use crate::query::RelationSize;

/// The file of a table or an index.
pub(crate) fn storage(catalog: &CatalogState, oid: u32) -> Option<RelationId> {
    let table = catalog.table(oid).map(|table| table.storage);
    table.or_else(|| catalog.index(oid).map(|(_, index)| index.storage))
}

/// The bytes of the fork of that name. There are no visibility maps here, and no unlogged tables.
pub fn fork_bytes(fork: &str) -> Result<fn(RelationSize) -> u64> {
    match fork {
        "main" => Ok(|size| size.main),
        "fsm" => Ok(|size| size.fsm),
        "vm" | "init" => Ok(|_| 0),
        _ => Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid fork name")
            .hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\".")),
    }
}

/// `None` if the catalog has no such relation, or if it was dropped or rewritten since.
pub(crate) fn of(
    engine: &Engine,
    catalog: &CatalogState,
    oid: u32,
) -> Result<Option<RelationSize>> {
    match size(engine, catalog, oid) {
        Err(_) if storage(catalog, oid) != storage(&engine.catalog(), oid) => Ok(None),
        size => Ok(size?),
    }
}

fn size(engine: &Engine, catalog: &CatalogState, oid: u32) -> EngineResult<Option<RelationSize>> {
    let bytes = |blocks: EngineResult<u32>| match blocks {
        // As PostgreSQL says of a file that is missing: a list of all sizes must not fail for one
        // damaged table.
        Err(error) if error.is_damage() => Ok(0),
        blocks => blocks.map(|blocks| u64::from(blocks) * PAGE_SIZE as u64),
    };
    if let Some((_, index)) = catalog.index(oid) {
        let main = bytes(engine.index_block_count(index))?;
        return Ok(Some(RelationSize { main, ..RelationSize::default() }));
    }
    let Some(table) = catalog.table(oid) else { return Ok(None) };
    let mut size = RelationSize {
        main: bytes(engine.block_count(table))?,
        fsm: bytes(engine.map_block_count(table))?,
        indexes: 0,
    };
    for index in &table.indexes {
        size.indexes += bytes(engine.index_block_count(index))?;
    }
    Ok(Some(size))
}
