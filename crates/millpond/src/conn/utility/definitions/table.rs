//! CREATE TABLE's columns, constraints and options as the catalog's definitions.

use millpond_engine::catalog::{ColumnDef, IndexColumn, NewIndex};
use millpond_syntax::tree::{
    self, ConstrType, CreateStmt, DefElem, KeyConstraint, Name, Persistence, TableElement,
};
use millpond_types::key::KeyOrder;

use super::index::{percentage, unrecognized};
use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::parse::{Source, check_collation, data_type, option_text};
use millpond_query::plan::{default_value, is_system_column};

/// A primary key or unique constraint that a table is to get.
pub(super) struct Constraint {
    name: Option<String>,
    columns: Vec<usize>,
    primary: bool,
}

pub(super) fn check_create(create: &CreateStmt) -> Result<()> {
    let is_like = |element: &TableElement| matches!(element, TableElement::Like(_));
    let what = if create.relation.relpersistence == Persistence::Temp {
        "a temporary table"
    } else if create.relation.relpersistence == Persistence::Unlogged {
        "an unlogged table"
    } else if create.table_elts.iter().any(is_like) {
        "CREATE TABLE ... LIKE"
    } else if create.partspec.is_some() || create.partbound.is_some() {
        "a partitioned table"
    } else if !create.inh_relations.is_empty() {
        "INHERITS"
    } else if create.of_typename.is_some() {
        "CREATE TABLE ... OF"
    } else if create.access_method.as_deref().is_some_and(|method| method != "heap") {
        "an access method"
    } else if create.tablespacename.is_some() {
        "a tablespace"
    } else {
        return Ok(());
    };
    Err(SqlError::unsupported(what))
}

/// The columns and key constraints that CREATE TABLE lists.
pub(super) fn columns_of(
    create: &CreateStmt,
    source: &Source<'_>,
) -> Result<(Vec<ColumnDef>, Vec<Constraint>)> {
    let mut columns: Vec<ColumnDef> = Vec::with_capacity(create.table_elts.len());
    let mut constraints = Vec::new();
    for element in &create.table_elts {
        let TableElement::Column(column) = element else { continue };
        if is_system_column(&column.colname) {
            let name = &column.colname;
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column name \"{name}\" conflicts with a system column name"),
            ));
        }
        if columns.iter().any(|other| other.name == *column.colname) {
            return Err(SqlError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{}\" specified more than once", column.colname),
            ));
        }
        check_consistent(column, &create.relation.relname, source)?;
        let place = columns.len();
        columns.push(column_of(column, place, source, &mut constraints)?);
    }
    for element in &create.table_elts {
        let TableElement::Constraint(constraint) = element else { continue };
        let found = table_constraint(constraint, source, &|name| {
            columns
                .iter()
                .position(|column| column.name == name)
                .ok_or_else(|| missing_key_column(name))
        })?;
        constraints.push(found);
    }
    if constraints.iter().filter(|c| c.primary).count() > 1 {
        let name = &create.relation.relname;
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

fn column_of(
    column: &tree::ColumnDef,
    place: usize,
    source: &Source<'_>,
    constraints: &mut Vec<Constraint>,
) -> Result<ColumnDef> {
    let Some(type_name) = &column.type_name else {
        return Err(SqlError::internal("a column without a type"));
    };
    let placed = |error| source.place(error, type_name.location);
    let ty = data_type(type_name).map_err(placed)?;
    if !ty.is_storable() {
        return Err(placed(SqlError::unsupported(format!("a column of type {ty}"))));
    }
    if column.compression.is_some() {
        return Err(SqlError::unsupported("COMPRESSION of a column"));
    }
    if let Some(collation) = &column.coll_clause {
        check_collation(&collation.names)?;
    }
    let mut def = ColumnDef::new((*column.colname).to_owned(), ty);
    for constraint in &column.constraints {
        column_constraint(constraint, place, source, &mut def, constraints)?;
    }
    Ok(def)
}

/// Refuses a column that may be NULL and may not, or that has two defaults.
fn check_consistent(column: &tree::ColumnDef, table: &str, source: &Source<'_>) -> Result<()> {
    let (mut nullable, mut has_default) = (None, false);
    for constraint in &column.constraints {
        let is_consistent = match &constraint.contype {
            ConstrType::Null => *nullable.get_or_insert(true),
            ConstrType::NotNull => !*nullable.get_or_insert(false),
            ConstrType::Default(..) => !std::mem::replace(&mut has_default, true),
            _ => true,
        };
        if !is_consistent {
            let what = match &constraint.contype {
                ConstrType::Default(..) => "multiple default values specified",
                _ => "conflicting NULL/NOT NULL declarations",
            };
            let name = &column.colname;
            let message = format!("{what} for column \"{name}\" of table \"{table}\"");
            let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
            return Err(source.place(error, constraint.location));
        }
    }
    Ok(())
}

fn column_constraint(
    constraint: &tree::Constraint,
    place: usize,
    source: &Source<'_>,
    def: &mut ColumnDef,
    constraints: &mut Vec<Constraint>,
) -> Result<()> {
    let name = named(constraint);
    match &constraint.contype {
        ConstrType::Null => {}
        ConstrType::NotNull => def.not_null = true,
        ConstrType::Default(expr, piece) => {
            let text = source.piece(piece.start, piece.end - piece.start);
            // Checked now, so that a bad default is not found out by the first INSERT.
            default_value(expr, *source, &def.name, def.ty)?;
            def.default = Some(text.to_owned());
        }
        ConstrType::Primary(key) => {
            check_key(key)?;
            def.not_null = true;
            constraints.push(Constraint { name, columns: vec![place], primary: true });
        }
        ConstrType::Unique { nulls_not_distinct, key } => {
            check_distinct(*nulls_not_distinct)?;
            check_key(key)?;
            constraints.push(Constraint { name, columns: vec![place], primary: false });
        }
        other => return Err(unsupported(other)),
    }
    Ok(())
}

fn named(constraint: &tree::Constraint) -> Option<String> {
    constraint.conname.as_ref().map(|name| (**name).to_owned())
}

fn check_distinct(nulls_not_distinct: bool) -> Result<()> {
    match nulls_not_distinct {
        true => Err(SqlError::unsupported("NULLS NOT DISTINCT")),
        false => Ok(()),
    }
}

/// Refuses parts of a key's definition that are not there.
fn check_key(key: &KeyConstraint) -> Result<()> {
    let what = if !key.including.is_empty() {
        "INCLUDE"
    } else if key.indexname.is_some() {
        "a constraint over an index that is there"
    } else if key.indexspace.is_some() {
        "a tablespace"
    } else {
        return Ok(());
    };
    Err(SqlError::unsupported(what))
}

fn unsupported(contype: &ConstrType) -> SqlError {
    SqlError::unsupported(match contype {
        ConstrType::Foreign(_) => "a foreign key",
        ConstrType::Check(_) => "a CHECK constraint",
        ConstrType::Exclusion(_) => "an exclusion constraint",
        ConstrType::Generated(_) | ConstrType::Identity { .. } => "a generated or identity column",
        _ => "a constraint that is deferred",
    })
}

pub(super) fn missing_key_column(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" named in key does not exist"),
    )
}

pub(super) fn table_constraint(
    constraint: &tree::Constraint,
    source: &Source<'_>,
    column: &dyn Fn(&str) -> Result<usize>,
) -> Result<Constraint> {
    let (key, primary) = match &constraint.contype {
        ConstrType::Primary(key) => (key, true),
        ConstrType::Unique { nulls_not_distinct, key } => {
            check_distinct(*nulls_not_distinct)?;
            (key, false)
        }
        other => return Err(unsupported(other)),
    };
    check_key(key)?;
    if constraint.deferrable {
        return Err(SqlError::unsupported("a constraint that is deferred"));
    }
    let columns = key_columns(&key.keys, column);
    let columns = columns.map_err(|error| source.place(error, constraint.location))?;
    Ok(Constraint { name: named(constraint), columns, primary })
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

pub(super) fn fillfactor(options: &[DefElem]) -> Result<u8> {
    let mut found = 100;
    for option in options {
        match &*option.defname {
            _ if option.defnamespace.as_deref() == Some("toast") => {}
            "fillfactor" => found = percentage("fillfactor", &option_text(option)?, 10)?,
            "oids" => {}
            name if name.starts_with("autovacuum_") || name.starts_with("toast") => {}
            "parallel_workers"
            | "user_catalog_table"
            | "vacuum_truncate"
            | "vacuum_index_cleanup" => {}
            name => return Err(unrecognized(name)),
        }
    }
    Ok(found)
}

fn key_columns(list: &[Name], column: &dyn Fn(&str) -> Result<usize>) -> Result<Vec<usize>> {
    let mut found = Vec::with_capacity(list.len());
    for name in list {
        let place = column(name)?;
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
