//! `regexp_replace`

use super::search::{Matches, at_least};
use super::{flags, invalid};
use crate::error::Result;
use crate::expr::Env;
use crate::expr::func::string::check_length;
use crate::expr::regex::{self, Groups, Options};

/// `regexp_replace(text, pattern, replacement, flags)`
pub(super) fn with_flags(
    s: &str,
    pattern: &str,
    new: &str,
    letters: &str,
    env: &Env<'_>,
) -> Result<String> {
    // A number here was probably meant as the place where to start.
    if letters.starts_with(|c: char| c.is_ascii_digit()) {
        let first = letters.chars().next().unwrap_or('0');
        return Err(invalid(format!("invalid regular expression option: \"{first}\"")).hint(
            "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
        ));
    }
    let (options, global) = flags(letters)?;
    replace(s, pattern, new, options, (1, usize::from(!global)), env)
}

/// The same from a place on; the match with number `n`, or all if it is 0.
pub(super) fn extended(
    s: &str,
    pattern: &str,
    new: &str,
    (start, n): (i32, i32),
    letters: &str,
    env: &Env<'_>,
) -> Result<String> {
    let start = at_least("start", start, 1)?;
    let n = at_least("n", n, 0)?;
    let (options, _) = flags(letters)?;
    replace(s, pattern, new, options, (start, n), env)
}

/// The text with matches replaced: the one with number `n`, or all if it is 0.
pub(super) fn replace(
    s: &str,
    pattern: &str,
    new: &str,
    options: Options,
    (start, n): (usize, usize),
    env: &Env<'_>,
) -> Result<String> {
    let regex = regex::compiled(pattern, options)?;
    let text: Vec<char> = s.chars().collect();
    let mut matches = Matches { regex: &regex, text: &text, next: start - 1 };
    let mut out = String::new();
    let (mut copied, mut number) = (0, 0);
    while let Some(groups) = matches.next(env)? {
        number += 1;
        if n > 0 && number < n {
            continue;
        }
        let Some(&Some((from, to))) = groups.first() else { break };
        out.extend(&text[copied..from]);
        append(new, &text, &groups, &mut out);
        check_length(out.len())?;
        env.check_stop()?;
        copied = to;
        if n > 0 {
            break;
        }
    }
    out.extend(&text[copied..]);
    check_length(out.len())?;
    Ok(out)
}

/// Appends a replacement, in which `\1` to `\9` and `\&` stand for what has been matched.
fn append(new: &str, text: &[char], groups: &Groups, out: &mut String) {
    let mut chars = new.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let group = match chars.next() {
            Some('&') => 0,
            Some(digit @ '1'..='9') => digit as usize - '0' as usize,
            Some('\\') | None => {
                out.push('\\');
                continue;
            }
            Some(other) => {
                out.extend(['\\', other]);
                continue;
            }
        };
        if let Some(&Some((from, to))) = groups.get(group) {
            out.extend(&text[from..to]);
        }
    }
}
