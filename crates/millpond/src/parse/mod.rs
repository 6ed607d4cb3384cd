//! From text to statements.
//!
//! `millpond_syntax` parses every text by PostgreSQL's grammar. Here its tree becomes a
//! [`Statement`]: options are looked at, and what PostgreSQL has and Millpond has not is named.
//! Queries and changes of rows are parsed once more, from their piece of the text ([`query`]).

mod copy;
mod data_type;
mod name;
mod option;
mod query;
mod source;
#[cfg(test)]
mod tests;
mod utility;

use millpond_syntax::tree::{self, RawStmt};
use millpond_syntax::{SyntaxError, tree::Statement as Tree};
use sqlparser::ast;

pub(crate) use copy::{Copy, CopyOptions, CopySource, ForceQuote};
pub(crate) use data_type::{check_collation, data_type, interval_type};
pub(crate) use name::Name;
pub(crate) use option::text as option_text;
pub(crate) use query::*;
pub(crate) use source::Source;

use crate::error::{Result, SqlError, SqlState};
use crate::lex::Literals;

/// An identifier as PostgreSQL stores it: lower case unless quoted, at most 63 bytes.
pub(crate) fn fold(value: &str, quote: Option<char>) -> String {
    let mut folded = if quote.is_some() { value.to_owned() } else { value.to_lowercase() };
    if folded.len() > 63 {
        let mut end = 63;
        while !folded.is_char_boundary(end) {
            end -= 1;
        }
        folded.truncate(end);
    }
    folded
}

/// sqlparser's identifier, folded.
pub(crate) fn ident(ident: &ast::Ident) -> String {
    fold(&ident.value, ident.quote_style)
}

/// What BEGIN or SET TRANSACTION ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TransactionModes {
    pub(crate) isolation: Option<IsolationLevel>,
    pub(crate) read_only: Option<bool>,
}

/// The levels that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A setting, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Named(String),
}

/// What VACUUM or ANALYZE was told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct VacuumOptions {
    pub(crate) full: bool,
    pub(crate) analyze: bool,
    pub(crate) verbose: bool,
    /// `BUFFER_USAGE_LIMIT` in kB.
    pub(crate) usage_limit_kb: Option<u32>,
}

/// One statement.
#[derive(Debug, Clone)]
pub(crate) enum Statement {
    Query(Box<ast::Query>),
    /// With the queries of WITH before it.
    Insert(Box<ast::Insert>, Option<Box<ast::With>>),
    Update(Box<ast::Update>, Option<Box<ast::With>>),
    Delete(Box<ast::Delete>, Option<Box<ast::With>>),
    CreateTable(Box<tree::CreateStmt>),
    CreateIndex(Box<tree::IndexStmt>),
    AlterTable(Box<tree::AlterTableStmt>),
    Begin {
        modes: TransactionModes,
        start: bool,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    SetTransaction {
        modes: TransactionModes,
        session: bool,
    },
    Set {
        name: String,
        value: Option<String>,
        local: bool,
    },
    Show(Which),
    Reset(Which),
    Discard {
        all: bool,
    },
    /// Without a name all; without a value `RESET`.
    AlterSystem {
        name: Option<String>,
        value: Option<String>,
    },
    DropTable {
        names: Vec<Name>,
        if_exists: bool,
    },
    DropIndex {
        names: Vec<Name>,
        if_exists: bool,
    },
    Truncate {
        names: Vec<Name>,
    },
    Vacuum {
        options: VacuumOptions,
        tables: Vec<Name>,
    },
    Analyze {
        options: VacuumOptions,
        tables: Vec<Name>,
    },
    Checkpoint,
    Copy(Box<Copy>),
    Explain {
        analyze: bool,
        statement: Box<Statement>,
    },
    Prepare {
        name: String,
        types: Vec<tree::TypeName>,
        text: String,
    },
    Execute {
        name: String,
        args: Vec<ast::Expr>,
    },
    Deallocate(Which),
    /// CLOSE: no cursor can have been declared.
    Close(Which),
    /// UNLISTEN: no session listens.
    Unlisten,
    Lock {
        names: Vec<Name>,
        mode: tree::LockMode,
        nowait: bool,
    },
    Unsupported(String),
}

impl Statement {
    /// Whether it only controls the transaction or settings. Such a statement is small and runs
    /// often, and its parse depends on nothing but its text.
    pub(crate) fn is_control(&self) -> bool {
        use Statement as S;
        matches!(
            self,
            S::Begin { .. }
                | S::Commit { .. }
                | S::Rollback { .. }
                | S::SetTransaction { .. }
                | S::Set { .. }
                | S::Show(_)
                | S::Reset(_)
        )
    }
}

/// Parses a text of any number of statements. Empty ones are left out.
pub(crate) fn parse(sql: &str) -> Result<Vec<Statement>> {
    let source = Source::new(sql);
    let parsed = millpond_syntax::parse(sql).map_err(|error| refused(&error, sql))?;
    parsed.into_iter().map(|raw| statement(raw, source)).collect()
}

/// A statement of the grammar as one that can be run.
fn statement(raw: RawStmt, source: Source<'_>) -> Result<Statement> {
    let start = raw.location as usize;
    let piece = start..start + raw.length as usize;
    match raw.stmt {
        Tree::Select(_) | Tree::Insert(_) | Tree::Update(_) | Tree::Delete(_) => {
            query::parse(source, piece)
        }
        Tree::Execute(execute) => {
            let args = query::arguments(source, piece)?;
            Ok(Statement::Execute { name: execute.name.into(), args })
        }
        stmt => utility::statement(stmt, source),
    }
}

/// Parses a text whose literals the lexer has lifted out: each becomes the parameter of its number.
/// `None`: the text only makes sense with its literals in place.
pub(crate) fn parse_lifted(sql: &str, literals: &Literals) -> Option<Statement> {
    let [raw] = <[RawStmt; 1]>::try_from(millpond_syntax::parse(sql).ok()?).ok()?;
    match raw.stmt {
        Tree::Select(_) | Tree::Insert(_) | Tree::Update(_) | Tree::Delete(_) => {
            query::parse_lifted(sql, literals)
        }
        stmt => utility::statement(stmt, Source::new(sql)).ok(),
    }
}

/// The parser's error.
fn refused(error: &SyntaxError, sql: &str) -> SqlError {
    let bytes = error.code.code().as_bytes();
    let state = bytes.first_chunk().map_or(SqlState::SYNTAX_ERROR, |code| SqlState(*code));
    let mut refused = SqlError::new(state, error.message.clone());
    refused.position = Some(error.position(sql)).filter(|position| *position > 0);
    refused.detail = error.detail.map(Into::into);
    refused.hint = error.hint.map(Into::into);
    refused
}
