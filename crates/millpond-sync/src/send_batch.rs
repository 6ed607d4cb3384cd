//! Sending to many sockets with one call of the kernel.
//!
//! A thread that serves many clients has many replies to send at a time. Sent one by one, each wakes a client, which takes
//! the processor from the sender when that call returns, finds its one reply, and has the next wait for it to go to sleep
//! again. Handed over together, all of them are on their way before anybody runs.
//!
//! # How it works
//! [`SendBatch`] owns a small io_uring, on which nothing is ever under way between two calls of [`SendBatch::send`]: each
//! request is a `send` with `MSG_DONTWAIT`, which the kernel carries out, or refuses, while it is being handed over.
//!
//! # Invariants
//! * The memory of a request belongs to a [`Letter`] that the caller lends for the call; the call returns when the kernel
//!   has completed every request.
//! * If the ring fails in the middle, which it never should, nobody can tell what the kernel still reads: that memory is
//!   leaked, its letters say that they are lost, and the ring is not used again.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use io_uring::{IoUring, Probe, opcode, types};
use rustix::net::SendFlags;

/// How often the kernel is asked again while it has no memory for requests.
const PATIENCE: usize = 1000;

/// Bytes for a socket.
#[derive(Debug)]
pub struct Letter<'s> {
    to: BorrowedFd<'s>,
    bytes: Vec<u8>,
    start: usize,
    sent: io::Result<usize>,
}

/// What became of a letter.
#[derive(Debug)]
pub struct Delivery {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where the rest begins that the socket has not taken.
    pub rest: usize,
    /// What the socket says. [`io::ErrorKind::ConnectionAborted`]: the bytes are gone, and nobody knows how many have been
    /// sent.
    pub result: io::Result<()>,
}

impl<'s> Letter<'s> {
    /// What lies in `bytes` from `start` on is to be sent.
    pub fn new(to: BorrowedFd<'s>, bytes: Vec<u8>, start: usize) -> Self {
        let start = start.min(bytes.len());
        Self { to, bytes, start, sent: Ok(0) }
    }

    /// What became of it.
    pub fn delivery(self) -> Delivery {
        let (count, result) = match self.sent {
            Ok(count) => (count, Ok(())),
            Err(error) => (0, Err(error)),
        };
        let rest = (self.start + count).min(self.bytes.len());
        Delivery { bytes: self.bytes, rest, result }
    }
}

/// A way to send many letters at once, for one thread.
pub struct SendBatch {
    // `None` once it has failed.
    ring: Option<IoUring>,
    room: usize,
}

impl SendBatch {
    /// One for `room` letters at a time; an error where the kernel allows no such thing. It must be made by the thread that
    /// uses it.
    pub fn new(room: u32) -> io::Result<Self> {
        let single = IoUring::builder().dontfork().setup_single_issuer().build(room);
        // Kernels before 6.0 don't know that there is only one thread.
        let ring = single.or_else(|_| IoUring::builder().dontfork().build(room))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Send::CODE) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self { ring: Some(ring), room: room as usize })
    }

    /// How many letters one call takes; none once the ring has failed.
    pub fn room(&self) -> usize {
        if self.ring.is_some() { self.room } else { 0 }
    }

    /// Sends what the sockets take at once, without waiting. Letters beyond [`Self::room`] are left as they are.
    pub fn send(&mut self, letters: &mut [Letter<'_>]) {
        let Some(ring) = &mut self.ring else { return };
        let mut open = submit(ring, self.room, letters);
        let mut patience = PATIENCE;
        while open > 0 {
            let entered = ring.submit_and_wait(open);
            for completed in ring.completion() {
                open = open.saturating_sub(1);
                let Some(letter) = letters.get_mut(completed.user_data() as usize) else {
                    continue;
                };
                letter.sent = match usize::try_from(completed.result()) {
                    Ok(bytes) => Ok(bytes),
                    Err(_) => Err(io::Error::from_raw_os_error(-completed.result())),
                };
            }
            match entered {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_temporary(&error) && patience > 0 => {
                    patience -= 1;
                    std::thread::yield_now();
                }
                Err(_) => break,
            }
        }
        if open > 0 {
            self.ring = None;
            for letter in letters.iter_mut().filter(|letter| is_lost(&letter.sent)) {
                std::mem::forget(std::mem::take(&mut letter.bytes));
            }
        }
    }
}

/// Prepares the requests for the first `room` letters, which count as lost from now on; returns how many there are.
fn submit(ring: &mut IoUring, room: usize, letters: &mut [Letter<'_>]) -> usize {
    let flags = (SendFlags::DONTWAIT | SendFlags::NOSIGNAL).bits().cast_signed();
    let mut queue = ring.submission();
    let mut open = 0;
    for (number, letter) in letters.iter_mut().take(room).enumerate() {
        let rest = letter.bytes.get(letter.start..).unwrap_or_default();
        let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let request = opcode::Send::new(types::Fd(letter.to.as_raw_fd()), rest.as_ptr(), length)
            .flags(flags)
            .build()
            .user_data(number as u64);
        // SAFETY: `rest` is `length` or more initialised bytes on the heap, owned by the letter, which is lent to
        // `SendBatch::send` until that returns, and not touched before. By then the kernel has completed the request, or
        // the memory has been leaked. The descriptor is open as long: the letter borrows it.
        if unsafe { queue.push(&request) }.is_err() {
            // Never: the queue has room for all of them, and was empty.
            break;
        }
        letter.sent = Err(io::ErrorKind::ConnectionAborted.into());
        open += 1;
    }
    open
}

/// The kernel has no memory for requests, for now.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy)
}

/// The kernel has not said what became of it.
fn is_lost(sent: &io::Result<usize>) -> bool {
    matches!(sent, Err(error) if error.raw_os_error().is_none())
}

impl std::fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendBatch").field("room", &self.room()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    /// `None` where the kernel has no io_uring: there is nothing to be tested then.
    fn batch(room: u32) -> Option<SendBatch> {
        SendBatch::new(room).inspect_err(|error| println!("no io_uring: {error}")).ok()
    }

    #[test]
    fn every_letter_arrives_at_its_own_socket() {
        let Some(mut batch) = batch(4) else { return };
        let pairs: Vec<_> = (0..4).map(|_| UnixStream::pair().expect("a pair")).collect();
        for round in 0..100u8 {
            let mut letters: Vec<_> = pairs
                .iter()
                .enumerate()
                .map(|(i, (socket, _))| Letter::new(socket.as_fd(), vec![0xff, i as u8, round], 1))
                .collect();
            batch.send(&mut letters);
            for ((i, letter), pair) in letters.into_iter().enumerate().zip(&pairs) {
                let delivery = letter.delivery();
                delivery.result.expect("sent");
                assert_eq!((delivery.bytes.len(), delivery.rest), (3, 3));
                let mut got = [0; 2];
                (&pair.1).read_exact(&mut got).expect("received");
                assert_eq!(got, [i as u8, round]);
            }
        }
    }

    #[test]
    fn a_full_socket_and_one_without_a_reader_hold_nobody_up() {
        let Some(mut batch) = batch(8) else { return };
        let (full, _reader) = UnixStream::pair().expect("a pair");
        let (gone, reader) = UnixStream::pair().expect("a pair");
        let (fine, mut receiver) = UnixStream::pair().expect("a pair");
        drop(reader);
        let large = 16 << 20;
        for again in [false, true] {
            let mut letters = [
                Letter::new(full.as_fd(), vec![1; large], 0),
                Letter::new(gone.as_fd(), vec![2; 10], 0),
                Letter::new(fine.as_fd(), vec![3; 10], 0),
            ];
            batch.send(&mut letters);
            let [full, gone, fine] = letters.map(Letter::delivery);
            match full.result {
                Ok(()) => assert!(!again && (1..large).contains(&full.rest)),
                Err(error) => assert!(again && error.kind() == io::ErrorKind::WouldBlock),
            }
            assert_eq!(gone.result.expect_err("gone").kind(), io::ErrorKind::BrokenPipe);
            fine.result.expect("sent");
            assert_eq!(fine.rest, 10);
            receiver.read_exact(&mut [0; 10]).expect("received");
        }
    }

    #[test]
    fn letters_beyond_its_room_are_left() {
        let Some(mut batch) = batch(1) else { return };
        let (a, _other) = UnixStream::pair().expect("a pair");
        let mut letters = [Letter::new(a.as_fd(), vec![1], 0), Letter::new(a.as_fd(), vec![2], 0)];
        batch.send(&mut letters);
        assert_eq!(letters.map(|letter| letter.delivery().rest), [1, 0]);
    }
}
