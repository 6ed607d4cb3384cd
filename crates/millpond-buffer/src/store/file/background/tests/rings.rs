//! What a ring asks of the kernel, and a kernel that refuses to serve it, for a while or for good.

use rustix::io::Errno;

use super::uring::{Uring, refusals};
use super::*;
use crate::arena::Arena;
use crate::store::Memory;
use crate::store::file::unsynced::Unsynced;
use crate::tests::OnLine;

/// A store with shared rings; `None` if the system doesn't support them.
fn store_with_shared_rings(dir: &std::path::Path) -> Option<FileStore> {
    let store = store(dir, IoMethod::IoUring, false)?;
    if store.background.running().shared_rings.is_none() {
        println!("skipped: no io_uring for all here");
        return None;
    }
    Some(store)
}

/// At first the kernel has no memory for a thread that enters a ring. The jobs of other threads
/// there don't suffer.
#[test]
fn a_kernel_without_memory_is_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let Some(store) = store_with_shared_rings(dir.path()) else { return };
    let (told, hear) = mpsc::channel();
    let heard = std::cell::RefCell::new(Vec::new());
    refusals::set(Errno::NOMEM, 5);
    (0..6).step_by(2).for_each(|first| begin(&store, first, 1, &told));
    assert_eq!(refusals::left(), 2);
    let is_done = || {
        heard.borrow_mut().extend(hear.try_iter());
        heard.borrow().len() == 3
    };
    while !is_done() {
        store.wait_for_read(&is_done, &mut || heard.borrow_mut().push(hear.recv().unwrap()));
    }
    refusals::set(Errno::NOMEM, 0);
    for (first, read) in heard.take() {
        assert_eq!(read.unwrap(), [first]);
    }
}

/// The requester gets the error, and later reads go to the threads that own rings.
#[test]
fn others_read_when_a_ring_has_failed() {
    let dir = tempfile::tempdir().unwrap();
    let Some(store) = store_with_shared_rings(dir.path()) else { return };
    let (told, hear) = mpsc::channel();
    refusals::set(Errno::IO, 1);
    begin(&store, 0, 2, &told);
    let (_, failed) = hear.recv().unwrap();
    assert!(failed.unwrap_err().to_string().contains("io_uring failed"));
    // Otherwise the reaper would look after it for ever.
    let shared = store.background.running().shared_rings.as_ref();
    assert!(shared.is_none_or(shared_rings::SharedRings::are_idle));
    for first in (0..BLOCKS).step_by(2) {
        begin(&store, first, 2, &told);
        assert_eq!(hear.recv().unwrap().1.unwrap(), [first, first + 1]);
    }
}

/// Callbacks panic while jobs are given up. No memory comes back that the device may still write
/// to, and all requesters are told.
#[test]
fn memory_that_a_ring_has_is_left_whatever_panics() {
    let dir = tempfile::tempdir().unwrap();
    let Some(store) = store_with_shared_rings(dir.path()) else { return };
    let arena = Arena::new(16, false).unwrap();
    // Either the end of a job panics, and then the log; or the log alone, as it reports that the
    // store has stopped.
    for ends_panic in [true, false] {
        let (told, hear) = mpsc::channel();
        let stops = Arc::<Unsynced>::default();
        let mut ring = Uring::for_all().unwrap();
        for first in 0..4 {
            let told = told.clone();
            let done = move |memory: Option<Memory>, result: Result<(), StoreError>| {
                told.send((memory.is_some(), result.is_ok())).unwrap();
                assert!(!ends_panic, "made to panic");
            };
            let lent = arena.lend(first * 4..first * 4 + 4);
            let PendingRead(transfer) =
                PendingRead::into_frames(REL, BlockNumber(first * 5), lent, done);
            let pieces = store.pieces_of(&transfer, REL, BlockNumber(first * 5)).unwrap();
            let unsynced = (!ends_panic).then(|| Arc::clone(&stops));
            assert!(ring.add(Job { transfer, pieces, unsynced }).is_none());
        }
        refusals::set(Errno::IO, 1);
        let panics = OnLine(|| panic!("made to panic by a line in the log"));
        tracing::subscriber::with_default(panics, || drop(ring));
        assert_eq!(hear.try_iter().collect::<Vec<_>>(), [(false, false); 4]);
        // What a write has left in the file is unknown, so no sync may succeed after it.
        assert_eq!(stops.check_running().is_err(), !ends_panic);
    }
}

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
    // A ring that is dropped waits for the kernel, and goes on where that has stopped.
    ring.add_rest(job, done)
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
