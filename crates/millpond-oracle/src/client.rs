//! A client of PostgreSQL's simple query protocol, for servers that want no password.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::answer::{Answer, Column, Refusal};

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A session on PostgreSQL or on Millpond.
pub struct Client {
    stream: Box<dyn Stream>,
    transaction: Transaction,
}

/// What a session says about its transaction after each statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    /// There is none.
    None,
    /// One is open.
    Open,
    /// An error has ended one, and the session waits for ROLLBACK.
    Failed,
}

impl Transaction {
    fn of(body: &[u8]) -> Self {
        match body {
            b"T" => Transaction::Open,
            b"E" => Transaction::Failed,
            _ => Transaction::None,
        }
    }
}

/// A message of the server.
struct Message {
    kind: u8,
    body: Vec<u8>,
}

impl Client {
    /// Connects to the socket `.s.PGSQL.PORT` in a directory, as user postgres. A reply that takes
    /// longer than `patience` is an error.
    pub fn unix(
        directory: &Path,
        port: u16,
        database: &str,
        patience: Duration,
    ) -> io::Result<Self> {
        let stream = UnixStream::connect(directory.join(format!(".s.PGSQL.{port}")))?;
        stream.set_read_timeout(Some(patience))?;
        Self::start(Box::new(stream), database)
    }

    /// Connects to a port of this machine.
    pub fn tcp(port: u16, database: &str, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        Self::start(Box::new(stream), database)
    }

    fn start(stream: Box<dyn Stream>, database: &str) -> io::Result<Self> {
        let mut client = Client { stream, transaction: Transaction::None };
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        body.extend(b"user\0postgres\0database\0");
        body.extend(database.as_bytes());
        body.extend(b"\0\0");
        let mut message = length_of(&body)?;
        message.extend(body);
        client.stream.write_all(&message)?;
        loop {
            let message = client.receive()?;
            match message.kind {
                b'Z' => return Ok(client),
                b'E' => return Err(io::Error::other(refusal(&message.body).message)),
                _ => {}
            }
        }
    }

    /// The state of its transaction.
    pub fn transaction(&self) -> Transaction {
        self.transaction
    }

    /// Runs one statement. If it is a COPY FROM STDIN, `data` are its lines. An I/O error means
    /// that the session has ended or doesn't answer.
    pub fn run(&mut self, statement: &str, data: &str) -> io::Result<Answer> {
        let mut body = statement.as_bytes().to_vec();
        body.push(0);
        self.send(b'Q', &body)?;
        let mut columns = Vec::new();
        let mut rows = Vec::new();
        let mut answer = Answer::Done(String::new());
        loop {
            let message = self.receive()?;
            match message.kind {
                b'T' => columns = row_description(&message.body)?,
                b'D' => rows.push(data_row(&message.body)?),
                b'H' => columns = vec![Column { name: "copy".to_owned(), type_oid: 25 }],
                b'd' => rows.push(vec![Some(lossy(&message.body))]),
                b'G' => {
                    self.send(b'd', data.as_bytes())?;
                    self.send(b'c', &[])?;
                }
                b'C' => {
                    let tag = lossy(message.body.strip_suffix(b"\0").unwrap_or(&message.body));
                    answer = if columns.is_empty() && rows.is_empty() && !tag.starts_with("SELECT")
                    {
                        Answer::Done(tag)
                    } else {
                        let columns = std::mem::take(&mut columns);
                        Answer::Rows { columns, rows: std::mem::take(&mut rows) }
                    };
                }
                b'E' => answer = Answer::Refused(refusal(&message.body)),
                b'Z' => {
                    self.transaction = Transaction::of(&message.body);
                    return Ok(answer);
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let mut message = vec![kind];
        message.extend(length_of(body)?);
        message.extend(body);
        self.stream.write_all(&message)
    }

    fn receive(&mut self) -> io::Result<Message> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length.checked_sub(4).ok_or_else(malformed)?];
        self.stream.read_exact(&mut body)?;
        Ok(Message { kind: head[0], body })
    }
}

/// The length word of a message with this body.
fn length_of(body: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(body.len() + 4).map_err(|_| malformed())?;
    Ok(length.to_be_bytes().to_vec())
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed message")
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn refusal(body: &[u8]) -> Refusal {
    let mut refusal = Refusal::default();
    for field in body.split(|byte| *byte == 0) {
        let Some((kind, text)) = field.split_first() else { continue };
        match kind {
            b'C' => refusal.sqlstate = lossy(text),
            b'M' => refusal.message = lossy(text),
            b'P' => refusal.position = lossy(text).parse().ok(),
            _ => {}
        }
    }
    refusal
}

/// Takes bytes off the front of a message's body.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> io::Result<u16> {
        self.take(2)?.try_into().map(u16::from_be_bytes).map_err(|_| malformed())
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.take(4)?.try_into().map(u32::from_be_bytes).map_err(|_| malformed())
    }

    fn string(&mut self) -> io::Result<String> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
        let text = lossy(self.take(end)?);
        self.take(1)?;
        Ok(text)
    }
}

fn row_description(body: &[u8]) -> io::Result<Vec<Column>> {
    let mut body = Body(body);
    let count = body.u16()?;
    (0..count)
        .map(|_| {
            let name = body.string()?;
            body.take(6)?;
            let type_oid = body.u32()?;
            body.take(8)?;
            Ok(Column { name, type_oid })
        })
        .collect()
}

fn data_row(body: &[u8]) -> io::Result<Vec<Option<String>>> {
    let mut body = Body(body);
    let count = body.u16()?;
    (0..count)
        .map(|_| match body.u32()? {
            u32::MAX => Ok(None),
            length => Ok(Some(lossy(body.take(length as usize)?))),
        })
        .collect()
}
