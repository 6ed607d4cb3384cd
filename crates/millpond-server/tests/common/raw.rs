//! A client that sends arbitrary bytes and reads messages one by one.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

pub const V3_0: u32 = 0x0003_0000;

pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

pub struct Raw {
    pub stream: Box<dyn Stream>,
    /// The process id and secret key from start-up.
    pub pid: i32,
    pub secret: Vec<u8>,
}

/// A message of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub kind: char,
    pub body: Vec<u8>,
}

impl Reply {
    /// A field of an error or notice.
    pub fn field(&self, kind: u8) -> Option<String> {
        self.body
            .split(|b| *b == 0)
            .find(|f| f.first() == Some(&kind))
            .map(|f| String::from_utf8_lossy(&f[1..]).into_owned())
    }

    pub fn sqlstate(&self) -> String {
        self.field(b'C').unwrap_or_default()
    }

    /// The columns of a row, as text; `-` stands for NULL.
    pub fn columns(&self) -> Vec<String> {
        let mut rest = &self.body[2..];
        let mut columns = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(i32::from_be_bytes(*length)).ok();
            let (value, after) = after.split_at(length.unwrap_or(0));
            let value = if length.is_none() { b"-" } else { value };
            columns.push(String::from_utf8(value.to_vec()).expect("text"));
            rest = after;
        }
        columns
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim_end_matches('\0').to_owned()
    }
}

const LIMIT: Duration = Duration::from_secs(60);

impl Raw {
    pub fn tcp(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
        stream.set_read_timeout(Some(LIMIT)).expect("timeout");
        Raw { stream: Box::new(stream), pid: 0, secret: Vec::new() }
    }

    pub fn unix(dir: &Path, port: u16) -> Self {
        let stream = UnixStream::connect(dir.join(format!(".s.PGSQL.{port}"))).expect("connects");
        stream.set_read_timeout(Some(LIMIT)).expect("timeout");
        Raw { stream: Box::new(stream), pid: 0, secret: Vec::new() }
    }

    pub fn send(&mut self, bytes: &[u8]) -> &mut Self {
        self.stream.write_all(bytes).expect("sent");
        self
    }

    /// Reads one message; `None` at the end of the stream.
    pub fn reply(&mut self) -> Option<Reply> {
        let mut head = [0; 5];
        match self.stream.read_exact(&mut head) {
            Ok(()) => {}
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
                ) =>
            {
                return None;
            }
            Err(e) => panic!("no reply: {e}"),
        }
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body).expect("the whole message");
        Some(Reply { kind: char::from(head[0]), body })
    }

    /// Reads up to the next ReadyForQuery, or the end.
    pub fn replies(&mut self) -> Vec<Reply> {
        let mut replies = Vec::new();
        while let Some(reply) = self.reply() {
            let last = reply.kind == 'Z';
            replies.push(reply);
            if last {
                break;
            }
        }
        replies
    }

    /// The kinds of the replies up to ReadyForQuery.
    pub fn kinds(&mut self) -> String {
        self.replies().iter().map(|r| r.kind).collect()
    }

    /// Like [`Self::kinds`], but also stops where the server asks for COPY data.
    pub fn stepwise_kinds(&mut self) -> String {
        let mut kinds = String::new();
        while let Some(reply) = self.reply() {
            kinds.push(reply.kind);
            if matches!(reply.kind, 'Z' | 'G') {
                break;
            }
        }
        kinds
    }

    pub fn startup(mut self, version: u32) -> Self {
        self.send(&startup(version, &[("user", "postgres"), ("database", "postgres")]));
        for reply in self.replies() {
            match reply.kind {
                'K' => {
                    self.pid = i32::from_be_bytes(reply.body[..4].try_into().expect("four"));
                    self.secret = reply.body[4..].to_vec();
                }
                'E' => panic!("refused: {}", reply.text()),
                _ => {}
            }
        }
        self
    }

    pub fn query(&mut self, sql: &str) -> &mut Self {
        self.send(&message(b'Q', &[sql.as_bytes(), b"\0"]))
    }
}

pub fn startup(version: u32, settings: &[(&str, &str)]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    for (name, value) in settings {
        body.extend_from_slice(name.as_bytes());
        body.push(0);
        body.extend_from_slice(value.as_bytes());
        body.push(0);
    }
    body.push(0);
    sized(&body)
}

pub fn sized(body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32 + 4).to_be_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes
}

pub fn message(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(sized(&parts.concat()));
    bytes
}

pub fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), b"\0", sql.as_bytes(), b"\0\0\0"])
}

/// A Bind without parameters and with results as text.
pub fn bind(portal: &str, statement: &str) -> Vec<u8> {
    message(b'B', &[portal.as_bytes(), b"\0", statement.as_bytes(), b"\0\0\0\0\0\0\0"])
}

pub fn execute(portal: &str, max_rows: i32) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), b"\0", &max_rows.to_be_bytes()])
}

pub fn sync() -> Vec<u8> {
    message(b'S', &[])
}

pub fn cancel(pid: i32, secret: &[u8]) -> Vec<u8> {
    sized(&[&80_877_102u32.to_be_bytes(), &pid.to_be_bytes(), secret].concat())
}
