//! Where a regular expression matches: the places, their number and their texts.

use super::{flags_of, invalid};
use crate::error::Result;
use crate::expr::Env;
use crate::expr::regex::{self, Groups, Options, Regex};

/// A parameter that must not be less than `least`.
pub(super) fn at_least(name: &str, value: i32, least: i32) -> Result<usize> {
    match usize::try_from(value) {
        Ok(number) if value >= least => Ok(number),
        _ => Err(invalid(format!("invalid value for parameter \"{name}\": {value}"))),
    }
}

pub(super) fn regexp_like(s: &str, pattern: &str, letters: &str, env: &Env<'_>) -> Result<bool> {
    let options = flags_of("regexp_like", letters)?;
    regex::compiled(pattern, options)?.is_match(s, &|| env.check_long_work())
}

/// The matches from a place on (counted from 0), one behind the other.
pub(super) struct Matches<'a> {
    pub(super) regex: &'a Regex,
    pub(super) text: &'a [char],
    pub(super) next: usize,
}

impl Matches<'_> {
    pub(super) fn next(&mut self, env: &Env<'_>) -> Result<Option<Groups>> {
        if self.next > self.text.len() {
            return Ok(None);
        }
        let found = self.regex.find(self.text, self.next, &|| env.check_long_work())?;
        if let Some(&Some((start, end))) = found.as_ref().and_then(|groups| groups.first()) {
            // The same empty match would be found again.
            self.next = if start == end { end + 1 } else { end };
        }
        Ok(found)
    }
}

pub(super) fn regexp_count(
    s: &str,
    pattern: &str,
    start: i32,
    letters: &str,
    env: &Env<'_>,
) -> Result<i32> {
    let start = at_least("start", start, 1)?;
    let regex = regex::compiled(pattern, flags_of("regexp_count", letters)?)?;
    let text: Vec<char> = s.chars().collect();
    let mut matches = Matches { regex: &regex, text: &text, next: start - 1 };
    let mut count = 0;
    while matches.next(env)?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Which match, and which group of it, a function is asked for.
#[derive(Clone, Copy)]
pub(super) struct Which<'a> {
    pub(super) start: i32,
    pub(super) n: i32,
    pub(super) flags: &'a str,
    pub(super) group: i32,
}

impl Default for Which<'_> {
    fn default() -> Self {
        Which { start: 1, n: 1, flags: "", group: 0 }
    }
}

/// The place of the group that is asked for.
fn locate(
    function: &str,
    text: &[char],
    pattern: &str,
    which: Which<'_>,
    env: &Env<'_>,
) -> Result<Option<(usize, usize)>> {
    let start = at_least("start", which.start, 1)?;
    let n = at_least("n", which.n, 1)?;
    let group = at_least("subexpr", which.group, 0)?;
    let options = flags_of(function, which.flags)?;
    let regex = regex::compiled(pattern, options)?;
    // Where there are no groups, the whole match counts as the first one.
    let group = if regex.groups() == 0 && group == 1 { 0 } else { group };
    let mut matches = Matches { regex: &regex, text, next: start - 1 };
    for _ in 1..n {
        if matches.next(env)?.is_none() {
            return Ok(None);
        }
    }
    Ok(matches.next(env)?.and_then(|groups| groups.get(group).copied().flatten()))
}

pub(super) fn instr(
    s: &str,
    pattern: &str,
    which: Which<'_>,
    end: i32,
    env: &Env<'_>,
) -> Result<i32> {
    at_least("start", which.start, 1)?;
    at_least("n", which.n, 1)?;
    if end != 0 && end != 1 {
        return Err(invalid(format!("invalid value for parameter \"endoption\": {end}")));
    }
    let text: Vec<char> = s.chars().collect();
    let found = locate("regexp_instr", &text, pattern, which, env)?;
    Ok(found.map_or(0, |(from, to)| if end == 1 { to as i32 + 1 } else { from as i32 + 1 }))
}

pub(super) fn substr(
    s: &str,
    pattern: &str,
    which: Which<'_>,
    env: &Env<'_>,
) -> Result<Option<String>> {
    let text: Vec<char> = s.chars().collect();
    let found = locate("regexp_substr", &text, pattern, which, env)?;
    Ok(found.map(|(from, to)| text[from..to].iter().collect()))
}

/// What the first group matches, or all if there are no groups.
pub(super) fn substring(s: &str, pattern: &str, env: &Env<'_>) -> Result<Option<String>> {
    let regex = regex::compiled(pattern, Options::default())?;
    let text: Vec<char> = s.chars().collect();
    let found = regex.find(&text, 0, &|| env.check_long_work())?;
    let place = usize::from(regex.groups() > 0);
    let part = found.and_then(|groups| groups.get(place).copied().flatten());
    Ok(part.map(|(from, to)| text[from..to].iter().collect()))
}
