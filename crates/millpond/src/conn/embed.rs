//! The simple calls for embedders: they block, and know no protocol.

use std::sync::Arc;

use super::types::{Collect, Rows};
use super::{Connection, Executed, Params};
use crate::{Datum, Value, Wait};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::sink::{ColumnDesc, CommandTag, RowSink};

/// Keeps rows and the tag of the statement.
#[derive(Default)]
struct Keep {
    rows: Collect,
    tag: Option<CommandTag>,
}

impl RowSink for Keep {
    fn columns(&mut self, _columns: &[ColumnDesc]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        self.rows.row(row)
    }

    fn complete(&mut self, tag: CommandTag) -> Result<()> {
        self.tag = Some(tag);
        check_commit(tag)
    }

    fn discard(&mut self) {
        self.rows.discard();
    }
}

/// Forgets rows.
struct Forget;

impl RowSink for Forget {
    fn columns(&mut self, _columns: &[ColumnDesc]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _row: &[Datum<'_>]) -> Result<()> {
        Ok(())
    }

    fn complete(&mut self, tag: CommandTag) -> Result<()> {
        check_commit(tag)
    }

    fn discard(&mut self) {}
}

/// A COMMIT that has rolled back is an error where the caller does not see its tag.
fn check_commit(tag: CommandTag) -> Result<()> {
    if !tag.is_failed_commit() {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "COMMIT has rolled the transaction back, because a statement in it had failed",
    ))
}

impl Connection {
    /// Runs one statement, blocking, and says how many rows it returned or changed. Outside of a
    /// transaction block it is committed then. The COMMIT of a failed transaction rolls back, and
    /// is error 25P02.
    pub fn execute(&mut self, sql: &str, params: &[Value]) -> Result<u64> {
        let mut keep = Keep::default();
        self.one(sql, params, &mut keep)?;
        Ok(keep.tag.map_or(0, |tag| tag.rows()))
    }

    /// Runs one statement, blocking, and returns its rows.
    pub fn query(&mut self, sql: &str, params: &[Value]) -> Result<Rows> {
        let mut keep = Keep::default();
        let columns = self.one(sql, params, &mut keep)?;
        Ok(Rows { columns: columns.unwrap_or_else(|| Arc::new([])), rows: keep.rows.rows.into() })
    }

    /// Runs any number of statements without parameters, blocking. It stops at the first error; the
    /// COMMIT of a failed transaction is one (25P02).
    pub fn batch(&mut self, sql: &str) -> Result<()> {
        self.set_wait(Wait::Allowed);
        let mut executed = self.simple_query(sql, &mut Forget)?;
        loop {
            executed = match executed {
                Executed::Complete | Executed::Suspended => return Ok(()),
                Executed::CommitPending(_) => self.finish_commit(&mut Forget)?,
                Executed::WouldBlock => self.resume(&mut Forget)?,
                Executed::CopyIn(_) => return Err(self.copy_fail("no client sends rows")),
            };
        }
    }

    fn one(
        &mut self,
        sql: &str,
        params: &[Value],
        sink: &mut dyn RowSink,
    ) -> Result<Option<Arc<[ColumnDesc]>>> {
        self.set_wait(Wait::Allowed);
        // Values say their types, except for NULL, which takes that of its place.
        let types: Vec<_> = params
            .iter()
            .map(|value| match value {
                // Text goes where a literal would: its place decides what it is.
                Value::Text(_) => None,
                value => millpond_query::expr::cast::type_of(&value.as_datum()),
            })
            .collect();
        let prepared = self.prepare(sql, &types)?;
        if params.len() != prepared.params().len() {
            return Err(SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!("{} parameters given, {} needed", params.len(), prepared.params().len()),
            ));
        }
        let options = self.format_options();
        let mut bound = Params::with_capacity(params.len());
        for (value, ty) in params.iter().zip(prepared.params()) {
            let value = millpond_query::expr::Val::Borrowed(value.as_datum());
            bound.push(millpond_query::expr::cast::cast(value, *ty, false, &options)?.into_value());
        }
        let mut portal = self.bind(&prepared, bound)?;
        let mut executed = self.execute_portal(&mut portal, 0, sink)?;
        loop {
            executed = match executed {
                Executed::Complete | Executed::Suspended => break,
                Executed::CommitPending(_) => self.finish_commit(sink)?,
                Executed::WouldBlock => self.execute_portal(&mut portal, 0, sink)?,
                Executed::CopyIn(_) => return Err(self.copy_fail("no client sends rows")),
            };
        }
        let mut executed = self.sync(sink)?;
        while executed != Executed::Complete {
            executed = match executed {
                Executed::CommitPending(_) => self.finish_commit(sink)?,
                _ => self.resume(sink)?,
            };
        }
        Ok(prepared.columns().cloned())
    }
}
