//! A table for DataFusion: its columns, and its rows in parts that are scanned side by side.
//!
//! A plan is kept and run many times, so nothing here holds a snapshot. The rows come from the
//! [`TableScanner`] of the statement that runs, found in the session's extensions ([`Run`]).

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use millpond_engine::catalog::TableDef;

use super::batch::ColumnBuilder;
use super::errors::external;
use super::filter::RowFilter;
use super::types::{arrow_type, in_zone, table_field};
use millpond_query::error::{Result, SqlError};
use millpond_query::query::{RowSource, TableScanner};

/// What the statement that runs gives to its plan.
pub struct Run {
    /// The tables under its snapshot.
    pub scanner: Arc<dyn TableScanner>,
}

/// Rows at which a batch is handed on.
const BATCH_ROWS: usize = 8192;
/// Pages after which a batch is handed on however few rows passed, so that a scan stays
/// cancellable.
const BATCH_PAGES: usize = 256;
/// A smaller table is scanned in one part: waking a second thread costs more.
const PARALLEL_BYTES: u64 = 2 << 20;

/// A table, as plans know it.
pub struct Table {
    def: Arc<TableDef>,
    schema: SchemaRef,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", self.def.name)
    }
}

impl Table {
    /// The table's columns, for a session in that time zone.
    pub fn new(def: Arc<TableDef>, zone: &str) -> Self {
        let columns = def.columns.iter().enumerate();
        let fields: Vec<Field> = columns
            .map(|(index, column)| {
                let arrow = in_zone(arrow_type(column.ty), zone);
                let place = (def.oid, index as i16 + 1);
                table_field(&column.name, arrow, column.ty, !column.not_null, place)
            })
            .collect();
        Self { def, schema: Arc::new(Schema::new(fields)) }
    }
}

#[async_trait]
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Comparisons of a column with a constant are decided before a row is decoded further.
    /// DataFusion repeats them, so a scan may let through what it can't decide.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DfResult<Vec<TableProviderFilterPushDown>> {
        let decide = |filter: &&Expr| match RowFilter::new(&self.def, filter) {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(decide).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let columns = projection.unwrap_or(&all).clone();
        let schema = Arc::new(self.schema.project(&columns)?);
        let run = session.config().get_extension::<Run>();
        let bytes = run.map_or(0, |run| run.scanner.relation_bytes(self.def.oid));
        let parts = match limit {
            None if bytes >= PARALLEL_BYTES => session.config().target_partitions().max(1),
            _ => 1,
        };
        let filters: Arc<[RowFilter]> =
            filters.iter().filter_map(|filter| RowFilter::new(&self.def, filter)).collect();
        let part = |part| {
            Arc::new(Part {
                def: Arc::clone(&self.def),
                schema: Arc::clone(&schema),
                columns: columns.clone(),
                filters: Arc::clone(&filters),
                part,
                parts,
            }) as Arc<dyn PartitionStream>
        };
        let parts = (0..parts).map(part).collect();
        Ok(Arc::new(StreamingTableExec::try_new(schema, parts, None, None, false, limit)?))
    }
}

/// One part of a scan.
struct Part {
    def: Arc<TableDef>,
    schema: SchemaRef,
    /// The table's columns that are wanted, in order.
    columns: Vec<usize>,
    filters: Arc<[RowFilter]>,
    part: usize,
    parts: usize,
}

impl Part {
    /// The type of one of the table's columns that are wanted.
    fn arrow_of(&self, column: usize) -> ArrowType {
        let at = self.columns.iter().position(|wanted| *wanted == column);
        at.map_or(ArrowType::Null, |at| self.schema.field(at).data_type().clone())
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} part {} of {}", self.def.name, self.part + 1, self.parts)
    }
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let run = context.session_config().get_extension::<Run>();
        let opened = match run {
            Some(run) => run
                .scanner
                .scan(&self.def, self.part, self.parts)
                .map(|rows| (rows, Arc::clone(&run.scanner))),
            None => Err(SqlError::internal("a plan ran without its statement")),
        };
        let schema = Arc::clone(&self.schema);
        let stream: std::pin::Pin<Box<dyn futures::Stream<Item = DfResult<RecordBatch>> + Send>> =
            match opened {
                Err(error) => Box::pin(futures::stream::iter([Err(external(error))])),
                Ok((rows, scanner)) => {
                    let mut reader = Reader::new(self, rows, scanner);
                    Box::pin(futures::stream::poll_fn(move |_| {
                        std::task::Poll::Ready(reader.next_batch().map_err(external).transpose())
                    }))
                }
            };
        Box::pin(RecordBatchStreamAdapter::new(schema, stream))
    }
}

/// Turns the rows of a part into batches.
struct Reader {
    def: Arc<TableDef>,
    schema: SchemaRef,
    rows: Option<Box<dyn RowSource>>,
    scanner: Arc<dyn TableScanner>,
    wanted: Vec<(usize, ColumnBuilder)>,
    filters: Arc<[RowFilter]>,
}

impl Reader {
    fn new(part: &Part, rows: Box<dyn RowSource>, scanner: Arc<dyn TableScanner>) -> Self {
        let columns = part.columns.iter();
        let wanted = columns
            .map(|&column| (column, ColumnBuilder::new(&part.arrow_of(column), BATCH_ROWS)))
            .collect();
        Self {
            def: Arc::clone(&part.def),
            schema: Arc::clone(&part.schema),
            rows: Some(rows),
            scanner,
            wanted,
            filters: Arc::clone(&part.filters),
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.wanted.is_empty() && self.filters.is_empty() {
            return self.next_count();
        }
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let Self { def, wanted, filters, .. } = self;
        let count = Cell::new(0);
        let mut each = |tuple: &[u8]| -> Result<()> {
            for filter in filters.iter() {
                if !filter.passes(&def.layout, tuple)? {
                    return Ok(());
                }
            }
            for (column, builder) in wanted.iter_mut() {
                builder.push(def.layout.column(tuple, *column).map_err(damaged)?)?;
            }
            count.set(count.get() + 1);
            Ok(())
        };
        let mut more = true;
        for _ in 0..BATCH_PAGES {
            if !more || count.get() >= BATCH_ROWS {
                break;
            }
            more = rows.next_page(&mut each)?;
        }
        if !more {
            self.rows = None;
        }
        self.scanner.check_cancelled()?;
        // An empty batch in the middle is fine: it lets other work in between.
        if count.get() == 0 && !more { Ok(None) } else { self.finish(count.get()).map(Some) }
    }

    /// A batch without columns: what there is to know of it is how many rows it has.
    fn next_count(&mut self) -> Result<Option<RecordBatch>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let mut count = 0;
        let mut more = true;
        for _ in 0..BATCH_PAGES {
            // What is computed for each row may be wide, and the first may be enough.
            if count >= BATCH_ROWS {
                break;
            }
            match rows.count_page()? {
                Some(rows) => count += rows,
                None => {
                    more = false;
                    break;
                }
            }
        }
        if !more {
            self.rows = None;
        }
        self.scanner.check_cancelled()?;
        if count == 0 && !more { Ok(None) } else { self.finish(count).map(Some) }
    }

    fn finish(&mut self, count: usize) -> Result<RecordBatch> {
        let arrays: Vec<_> = self.wanted.iter_mut().map(|(_, builder)| builder.finish()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(super::errors::from_arrow)
    }
}

pub(super) fn damaged(error: millpond_types::tuple::DamagedTuple) -> SqlError {
    SqlError::new(millpond_query::SqlState::DATA_CORRUPTED, error.to_string())
}
