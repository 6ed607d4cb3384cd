//! POSIX's basic syntax, in which backslashes make parentheses and braces what they are elsewhere.

use super::super::bad;
use super::super::node::{Assert, Node};
use super::escape::ESCAPE;
use super::{Atom, Before, Parser, REPEAT};
use crate::error::Result;

impl Parser {
    /// Whether a quantifier comes next. A star at the beginning is a character.
    pub(super) fn at_basic_quantifier(&self) -> bool {
        let is_star = self.peek() == Some('*') && self.before == Before::Other;
        is_star || self.looking_at("\\{")
    }

    pub(super) fn basic_atom(&mut self) -> Result<Atom> {
        if self.at_basic_quantifier() {
            return Err(bad(REPEAT));
        }
        let before = std::mem::replace(&mut self.before, Before::Other);
        if let Some(assert) = self.bracket_condition() {
            return Ok(Atom::Condition(self.add(Node::Assert(assert))?));
        }
        let condition = match self.next() {
            None => return Ok(Atom::Node(self.add(Node::Empty)?)),
            Some('[') => return Ok(Atom::Node(self.bracket()?)),
            Some('.') => return Ok(Atom::Node(self.any_char()?)),
            Some('^') if before == Before::Start => {
                self.before = Before::Anchor;
                Assert::LineStart(self.options.newline_anchors)
            }
            Some('$') => {
                self.skip_comments()?;
                if self.peek().is_some() && !self.looking_at("\\)") {
                    return Ok(Atom::Node(self.char('$')?));
                }
                Assert::LineEnd(self.options.newline_anchors)
            }
            Some('\\') => match self.next().ok_or_else(|| bad(ESCAPE))? {
                '(' => {
                    let group = self.capture()?;
                    self.before = Before::Other;
                    return Ok(group);
                }
                '<' => Assert::WordStart,
                '>' => Assert::WordEnd,
                digit @ '1'..='9' => {
                    let number = digit.to_digit(10).unwrap_or(0) as usize;
                    return Ok(Atom::Node(self.group_again(number)?));
                }
                c => return Ok(Atom::Node(self.char(c)?)),
            },
            Some(c) => return Ok(Atom::Node(self.char(c)?)),
        };
        Ok(Atom::Condition(self.add(Node::Assert(condition))?))
    }
}
