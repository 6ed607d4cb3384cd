//! Runs scripts against a fresh database and writes down what comes back, in one readable text.
#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests, not all used by each")]

use std::fmt::Write;
use std::sync::Arc;

use millpond::types::{FormatOptions, text};
use millpond::{
    ColumnDesc, CommandTag, Connection, CopyFormat, Database, Datum, Executed, Result, RowSink,
    Settings, SqlError, Wait,
};

/// A database in a directory that goes with it.
pub struct Fresh {
    pub database: Arc<Database>,
    _dir: tempfile::TempDir,
}

pub fn fresh() -> Fresh {
    fresh_with(Settings::default().with("shared_buffers", "8MB").unwrap())
}

pub fn fresh_with(settings: Settings) -> Fresh {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(dir.path(), settings).unwrap();
    Fresh { database, _dir: dir }
}

/// A sink that writes a transcript.
#[derive(Default)]
pub struct Transcript {
    types: Vec<millpond::DataType>,
    /// How values are written: as the session wants it.
    options: FormatOptions,
    pub text: String,
    /// Where the statement that is running began.
    mark: usize,
}

impl RowSink for Transcript {
    fn formats(&mut self, options: &FormatOptions) {
        self.options = *options;
    }

    fn columns(&mut self, columns: &[ColumnDesc]) -> Result<()> {
        self.types = columns.iter().map(|column| column.ty).collect();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        writeln!(self.text, "{}", names.join("|")).unwrap();
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        let fields: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(i, datum)| {
                let ty = self.types.get(i).copied().unwrap_or(millpond::DataType::Text);
                text::to_string(ty, datum, &self.options).unwrap_or_else(|| "NULL".to_owned())
            })
            .collect();
        writeln!(self.text, "{}", fields.join("|")).unwrap();
        Ok(())
    }

    fn complete(&mut self, tag: CommandTag) -> Result<()> {
        writeln!(self.text, "{tag}").unwrap();
        self.mark = self.text.len();
        Ok(())
    }

    fn discard(&mut self) {
        self.text.truncate(self.mark);
    }

    fn notice(&mut self, notice: &SqlError) {
        writeln!(self.text, "{}: {}", notice.severity.as_str(), notice.message).unwrap();
    }

    fn copy_out(&mut self, _format: CopyFormat) -> Result<()> {
        Ok(())
    }

    fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        self.text.push_str(&String::from_utf8_lossy(data));
        Ok(())
    }
}

/// Runs a text as a server does: first where it must not wait, then where it may.
pub fn drive(
    connection: &mut Connection,
    sql: &str,
    copy: &[&str],
    sink: &mut dyn RowSink,
) -> Result<()> {
    connection.set_wait(Wait::Never);
    let mut executed = connection.simple_query(sql, sink);
    loop {
        executed = match executed? {
            Executed::Complete | Executed::Suspended => {
                connection.set_wait(Wait::Allowed);
                return Ok(());
            }
            Executed::WouldBlock => {
                connection.set_wait(Wait::Allowed);
                connection.resume(sink)
            }
            Executed::CommitPending(_) => {
                connection.set_wait(Wait::Allowed);
                connection.finish_commit(sink)
            }
            Executed::CopyIn(_) => {
                for piece in copy {
                    connection.copy_data(piece.as_bytes())?;
                }
                connection.copy_done(sink)
            }
        };
    }
}

/// Runs one text and returns what came back, errors included.
pub fn run(connection: &mut Connection, sql: &str) -> String {
    run_copy(connection, sql, &[])
}

pub fn run_copy(connection: &mut Connection, sql: &str, copy: &[&str]) -> String {
    let options = connection.format_options();
    let mut sink = Transcript { options, ..Transcript::default() };
    let result = drive(connection, sql, copy, &mut sink);
    connection.set_wait(Wait::Allowed);
    let mut text = sink.text;
    if let Err(error) = result {
        write!(text, "{}: {} [{}]", error.severity.as_str(), error.message, error.sqlstate)
            .unwrap();
        if let Some(position) = error.position {
            write!(text, " at {position}").unwrap();
        }
        text.push('\n');
        if let Some(detail) = error.detail.as_ref().filter(|_| error.sqlstate.as_str() != "42601") {
            writeln!(text, "DETAIL: {detail}").unwrap();
        }
        if let Some(hint) = &error.hint {
            writeln!(text, "HINT: {hint}").unwrap();
        }
        if let Some(context) = &error.context {
            writeln!(text, "CONTEXT: {context}").unwrap();
        }
    }
    text
}

/// Runs a script of `statement` / expected lines. Each block is a statement that starts with `> `,
/// then what has to come back, then an empty line.
#[track_caller]
pub fn script(connection: &mut Connection, script: &str) {
    compare(connection, script, |found, expected| found == expected);
}

/// The same, where rows may come in any order: those of RETURNING have none.
#[track_caller]
pub fn unordered_script(connection: &mut Connection, script: &str) {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    compare(connection, script, |found, expected| sorted(found) == sorted(expected));
}

#[track_caller]
fn compare(connection: &mut Connection, script: &str, is_same: impl Fn(&str, &str) -> bool) {
    let mut wrong = String::new();
    for block in script.trim().split("\n\n") {
        let mut sql = String::new();
        let mut expected = String::new();
        for line in block.lines() {
            match line.strip_prefix("> ") {
                Some(more) => {
                    if !sql.is_empty() {
                        sql.push('\n');
                    }
                    sql.push_str(more);
                }
                None => {
                    expected.push_str(line);
                    expected.push('\n');
                }
            }
        }
        let found = run(connection, &sql);
        if !is_same(&found, &expected) {
            write!(wrong, "--- {sql}\nexpected:\n{expected}found:\n{found}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
