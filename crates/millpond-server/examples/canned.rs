//! A server that does no work: it answers every statement with one row of one number.
//!
//! It runs the real protocol and the real event loops, so pgbench against it measures their cost
//! alone.
//!
//! Given a file, it also reads random pages of that file: `MISSES` pages per hundred statements.
//! Each takes one `preadv2` into memory that nothing else reads. This is the limit of a server that
//! does only the wire protocol and its buffer pool's misses.
//! ```text
//! cargo run --release --no-default-features --example canned -- \
//!     DIR PORT [LOOPS [FILE MISSES]]
//! pgbench -h DIR -p PORT -U x -n -f select.sql -M simple -c 27 -j 2 -T 5 x
//! ```

use millpond::{
    ColumnDesc, CommandTag, CommitTicket, ConnectOptions, DataType, Datum, Executed, Params,
    Result, RowSink, SqlError, SqlState, TransactionStatus, Wait,
};
use millpond_server::backend::{Backend, Cancel, Session};
use millpond_server::net::Listener;
use millpond_server::run::{Server, ServerConfig};
use rustix::io::{ReadWriteFlags, preadv2};
use std::cell::RefCell;
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::task::Waker;
use std::thread;

struct Canned {
    columns: Arc<[ColumnDesc]>,
    misses: Option<Arc<Misses>>,
}

struct CannedSession {
    columns: Arc<[ColumnDesc]>,
    misses: Option<Arc<Misses>>,
}

/// A file of which random pages are read.
struct Misses {
    file: File,
    pages: u64,
    per_hundred: u32,
}

const PAGE_BYTES: usize = 8192;
/// The number of page buffers, used in turn: about what circulates through a pool of 128 MB.
const FRAMES: usize = 800;

thread_local! {
    static FRAMES_OF_LOOP: RefCell<(usize, Vec<u8>)> = RefCell::new((0, vec![0; FRAMES * PAGE_BYTES]));
}

impl Misses {
    fn open(path: &str, per_hundred: u32) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let pages = file.metadata()?.len() / PAGE_BYTES as u64;
        if pages == 0 {
            return Err(std::io::Error::other(format!("{path} has no page")));
        }
        Ok(Self { file, pages, per_hundred })
    }

    /// Reads a page, or nothing, at random.
    fn one(&self) -> std::io::Result<()> {
        if rand::random_range(0..100) >= self.per_hundred {
            return Ok(());
        }
        let at = rand::random_range(0..self.pages) * PAGE_BYTES as u64;
        FRAMES_OF_LOOP.with_borrow_mut(|(next, frames)| {
            *next = (*next + 1) % FRAMES;
            let frame = &mut frames[*next * PAGE_BYTES..][..PAGE_BYTES];
            let buffers = &mut [IoSliceMut::new(frame)];
            match preadv2(&self.file, buffers, at, ReadWriteFlags::NOWAIT) {
                Ok(PAGE_BYTES) => Ok(()),
                // The page is not in the system's cache.
                _ => self.file.read_exact_at(frame, at),
            }
        })
    }
}

struct Nothing;

impl Cancel for Nothing {
    fn cancel(&self) {}
    fn terminate(&self) {}
}

impl Backend for Canned {
    type Session = CannedSession;

    fn connect(&self, _: ConnectOptions) -> Result<CannedSession> {
        Ok(CannedSession { columns: Arc::clone(&self.columns), misses: self.misses.clone() })
    }
}

impl CannedSession {
    fn answer(&self, sink: &mut dyn RowSink) -> Result<Executed> {
        if let Some(misses) = &self.misses {
            misses.one().map_err(|error| SqlError::new(SqlState::IO_ERROR, error.to_string()))?;
        }
        sink.row(&[Datum::Int4(0)])?;
        sink.complete(CommandTag::counted("SELECT", 1))?;
        Ok(Executed::Complete)
    }
}

impl Session for CannedSession {
    type Statement = (Arc<[ColumnDesc]>, Arc<[DataType]>);
    type Portal = Self::Statement;
    type Cancel = Nothing;

    fn process_id(&self) -> i32 {
        1
    }
    fn cancel_handle(&self) -> Nothing {
        Nothing
    }
    fn reported_settings(&self) -> Vec<(String, String)> {
        let settings = [("server_version", "15.0"), ("client_encoding", "UTF8")];
        settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    }
    fn set_wait(&mut self, _: Wait) {}
    fn transaction_status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }
    fn params(statement: &Self::Statement) -> &[DataType] {
        &statement.1
    }
    fn columns(statement: &Self::Statement) -> Option<&Arc<[ColumnDesc]>> {
        Some(&statement.0)
    }
    fn statement(portal: &Self::Portal) -> &Self::Statement {
        portal
    }
    fn simple_query(&mut self, _: &str, sink: &mut dyn RowSink) -> Result<Executed> {
        sink.columns(&self.columns)?;
        self.answer(sink)
    }
    fn resume(&mut self, _: &mut dyn RowSink) -> Result<Executed> {
        Ok(Executed::Complete)
    }
    fn on_durable(&self, _: &CommitTicket, waker: Waker) {
        waker.wake();
    }
    fn finish_commit(&mut self, _: &mut dyn RowSink) -> Result<Executed> {
        Ok(Executed::Complete)
    }
    fn prepare(&mut self, _: &str, _: &[Option<DataType>]) -> Result<Self::Statement> {
        Ok((Arc::clone(&self.columns), Arc::from([DataType::Int4])))
    }
    fn bind(&mut self, statement: &Self::Statement, _: Params) -> Result<Self::Portal> {
        Ok(statement.clone())
    }
    fn execute_portal(
        &mut self,
        _: &mut Self::Portal,
        _: u64,
        sink: &mut dyn RowSink,
    ) -> Result<Executed> {
        self.answer(sink)
    }
    fn sync(&mut self, _: &mut dyn RowSink) -> Result<Executed> {
        Ok(Executed::Complete)
    }
    fn fail(&mut self) {}
    fn copy_data(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn copy_done(&mut self, _: &mut dyn RowSink) -> Result<Executed> {
        Ok(Executed::Complete)
    }
    fn copy_fail(&mut self, reason: &str) -> SqlError {
        SqlError::new(SqlState::QUERY_CANCELED, reason)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(dir), Some(port)) = (args.next(), args.next()) else {
        return Err("usage: canned DIR PORT [LOOPS [FILE MISSES]]".into());
    };
    let port: u16 = port.parse()?;
    let cores = thread::available_parallelism()?.get();
    let loops = args.next().map_or(Ok(cores), |n| n.parse())?;
    let misses = match (args.next(), args.next()) {
        (Some(file), Some(per_hundred)) => {
            Some(Arc::new(Misses::open(&file, per_hundred.parse()?)?))
        }
        _ => None,
    };
    let columns = Arc::from([ColumnDesc::computed("abalance", DataType::Int4)]);
    let backend = Canned { columns, misses };
    let listener = Listener::unix(Path::new(&dir), port)?;
    let config = ServerConfig { loops, max_connections: 1000 };
    let _server = Server::start(backend, vec![listener], config)?;
    loop {
        thread::park();
    }
}
