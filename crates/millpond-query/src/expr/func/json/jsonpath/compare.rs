//! Predicates of paths: true, false, or unknown (`None`).

use std::cmp::Ordering;

use millpond_types::jsonb::Json;

use super::eval::{Evaluation, Result, Scope, Stop};
use super::item::Item;
use crate::expr::regex::{self, Options, Syntax};
use crate::types::jsonpath::{Compare, Expr, Flags};

type Truth = Option<bool>;

impl<'a> Evaluation<'_, 'a> {
    pub(super) fn truth(&self, expr: &Expr, scope: &Scope<'a>) -> Result<Truth> {
        self.predicates.set(self.predicates.get() + 1);
        let truth = self.truth_within(expr, scope);
        self.predicates.set(self.predicates.get() - 1);
        truth
    }

    fn truth_within(&self, expr: &Expr, scope: &Scope<'a>) -> Result<Truth> {
        let truth = |expr: &Expr| self.unknown_if_wrong(self.truth(expr, scope));
        match expr {
            Expr::And(left, right) => match truth(left)? {
                Some(false) => Ok(Some(false)),
                left => Ok(match truth(right)? {
                    Some(true) => left,
                    right => right,
                }),
            },
            Expr::Or(left, right) => match truth(left)? {
                Some(true) => Ok(Some(true)),
                left => Ok(match truth(right)? {
                    Some(false) => left,
                    right => right,
                }),
            },
            Expr::Not(inner) => Ok(truth(inner)?.map(|value| !value)),
            Expr::IsUnknown(inner) => Ok(Some(truth(inner)?.is_none())),
            Expr::Exists(inner) => self.unknown_if_wrong(self.has_any(inner, scope).map(Some)),
            Expr::Compare(op, left, right) => {
                let right = self.operand(right, scope);
                self.pairs(left, right, scope, |a, b| self.compare(*op, a, b))
            }
            Expr::StartsWith(left, right) => {
                let right = self.operand(right, scope);
                self.pairs(left, right, scope, |a, b| match (a.text(), b.text()) {
                    (Some(text), Some(prefix)) => Ok(Some(text.starts_with(prefix))),
                    _ => Ok(None),
                })
            }
            Expr::LikeRegex(left, pattern, flags) => {
                self.pairs(left, Ok(vec![Item::Null]), scope, |a, _| match a.text() {
                    Some(text) => self.is_like(text, pattern, *flags).map(Some),
                    None => Ok(None),
                })
            }
            _ => Ok(None),
        }
    }

    /// Errors of the path within a predicate make it unknown.
    pub(super) fn unknown_if_wrong(&self, truth: Result<Truth>) -> Result<Truth> {
        match truth {
            Err(Stop::Soft(_)) => Ok(None),
            other => other,
        }
    }

    /// Whether a test holds for a pair of items. In lax mode one pair for which it holds decides.
    /// In strict mode one for which it is unknown does.
    fn pairs(
        &self,
        left: &Expr,
        right: Result<Vec<Item<'a>>>,
        scope: &Scope<'a>,
        test: impl Fn(&Item<'a>, &Item<'a>) -> Result<Truth>,
    ) -> Result<Truth> {
        let (left, right) = match (self.operand(left, scope), right) {
            (Err(Stop::Soft(_)), _) => return Ok(None),
            (Err(stop), _) => return Err(stop),
            (Ok(_), Err(Stop::Soft(_))) => return Ok(None),
            (Ok(_), Err(stop)) => return Err(stop),
            (Ok(left), Ok(right)) => (left, right),
        };
        let (mut holds, mut unknown) = (false, false);
        for (a, b) in left.iter().flat_map(|a| right.iter().map(move |b| (a, b))) {
            self.tick()?;
            match test(a, b)? {
                None if !self.is_lax() => return Ok(None),
                None => unknown = true,
                Some(true) if self.is_lax() => return Ok(Some(true)),
                Some(true) => holds = true,
                Some(false) => {}
            }
        }
        Ok(match (holds, unknown) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        })
    }

    fn is_like(&self, text: &str, pattern: &str, flags: Flags) -> Result<bool> {
        let options = Options {
            ignore_case: flags.ignore_case,
            newline_stops: !flags.dot_all && !flags.quote,
            newline_anchors: flags.multi_line && !flags.quote,
            expanded: false,
            syntax: if flags.quote { Syntax::Literal } else { Syntax::Advanced },
        };
        let regex = regex::compiled(pattern, options)?;
        Ok(regex.is_match(text, &|| self.env().check_long_work())?)
    }
    /// Values of different types compare only with `null`, and containers with nothing.
    fn compare(&self, op: Compare, a: &Item<'_>, b: &Item<'_>) -> Result<Truth> {
        let order = match (a.json(), b.json()) {
            (Some(Json::Null), Some(Json::Null)) => Some(Ordering::Equal),
            (Some(Json::Null), _) | (_, Some(Json::Null)) => return Ok(Some(op == Compare::Ne)),
            (Some(Json::Bool(a)), Some(Json::Bool(b))) => Some(a.cmp(&b)),
            (Some(Json::Number(a)), Some(Json::Number(b))) => Some(a.cmp(&b)),
            (Some(Json::String(a)), Some(Json::String(b))) => Some(a.as_bytes().cmp(b.as_bytes())),
            _ => match (a, b) {
                (Item::DateTime(a), Item::DateTime(b)) => self.order(*a, *b)?,
                _ => None,
            },
        };
        Ok(order.map(|order| holds(op, order)))
    }
}

fn holds(op: Compare, order: Ordering) -> bool {
    match op {
        Compare::Eq => order.is_eq(),
        Compare::Ne => order.is_ne(),
        Compare::Lt => order.is_lt(),
        Compare::Gt => order.is_gt(),
        Compare::Le => order.is_le(),
        Compare::Ge => order.is_ge(),
    }
}
