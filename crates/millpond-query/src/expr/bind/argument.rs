//! Arguments of calls: by name, with their defaults, and VARIADIC.

use millpond_syntax::tree::{self, FuncCall, Node};
use smallvec::SmallVec;

use super::call::as_result;
use super::call_errors::{signature, undefined};
use super::{Binder, Coercion, Scope, Typed};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::catalog::{self, Param};
use crate::expr::func::resolve::{self, Candidate, Choice, Params};
use crate::expr::func::variadic::{SPREAD, number_of};
use crate::expr::types::Ty;
use crate::expr::{Expr, Func};
use crate::{DataType, Value};

/// What PostgreSQL calls a function's arguments, and the values of those at the end that may be
/// left out.
struct Named {
    function: &'static str,
    arguments: &'static [&'static str],
    defaults: &'static [Default],
}

#[derive(Clone, Copy)]
enum Default {
    Bool(bool),
    Zero(DataType),
    Text(&'static str),
    /// A literal of the argument's type.
    Literal(&'static str),
}

const INT4: Default = Default::Zero(DataType::Int4);

const JSON: &[&str] = &["from_json"];
const ELEMENT: &[&str] = &["from_json", "element_index"];
const FIELD: &[&str] = &["from_json", "field_name"];
const OBJECT: &[&str] = &["classid", "objid", "objsubid"];
const PATH: &[&str] = &["target", "path", "vars", "silent"];
const PATH_DEFAULTS: &[Default] = &[Default::Literal("{}"), Default::Bool(false)];

const fn named(
    function: &'static str,
    arguments: &'static [&'static str],
    defaults: &'static [Default],
) -> Named {
    Named { function, arguments, defaults }
}

static NAMED: &[Named] = &[
    named("aclexplode", &["acl"], &[]),
    named("json_array_element", ELEMENT, &[]),
    named("json_array_element_text", ELEMENT, &[]),
    named("json_array_elements", JSON, &[]),
    named("json_array_elements_text", JSON, &[]),
    named("json_each", JSON, &[]),
    named("json_each_text", JSON, &[]),
    named("json_object_field", FIELD, &[]),
    named("json_object_field_text", FIELD, &[]),
    named(
        "json_populate_record",
        &["base", "from_json", "use_json_as_text"],
        &[Default::Bool(false)],
    ),
    named(
        "json_populate_recordset",
        &["base", "from_json", "use_json_as_text"],
        &[Default::Bool(false)],
    ),
    named("jsonb_array_element", ELEMENT, &[]),
    named("jsonb_array_element_text", ELEMENT, &[]),
    named("jsonb_array_elements", JSON, &[]),
    named("jsonb_array_elements_text", JSON, &[]),
    named("jsonb_each", JSON, &[]),
    named("jsonb_each_text", JSON, &[]),
    named(
        "jsonb_insert",
        &["jsonb_in", "path", "replacement", "insert_after"],
        &[Default::Bool(false)],
    ),
    named("jsonb_object_field", FIELD, &[]),
    named("jsonb_object_field_text", FIELD, &[]),
    named("jsonb_path_exists", PATH, PATH_DEFAULTS),
    named("jsonb_path_exists_tz", PATH, PATH_DEFAULTS),
    named("jsonb_path_match", PATH, PATH_DEFAULTS),
    named("jsonb_path_match_tz", PATH, PATH_DEFAULTS),
    named("jsonb_path_query", PATH, PATH_DEFAULTS),
    named("jsonb_path_query_array", PATH, PATH_DEFAULTS),
    named("jsonb_path_query_array_tz", PATH, PATH_DEFAULTS),
    named("jsonb_path_query_first", PATH, PATH_DEFAULTS),
    named("jsonb_path_query_first_tz", PATH, PATH_DEFAULTS),
    named("jsonb_path_query_tz", PATH, PATH_DEFAULTS),
    named(
        "jsonb_set",
        &["jsonb_in", "path", "replacement", "create_if_missing"],
        &[Default::Bool(true)],
    ),
    named(
        "jsonb_set_lax",
        &["jsonb_in", "path", "replacement", "create_if_missing", "null_value_treatment"],
        &[Default::Bool(true), Default::Text("use_json_null")],
    ),
    named("make_date", &["year", "month", "day"], &[]),
    named(
        "make_interval",
        &["years", "months", "weeks", "days", "hours", "mins", "secs"],
        &[INT4, INT4, INT4, INT4, INT4, INT4, Default::Zero(DataType::Float8)],
    ),
    named("make_time", &["hour", "min", "sec"], &[]),
    named("make_timestamp", &["year", "month", "mday", "hour", "min", "sec"], &[]),
    named("make_timestamptz", &["year", "month", "mday", "hour", "min", "sec", "timezone"], &[]),
    named("parse_ident", &["str", "strict"], &[Default::Bool(true)]),
    named("pg_get_object_address", &["type", "object_names", "object_args"], &[]),
    named("pg_identify_object", OBJECT, &[]),
    named("pg_identify_object_as_address", OBJECT, &[]),
    named("pg_options_to_table", &["options_array"], &[]),
    named("pg_sequence_parameters", &["sequence_oid"], &[]),
    named("pg_terminate_backend", &["pid", "timeout"], &[Default::Zero(DataType::Int8)]),
];

impl Default {
    fn value(self) -> Typed {
        let (value, ty) = match self {
            Default::Bool(value) => (Value::Bool(value), DataType::Bool),
            Default::Zero(DataType::Float8) => (Value::Float8(0.0), DataType::Float8),
            Default::Zero(DataType::Int8) => (Value::Int8(0), DataType::Int8),
            Default::Zero(_) => (Value::Int4(0), DataType::Int4),
            Default::Text(text) => (Value::Text(text.to_owned()), DataType::Text),
            Default::Literal(text) => {
                let expr = Expr::Const(Value::Text(text.to_owned()));
                return Typed { expr, ty: Ty::Unknown };
            }
        };
        Typed::known(Expr::Const(value), ty)
    }
}

impl Named {
    /// The value of an argument that is left out.
    fn default(&self, place: usize) -> Option<Typed> {
        let first = self.arguments.len() - self.defaults.len();
        self.defaults.get(place.checked_sub(first)?).map(|default| default.value())
    }

    /// Arguments in the function's order, those that are left out among them; `None` if they
    /// are not those of the function.
    fn arranged(&self, given: Vec<(Option<&str>, Typed)>) -> Option<Vec<Typed>> {
        let mut places: Vec<Option<Typed>> = vec![None; self.arguments.len()];
        let mut end = 0;
        for (at, (name, value)) in given.into_iter().enumerate() {
            let place = match name {
                Some(name) => self.arguments.iter().position(|own| *own == name)?,
                None => at,
            };
            let own = places.get_mut(place)?;
            if own.replace(value).is_some() {
                return None;
            }
            end = end.max(place + 1);
        }
        let mut arranged = Vec::with_capacity(places.len());
        for (place, value) in places.into_iter().enumerate() {
            match value.or_else(|| self.default(place)) {
                Some(value) => arranged.push(value),
                // A shorter form of the function may have no such argument.
                None if place >= end => break,
                None => return None,
            }
        }
        Some(arranged)
    }
}

/// How many arguments a call has at most.
const MAX_ARGUMENTS: usize = 100;

/// Refuses a call with more arguments than there may be.
pub(super) fn check_argument_count(call: &FuncCall) -> Result<()> {
    if call.args.len() <= MAX_ARGUMENTS {
        return Ok(());
    }
    let message = format!("cannot pass more than {MAX_ARGUMENTS} arguments to a function");
    Err(SqlError::new(SqlState::TOO_MANY_ARGUMENTS, message))
}

impl Binder<'_> {
    /// The arguments of a call, in the function's order.
    pub(crate) fn call_arguments(
        &mut self,
        name: &str,
        written: &[tree::Expr],
        at: u32,
        scope: &dyn Scope,
    ) -> Result<Vec<Typed>> {
        let Some(first) = written.iter().position(is_named) else {
            return written.iter().map(|arg| self.bind(arg, scope)).collect();
        };
        let mut given: Vec<(Option<&str>, Typed)> = Vec::with_capacity(written.len());
        for (place, arg) in written.iter().enumerate() {
            let (own, value) = match &arg.node {
                Node::NamedArgExpr(own, value) => (Some(&**own), &**value),
                _ => (None, arg),
            };
            let refused = match own {
                None if place > first => {
                    Some("positional argument cannot follow named argument".to_owned())
                }
                Some(own) if given.iter().any(|(other, _)| *other == Some(own)) => {
                    Some(format!("argument name \"{own}\" used more than once"))
                }
                _ => None,
            };
            if let Some(what) = refused {
                let error = SqlError::new(SqlState::SYNTAX_ERROR, what);
                return Err(self.source.place(error, arg.location));
            }
            given.push((own, self.bind(value, scope)?));
        }
        let names: Vec<Option<String>> =
            given.iter().map(|(own, _)| own.map(str::to_owned)).collect();
        let values: Vec<Typed> = given.iter().map(|(_, value)| value.clone()).collect();
        let known = NAMED.iter().find(|known| known.function == name);
        let arranged = known.and_then(|known| known.arranged(given));
        let fits = |args: &Vec<Typed>| {
            catalog::named(name).iter().any(|proc| proc.args.len() == args.len())
        };
        arranged.filter(fits).ok_or_else(|| {
            let error = undefined(name, &signature(name, &names, &values));
            self.source.place(error, at)
        })
    }

    /// `name(..., VARIADIC array)`: a call with the array's elements as arguments.
    pub(super) fn variadic_call(
        &mut self,
        name: &str,
        call: &FuncCall,
        mut args: Vec<Typed>,
    ) -> Result<Typed> {
        // Those without a number are what operators call.
        let fits = |proc: &&&catalog::Proc| proc.args.len() == args.len() && proc.oid != 0;
        let found: Vec<_> = catalog::named(name).iter().filter(fits).copied().collect();
        if !found.iter().any(|proc| proc.variadic) {
            return self.call(name, args);
        }
        let candidates = found.into_iter().map(|proc| {
            let mut params = Params::from_slice(proc.args);
            if let Some(last) = params.last_mut().filter(|_| proc.variadic) {
                *last = of_elements(*last);
            }
            Candidate { item: proc, params }
        });
        let types: SmallVec<[Ty; 4]> = args.iter().map(|arg| arg.ty).collect();
        let chosen = match resolve::choose(candidates.collect(), &types) {
            Choice::One(chosen) => chosen,
            Choice::None | Choice::Ambiguous => {
                let names = vec![None; args.len()];
                return Err(undefined(name, &signature(name, &names, &args)));
            }
        };
        let proc = chosen.item;
        if !proc.variadic {
            return self.call(name, args);
        }
        let of_any = proc.args.last() == Some(&Param::Any);
        let is_array = matches!(args.last(), Some(Typed { ty: Ty::Known(ty), .. })
            if ty.element().is_some());
        if of_any && !is_array {
            let error =
                SqlError::new(SqlState::DATATYPE_MISMATCH, "VARIADIC argument must be an array");
            return Err(match call.args.last() {
                Some(array) => self.place_at(error, array),
                None => error,
            });
        }
        let Some(array) = args.pop() else { return Err(SqlError::internal("no arguments")) };
        let array = match chosen.params.last() {
            Some(Param::Type(ty)) => self.coerce(array, *ty, Coercion::Implicit)?,
            _ => array.expr,
        };
        let (fixed, element) = self.arguments(args, &chosen.params)?;
        let mut all = vec![Expr::Const(Value::Int4(number_of(proc)?)), array];
        all.extend(fixed);
        Ok(as_result(Expr::Func(Func::new(&SPREAD), all), proc.result, element))
    }
}

fn is_named(arg: &tree::Expr) -> bool {
    matches!(arg.node, Node::NamedArgExpr(..))
}

/// What an array of such arguments is.
fn of_elements(param: Param) -> Param {
    match param {
        Param::Type(ty) => ty.array().map_or(param, Param::Type),
        other => other,
    }
}
