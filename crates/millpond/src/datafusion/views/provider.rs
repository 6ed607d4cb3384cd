//! A view for DataFusion: its rows are computed when a run is planned.

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

use super::{Cell, Kind, Source, View};
use crate::datafusion::provider::Run;
use crate::datafusion::types::{in_zone, view_field};

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
                let info = run.scanner.session();
                let scanner = run.scanner.as_ref();
                (self.view.rows)(&Source { catalog: &self.catalog, session: &info, scanner })
            }
        };
        let columns = self.schema.fields().iter().enumerate();
        let arrays = columns.map(|(at, field)| array(field.data_type(), &rows, at)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(self.schema(), arrays, &options)?;
        let table = MemTable::try_new(self.schema(), vec![vec![batch]])?;
        table.scan(session, projection, filters, limit).await
    }
}

fn arrow(kind: Kind) -> Arrow {
    match kind {
        Kind::Oid | Kind::Xid | Kind::Int8 => Arrow::Int64,
        Kind::Name | Kind::Text | Kind::Char | Kind::Array => Arrow::Utf8,
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
pub(super) fn told_oid(kind: Kind) -> u32 {
    match kind {
        Kind::Oid => 26,
        Kind::Xid => 28,
        Kind::Name => 19,
        Kind::Text | Kind::Array => 25,
        Kind::Char => 18,
        Kind::Bool => 16,
        Kind::Int2 => 21,
        Kind::Int4 => 23,
        Kind::Int8 => 20,
        Kind::Float4 => 700,
        Kind::Float8 => 701,
        Kind::Numeric => 1700,
        Kind::TimestampTz => 1184,
    }
}

fn array(ty: &Arrow, rows: &[Vec<Cell>], column: usize) -> ArrayRef {
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
                _ => None,
            };
            Arc::new(cells.map(text).collect::<StringArray>())
        }
    }
}
