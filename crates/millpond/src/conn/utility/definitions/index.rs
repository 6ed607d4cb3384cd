//! CREATE INDEX's columns and options as the catalog's definitions.

use millpond_engine::catalog::{IndexColumn, TableDef};
use millpond_syntax::tree::{DefElem, IndexElem, IndexKey, IndexStmt, SortByDir, SortByNulls};
use millpond_types::key::KeyOrder;

use millpond_query::error::{Result, SqlError, SqlState};
use millpond_query::expr::bind::undefined_column;
use millpond_query::parse::{check_collation, option_text};
use millpond_query::plan::is_system_column;

/// Refuses kinds of indexes that are not there.
pub(super) fn check_index(create: &IndexStmt) -> Result<()> {
    if create.concurrent {
        return Err(SqlError::unsupported("CREATE INDEX CONCURRENTLY"));
    }
    if create.where_clause.is_some() {
        return Err(SqlError::unsupported("a partial index"));
    }
    if !create.index_including_params.is_empty() {
        return Err(SqlError::unsupported("INCLUDE"));
    }
    if create.nulls_not_distinct {
        return Err(SqlError::unsupported("NULLS NOT DISTINCT"));
    }
    if create.table_space.is_some() {
        return Err(SqlError::unsupported("a tablespace"));
    }
    match create.access_method.as_deref() {
        None | Some("btree") => {}
        Some(other) => return Err(SqlError::unsupported(format!("an index of kind {other}"))),
    }
    Ok(())
}

pub(super) fn index_columns(list: &[IndexElem], table: &TableDef) -> Result<Vec<IndexColumn>> {
    let mut found = Vec::with_capacity(list.len());
    for item in list {
        if item.opclass.is_some() {
            return Err(SqlError::unsupported("an operator class"));
        }
        if let Some(collation) = &item.collation {
            check_collation(collation)?;
        }
        let IndexKey::Name(name) = &item.key else {
            return Err(SqlError::unsupported("an index on an expression"));
        };
        let column = table.column(name).ok_or_else(|| {
            if is_system_column(name) {
                let message = "index creation on system columns is not supported";
                return SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            }
            let known = table.columns.iter().map(|column| column.name.as_str());
            undefined_column(name, None, known)
        })?;
        let descending = item.ordering == SortByDir::Desc;
        let nulls_first = match item.nulls_ordering {
            SortByNulls::Default => descending,
            SortByNulls::First => true,
            SortByNulls::Last => false,
        };
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

pub(super) fn index_fillfactor(options: &[DefElem]) -> Result<u8> {
    let mut found = 90;
    for option in options {
        match &*option.defname {
            "fillfactor" => found = percentage("fillfactor", &option_text(option)?, 10)?,
            "deduplicate_items" => {}
            name => return Err(unrecognized(name)),
        }
    }
    Ok(found)
}

/// The error of a parameter that neither tables nor indexes have.
pub(super) fn unrecognized(name: &str) -> SqlError {
    let message = format!("unrecognized parameter \"{name}\"");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

pub(super) fn percentage(what: &str, text: &str, least: u8) -> Result<u8> {
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
