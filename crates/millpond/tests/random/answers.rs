//! Runs queries on Millpond, and puts rows into a form that can be compared.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use millpond::types::text;
use millpond::{
    ColumnDesc, CommandTag, Connection, CopyFormat, Datum, Result, RowSink, SqlError, SqlState,
};
use millpond_oracle::{Answer, Column, Refusal};

use crate::common::{Fresh, drive, fresh};
use crate::setting;

/// A query with more rows is stopped: to compare them would take longer than many other queries.
const MOST_ROWS: usize = 5000;

/// A database and a session on it.
pub struct Answers {
    fresh: Arc<Fresh>,
    connection: Connection,
}

/// What a query comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Its rows, sorted, as text.
    Rows(Vec<String>),
    /// An error of its values, like a division by zero: nothing to compare.
    Undecided,
    /// Stopped by the limit of time or of rows: nothing to compare.
    OutOfTime,
    /// 0A000
    Unsupported,
    /// Any other error, or a panic.
    Wrong(String),
}

impl Answers {
    /// Runs statements that must succeed on a new database.
    pub fn new(script: &[String]) -> Self {
        let fresh = Arc::new(fresh());
        let mut answers = Answers { connection: connect(&fresh), fresh };
        for statement in script {
            let answer = answers.answer(statement);
            assert!(answer.refusal().is_none(), "{statement}: {answer}");
        }
        answers.limit_time();
        answers
    }

    /// Another session of the same database.
    pub fn beside(&self) -> Self {
        let fresh = Arc::clone(&self.fresh);
        let mut answers = Answers { connection: connect(&fresh), fresh };
        answers.limit_time();
        answers
    }

    /// Answers a statement that may take any time.
    pub fn answer_unlimited(&mut self, sql: &str) -> Answer {
        self.answer("set statement_timeout = 0");
        let answer = self.answer(sql);
        self.limit_time();
        answer
    }

    /// A random query may join many rows with many.
    fn limit_time(&mut self) {
        let limit_ms = setting("MILLPOND_RANDOM_TIMEOUT_MS").unwrap_or(400);
        self.answer(&format!("set statement_timeout = {limit_ms}"));
    }

    /// Runs a statement. A panic is an answer, too, of the code XX000.
    pub fn answer(&mut self, sql: &str) -> Answer {
        let mut sink = Collected::default();
        let ran =
            catch_unwind(AssertUnwindSafe(|| drive(&mut self.connection, sql, &[], &mut sink)));
        let refused = |sqlstate: &str, message: String, position: Option<usize>| {
            let position = position.and_then(|position| u32::try_from(position).ok());
            Answer::Refused(Refusal { sqlstate: sqlstate.to_owned(), message, position })
        };
        match ran {
            Ok(Ok(())) => Answer::Rows { columns: sink.columns, rows: sink.rows },
            Ok(Err(error)) => {
                refused(error.sqlstate.as_str(), error.message.to_string(), error.position)
            }
            Err(panic) => {
                self.connection = connect(&self.fresh);
                self.limit_time();
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
                refused("XX000", format!("panic: {}", text.unwrap_or_default()), None)
            }
        }
    }

    /// Runs a query twice, because the second time it may come from a cache.
    pub fn outcome(&mut self, sql: &str) -> Outcome {
        let first = self.answer(sql);
        if ran_out_of_time(&first) {
            return Outcome::OutOfTime;
        }
        let second = self.answer(sql);
        if ran_out_of_time(&second) {
            return Outcome::OutOfTime;
        }
        let (once, twice) = (outcome(&first), outcome(&second));
        if once == twice {
            return once;
        }
        Outcome::Wrong(format!("the second answer differs:\n{first}\n{second}"))
    }
}

fn connect(fresh: &Fresh) -> Connection {
    fresh.database.connect().unwrap_or_else(|error| panic!("connecting: {error}"))
}

/// How long a query takes is no property of its answer.
pub fn ran_out_of_time(answer: &Answer) -> bool {
    answer.refusal().is_some_and(|refusal| refusal.sqlstate == "57014")
}

/// What an answer of either server comes to.
pub fn outcome(answer: &Answer) -> Outcome {
    match answer {
        Answer::Refused(refusal) if refusal.sqlstate == "0A000" => Outcome::Unsupported,
        // Errors of values, of limits and of time, and of a subquery with two rows.
        Answer::Refused(refusal)
            if ["22", "54", "53", "21", "57"]
                .iter()
                .any(|class| refusal.sqlstate.starts_with(class)) =>
        {
            Outcome::Undecided
        }
        // PostgreSQL calls a modifier that it does not know an internal error.
        Answer::Refused(refusal) if refusal.message.starts_with("unrecognized interval typmod") => {
            Outcome::Undecided
        }
        // A pattern for numbers that to_char does not take.
        Answer::Refused(refusal)
            if refusal.sqlstate == "42601" && !refusal.message.starts_with("syntax error") =>
        {
            Outcome::Undecided
        }
        Answer::Refused(refusal) => {
            Outcome::Wrong(format!("{} {}", refusal.sqlstate, refusal.message))
        }
        Answer::Done(tag) => Outcome::Wrong(format!("no rows, but {tag}")),
        Answer::Rows { rows, .. } => {
            let mut rows: Vec<String> = rows.iter().map(|row| comparable(row)).collect();
            rows.sort_unstable();
            Outcome::Rows(rows)
        }
    }
}

/// A row as text. Numbers that are equal become the same text: of 1.5 and 1.50, DISTINCT may keep
/// either.
fn comparable(row: &[Option<String>]) -> String {
    let values = row.iter().map(|value| match value {
        None => "NULL".to_owned(),
        Some(text) => match text.split_once('.') {
            Some((whole, rest)) if rest.bytes().all(|byte| byte.is_ascii_digit()) => {
                let text = format!("{whole}.{rest}");
                let text = text.trim_end_matches('0').trim_end_matches('.');
                if text == "-0" { "0".to_owned() } else { text.to_owned() }
            }
            _ if text == "-0" => "0".to_owned(),
            _ => text.clone(),
        },
    });
    values.collect::<Vec<_>>().join("|")
}

#[derive(Default)]
struct Collected {
    types: Vec<millpond::DataType>,
    columns: Vec<Column>,
    rows: Vec<Vec<Option<String>>>,
}

impl RowSink for Collected {
    fn columns(&mut self, columns: &[ColumnDesc]) -> Result<()> {
        self.types = columns.iter().map(|column| column.ty).collect();
        self.columns = columns
            .iter()
            .map(|column| Column { name: column.name.to_string(), type_oid: column.type_oid })
            .collect();
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        if self.rows.len() == MOST_ROWS {
            return Err(SqlError::new(SqlState::QUERY_CANCELED, "too many rows"));
        }
        let options = millpond::types::FormatOptions::default();
        let values = row.iter().zip(&self.types);
        self.rows.push(values.map(|(datum, ty)| text::to_string(*ty, datum, &options)).collect());
        Ok(())
    }

    fn complete(&mut self, _tag: CommandTag) -> Result<()> {
        Ok(())
    }

    fn discard(&mut self) {
        self.rows.clear();
    }

    fn notice(&mut self, _notice: &SqlError) {}

    fn copy_out(&mut self, _format: CopyFormat) -> Result<()> {
        Ok(())
    }

    fn copy_data(&mut self, _data: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// How many queries came to what.
#[derive(Default)]
pub struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    pub fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: u64 = self.0.values().sum();
        write!(f, "{all} random queries")?;
        for (what, count) in &self.0 {
            write!(f, ", {what} {count} ({:.1}%)", 100.0 * *count as f64 / all as f64)?;
        }
        Ok(())
    }
}
