//! Pattern matching: regular expressions, `SIMILAR TO`, and the functions behind `LIKE`.

pub(in crate::expr) mod any;
mod matches;
mod replace;
mod search;
mod similar;

use super::catalog::{BOOL, BPCHAR, BYTEA, INT4, Proc, TEXT, proc};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::regex::{self, Options};
use crate::expr::{Env, like};
use search::{Which, instr, regexp_count, regexp_like, substr, substring};

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
    // Unlike `similar_to_escape`, it takes NULL for the default.
    proc(
        1623,
        "similar_escape",
        &[TEXT, TEXT],
        TEXT,
        body!(|p: Option<&str>, escape: Option<&str>| p
            .map(|p| similar::to_regex(p, escape))
            .transpose()),
    )
    .called_on_null(),
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
        2009,
        "like_escape",
        &[BYTEA, BYTEA],
        BYTEA,
        body!(|p: &[u8], escape: &[u8]| like::bytes_with_backslashes(p, escape)),
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

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn is_match(s: &str, pattern: &str, ignore_case: bool, env: &Env<'_>) -> Result<bool> {
    let options = Options { ignore_case, ..Options::default() };
    regex::compiled(pattern, options)?.is_match(s, &|| env.check_long_work())
}

/// A function's flags; `global` is one of them.
fn flags(text: &str) -> Result<(Options, bool)> {
    let (mut options, mut global) = (Options::default(), false);
    for letter in text.chars() {
        if letter == 'g' {
            global = true;
        } else if letter == 'e' {
            // PostgreSQL 15 clears what this flag sets. Only `(?e)` gives the extended syntax.
            options.set('b');
        } else if !options.set(letter) {
            return Err(invalid(format!("invalid regular expression option: \"{letter}\"")));
        }
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
