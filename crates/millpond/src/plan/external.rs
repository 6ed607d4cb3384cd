//! The seam to the query engine: what plans queries that are more than one table through a key.
//!
//! With the feature `datafusion` it is Apache DataFusion. Without it there is none, and such
//! queries answer 0A000, saying what in them it was.

#[cfg(feature = "datafusion")]
mod with {
    use std::sync::Arc;

    use millpond_engine::catalog::{CatalogState, TableDef};

    use crate::advisory::{Advisory, Key};
    use crate::datafusion::{PlanRequest, Planner, QueryPlan};
    use crate::error::Result;
    use crate::memory::QueryMemory;
    use crate::query::TableScanner;
    use crate::settings::Settings;
    use crate::sink::ColumnDesc;
    use crate::types::Zone;
    use crate::{DataType, Datum, Value};

    /// Plans queries. One per database.
    pub(crate) struct ExternalPlanner(Planner);

    impl ExternalPlanner {
        /// A planner whose queries have at most `query_threads` threads together, and share that
        /// memory.
        pub(crate) fn new(
            settings: &Settings,
            query_threads: usize,
            memory: &Arc<QueryMemory>,
        ) -> Result<Option<Self>> {
            let niceness = i32::try_from(settings.int("query_threads_nice")).unwrap_or(0);
            Ok(Some(ExternalPlanner(Planner::new(niceness, query_threads, memory)?)))
        }

        /// `None`: its parser does not know the text.
        pub(crate) fn plan(
            &self,
            catalog: &Arc<CatalogState>,
            text: &str,
            given: &[Option<DataType>],
            zone: Zone,
        ) -> Result<Option<ExternalPlan>> {
            let request = PlanRequest { catalog, zone };
            Ok(self.0.plan_text(&request, text, given)?.map(ExternalPlan))
        }
    }

    impl std::fmt::Debug for ExternalPlanner {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("ExternalPlanner")
        }
    }

    /// A planned query.
    #[derive(Debug)]
    pub(crate) struct ExternalPlan(QueryPlan);

    impl ExternalPlan {
        pub(crate) fn params(&self) -> Arc<[DataType]> {
            self.0.params.as_slice().into()
        }

        pub(crate) fn columns(&self) -> Arc<[ColumnDesc]> {
            self.0.columns.as_slice().into()
        }

        pub(crate) fn tables(&self) -> &[Arc<TableDef>] {
            &self.0.tables
        }

        pub(crate) fn explain(&self, scanner: Arc<dyn TableScanner>) -> Result<Vec<String>> {
            self.0.explain(scanner)
        }

        /// Runs it; `lock` is called for functions that lock, `each` says whether it wants more
        /// rows.
        pub(crate) fn run(
            &self,
            scanner: Arc<dyn TableScanner>,
            params: &[Value],
            lock: &mut dyn FnMut(Advisory, Key) -> Result<Value>,
            each: &mut dyn FnMut(&[Datum<'_>]) -> Result<bool>,
        ) -> Result<()> {
            let mut stream = self.0.open(scanner, params)?;
            while let Some(batch) = stream.next_batch(lock)? {
                let mut row = Vec::new();
                for i in 0..batch.rows() {
                    batch.row(i, &mut row);
                    if !each(&row)? {
                        return Ok(());
                    }
                }
            }
            Ok(())
        }
    }
}

#[cfg(not(feature = "datafusion"))]
mod without {
    use std::sync::Arc;

    use millpond_engine::catalog::{CatalogState, TableDef};

    use crate::DataType;
    use crate::Datum;
    use crate::Value;
    use crate::advisory::{Advisory, Key};
    use crate::error::Result;
    use crate::memory::QueryMemory;
    use crate::query::TableScanner;
    use crate::settings::Settings;
    use crate::sink::ColumnDesc;
    use crate::types::Zone;

    /// There is no query engine.
    #[derive(Debug)]
    pub(crate) enum ExternalPlanner {}

    impl ExternalPlanner {
        pub(crate) fn new(
            _settings: &Settings,
            _query_threads: usize,
            _memory: &Arc<QueryMemory>,
        ) -> Result<Option<Self>> {
            Ok(None)
        }

        pub(crate) fn plan(
            &self,
            _catalog: &Arc<CatalogState>,
            _text: &str,
            _given: &[Option<DataType>],
            _zone: Zone,
        ) -> Result<Option<ExternalPlan>> {
            match *self {}
        }
    }

    /// A query that nobody can plan.
    #[derive(Debug)]
    pub(crate) enum ExternalPlan {}

    impl ExternalPlan {
        pub(crate) fn params(&self) -> Arc<[DataType]> {
            match *self {}
        }

        pub(crate) fn columns(&self) -> Arc<[ColumnDesc]> {
            match *self {}
        }

        pub(crate) fn tables(&self) -> &[Arc<TableDef>] {
            match *self {}
        }

        pub(crate) fn explain(&self, _scanner: Arc<dyn TableScanner>) -> Result<Vec<String>> {
            match *self {}
        }

        pub(crate) fn run(
            &self,
            _scanner: Arc<dyn TableScanner>,
            _params: &[Value],
            _lock: &mut dyn FnMut(Advisory, Key) -> Result<Value>,
            _each: &mut dyn FnMut(&[Datum<'_>]) -> Result<bool>,
        ) -> Result<()> {
            match *self {}
        }
    }
}

#[cfg(feature = "datafusion")]
pub(crate) use with::{ExternalPlan, ExternalPlanner};
#[cfg(not(feature = "datafusion"))]
pub(crate) use without::{ExternalPlan, ExternalPlanner};
