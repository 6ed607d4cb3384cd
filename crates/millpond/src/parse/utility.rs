//! Statements that are parsed here: everything that is neither a query, nor a change of rows, nor a definition.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{IsolationLevel, Statement, TransactionModes, VacuumOptions, Which, copy, parse_one};
use crate::error::{Result, SqlError, SqlState};

/// First words of statements that are not there yet.
const UNSUPPORTED: &[&str] = &[
    "listen", "unlisten", "notify", "grant", "revoke", "declare", "fetch", "move", "close",
    "comment", "cluster", "reindex", "refresh", "security", "do", "call", "import", "load",
    "merge", "reassign",
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

fn work_or_transaction(cursor: &mut Cursor<'_, '_>) {
    if !cursor.accept("work") {
        cursor.accept("transaction");
    }
}

fn begin(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    let start = cursor.accept("start");
    if start {
        cursor.expect("transaction")?;
    } else {
        cursor.advance();
        work_or_transaction(cursor);
    }
    Ok(Statement::Begin { modes: modes(cursor)?, start })
}

/// `ISOLATION LEVEL ...`, `READ ONLY`, `READ WRITE`, `[NOT] DEFERRABLE`, with or without commas.
fn modes(cursor: &mut Cursor<'_, '_>) -> Result<TransactionModes> {
    let mut modes = TransactionModes::default();
    while !cursor.at_end() {
        if cursor.accept("isolation") {
            cursor.expect("level")?;
            modes.isolation = Some(level(cursor)?);
        } else if cursor.accept("read") {
            modes.read_only = Some(if cursor.accept("only") {
                true
            } else {
                cursor.expect("write")?;
                false
            });
        } else if cursor.accept("not") {
            cursor.expect("deferrable")?;
        } else if !cursor.accept("deferrable") {
            return Err(cursor.unexpected());
        }
        if cursor.accept_token(&Token::Comma) && cursor.at_end() {
            return Err(cursor.unexpected());
        }
    }
    Ok(modes)
}

fn level(cursor: &mut Cursor<'_, '_>) -> Result<IsolationLevel> {
    if cursor.accept("serializable") {
        return Ok(IsolationLevel::Serializable);
    }
    if cursor.accept("repeatable") {
        cursor.expect("read")?;
        return Ok(IsolationLevel::RepeatableRead);
    }
    cursor.expect("read")?;
    if cursor.accept("committed") {
        return Ok(IsolationLevel::ReadCommitted);
    }
    cursor.expect("uncommitted")?;
    Ok(IsolationLevel::ReadUncommitted)
}

fn end(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    let commit = cursor.is_word("commit") || cursor.is_word("end");
    cursor.advance();
    if cursor.is_word("prepared") {
        return Ok(unsupported(cursor, "a prepared transaction (two-phase commit)"));
    }
    work_or_transaction(cursor);
    if !commit && cursor.is_word("to") {
        return Ok(unsupported(cursor, "ROLLBACK TO SAVEPOINT"));
    }
    let mut chain = false;
    if cursor.accept("and") {
        chain = !cursor.accept("no");
        cursor.expect("chain")?;
    }
    Ok(if commit { Statement::Commit { chain } } else { Statement::Rollback { chain } })
}

fn set(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    let mut local = false;
    if cursor.accept("session") {
        if cursor.accept("characteristics") {
            cursor.expect("as")?;
            cursor.expect("transaction")?;
            return Ok(Statement::SetTransaction { modes: modes(cursor)?, session: true });
        }
        if cursor.is_word("authorization") {
            return Ok(unsupported(cursor, "SET SESSION AUTHORIZATION"));
        }
    } else if cursor.accept("local") {
        local = true;
    }
    if cursor.accept("transaction") {
        if cursor.is_word("snapshot") {
            return Ok(unsupported(cursor, "SET TRANSACTION SNAPSHOT"));
        }
        return Ok(Statement::SetTransaction { modes: modes(cursor)?, session: false });
    }
    if cursor.is_word("constraints") || cursor.is_word("role") {
        let what = cursor.word().unwrap_or_default().to_uppercase();
        return Ok(unsupported(cursor, &format!("SET {what}")));
    }
    if cursor.accept("time") {
        cursor.expect("zone")?;
        let value = if cursor.accept("local") || cursor.accept("default") {
            None
        } else {
            Some(cursor.value()?)
        };
        return Ok(Statement::Set { name: "TimeZone".to_owned(), value, local });
    }
    if cursor.accept("names") {
        let value = if cursor.accept("default") { None } else { Some(cursor.value()?) };
        return Ok(Statement::Set { name: "client_encoding".to_owned(), value, local });
    }
    let name = setting_name(cursor)?;
    if !cursor.accept("to") && !cursor.accept_token(&Token::Eq) {
        return Err(cursor.unexpected());
    }
    if cursor.accept("default") {
        return Ok(Statement::Set { name, value: None, local });
    }
    let mut value = cursor.value()?;
    while cursor.accept_token(&Token::Comma) {
        value.push_str(", ");
        value.push_str(&cursor.value()?);
    }
    Ok(Statement::Set { name, value: Some(value), local })
}

fn setting_name(cursor: &mut Cursor<'_, '_>) -> Result<String> {
    let mut name = cursor.ident()?;
    while cursor.accept_token(&Token::Period) {
        name.push('.');
        name.push_str(&cursor.ident()?);
    }
    Ok(name)
}

fn which(cursor: &mut Cursor<'_, '_>) -> Result<Which> {
    if cursor.accept("all") {
        return Ok(Which::All);
    }
    if cursor.accept("time") {
        cursor.expect("zone")?;
        return Ok(Which::Named("TimeZone".to_owned()));
    }
    if cursor.accept("transaction") {
        cursor.expect("isolation")?;
        cursor.expect("level")?;
        return Ok(Which::Named("transaction_isolation".to_owned()));
    }
    if cursor.accept("session") {
        cursor.expect("authorization")?;
        return Ok(Which::Named("session_authorization".to_owned()));
    }
    Ok(Which::Named(setting_name(cursor)?))
}

fn show(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    Ok(Statement::Show(which(cursor)?))
}

fn discard(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    for word in ["plans", "sequences", "temp", "temporary"] {
        if cursor.accept(word) {
            return Ok(Statement::Discard { all: false });
        }
    }
    cursor.expect("all")?;
    Ok(Statement::Discard { all: true })
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
    let mut names = Vec::new();
    loop {
        cursor.accept("only");
        names.push(cursor.name()?);
        cursor.accept_token(&Token::Mul);
        if !cursor.accept_token(&Token::Comma) {
            break;
        }
    }
    if cursor.accept("restart") || cursor.accept("continue") {
        cursor.expect("identity")?;
    }
    cascade_or_restrict(cursor);
    Ok(Statement::Truncate { names })
}

/// `(NAME [VALUE], ...)`: calls `take` with each name and whether it is switched on.
fn options(cursor: &mut Cursor<'_, '_>, take: &mut dyn FnMut(&str, bool) -> bool) -> Result<()> {
    loop {
        let place = cursor.peek_token().span;
        let name = cursor.ident()?;
        let on = match cursor.peek() {
            Token::Comma | Token::RParen => true,
            _ => !matches!(cursor.value()?.as_str(), "false" | "off" | "0" | "no"),
        };
        if !take(&name, on) {
            let error =
                SqlError::new(SqlState::SYNTAX_ERROR, format!("unrecognized option \"{name}\""));
            return Err(cursor.source.place(error, place));
        }
        if cursor.accept_token(&Token::RParen) {
            return Ok(());
        }
        cursor.expect_token(&Token::Comma)?;
    }
}

fn tables_with_columns(cursor: &mut Cursor<'_, '_>) -> Result<Vec<super::Name>> {
    let mut tables = Vec::new();
    while !cursor.at_end() {
        tables.push(cursor.name()?);
        if cursor.accept_token(&Token::LParen) {
            cursor.inside_parentheses()?;
        }
        if !cursor.accept_token(&Token::Comma) {
            break;
        }
    }
    Ok(tables)
}

fn vacuum(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    let mut chosen = VacuumOptions::default();
    let mut take = |name: &str, on: bool| {
        match name {
            "full" => chosen.full = on,
            "analyze" | "analyse" => chosen.analyze = on,
            "verbose" => chosen.verbose = on,
            "freeze"
            | "disable_page_skipping"
            | "skip_locked"
            | "index_cleanup"
            | "truncate"
            | "parallel"
            | "process_toast"
            | "process_main"
            | "buffer_usage_limit"
            | "skip_database_stats"
            | "only_database_stats" => {}
            _ => return false,
        }
        true
    };
    if cursor.accept_token(&Token::LParen) {
        options(cursor, &mut take)?;
    } else {
        for word in ["full", "freeze", "verbose", "analyze", "analyse"] {
            if cursor.accept(word) {
                take(word, true);
            }
        }
    }
    let tables = tables_with_columns(cursor)?;
    Ok(Statement::Vacuum { options: chosen, tables })
}

fn analyze(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    if cursor.accept_token(&Token::LParen) {
        let known = ["verbose", "skip_locked", "buffer_usage_limit"];
        options(cursor, &mut |name, _| known.contains(&name))?;
    } else {
        cursor.accept("verbose");
    }
    Ok(Statement::Analyze { tables: tables_with_columns(cursor)? })
}

fn explain(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    let mut analyze = false;
    if cursor.accept_token(&Token::LParen) {
        let mut format_error = false;
        loop {
            let name = cursor.ident()?;
            let value = match cursor.peek() {
                Token::Comma | Token::RParen => "on".to_owned(),
                _ => cursor.value()?,
            };
            let on = !matches!(value.as_str(), "false" | "off" | "0" | "no");
            match name.as_str() {
                "analyze" | "analyse" => analyze = on,
                "format" => format_error = value != "text",
                "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary"
                | "generic_plan" | "memory" | "serialize" => {}
                _ => {
                    return Err(SqlError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("unrecognized EXPLAIN option \"{name}\""),
                    ));
                }
            }
            if cursor.accept_token(&Token::RParen) {
                break;
            }
            cursor.expect_token(&Token::Comma)?;
        }
        if format_error {
            return Err(cursor.unsupported("EXPLAIN in another format than text"));
        }
    } else {
        analyze = cursor.accept("analyze") || cursor.accept("analyse");
        cursor.accept("verbose");
    }
    if cursor.at_end() || cursor.is_word("explain") {
        return Err(cursor.unexpected());
    }
    let statement = Box::new(parse_one(cursor)?);
    Ok(Statement::Explain { analyze, statement })
}

fn prepare(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    if cursor.is_word("transaction") {
        return Ok(unsupported(cursor, "PREPARE TRANSACTION"));
    }
    let name = cursor.ident()?;
    let mut types = Vec::new();
    if cursor.accept_token(&Token::LParen) {
        loop {
            types.push(cursor.with_parser(|parser| parser.parse_data_type())?);
            if cursor.accept_token(&Token::RParen) {
                break;
            }
            cursor.expect_token(&Token::Comma)?;
        }
    }
    cursor.expect("as")?;
    if !["select", "values", "with", "insert", "update", "delete"].iter().any(|w| cursor.is_word(w))
    {
        return Err(cursor.unexpected());
    }
    let start = cursor.source.byte(cursor.peek_token().span.start);
    let statement = Box::new(parse_one(cursor)?);
    let end = match cursor.peek_token() {
        token if token.token == Token::EOF => cursor.source.sql.len(),
        token => cursor.source.byte(token.span.start),
    };
    let text = cursor.source.sql.get(start..end).unwrap_or("").to_owned();
    Ok(Statement::Prepare { name, types, statement, text })
}

fn execute(cursor: &mut Cursor<'_, '_>) -> Result<Statement> {
    cursor.advance();
    let name = cursor.ident()?;
    let mut args = Vec::new();
    if cursor.accept_token(&Token::LParen) && !cursor.accept_token(&Token::RParen) {
        loop {
            args.push(cursor.with_parser(|parser| parser.parse_expr())?);
            if cursor.accept_token(&Token::RParen) {
                break;
            }
            cursor.expect_token(&Token::Comma)?;
        }
    }
    Ok(Statement::Execute { name, args })
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
    cursor.accept("only");
    let names = cursor.names()?;
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
