//! The input buffer and the output buffer of a connection.
//!
//! Both start small and double as bytes arrive; a length that a client only claims allocates
//! nothing. An empty buffer has no memory: its event loop lends it some, from [`SpareBuffers`].
//! The connections of a loop thus use the same few pages in turn, which stay in the processor's
//! cache. Hundreds of connections with their own buffers would evict each other's from it.

use std::io::{self, Read, Write};

/// The initial size of a buffer.
const REST_BYTES: usize = 8 << 10;
/// A buffer that is larger than this when it becomes empty is freed.
const KEEP_BYTES: usize = 256 << 10;
/// The largest read.
const READ_BYTES: usize = 64 << 10;

/// The most output buffers that are kept.
const SPARE_OUTPUTS: usize = 64;

/// Buffer memory that the connections of one event loop use in turn.
#[derive(Debug, Default)]
pub struct SpareBuffers {
    // One is enough, because a message is rarely incomplete at the end of a turn.
    input: Vec<u8>,
    // Last in, first out: the buffer that was just sent is the one in the cache.
    outputs: Vec<Vec<u8>>,
}

impl SpareBuffers {
    /// Lends memory to the buffers without any.
    pub fn lend(&mut self, input: &mut Input, output: &mut Output) {
        if input.bytes.is_empty() {
            input.bytes = std::mem::take(&mut self.input);
        }
        if output.bytes.capacity() == 0
            && let Some(spare) = self.outputs.pop()
        {
            output.bytes = spare;
        }
    }

    /// Takes back the memory of the empty buffers.
    pub fn take_back(&mut self, input: &mut Input, output: &mut Output) {
        if input.is_empty() {
            let bytes = std::mem::take(&mut input.bytes);
            if self.input.is_empty() && bytes.len() <= READ_BYTES {
                self.input = bytes;
            }
        }
        if output.is_empty() {
            let bytes = std::mem::take(&mut output.bytes);
            let useful = (1..=READ_BYTES).contains(&bytes.capacity());
            if useful && self.outputs.len() < SPARE_OUTPUTS {
                self.outputs.push(bytes);
            }
        }
    }
}

/// Bytes that were received and not yet consumed.
#[derive(Debug, Default)]
pub struct Input {
    // Every byte up to `bytes.len()` is initialised. The data is in start..end.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// The result of a read from the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Bytes were read, and the socket may have more.
    Full,
    /// Bytes were read, and the socket had no more at that moment.
    Short,
    /// No bytes were there; the next poll tells when there are some.
    Nothing,
    /// The client has closed its side.
    End,
}

impl Input {
    /// The received bytes.
    pub fn data(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// The number of received bytes.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Removes the first `count` bytes.
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.bytes.len() > KEEP_BYTES {
                self.bytes = Vec::new();
            }
        }
    }

    /// Reads once.
    pub fn read_from(&mut self, from: &mut impl Read) -> io::Result<Received> {
        self.make_room();
        let room = self.bytes.get_mut(self.end..).unwrap_or_default();
        let room_bytes = room.len().min(READ_BYTES);
        loop {
            return match from.read(room.get_mut(..room_bytes).unwrap_or_default()) {
                Ok(0) => Ok(Received::End),
                Ok(count) => {
                    self.end = (self.end + count).min(self.bytes.len());
                    if count < room_bytes {
                        return Ok(Received::Short);
                    }
                    // The client sends much: use fewer and larger reads.
                    if self.bytes.len() < READ_BYTES {
                        self.bytes.resize(self.bytes.len() * 2, 0);
                    }
                    Ok(Received::Full)
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Received::Nothing),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => Err(e),
            };
        }
    }

    fn make_room(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = vec![0; REST_BYTES];
        }
        if self.start > 0 && self.bytes.len() - self.end < self.bytes.len() / 2 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.bytes.len() {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }
}

/// Bytes to send.
#[derive(Debug, Default)]
pub struct Output {
    /// Where messages are appended.
    pub bytes: Vec<u8>,
    /// Whether the output completes the answer to a request.
    pub answers: bool,
    sent: usize,
}

impl Output {
    /// The number of unsent bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Whether everything has been sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes until all bytes are sent (`true`) or the socket accepts no more (`false`).
    pub fn write_to(&mut self, to: &mut impl Write) -> io::Result<bool> {
        while let Some(rest @ [_, ..]) = self.bytes.get(self.sent..) {
            match to.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.clear();
        Ok(true)
    }

    /// Takes the buffer, for the caller to send: the bytes and the offset of the first unsent one.
    pub fn take(&mut self) -> (Vec<u8>, usize) {
        (std::mem::take(&mut self.bytes), std::mem::take(&mut self.sent))
    }

    /// Puts back the bytes that [`Self::take`] returned; the first `sent` of them are sent.
    pub fn put_back(&mut self, bytes: Vec<u8>, sent: usize) {
        self.bytes = bytes;
        self.sent = sent.min(self.bytes.len());
        if self.is_empty() {
            self.clear();
        }
    }

    /// Drops all bytes.
    pub fn clear(&mut self) {
        self.sent = 0;
        self.answers = false;
        self.bytes.clear();
        if self.bytes.capacity() > KEEP_BYTES {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_grows_with_what_arrives_and_shrinks_again() {
        let sent: Vec<u8> = (0..1_000_000u32).map(|i| i as u8).collect();
        let mut from = sent.as_slice();
        let mut input = Input::default();
        while input.read_from(&mut from).expect("reads") != Received::End {}
        assert_eq!(input.data(), sent);
        input.consume(sent.len() - 1);
        assert_eq!(input.data(), &sent[sent.len() - 1..]);
        input.consume(1);
        assert!(input.is_empty() && input.bytes.is_empty());
    }

    #[test]
    fn input_moves_its_tail_to_the_front() {
        let mut input = Input::default();
        let sent = [7u8; 6000];
        for _ in 0..1000 {
            let mut from = sent.as_slice();
            input.read_from(&mut from).expect("reads");
            input.consume(5990);
            let rest = input.len() - 10;
            input.consume(rest);
        }
        assert!(input.bytes.len() <= READ_BYTES);
    }

    #[test]
    fn empty_buffers_share_their_memory() {
        let mut spare = SpareBuffers::default();
        let (mut input, mut output) = (Input::default(), Output::default());
        spare.lend(&mut input, &mut output);
        input.read_from(&mut &b"question"[..]).expect("reads");
        output.bytes.extend_from_slice(b"answer");
        let memory = (input.bytes.as_ptr(), output.bytes.as_ptr());
        spare.take_back(&mut input, &mut output);
        assert_eq!((input.data(), &output.bytes[..]), (&b"question"[..], &b"answer"[..]));
        input.consume(8);
        output.clear();
        spare.take_back(&mut input, &mut output);
        assert!(input.bytes.is_empty() && output.bytes.capacity() == 0);
        let (mut input, mut output) = (Input::default(), Output::default());
        spare.lend(&mut input, &mut output);
        assert_eq!((input.bytes.as_ptr(), output.bytes.as_ptr()), memory);
        // A buffer with data keeps its memory.
        input.read_from(&mut &b"more"[..]).expect("reads");
        spare.lend(&mut input, &mut output);
        assert_eq!(input.data(), b"more");
    }

    struct Narrow(Vec<u8>, usize);
    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1 == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(self.1);
            self.1 -= count;
            self.0.extend_from_slice(&bytes[..count]);
            Ok(count)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn output_goes_out_in_order() {
        let mut output = Output::default();
        let mut to = Narrow(Vec::new(), 3);
        output.bytes.extend_from_slice(b"hello");
        assert!(!output.write_to(&mut to).expect("writes"));
        assert_eq!(output.len(), 2);
        output.bytes.extend_from_slice(b" world");
        to.1 = 100;
        assert!(output.write_to(&mut to).expect("writes"));
        assert_eq!(to.0, b"hello world");

        output.bytes.extend_from_slice(b"others send");
        let (bytes, start) = output.take();
        assert_eq!((&bytes[start..], output.is_empty()), (&b"others send"[..], true));
        output.put_back(bytes, 7);
        assert!(output.write_to(&mut to).expect("writes"));
        assert_eq!(to.0, b"hello worldsend");
    }
}
