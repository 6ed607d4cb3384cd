//! Definitions: CREATE and DROP TABLE, indexes, ALTER TABLE, TRUNCATE, REINDEX.

mod index;
mod reindex;
mod table;

use millpond_engine::catalog::{NewIndex, NewTable, Relation, TableDef};
use millpond_syntax::tree::{AlterTableCmd, AlterTableStmt, CreateStmt, IndexStmt};

use crate::conn::session::SqlSession;
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::parse::{Name, Source};
use millpond_query::plan::find_table;
use millpond_query::sink::{CommandTag, RowSink};

pub(super) use reindex::reindex;

use index::{check_index, index_columns, index_fillfactor};
use table::{
    check_create, columns_of, fillfactor, missing_key_column, new_index, table_constraint,
};

fn notice(state: SqlState, message: String, sink: &mut dyn RowSink) {
    sink.notice(&SqlError::notice(state, message));
}

/// Runs a change of definitions: in a transaction, where it may wait.
fn define<T>(
    session: &mut SqlSession,
    what: &str,
    change: impl FnOnce(&mut SqlSession) -> Result<T>,
) -> Result<T> {
    session.need_wait()?;
    session.need_transaction()?;
    session.check_writable(what)?;
    session.engine.start_statement()?;
    let result = change(session);
    session.engine.end_statement();
    if result.is_ok() {
        session.statements_run = session.statements_run.saturating_add(1);
    }
    result
}

/// Warns a client that has had files made if few more can be.
pub(super) fn warn_of_file_numbers(session: &SqlSession, sink: &mut dyn RowSink) {
    if let Some(left) = session.database.engine().few_file_numbers_left() {
        let message =
            format!("the database can make {left} more files of tables and indexes, and then none");
        sink.notice(
            &SqlError::warning(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .hint("Dump the database and restore it into a new one."),
        );
    }
}

pub(super) fn create_table(
    session: &mut SqlSession,
    create: &CreateStmt,
    sql: &str,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    let source = Source::new(sql);
    let tag = CommandTag::plain("CREATE TABLE");
    check_create(create)?;
    let name = Name::of_relation(&create.relation, &source)?;
    check_new_schema(&name)?;
    if create.if_not_exists && session.catalog().relation(&name.name).is_some() {
        let message = format!("relation \"{}\" already exists, skipping", name.name);
        notice(SqlState::DUPLICATE_TABLE, message, sink);
        return Ok(tag);
    }
    let (columns, constraints) = columns_of(create, &source)?;
    let fillfactor = fillfactor(&create.options)?;
    let indexes = constraints.into_iter().map(|c| new_index(c, 0)).collect();
    define(session, "CREATE TABLE", |session| {
        let table = NewTable { name: name.name.into(), columns, fillfactor, indexes };
        session.engine.ddl().create_table(table)?;
        Ok(tag)
    })
}

pub(super) fn drop_tables(
    session: &mut SqlSession,
    names: &[Name],
    if_exists: bool,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    define(session, "DROP TABLE", |session| {
        for name in names {
            let catalog = session.catalog();
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
            session.in_use.check("DROP TABLE", table.oid, &table.name)?;
            session.engine.ddl().drop_table(table.oid)?;
        }
        Ok(CommandTag::plain("DROP TABLE"))
    })
}

pub(super) fn create_index(
    session: &mut SqlSession,
    create: &IndexStmt,
    sql: &str,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    let source = Source::new(sql);
    let tag = CommandTag::plain("CREATE INDEX");
    check_index(create)?;
    let catalog = session.catalog();
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
    let columns = index_columns(&create.index_params, &table)?;
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
    define(session, "CREATE INDEX", |session| {
        session.in_use.check("CREATE INDEX", table.oid, &table.name)?;
        session.engine.ddl().create_index(index)?;
        Ok(tag)
    })
}

pub(super) fn drop_indexes(
    session: &mut SqlSession,
    names: &[Name],
    if_exists: bool,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    define(session, "DROP INDEX", |session| {
        for name in names {
            match session.catalog().relation(&name.name) {
                Some(Relation::Index(_, index)) => {
                    session.in_use.check("DROP INDEX", index.oid, &index.name)?;
                    session.engine.ddl().drop_index(index.oid, false)?;
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
    session: &mut SqlSession,
    alter: &AlterTableStmt,
    sql: &str,
    sink: &mut dyn RowSink,
) -> Result<CommandTag> {
    let source = Source::new(sql);
    let tag = CommandTag::plain("ALTER TABLE");
    let name = Name::of_relation(&alter.relation, &source)?;
    let catalog = session.catalog();
    if alter.missing_ok && catalog.relation(&name.name).is_none() {
        let message = format!("relation \"{name}\" does not exist, skipping");
        notice(SqlState::SUCCESSFUL_COMPLETION, message, sink);
        return Ok(tag);
    }
    let table = find_table(&catalog, &name)?;
    define(session, "ALTER TABLE", |session| {
        session.in_use.check("ALTER TABLE", table.oid, &table.name)?;
        for cmd in &alter.cmds {
            change(session, &table, cmd, &source)?;
        }
        Ok(tag)
    })
}

fn change(
    session: &mut SqlSession,
    table: &TableDef,
    cmd: &AlterTableCmd,
    source: &Source<'_>,
) -> Result<()> {
    match cmd {
        AlterTableCmd::AddConstraint(constraint) => {
            let constraint = table_constraint(constraint, source, &|name| {
                table.column(name).ok_or_else(|| missing_key_column(name))
            })?;
            session.engine.ddl().create_index(new_index(constraint, table.oid))?;
            Ok(())
        }
        AlterTableCmd::DropConstraint { missing_ok, name, .. } => {
            match table.indexes.iter().find(|index| index.constraint && index.name == **name) {
                Some(index) => Ok(session.engine.ddl().drop_index(index.oid, true)?),
                None if *missing_ok => Ok(()),
                None => Err(SqlError::new(
                    SqlState::UNDEFINED_OBJECT,
                    format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name),
                )),
            }
        }
        AlterTableCmd::Other(words) => {
            Err(SqlError::unsupported(format!("ALTER TABLE ... {words}")))
        }
    }
}

pub(super) fn truncate(session: &mut SqlSession, names: &[Name]) -> Result<CommandTag> {
    define(session, "TRUNCATE TABLE", |session| {
        let catalog = session.catalog();
        let check = |name| {
            let table = find_table(&catalog, name)?;
            session.in_use.check("TRUNCATE", table.oid, &table.name)?;
            Ok(table.oid)
        };
        let oids = names.iter().map(check).collect::<Result<Vec<_>>>()?;
        session.engine.ddl().truncate(&oids)?;
        Ok(CommandTag::plain("TRUNCATE TABLE"))
    })
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
