//! Tests sorts against sorts in memory, cancelled sorts, and files that fail.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use millpond_vfs::OsVfs;
use proptest::prelude::*;

use super::temp::{TempFile, TempFiles, failed};
use super::{Entry, Sorted, Sorter};
use crate::{EngineError, EngineResult};

type Owned = (Vec<u8>, u64, bool);

fn entries(sorted: &mut Sorted) -> EngineResult<Vec<Owned>> {
    let mut all = Vec::new();
    while let Some(entry) = sorted.next()? {
        all.push((entry.key.to_vec(), entry.tid, entry.unique));
    }
    Ok(all)
}

/// Sorts within a budget. Also returns the number of files.
fn sort(list: &[Owned], budget: usize) -> (Vec<Owned>, usize) {
    let data = tempfile::tempdir().unwrap();
    let files = TempFiles::open(Arc::new(OsVfs), data.path()).unwrap();
    let made = Cell::new(0);
    let make = || {
        made.set(made.get() + 1);
        files.make(&Arc::default())
    };
    let mut sorter = Sorter::new(budget, &make);
    for (key, tid, unique) in list {
        sorter.add(Entry { key, tid: *tid, unique: *unique }).unwrap();
    }
    let mut sorted = sorter.finish(&|| Ok(())).unwrap();
    assert_eq!(std::fs::read_dir(data.path().join("pgsql_tmp")).unwrap().count(), 0);
    let all = entries(&mut sorted).unwrap();
    (all, made.get())
}

proptest! {
    #[test]
    fn runs_merge_to_what_memory_would_sort(
        keys in prop::collection::vec((prop::collection::vec(0..3u8, 0..40), any::<bool>()), 0..600),
        budget in 100..20_000usize,
    ) {
        let list: Vec<Owned> = keys
            .into_iter()
            .enumerate()
            .map(|(tid, (key, unique))| (key, (tid as u64).reverse_bits(), unique))
            .collect();
        let mut expected = list.clone();
        expected.sort();
        prop_assert_eq!(sort(&list, budget).0, expected);
    }
}

/// Numbered entries in a different order.
fn shuffled(count: u64) -> Vec<Owned> {
    let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..count).map(|n| (key(n).to_be_bytes().to_vec(), n, true)).collect()
}

#[test]
fn many_runs_take_several_passes() {
    // Two runs are merged at a time.
    let list = shuffled(5000);
    let (all, files) = sort(&list, 4096);
    assert!(all.is_sorted() && all.len() == list.len());
    assert!(files > 4, "{files} files");
    let (all, files) = sort(&list, 1 << 20);
    assert!(all.is_sorted() && all.len() == list.len());
    assert_eq!(files, 0);
}

#[test]
fn a_merge_can_be_cancelled() {
    let data = tempfile::tempdir().unwrap();
    let files = TempFiles::open(Arc::new(OsVfs), data.path()).unwrap();
    let make = || files.make(&Arc::default());
    let mut sorter = Sorter::new(4096, &make);
    for (key, tid, unique) in &shuffled(5000) {
        sorter.add(Entry { key, tid: *tid, unique: *unique }).unwrap();
    }
    let asked = Cell::new(0);
    let check = || {
        asked.set(asked.get() + 1);
        if asked.get() == 3 { Err(EngineError::Cancelled) } else { Ok(()) }
    };
    assert!(matches!(sorter.finish(&check), Err(EngineError::Cancelled)));
}

/// A disk with room for this many bytes.
struct Small(Vec<u8>, usize);

struct SmallFile(parking_lot::Mutex<Small>);

impl TempFile for SmallFile {
    fn write_all_at(&self, bytes: &[u8], position: u64) -> io::Result<()> {
        let Small(held, room) = &mut *self.0.lock();
        let end = position as usize + bytes.len();
        if end > *room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        held.resize(end.max(held.len()), 0);
        held[position as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read_exact_at(&self, bytes: &mut [u8], position: u64) -> io::Result<()> {
        let held = &self.0.lock().0;
        let at = position as usize;
        bytes.copy_from_slice(held.get(at..at + bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_the_sort() {
    let list = shuffled(5000);
    // The disk is full during collection, during a merge pass, and never.
    for (room, ends) in [(20_000, true), (89_000, true), (90_000, false)] {
        let file = |room| SmallFile(parking_lot::Mutex::new(Small(Vec::new(), room)));
        let files = Cell::new(0);
        let make = || -> EngineResult<Arc<dyn TempFile>> {
            // The first file has room for all.
            files.set(files.get() + 1);
            let first = files.get() == 1 && room > 80_000;
            Ok(Arc::new(file(if first { 1 << 20 } else { room })))
        };
        let mut sorter = Sorter::new(4096, &make);
        let mut sort = || -> EngineResult<()> {
            for (key, tid, unique) in &list {
                sorter.add(Entry { key, tid: *tid, unique: *unique })?;
            }
            Ok(())
        };
        let collected = sort();
        let result = collected.and_then(|()| entries(&mut sorter.finish(&|| Ok(()))?).map(drop));
        match result {
            Err(EngineError::TemporaryFile { source, .. }) => {
                assert!(ends && source.kind() == io::ErrorKind::StorageFull, "{room}");
            }
            other => assert!(!ends && other.is_ok(), "{room}: {other:?}"),
        }
    }
    let unreadable = || Err(failed("create")(io::ErrorKind::StorageFull.into()));
    let mut sorter = Sorter::new(64, &unreadable);
    let full = list
        .iter()
        .try_for_each(|(key, tid, unique)| sorter.add(Entry { key, tid: *tid, unique: *unique }));
    assert!(matches!(full, Err(EngineError::TemporaryFile { .. })));
}
