//! The system columns that tell of a row's transactions: `xmin`, `xmax`, `cmin` and `cmax`. Rows
//! are read without them, so each reads its row's header, at the row's place. And `age`, how long
//! ago a transaction was.

use millpond_engine::access::Tid;
use millpond_engine::table::RowTransactions;
use millpond_types::format::xid;
use millpond_types::other::{CID, XID};

use super::catalog::{INT4, INT8, OID, Param, Proc, other, proc};
use super::value::{body, wrong_arguments};
use super::{Body, Func};
use crate::error::{Result, SqlError};
use crate::expr::{Env, Expr};
use crate::{DataType, Datum, Value};

/// The first number of a transaction. Smaller ones have other meanings, and are never young.
const FIRST_XID: u32 = 3;

pub(super) static PROCS: &[Proc] = &[
    of_row("xmin_of_row", other(XID), |row, env| of(row, env, XID, |row| row.xmin.0 as u32)),
    of_row("xmax_of_row", other(XID), |row, env| of(row, env, XID, |row| row.xmax.0 as u32)),
    of_row("cmin_of_row", other(CID), |row, env| of(row, env, CID, |row| row.cid.0)),
    of_row("cmax_of_row", other(CID), |row, env| of(row, env, CID, |row| row.cid.0)),
    // One side of `xmin = 7`.
    proc(
        0,
        "xid_of_number",
        &[INT4],
        other(XID),
        body!(|number: i32| { xid(XID, number.cast_unsigned()) }),
    ),
    proc(1181, "age", &[other(XID)], INT4, body!(env, |xid: Datum<'_>| age(&xid, env))).stable(),
];

/// A function of a table's number and the place of a row in it.
const fn of_row(
    name: &'static str,
    result: Param,
    body: fn(&[Datum<'_>], &Env<'_>) -> Result<Value>,
) -> Proc {
    proc(0, name, &[OID, INT8], result, Body::Datums(body)).stable()
}

/// The system column of that name, of a row whose table and place are these columns.
pub(crate) fn column_of_row(name: &str, table: Expr, place: Expr) -> Result<(Expr, DataType)> {
    let func = Func::exactly(&format!("{name}_of_row"), &[OID, INT8])?;
    let ty = func.result_type().ok_or_else(|| SqlError::internal("a column without a type"))?;
    Ok((Expr::Func(func, vec![table, place]), ty))
}

/// The name of such a column, and the place of its row.
pub(crate) fn as_column_of_row(func: Func, args: &[Expr]) -> Option<(&'static str, &Expr)> {
    let name = func.name().strip_suffix("_of_row")?;
    Some((name, args.get(1)?))
}

/// What a row's header says of its transactions; NULL if there is no row.
fn of(
    row: &[Datum<'_>],
    env: &Env<'_>,
    ty: u32,
    take: fn(RowTransactions) -> u32,
) -> Result<Value> {
    let &[Datum::Int8(table), Datum::Int8(place)] = row else {
        return Err(wrong_arguments(row.len()));
    };
    let Some(session) = env.facts.session else { return Ok(Value::Null) };
    let catalog = session.catalog();
    let table = u32::try_from(table).ok().and_then(|oid| catalog.table(oid));
    let Some(table) = table else { return Ok(Value::Null) };
    let found = session.row_transactions(table, Tid::from_u64(place.cast_unsigned()))?;
    Ok(found.map_or(Value::Null, |found| xid(ty, take(found))))
}

/// How many transactions have begun since this one.
fn age(xid: &Datum<'_>, env: &Env<'_>) -> Result<i32> {
    let &Datum::Other(XID, bytes) = xid else { return Err(wrong_arguments(1)) };
    let xid = bytes.try_into().map(u32::from_be_bytes).map_err(|_| wrong_arguments(1))?;
    let Some(session) = env.facts.session.filter(|_| xid >= FIRST_XID) else { return Ok(i32::MAX) };
    let now = session.xid().unwrap_or_else(|| session.next_xid());
    Ok((now.0 as u32).wrapping_sub(xid).cast_signed())
}
