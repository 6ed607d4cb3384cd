//! What a server answers to one statement.

use std::fmt;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The OID of its type.
    pub type_oid: u32,
}

/// An error, with the fields that are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The five characters of the error's code.
    pub sqlstate: String,
    /// The primary message.
    pub message: String,
    /// The character of the statement at which it points, counted from 1.
    pub position: Option<u32>,
}

/// The result of one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Rows in the types' text forms. `None` is NULL.
    Rows {
        /// The columns.
        columns: Vec<Column>,
        /// The rows, in the order in which the server sent them.
        rows: Vec<Vec<Option<String>>>,
    },
    /// A statement without rows: its command tag.
    Done(String),
    /// An error.
    Refused(Refusal),
}

impl Answer {
    /// The error, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Answer::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// How many rows a printed answer has at most.
const SHOWN_ROWS: usize = 12;

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Done(tag) => write!(f, "{tag}"),
            Answer::Refused(Refusal { sqlstate, message, position }) => {
                write!(f, "{sqlstate} {message}")?;
                position.map_or(Ok(()), |position| write!(f, " at character {position}"))
            }
            Answer::Rows { columns, rows } => {
                let heads: Vec<String> =
                    columns.iter().map(|c| format!("{}:{}", c.name, c.type_oid)).collect();
                write!(f, "{} [{} rows]", heads.join("|"), rows.len())?;
                for row in rows.iter().take(SHOWN_ROWS) {
                    let values: Vec<&str> =
                        row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
                    write!(f, "\n  {}", values.join("|"))?;
                }
                if rows.len() > SHOWN_ROWS { write!(f, "\n  ...") } else { Ok(()) }
            }
        }
    }
}
