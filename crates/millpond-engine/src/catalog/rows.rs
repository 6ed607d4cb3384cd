//! The format of the catalog's rows.
//!
//! Each table, each of its columns and each of its indexes has one row. All rows have one layout,
//! which docs/file-format.md ("Catalog") gives.

use std::sync::{Arc, LazyLock};

use millpond_buffer::RelationId;

use super::def::{ColumnDef, IndexColumn, IndexDef, TableDef};
use super::stats::TableStats;
use crate::error::{EngineError, EngineResult};
use crate::ids::Oid;
use crate::types::key::{KeyLayout, KeyOrder};
use crate::types::tuple::TupleLayout;
use crate::types::{DataType, Datum};

const TABLE: i16 = 1;
const COLUMN: i16 = 2;
const INDEX: i16 = 3;

const NOT_NULL: i32 = 1;
const UNIQUE: i32 = 1;
const PRIMARY: i32 = 2;
const CONSTRAINT: i32 = 4;

const DESCENDING: u8 = 1;
const NULLS_FIRST: u8 = 2;

pub(crate) static LAYOUT: LazyLock<TupleLayout> = LazyLock::new(|| {
    use DataType::*;
    TupleLayout::new([Int2, Int8, Int8, Int4, Int8, Text, Int8, Int4, Int4, Int2, Text, Bytea])
});

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CatalogRow {
    Table {
        oid: Oid,
        storage: RelationId,
        name: String,
        fillfactor: u8,
    },
    Column {
        table: Oid,
        number: u16,
        column: ColumnDef,
    },
    Index {
        oid: Oid,
        table: Oid,
        storage: RelationId,
        name: String,
        columns: Vec<IndexColumn>,
        flags: IndexFlags,
        fillfactor: u8,
    },
}

/// What kind of index it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexFlags {
    pub(crate) unique: bool,
    pub(crate) primary: bool,
    pub(crate) constraint: bool,
}

impl IndexFlags {
    fn bits(self) -> i32 {
        let bit = |set, bit| if set { bit } else { 0 };
        bit(self.unique, UNIQUE) | bit(self.primary, PRIMARY) | bit(self.constraint, CONSTRAINT)
    }

    fn from_bits(bits: i32) -> Self {
        Self {
            unique: bits & UNIQUE != 0,
            primary: bits & PRIMARY != 0,
            constraint: bits & CONSTRAINT != 0,
        }
    }
}

#[cold]
fn damaged(what: impl Into<String>) -> EngineError {
    EngineError::Corruption { place: "catalog".to_owned(), what: what.into() }
}

impl CatalogRow {
    /// The table that the row belongs to.
    pub(crate) fn table(&self) -> Oid {
        match self {
            Self::Table { oid, .. } => *oid,
            Self::Column { table, .. } | Self::Index { table, .. } => *table,
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> EngineResult<()> {
        const NULL: Datum<'_> = Datum::Null;
        let mut keys = Vec::new();
        let file = |id: RelationId| Datum::Int8(id.get().into());
        let row = match self {
            Self::Table { oid, storage, name, fillfactor } => [
                Datum::Int2(TABLE),
                Datum::Int8((*oid).into()),
                NULL,
                NULL,
                file(*storage),
                Datum::Text(name),
                NULL,
                NULL,
                Datum::Int4(0),
                Datum::Int2((*fillfactor).into()),
                NULL,
                NULL,
            ],
            Self::Column { table, number, column } => [
                Datum::Int2(COLUMN),
                Datum::Int8((*table).into()),
                NULL,
                Datum::Int4((*number).into()),
                NULL,
                Datum::Text(&column.name),
                Datum::Int8(column.ty.oid().into()),
                Datum::Int4(column.ty.typmod()),
                Datum::Int4(if column.not_null { NOT_NULL } else { 0 }),
                NULL,
                column.default.as_deref().map_or(NULL, Datum::Text),
                NULL,
            ],
            Self::Index { oid, table, storage, name, columns, flags, fillfactor } => {
                for column in columns {
                    keys.extend_from_slice(&(column.column as u16).to_le_bytes());
                    let KeyOrder { descending, nulls_first } = column.order;
                    let order = if descending { DESCENDING } else { 0 };
                    keys.push(order | if nulls_first { NULLS_FIRST } else { 0 });
                }
                [
                    Datum::Int2(INDEX),
                    Datum::Int8((*oid).into()),
                    Datum::Int8((*table).into()),
                    NULL,
                    file(*storage),
                    Datum::Text(name),
                    NULL,
                    NULL,
                    Datum::Int4(flags.bits()),
                    Datum::Int2((*fillfactor).into()),
                    NULL,
                    Datum::Bytea(&keys),
                ]
            }
        };
        LAYOUT.encode(&row, out).map_err(|error| crate::table::TableError::from(error).into())
    }

    pub(crate) fn decode(bytes: &[u8]) -> EngineResult<Self> {
        let mut fields = Fields([Datum::Null; 12]);
        LAYOUT
            .decode(bytes, |column, datum| {
                if let Some(slot) = fields.0.get_mut(column) {
                    *slot = datum;
                }
            })
            .map_err(|error| damaged(error.to_string()))?;
        match fields.0[0] {
            Datum::Int2(TABLE) => Ok(Self::Table {
                oid: fields.number(1)?,
                storage: fields.file(4)?,
                name: fields.name()?,
                fillfactor: fields.fillfactor()?,
            }),
            Datum::Int2(COLUMN) => Ok(Self::Column {
                table: fields.number(1)?,
                number: fields.number(3)? as u16,
                column: fields.column()?,
            }),
            Datum::Int2(INDEX) => Ok(Self::Index {
                oid: fields.number(1)?,
                table: fields.number(2)?,
                storage: fields.file(4)?,
                name: fields.name()?,
                columns: fields.index_columns()?,
                flags: IndexFlags::from_bits(fields.number(8)? as i32),
                fillfactor: fields.fillfactor()?,
            }),
            _ => Err(damaged("a row of unknown kind")),
        }
    }
}

/// The columns of a catalog row. Errors say what is wrong with them.
struct Fields<'a>([Datum<'a>; 12]);

impl Fields<'_> {
    fn number(&self, column: usize) -> EngineResult<u32> {
        let value = self.0[column].as_i64().and_then(|value| u32::try_from(value).ok());
        value.ok_or_else(|| damaged(format!("a row without a valid column {column}")))
    }

    fn file(&self, column: usize) -> EngineResult<RelationId> {
        let file = RelationId::new(self.number(column)?);
        file.ok_or_else(|| damaged("a file number out of range"))
    }

    fn name(&self) -> EngineResult<String> {
        match self.0[5] {
            Datum::Text(text) => Ok(text.to_owned()),
            _ => Err(damaged("a row without a name")),
        }
    }

    fn fillfactor(&self) -> EngineResult<u8> {
        Ok(self.number(9)?.clamp(10, 100) as u8)
    }

    fn column(&self) -> EngineResult<ColumnDef> {
        let Datum::Int4(typmod) = self.0[7] else {
            return Err(damaged("a column without a type modifier"));
        };
        let ty = DataType::from_oid(self.number(6)?, typmod)
            .filter(|ty| ty.is_storable())
            .ok_or_else(|| damaged("a column of an unknown type"))?;
        let default = match self.0[10] {
            Datum::Text(text) => Some(text.to_owned()),
            _ => None,
        };
        let not_null = self.0[8].as_i64().is_some_and(|flags| flags as i32 & NOT_NULL != 0);
        Ok(ColumnDef { name: self.name()?, ty, not_null, default })
    }

    fn index_columns(&self) -> EngineResult<Vec<IndexColumn>> {
        let Datum::Bytea(keys) = self.0[11] else {
            return Err(damaged("an index without columns"));
        };
        let columns = keys.chunks_exact(3).map(|key| IndexColumn {
            column: usize::from(u16::from_le_bytes([key[0], key[1]])),
            order: KeyOrder {
                descending: key[2] & DESCENDING != 0,
                nulls_first: key[2] & NULLS_FIRST != 0,
            },
        });
        Ok(columns.collect())
    }
}

/// The rows that define a table.
pub(crate) fn rows_of(table: &TableDef) -> Vec<CatalogRow> {
    let mut rows = vec![CatalogRow::Table {
        oid: table.oid,
        storage: table.storage,
        name: table.name.clone(),
        fillfactor: table.fillfactor,
    }];
    rows.extend(table.columns.iter().enumerate().map(|(number, column)| CatalogRow::Column {
        table: table.oid,
        number: number as u16,
        column: column.clone(),
    }));
    rows.extend(table.indexes.iter().map(|index| row_of_index(index)));
    rows
}

/// The row that defines an index.
pub(crate) fn row_of_index(index: &IndexDef) -> CatalogRow {
    CatalogRow::Index {
        oid: index.oid,
        table: index.table,
        storage: index.storage,
        name: index.name.clone(),
        columns: index.columns.to_vec(),
        flags: IndexFlags {
            unique: index.unique,
            primary: index.primary,
            constraint: index.constraint,
        },
        fillfactor: index.fillfactor,
    }
}

/// Assembles the tables from their rows, which may come in any order.
pub(crate) fn assemble(rows: Vec<CatalogRow>) -> EngineResult<Vec<TableDef>> {
    use std::collections::BTreeMap;
    let mut tables = BTreeMap::new();
    let mut columns: BTreeMap<Oid, BTreeMap<u16, ColumnDef>> = BTreeMap::new();
    let mut indexes: BTreeMap<Oid, Vec<CatalogRow>> = BTreeMap::new();
    for row in rows {
        match row {
            CatalogRow::Table { oid, storage, name, fillfactor } => {
                tables.insert(oid, (storage, name, fillfactor));
            }
            CatalogRow::Column { table, number, column } => {
                columns.entry(table).or_default().insert(number, column);
            }
            index @ CatalogRow::Index { table, .. } => {
                indexes.entry(table).or_default().push(index);
            }
        }
    }
    let mut assembled = Vec::with_capacity(tables.len());
    for (oid, (storage, name, fillfactor)) in tables {
        let columns = columns.remove(&oid).unwrap_or_default();
        if columns.keys().copied().ne(0..columns.len() as u16) {
            return Err(damaged(format!("columns of table \"{name}\" are missing")));
        }
        let mut table =
            TableDef::new(oid, name, storage, columns.into_values().collect(), fillfactor);
        for index in indexes.remove(&oid).unwrap_or_default() {
            table.add_index(Arc::new(index_of_row(&table, index)?));
        }
        assembled.push(table);
    }
    match indexes.keys().chain(columns.keys()).next() {
        None => Ok(assembled),
        Some(oid) => Err(damaged(format!("columns or indexes of the missing table {oid}"))),
    }
}

fn index_of_row(table: &TableDef, row: CatalogRow) -> EngineResult<IndexDef> {
    let CatalogRow::Index { oid, storage, name, columns, flags, fillfactor, .. } = row else {
        return Err(damaged("a row of another kind in place of an index"));
    };
    IndexDef::new(table, oid, name, storage, columns, flags, fillfactor)
        .ok_or_else(|| damaged("an index on a column that its table does not have"))
}

impl TableDef {
    /// A table that has no indexes yet.
    pub(crate) fn new(
        oid: Oid,
        name: String,
        storage: RelationId,
        columns: Vec<ColumnDef>,
        fillfactor: u8,
    ) -> Self {
        let layout = TupleLayout::new(columns.iter().map(|column| column.ty));
        let columns = columns.into_boxed_slice();
        let stats = Arc::new(TableStats::new(columns.iter().map(|column| column.ty)));
        let indexes = Box::default();
        Self { oid, name, storage, columns, indexes, fillfactor, layout, stats }
    }

    /// A relation whose rows are nowhere in the engine, for planners that treat it as a table.
    /// Reading it fails.
    pub fn without_storage(oid: Oid, name: &str, columns: Vec<ColumnDef>) -> Option<Self> {
        Some(Self::new(oid, name.to_owned(), RelationId::new(oid)?, columns, 100))
    }

    /// Adds a key to such a relation, as an index. `None` if the relation lacks one of the columns.
    pub fn add_key_without_storage(
        &mut self,
        oid: Oid,
        name: &str,
        columns: Vec<IndexColumn>,
        unique: bool,
    ) -> Option<()> {
        let flags = IndexFlags { unique, primary: false, constraint: false };
        let (name, storage) = (name.to_owned(), RelationId::new(oid)?);
        let index = IndexDef::new(self, oid, name, storage, columns, flags, 100)?;
        self.add_index(Arc::new(index));
        Some(())
    }

    /// Adds an index; the primary key becomes the first.
    pub(crate) fn add_index(&mut self, index: Arc<IndexDef>) {
        let mut indexes = std::mem::take(&mut self.indexes).into_vec();
        indexes.push(index);
        indexes.sort_by_key(|index| (!index.primary, index.oid));
        self.indexes = indexes.into();
    }
}

impl IndexDef {
    /// An index of a table; `None` if the table lacks one of the columns.
    pub(crate) fn new(
        table: &TableDef,
        oid: Oid,
        name: String,
        storage: RelationId,
        columns: Vec<IndexColumn>,
        flags: IndexFlags,
        fillfactor: u8,
    ) -> Option<Self> {
        let ty = |column: &IndexColumn| Some((table.columns.get(column.column)?.ty, column.order));
        let keys = KeyLayout::new(columns.iter().map(ty).collect::<Option<Vec<_>>>()?);
        let IndexFlags { unique, primary, constraint } = flags;
        Some(Self {
            oid,
            name,
            table: table.oid,
            storage,
            columns: columns.into(),
            unique,
            primary,
            constraint,
            fillfactor,
            keys,
            tree: std::sync::OnceLock::new(),
            valid_from: std::sync::atomic::AtomicU64::new(0),
            valid_after: std::sync::atomic::AtomicU64::new(0),
        })
    }

    /// The same index in another file, with what it is known to lack forgotten.
    pub(crate) fn in_file(&self, table: &TableDef, storage: RelationId) -> Option<Self> {
        let flags =
            IndexFlags { unique: self.unique, primary: self.primary, constraint: self.constraint };
        let (name, columns) = (self.name.clone(), self.columns.to_vec());
        Self::new(table, self.oid, name, storage, columns, flags, self.fillfactor)
    }
}
