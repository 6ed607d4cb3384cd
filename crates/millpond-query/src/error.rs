//! The error that every public call of this crate returns, with PostgreSQL's fields.
//!
//! An error is a boxed record, so that a `Result` stays small on the hot path. Its fields are read
//! through `Deref` (`error.sqlstate`, `error.message`), and filled in by the builder methods.

use std::fmt;
use std::ops::{Deref, DerefMut};

pub use millpond_types::SqlState;

/// How bad a message is, as PostgreSQL's error fields name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something that the client may want to know.
    Notice,
    /// Something that is probably not what the client meant.
    Warning,
    /// The statement failed, and with it its transaction.
    Error,
    /// The session ends.
    Fatal,
    /// The server ends.
    Panic,
}

impl Severity {
    /// The word that goes over the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
            Severity::Panic => "PANIC",
        }
    }
}

/// The fields of an error or notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorFields {
    /// How bad it is.
    pub severity: Severity,
    /// The five-character code that programs look at.
    pub sqlstate: SqlState,
    /// What went wrong, in one line.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where in the statement's text: a position in characters, counted from 1.
    pub position: Option<usize>,
    /// The schema that the error is about.
    pub schema: Option<String>,
    /// The table that the error is about.
    pub table: Option<String>,
    /// The column that the error is about.
    pub column: Option<String>,
    /// The constraint that was violated.
    pub constraint: Option<String>,
    /// Where it happened, as a stack of lines (COPY names its line here).
    pub context: Option<String>,
}

/// An error or notice with PostgreSQL's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError(Box<ErrorFields>);

/// What most calls of this crate return.
pub type Result<T, E = SqlError> = std::result::Result<T, E>;

impl SqlError {
    /// An error of severity ERROR.
    #[cold]
    pub fn new(sqlstate: SqlState, message: impl Into<String>) -> Self {
        Self::with_severity(Severity::Error, sqlstate, message)
    }

    /// An error or notice of a given severity.
    #[cold]
    pub fn with_severity(
        severity: Severity,
        sqlstate: SqlState,
        message: impl Into<String>,
    ) -> Self {
        SqlError(Box::new(ErrorFields {
            severity,
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            schema: None,
            table: None,
            column: None,
            constraint: None,
            context: None,
        }))
    }

    /// An error that ends the session.
    #[cold]
    pub fn fatal(sqlstate: SqlState, message: impl Into<String>) -> Self {
        Self::with_severity(Severity::Fatal, sqlstate, message)
    }

    /// A warning.
    #[cold]
    pub fn warning(sqlstate: SqlState, message: impl Into<String>) -> Self {
        Self::with_severity(Severity::Warning, sqlstate, message)
    }

    /// A notice.
    #[cold]
    pub fn notice(sqlstate: SqlState, message: impl Into<String>) -> Self {
        Self::with_severity(Severity::Notice, sqlstate, message)
    }

    /// "`what` is not supported yet", 0A000.
    #[cold]
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported yet"))
    }

    /// An error that should be impossible.
    #[cold]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(SqlState::INTERNAL_ERROR, message)
    }

    /// Adds a detail line.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds a hint line.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the position in the statement, in characters from 1.
    #[must_use]
    pub fn at(mut self, position: usize) -> Self {
        self.0.position = Some(position);
        self
    }

    /// Adds the table that the error is about.
    #[must_use]
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.0.schema = Some("public".to_owned());
        self.0.table = Some(table.into());
        self
    }

    /// Adds the column that the error is about.
    #[must_use]
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.0.column = Some(column.into());
        self
    }

    /// Adds the constraint that was violated.
    #[must_use]
    pub fn constraint(mut self, constraint: impl Into<String>) -> Self {
        self.0.constraint = Some(constraint.into());
        self
    }

    /// Adds a context line.
    #[must_use]
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.0.context = Some(context.into());
        self
    }
}

impl Deref for SqlError {
    type Target = ErrorFields;

    fn deref(&self) -> &ErrorFields {
        &self.0
    }
}

impl DerefMut for SqlError {
    fn deref_mut(&mut self) -> &mut ErrorFields {
        &mut self.0
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (SQLSTATE {})", self.severity.as_str(), self.message, self.sqlstate)?;
        if let Some(detail) = &self.detail {
            write!(f, "\nDETAIL: {detail}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nHINT: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SqlError {}
