//! How a path is evaluated: steps from one item to those that come next, in the order of the
//! document.
//!
//! In lax mode an array stands for its elements where a step needs something else, and what is not
//! there is no error. Errors that a predicate meets make it unknown.

use std::cell::Cell;

use millpond_types::Numeric;
use millpond_types::jsonb::Json;

use super::datetime::datetime;
use super::item::Item;
use super::key_value::Layouts;
use super::method::is_for_arrays;
use crate::error::{SqlError, SqlState};
use crate::expr::Env;
use crate::memory::ValueRoom;
use crate::types::jsonpath::{Expr, JsonPath, Method, Step};

/// After how many steps an evaluation asks again whether it may go on.
const STEPS_BETWEEN_CHECKS: u32 = 4096;
/// How many steps may follow each other.
const MAX_DEPTH: u32 = 200;

/// Why an evaluation ends early.
pub(super) enum Stop {
    /// The path does not fit the document: an error that can be silenced.
    Soft(SqlError),
    Hard(SqlError),
    /// An item was found, and no other one is needed.
    Enough,
}

pub(super) type Result<T> = std::result::Result<T, Stop>;

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Stop::Hard(error)
    }
}

/// An error of the path.
#[cold]
pub(super) fn soft(sqlstate: SqlState, message: impl Into<String>) -> Stop {
    Stop::Soft(SqlError::new(sqlstate, message))
}

/// Where found items go.
pub(super) struct Found<'l, 'a> {
    pub(super) list: &'l mut Vec<Item<'a>>,
    /// Whether one is enough.
    pub(super) first_only: bool,
}

impl<'a> Found<'_, 'a> {
    pub(super) fn push(&mut self, item: Item<'a>) -> Result<()> {
        if self.list.len() == self.list.capacity() {
            ValueRoom::check(self.list.len() * 2 * size_of::<Item<'_>>())?;
        }
        self.list.push(item);
        if self.first_only { Err(Stop::Enough) } else { Ok(()) }
    }
}

/// A value with its bytes.
pub(super) type Document<'a> = (Json<'a>, &'a [u8]);

/// One evaluation of a path.
pub(super) struct Evaluation<'p, 'a> {
    path: &'p JsonPath,
    root: &'p Item<'a>,
    vars: Option<Document<'a>>,
    env: &'p Env<'p>,
    layouts: Layouts,
    /// How many objects `.keyvalue()` has made.
    made: Cell<u64>,
    /// Whether errors of the path are none.
    silent: bool,
    /// In how many predicates this place is, which errors make unknown.
    pub(super) predicates: Cell<u32>,
    /// Whether dates and times without a zone may be taken as the session's.
    uses_zone: bool,
    steps: Cell<u32>,
    depth: Cell<u32>,
}

/// What the words of a place mean, and how strict it is.
#[derive(Clone)]
pub(super) struct Scope<'a> {
    /// `@`
    pub(super) current: Item<'a>,
    /// `last` plus 1: the length of the array around.
    pub(super) length: usize,
    /// Whether what is not there is no error.
    pub(super) forgiving: bool,
}

impl<'p, 'a> Evaluation<'p, 'a> {
    pub(super) fn new(
        path: &'p JsonPath,
        root: &'p Item<'a>,
        vars: Option<Document<'a>>,
        env: &'p Env<'p>,
    ) -> Self {
        Self {
            path,
            root,
            vars,
            env,
            layouts: Layouts::default(),
            made: Cell::new(0),
            silent: false,
            predicates: Cell::new(0),
            uses_zone: false,
            steps: Cell::new(0),
            depth: Cell::new(0),
        }
    }

    /// The same where errors may be none, and dates and times without a zone in the session's.
    pub(super) fn with(self, silent: bool, uses_zone: bool) -> Self {
        Self { silent, uses_zone, ..self }
    }

    fn is_silent(&self) -> bool {
        self.silent || self.predicates.get() > 0
    }

    pub(super) fn uses_zone(&self) -> bool {
        self.uses_zone
    }

    pub(super) fn is_lax(&self) -> bool {
        self.path.lax
    }

    fn scope(&self) -> Scope<'a> {
        Scope { current: self.root.clone(), length: 0, forgiving: self.path.lax }
    }

    /// All items.
    pub(super) fn all(&self, list: &mut Vec<Item<'a>>) -> Result<()> {
        let mut found = Found { list, first_only: false };
        self.expr(&self.path.expr, &self.scope(), &mut found)
    }

    /// Whether there is an item.
    pub(super) fn exists(&self) -> Result<bool> {
        self.has_any(&self.path.expr, &self.scope())
    }

    /// Whether an expression gives an item. In strict mode all of it must be without errors.
    pub(super) fn has_any(&self, expr: &Expr, scope: &Scope<'a>) -> Result<bool> {
        let mut list = Vec::new();
        let mut found = Found { list: &mut list, first_only: self.path.lax };
        match self.expr(expr, scope, &mut found) {
            Ok(()) | Err(Stop::Enough) => Ok(!list.is_empty()),
            Err(stop) => Err(stop),
        }
    }

    /// The items of an operand. In lax mode arrays are their elements.
    pub(super) fn operand(&self, expr: &Expr, scope: &Scope<'a>) -> Result<Vec<Item<'a>>> {
        let mut list = Vec::new();
        self.expr(expr, scope, &mut Found { list: &mut list, first_only: false })?;
        if self.path.lax && list.iter().any(Item::is_array) {
            let unwrapped = list.into_iter().flat_map(|item| match item.is_array() {
                true => item.parts(),
                false => vec![item],
            });
            return Ok(unwrapped.collect());
        }
        Ok(list)
    }

    pub(super) fn tick(&self) -> Result<()> {
        self.steps.set(self.steps.get().wrapping_add(1));
        if self.steps.get().is_multiple_of(STEPS_BETWEEN_CHECKS) {
            self.env.check_long_work()?;
        }
        Ok(())
    }

    /// Goes one step deeper.
    fn deeper(&self, go: impl FnOnce() -> Result<()>) -> Result<()> {
        let depth = self.depth.get();
        if depth >= MAX_DEPTH {
            let what = "stack depth limit exceeded";
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, what).into());
        }
        self.depth.set(depth + 1);
        let result = go();
        self.depth.set(depth);
        result
    }

    /// The document, and the variables.
    pub(super) fn documents(&self) -> [Option<&'a [u8]>; 2] {
        let root = match self.root {
            Item::Json(_, bytes) => Some(*bytes),
            _ => None,
        };
        [root, self.vars.map(|(_, bytes)| bytes)]
    }

    pub(super) fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// Counts an object that is made, from 1.
    pub(super) fn count_made(&self) -> u64 {
        self.made.set(self.made.get() + 1);
        self.made.get()
    }

    pub(super) fn env(&self) -> &Env<'p> {
        self.env
    }

    pub(super) fn expr(
        &self,
        expr: &Expr,
        scope: &Scope<'a>,
        found: &mut Found<'_, 'a>,
    ) -> Result<()> {
        self.tick()?;
        match expr {
            Expr::Path(head, steps) => {
                if let Some(item) = self.single(head, scope)? {
                    return self.steps(steps, item, scope, found);
                }
                let mut list = Vec::new();
                self.expr(head, scope, &mut Found { list: &mut list, first_only: false })?;
                list.into_iter().try_for_each(|item| self.steps(steps, item, scope, found))
            }
            Expr::Sign(minus, inner) => self.sign(*minus, inner, scope, found),
            Expr::Arith(op, left, right) => {
                let number = self.arith(*op, left, right, scope)?;
                found.push(Item::Number(number))
            }
            _ => match self.single(expr, scope)? {
                Some(item) => found.push(item),
                None => {
                    let truth = self.truth(expr, scope)?;
                    found.push(truth.map_or(Item::Null, Item::Bool))
                }
            },
        }
    }

    /// What is always one item.
    fn single(&self, expr: &Expr, scope: &Scope<'a>) -> Result<Option<Item<'a>>> {
        Ok(Some(match expr {
            Expr::Root => self.root.clone(),
            Expr::Current => scope.current.clone(),
            Expr::Last => {
                let last = i64::try_from(scope.length).unwrap_or(i64::MAX) - 1;
                Item::Number(Numeric::from(last))
            }
            Expr::Null => Item::Null,
            Expr::Bool(value) => Item::Bool(*value),
            Expr::Number(number) => Item::Number(number.clone()),
            Expr::String(text) => Item::Text(text.clone()),
            Expr::Variable(name) => self.variable(name)?,
            _ => return Ok(None),
        }))
    }

    fn variable(&self, name: &str) -> Result<Item<'a>> {
        let found = match self.vars {
            Some((Json::Object(vars), _)) => vars.get(name),
            _ => None,
        };
        let found = found.map(|(json, bytes)| Item::Json(json, bytes));
        found.ok_or_else(|| {
            let what = format!("could not find jsonpath variable \"{name}\"");
            Stop::Hard(SqlError::new(SqlState::UNDEFINED_OBJECT, what))
        })
    }

    /// Follows steps from an item.
    pub(super) fn steps(
        &self,
        steps: &[Step],
        item: Item<'a>,
        scope: &Scope<'a>,
        found: &mut Found<'_, 'a>,
    ) -> Result<()> {
        self.tick()?;
        let Some((step, rest)) = steps.split_first() else { return found.push(item) };
        self.deeper(|| self.step(step, rest, item, self.path.lax, scope, found))
    }

    /// Follows a step from an item, and the rest. `unwraps`: if the item is an array and the step
    /// is not for arrays, it is for the elements.
    fn step(
        &self,
        step: &Step,
        rest: &[Step],
        item: Item<'a>,
        unwraps: bool,
        scope: &Scope<'a>,
        found: &mut Found<'_, 'a>,
    ) -> Result<()> {
        self.tick()?;
        let is_for_arrays = matches!(step, Step::AnyArray | Step::Index(_) | Step::Any(..))
            || matches!(step, Step::Method(method) if is_for_arrays(*method));
        if unwraps && !is_for_arrays && item.is_array() {
            let mut elements = item.parts().into_iter();
            return elements
                .try_for_each(|element| self.step(step, rest, element, false, scope, found));
        }
        match step {
            Step::Key(name) => match (item.member(name), item.json()) {
                (Some(member), _) => self.steps(rest, member, scope, found),
                (None, _) if scope.forgiving => Ok(()),
                (None, Some(Json::Object(_))) => Err(soft(
                    SqlState::SQL_JSON_MEMBER_NOT_FOUND,
                    format!("JSON object does not contain key \"{name}\""),
                )),
                _ => Err(soft(
                    SqlState::SQL_JSON_MEMBER_NOT_FOUND,
                    "jsonpath member accessor can only be applied to an object",
                )),
            },
            Step::AnyKey if matches!(item.json(), Some(Json::Object(_))) => {
                self.each(item.parts(), rest, scope, found)
            }
            Step::AnyKey if scope.forgiving => Ok(()),
            Step::AnyKey => Err(soft(
                SqlState::SQL_JSON_OBJECT_NOT_FOUND,
                "jsonpath wildcard member accessor can only be applied to an object",
            )),
            Step::AnyArray if item.is_array() => self.each(item.parts(), rest, scope, found),
            Step::AnyArray if self.path.lax => self.steps(rest, item, scope, found),
            Step::AnyArray if scope.forgiving => Ok(()),
            Step::AnyArray => Err(soft(
                SqlState::SQL_JSON_ARRAY_NOT_FOUND,
                "jsonpath wildcard array accessor can only be applied to an array",
            )),
            Step::Index(list) => self.index(list, rest, item, scope, found),
            Step::Any(first, last) => {
                let forgiving = Scope { forgiving: true, ..scope.clone() };
                if *first == 0 {
                    match self.steps(rest, item.clone(), &forgiving, found) {
                        // As in PostgreSQL, a silenced error is forgotten if more is below.
                        Err(Stop::Soft(_)) if self.is_silent() && item.is_container() => {}
                        other => other?,
                    }
                }
                self.levels(&item, (*first, *last), rest, &forgiving, found)
            }
            Step::Filter(predicate) => {
                let inner = Scope { current: item.clone(), ..scope.clone() };
                match self.unknown_if_wrong(self.truth(predicate, &inner))? {
                    Some(true) => self.steps(rest, item, scope, found),
                    _ => Ok(()),
                }
            }
            Step::Method(Method::KeyValue) => {
                if rest.is_empty() && found.first_only && item.has_members() {
                    // One is enough, so none is made and counted.
                    return found.push(item);
                }
                self.key_values(&item, |object| self.steps(rest, object, scope, found))
            }
            Step::Method(method) => {
                let mut made = Vec::new();
                self.method(*method, &item, scope, &mut made)?;
                self.each(made, rest, scope, found)
            }
            Step::Datetime(template) => {
                let value = datetime(&item, template.as_deref())?;
                self.steps(rest, value, scope, found)
            }
        }
    }

    fn each(
        &self,
        items: Vec<Item<'a>>,
        rest: &[Step],
        scope: &Scope<'a>,
        found: &mut Found<'_, 'a>,
    ) -> Result<()> {
        items.into_iter().try_for_each(|item| self.steps(rest, item, scope, found))
    }
}
