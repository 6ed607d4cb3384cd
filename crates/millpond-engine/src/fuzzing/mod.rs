//! Gives the fuzz targets (the package `fuzz`) access to private code that decodes or changes
//! stored bytes. It also makes valid inputs for them to begin with.
//!
//! The input may be any bytes. A decoder may refuse them with an error. Some functions here also
//! check the result. For example, what is encoded again must be what was decoded. A function panics
//! if such a check fails, and the fuzz target reports the panic.
//!
//! Built only with the feature `fuzzing`, and no part of the API.

mod btree;

use millpond_buffer::{BlockNumber, PAGE_SIZE, PageId, RelationId};

pub use btree::{btree_page, btree_pages, insert_data, root_data, split_data};

use crate::access::heap::fsm_page;
use crate::catalog::rows::{CatalogRow, assemble, rows_of};
use crate::control::{self, Control};
use crate::error::EngineResult;
use crate::startup::State;
use crate::wal::{CONTROL_COPY_BYTES, WalError};

/// The page to which records are applied.
pub fn page_id() -> PageId {
    RelationId::constant(7).main().page(BlockNumber(1))
}

/// The bytes of a copy of the control file.
pub type ControlCopy = [u8; CONTROL_COPY_BYTES];

/// Reads a copy of the control file.
pub fn control(bytes: &ControlCopy) -> Result<Control, WalError> {
    control::decode(bytes)
}

/// Encodes a copy of the control file.
pub fn control_bytes(control: &Control) -> ControlCopy {
    control::encode(control)
}

/// Reads the engine's part of the control file.
pub fn engine_state(bytes: &[u8]) {
    if let Some(state) = State::decode(bytes) {
        let again = state.encode();
        assert_eq!(again, bytes[..again.len()], "the engine's state is written as it was read");
    }
}

/// Decodes rows of the catalog and assembles the tables that they define.
pub fn catalog(rows: &[&[u8]]) -> EngineResult<usize> {
    let mut read = Vec::new();
    for bytes in rows {
        let row = CatalogRow::decode(bytes)?;
        let mut again = Vec::new();
        row.encode(&mut again)?;
        assert_eq!(CatalogRow::decode(&again)?, row, "a row is written as it was read");
        read.push(row);
    }
    let tables = assemble(read)?;
    for table in &tables {
        let again = assemble(rows_of(table))?;
        let [again] = again.as_slice() else { panic!("a table's rows define {}", again.len()) };
        assert_eq!(rows_of(again), rows_of(table), "a table is written as it was read");
    }
    Ok(tables.len())
}

/// Seed rows of the catalog that define a table with an index.
pub fn catalog_rows() -> Vec<Vec<u8>> {
    use crate::catalog::rows::IndexFlags;
    use crate::catalog::{ColumnDef, IndexColumn};
    use crate::types::DataType;
    use crate::types::key::KeyOrder;

    let column = |name: &str, ty, default: Option<&str>| ColumnDef {
        name: name.to_owned(),
        ty,
        not_null: default.is_none(),
        default: default.map(str::to_owned),
    };
    let numeric = DataType::Numeric { precision_scale: Some((10, 2)) };
    let columns = [
        column("id", DataType::Int8, None),
        column("price", numeric, Some("0.00")),
        column("note", DataType::Varchar(Some(20)), Some("'none'")),
    ];
    let (table, storage) = (16_384, RelationId::constant(20));
    let mut rows =
        vec![CatalogRow::Table { oid: table, storage, name: "t".into(), fillfactor: 90 }];
    rows.extend((0..).zip(columns).map(|(number, column)| CatalogRow::Column {
        table,
        number,
        column,
    }));
    let key = |column, order| IndexColumn { column, order };
    rows.push(CatalogRow::Index {
        oid: 16_385,
        table,
        storage: RelationId::constant(21),
        name: "t_pkey".into(),
        columns: vec![key(0, KeyOrder::ASC), key(2, KeyOrder::DESC)],
        flags: IndexFlags { unique: true, primary: true, constraint: true },
        fillfactor: 90,
    });
    let bytes = |row: &CatalogRow| {
        let mut bytes = Vec::new();
        row.encode(&mut bytes).map(|()| bytes)
    };
    rows.iter().filter_map(|row| bytes(row).ok()).collect()
}

/// Searches a page of the free space map, and stores a value in it.
pub fn free_space_page(page: &[u8; PAGE_SIZE], wanted: u8, place: usize) {
    let place = place % fsm_page::BLOCKS_PER_PAGE as usize;
    let leaf = fsm_page::leaf(page, place);
    if let Some(found) = fsm_page::find(page, wanted, place) {
        assert!(fsm_page::leaf(page, found) >= wanted, "place {found} does not have {wanted}");
    }
    let mut changed = *page;
    fsm_page::set(&mut changed, place, leaf.wrapping_add(wanted));
    assert_eq!(fsm_page::leaf(&changed, place), leaf.wrapping_add(wanted));
}
