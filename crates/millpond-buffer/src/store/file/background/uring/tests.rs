//! Requests for the rest of a job, wherever the kernel has stopped.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::Ordering;
use std::sync::mpsc;

use super::super::tests::{REL, SEGMENT, store};
use super::*;
use crate::arena::Arena;
use crate::store::{FileStore, Memory, PendingRead, StoreError};
use crate::{BlockNumber, IoMethod, PageBuffer};

const MARK: u8 = 0xEE;

/// The contents of blocks in the store.
fn stored(first: u32, count: u32) -> Vec<u8> {
    let page = |block: u32| {
        let mut page = [block as u8; PAGE_SIZE];
        page[..4].copy_from_slice(&block.to_le_bytes());
        page
    };
    (first..first + count).flat_map(page).collect()
}

/// Goes on with a read of which some bytes are there. Returns the number of pieces of memory in the
/// first request.
fn read_rest(
    store: &FileStore,
    PendingRead(transfer): PendingRead,
    first: u32,
    done: usize,
) -> usize {
    let pieces = store.pieces_of(&transfer, REL, BlockNumber(first)).unwrap();
    let job = Job { transfer, pieces, unsynced: None };
    let mut ring = Uring::for_all().unwrap();
    let number = ring.free.pop().unwrap();
    ring.slots[number] = Some(Slot { job, done, vectors: IoVectors::default() });
    assert!(ring.push(number).is_none());
    // A ring that is dropped waits for the kernel, and goes on where that has stopped.
    ring.slots[number].as_ref().unwrap().vectors.len()
}

#[test]
fn a_request_is_for_what_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let Some(store) = store(dir.path(), IoMethod::IoUring, false) else { return };
    let arena = Arena::new(8, false).unwrap();
    for (first, count) in [(5, 4), (3, 3), (6, 2), (6, 1), (2, 1)] {
        let all = count as usize * PAGE_SIZE;
        let border = (SEGMENT - first % SEGMENT) as usize * PAGE_SIZE;
        let places = [0, 512, PAGE_SIZE, PAGE_SIZE + 512, border - 512, border, border + 512];
        for done in places.into_iter().filter(|done| *done < all) {
            let case = format!("{count} blocks from {first}, {done} bytes done");
            let check = |found: &[u8]| {
                assert!(found[..done].iter().all(|byte| *byte == MARK), "{case}: before");
                assert!(found[done..] == stored(first, count)[done..], "{case}: after");
            };
            // Into frames.
            let (told, hear) = mpsc::channel();
            let lent = arena.lend(0..count);
            let marks = u64::from_ne_bytes([MARK; 8]);
            lent.words().flatten().for_each(|word| word.store(marks, Ordering::Relaxed));
            let tell = move |memory: Option<Memory>, result: Result<(), StoreError>| {
                told.send((memory, result)).unwrap();
            };
            let read = PendingRead::into_frames(REL, BlockNumber(first), lent, tell);
            let vectors = read_rest(&store, read, first, done);
            let end = if done < border { border.min(all) } else { all };
            let expected = if count > 1 { end.div_ceil(PAGE_SIZE) - done / PAGE_SIZE } else { 0 };
            assert_eq!(vectors, expected, "{case}");
            let (memory, result) = hear.recv().unwrap();
            result.unwrap();
            let Some(Memory::Frames(lent, None)) = memory else { panic!("{case}: elsewhere") };
            let words = lent.words().flatten().map(|word| word.load(Ordering::Relaxed));
            check(&words.flat_map(u64::to_ne_bytes).collect::<Vec<u8>>());
            // Into memory of its own.
            let (told, hear) = mpsc::channel();
            let mut buffer = PageBuffer::new(count as usize);
            buffer.pages_mut().into_iter().for_each(|page| page.fill(MARK));
            let tell = move |buffer: PageBuffer, result: Result<(), StoreError>| {
                told.send((buffer, result)).unwrap();
            };
            let read = PendingRead::new(REL, BlockNumber(first), buffer, tell);
            assert_eq!(read_rest(&store, read, first, done), 0, "{case}");
            let (buffer, result) = hear.recv().unwrap();
            result.unwrap();
            check(&buffer.pages().flatten().copied().collect::<Vec<u8>>());
        }
    }
}
