//! Hot selects, prepared and simple, write nothing shared, through SQL. The engine's test of the
//! same name proves it for its API; this one adds plans, connections and settings.
//!
//! Everything counts as shared that was allocated while the database was opened, its table filled,
//! and a first connection ran both statements. It is mapped read-only. Connections are made
//! afterwards and prepare the same statements. Exempt is what they allocate themselves, and what
//! the engine's test lists.
//!
//! ```sh
//! cargo test -p millpond --no-default-features --features audit --test read_only
//! ```
#![allow(clippy::unwrap_used)]

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use millpond::{
    ColumnDesc, CommandTag, Connection, Database, Datum, Executed, Params, Prepared, Result,
    RowSink, Settings, Value,
};
use millpond_sync::audit::place::{self, PlacingAllocator, Protected};

#[global_allocator]
static ALLOCATOR: PlacingAllocator = PlacingAllocator;

const ROWS: i32 = 2_000;
const CONNECTIONS: i32 = 4;
const TRANSACTIONS: i32 = 200_000;
const SCANNED: i32 = 10;
const BY_KEY: &str = "select balance from accounts where id = $1";
const RANGE: &str = "select id, balance from accounts where id >= $1 and id < $2 order by id";
const JOIN: &str = "select a.balance from accounts a join accounts b on b.id = a.id + 1 \
                    where a.id = $1";

const CONTROL: &str = "MILLPOND_CONTROL_DIRECTORY";
const SIGSEGV: i32 = 11;

fn main() -> ExitCode {
    if let Ok(directory) = std::env::var(CONTROL) {
        return control(Path::new(&directory));
    }
    println!(
        "{TRANSACTIONS} transactions of {CONNECTIONS} connections, with what they share read-only"
    );
    let directory = tempfile::tempdir().unwrap();
    proof(&directory.path().join("proof"));
    let mut child = Command::new(std::env::current_exe().unwrap());
    let status = child.env(CONTROL, directory.path().join("control")).status().unwrap();
    assert_eq!(status.signal(), Some(SIGSEGV), "an update: {status}");
    println!("control, an update: {status}");
    ExitCode::SUCCESS
}

/// Adds up what it gets.
#[derive(Default)]
struct Sums {
    rows: i32,
    sum: i64,
}

impl RowSink for Sums {
    fn columns(&mut self, _: &[ColumnDesc]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &[Datum<'_>]) -> Result<()> {
        self.rows += 1;
        self.sum += row.last().and_then(Datum::as_i64).unwrap_or_default();
        Ok(())
    }

    fn complete(&mut self, _: CommandTag) -> Result<()> {
        Ok(())
    }

    fn discard(&mut self) {
        *self = Self::default();
    }
}

fn balance(id: i32) -> i64 {
    i64::from(id) * 7 + 3
}

struct Client {
    connection: Connection,
    by_key: Arc<Prepared>,
    range: Arc<Prepared>,
    join: Arc<Prepared>,
}

impl Client {
    fn new(database: &Arc<Database>) -> Self {
        let mut connection = database.connect().unwrap();
        let by_key = connection.prepare(BY_KEY, &[]).unwrap();
        let range = connection.prepare(RANGE, &[]).unwrap();
        let join = connection.prepare(JOIN, &[]).unwrap();
        Self { connection, by_key, range, join }
    }

    /// Bind, Execute, Sync.
    fn run(connection: &mut Connection, prepared: &Arc<Prepared>, values: &[i32]) -> Sums {
        let mut params = Params::with_capacity(values.len());
        params.extend(values.iter().map(|value| Value::Int4(*value)));
        let mut sums = Sums::default();
        let mut portal = connection.bind(prepared, params).unwrap();
        let executed = connection.execute_portal(&mut portal, 0, &mut sums).unwrap();
        assert_eq!(executed, Executed::Complete);
        assert_eq!(connection.sync(&mut sums).unwrap(), Executed::Complete);
        sums
    }

    fn select(&mut self, id: i32) {
        let found = Self::run(&mut self.connection, &self.by_key, &[id]);
        assert_eq!((found.rows, found.sum), (1, balance(id)));
    }

    /// The same as a simple query, whose plan is found behind the lexer.
    fn select_simply(&mut self, id: i32) {
        let mut sums = Sums::default();
        let sql = format!("select balance from accounts where id = {id}");
        let executed = self.connection.simple_query(&sql, &mut sums).unwrap();
        assert_eq!(executed, Executed::Complete);
        assert_eq!((sums.rows, sums.sum), (1, balance(id)));
    }

    fn join(&mut self, id: i32) {
        let found = Self::run(&mut self.connection, &self.join, &[id]);
        assert_eq!((found.rows, found.sum), (1, balance(id)));
    }

    fn scan(&mut self, first: i32) {
        let found = Self::run(&mut self.connection, &self.range, &[first, first + SCANNED]);
        let expected: i64 = (first..first + SCANNED).map(balance).sum();
        assert_eq!((found.rows, found.sum), (SCANNED, expected));
    }
}

/// A database all of whose shared memory is in the shared place, at rest and warm.
fn warm_database(path: &Path) -> Arc<Database> {
    place::shared(|| {
        let settings = Settings::default().with("autovacuum", "off").unwrap();
        let settings = settings.with("io_method", "sync").unwrap();
        let database = Database::open(path, settings).unwrap();
        let mut connection = database.connect().unwrap();
        connection
            .batch("create table accounts (id int primary key, balance bigint not null)")
            .unwrap();
        for id in 0..ROWS {
            let values = [Value::Int4(id), Value::Int8(balance(id))];
            connection.execute("insert into accounts values ($1, $2)", &values).unwrap();
        }
        connection.batch("vacuum analyze accounts").unwrap();
        database.engine().end_background_work();
        let mut client = Client::new(&database);
        for id in 0..ROWS - SCANNED {
            client.select(id);
            client.select_simply(id);
            client.scan(id);
            client.join(id);
        }
        database
    })
}

fn clients(database: &Arc<Database>, count: i32) -> Vec<Client> {
    let client = |_| {
        let mut client = Client::new(database);
        client.select(1);
        client.select_simply(1);
        client.scan(1);
        client.join(1);
        client
    };
    (0..count).map(client).collect()
}

fn proof(path: &Path) {
    let database = warm_database(path);
    let clients = clients(&database, CONNECTIONS);
    let protected = Protected::new().unwrap();
    let clients: Vec<Client> = std::thread::scope(|scope| {
        let thread = |(no, mut client): (i32, Client)| {
            scope.spawn(move || {
                for nth in 0..TRANSACTIONS / CONNECTIONS {
                    let id = (nth * 7919 + no * 31) % (ROWS - SCANNED);
                    match nth % 8 {
                        0 => client.scan(id),
                        3 => client.join(id),
                        1 | 2 => client.select_simply(id),
                        _ => client.select(id),
                    }
                }
                client
            })
        };
        let threads: Vec<_> = (0..).zip(clients).map(thread).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    drop(protected);
    drop(clients);
    println!("{TRANSACTIONS} transactions, nothing shared was written");
}

/// Must not return.
fn control(path: &Path) -> ExitCode {
    let database = warm_database(path);
    let mut client = clients(&database, 1).remove(0);
    let _protected = Protected::new().unwrap();
    let _ = client.connection.execute("update accounts set balance = 0 where id = 7", &[]);
    ExitCode::SUCCESS
}
