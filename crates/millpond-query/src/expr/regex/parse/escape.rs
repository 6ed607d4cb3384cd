//! Escapes: characters by name or number, classes, constraints, back references.

use super::super::bad;
use super::super::node::{Assert, Node, NodeId};
use super::super::set::{Class, Parts};
use super::{Atom, Parser};
use crate::error::Result;

pub(super) const ESCAPE: &str = "invalid escape \\ sequence";
const BACK_REF: &str = "invalid backreference number";

/// An escape of several digits.
pub(super) enum Decimal {
    /// The number of a group.
    Group(usize),
    /// A character by its number.
    Octal(char),
}

impl Parser {
    /// Hexadecimal digits of an escape.
    fn hex(&mut self, least: usize, most: usize) -> Result<char> {
        let (mut code, mut count) = (0u32, 0);
        while count < most
            && let Some(digit) = self.peek().and_then(|c| c.to_digit(16))
        {
            self.at += 1;
            count += 1;
            code = code.checked_mul(16).ok_or_else(|| bad(ESCAPE))? + digit;
        }
        match char::from_u32(code) {
            Some(c) if count >= least => Ok(c),
            _ => Err(bad(ESCAPE)),
        }
    }

    /// A character that is written as an escape, whose letter has been read; `None` if it is none.
    pub(super) fn char_escape(&mut self, c: char) -> Result<Option<char>> {
        Ok(Some(match c {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'c' => {
                let control = self.next().ok_or_else(|| bad(ESCAPE))?;
                char::from_u32(u32::from(control) & 31).ok_or_else(|| bad(ESCAPE))?
            }
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.hex(4, 4)?,
            'U' => self.hex(8, 8)?,
            'v' => '\x0b',
            'x' => self.hex(1, 255)?,
            '0' => self.octal(0),
            c if !c.is_ascii_alphanumeric() => c,
            _ => return Ok(None),
        }))
    }

    /// The rest of an octal number of at most three digits, below 256.
    pub(super) fn octal(&mut self, first: u32) -> char {
        let mut code = first;
        for _ in 0..2 {
            match self.peek().and_then(|c| c.to_digit(8)) {
                Some(digit) if code * 8 + digit < 256 => {
                    self.at += 1;
                    code = code * 8 + digit;
                }
                _ => break,
            }
        }
        char::from_u32(code).unwrap_or('\0')
    }

    pub(super) fn escape(&mut self) -> Result<Atom> {
        let c = self.next().ok_or_else(|| bad(ESCAPE))?;
        if !self.is_advanced() {
            return Ok(Atom::Node(self.char(c)?));
        }
        let condition = match c {
            'A' => Assert::Start,
            'Z' => Assert::End,
            'm' => Assert::WordStart,
            'M' => Assert::WordEnd,
            'y' => Assert::Boundary,
            'Y' => Assert::NoBoundary,
            '1'..='9' => return Ok(Atom::Node(self.back_ref(c)?)),
            c => {
                if let Some((class, negated)) = class_escape(c) {
                    let classes = vec![(class, negated)];
                    return Ok(Atom::Node(self.set(Parts { classes, ..Parts::default() })?));
                }
                let c = self.char_escape(c)?.ok_or_else(|| bad(ESCAPE))?;
                return Ok(Atom::Node(self.char(c)?));
            }
        };
        Ok(Atom::Condition(self.add(Node::Assert(condition))?))
    }

    /// A back reference, or else an octal number.
    fn back_ref(&mut self, first: char) -> Result<NodeId> {
        match self.decimal(first)? {
            Decimal::Group(number) => self.group_again(number),
            Decimal::Octal(c) => self.char(c),
        }
    }

    /// What an escape with a digit from 1 to 9 is. That digit has been read.
    pub(super) fn decimal(&mut self, first: char) -> Result<Decimal> {
        let start = self.at;
        let mut number = first.to_digit(10).unwrap_or(0) as usize;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.at += 1;
            number = number.saturating_mul(10).saturating_add(digit as usize);
        }
        if self.at == start || number <= self.tree.groups.len() {
            return Ok(Decimal::Group(number));
        }
        self.at = start;
        let first = first.to_digit(8).ok_or_else(|| bad(ESCAPE))?;
        Ok(Decimal::Octal(self.octal(first)))
    }

    /// What a group has matched.
    pub(super) fn group_again(&mut self, number: usize) -> Result<NodeId> {
        match self.tree.groups.get(number.wrapping_sub(1)) {
            None | Some(0) => Err(bad(BACK_REF)),
            Some(_) if self.conditions > 0 => Err(bad(BACK_REF)),
            Some(_) => self.add(Node::BackRef(number)),
        }
    }
}

pub(super) fn class_escape(c: char) -> Option<(Class, bool)> {
    Some(match c {
        'd' => (Class::Digit, false),
        'D' => (Class::Digit, true),
        's' => (Class::Space, false),
        'S' => (Class::Space, true),
        'w' => (Class::Word, false),
        'W' => (Class::Word, true),
        _ => return None,
    })
}
