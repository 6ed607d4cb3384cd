//! A path's text, in the one form that PostgreSQL prints.

use std::fmt::{Display, Formatter, Result, Write};

use super::{Arith, Expr, JsonPath, Step};
use crate::format::json::write_string;

impl Display for JsonPath {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if !self.lax {
            f.write_str("strict ")?;
        }
        write_expr(&self.expr, true, f)
    }
}

fn write_quoted(text: &str, f: &mut Formatter<'_>) -> Result {
    let mut bytes = Vec::new();
    write_string(text, &mut bytes);
    f.write_str(&String::from_utf8_lossy(&bytes))
}

/// How strongly an operator binds; more than all operators, what is none.
fn priority(expr: &Expr) -> u8 {
    match expr {
        Expr::Or(..) => 0,
        Expr::And(..) => 1,
        Expr::Compare(..) | Expr::StartsWith(..) => 2,
        Expr::Arith(Arith::Add | Arith::Sub, ..) => 3,
        Expr::Arith(..) => 4,
        Expr::Sign(..) => 5,
        _ => 6,
    }
}

fn write_binary(
    expr: &Expr,
    (left, sign, right): (&Expr, &str, &Expr),
    brackets: bool,
    f: &mut Formatter<'_>,
) -> Result {
    if brackets {
        f.write_char('(')?;
    }
    write_expr(left, priority(left) <= priority(expr), f)?;
    write!(f, " {sign} ")?;
    write_expr(right, priority(right) <= priority(expr), f)?;
    if brackets {
        f.write_char(')')?;
    }
    Ok(())
}

fn write_expr(expr: &Expr, brackets: bool, f: &mut Formatter<'_>) -> Result {
    match expr {
        Expr::Root => f.write_char('$'),
        Expr::Current => f.write_char('@'),
        Expr::Last => f.write_str("last"),
        Expr::Null => f.write_str("null"),
        Expr::Bool(value) => write!(f, "{value}"),
        Expr::Number(number) => write!(f, "{number}"),
        Expr::String(text) => write_quoted(text, f),
        Expr::Variable(name) => {
            f.write_char('$')?;
            write_quoted(name, f)
        }
        Expr::Path(head, steps) => {
            match **head {
                Expr::Number(_) => {
                    f.write_char('(')?;
                    write_expr(head, false, f)?;
                    f.write_char(')')?;
                }
                _ => write_expr(head, true, f)?,
            }
            steps.iter().try_for_each(|step| write_step(step, f))
        }
        Expr::Sign(minus, inner) => {
            let (open, close) = if brackets { ("(", ")") } else { ("", "") };
            write!(f, "{open}{}", if *minus { '-' } else { '+' })?;
            write_expr(inner, priority(inner) <= priority(expr), f)?;
            f.write_str(close)
        }
        Expr::Arith(op, left, right) => write_binary(expr, (left, op.text(), right), brackets, f),
        Expr::And(left, right) => write_binary(expr, (left, "&&", right), brackets, f),
        Expr::Or(left, right) => write_binary(expr, (left, "||", right), brackets, f),
        Expr::Compare(op, left, right) => write_binary(expr, (left, op.text(), right), brackets, f),
        Expr::StartsWith(left, right) => {
            write_binary(expr, (left, "starts with", right), brackets, f)
        }
        Expr::Not(inner) => in_brackets("!(", inner, ")", f),
        Expr::IsUnknown(inner) => in_brackets("(", inner, ") is unknown", f),
        Expr::Exists(inner) => in_brackets("exists (", inner, ")", f),
        Expr::LikeRegex(inner, pattern, flags) => {
            let (open, close) = if brackets { ("(", ")") } else { ("", "") };
            f.write_str(open)?;
            write_expr(inner, priority(inner) <= priority(expr), f)?;
            f.write_str(" like_regex ")?;
            write_quoted(pattern, f)?;
            let letters: String = [
                (flags.ignore_case, 'i'),
                (flags.dot_all, 's'),
                (flags.multi_line, 'm'),
                (flags.quote, 'q'),
            ]
            .iter()
            .filter_map(|(set, letter)| set.then_some(*letter))
            .collect();
            if !letters.is_empty() {
                write!(f, " flag \"{letters}\"")?;
            }
            f.write_str(close)
        }
    }
}

fn in_brackets(open: &str, inner: &Expr, close: &str, f: &mut Formatter<'_>) -> Result {
    f.write_str(open)?;
    write_expr(inner, false, f)?;
    f.write_str(close)
}

fn write_step(step: &Step, f: &mut Formatter<'_>) -> Result {
    match step {
        Step::Key(name) => {
            f.write_char('.')?;
            write_quoted(name, f)
        }
        Step::AnyKey => f.write_str(".*"),
        Step::AnyArray => f.write_str("[*]"),
        Step::Index(list) => {
            f.write_char('[')?;
            for (place, (from, to)) in list.iter().enumerate() {
                if place > 0 {
                    f.write_char(',')?;
                }
                write_expr(from, false, f)?;
                if let Some(to) = to {
                    f.write_str(" to ")?;
                    write_expr(to, false, f)?;
                }
            }
            f.write_char(']')
        }
        Step::Any(first, last) => write_levels(*first, *last, f),
        Step::Filter(predicate) => in_brackets("?(", predicate, ")", f),
        Step::Method(method) => write!(f, ".{}()", method.text()),
        Step::Datetime(template) => {
            f.write_str(".datetime(")?;
            if let Some(template) = template {
                write_quoted(template, f)?;
            }
            f.write_char(')')
        }
    }
}

fn write_levels(first: u32, last: u32, f: &mut Formatter<'_>) -> Result {
    let level = |level: u32| match level {
        Step::LAST_LEVEL => "last".to_owned(),
        level => level.to_string(),
    };
    match (first, last) {
        (0, Step::LAST_LEVEL) => f.write_str(".**"),
        _ if first == last => write!(f, ".**{{{}}}", level(first)),
        _ => write!(f, ".**{{{} to {}}}", level(first), level(last)),
    }
}
