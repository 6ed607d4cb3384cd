//! From text to statements.
//!
//! `millpond_syntax` parses every text by PostgreSQL's grammar. Here its tree becomes a
//! [`Statement`]: options are looked at, and what PostgreSQL has and Millpond has not is named.

mod copy;
pub mod data_type;
mod escape;
mod name;
mod option;
mod source;
#[cfg(test)]
mod tests;
mod utility;

use millpond_syntax::tree::{self, RawStmt};
use millpond_syntax::{LiftedLiteral, PlainStrings, SyntaxError, Tokens, tree::Statement as Tree};

pub use millpond_syntax::Stop;

pub use copy::{Copy, CopyOptions, CopySource, ForceQuote};
pub use data_type::is_bytewise;
pub use data_type::{check_collation, data_type};
pub use name::Name;
pub use option::text as option_text;
pub use source::Source;

use crate::error::{Result, SqlError, SqlState};
use crate::lex::{Literal, LiteralKind, Literals};
use crate::memory::ValueRoom;

/// What BEGIN or SET TRANSACTION ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransactionModes {
    pub isolation: Option<IsolationLevel>,
    pub read_only: Option<bool>,
    /// It has no effect, but SHOW tells it.
    pub deferrable: Option<bool>,
}

/// The levels that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A setting, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    All,
    Named(String),
}

/// What VACUUM or ANALYZE was told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VacuumOptions {
    pub full: bool,
    pub analyze: bool,
    pub verbose: bool,
    /// `BUFFER_USAGE_LIMIT` in kB.
    pub usage_limit_kb: Option<u32>,
}

/// What REINDEX builds again: an index, or those of a table, a schema or the database.
#[derive(Debug, Clone)]
pub enum Reindexed {
    Index(Name),
    Table(Name),
    Schema(String),
    /// Its catalogs.
    System(String),
    Database(String),
}

/// PREPARE.
#[derive(Debug, Clone)]
pub struct Prepare {
    pub name: String,
    pub types: Vec<tree::TypeName>,
    /// Where the statement that it prepares is.
    pub location: u32,
    pub length: u32,
}

/// EXPLAIN.
#[derive(Debug, Clone)]
pub struct Explain {
    pub analyze: bool,
    /// How long it took to plan, and to run, is shown.
    pub summary: bool,
    pub statement: Statement,
    /// The table that the statement would make of its rows.
    pub creates: Option<Creates>,
}

/// What CREATE TABLE AS and SELECT INTO make.
#[derive(Debug, Clone)]
pub struct Creates {
    pub name: Name,
    pub if_not_exists: bool,
}

/// A query.
#[derive(Debug, Clone)]
pub struct Query {
    pub(crate) select: tree::SelectStmt,
}

/// One statement.
#[derive(Debug, Clone)]
pub enum Statement {
    Query(Box<Query>),
    Insert(Box<tree::InsertStmt>),
    Update(Box<tree::UpdateStmt>),
    Delete(Box<tree::DeleteStmt>),
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
    /// Each table with the columns that are named, all if none are.
    Vacuum {
        options: VacuumOptions,
        tables: Vec<(Name, Vec<tree::Name>)>,
    },
    Analyze {
        options: VacuumOptions,
        tables: Vec<(Name, Vec<tree::Name>)>,
    },
    Reindex {
        what: Reindexed,
        verbose: bool,
    },
    Checkpoint,
    Copy(Box<Copy>),
    Explain(Box<Explain>),
    Prepare(Box<Prepare>),
    Execute {
        name: String,
        args: Vec<tree::Expr>,
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
    pub fn is_control(&self) -> bool {
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

/// About what a token of a long text takes until its statement is planned. That is the token, and
/// its part of the trees that the parser and the binder make. Measured with calls in a list; rows
/// of VALUES take half.
const MEMORY_OF_TOKEN: usize = 220;

/// Parses a text of any number of statements. Empty ones are left out. `stop` is asked now and
/// then; then the error is 57014.
pub fn parse(sql: &str, stop: Stop<'_>) -> Result<Vec<Statement>> {
    of_tokens(sql, tokens(sql, PlainStrings::Standard, stop)?, stop)
}

/// The same with escapes in plain strings. `warn` gets warnings of such escapes.
pub fn parse_escapes(
    sql: &str,
    warn: &mut dyn FnMut(SqlError),
    stop: Stop<'_>,
) -> Result<Vec<Statement>> {
    let tokens = tokens(sql, PlainStrings::Escapes, stop)?;
    let source = Source::new(sql);
    let places = escape::first_escapes(sql, &tokens.list);
    places.iter().for_each(|place| warn(escape::warning(place, &source)));
    let statements = of_tokens(sql, tokens, stop)?;
    // A default is kept as text, which is read in the standard way later.
    let keeps_text = |statement: &Statement| matches!(statement, Statement::CreateTable(_));
    if !places.is_empty() && statements.iter().any(keeps_text) {
        let what = "CREATE TABLE with a backslash in a string while standard_conforming_strings is \
                    off";
        return Err(SqlError::unsupported(what).hint("Write the string as E'...'."));
    }
    Ok(statements)
}

fn of_tokens(sql: &str, tokens: Tokens, stop: Stop<'_>) -> Result<Vec<Statement>> {
    let source = Source::new(sql);
    let parsed = millpond_syntax::parse_tokens(sql, tokens, stop);
    let parsed = parsed.map_err(|error| refused(&error, sql))?;
    parsed.into_iter().map(|raw| statement(raw, source)).collect()
}

/// The tokens of a text whose tree there is room for.
fn tokens(sql: &str, strings: PlainStrings, stop: Stop<'_>) -> Result<Tokens> {
    let tokens = millpond_syntax::tokens(sql, strings, stop);
    let tokens = tokens.map_err(|error| refused(&error, sql))?;
    ValueRoom::check_for(tokens.list.len().saturating_mul(MEMORY_OF_TOKEN), "parser")?;
    Ok(tokens)
}

/// A statement of the grammar as one that can be run.
fn statement(raw: RawStmt, source: Source<'_>) -> Result<Statement> {
    Ok(match raw.stmt {
        Tree::Select(select) => Statement::Query(Box::new(Query { select: *select })),
        Tree::Insert(insert) => Statement::Insert(insert),
        Tree::Update(update) => Statement::Update(update),
        Tree::Delete(delete) => Statement::Delete(delete),
        stmt => utility::statement(stmt, source)?,
    })
}

/// Parses a text whose literals the lexer has lifted out: each becomes the parameter of its number.
/// `None`: the text only makes sense with its literals in place.
pub fn parse_lifted(sql: &str, literals: &Literals) -> Option<Statement> {
    let tokens = tokens(sql, PlainStrings::Standard, &|| false).ok()?;
    let lifted = millpond_syntax::parse_lifted(sql, tokens).ok()?;
    let is_same = |(found, known): (&LiftedLiteral, &Literal)| {
        let is_string = matches!(known.kind, LiteralKind::String(_));
        let start = known.start - u32::from(is_string);
        found.is_string == is_string && found.location == start
    };
    if lifted.literals.len() != literals.len() || !lifted.literals.iter().zip(literals).all(is_same)
    {
        return None;
    }
    let [raw] = <[RawStmt; 1]>::try_from(lifted.statements).ok()?;
    statement(raw, Source::new(sql)).ok()
}

/// Parses an expression on its own (a column's default, kept as text in the catalog).
pub fn parse_expression(sql: &str) -> Result<tree::Expr> {
    millpond_syntax::parse_expression(sql).map_err(|error| refused(&error, sql))
}

/// "stack depth limit exceeded"
#[cold]
pub fn too_complex() -> SqlError {
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        .hint("Write the statement with less nesting, or shorter chains of operators.")
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
