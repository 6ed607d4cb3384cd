//! What indexes can do: `pg_index_column_has_property` and its kin.

use super::catalog::{BOOL, INT4, OID, Proc, TEXT, proc};
use super::value::body;
use crate::expr::Env;

pub(super) static PROCS: &[Proc] = &[
    proc(
        636,
        "pg_indexam_has_property",
        &[OID, TEXT],
        BOOL,
        body!(|method: i64, property: &str| of_method(method, property)),
    )
    .stable(),
    proc(
        637,
        "pg_index_has_property",
        &[OID, TEXT],
        BOOL,
        body!(env, |index: i64, property: &str| of_index(index, property, env)),
    )
    .stable(),
    proc(
        638,
        "pg_index_column_has_property",
        &[OID, INT4, TEXT],
        BOOL,
        body!(env, |index: i64, column: i32, property: &str| {
            of_column(index, column, property, env)
        }),
    )
    .stable(),
];

/// PostgreSQL's number of the access method `btree`.
const BTREE: i64 = 403;

/// Of an access method. `None` for what is none, and for properties that there are not.
fn of_method(method: i64, property: &str) -> Option<bool> {
    if method != BTREE {
        return None;
    }
    match property.to_ascii_lowercase().as_str() {
        "can_order" | "can_unique" | "can_multi_col" => Some(true),
        "can_exclude" | "can_include" => Some(false),
        _ => None,
    }
}

fn of_index(index: i64, property: &str, env: &Env<'_>) -> Option<bool> {
    let catalog = env.facts.session?.catalog();
    catalog.index(u32::try_from(index).ok()?)?;
    match property.to_ascii_lowercase().as_str() {
        "index_scan" | "backward_scan" => Some(true),
        "clusterable" | "bitmap_scan" => Some(false),
        _ => None,
    }
}

/// Of a column of an index, whose number begins at 1.
fn of_column(index: i64, column: i32, property: &str, env: &Env<'_>) -> Option<bool> {
    let catalog = env.facts.session?.catalog();
    let (_, index) = catalog.index(u32::try_from(index).ok()?)?;
    let place = usize::try_from(column).ok()?.checked_sub(1)?;
    let order = index.columns.get(place)?.order;
    match property.to_ascii_lowercase().as_str() {
        "asc" => Some(!order.descending),
        "desc" => Some(order.descending),
        "nulls_first" => Some(order.nulls_first),
        "nulls_last" => Some(!order.nulls_first),
        "orderable" | "search_array" | "search_nulls" => Some(true),
        "distance_orderable" | "returnable" => Some(false),
        _ => None,
    }
}
