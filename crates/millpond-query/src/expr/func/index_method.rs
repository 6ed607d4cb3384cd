//! Maintenance of indexes of kinds that are not here: each index is a B-tree.

use super::catalog::{INT4, INT8, Proc, REGCLASS_TYPE, VOID, proc};
use super::object_name::with_catalog;
use super::sequence::{Relation, could_not_open, is_relation};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::system_relations::relation_name;

pub(super) static PROCS: &[Proc] = &[
    proc(
        3952,
        "brin_summarize_new_values",
        &[REGCLASS_TYPE],
        INT4,
        body!(env, |of: Relation| refused::<i32>(of, "BRIN", env)),
    )
    .volatile(),
    proc(
        3999,
        "brin_summarize_range",
        &[REGCLASS_TYPE, INT8],
        INT4,
        body!(env, |of: Relation, block: i64| check(block, u32::MAX)
            .and_then(|()| refused::<i32>(of, "BRIN", env))),
    )
    .volatile(),
    proc(
        4014,
        "brin_desummarize_range",
        &[REGCLASS_TYPE, INT8],
        VOID,
        body!(env, |of: Relation, block: i64| check(block, u32::MAX - 1)
            .and_then(|()| refused::<()>(of, "BRIN", env))),
    )
    .volatile(),
    proc(
        3789,
        "gin_clean_pending_list",
        &[REGCLASS_TYPE],
        INT8,
        body!(env, |of: Relation| refused::<i64>(of, "GIN", env)),
    )
    .volatile(),
];

/// Refuses the number of a block behind the last that there can be. The largest of 32 bits stands
/// for all blocks.
fn check(block: i64, last: u32) -> Result<()> {
    if (0..=i64::from(last)).contains(&block) {
        return Ok(());
    }
    let message = format!("block number out of range: {block}");
    Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
}

fn refused<T>(of: Relation, method: &str, env: &Env<'_>) -> Result<T> {
    if !is_relation(of.0, env)? {
        return Err(could_not_open(of.0));
    }
    let (name, is_index) = with_catalog(env, |catalog| {
        (relation_name(catalog, of.0.into()), catalog.index(of.0).is_some())
    })?;
    let message = match is_index {
        true => format!("\"{name}\" is not a {method} index"),
        false => format!("\"{name}\" is not an index"),
    };
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
}
