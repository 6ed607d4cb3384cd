//! `jsonb_path_query` and its kin: what a `jsonpath` finds in a `jsonb`.

mod access;
mod arith;
mod compare;
mod datetime;
mod eval;
mod item;
mod key_value;
mod layout;
mod method;

use std::cell::RefCell;
use std::rc::Rc;

use millpond_types::jsonb::Json;
use millpond_types::other::{JSONB, JSONPATH};

use super::super::catalog::{BOOL, Param, Proc, other, proc};
use super::super::operators::{Operator, Work, op};
use super::super::row_list::RowList;
use super::super::value::wrong_arguments;
use super::super::{Body, Columns, rows};
use super::{JSONB_TYPE, array_bytes, jsonb, jsonb_value};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Env;
use crate::expr::recent::Recent;
use crate::types::jsonpath::JsonPath;
use crate::{Datum, Value};
use eval::{Document, Evaluation, Stop};
use item::Item;

const PATH: Param = other(JSONPATH);
const ROWS: Columns = &[(None, JSONB_TYPE)];

/// The entries of a function: with variables and whether it is silent, and with defaults for these.
/// Then the same of the function that may ask for the session's time zone.
macro_rules! entries {
    (
        $oid:literal $name:literal, $of_zone:literal $in_zone:literal:
            $result:expr, $body:expr, $body_in_zone:expr
    ) => {
        [
            proc($oid, $name, &[JSONB_TYPE, PATH, JSONB_TYPE, BOOL], $result, $body),
            proc(0, $name, &[JSONB_TYPE, PATH, JSONB_TYPE], $result, $body),
            proc(0, $name, &[JSONB_TYPE, PATH], $result, $body),
            proc($of_zone, $in_zone, &[JSONB_TYPE, PATH, JSONB_TYPE, BOOL], $result, $body_in_zone)
                .stable(),
            proc(0, $in_zone, &[JSONB_TYPE, PATH, JSONB_TYPE], $result, $body_in_zone).stable(),
            proc(0, $in_zone, &[JSONB_TYPE, PATH], $result, $body_in_zone).stable(),
        ]
    };
}

pub(in super::super) static PROCS: &[Proc] = [
    entries!(4005 "jsonb_path_exists", 1177 "jsonb_path_exists_tz": BOOL,
        Body::Datums(exists::<false>), Body::Datums(exists::<true>)),
    entries!(4009 "jsonb_path_match", 2030 "jsonb_path_match_tz": BOOL,
        Body::Datums(matches::<false>), Body::Datums(matches::<true>)),
    entries!(4006 "jsonb_path_query", 1179 "jsonb_path_query_tz": JSONB_TYPE,
        rows(ROWS, query::<false>), rows(ROWS, query::<true>)),
    entries!(4007 "jsonb_path_query_array", 1180 "jsonb_path_query_array_tz": JSONB_TYPE,
        Body::Datums(query_array::<false>), Body::Datums(query_array::<true>)),
    entries!(4008 "jsonb_path_query_first", 2023 "jsonb_path_query_first_tz": JSONB_TYPE,
        Body::Datums(query_first::<false>), Body::Datums(query_first::<true>)),
]
.as_flattened();

pub(in super::super) static OPERATOR_PROCS: &[Proc] = &[
    proc(4010, "jsonb_path_exists_opr", &[JSONB_TYPE, PATH], BOOL, Body::Datums(exists_silently)),
    proc(4011, "jsonb_path_match_opr", &[JSONB_TYPE, PATH], BOOL, Body::Datums(matches_silently)),
];

pub(in super::super) static OPERATORS: &[Operator] = &[
    op("@?", &[JSONB_TYPE, PATH], BOOL, Work::Call("jsonb_path_exists_opr")),
    op("@@", &[JSONB_TYPE, PATH], BOOL, Work::Call("jsonb_path_match_opr")),
];

/// A path; the thread keeps the last ones.
fn parsed(text: &str) -> Result<Rc<JsonPath>> {
    thread_local! {
        static RECENT: RefCell<Recent<(), JsonPath>> = const { RefCell::new(Recent::new()) };
    }
    RECENT.with_borrow_mut(|recent| recent.get(text, (), |text, ()| Ok(JsonPath::parse(text)?)))
}

/// A call's arguments.
struct Call<'a> {
    root: Item<'a>,
    path: Rc<JsonPath>,
    vars: Option<Document<'a>>,
    /// Whether errors of the path are none.
    silent: bool,
    /// Whether dates and times without a zone are in the session's.
    in_zone: bool,
}

impl<'a> Call<'a> {
    fn new(args: &[Datum<'a>], in_zone: bool) -> Result<Self> {
        let [of, Datum::Other(JSONPATH, path), options @ ..] = args else {
            return Err(wrong_arguments(args.len()));
        };
        let (json, bytes) = jsonb(of)?;
        let text = std::str::from_utf8(path).map_err(|_| wrong_arguments(args.len()))?;
        let vars = options.first().map(jsonb).transpose()?;
        if !matches!(vars, None | Some((Json::Object(_), _))) {
            let error = super::invalid("\"vars\" argument is not an object");
            return Err(error.detail(
                "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.",
            ));
        }
        let silent = matches!(options.get(1), Some(Datum::Bool(true)));
        Ok(Self { root: Item::Json(json, bytes), path: parsed(text)?, vars, silent, in_zone })
    }

    fn silently(args: &[Datum<'a>]) -> Result<Self> {
        Ok(Self { silent: true, ..Self::new(args, false)? })
    }

    fn evaluation<'c>(&'c self, env: &'c Env<'c>) -> Evaluation<'c, 'a> {
        Evaluation::new(&self.path, &self.root, self.vars, env).with(self.silent, self.in_zone)
    }

    /// What the path finds. With an error that is silenced, what it had found before.
    fn items(&self, env: &Env<'_>) -> Result<Vec<Item<'a>>> {
        let mut found = Vec::new();
        let evaluation = self.evaluation(env);
        match evaluation.all(&mut found) {
            Err(Stop::Soft(_)) if self.silent => Ok(found),
            Err(Stop::Soft(error) | Stop::Hard(error)) => Err(error),
            Ok(()) | Err(Stop::Enough) => Ok(found),
        }
    }

    fn exists(&self, env: &Env<'_>) -> Result<Value> {
        let evaluation = self.evaluation(env);
        match evaluation.exists() {
            Ok(found) => Ok(Value::Bool(found)),
            Err(Stop::Soft(_)) if self.silent => Ok(Value::Null),
            Err(Stop::Soft(error) | Stop::Hard(error)) => Err(error),
            Err(Stop::Enough) => Ok(Value::Bool(true)),
        }
    }

    fn matches(&self, env: &Env<'_>) -> Result<Value> {
        let found = self.items(env)?;
        match found.as_slice() {
            [Item::Bool(value) | Item::Json(Json::Bool(value), _)] => Ok(Value::Bool(*value)),
            [Item::Null | Item::Json(Json::Null, _)] => Ok(Value::Null),
            _ if self.silent => Ok(Value::Null),
            _ => Err(SqlError::new(
                SqlState::SINGLETON_SQL_JSON_ITEM_REQUIRED,
                "single boolean result is expected",
            )),
        }
    }
}

fn exists<const IN_ZONE: bool>(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    Call::new(args, IN_ZONE)?.exists(env)
}

fn exists_silently(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    Call::silently(args)?.exists(env)
}

fn matches<const IN_ZONE: bool>(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    Call::new(args, IN_ZONE)?.matches(env)
}

fn matches_silently(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    Call::silently(args)?.matches(env)
}

fn query<const IN_ZONE: bool>(args: &[Datum<'_>], list: &mut RowList<'_>) -> Result<()> {
    let found = Call::new(args, IN_ZONE)?.items(list.env)?;
    found.iter().try_for_each(|item| list.push([Value::Other(JSONB, item.bytes()?.into())]))
}

fn query_array<const IN_ZONE: bool>(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let found = Call::new(args, IN_ZONE)?.items(env)?;
    let elements = found.iter().map(Item::bytes).collect::<Result<Vec<_>>>()?;
    array_bytes(elements.iter().map(|bytes| &**bytes)).map(jsonb_value)
}

fn query_first<const IN_ZONE: bool>(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let found = Call::new(args, IN_ZONE)?.items(env)?;
    let first = found.first().map(Item::bytes).transpose()?;
    Ok(first.map_or(Value::Null, |bytes| Value::Other(JSONB, bytes.into())))
}
