//! Keys of index entries: their values, their encoding, and the error for a duplicate.

use smallvec::SmallVec;

use crate::access::btree;
use crate::catalog::{IndexDef, TableDef};
use crate::error::{EngineError, EngineResult, TableError};
use crate::types::{Datum, Value};

/// The values of the index's columns, in index order.
pub(crate) fn key_values<'d>(index: &IndexDef, row: &[Datum<'d>]) -> SmallVec<[Datum<'d>; 4]> {
    index.columns.iter().map(|column| row.get(column.column).copied().unwrap_or_default()).collect()
}

/// Encodes the key of a row.
pub(crate) fn encode_key(
    index: &IndexDef,
    row: &[Datum<'_>],
    key: &mut Vec<u8>,
) -> EngineResult<()> {
    key.clear();
    for (position, column) in index.columns.iter().enumerate() {
        let datum = row.get(column.column).copied().unwrap_or_default();
        index.keys.encode_column(position, &datum, key).map_err(TableError::from)?;
    }
    btree::check_key(key)
}

/// Whether the index must hold this key only once. Keys with NULLs are never equal.
pub(crate) fn must_be_unique(index: &IndexDef, row: &[Datum<'_>]) -> bool {
    let is_null = |column: usize| row.get(column).is_none_or(Datum::is_null);
    index.unique && !index.columns.iter().any(|column| is_null(column.column))
}

/// The error for a duplicate key.
#[cold]
pub(crate) fn duplicate(table: &TableDef, index: &IndexDef, row: &[Datum<'_>]) -> EngineError {
    TableError::DuplicateKey {
        table: table.name.clone(),
        index: index.name.clone(),
        columns: key_columns(table, index),
        values: key_values(index, row).iter().map(Datum::to_value).collect::<Vec<Value>>(),
    }
    .into()
}

/// The names of the key's columns.
pub(crate) fn key_columns(table: &TableDef, index: &IndexDef) -> Vec<String> {
    let name = |column: usize| table.columns.get(column).map(|column| column.name.clone());
    index.columns.iter().filter_map(|column| name(column.column)).collect()
}
