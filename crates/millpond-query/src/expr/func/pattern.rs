//! Pattern matching: regular expressions, `SIMILAR TO`, and the functions behind `LIKE`.

pub(in crate::expr) mod any;
mod matches;
mod replace;
mod similar;

use super::catalog::{BOOL, BPCHAR, BYTEA, INT4, Proc, TEXT, proc};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::regex::{self, Groups, Options, Regex};
use crate::expr::{Env, like};

pub(super) use matches::PROCS as MATCHES;

pub(super) static PROCS: &[Proc] = &[
    proc(
        1254,
        "textregexeq",
        &[TEXT, TEXT],
        BOOL,
        body!(env, |s: &str, p: &str| is_match(s, p, false, env)),
    ),
    proc(
        1256,
        "textregexne",
        &[TEXT, TEXT],
        BOOL,
        body!(env, |s: &str, p: &str| is_match(s, p, false, env).map(|found| !found)),
    ),
    proc(
        1238,
        "texticregexeq",
        &[TEXT, TEXT],
        BOOL,
        body!(env, |s: &str, p: &str| is_match(s, p, true, env)),
    ),
    proc(
        1239,
        "texticregexne",
        &[TEXT, TEXT],
        BOOL,
        body!(env, |s: &str, p: &str| is_match(s, p, true, env).map(|found| !found)),
    ),
    proc(
        1658,
        "bpcharregexeq",
        &[BPCHAR, TEXT],
        BOOL,
        body!(env, |s: &str, p: &str| is_match(s, p, false, env)),
    ),
    proc(
        1659,
        "bpcharregexne",
        &[BPCHAR, TEXT],
        BOOL,
        body!(env, |s: &str, p: &str| is_match(s, p, false, env).map(|found| !found)),
    ),
    proc(
        1656,
        "bpcharicregexeq",
        &[BPCHAR, TEXT],
        BOOL,
        body!(env, |s: &str, p: &str| is_match(s, p, true, env)),
    ),
    proc(
        1657,
        "bpcharicregexne",
        &[BPCHAR, TEXT],
        BOOL,
        body!(env, |s: &str, p: &str| is_match(s, p, true, env).map(|found| !found)),
    ),
    proc(
        6263,
        "regexp_like",
        &[TEXT, TEXT],
        BOOL,
        body!(env, |s: &str, p: &str| is_match(s, p, false, env)),
    ),
    proc(
        6264,
        "regexp_like",
        &[TEXT, TEXT, TEXT],
        BOOL,
        body!(env, |s: &str, p: &str, f: &str| regexp_like(s, p, f, env)),
    ),
    proc(
        6254,
        "regexp_count",
        &[TEXT, TEXT],
        INT4,
        body!(env, |s: &str, p: &str| regexp_count(s, p, 1, "", env)),
    ),
    proc(
        6255,
        "regexp_count",
        &[TEXT, TEXT, INT4],
        INT4,
        body!(env, |s: &str, p: &str, start: i32| regexp_count(s, p, start, "", env)),
    ),
    proc(
        6256,
        "regexp_count",
        &[TEXT, TEXT, INT4, TEXT],
        INT4,
        body!(env, |s: &str, p: &str, start: i32, f: &str| regexp_count(s, p, start, f, env)),
    ),
    proc(
        6257,
        "regexp_instr",
        &[TEXT, TEXT],
        INT4,
        body!(env, |s: &str, p: &str| instr(s, p, Which::default(), 0, env)),
    ),
    proc(
        6258,
        "regexp_instr",
        &[TEXT, TEXT, INT4],
        INT4,
        body!(env, |s: &str, p: &str, start: i32| instr(
            s,
            p,
            Which { start, ..Which::default() },
            0,
            env
        )),
    ),
    proc(
        6259,
        "regexp_instr",
        &[TEXT, TEXT, INT4, INT4],
        INT4,
        body!(env, |s: &str, p: &str, start: i32, n: i32| instr(
            s,
            p,
            Which { start, n, ..Which::default() },
            0,
            env
        )),
    ),
    proc(
        6260,
        "regexp_instr",
        &[TEXT, TEXT, INT4, INT4, INT4],
        INT4,
        body!(env, |s: &str, p: &str, start: i32, n: i32, end: i32| instr(
            s,
            p,
            Which { start, n, ..Which::default() },
            end,
            env
        )),
    ),
    proc(
        6261,
        "regexp_instr",
        &[TEXT, TEXT, INT4, INT4, INT4, TEXT],
        INT4,
        body!(env, |s: &str, p: &str, start: i32, n: i32, end: i32, flags: &str| instr(
            s,
            p,
            Which { start, n, flags, group: 0 },
            end,
            env
        )),
    ),
    proc(
        6262,
        "regexp_instr",
        &[TEXT, TEXT, INT4, INT4, INT4, TEXT, INT4],
        INT4,
        body!(
            env,
            |s: &str, p: &str, start: i32, n: i32, end: i32, flags: &str, group: i32| instr(
                s,
                p,
                Which { start, n, flags, group },
                end,
                env
            )
        ),
    ),
    proc(
        6265,
        "regexp_substr",
        &[TEXT, TEXT],
        TEXT,
        body!(env, |s: &str, p: &str| substr(s, p, Which::default(), env)),
    ),
    proc(
        6266,
        "regexp_substr",
        &[TEXT, TEXT, INT4],
        TEXT,
        body!(env, |s: &str, p: &str, start: i32| substr(
            s,
            p,
            Which { start, ..Which::default() },
            env
        )),
    ),
    proc(
        6267,
        "regexp_substr",
        &[TEXT, TEXT, INT4, INT4],
        TEXT,
        body!(env, |s: &str, p: &str, start: i32, n: i32| substr(
            s,
            p,
            Which { start, n, ..Which::default() },
            env
        )),
    ),
    proc(
        6268,
        "regexp_substr",
        &[TEXT, TEXT, INT4, INT4, TEXT],
        TEXT,
        body!(env, |s: &str, p: &str, start: i32, n: i32, flags: &str| substr(
            s,
            p,
            Which { start, n, flags, group: 0 },
            env
        )),
    ),
    proc(
        6269,
        "regexp_substr",
        &[TEXT, TEXT, INT4, INT4, TEXT, INT4],
        TEXT,
        body!(env, |s: &str, p: &str, start: i32, n: i32, flags: &str, group: i32| substr(
            s,
            p,
            Which { start, n, flags, group },
            env
        )),
    ),
    proc(
        2284,
        "regexp_replace",
        &[TEXT, TEXT, TEXT],
        TEXT,
        body!(env, |s: &str, p: &str, new: &str| replace::replace(
            s,
            p,
            new,
            Options::default(),
            (1, 1),
            env
        )),
    ),
    proc(
        2285,
        "regexp_replace",
        &[TEXT, TEXT, TEXT, TEXT],
        TEXT,
        body!(env, |s: &str, p: &str, new: &str, flags: &str| replace::with_flags(
            s, p, new, flags, env
        )),
    ),
    proc(
        6253,
        "regexp_replace",
        &[TEXT, TEXT, TEXT, INT4],
        TEXT,
        body!(env, |s: &str, p: &str, new: &str, start: i32| replace::extended(
            s,
            p,
            new,
            (start, 1),
            "",
            env
        )),
    ),
    proc(
        6252,
        "regexp_replace",
        &[TEXT, TEXT, TEXT, INT4, INT4],
        TEXT,
        body!(env, |s: &str, p: &str, new: &str, start: i32, n: i32| replace::extended(
            s,
            p,
            new,
            (start, n),
            "",
            env
        )),
    ),
    proc(
        6251,
        "regexp_replace",
        &[TEXT, TEXT, TEXT, INT4, INT4, TEXT],
        TEXT,
        body!(env, |s: &str, p: &str, new: &str, start: i32, n: i32, flags: &str| {
            replace::extended(s, p, new, (start, n), flags, env)
        }),
    ),
    proc(
        2073,
        "substring",
        &[TEXT, TEXT],
        TEXT,
        body!(env, |s: &str, p: &str| substring(s, p, env)),
    ),
    proc(
        2074,
        "substring",
        &[TEXT, TEXT, TEXT],
        TEXT,
        body!(env, |s: &str, p: &str, escape: &str| similar::to_regex(p, Some(escape))
            .and_then(|p| substring(s, &p, env))),
    ),
    proc(
        1986,
        "similar_to_escape",
        &[TEXT, TEXT],
        TEXT,
        body!(|p: &str, escape: &str| similar::to_regex(p, Some(escape))),
    ),
    proc(1987, "similar_to_escape", &[TEXT], TEXT, body!(|p: &str| similar::to_regex(p, None))),
    proc(
        850,
        "textlike",
        &[TEXT, TEXT],
        BOOL,
        body!(|s: &str, p: &str| like::matches(s, p, Some('\\'))),
    ),
    proc(
        851,
        "textnlike",
        &[TEXT, TEXT],
        BOOL,
        body!(|s: &str, p: &str| like::matches(s, p, Some('\\')).map(|found| !found)),
    ),
    proc(
        1569,
        "like",
        &[TEXT, TEXT],
        BOOL,
        body!(|s: &str, p: &str| like::matches(s, p, Some('\\'))),
    ),
    proc(
        1570,
        "notlike",
        &[TEXT, TEXT],
        BOOL,
        body!(|s: &str, p: &str| like::matches(s, p, Some('\\')).map(|found| !found)),
    ),
    proc(
        1637,
        "like_escape",
        &[TEXT, TEXT],
        TEXT,
        body!(|p: &str, escape: &str| like::with_backslashes(p, escape)),
    ),
    proc(
        2005,
        "bytealike",
        &[BYTEA, BYTEA],
        BOOL,
        body!(|b: &[u8], p: &[u8]| like::matches_bytes(b, p)),
    ),
    proc(
        2006,
        "byteanlike",
        &[BYTEA, BYTEA],
        BOOL,
        body!(|b: &[u8], p: &[u8]| like::matches_bytes(b, p).map(|found| !found)),
    ),
    proc(
        2007,
        "like",
        &[BYTEA, BYTEA],
        BOOL,
        body!(|b: &[u8], p: &[u8]| like::matches_bytes(b, p)),
    ),
    proc(
        2008,
        "notlike",
        &[BYTEA, BYTEA],
        BOOL,
        body!(|b: &[u8], p: &[u8]| like::matches_bytes(b, p).map(|found| !found)),
    ),
];

/// Asks whether the session has been told to stop.
fn check(env: &Env<'_>) -> Result<()> {
    match env.facts.session {
        Some(session) => Ok(session.check_cancel()?),
        None => Ok(()),
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn is_match(s: &str, pattern: &str, ignore_case: bool, env: &Env<'_>) -> Result<bool> {
    let options = Options { ignore_case, ..Options::default() };
    regex::compiled(pattern, options)?.is_match(s, &|| env.check_long_work())
}

/// A function's flags; `global` is one of them.
fn flags(text: &str) -> Result<(Options, bool)> {
    let (mut options, mut global, mut other_syntax) = (Options::default(), false, false);
    for letter in text.chars() {
        if letter == 'g' {
            global = true;
        } else if matches!(letter, 'b' | 'e') {
            other_syntax = true;
        } else if !options.set(letter) {
            return Err(invalid(format!("invalid regular expression option: \"{letter}\"")));
        }
    }
    if other_syntax {
        return Err(SqlError::unsupported("a basic or extended regular expression"));
    }
    Ok((options, global))
}

/// The flags of a function that looks at all matches anyway.
fn flags_of(function: &str, text: &str) -> Result<Options> {
    let (options, global) = flags(text)?;
    if global {
        return Err(invalid(format!("{function}() does not support the \"global\" option")));
    }
    Ok(options)
}

/// A parameter that must not be less than `least`.
fn at_least(name: &str, value: i32, least: i32) -> Result<usize> {
    match usize::try_from(value) {
        Ok(number) if value >= least => Ok(number),
        _ => Err(invalid(format!("invalid value for parameter \"{name}\": {value}"))),
    }
}

fn regexp_like(s: &str, pattern: &str, letters: &str, env: &Env<'_>) -> Result<bool> {
    let options = flags_of("regexp_like", letters)?;
    regex::compiled(pattern, options)?.is_match(s, &|| env.check_long_work())
}

/// The matches from a place on (counted from 0), one behind the other.
struct Matches<'a> {
    regex: &'a Regex,
    text: &'a [char],
    next: usize,
}

impl Matches<'_> {
    fn next(&mut self, env: &Env<'_>) -> Result<Option<Groups>> {
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

fn regexp_count(s: &str, pattern: &str, start: i32, letters: &str, env: &Env<'_>) -> Result<i32> {
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
struct Which<'a> {
    start: i32,
    n: i32,
    flags: &'a str,
    group: i32,
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
    let mut matches = Matches { regex: &regex, text, next: start - 1 };
    for _ in 1..n {
        if matches.next(env)?.is_none() {
            return Ok(None);
        }
    }
    Ok(matches.next(env)?.and_then(|groups| groups.get(group).copied().flatten()))
}

fn instr(s: &str, pattern: &str, which: Which<'_>, end: i32, env: &Env<'_>) -> Result<i32> {
    at_least("start", which.start, 1)?;
    at_least("n", which.n, 1)?;
    if end != 0 && end != 1 {
        return Err(invalid(format!("invalid value for parameter \"endoption\": {end}")));
    }
    let text: Vec<char> = s.chars().collect();
    let found = locate("regexp_instr", &text, pattern, which, env)?;
    Ok(found.map_or(0, |(from, to)| if end == 1 { to as i32 + 1 } else { from as i32 + 1 }))
}

fn substr(s: &str, pattern: &str, which: Which<'_>, env: &Env<'_>) -> Result<Option<String>> {
    let text: Vec<char> = s.chars().collect();
    let found = locate("regexp_substr", &text, pattern, which, env)?;
    Ok(found.map(|(from, to)| text[from..to].iter().collect()))
}

/// What the first group matches, or all if there are no groups.
fn substring(s: &str, pattern: &str, env: &Env<'_>) -> Result<Option<String>> {
    let regex = regex::compiled(pattern, Options::default())?;
    let text: Vec<char> = s.chars().collect();
    let found = regex.find(&text, 0, &|| env.check_long_work())?;
    let place = usize::from(regex.groups() > 0);
    let part = found.and_then(|groups| groups.get(place).copied().flatten());
    Ok(part.map(|(from, to)| text[from..to].iter().collect()))
}
