//! A scripted database: the statement says what happens, so that tests can reach every path.
//!
//! * `rows N`: N rows of one int4
//! * `block N`: the same, but only where waiting is allowed
//! * `hold`: waits, where that is allowed, until the test opens the gate or cancels it
//! * `commit`: a commit that becomes durable when the test wakes it
//! * `copy`: takes COPY data and reports the number of bytes
//! * `fail`, `fatal`, `panic`: ends in an error, a fatal error, a panic

use millpond::{
    ColumnDesc, CommandTag, CommitTicket, ConnectOptions, CopyFormat, DataType, Datum, Executed,
    Params, Result, RowSink, SqlError, SqlState, TransactionStatus, Wait,
};
use millpond_server::backend::{Backend, Cancel, Session};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;

/// The test's controls of the database.
#[derive(Default)]
pub struct Strings {
    open: Mutex<bool>,
    opened: Condvar,
    pub wakers: Mutex<Vec<Waker>>,
    pub sessions: AtomicUsize,
    next_pid: AtomicI32,
}

impl Strings {
    /// Ends every `hold`.
    pub fn open_gate(&self) {
        *self.open.lock().expect("lock") = true;
        self.opened.notify_all();
    }
}

pub struct Scripted {
    pub strings: Arc<Strings>,
    pub max_sessions: usize,
}

pub struct ScriptedSession {
    strings: Arc<Strings>,
    wait: Wait,
    pid: i32,
    interrupt: Arc<AtomicBool>,
    columns: Arc<[ColumnDesc]>,
    blocked: Option<String>,
    copied: usize,
}

pub struct Interrupt(Arc<AtomicBool>, Arc<Strings>);

impl Cancel for Interrupt {
    fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
        let _held = self.1.open.lock().expect("lock");
        self.1.opened.notify_all();
    }
    fn terminate(&self) {
        self.cancel();
    }
}

impl Backend for Scripted {
    type Session = ScriptedSession;

    fn connect(&self, _: ConnectOptions) -> Result<ScriptedSession> {
        if self.strings.sessions.fetch_add(1, Ordering::SeqCst) >= self.max_sessions {
            self.strings.sessions.fetch_sub(1, Ordering::SeqCst);
            return Err(SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry"));
        }
        Ok(ScriptedSession {
            strings: Arc::clone(&self.strings),
            wait: Wait::Allowed,
            pid: self.strings.next_pid.fetch_add(1, Ordering::SeqCst) + 1,
            interrupt: Arc::default(),
            columns: Arc::from([ColumnDesc::computed("n", DataType::Int4)]),
            blocked: None,
            copied: 0,
        })
    }
}

impl Drop for ScriptedSession {
    fn drop(&mut self) {
        self.strings.sessions.fetch_sub(1, Ordering::SeqCst);
    }
}

fn number(text: Option<&str>) -> i32 {
    text.and_then(|n| n.parse().ok()).unwrap_or(0)
}

impl ScriptedSession {
    fn run(&mut self, sql: &str, sink: &mut dyn RowSink) -> Result<Executed> {
        let mut words = sql.split_whitespace();
        match words.next() {
            None => sink.empty()?,
            Some("rows") => self.rows(number(words.next()), sink)?,
            Some("block") if matches!(self.wait, Wait::Never) => {
                // The sink gets the first rows, and then drops them again.
                sink.columns(&self.columns)?;
                sink.row(&[Datum::Int4(-1)])?;
                sink.discard();
                return self.would_block(sql);
            }
            Some("block") => self.rows(number(words.next()), sink)?,
            Some("hold" | "copy") if matches!(self.wait, Wait::Never) => {
                return self.would_block(sql);
            }
            Some("hold") => self.hold(sink)?,
            Some("copy") => {
                self.copied = 0;
                return Ok(Executed::CopyIn(CopyFormat { columns: 1 }));
            }
            Some("commit") => {
                return Ok(Executed::CommitPending(CommitTicket { lsn: millpond_buffer::Lsn(1) }));
            }
            Some("fatal") => return Err(SqlError::fatal(SqlState::ADMIN_SHUTDOWN, "the end")),
            Some("panic") => panic!("as the test asked"),
            Some(_) => {
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, "no").at(1).hint("try rows"));
            }
        }
        Ok(Executed::Complete)
    }

    fn would_block(&mut self, sql: &str) -> Result<Executed> {
        self.blocked = Some(sql.to_owned());
        Ok(Executed::WouldBlock)
    }

    fn rows(&self, count: i32, sink: &mut dyn RowSink) -> Result<()> {
        sink.columns(&self.columns)?;
        for n in 0..count {
            sink.row(&[Datum::Int4(n)])?;
        }
        sink.complete(CommandTag::counted("SELECT", count as u64))
    }

    fn hold(&self, sink: &mut dyn RowSink) -> Result<()> {
        let mut open = self.strings.open.lock().expect("lock");
        while !*open {
            if self.interrupt.swap(false, Ordering::SeqCst) {
                return Err(SqlError::new(SqlState::QUERY_CANCELED, "canceling statement"));
            }
            open = self.strings.opened.wait(open).expect("lock");
        }
        sink.complete(CommandTag::plain("HOLD"))
    }
}

pub struct ScriptedPortal {
    statement: Statement,
    given: i32,
}

#[derive(Clone)]
pub struct Statement {
    sql: String,
    columns: Arc<[ColumnDesc]>,
}

impl Session for ScriptedSession {
    type Statement = Statement;
    type Portal = ScriptedPortal;
    type Cancel = Interrupt;

    fn process_id(&self) -> i32 {
        self.pid
    }
    fn cancel_handle(&self) -> Interrupt {
        Interrupt(Arc::clone(&self.interrupt), Arc::clone(&self.strings))
    }
    fn reported_settings(&self) -> Vec<(String, String)> {
        vec![("server_version".to_owned(), "16.0".to_owned())]
    }
    fn set_wait(&mut self, wait: Wait) {
        self.wait = wait;
    }
    fn transaction_status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }
    fn params(_: &Statement) -> &[DataType] {
        &[]
    }
    fn columns(statement: &Statement) -> Option<&Arc<[ColumnDesc]>> {
        Some(&statement.columns)
    }
    fn statement(portal: &ScriptedPortal) -> &Statement {
        &portal.statement
    }
    fn simple_query(&mut self, sql: &str, sink: &mut dyn RowSink) -> Result<Executed> {
        self.run(sql, sink)
    }
    fn resume(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        match self.blocked.take() {
            Some(sql) => self.run(&sql, sink),
            None => Ok(Executed::Complete),
        }
    }
    fn on_durable(&self, _: &CommitTicket, waker: Waker) {
        self.strings.wakers.lock().expect("lock").push(waker);
    }
    fn finish_commit(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        sink.complete(CommandTag::plain("COMMIT"))?;
        Ok(Executed::Complete)
    }
    fn prepare(&mut self, sql: &str, _: &[Option<DataType>]) -> Result<Statement> {
        if sql == "unparsable" {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "no"));
        }
        Ok(Statement { sql: sql.to_owned(), columns: Arc::clone(&self.columns) })
    }
    fn bind(&mut self, statement: &Statement, _: Params) -> Result<ScriptedPortal> {
        Ok(ScriptedPortal { statement: statement.clone(), given: 0 })
    }
    fn execute_portal(
        &mut self,
        portal: &mut ScriptedPortal,
        max_rows: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Executed> {
        let mut words = portal.statement.sql.split_whitespace();
        if words.next() != Some("rows") {
            let sql = portal.statement.sql.clone();
            return self.run(&sql, sink);
        }
        let total = number(words.next());
        let mut given = 0;
        while portal.given < total {
            if max_rows > 0 && given == max_rows {
                return Ok(Executed::Suspended);
            }
            sink.row(&[Datum::Int4(portal.given)])?;
            portal.given += 1;
            given += 1;
        }
        sink.complete(CommandTag::counted("SELECT", given))?;
        Ok(Executed::Complete)
    }
    fn sync(&mut self, _: &mut dyn RowSink) -> Result<Executed> {
        Ok(Executed::Complete)
    }
    fn fail(&mut self) {}
    fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        if data.starts_with(b"bad") {
            return Err(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, "bad data"));
        }
        self.copied += data.len();
        Ok(())
    }
    fn copy_done(&mut self, sink: &mut dyn RowSink) -> Result<Executed> {
        sink.complete(CommandTag::counted("COPY", self.copied as u64))?;
        Ok(Executed::Complete)
    }
    fn copy_fail(&mut self, reason: &str) -> SqlError {
        SqlError::new(SqlState::QUERY_CANCELED, format!("COPY from stdin failed: {reason}"))
    }
}
