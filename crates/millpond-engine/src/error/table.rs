//! Errors of statements on tables and of definitions.

use crate::types::Value;
use crate::types::key::WrongKeyType;
use crate::types::tuple::{DamagedTuple, EncodeError};

/// A rule of a table or of the catalog forbids it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TableError {
    /// Two rows with one key (SQLSTATE 23505).
    #[error("duplicate key value violates unique constraint \"{index}\"")]
    DuplicateKey {
        /// The table.
        table: String,
        /// The index.
        index: String,
        /// Names of the key's columns.
        columns: Vec<String>,
        /// The key.
        values: Vec<Value>,
    },
    /// An index can't be built because two rows have one key (23505).
    #[error("could not create unique index \"{index}\"")]
    NotUnique {
        /// The table.
        table: String,
        /// The index.
        index: String,
        /// Names of the key's columns.
        columns: Vec<String>,
        /// The key.
        values: Vec<Value>,
    },
    /// NULL in a column that refuses it (23502).
    #[error(
        "null value in column \"{column}\" of relation \"{table}\" violates not-null constraint"
    )]
    NotNull {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A column can't become NOT NULL because it holds NULLs (23502).
    #[error("column \"{column}\" of relation \"{table}\" contains null values")]
    ContainsNulls {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// No table or index with this number or name exists (42P01).
    #[error("relation \"{0}\" does not exist")]
    UndefinedRelation(String),
    /// A table or index with this name exists (42P07).
    #[error("relation \"{0}\" already exists")]
    DuplicateRelation(String),
    /// A second primary key (42P16).
    #[error("multiple primary keys for table \"{0}\" are not allowed")]
    MultiplePrimaryKeys(String),
    /// The index belongs to a constraint and can't be dropped on its own (2BP01).
    #[error(
        "cannot drop index \"{index}\" because constraint {index} on table {table} requires it"
    )]
    RequiredByConstraint {
        /// The table.
        table: String,
        /// The index.
        index: String,
    },
    /// The definition is outdated: the caller looks it up again and makes a new plan.
    #[error("the definition of relation \"{0}\" has changed")]
    StaleDefinition(String),
    /// The index was built after the snapshot was taken, and lacks rows that the snapshot sees. The
    /// caller makes a plan without it.
    #[error("index \"{0}\" is too new for the transaction's snapshot")]
    IndexTooNew(String),
    /// A statement that changes data in a READ ONLY transaction (25006).
    #[error("cannot execute {0} in a read-only transaction")]
    ReadOnly(&'static str),
    /// The columns of an index don't exist in the table (42703) or are too many (54011).
    #[error("{0}")]
    InvalidDefinition(String),
    /// The table is being used by an active query of this session (55006).
    #[error(
        "cannot {action} \"{table}\" because it is being used by active queries in this session"
    )]
    InUse {
        /// `DROP TABLE`, `TRUNCATE`, ...
        action: &'static str,
        /// The table.
        table: String,
    },
    /// A row's values don't fit the table's columns (a bug of the caller).
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A key's values don't fit the index's columns (a bug of the caller).
    #[error(transparent)]
    Key(#[from] WrongKeyType),
    /// A stored row is damaged (XX001).
    #[error("table \"{table}\": {source}")]
    Damaged {
        /// The table.
        table: String,
        /// What is wrong with it.
        source: DamagedTuple,
    },
}
