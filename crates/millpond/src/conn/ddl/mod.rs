//! Definitions: CREATE and DROP TABLE, indexes, ALTER TABLE, TRUNCATE.

mod index;
mod table;

use millpond_engine::catalog::{NewIndex, NewTable, Relation, TableDef};
use millpond_syntax::tree::{AlterTableCmd, AlterTableStmt, CreateStmt, IndexStmt};

use super::Connection;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{Name, Source};
use crate::plan::find_table;
use crate::sink::{CommandTag, RowSink};

use index::{check_index, index_columns, index_fillfactor};
use table::{
    check_create, columns_of, fillfactor, missing_key_column, new_index, table_constraint,
};

fn notice(state: SqlState, message: String, sink: &mut dyn RowSink) {
    sink.notice(&SqlError::notice(state, message));
}

impl Connection {
    /// Runs a change of definitions: in a transaction, where it may wait.
    fn define<T>(
        &mut self,
        what: &str,
        change: impl FnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        self.need_wait()?;
        self.need_transaction()?;
        self.check_writable(what)?;
        self.session.start_statement()?;
        let result = change(self);
        self.session.end_statement();
        if result.is_ok() {
            self.statements_run = self.statements_run.saturating_add(1);
        }
        result
    }

    /// Warns a client that has had files made if few more can be.
    pub(super) fn warn_of_file_numbers(&self, sink: &mut dyn RowSink) {
        if let Some(left) = self.database.engine().few_file_numbers_left() {
            let message = format!(
                "the database can make {left} more files of tables and indexes, and then none"
            );
            sink.notice(
                &SqlError::warning(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                    .hint("Dump the database and restore it into a new one."),
            );
        }
    }

    pub(super) fn create_table(
        &mut self,
        create: &CreateStmt,
        sql: &str,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        let source = Source::new(sql);
        let tag = CommandTag::plain("CREATE TABLE");
        check_create(create)?;
        let name = Name::of_relation(&create.relation, &source)?;
        check_new_schema(&name)?;
        if create.if_not_exists && self.catalog().relation(&name.name).is_some() {
            let message = format!("relation \"{}\" already exists, skipping", name.name);
            notice(SqlState::DUPLICATE_TABLE, message, sink);
            return Ok(tag);
        }
        let (columns, constraints) = columns_of(create, &source)?;
        let fillfactor = fillfactor(&create.options)?;
        let indexes = constraints.into_iter().map(|c| new_index(c, 0)).collect();
        self.define("CREATE TABLE", |connection| {
            let table = NewTable { name: name.name, columns, fillfactor, indexes };
            connection.session.ddl().create_table(table)?;
            Ok(tag)
        })
    }

    pub(super) fn drop_tables(
        &mut self,
        names: &[Name],
        if_exists: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        self.define("DROP TABLE", |connection| {
            for name in names {
                let catalog = connection.catalog();
                let table = match catalog.relation(&name.name) {
                    Some(Relation::Table(table)) => table,
                    Some(Relation::Index(..)) => {
                        return Err(SqlError::new(
                            SqlState::WRONG_OBJECT_TYPE,
                            format!("\"{}\" is not a table", name.name),
                        )
                        .hint("Use DROP INDEX to remove an index."));
                    }
                    None if if_exists => {
                        let message = format!("table \"{name}\" does not exist, skipping");
                        notice(SqlState::SUCCESSFUL_COMPLETION, message, sink);
                        continue;
                    }
                    None => {
                        return Err(SqlError::new(
                            SqlState::UNDEFINED_TABLE,
                            format!("table \"{name}\" does not exist"),
                        ));
                    }
                };
                connection.in_use.check("DROP TABLE", table.oid, &table.name)?;
                connection.session.ddl().drop_table(table.oid)?;
            }
            Ok(CommandTag::plain("DROP TABLE"))
        })
    }

    pub(super) fn create_index(
        &mut self,
        create: &IndexStmt,
        sql: &str,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        let source = Source::new(sql);
        let tag = CommandTag::plain("CREATE INDEX");
        check_index(create)?;
        let catalog = self.catalog();
        let table = find_table(&catalog, &Name::of_relation(&create.relation, &source)?)?;
        let name: Option<String> = create.idxname.as_ref().map(|name| (&**name).into());
        if let Some(name) = &name
            && create.if_not_exists
            && catalog.relation(name).is_some()
        {
            let message = format!("relation \"{name}\" already exists, skipping");
            notice(SqlState::DUPLICATE_TABLE, message, sink);
            return Ok(tag);
        }
        let columns = index_columns(&create.index_params, &table, &source)?;
        let fillfactor = index_fillfactor(&create.options)?;
        let index = NewIndex {
            name,
            table: table.oid,
            columns,
            unique: create.unique,
            primary: false,
            constraint: false,
            fillfactor,
        };
        self.define("CREATE INDEX", |connection| {
            connection.in_use.check("CREATE INDEX", table.oid, &table.name)?;
            connection.session.ddl().create_index(index)?;
            Ok(tag)
        })
    }

    pub(super) fn drop_indexes(
        &mut self,
        names: &[Name],
        if_exists: bool,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        self.define("DROP INDEX", |connection| {
            for name in names {
                match connection.catalog().relation(&name.name) {
                    Some(Relation::Index(_, index)) => {
                        connection.in_use.check("DROP INDEX", index.oid, &index.name)?;
                        connection.session.ddl().drop_index(index.oid, false)?;
                    }
                    Some(Relation::Table(_)) => {
                        return Err(SqlError::new(
                            SqlState::WRONG_OBJECT_TYPE,
                            format!("\"{}\" is not an index", name.name),
                        )
                        .hint("Use DROP TABLE to remove a table."));
                    }
                    None if if_exists => {
                        let message = format!("index \"{name}\" does not exist, skipping");
                        notice(SqlState::SUCCESSFUL_COMPLETION, message, sink);
                    }
                    None => {
                        return Err(SqlError::new(
                            SqlState::UNDEFINED_OBJECT,
                            format!("index \"{name}\" does not exist"),
                        ));
                    }
                }
            }
            Ok(CommandTag::plain("DROP INDEX"))
        })
    }

    pub(super) fn alter_table(
        &mut self,
        alter: &AlterTableStmt,
        sql: &str,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        let source = Source::new(sql);
        let tag = CommandTag::plain("ALTER TABLE");
        let name = Name::of_relation(&alter.relation, &source)?;
        let catalog = self.catalog();
        if alter.missing_ok && catalog.relation(&name.name).is_none() {
            let message = format!("relation \"{name}\" does not exist, skipping");
            notice(SqlState::SUCCESSFUL_COMPLETION, message, sink);
            return Ok(tag);
        }
        let table = find_table(&catalog, &name)?;
        self.define("ALTER TABLE", |connection| {
            connection.in_use.check("ALTER TABLE", table.oid, &table.name)?;
            for cmd in &alter.cmds {
                connection.alter(&table, cmd, &source)?;
            }
            Ok(tag)
        })
    }

    fn alter(&mut self, table: &TableDef, cmd: &AlterTableCmd, source: &Source<'_>) -> Result<()> {
        match cmd {
            AlterTableCmd::AddConstraint(constraint) => {
                let constraint = table_constraint(constraint, source, &|name| {
                    table.column(name).ok_or_else(|| missing_key_column(name))
                })?;
                self.session.ddl().create_index(new_index(constraint, table.oid))?;
                Ok(())
            }
            AlterTableCmd::DropConstraint { missing_ok, name, .. } => {
                match table.indexes.iter().find(|index| index.constraint && index.name == **name) {
                    Some(index) => Ok(self.session.ddl().drop_index(index.oid, true)?),
                    None if *missing_ok => Ok(()),
                    None => Err(SqlError::new(
                        SqlState::UNDEFINED_OBJECT,
                        format!(
                            "constraint \"{name}\" of relation \"{}\" does not exist",
                            table.name
                        ),
                    )),
                }
            }
            AlterTableCmd::Other(words) => {
                Err(SqlError::unsupported(format!("ALTER TABLE ... {words}")))
            }
        }
    }

    pub(super) fn truncate(&mut self, names: &[Name]) -> Result<CommandTag> {
        self.define("TRUNCATE TABLE", |connection| {
            let catalog = connection.catalog();
            let check = |name| {
                let table = find_table(&catalog, name)?;
                connection.in_use.check("TRUNCATE", table.oid, &table.name)?;
                Ok(table.oid)
            };
            let oids = names.iter().map(check).collect::<Result<Vec<_>>>()?;
            connection.session.ddl().truncate(&oids)?;
            Ok(CommandTag::plain("TRUNCATE TABLE"))
        })
    }
}

fn check_new_schema(name: &Name) -> Result<()> {
    match name.schema.as_deref() {
        None | Some("public") => Ok(()),
        Some(schema @ ("pg_catalog" | "information_schema")) => Err(SqlError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied for schema {schema}"),
        )),
        Some(schema) => Err(SqlError::new(
            SqlState::INVALID_SCHEMA_NAME,
            format!("schema \"{schema}\" does not exist"),
        )),
    }
}
