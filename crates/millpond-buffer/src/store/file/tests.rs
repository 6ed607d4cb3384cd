//! The file store as a whole: blocks across files, crashes, failures, and several threads.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use millpond_vfs::testing::{AskingVfs, Call};
use millpond_vfs::{OsVfs, Vfs};
use rustix::io::Errno;
use tempfile::TempDir;

use super::*;
use crate::ids;
use proptest::prelude::*;

const REL: RelFork = RelationId::constant(16384).main();

fn small(dir: &Path) -> FileStore {
    small_on(Arc::new(OsVfs), dir)
}

fn small_on(vfs: Arc<dyn Vfs>, dir: &Path) -> FileStore {
    let options = FileStoreOptions { segment_blocks: 3, vfs, ..FileStoreOptions::default() };
    FileStore::open_with(dir, options).expect("a store")
}

fn empty() -> (TempDir, FileStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = small(dir.path());
    (dir, store)
}

/// A store of one fork, whose blocks are zeros.
fn filled(blocks: u32) -> (TempDir, FileStore) {
    let (dir, store) = empty();
    store.create(REL).unwrap();
    store.extend(REL, BlockNumber(0), blocks).unwrap();
    (dir, store)
}

/// A file system whose files have no descriptors.
fn plain() -> Arc<dyn Vfs> {
    AskingVfs::new(OsVfs, |_, _| Ok(()))
}

fn page(fill: u8) -> Box<[u8; PAGE_SIZE]> {
    Box::new([fill; PAGE_SIZE])
}

/// Reads `count` blocks, checks that all bytes of each agree, and returns each one's first byte.
fn read(store: &FileStore, first: u32, count: usize) -> Result<Vec<u8>, StoreError> {
    let mut pages: Vec<_> = (0..count).map(|_| page(0xEE)).collect();
    let mut refs: Vec<&mut [u8; PAGE_SIZE]> = pages.iter_mut().map(|page| &mut **page).collect();
    store.read(REL, BlockNumber(first), &mut refs)?;
    assert!(pages.iter().all(|page| page.iter().all(|&byte| byte == page[0])));
    Ok(pages.iter().map(|page| page[0]).collect())
}

fn write(store: &FileStore, first: u32, fills: &[u8]) -> Result<(), StoreError> {
    let pages: Vec<_> = fills.iter().map(|&fill| page(fill)).collect();
    let refs: Vec<&[u8; PAGE_SIZE]> = pages.iter().map(|page| &**page).collect();
    store.write(REL, BlockNumber(first), &refs)
}

#[test]
fn runs_cross_segments() {
    let (dir, store) = empty();
    assert!(!store.exists(REL).unwrap());
    assert_eq!(store.block_count(REL).unwrap(), 0);
    assert!(matches!(store.extend(REL, BlockNumber(0), 1), Err(StoreError::Missing { .. })));
    assert!(matches!(read(&store, 0, 1), Err(StoreError::Missing { .. })));
    store.create(REL).unwrap();
    store.create(REL).unwrap();
    assert!(store.exists(REL).unwrap());
    store.extend(REL, BlockNumber(0), 8).unwrap();
    assert_eq!(store.block_count(REL).unwrap(), 8);
    write(&store, 1, &[1, 2, 3, 4, 5, 6]).unwrap();
    assert_eq!(read(&store, 0, 8).unwrap(), [0, 1, 2, 3, 4, 5, 6, 0]);
    let end = read(&store, 6, 3);
    assert!(matches!(end, Err(StoreError::BeyondEnd { blocks: 8, .. })), "{end:?}");
    assert!(dir.path().join("16384.2").exists());
    drop(store);
    let store = small(dir.path());
    assert_eq!(read(&store, 4, 2).unwrap(), [4, 5]);
    assert_eq!(store.relations().unwrap(), [REL.relation]);
}

#[test]
fn a_second_store_on_a_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let first = small(dir.path());
    let second = FileStore::open(dir.path()).unwrap_err().to_string();
    assert!(second.contains("another store has this directory open"), "{second}");
    assert!(second.contains(&dir.path().display().to_string()), "{second}");
    drop(first);
    small(dir.path());
}

#[test]
fn a_torn_page_and_segments_left_over_from_a_crash_are_no_data() {
    let (dir, store) = filled(1);
    drop(store);
    // The file system has kept half a page and a later segment of a growth that was never synced.
    let torn = dir.path().join("16384");
    let mut bytes = fs::read(&torn).unwrap();
    bytes.extend_from_slice(&[0xAB; 100]);
    fs::write(&torn, bytes).unwrap();
    fs::write(dir.path().join("16384.1"), [0xCD; PAGE_SIZE]).unwrap();
    let store = small(dir.path());
    assert_eq!(store.block_count(REL).unwrap(), 1);
    assert!(matches!(read(&store, 1, 1), Err(StoreError::BeyondEnd { blocks: 1, .. })));
    store.extend(REL, BlockNumber(1), 5).unwrap();
    assert_eq!(read(&store, 0, 6).unwrap(), [0; 6]);
}

#[test]
fn removal_takes_every_fork_and_may_be_repeated() {
    let (dir, store) = empty();
    for fork in ids::Fork::ALL {
        store.create(REL.relation.fork(fork)).unwrap();
        store.extend(REL.relation.fork(fork), BlockNumber(0), 7).unwrap();
    }
    fs::write(dir.path().join("16384_other"), "not ours").unwrap();
    store.remove(REL.relation).unwrap();
    store.remove(REL.relation).unwrap();
    let mut left: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["16384_other", "lock"]);
    assert!(store.relations().unwrap().is_empty());
    assert!(matches!(write(&store, 0, &[1]), Err(StoreError::Missing { .. })));
    store.sync().unwrap();
    store.create(REL).unwrap();
    assert_eq!(store.block_count(REL).unwrap(), 0);
}

#[test]
fn a_removal_that_failed_halfway_can_be_completed() {
    let dir = tempfile::tempdir().unwrap();
    let fails = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&fails);
    let vfs = AskingVfs::new(OsVfs, move |call, path| {
        let refused = call == Call::Remove && path.ends_with("16384.1");
        if refused && asked.load(Ordering::Relaxed) {
            return Err(Errno::IO.into());
        }
        Ok(())
    });
    let store = small_on(vfs, dir.path());
    store.create(REL).unwrap();
    store.extend(REL, BlockNumber(0), 9).unwrap();
    store.remove(REL.relation).unwrap_err();
    assert_eq!(store.relations().unwrap(), [REL.relation], "what is left is found again");
    fails.store(false, Ordering::Relaxed);
    store.remove(REL.relation).unwrap();
    assert_eq!(store.relations().unwrap(), []);
}

#[test]
fn the_length_of_a_fork_is_read_without_opening_its_segments() {
    let (dir, store) = filled(20);
    drop(store);
    let opened = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&opened);
    let vfs = AskingVfs::new(OsVfs, move |call, path| {
        let is_segment = path.to_string_lossy().contains("16384");
        count.fetch_add(u32::from(is_segment && call == Call::Open), Ordering::Relaxed);
        Ok(())
    });
    let store = small_on(vfs, dir.path());
    assert_eq!(store.block_count(REL).unwrap(), 20);
    assert_eq!(opened.load(Ordering::Relaxed), 0);
    // Growth needs the first segment, which says that the fork exists, and the segments that grow.
    store.extend(REL, BlockNumber(20), 2).unwrap();
    assert_eq!(store.block_count(REL).unwrap(), 22);
    assert_eq!(opened.load(Ordering::Relaxed), 3);
}

/// A fork is looked up between its own removal and that of its name. A new fork must not get the
/// old file.
#[test]
fn a_fork_that_was_looked_at_as_it_was_removed_is_made_anew() {
    let (dir, store) = empty();
    let ended = AtomicBool::new(false);
    let round = || {
        store.create(REL)?;
        store.extend(REL, BlockNumber(0), 2)?;
        write(&store, 0, &[1, 2])?;
        let found = fs::metadata(dir.path().join("16384")).map(|file| file.len());
        store.remove(REL.relation)?;
        Ok::<_, StoreError>(found.ok())
    };
    let sizes: Result<Vec<_>, _> = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let _ = store.block_count(REL);
                }
            });
        }
        let sizes = (0..1000).map(|_| round()).collect();
        ended.store(true, Ordering::Relaxed);
        sizes
    });
    assert_eq!(sizes.unwrap(), [Some(2 * PAGE_SIZE as u64); 1000]);
}

#[test]
fn reading_without_waiting_finds_what_was_just_written() {
    let (_dir, store) = filled(5);
    write(&store, 0, &[1, 2, 3, 4, 5]).unwrap();
    let (mut a, mut b) = (page(0), page(0));
    // The file system may not support this at all. But a wrong answer is an error.
    if store.try_read(REL, BlockNumber(2), &mut [&mut a, &mut b]).unwrap() {
        assert_eq!((a[0], b[PAGE_SIZE - 1]), (3, 4));
        let end = store.try_read(REL, BlockNumber(5), &mut [&mut a]);
        assert!(matches!(end, Err(StoreError::BeyondEnd { blocks: 5, .. })), "{end:?}");
    }
    store.nowait.store(false, Ordering::Relaxed);
    assert!(!store.try_read(REL, BlockNumber(2), &mut [&mut a]).unwrap());
}

#[test]
fn a_failed_sync_is_final() {
    let (_dir, store) = filled(1);
    store.unsynced.stop("sync it".into(), io::Error::from_raw_os_error(5));
    for _ in 0..2 {
        assert!(matches!(store.sync(), Err(StoreError::Stopped { .. })));
        assert!(matches!(write(&store, 0, &[1]), Err(StoreError::Stopped { .. })));
        assert!(matches!(store.extend(REL, BlockNumber(1), 1), Err(StoreError::Stopped { .. })));
    }
    assert_eq!(read(&store, 0, 1).unwrap(), [0]);
}

/// After each change of a file's size or of a name there is something to sync. After a sync there
/// is nothing.
#[test]
fn whatever_changes_is_synced() {
    let (_dir, store) = empty();
    let is_left = || store.unsynced.left();
    let after = |change: &dyn Fn() -> Result<(), StoreError>| {
        change().unwrap();
        let left = is_left();
        store.sync().unwrap();
        assert_eq!(is_left(), (false, 0));
        left
    };
    assert_eq!(after(&|| Ok(())), (true, 0), "what was before is unknown");
    assert_eq!(after(&|| store.create(REL)), (true, 0));
    assert_eq!(after(&|| store.extend(REL, BlockNumber(0), 2)), (false, 1));
    assert_eq!(after(&|| store.extend(REL, BlockNumber(2), 2)), (true, 2), "another file");
    assert_eq!(after(&|| write(&store, 0, &[1])), (false, 1));
    assert_eq!(after(&|| store.truncate(REL, 1)), (false, 2));
    assert!(after(&|| store.remove(REL.relation)).0);
    assert_eq!(after(&|| store.remove(REL.relation)), (false, 0), "it was not there");
}

#[test]
fn idle_forks_are_closed_when_descriptors_run_out() {
    let (_dir, store) = filled(4);
    write(&store, 0, &[1, 2, 3, 4]).unwrap();
    let used = store.fork(REL);
    store.forks.remove_idle();
    assert!(Arc::<ForkFiles>::ptr_eq(&used, &store.fork(REL)));
    drop(used);
    store.forks.remove_idle();
    assert!(store.forks.is_empty());
    assert_eq!(store.unsynced.left().1, 2);
    store.sync().unwrap();
    assert_eq!(read(&store, 0, 4).unwrap(), [1, 2, 3, 4]);
}

#[test]
fn readers_writers_growth_and_sync_at_once() {
    let (_dir, store) = empty();
    store.create(REL).unwrap();
    let grown = AtomicU32::new(0);
    const BLOCKS: u32 = 60;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for block in 0..BLOCKS {
                store.extend(REL, BlockNumber(block), 1).unwrap();
                grown.store(block + 1, Ordering::Release);
            }
        });
        for lane in 0..2u32 {
            let (store, grown) = (&store, &grown);
            scope.spawn(move || {
                for block in (lane..BLOCKS).step_by(2) {
                    while grown.load(Ordering::Acquire) <= block {
                        std::thread::yield_now();
                    }
                    write(store, block, &[block as u8 + 1]).unwrap();
                    assert_eq!(read(store, block, 1).unwrap(), [block as u8 + 1]);
                }
            });
        }
        scope.spawn(|| {
            while grown.load(Ordering::Acquire) < BLOCKS {
                store.sync().unwrap();
            }
        });
    });
    store.sync().unwrap();
    assert_eq!(store.unsynced.left().1, 0);
    let expected: Vec<u8> = (1..=BLOCKS as u8).collect();
    assert_eq!(read(&store, 0, BLOCKS as usize).unwrap(), expected);
}

#[derive(Debug, Clone)]
enum Step {
    Extend(u32),
    Truncate(u32),
    Write(u32, u8),
    Recreate,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u32..40).prop_map(Step::Extend),
        2 => (0u32..30).prop_map(Step::Truncate),
        8 => (0u32..30, 1u8..).prop_map(|(block, fill)| Step::Write(block, fill)),
        1 => Just(Step::Recreate),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn behaves_like_a_vector(
        steps in proptest::collection::vec(step(), 1..40),
        has_descriptors: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let vfs = if has_descriptors { Arc::new(OsVfs) } else { plain() };
        let open = || small_on(Arc::clone(&vfs), dir.path());
        let mut store = open();
        store.create(REL).unwrap();
        let mut model: Vec<u8> = Vec::new();
        for step in steps {
            match step {
                Step::Extend(to) => {
                    let first = model.len() as u32;
                    store.extend(REL, BlockNumber(first), to.saturating_sub(first)).unwrap();
                    model.resize(model.len().max(to as usize), 0);
                }
                Step::Truncate(to) => {
                    store.truncate(REL, to).unwrap();
                    model.truncate(to as usize);
                }
                Step::Write(block, fill) => {
                    if let Some(slot) = model.get_mut(block as usize) {
                        write(&store, block, &[fill]).unwrap();
                        *slot = fill;
                    }
                }
                Step::Recreate => {
                    store.remove(REL.relation).unwrap();
                    store.create(REL).unwrap();
                    model.clear();
                }
                Step::Reopen => {
                    drop(store);
                    store = open();
                }
            }
            prop_assert_eq!(store.block_count(REL).unwrap() as usize, model.len());
        }
        prop_assert_eq!(read(&store, 0, model.len()).unwrap(), model);
    }
}

#[test]
fn forks_are_listed_with_the_length_that_reading_finds() {
    let (dir, store) = empty();
    let map = REL.relation.fork(ids::Fork::Fsm);
    store.create(REL).unwrap();
    store.create(map).unwrap();
    store.extend(REL, BlockNumber(0), 7).unwrap();
    assert_eq!(store.forks().unwrap(), [(REL, 7), (map, 0)]);
    let second = fs::File::options().write(true).open(dir.path().join("16384.1")).unwrap();
    second.set_len(PAGE_SIZE as u64 + 100).unwrap();
    assert_eq!(store.forks().unwrap(), [(REL, 4), (map, 0)]);
    assert_eq!(store.block_count(REL).unwrap(), 4);
    drop(store);
    fs::remove_file(dir.path().join("16384.1")).unwrap();
    let store = small(dir.path());
    assert_eq!(store.forks().unwrap(), [(REL, 3), (map, 0)]);
    assert_eq!(store.block_count(REL).unwrap(), 3);
    fs::remove_file(dir.path().join("16384")).unwrap();
    assert_eq!(store.forks().unwrap(), [(REL, 0), (map, 0)]);
    assert_eq!(FileStore::fork_of_file("16384_fsm.2"), Some(map));
    assert_eq!(FileStore::fork_of_file("16384.old"), None);
}
