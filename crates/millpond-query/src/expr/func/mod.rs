//! Scalar functions: the catalog of what there is, how a call chooses, and what they compute.

mod address;
pub(super) mod array;
mod backend;
mod backend_io;
mod bytes;
pub(crate) mod catalog;
mod conditional;
mod conversions;
mod datetime;
mod describe;
mod digest;
mod encoding;
mod float;
mod hash;
mod hash_values;
mod identifier;
mod identity;
mod in_range;
mod index_method;
mod index_property;
mod integer;
mod json;
mod keywords;
mod large_object;
mod lsn;
mod no_rows;
mod numeric;
mod object_facts;
mod object_name;
pub(super) mod operator_functions;
pub(crate) mod operators;
pub(super) mod pattern;
mod privilege;
mod quote;
pub(super) mod record;
mod reg;
mod relation;
mod replication;
pub(super) mod resolve;
mod row_list;
pub(crate) mod row_transactions;
mod send;
mod sequence;
mod series;
mod server;
mod session;
mod session_facts;
mod size;
mod stat_counters;
mod steps;
mod storage;
mod string;
mod system;
mod template;
mod transaction_ids;
mod transitions;
mod unicode;
mod upgrade;
mod uuid;
mod value;
pub(super) mod variadic;

use super::{Env, Expr, Val};
use crate::error::{Result, SqlError, SqlState};
use crate::{DataType, Datum, Value};
use catalog::{Param, Proc, Volatility};
use row_list::RowList;

pub(super) use conditional::type_name;
pub(in crate::expr) use datetime::{DATE_IN_ORDER, DATE_IN_ORDER_OF_ZONE};
pub(crate) use datetime::{interval as interval_math, timestamp_plus, timestamptz_plus};
pub(super) use float::{overflow, power, underflow};
pub(crate) use json::aggregate as json_aggregate;
pub(in crate::expr) use json::{FILLED, definition};
pub use quote::quoted_name;
pub use series::Series;
pub use string::check_length;
pub use system::format_type;
pub(crate) use system::type_named;

/// What computes a function.
#[derive(Clone, Copy)]
enum Body {
    /// A function of values.
    Datums(fn(&[Datum<'_>], &Env<'_>) -> Result<Value>),
    /// One that evaluates its arguments itself.
    Exprs(for<'a> fn(&'a [Expr], &Env<'a>) -> Result<Val<'a>>),
    /// The function of an operator: the binder makes the operator of a call.
    OfOperator(operator_functions::OfOperator),
    /// A cast by the name of its type: the binder makes a cast of a call.
    Conversion,
    /// A function of advisory locks.
    Lock(crate::advisory::Advisory),
    /// A function that returns rows.
    Rows(Rows),
    /// One whose rows have the columns that its call defines.
    Records(Records),
    /// A function that may sleep.
    Sleep(fn(&[Datum<'_>], &Env<'_>) -> Result<Value>),
}

/// The columns of a function that returns rows. One without a name is called like the function.
type Columns = &'static [(Option<&'static str>, Param)];

type Make<T> = fn(&[Datum<'_>], &Env<'_>) -> Result<T>;

type MakeAll = fn(&[Datum<'_>], &mut RowList<'_>) -> Result<()>;

/// What makes the rows of a function.
#[derive(Clone, Copy)]
enum RowsOf {
    /// All of them at once.
    All(MakeAll),
    /// One after the other.
    Series(Make<Series>),
}

/// A function that returns rows: the names and types of their columns, and what makes them.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    columns: Columns,
    /// Whether there may be any number of them, not just one.
    is_set: bool,
    body: RowsOf,
}

/// A function whose rows are made at once.
const fn rows(columns: Columns, body: MakeAll) -> Body {
    Body::Rows(Rows { columns, is_set: true, body: RowsOf::All(body) })
}

/// A function that returns one record.
const fn one_row(columns: Columns, body: MakeAll) -> Body {
    Body::Rows(Rows { columns, is_set: false, body: RowsOf::All(body) })
}

/// The columns that a call defines: `AS (a int, b text)`.
pub(crate) type Definition = [(String, DataType)];

/// A function that returns records, of whatever columns.
#[derive(Clone, Copy)]
struct Records {
    /// Whether it returns any number of them, not just one.
    is_set: bool,
    body: fn(&[Datum<'_>], &Definition, &mut RowList<'_>) -> Result<()>,
}

/// A function that the binder has chosen: an entry of the catalog.
#[derive(Clone, Copy)]
pub struct Func(&'static Proc);

impl PartialEq for Func {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Func {}

impl std::fmt::Debug for Func {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Func {
    pub(super) fn new(proc: &'static Proc) -> Self {
        Func(proc)
    }

    /// How it is computed of small decimal numbers, if it can be.
    pub(super) fn of_small(self) -> Option<catalog::OfSmall> {
        self.0.small
    }

    /// The function of that name with these arguments, for what the binder itself calls.
    pub(crate) fn exactly(name: &str, args: &[Param]) -> Result<Self> {
        let found = catalog::named(name).iter().find(|proc| proc.args == args);
        found.map(|proc| Func(proc)).ok_or_else(|| SqlError::internal(format!("no {name}")))
    }

    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether it is `substring` by a regular expression, which shares its name with others.
    pub(crate) fn searches_by_pattern(self) -> bool {
        self.0.name == "substring" && self.0.args.get(1) == Some(&catalog::TEXT)
    }

    /// Whether it can give another value at each call.
    pub(crate) fn is_volatile(self) -> bool {
        self.0.volatility == Volatility::Volatile
    }

    /// Whether it returns nothing, which shows as an empty text of type `void`.
    pub(crate) fn is_void(self) -> bool {
        self.0.result == Param::Void
    }

    /// Whether the same arguments always have the same result.
    pub(crate) fn is_immutable(self) -> bool {
        self.0.volatility == Volatility::Immutable
    }

    /// Whether its result depends on nothing but its arguments, and it has one result.
    pub(crate) fn depends_on_arguments(self) -> bool {
        self.is_immutable() && matches!(self.0.body, Body::Datums(_) | Body::Exprs(_))
    }

    /// Whether it is NULL where an argument is NULL, without being called.
    pub(crate) fn is_strict(self) -> bool {
        self.0.strict && !self.0.takes_variadic_array() && !self.0.makes_rows()
    }

    /// The columns of a function that returns rows.
    pub(crate) fn columns(self) -> Option<Columns> {
        match self.0.body {
            Body::Rows(rows) => Some(rows.columns),
            _ => None,
        }
    }

    /// The rows that a function returns.
    pub(crate) fn rows(self, args: &[Value], env: &Env<'_>) -> Result<Series> {
        let Body::Rows(rows) = self.0.body else {
            return Err(SqlError::internal("a function that returns no rows"));
        };
        if self.0.strict && args.iter().any(Value::is_null) {
            let row = if rows.is_set { Vec::new() } else { vec![Value::Null; rows.columns.len()] };
            return Ok(Series::one_row(row));
        }
        let datums: Vec<Datum<'_>> = args.iter().map(Value::as_datum).collect();
        match rows.body {
            RowsOf::All(body) => {
                let mut list = RowList::new(env);
                body(&datums, &mut list)?;
                Ok(list.into_series(rows.columns.len()))
            }
            RowsOf::Series(body) => body(&datums, env),
        }
    }

    /// Whether it returns rows, or records of several columns.
    pub(crate) fn makes_rows(self) -> bool {
        self.0.makes_rows()
    }

    /// Whether each call has to define the columns of its rows.
    pub(crate) fn needs_definition(self) -> bool {
        matches!(self.0.body, Body::Records(_))
    }

    /// Whether its rows have the columns of its first argument, which it fills.
    pub(crate) fn fills_rows(self) -> bool {
        self.needs_definition() && self.0.takes_a_row()
    }

    /// The rows that a function returns whose call defines their columns.
    pub(crate) fn records(
        self,
        args: &[Value],
        columns: &Definition,
        env: &Env<'_>,
    ) -> Result<Series> {
        let Body::Records(Records { body, .. }) = self.0.body else {
            return Err(SqlError::internal("a function whose columns are known"));
        };
        let datums: Vec<Datum<'_>> = args.iter().map(Value::as_datum).collect();
        let mut list = RowList::new(env);
        body(&datums, columns, &mut list)?;
        Ok(list.into_series(columns.len()))
    }

    /// Whether it may wait, or does what can't be done twice.
    pub(crate) fn waits(self) -> bool {
        matches!(self.0.body, Body::Lock(_) | Body::Sleep(_))
    }

    /// Whether it makes time stamps of dates, to compare them with time stamps without zone.
    pub(crate) fn is_date_in_order(self) -> bool {
        std::ptr::eq(self.0, &datetime::DATE_IN_ORDER)
    }

    /// Whether it makes time stamps of dates, to compare them with time stamps.
    pub(crate) fn is_moment_of_date(self) -> bool {
        self.is_date_in_order() || std::ptr::eq(self.0, &datetime::DATE_IN_ORDER_OF_ZONE)
    }

    /// The type of its result, if that does not depend on its arguments.
    pub fn result_type(self) -> Option<DataType> {
        match self.0.result {
            Param::Type(ty) => Some(ty),
            _ => None,
        }
    }

    /// Whether it takes or gives back an advisory lock.
    pub(crate) fn locks(self) -> bool {
        matches!(self.0.body, Body::Lock(_))
    }
}

/// Calls a function.
pub(super) fn call<'a>(func: Func, args: &'a [Expr], env: &Env<'a>) -> Result<Val<'a>> {
    let proc = func.0;
    if let Body::Exprs(body) = proc.body {
        return body(args, env);
    }
    // Collecting the arguments costs as much as most calls.
    match args {
        [a] => call_with(proc, &[a.operand(env, &mut Val::null())?], env),
        [a, b] => {
            let held = &mut [Val::null(), Val::null()];
            let [of_a, of_b] = held;
            call_with(proc, &[a.operand(env, of_a)?, b.operand(env, of_b)?], env)
        }
        [a, b, c] => {
            let held = &mut [Val::null(), Val::null(), Val::null()];
            let [of_a, of_b, of_c] = held;
            let args = [a.operand(env, of_a)?, b.operand(env, of_b)?, c.operand(env, of_c)?];
            call_with(proc, &args, env)
        }
        [a, b, c, d] => {
            let held = &mut [Val::null(), Val::null(), Val::null(), Val::null()];
            let [of_a, of_b, of_c, of_d] = held;
            let (a, b) = (a.operand(env, of_a)?, b.operand(env, of_b)?);
            let (c, d) = (c.operand(env, of_c)?, d.operand(env, of_d)?);
            call_with(proc, &[a, b, c, d], env)
        }
        _ => {
            let mut values = smallvec::SmallVec::<[Val<'a>; 4]>::new();
            for arg in args {
                values.push(arg.eval(env)?);
            }
            let datums: smallvec::SmallVec<[Datum<'_>; 4]> =
                values.iter().map(Val::datum).collect();
            call_with(proc, &datums, env)
        }
    }
}

fn call_with<'a>(proc: &Proc, datums: &[Datum<'_>], env: &Env<'_>) -> Result<Val<'a>> {
    if proc.is_null_for(datums) {
        return Ok(Val::Borrowed(Datum::Null));
    }
    let value = match proc.body {
        Body::Datums(body) | Body::Sleep(body) => body(datums, env)?,
        Body::Lock(function) => session::lock(function, datums, env)?,
        Body::Exprs(_) | Body::Conversion | Body::OfOperator(_) => {
            return Err(SqlError::internal("a function that is not called"));
        }
        Body::Rows(_) | Body::Records(_) => return Err(rows_not_accepted()),
    };
    Ok(Val::Owned(value))
}

#[cold]
fn rows_not_accepted() -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        "set-valued function called in context that cannot accept a set",
    )
}

#[cfg(test)]
mod tests;
