//! The templates of numbers.

use std::cell::RefCell;
use std::rc::Rc;

use super::date_pattern::quoted;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::recent::Recent;

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Char(char),
    /// `9`
    Nine,
    /// `0`
    Zero,
    /// `.` or `D`
    Point,
    Comma,
    Group,
    Currency,
    Minus,
    Plus,
    Sign,
    /// `RN`; the flag says upper case.
    Roman(bool),
    /// `TH`, likewise.
    Ordinal(bool),
    /// What says something of the whole template, and stands for nothing itself.
    Mark,
}

/// Where the sign that `S` asks for is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Anchor {
    #[default]
    None,
    Before,
    After,
}

/// What a template says as a whole.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pattern {
    /// Digits before the point.
    pub(super) before: usize,
    /// Digits after it.
    pub(super) after: usize,
    /// Digits after `V`.
    pub(super) shift: usize,
    pub(super) anchor: Anchor,
    /// How many digits stand before `S`.
    digits_before_sign: usize,
    /// The place of the first `0`, from 1.
    pub(super) zero_start: usize,
    /// The place of the last `0`.
    pub(super) zero_end: usize,
    pub(super) has_point: bool,
    pub(super) has_zero: bool,
    pub(super) fill: bool,
    pub(super) locale_sign: bool,
    pub(super) brackets: bool,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) roman: bool,
    pub(super) has_shift: bool,
    pub(super) scientific: bool,
    blank: bool,
}

impl Pattern {
    /// The sign goes behind the digits if all of them come before it.
    pub(super) fn settle_sign(&mut self) {
        if self.anchor == Anchor::Before && self.before == self.digits_before_sign {
            self.anchor = Anchor::After;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Nine,
    Zero,
    Comma,
    Point,
    LocalPoint,
    Blank,
    Group,
    Currency,
    Minus,
    Plus,
    Brackets,
    Roman,
    SignHere,
    Sign,
    Ordinal,
    Shift,
    Fill,
    Scientific,
    Nothing,
}

const WORDS: &[(&str, Word)] = &[
    (",", Word::Comma),
    (".", Word::Point),
    ("0", Word::Zero),
    ("9", Word::Nine),
    ("b", Word::Blank),
    ("c", Word::Nothing),
    ("d", Word::LocalPoint),
    ("eeee", Word::Scientific),
    ("fm", Word::Fill),
    ("g", Word::Group),
    ("l", Word::Currency),
    ("mi", Word::Minus),
    ("pl", Word::Plus),
    ("pr", Word::Brackets),
    ("rn", Word::Roman),
    ("sg", Word::SignHere),
    ("sp", Word::Nothing),
    ("s", Word::Sign),
    ("th", Word::Ordinal),
    ("v", Word::Shift),
];

fn wrong(message: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// The parts of a template; the thread keeps the last ones.
pub(super) fn parsed(template: &str) -> Result<Rc<(Vec<Node>, Pattern)>> {
    thread_local! {
        static RECENT: RefCell<Recent<(), (Vec<Node>, Pattern)>> =
            const { RefCell::new(Recent::new()) };
    }
    RECENT.with_borrow_mut(|recent| recent.get(template, (), |text, ()| parse(text)))
}

/// Splits a template into its parts.
fn parse(mut text: &str) -> Result<(Vec<Node>, Pattern)> {
    let (mut nodes, mut pattern) = (Vec::new(), Pattern::default());
    while !text.is_empty() {
        let found = WORDS.iter().find_map(|(name, word)| {
            let (own, rest) = text.split_at_checked(name.len())?;
            let upper = own != *name;
            (own == *name || own == name.to_ascii_uppercase()).then_some((*word, upper, rest))
        });
        if let Some((word, upper, rest)) = found {
            pattern.add(word)?;
            nodes.push(node(word, upper));
            text = rest;
        } else if let Some(rest) = text.strip_prefix('"') {
            text = quoted(rest, &mut |c| nodes.push(Node::Char(c)));
        } else {
            if text.starts_with("\\\"") {
                text = text.get(1..).unwrap_or("");
            }
            let mut chars = text.chars();
            nodes.extend(chars.next().map(Node::Char));
            text = chars.as_str();
        }
    }
    Ok((nodes, pattern))
}

fn node(word: Word, upper: bool) -> Node {
    match word {
        Word::Nine => Node::Nine,
        Word::Zero => Node::Zero,
        Word::Point | Word::LocalPoint => Node::Point,
        Word::Comma => Node::Comma,
        Word::Group => Node::Group,
        Word::Currency => Node::Currency,
        Word::Minus => Node::Minus,
        Word::Plus => Node::Plus,
        Word::SignHere => Node::Sign,
        Word::Roman => Node::Roman(upper),
        Word::Ordinal => Node::Ordinal(upper),
        _ => Node::Mark,
    }
}

impl Pattern {
    fn add(&mut self, word: Word) -> Result<()> {
        if self.scientific && word != Word::Scientific {
            return Err(wrong("\"EEEE\" must be the last pattern used"));
        }
        match word {
            Word::Nine | Word::Zero => return self.add_digit(word),
            Word::Blank => self.blank |= self.before == 0 && self.after == 0 && !self.has_zero,
            Word::Point | Word::LocalPoint => {
                if self.has_point {
                    return Err(wrong("multiple decimal points"));
                }
                if self.has_shift {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.has_point = true;
            }
            Word::Fill => self.fill = true,
            Word::Sign | Word::Minus | Word::Plus | Word::SignHere | Word::Brackets => {
                return self.add_sign(word);
            }
            Word::Roman => self.roman = true,
            Word::Shift => {
                if self.has_point {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.has_shift = true;
            }
            Word::Scientific => return self.add_scientific(),
            _ => {}
        }
        Ok(())
    }

    fn add_digit(&mut self, word: Word) -> Result<()> {
        let is_zero = word == Word::Zero;
        if self.brackets {
            let digit = if is_zero { "0" } else { "9" };
            return Err(wrong(&format!("\"{digit}\" must be ahead of \"PR\"")));
        }
        if !is_zero && self.has_shift {
            self.shift += 1;
            return Ok(());
        }
        if is_zero && !self.has_zero && !self.has_point {
            self.has_zero = true;
            self.zero_start = self.before + 1;
        }
        if self.has_point {
            self.after += 1;
        } else {
            self.before += 1;
        }
        if is_zero {
            self.zero_end = self.before + self.after;
        }
        Ok(())
    }

    fn add_sign(&mut self, word: Word) -> Result<()> {
        let (name, signs) = match word {
            Word::Sign => {
                if self.locale_sign {
                    return Err(wrong("cannot use \"S\" twice"));
                }
                if self.plus || self.minus || self.brackets {
                    return Err(wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
                }
                if !self.has_point {
                    self.anchor = Anchor::Before;
                    self.digits_before_sign = self.before;
                    self.locale_sign = true;
                } else if self.anchor == Anchor::None {
                    self.anchor = Anchor::After;
                    self.locale_sign = true;
                }
                return Ok(());
            }
            Word::Brackets => {
                if self.locale_sign || self.plus || self.minus {
                    return Err(wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                self.brackets = true;
                return Ok(());
            }
            Word::Minus => ("MI", (true, false)),
            Word::Plus => ("PL", (false, true)),
            _ => ("SG", (true, true)),
        };
        if self.locale_sign {
            return Err(wrong(&format!("cannot use \"S\" and \"{name}\" together")));
        }
        self.minus |= signs.0;
        self.plus |= signs.1;
        Ok(())
    }

    fn add_scientific(&mut self) -> Result<()> {
        if self.scientific {
            return Err(wrong("cannot use \"EEEE\" twice"));
        }
        let others = self.blank
            || self.fill
            || self.locale_sign
            || self.brackets
            || self.minus
            || self.plus
            || self.roman
            || self.has_shift;
        if others {
            return Err(wrong("\"EEEE\" is incompatible with other formats").detail(
                "\"EEEE\" may only be used together with digit and decimal point patterns.",
            ));
        }
        self.scientific = true;
        Ok(())
    }
}
