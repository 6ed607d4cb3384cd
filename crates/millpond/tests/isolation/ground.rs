//! Where the scripts run: connections to a database in process.

use std::collections::HashSet;
use std::sync::Arc;

use millpond::types::{FormatOptions, text};
use millpond::{
    ColumnDesc, CommandTag, Connection, DataType, Database, Datum, Executed, Params, Portal,
    Result, RowSink, Wait,
};
use millpond_sim::schedule::{Ground, Outcome, Party};

/// How statements are run.
#[derive(Clone, Copy, Debug)]
pub enum Protocol {
    /// As texts: first where they must not wait, then where they may, as a server does it.
    Simple,
    /// Prepared, and executed once, by the same two steps.
    Prepared,
}

/// Connections to a database.
pub struct Embedded<'a> {
    pub database: Arc<Database>,
    pub level: &'a str,
    pub protocol: Protocol,
}

impl Ground for Embedded<'_> {
    fn party(&self) -> Box<dyn Party> {
        let mut connection = self.database.connect().unwrap();
        let level = format!("set default_transaction_isolation = '{}'", self.level);
        connection.batch(&level).unwrap();
        Box::new(Talker { connection, protocol: self.protocol })
    }

    fn waiting(&self) -> usize {
        let locks = self.database.engine().locks().list();
        let waiting: HashSet<_> =
            locks.iter().filter(|lock| !lock.granted).map(|lock| lock.process_id).collect();
        waiting.len()
    }
}

pub struct Talker {
    pub connection: Connection,
    pub protocol: Protocol,
}

impl Talker {
    pub fn talk(&mut self, sql: &str) -> (Keep, Result<()>) {
        let mut keep = Keep::default();
        let result = match self.protocol {
            Protocol::Simple => simple(&mut self.connection, sql, &mut keep),
            Protocol::Prepared => prepared(&mut self.connection, sql, &mut keep),
        };
        (keep, result)
    }
}

impl Party for Talker {
    fn run(&mut self, sql: &str) -> Outcome {
        let (keep, result) = self.talk(sql);
        match result {
            Ok(()) if keep.columns.is_some() => {
                let row = |row: &Vec<String>| format!("({})", row.join(", "));
                Outcome::Rows(keep.rows.iter().map(row).collect())
            }
            Ok(()) => Outcome::Changed(keep.changed),
            Err(error) => Outcome::Error(error.sqlstate.as_str().to_owned(), error.message.clone()),
        }
    }
}

pub fn simple(connection: &mut Connection, sql: &str, keep: &mut Keep) -> Result<()> {
    connection.set_wait(Wait::Never);
    let result = connection.simple_query(sql, keep);
    connection.set_wait(Wait::Allowed);
    let mut executed = result?;
    loop {
        executed = match executed {
            Executed::Complete | Executed::Suspended => return Ok(()),
            Executed::WouldBlock => connection.resume(keep)?,
            Executed::CommitPending(_) => connection.finish_commit(keep)?,
            Executed::CopyIn(_) => return Err(connection.copy_fail("no rows here")),
        };
    }
}

fn prepared(connection: &mut Connection, sql: &str, keep: &mut Keep) -> Result<()> {
    connection.set_wait(Wait::Never);
    let prepared = connection.prepare(sql, &[])?;
    keep.described(prepared.columns().map(|columns| &**columns));
    let mut portal = connection.bind(&prepared, Params::new())?;
    finish(connection, &mut portal, keep)
}

/// Executes a portal where it must not wait and then where it may, and ends the batch.
pub fn finish(connection: &mut Connection, portal: &mut Portal, keep: &mut Keep) -> Result<()> {
    connection.set_wait(Wait::Never);
    let result = connection.execute_portal(portal, 0, keep);
    connection.set_wait(Wait::Allowed);
    let mut executed = result.inspect_err(|_| drop(connection.sync(&mut Keep::default())))?;
    loop {
        executed = match executed {
            Executed::Complete | Executed::Suspended => break,
            Executed::WouldBlock => connection.execute_portal(portal, 0, keep)?,
            Executed::CommitPending(_) => connection.finish_commit(keep)?,
            Executed::CopyIn(_) => return Err(connection.copy_fail("no rows here")),
        };
    }
    executed = connection.sync(keep)?;
    while executed != Executed::Complete {
        executed = match executed {
            Executed::CommitPending(_) => connection.finish_commit(keep)?,
            _ => connection.resume(keep)?,
        };
    }
    Ok(())
}

/// Keeps a statement's rows as text.
#[derive(Default)]
pub struct Keep {
    columns: Option<Vec<DataType>>,
    pub rows: Vec<Vec<String>>,
    changed: u64,
}

impl Keep {
    /// Takes what is known of the rows before they come.
    pub fn described(&mut self, columns: Option<&[ColumnDesc]>) {
        self.columns = columns.map(|columns| columns.iter().map(|column| column.ty).collect());
    }

    /// What a statement came to, in one line.
    pub fn told(self, result: Result<()>) -> String {
        match result {
            Err(error) => format!("error {}: {}", error.sqlstate, error.message),
            Ok(()) if self.columns.is_some() => {
                let row = |row: &Vec<String>| format!("({})", row.join(", "));
                Vec::from_iter(self.rows.iter().map(row)).join(" ")
            }
            Ok(()) => self.changed.to_string(),
        }
    }
}

impl RowSink for Keep {
    fn columns(&mut self, columns: &[ColumnDesc]) -> Result<()> {
        self.columns = Some(columns.iter().map(|column| column.ty).collect());
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        let types = self.columns.as_deref().unwrap_or_default();
        let fields = row.iter().enumerate().map(|(place, datum)| {
            let ty = types.get(place).copied().unwrap_or(DataType::Text);
            text::to_string(ty, datum, &FormatOptions::default())
                .unwrap_or_else(|| "null".to_owned())
        });
        self.rows.push(fields.collect());
        Ok(())
    }

    fn complete(&mut self, tag: CommandTag) -> Result<()> {
        self.changed = tag.rows();
        Ok(())
    }

    fn discard(&mut self) {
        self.rows.clear();
    }
}
