//! What an expression may begin with: directors, which choose a syntax, and options.

use super::super::{Options, Syntax, bad};
use super::REPEAT;
use crate::error::Result;

/// Reads directors and options. Returns where the expression itself begins.
pub(super) fn read(text: &[char], options: &mut Options) -> Result<usize> {
    if options.syntax == Syntax::Literal {
        if options.expanded || options.newline_stops || options.newline_anchors {
            return Err(bad("invalid argument to regex function"));
        }
        return Ok(0);
    }
    let mut at = 0;
    match text {
        ['*', '*', '*', '=', ..] => {
            *options = Options {
                ignore_case: options.ignore_case,
                syntax: Syntax::Literal,
                ..Options::default()
            };
            return Ok(4);
        }
        ['*', '*', '*', ':', ..] => {
            options.syntax = Syntax::Advanced;
            at = 4;
        }
        ['*', '*', '*', '?', ..] => return Err(bad("invalid regexp (reg version 0.8)")),
        ['*', '*', '*', _, ..] => return Err(bad(REPEAT)),
        _ => {}
    }
    match text.get(at..) {
        Some(['(', '?', letter, ..])
            if options.syntax == Syntax::Advanced && letter.is_ascii_alphabetic() =>
        {
            embedded(text, at + 2, options)
        }
        _ => Ok(at),
    }
}

/// Options such as `(?xyz)`, from the first letter on. Returns where they end.
fn embedded(text: &[char], mut at: usize, options: &mut Options) -> Result<usize> {
    loop {
        match text.get(at) {
            Some(')') => return Ok(at + 1),
            Some(c) if options.set(*c) => at += 1,
            _ => return Err(bad("invalid embedded option")),
        }
    }
}
