//! CREATE TABLE's columns, constraints and options as the catalog's definitions.

use millpond_engine::catalog::{ColumnDef, IndexColumn, NewIndex};
use millpond_engine::types::key::KeyOrder;
use sqlparser::ast;

use super::index::percentage;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{Source, check_collation, data_type, ident};
use crate::plan::default_expression;

/// A primary key or unique constraint that a table is to get.
pub(super) struct Constraint {
    name: Option<String>,
    columns: Vec<usize>,
    primary: bool,
}

pub(super) fn check_create(create: &ast::CreateTable) -> Result<()> {
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

/// The columns and key constraints that CREATE TABLE lists.
pub(super) fn columns_of(
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
        if !ty.is_storable() {
            return Err(SqlError::unsupported(format!("a column of type {ty}")));
        }
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
        ast::ColumnOption::ForeignKey(_) => return Err(SqlError::unsupported("a foreign key")),
        ast::ColumnOption::Check(_) => return Err(SqlError::unsupported("a CHECK constraint")),
        ast::ColumnOption::Generated { .. } => {
            return Err(SqlError::unsupported("a generated or identity column"));
        }
        ast::ColumnOption::Collation(name) => check_collation(name)?,
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

pub(super) fn missing_key_column(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" named in key does not exist"),
    )
}

pub(super) fn table_constraint(
    constraint: &ast::TableConstraint,
    column: &dyn Fn(&str) -> Result<usize>,
) -> Result<Constraint> {
    match constraint {
        ast::TableConstraint::PrimaryKey(key) => Ok(Constraint {
            name: key.name.as_ref().map(ident),
            columns: key_columns(&key.columns, column)?,
            primary: true,
        }),
        ast::TableConstraint::Unique(unique) => {
            check_distinct(&unique.nulls_distinct)?;
            Ok(Constraint {
                name: unique.name.as_ref().map(ident),
                columns: key_columns(&unique.columns, column)?,
                primary: false,
            })
        }
        ast::TableConstraint::ForeignKey(_) => Err(SqlError::unsupported("a foreign key")),
        ast::TableConstraint::Check(_) => Err(SqlError::unsupported("a CHECK constraint")),
        other => Err(SqlError::unsupported(format!("the constraint {other}"))),
    }
}

pub(super) fn new_index(constraint: Constraint, table: u32) -> NewIndex {
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

pub(super) fn fillfactor(options: &ast::CreateTableOptions) -> Result<u8> {
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

fn key_columns(
    list: &[ast::IndexColumn],
    column: &dyn Fn(&str) -> Result<usize>,
) -> Result<Vec<usize>> {
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
}
