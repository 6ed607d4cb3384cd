//! System relations for DataFusion: their rows are computed when a run is planned.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType as Arrow, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use millpond_engine::catalog::CatalogState;

use super::provider::Run;
use super::types::{in_zone, view_field};
use millpond_query::query::{SessionInfo, TableScanner};
use millpond_query::system_relations::{self, Cell, Host, Kind, Source, View};

/// The system relation of that name, over one state of the catalog, for a session in that time
/// zone.
pub fn find(
    schema: &str,
    name: &str,
    catalog: &Arc<CatalogState>,
    zone: &str,
) -> Option<Arc<dyn TableProvider>> {
    let view = system_relations::find(schema, name)?;
    Some(Arc::new(ViewTable::new(view, Arc::clone(catalog), zone)))
}

/// The table that a function of that name returns, likewise.
pub fn find_function(
    name: &str,
    catalog: &Arc<CatalogState>,
    zone: &str,
) -> Option<Arc<dyn TableProvider>> {
    let function = system_relations::find_function(name)?;
    Some(Arc::new(ViewTable::new(function, Arc::clone(catalog), zone)))
}

/// The scanner of a run, as system relations see it.
struct ScannerHost<'a>(&'a dyn TableScanner);

impl Host for ScannerHost<'_> {
    fn session(&self) -> SessionInfo {
        self.0.session()
    }

    fn relation_bytes(&self, oid: u32) -> u64 {
        self.0.relation_bytes(oid)
    }
}

/// A view over one state of the catalog.
pub struct ViewTable {
    view: &'static View,
    catalog: Arc<CatalogState>,
    schema: SchemaRef,
}

impl fmt::Debug for ViewTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViewTable({})", self.view.name)
    }
}

impl ViewTable {
    pub fn new(view: &'static View, catalog: Arc<CatalogState>, zone: &str) -> Self {
        let fields: Vec<_> = view
            .columns
            .iter()
            .map(|(name, kind)| view_field(name, in_zone(arrow(*kind), zone), told_oid(*kind)))
            .collect();
        Self { view, catalog, schema: Arc::new(Schema::new(fields)) }
    }
}

#[async_trait]
impl TableProvider for ViewTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let rows = match session.config().get_extension::<Run>() {
            None => Vec::new(),
            Some(run) => {
                let host = ScannerHost(run.scanner.as_ref());
                (self.view.rows)(&Source::new(&self.catalog, &host, &[]))
            }
        };
        let columns = self.schema.fields().iter().enumerate();
        let arrays = columns
            .map(|(at, field)| {
                let is_vector = self.view.columns.get(at).is_some_and(|(_, kind)| kind.is_vector());
                array(field.data_type(), &rows, at, is_vector)
            })
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(self.schema(), arrays, &options)?;
        let table = MemTable::try_new(self.schema(), vec![vec![batch]])?;
        table.scan(session, projection, filters, limit).await
    }
}

fn arrow(kind: Kind) -> Arrow {
    match kind {
        Kind::Oid | Kind::Xid | Kind::Int8 => Arrow::Int64,
        Kind::Name | Kind::Text | Kind::Char => Arrow::Utf8,
        // Arrays are their literals.
        Kind::AclArray
        | Kind::TextArray
        | Kind::CharArray
        | Kind::Int2Array
        | Kind::OidArray
        | Kind::Int2Vector
        | Kind::OidVector => Arrow::Utf8,
        Kind::Bool => Arrow::Boolean,
        Kind::Int2 => Arrow::Int16,
        Kind::Int4 => Arrow::Int32,
        Kind::Float4 => Arrow::Float32,
        Kind::Float8 => Arrow::Float64,
        Kind::Numeric => Arrow::Decimal128(38, 0),
        Kind::TimestampTz => Arrow::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
    }
}

/// The number of the type that clients are told. Arrays are told as text, which is what is sent.
fn told_oid(kind: Kind) -> u32 {
    match arrow(kind) {
        Arrow::Utf8 if !matches!(kind, Kind::Name | Kind::Char) => Kind::Text.told_oid(),
        _ => kind.told_oid(),
    }
}

/// The text of an array.
fn literal(elements: &[String], is_vector: bool) -> String {
    if is_vector { elements.join(" ") } else { format!("{{{}}}", elements.join(",")) }
}

fn array(ty: &Arrow, rows: &[Vec<Cell>], column: usize, is_vector: bool) -> ArrayRef {
    let cells = rows.iter().map(|row| row.get(column).unwrap_or(&Cell::Null));
    let int = |cell: &Cell| match cell {
        Cell::Int(value) => Some(*value),
        _ => None,
    };
    let float = |cell: &Cell| match cell {
        Cell::Float(value) => Some(*value),
        Cell::Int(value) => Some(*value as f64),
        _ => None,
    };
    match ty {
        Arrow::Int64 => Arc::new(cells.map(int).collect::<Int64Array>()),
        Arrow::Int32 => Arc::new(
            cells.map(|cell| int(cell).and_then(|v| i32::try_from(v).ok())).collect::<Int32Array>(),
        ),
        Arrow::Int16 => Arc::new(
            cells.map(|cell| int(cell).and_then(|v| i16::try_from(v).ok())).collect::<Int16Array>(),
        ),
        Arrow::Boolean => {
            let bool = |cell: &Cell| match cell {
                Cell::Bool(value) => Some(*value),
                _ => None,
            };
            Arc::new(cells.map(bool).collect::<BooleanArray>())
        }
        Arrow::Float32 => {
            Arc::new(cells.map(|cell| float(cell).map(|v| v as f32)).collect::<Float32Array>())
        }
        Arrow::Float64 => Arc::new(cells.map(float).collect::<Float64Array>()),
        Arrow::Decimal128(..) => Arc::new(
            cells
                .map(|cell| int(cell).map(i128::from))
                .collect::<Decimal128Array>()
                .with_data_type(ty.clone()),
        ),
        Arrow::Timestamp(..) => {
            let times = cells.map(int).collect::<TimestampMicrosecondArray>();
            Arc::new(times.with_data_type(ty.clone()))
        }
        _ => {
            let text = |cell: &Cell| match cell {
                Cell::Text(value) => Some(value.clone()),
                Cell::Texts(texts) => Some(literal(texts, is_vector)),
                Cell::Ints(ints) => {
                    let texts: Vec<String> = ints.iter().map(ToString::to_string).collect();
                    Some(literal(&texts, is_vector))
                }
                _ => None,
            };
            Arc::new(cells.map(text).collect::<StringArray>())
        }
    }
}
