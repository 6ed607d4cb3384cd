//! A scan of a plan as an operator of DataFusion: its columns, and its rows in parts that are
//! scanned side by side. Rows that the scan's conditions refuse are not decoded any further.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::{Result as DfResult, internal_datafusion_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::streaming::{PartitionStream, StreamingTableExec};
use millpond_engine::catalog::TableDef;
use millpond_query::expr::{Expr, Row};
use millpond_query::plan::external::{LocalSurroundings, Surroundings};
use millpond_query::query::{RowSource, TableScanner};
use millpond_query::{Result, SqlError, SqlState};
use millpond_types::{ColumnOffsets, DataType};

use super::batch::ColumnBuilder;
use super::errors::external;
use super::types::arrow_type;

/// Rows at which a batch is handed on.
const BATCH_ROWS: usize = 8192;
/// Pages after which a batch is handed on however few rows passed, so that a scan stays
/// cancellable.
const BATCH_PAGES: usize = 256;
/// After this number of batches, and before the first, a scan lets the runtime choose what its
/// thread does next. An operator that reads all of its input waits for nothing else, and a task
/// that it has woken would stay on its thread, where no other thread finds it.
const BATCHES_A_TURN: u32 = 8;
/// A smaller table is scanned in one part: waking a second thread costs more.
const PARALLEL_BYTES: u64 = 2 << 20;

/// What a scan reads.
#[derive(Clone)]
pub struct Source {
    pub def: Arc<TableDef>,
    pub scanner: Arc<dyn TableScanner>,
    /// What a row must meet. Its columns are those of the table.
    pub conditions: Arc<[Expr]>,
    pub surroundings: Arc<Surroundings>,
}

/// A column that is read: its place in the table, the name that plans have for it, and its type.
pub type Read = (usize, String, DataType);

/// A scan that gives some columns of a table. A large table is read in `parts`, a small one in one.
pub fn scan(source: Source, read: &[Read], parts: usize) -> DfResult<Arc<dyn ExecutionPlan>> {
    let field = |(_, name, ty): &Read| Some(Field::new(name, arrow_type(*ty)?, true));
    let fields: Option<Vec<Field>> = read.iter().map(field).collect();
    let fields = fields.ok_or_else(|| internal_datafusion_err!("a column of another type"))?;
    let schema = Arc::new(Schema::new(fields));
    let columns: Vec<usize> = read.iter().map(|(place, ..)| *place).collect();
    let bytes = source.scanner.table_bytes(&source.def);
    let parts = if bytes >= PARALLEL_BYTES { parts.max(1) } else { 1 };
    let part = |part| {
        Arc::new(Part {
            source: source.clone(),
            schema: Arc::clone(&schema),
            columns: columns.clone(),
            part,
            parts,
        }) as Arc<dyn PartitionStream>
    };
    let parts = (0..parts).map(part).collect();
    Ok(Arc::new(StreamingTableExec::try_new(Arc::clone(&schema), parts, None, None, false, None)?))
}

/// One part of a scan.
struct Part {
    source: Source,
    schema: SchemaRef,
    /// The table's columns that are wanted, in order.
    columns: Vec<usize>,
    part: usize,
    parts: usize,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} part {} of {}", self.source.def.name, self.part + 1, self.parts)
    }
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let opened = self.source.scanner.scan(&self.source.def, self.part, self.parts);
        let stream: std::pin::Pin<Box<dyn futures::Stream<Item = DfResult<RecordBatch>> + Send>> =
            match opened {
                Err(error) => Box::pin(futures::stream::iter([Err(external(error))])),
                Ok(rows) => {
                    let mut reader = Reader::new(self, rows);
                    let mut left_in_turn = 0;
                    Box::pin(futures::stream::poll_fn(move |context| {
                        if left_in_turn == 0 {
                            left_in_turn = BATCHES_A_TURN;
                            context.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                        left_in_turn -= 1;
                        Poll::Ready(reader.next_batch().map_err(external).transpose())
                    }))
                }
            };
        Box::pin(RecordBatchStreamAdapter::new(schema, stream))
    }
}

/// Turns the rows of a part into batches.
struct Reader {
    source: Source,
    surroundings: LocalSurroundings,
    schema: SchemaRef,
    rows: Option<Box<dyn RowSource>>,
    wanted: Vec<(usize, ColumnBuilder)>,
}

impl Reader {
    fn new(part: &Part, rows: Box<dyn RowSource>) -> Self {
        let columns = part.columns.iter().zip(part.schema.fields());
        let wanted = columns
            .map(|(&column, field)| (column, ColumnBuilder::new(field.data_type(), BATCH_ROWS)))
            .collect();
        Self {
            source: part.source.clone(),
            surroundings: part.source.surroundings.local(),
            schema: Arc::clone(&part.schema),
            rows: Some(rows),
            wanted,
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.wanted.is_empty() && self.source.conditions.is_empty() {
            return self.next_count();
        }
        let Some(rows) = &mut self.rows else { return Ok(None) };
        let Self { source, surroundings, wanted, .. } = self;
        let layout = &source.def.layout;
        let (count, offsets) = (Cell::new(0), ColumnOffsets::default());
        let more = surroundings.with(|env| {
            let mut each = |tuple: &[u8]| -> Result<()> {
                offsets.clear();
                let env = env.with_row(Row::Scanned(layout, tuple, &offsets));
                for condition in source.conditions.iter() {
                    if !condition.holds(&env)? {
                        return Ok(());
                    }
                }
                for (column, builder) in wanted.iter_mut() {
                    let datum = layout.column_noting(tuple, &offsets, *column);
                    builder.push(datum.map_err(damaged)?)?;
                }
                count.set(count.get() + 1);
                Ok(())
            };
            for _ in 0..BATCH_PAGES {
                if count.get() >= BATCH_ROWS {
                    return Ok(true);
                }
                if !rows.next_page(&mut each)? {
                    return Ok(false);
                }
            }
            Ok::<_, SqlError>(true)
        })?;
        if !more {
            self.rows = None;
        }
        self.source.scanner.check_cancelled()?;
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
        self.source.scanner.check_cancelled()?;
        if count == 0 && !more { Ok(None) } else { self.finish(count).map(Some) }
    }

    fn finish(&mut self, count: usize) -> Result<RecordBatch> {
        let arrays: Vec<_> = self.wanted.iter_mut().map(|(_, builder)| builder.finish()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| SqlError::internal(error.to_string()))
    }
}

fn damaged(error: millpond_types::tuple::DamagedTuple) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, error.to_string())
}
