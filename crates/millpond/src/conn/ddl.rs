//! Definitions: CREATE and DROP TABLE, indexes, ALTER TABLE, TRUNCATE.

use millpond_engine::catalog::{ColumnDef, IndexColumn, NewIndex, NewTable, Relation, TableDef};
use millpond_engine::types::key::KeyOrder;
use sqlparser::ast;

use super::Connection;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::{data_type, undefined_column};
use crate::parse::{Name, Source, ident};
use crate::plan::{default_expression, find_table};
use crate::sink::{CommandTag, RowSink};

/// A primary key or unique constraint that a table is to get.
struct Constraint {
    name: Option<String>,
    columns: Vec<usize>,
    primary: bool,
}

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

    pub(super) fn create_table(
        &mut self,
        create: &ast::CreateTable,
        sql: &str,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        let source = Source::new(sql);
        let tag = CommandTag::plain("CREATE TABLE");
        check_create(create)?;
        let name = Name::from_ast(&create.name, &source)?;
        check_new_schema(&name)?;
        if create.if_not_exists && self.catalog().relation(&name.name).is_some() {
            let message = format!("relation \"{}\" already exists, skipping", name.name);
            notice(SqlState::DUPLICATE_TABLE, message, sink);
            return Ok(tag);
        }
        let (columns, constraints) = columns_of(create, &source)?;
        let fillfactor = fillfactor(&create.table_options)?;
        let indexes = constraints.into_iter().map(|c| new_index(c, 0)).collect();
        self.define("CREATE TABLE", |connection| {
            let table = NewTable { name: name.name, columns, fillfactor, indexes };
            connection.session.create_table(table)?;
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
                connection.session.drop_table(table.oid)?;
            }
            Ok(CommandTag::plain("DROP TABLE"))
        })
    }

    pub(super) fn create_index(
        &mut self,
        create: &ast::CreateIndex,
        sql: &str,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        let source = Source::new(sql);
        let tag = CommandTag::plain("CREATE INDEX");
        if create.concurrently {
            return Err(SqlError::unsupported("CREATE INDEX CONCURRENTLY"));
        }
        if create.predicate.is_some() {
            return Err(SqlError::unsupported("a partial index"));
        }
        if !create.include.is_empty() {
            return Err(SqlError::unsupported("INCLUDE"));
        }
        if create.nulls_distinct == Some(false) {
            return Err(SqlError::unsupported("NULLS NOT DISTINCT"));
        }
        match &create.using {
            None | Some(ast::IndexType::BTree) => {}
            Some(other) => return Err(SqlError::unsupported(format!("an index of kind {other}"))),
        }
        let catalog = self.catalog();
        let table = find_table(&catalog, &Name::from_ast(&create.table_name, &source)?)?;
        let name = match &create.name {
            Some(name) => Some(Name::from_ast(name, &source)?.name),
            None => None,
        };
        if let Some(name) = &name
            && create.if_not_exists
            && catalog.relation(name).is_some()
        {
            let message = format!("relation \"{name}\" already exists, skipping");
            notice(SqlState::DUPLICATE_TABLE, message, sink);
            return Ok(tag);
        }
        let columns = index_columns(&create.columns, &table)?;
        let fillfactor = index_fillfactor(&create.with)?;
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
            connection.session.create_index(index)?;
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
                        connection.session.drop_index(index.oid, false)?;
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
        alter: &ast::AlterTable,
        sql: &str,
        sink: &mut dyn RowSink,
    ) -> Result<CommandTag> {
        let source = Source::new(sql);
        let tag = CommandTag::plain("ALTER TABLE");
        let name = Name::from_ast(&alter.name, &source)?;
        let catalog = self.catalog();
        if alter.if_exists && catalog.relation(&name.name).is_none() {
            let message = format!("relation \"{name}\" does not exist, skipping");
            notice(SqlState::SUCCESSFUL_COMPLETION, message, sink);
            return Ok(tag);
        }
        let table = find_table(&catalog, &name)?;
        self.define("ALTER TABLE", |connection| {
            for operation in &alter.operations {
                connection.alter(&table, operation)?;
            }
            Ok(tag)
        })
    }

    fn alter(&mut self, table: &TableDef, operation: &ast::AlterTableOperation) -> Result<()> {
        match operation {
            ast::AlterTableOperation::AddConstraint { constraint, not_valid: false } => {
                let constraint = table_constraint(constraint, &|name| {
                    table.column(name).ok_or_else(|| missing_key_column(name))
                })?;
                self.session.create_index(new_index(constraint, table.oid))?;
                Ok(())
            }
            ast::AlterTableOperation::DropConstraint { if_exists, name, .. } => {
                let name = ident(name);
                match table.indexes.iter().find(|index| index.constraint && index.name == name) {
                    Some(index) => Ok(self.session.drop_index(index.oid, true)?),
                    None if *if_exists => Ok(()),
                    None => Err(SqlError::new(
                        SqlState::UNDEFINED_OBJECT,
                        format!(
                            "constraint \"{name}\" of relation \"{}\" does not exist",
                            table.name
                        ),
                    )),
                }
            }
            other => {
                let text = other.to_string();
                let words: Vec<&str> = text.split_whitespace().take(2).collect();
                Err(SqlError::unsupported(format!("ALTER TABLE ... {}", words.join(" "))))
            }
        }
    }

    pub(super) fn truncate(&mut self, names: &[Name]) -> Result<CommandTag> {
        self.define("TRUNCATE TABLE", |connection| {
            let catalog = connection.catalog();
            let oids = names
                .iter()
                .map(|name| find_table(&catalog, name).map(|table| table.oid))
                .collect::<Result<Vec<_>>>()?;
            connection.session.truncate(&oids)?;
            Ok(CommandTag::plain("TRUNCATE TABLE"))
        })
    }
}

fn check_create(create: &ast::CreateTable) -> Result<()> {
    let what = if create.temporary {
        "a temporary table"
    } else if create.query.is_some() {
        "CREATE TABLE AS"
    } else if create.like.is_some() {
        "CREATE TABLE ... LIKE"
    } else if create.inherits.is_some() {
        "INHERITS"
    } else if create.partition_by.is_some() || create.partition_of.is_some() {
        "a partitioned table"
    } else if create.or_replace
        || create.external
        || create.clone.is_some()
        || create.primary_key.is_some()
        || create.order_by.is_some()
    {
        "this form of CREATE TABLE"
    } else {
        return Ok(());
    };
    Err(SqlError::unsupported(what))
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

/// The columns and key constraints that CREATE TABLE lists.
fn columns_of(
    create: &ast::CreateTable,
    source: &Source<'_>,
) -> Result<(Vec<ColumnDef>, Vec<Constraint>)> {
    let mut columns: Vec<ColumnDef> = Vec::with_capacity(create.columns.len());
    let mut constraints = Vec::new();
    for (place, column) in create.columns.iter().enumerate() {
        let name = ident(&column.name);
        if columns.iter().any(|other| other.name == name) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            ));
        }
        let ty =
            data_type(&column.data_type).map_err(|error| source.place(error, column.name.span))?;
        let mut def = ColumnDef::new(name, ty);
        for option in &column.options {
            column_option(option, place, &mut def, &mut constraints)?;
        }
        columns.push(def);
    }
    for constraint in &create.constraints {
        let found = table_constraint(constraint, &|name| {
            columns
                .iter()
                .position(|column| column.name == name)
                .ok_or_else(|| missing_key_column(name))
        })?;
        constraints.push(found);
    }
    if constraints.iter().filter(|c| c.primary).count() > 1 {
        let name = create.name.to_string();
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("multiple primary keys for table \"{name}\" are not allowed"),
        ));
    }
    for constraint in constraints.iter().filter(|c| c.primary) {
        for column in &constraint.columns {
            columns[*column].not_null = true;
        }
    }
    // The primary key first, whatever the order in the text.
    constraints.sort_by_key(|constraint| !constraint.primary);
    Ok((columns, constraints))
}

fn column_option(
    option: &ast::ColumnOptionDef,
    place: usize,
    def: &mut ColumnDef,
    constraints: &mut Vec<Constraint>,
) -> Result<()> {
    let name = option.name.as_ref().map(ident);
    match &option.option {
        ast::ColumnOption::Null => {}
        ast::ColumnOption::NotNull => def.not_null = true,
        ast::ColumnOption::Default(expr) => {
            let text = expr.to_string();
            // Checked now, so that a bad default is not found out by the first INSERT.
            default_expression(&text, &def.name, def.ty)?;
            def.default = Some(text);
        }
        ast::ColumnOption::PrimaryKey(_) => {
            def.not_null = true;
            constraints.push(Constraint { name, columns: vec![place], primary: true });
        }
        ast::ColumnOption::Unique(unique) => {
            check_distinct(&unique.nulls_distinct)?;
            constraints.push(Constraint { name, columns: vec![place], primary: false });
        }
        ast::ColumnOption::ForeignKey(_) => {
            return Err(SqlError::unsupported("a foreign key"));
        }
        ast::ColumnOption::Check(_) => return Err(SqlError::unsupported("a CHECK constraint")),
        ast::ColumnOption::Generated { .. } => {
            return Err(SqlError::unsupported("a generated or identity column"));
        }
        ast::ColumnOption::Collation(name) => {
            if !matches!(name.to_string().trim_matches('"'), "C" | "POSIX" | "default") {
                return Err(SqlError::unsupported(format!("the collation {name}")));
            }
        }
        other => return Err(SqlError::unsupported(format!("the column option {other}"))),
    }
    Ok(())
}

fn check_distinct(option: &ast::NullsDistinctOption) -> Result<()> {
    match option {
        ast::NullsDistinctOption::NotDistinct => Err(SqlError::unsupported("NULLS NOT DISTINCT")),
        _ => Ok(()),
    }
}

fn missing_key_column(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" named in key does not exist"),
    )
}

fn table_constraint(
    constraint: &ast::TableConstraint,
    column: &dyn Fn(&str) -> Result<usize>,
) -> Result<Constraint> {
    let plain = |list: &[ast::IndexColumn]| -> Result<Vec<usize>> {
        let mut found = Vec::with_capacity(list.len());
        for item in list {
            let ast::Expr::Identifier(name) = &item.column.expr else {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, "a key consists of columns"));
            };
            let name = ident(name);
            let place = column(&name)?;
            if found.contains(&place) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{name}\" appears twice in key constraint"),
                ));
            }
            found.push(place);
        }
        Ok(found)
    };
    match constraint {
        ast::TableConstraint::PrimaryKey(key) => Ok(Constraint {
            name: key.name.as_ref().map(ident),
            columns: plain(&key.columns)?,
            primary: true,
        }),
        ast::TableConstraint::Unique(unique) => {
            check_distinct(&unique.nulls_distinct)?;
            Ok(Constraint {
                name: unique.name.as_ref().map(ident),
                columns: plain(&unique.columns)?,
                primary: false,
            })
        }
        ast::TableConstraint::ForeignKey(_) => Err(SqlError::unsupported("a foreign key")),
        ast::TableConstraint::Check(_) => Err(SqlError::unsupported("a CHECK constraint")),
        other => Err(SqlError::unsupported(format!("the constraint {other}"))),
    }
}

fn new_index(constraint: Constraint, table: u32) -> NewIndex {
    let column = |column| IndexColumn { column, order: KeyOrder::ASC };
    NewIndex {
        name: constraint.name,
        table,
        columns: constraint.columns.into_iter().map(column).collect(),
        unique: true,
        primary: constraint.primary,
        constraint: true,
        fillfactor: 90,
    }
}

fn index_columns(list: &[ast::IndexColumn], table: &TableDef) -> Result<Vec<IndexColumn>> {
    let mut found = Vec::with_capacity(list.len());
    for item in list {
        if item.operator_class.is_some() {
            return Err(SqlError::unsupported("an operator class"));
        }
        let expr = match &item.column.expr {
            ast::Expr::Nested(inner) => inner,
            other => other,
        };
        let ast::Expr::Identifier(name) = expr else {
            return Err(SqlError::unsupported("an index on an expression"));
        };
        let name = ident(name);
        let column = table.column(&name).ok_or_else(|| {
            undefined_column(&name, None, table.columns.iter().map(|column| column.name.as_str()))
        })?;
        let descending = item.column.options.asc == Some(false);
        let nulls_first = item.column.options.nulls_first.unwrap_or(descending);
        found.push(IndexColumn { column, order: KeyOrder { descending, nulls_first } });
    }
    if found.len() > 32 {
        return Err(SqlError::new(
            SqlState::TOO_MANY_COLUMNS,
            "cannot use more than 32 columns in an index",
        ));
    }
    Ok(found)
}

fn percentage(what: &str, text: &str, least: u8) -> Result<u8> {
    let text = text.trim_matches('\'');
    let value: i64 = text.parse().map_err(|_| {
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for integer option \"{what}\": {text}"),
        )
    })?;
    match u8::try_from(value) {
        Ok(value) if (least..=100).contains(&value) => Ok(value),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("value {value} out of bounds for option \"{what}\""),
        )
        .detail(format!("Valid values are between \"{least}\" and \"100\"."))),
    }
}

fn fillfactor(options: &ast::CreateTableOptions) -> Result<u8> {
    let list = match options {
        ast::CreateTableOptions::None => return Ok(100),
        ast::CreateTableOptions::With(list)
        | ast::CreateTableOptions::Options(list)
        | ast::CreateTableOptions::Plain(list)
        | ast::CreateTableOptions::TableProperties(list) => list,
    };
    let mut found = 100;
    for option in list {
        let ast::SqlOption::KeyValue { key, value } = option else {
            return Err(SqlError::unsupported(format!("the table option {option}")));
        };
        match ident(key).as_str() {
            "fillfactor" => found = percentage("fillfactor", &value.to_string(), 10)?,
            "oids" => {}
            name if name.starts_with("autovacuum_") || name.starts_with("toast") => {}
            "parallel_workers"
            | "user_catalog_table"
            | "vacuum_truncate"
            | "vacuum_index_cleanup" => {}
            name => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("unrecognized parameter \"{name}\""),
                ));
            }
        }
    }
    Ok(found)
}

fn index_fillfactor(with: &[ast::Expr]) -> Result<u8> {
    let mut found = 90;
    for option in with {
        let text = option.to_string();
        match text.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            Some(("fillfactor", value)) => found = percentage("fillfactor", value, 10)?,
            Some(("deduplicate_items", _)) => {}
            _ => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("unrecognized parameter \"{text}\""),
                ));
            }
        }
    }
    Ok(found)
}
