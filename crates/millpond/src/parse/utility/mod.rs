//! Statements that are parsed here: everything that is neither a query, nor a change of rows, nor a
//! definition.

mod maintenance;
mod prepared;
mod setting;
mod transaction;

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{Name, Statement, Which, copy};
use crate::error::Result;
use maintenance::{analyze, vacuum};
use prepared::{execute, explain, prepare};
use setting::{alter_system, discard, set, show, which};
use transaction::{begin, end};

/// First words of statements that are not there yet.
const UNSUPPORTED: &[&str] = &[
    "listen", "notify", "grant", "revoke", "declare", "fetch", "move", "comment", "cluster",
    "reindex", "refresh", "security", "do", "call", "import", "load", "merge", "reassign",
];

/// Parses a statement if its first word says that it belongs here.
pub(super) fn parse(cursor: &mut Cursor<'_, '_>) -> Result<Option<Statement>> {
    let Some(first) = cursor.word() else { return Ok(None) };
    let statement = match first.as_str() {
        "begin" | "start" => begin(cursor)?,
        "commit" | "end" | "rollback" | "abort" => end(cursor)?,
        "savepoint" => unsupported(cursor, "SAVEPOINT"),
        "release" => unsupported(cursor, "RELEASE SAVEPOINT"),
        "set" => set(cursor)?,
        "show" => show(cursor)?,
        "reset" => {
            cursor.advance();
            Statement::Reset(which(cursor)?)
        }
        "discard" => discard(cursor)?,
        "alter" if cursor.is_second_word("system") => alter_system(cursor)?,
        "create" => return create(cursor),
        "drop" => drop(cursor)?,
        "truncate" => truncate(cursor)?,
        "vacuum" => vacuum(cursor)?,
        "analyze" | "analyse" => analyze(cursor)?,
        "checkpoint" => {
            cursor.advance();
            Statement::Checkpoint
        }
        "copy" => {
            cursor.advance();
            Statement::Copy(Box::new(copy::parse(cursor)?))
        }
        "explain" => explain(cursor)?,
        "prepare" => prepare(cursor)?,
        "execute" => execute(cursor)?,
        "deallocate" => {
            cursor.advance();
            cursor.accept("prepare");
            Statement::Deallocate(if cursor.accept("all") {
                Which::All
            } else {
                Which::Named(cursor.ident()?)
            })
        }
        "close" => {
            cursor.advance();
            Statement::Close(if cursor.accept("all") {
                Which::All
            } else {
                Which::Named(cursor.ident()?)
            })
        }
        "unlisten" => {
            cursor.advance();
            if !cursor.accept_token(&Token::Mul) {
                cursor.ident()?;
            }
            Statement::Unlisten
        }
        "lock" => lock(cursor)?,
        word if UNSUPPORTED.contains(&word) => unsupported(cursor, &word.to_uppercase()),
        _ => return Ok(None),
    };
    Ok(Some(statement))
}

fn unsupported(cursor: &mut Cursor<'_, '_>, what: &str) -> Statement {
    cursor.skip_all();
    Statement::Unsupported(what.to_owned())
}

/// CREATE TABLE and CREATE INDEX are sqlparser's; the other kinds are not there.
fn create(cursor: &mut Cursor<'_, '_>) -> Result<Option<Statement>> {
    let words: Vec<String> = cursor
        .rest()
        .iter()
        .filter_map(|token| match &token.token {
            Token::Word(word) if word.quote_style.is_none() => {
                Some(word.value.to_ascii_lowercase())
            }
            _ => None,
        })
        .skip(1)
        .take(3)
        .collect();
    match words.first().map(String::as_str) {
        Some("table" | "index" | "unique") => Ok(None),
        Some("temp" | "temporary" | "global" | "local") => {
            Ok(Some(unsupported(cursor, "a temporary table")))
        }
        Some("unlogged") => Ok(Some(unsupported(cursor, "an unlogged table"))),
        Some("or") => {
            let what = words.get(2).map_or("OR REPLACE", String::as_str).to_uppercase();
            Ok(Some(unsupported(cursor, &format!("CREATE {what}"))))
        }
        Some(word) => {
            let what = format!("CREATE {}", word.to_uppercase());
            Ok(Some(unsupported(cursor, &what)))
        }
        None => {
            cursor.advance();
            Err(cursor.unexpected())
        }
    }
}

fn if_exists(cursor: &mut Cursor<'_, '_>) -> Result<bool> {
    let found = cursor.accept("if");
    if found {
        cursor.expect("exists")?;
    }
    Ok(found)
}

fn cascade_or_restrict(cursor: &mut Cursor<'_, '_>) {
    // Nothing here depends on a table but its own indexes, so both mean the same.
    if !cursor.accept("cascade") {
        cursor.accept("restrict");
    }
}

fn drop(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    let index = cursor.is_word("index");
    if !index && !cursor.is_word("table") {
        let what = match cursor.word() {
            Some(word) => format!("DROP {}", word.to_uppercase()),
            None => return Err(cursor.unexpected()),
        };
        return Ok(unsupported(cursor, &what));
    }
    cursor.advance();
    if index && cursor.is_word("concurrently") {
        return Ok(unsupported(cursor, "DROP INDEX CONCURRENTLY"));
    }
    let if_exists = if_exists(cursor)?;
    let names = cursor.names()?;
    cascade_or_restrict(cursor);
    Ok(if index {
        Statement::DropIndex { names, if_exists }
    } else {
        Statement::DropTable { names, if_exists }
    })
}

fn truncate(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    cursor.accept("table");
    let names = relations(cursor)?;
    if cursor.accept("restart") || cursor.accept("continue") {
        cursor.expect("identity")?;
    }
    cascade_or_restrict(cursor);
    Ok(Statement::Truncate { names })
}

/// `[ONLY] name [*], ...`: no table has descendants, so all of it means the table.
fn relations(cursor: &mut Cursor<'_, '_>) -> Result<Vec<Name>> {
    let mut names = Vec::new();
    loop {
        cursor.accept("only");
        names.push(cursor.name()?);
        cursor.accept_token(&Token::Mul);
        if !cursor.accept_token(&Token::Comma) {
            return Ok(names);
        }
    }
}

/// PostgreSQL's lock modes, by the words that LOCK TABLE takes.
const LOCK_MODES: &[&str] = &[
    "access share",
    "row share",
    "row exclusive",
    "share update exclusive",
    "share row exclusive",
    "share",
    "exclusive",
    "access exclusive",
];

fn lock(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    cursor.accept("table");
    let names = relations(cursor)?;
    let mut mode = "access exclusive";
    if cursor.accept("in") {
        let mut words = Vec::new();
        while !cursor.is_word("mode") {
            match cursor.word() {
                Some(word) => words.push(word),
                None => return Err(cursor.unexpected()),
            }
            cursor.advance();
        }
        let asked = words.join(" ");
        mode = LOCK_MODES.iter().find(|m| **m == asked).ok_or_else(|| cursor.unexpected())?;
        cursor.advance();
    }
    let nowait = cursor.accept("nowait");
    Ok(Statement::Lock { names, mode, nowait })
}
