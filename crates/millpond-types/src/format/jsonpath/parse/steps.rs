//! The steps of a path: names, subscripts, levels, filters and methods.

use super::super::lexer::Token;
use super::super::{Method, Step};
use super::Parser;
use crate::error::Result;

impl Parser<'_> {
    pub(super) fn step(&mut self) -> Result<Step> {
        if self.eat("[")? {
            return self.subscript();
        }
        if self.eat("?")? {
            self.expect("(")?;
            self.filters += 1;
            let inner = self.or()?;
            self.filters -= 1;
            let inner = self.predicate(inner)?;
            self.expect(")")?;
            return Ok(Step::Filter(inner));
        }
        self.expect(".")?;
        if self.eat("*")? {
            return Ok(Step::AnyKey);
        }
        if self.eat("**")? {
            return self.levels();
        }
        match self.take()? {
            Token::String(key) => Ok(Step::Key(key)),
            Token::Name(name) if self.is_sign("(") => self.method(&name),
            Token::Name(key) => Ok(Step::Key(key)),
            other => {
                self.token = other;
                Err(self.unexpected())
            }
        }
    }

    fn method(&mut self, name: &str) -> Result<Step> {
        let name = name.to_ascii_lowercase();
        let method = Method::of(&name);
        if method.is_none() && name != "datetime" {
            return Err(self.unexpected());
        }
        self.expect("(")?;
        let step = match (method, &self.token) {
            (Some(method), _) => Step::Method(method),
            (None, Token::String(_)) => Step::Datetime(Some(self.string()?)),
            (None, _) => Step::Datetime(None),
        };
        self.expect(")")?;
        Ok(step)
    }

    fn subscript(&mut self) -> Result<Step> {
        if self.eat("*")? {
            self.expect("]")?;
            return Ok(Step::AnyArray);
        }
        self.subscripts += 1;
        let mut list = Vec::new();
        loop {
            let from = self.or()?;
            let from = *self.value(from)?;
            let to = match self.eat_word("to")? {
                true => {
                    let to = self.or()?;
                    Some(*self.value(to)?)
                }
                false => None,
            };
            list.push((from, to));
            if !self.eat(",")? {
                break;
            }
        }
        self.subscripts -= 1;
        self.expect("]")?;
        Ok(Step::Index(list))
    }

    fn levels(&mut self) -> Result<Step> {
        if !self.eat("{")? {
            return Ok(Step::Any(0, Step::LAST_LEVEL));
        }
        let first = self.level()?;
        let last = if self.eat_word("to")? { self.level()? } else { first };
        self.expect("}")?;
        Ok(Step::Any(first, last))
    }

    fn level(&mut self) -> Result<u32> {
        if self.eat_word("last")? {
            return Ok(Step::LAST_LEVEL);
        }
        let Token::Number(number) = &self.token else { return Err(self.unexpected()) };
        let level = number.parse::<i32>().ok().and_then(|level| u32::try_from(level).ok());
        let level = level.ok_or_else(|| self.unexpected())?;
        self.take()?;
        Ok(level)
    }
}
