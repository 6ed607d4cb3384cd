//! CREATE INDEX's columns and options as the catalog's definitions.

use millpond_engine::catalog::{IndexColumn, TableDef};
use millpond_engine::types::key::KeyOrder;
use sqlparser::ast;

use crate::error::{Result, SqlError, SqlState};
use crate::expr::bind::undefined_column;
use crate::parse::ident;

/// Refuses kinds of indexes that are not there.
pub(super) fn check_index(create: &ast::CreateIndex) -> Result<()> {
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
    Ok(())
}

pub(super) fn index_columns(
    list: &[ast::IndexColumn],
    table: &TableDef,
) -> Result<Vec<IndexColumn>> {
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

pub(super) fn index_fillfactor(with: &[ast::Expr]) -> Result<u8> {
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

pub(super) fn percentage(what: &str, text: &str, least: u8) -> Result<u8> {
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
