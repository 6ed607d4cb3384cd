//! Letting the kernel fill memory that others may be looking at.
//!
//! **Role.** A page that is read from a file should be put where it will be used. If that memory is read by others at any
//! time, optimistically, no `&mut [u8]` to it may ever exist, and so none of the calls can be used that ask for one. Here
//! memory may also be given as a shared slice of atomic words.
//!
//! **Why that is sound.** Through a shared reference to atomics anybody may store, at any time; here the kernel does. It
//! is outside of the program, like another process with which memory is shared: the compiler sees a call of a function
//! that it knows nothing of, with an address that it must take to be known there, so it moves no access to this memory
//! across it and assumes nothing about what it does. Who loads a word meanwhile, as an atomic, finds
//! some bytes of before and some of after, as if the kernel had stored them one by one, relaxed: a value that means nothing before a
//! version has been validated, and never an undefined one. The processor runs the kernel's stores as
//! it runs ours.
//!
//! **Memory ordering.** The call is to be taken for relaxed stores. What is stored before it by a release fence, as
//! [`crate::latch::Version::write_begin`] does, is seen by whoever has seen any byte of what the call stores and then makes an
//! acquire fence ([`crate::latch::Version::validate`]); and what the call has stored is seen by whoever acquires what is stored,
//! with release, after it has returned. (On the processors that we know fences order the kernel's stores like all others
//! of that thread. A device that writes by itself does so after it was told, and has ended when the call returns.)
//!
//! **Calls that go on.** An io_uring is told where memory is ([`IoVectors`]) and fills it later. All of this holds for it, too, but that the
//! memory has to be kept until the kernel says that it is done, which no borrow does: that is for who hands over the request.
//!
//! **Failure.** Whatever the call returns, any of the bytes may have been changed.
//!
//! Neither Miri nor ThreadSanitizer knows what a kernel does: under them give these functions exclusive memory only.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::AtomicU64;

/// Memory for the kernel to fill.
#[repr(transparent)]
pub struct IoTarget<'a> {
    vector: libc::iovec,
    memory: PhantomData<&'a AtomicU64>,
}

impl<'a> IoTarget<'a> {
    /// Memory that nobody else looks at.
    #[must_use]
    pub fn exclusive(bytes: &'a mut [u8]) -> Self {
        Self::new(bytes.as_mut_ptr(), bytes.len())
    }

    /// Memory that others may look at, and that they may even change.
    #[must_use]
    pub fn shared(words: &'a [AtomicU64]) -> Self {
        Self::new(words.as_ptr().cast_mut().cast(), size_of_val(words))
    }

    fn new(start: *mut u8, len: usize) -> Self {
        let vector = libc::iovec { iov_base: start.cast(), iov_len: len };
        Self { vector, memory: PhantomData }
    }

    /// Where it begins.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.vector.iov_base.cast()
    }

    /// How many bytes it has room for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.vector.iov_len
    }

    /// Whether it has room for none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Leaves out the first `filled` bytes of several.
    pub fn advance(targets: &mut &mut [Self], filled: usize) {
        let mut left = filled;
        let is_full = |target: &&Self| match left.checked_sub(target.len()) {
            Some(more) => {
                left = more;
                true
            }
            None => false,
        };
        let full = targets.iter().take_while(is_full).count();
        *targets = &mut std::mem::take(targets)[full..];
        if let Some(first) = targets.first_mut() {
            // Less than it has room for.
            first.vector.iov_base = first.vector.iov_base.wrapping_byte_add(left);
            first.vector.iov_len -= left;
        }
    }
}

/// Where targets are, for a kernel that fills them while the program goes on. Just addresses: nothing keeps the memory.
#[derive(Default)]
pub struct IoVectors(Vec<libc::iovec>);

// SAFETY: nothing here uses the addresses.
unsafe impl Send for IoVectors {}

impl IoVectors {
    /// The addresses of targets.
    #[must_use]
    pub fn of(targets: &[IoTarget<'_>]) -> Self {
        Self(targets.iter().map(|target| target.vector).collect())
    }

    /// Where the kernel finds them, as long as this lives.
    #[must_use]
    pub fn as_ptr(&self) -> *const libc::iovec {
        self.0.as_ptr()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Fills memory with what a file has from `offset`; returns how many bytes. 0 is the file's end. Not more targets than the kernel
/// takes at a time, which is 1,024.
pub fn read_at(file: impl AsFd, targets: &mut [IoTarget<'_>], offset: u64) -> io::Result<usize> {
    let (file, offset) = (file.as_fd().as_raw_fd(), to_offset(offset)?);
    let filled = match targets {
        [IoTarget { vector, .. }] => {
            // SAFETY: the target borrows `iov_len` bytes from `iov_base` that the kernel may store to: exclusively, or
            // atomics (see above); and it is borrowed until the call has returned.
            unsafe { libc::pread(file, vector.iov_base, vector.iov_len, offset) }
        }
        // SAFETY: as above, for each; a target is an `iovec` to the kernel.
        _ => unsafe { libc::preadv(file, targets.as_ptr().cast(), count(targets), offset) },
    };
    usize::try_from(filled).map_err(|_| io::Error::last_os_error())
}

/// Like [`read_at`], but fails with [`io::ErrorKind::WouldBlock`] if the device would have to be waited for.
pub fn read_at_hand(
    file: impl AsFd,
    targets: &mut [IoTarget<'_>],
    offset: u64,
) -> io::Result<usize> {
    let (file, offset) = (file.as_fd().as_raw_fd(), to_offset(offset)?);
    let nowait = libc::RWF_NOWAIT;
    // SAFETY: as in `read_at`.
    let filled =
        unsafe { libc::preadv2(file, targets.as_ptr().cast(), count(targets), offset, nowait) };
    usize::try_from(filled).map_err(|_| io::Error::last_os_error())
}

fn count(targets: &[IoTarget<'_>]) -> libc::c_int {
    libc::c_int::try_from(targets.len()).unwrap_or(libc::c_int::MAX)
}

fn to_offset(offset: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

// Miri knows no `preadv`.
#[cfg(all(test, not(any(loom, shuttle, miri))))]
mod tests {
    use super::*;
    use std::fs::File;
    use std::sync::atomic::Ordering;

    #[test]
    fn shared_and_exclusive_memory_is_filled_in_order() {
        let file = File::open("/proc/self/exe").unwrap();
        let mut wanted = vec![0; 56];
        let mut whole = [IoTarget::exclusive(&mut wanted)];
        assert_eq!(read_at(&file, &mut whole, 0).unwrap(), 56);

        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(7)).collect();
        let mut bytes = [0; 24];
        let mut targets = [IoTarget::shared(&words), IoTarget::exclusive(&mut bytes)];
        let mut rest = &mut targets[..];
        IoTarget::advance(&mut rest, 0);
        assert_eq!(read_at(&file, rest, 0).unwrap(), 56);
        // Again, the second half only, by way of the other call; and nothing.
        IoTarget::advance(&mut rest, 40);
        assert_eq!(rest.iter().map(IoTarget::len).sum::<usize>(), 16);
        assert_eq!(read_at(&file, rest, 40).unwrap(), 16);
        IoTarget::advance(&mut rest, 16);
        assert!(rest.is_empty());
        let mut found: Vec<u8> =
            words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        found.extend(bytes);
        assert_eq!(found, wanted);
    }

    #[test]
    fn the_end_of_a_file_and_errors_are_told() {
        let path = "/proc/self/exe";
        let file = File::open(path).unwrap();
        let words = [const { AtomicU64::new(7) }; 2];
        let mut targets = [IoTarget::shared(&words)];
        assert_eq!(read_at(&file, &mut targets, file.metadata().unwrap().len()).unwrap(), 0);
        let error = read_at(&file, &mut targets, u64::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let directory = File::open("/").unwrap();
        assert!(read_at(&directory, &mut targets, 0).is_err());
        assert!(read_at_hand(&directory, &mut targets, 0).is_err());
    }
}
