//! Judges Millpond's answer by PostgreSQL's.

use std::fmt;

use crate::answer::{Answer, Column};

/// OIDs from here on belong to what users define, and differ between servers.
const FIRST_USER_OID: u32 = 16384;

/// How an answer compares with PostgreSQL's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The same rows, names and types, or the same command tag.
    Same,
    /// The same error.
    SameError,
    /// Millpond says that it doesn't support this (0A000); PostgreSQL answers something else.
    Unsupported,
    /// The same error at another place of the statement.
    OtherPosition,
    /// An error with the same code, but another message.
    OtherMessage,
    /// An error with another code.
    OtherError,
    /// The same rows in another order, though the statement orders them.
    OtherOrder,
    /// The same rows, but another name or type of a column.
    OtherColumns,
    /// Millpond refuses what PostgreSQL runs.
    Refused,
    /// Millpond runs what PostgreSQL refuses.
    Accepted,
    /// Other rows, or another command tag.
    OtherRows,
    /// An error of the class XX: the server found a fault in itself.
    Internal,
}

impl Verdict {
    /// Whether PostgreSQL's answer was met.
    pub fn is_same(self) -> bool {
        matches!(self, Verdict::Same | Verdict::SameError)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Same => "same",
            Verdict::SameError => "same error",
            Verdict::Unsupported => "not supported",
            Verdict::OtherPosition => "other position",
            Verdict::OtherMessage => "other message",
            Verdict::OtherError => "other error",
            Verdict::OtherOrder => "other order",
            Verdict::OtherColumns => "other columns",
            Verdict::Refused => "refused",
            Verdict::Accepted => "accepted",
            Verdict::OtherRows => "other rows",
            Verdict::Internal => "internal error",
        })
    }
}

/// Compares Millpond's answer with PostgreSQL's. Where the statement doesn't order its rows, their
/// order doesn't count.
pub fn compare(ours: &Answer, theirs: &Answer, ordered: bool) -> Verdict {
    match (ours, theirs) {
        (Answer::Refused(ours), _) if ours.sqlstate.starts_with("XX") => Verdict::Internal,
        (Answer::Refused(ours), Answer::Refused(theirs)) => {
            if ours.sqlstate != theirs.sqlstate {
                if ours.sqlstate == "0A000" { Verdict::Unsupported } else { Verdict::OtherError }
            } else if ours.message != theirs.message {
                // Both don't support something, and each says what.
                let unsupported = ours.sqlstate == "0A000";
                if unsupported { Verdict::Unsupported } else { Verdict::OtherMessage }
            } else if ours.position != theirs.position {
                Verdict::OtherPosition
            } else {
                Verdict::SameError
            }
        }
        (Answer::Refused(ours), _) if ours.sqlstate == "0A000" => Verdict::Unsupported,
        (Answer::Refused(_), _) => Verdict::Refused,
        (_, Answer::Refused(_)) => Verdict::Accepted,
        (Answer::Done(ours), Answer::Done(theirs)) if ours == theirs => Verdict::Same,
        (
            Answer::Rows { columns: our_columns, rows: ours },
            Answer::Rows { columns: their_columns, rows: theirs },
        ) => {
            if !same_rows(ours, theirs) {
                Verdict::OtherRows
            } else if !same_columns(our_columns, their_columns) {
                Verdict::OtherColumns
            } else if ordered && ours != theirs {
                Verdict::OtherOrder
            } else {
                Verdict::Same
            }
        }
        _ => Verdict::OtherRows,
    }
}

/// Whether two results have the same rows, in any order.
fn same_rows(ours: &[Vec<Option<String>>], theirs: &[Vec<Option<String>>]) -> bool {
    if ours == theirs {
        return true;
    }
    let sorted = |rows: &[Vec<Option<String>>]| {
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        rows
    };
    ours.len() == theirs.len() && sorted(ours) == sorted(theirs)
}

fn same_columns(ours: &[Column], theirs: &[Column]) -> bool {
    let same_type = |a: u32, b: u32| a == b || (a >= FIRST_USER_OID && b >= FIRST_USER_OID);
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(theirs)
            .all(|(a, b)| a.name == b.name && same_type(a.type_oid, b.type_oid))
}

#[cfg(test)]
mod tests {
    use super::{Answer, Column, Verdict, compare};
    use crate::answer::Refusal;

    fn rows(name: &str, values: &[&str]) -> Answer {
        let columns = vec![Column { name: name.to_owned(), type_oid: 23 }];
        let rows = values.iter().map(|value| vec![Some((*value).to_owned())]).collect();
        Answer::Rows { columns, rows }
    }

    fn refused(sqlstate: &str, message: &str) -> Answer {
        let (sqlstate, message) = (sqlstate.to_owned(), message.to_owned());
        Answer::Refused(Refusal { sqlstate, message, position: None })
    }

    #[test]
    fn order_counts_only_where_it_is_asked_for() {
        let (a, b) = (rows("x", &["1", "2"]), rows("x", &["2", "1"]));
        assert_eq!(compare(&a, &b, false), Verdict::Same);
        assert_eq!(compare(&a, &b, true), Verdict::OtherOrder);
        assert_eq!(compare(&a, &rows("x", &["1", "1"]), false), Verdict::OtherRows);
        assert_eq!(compare(&a, &rows("y", &["1", "2"]), true), Verdict::OtherColumns);
    }

    #[test]
    fn errors_are_compared_by_code_and_message() {
        let theirs = refused("42703", "x");
        assert_eq!(compare(&refused("42703", "x"), &theirs, false), Verdict::SameError);
        assert_eq!(compare(&refused("42703", "y"), &theirs, false), Verdict::OtherMessage);
        assert_eq!(compare(&refused("42P01", "x"), &theirs, false), Verdict::OtherError);
        assert_eq!(compare(&refused("0A000", "x"), &theirs, false), Verdict::Unsupported);
        assert_eq!(compare(&refused("XX000", "x"), &theirs, false), Verdict::Internal);
        assert_eq!(compare(&rows("x", &[]), &theirs, false), Verdict::Accepted);
        assert_eq!(compare(&theirs, &rows("x", &[]), false), Verdict::Refused);
    }
}
