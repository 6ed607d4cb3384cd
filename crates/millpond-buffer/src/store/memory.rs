//! A store in memory, for tests and benchmarks. Nothing in it survives the process.

use super::{PageStore, StoreError};
use crate::PAGE_SIZE;
use crate::ids::{BlockNumber, RelFork, RelationId};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::fmt;

type Page = Box<[u8; PAGE_SIZE]>;

/// Pages in memory. A page that was never written takes no room.
///
/// ```
/// # use millpond_buffer::*;
/// let store = MemoryStore::new();
/// let table = RelationId::constant(1).main();
/// store.create(table)?;
/// store.extend(table, BlockNumber(0), 8)?;
/// assert_eq!(store.block_count(table)?, 8);
/// # Ok::<(), StoreError>(())
/// ```
#[derive(Default)]
pub struct MemoryStore {
    forks: RwLock<BTreeMap<RelFork, Vec<Option<Page>>>>,
    cold: bool,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("forks", &self.forks.read().len())
            .finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A store for which every read has to wait: [`PageStore::try_read`] returns `false`.
    #[must_use]
    pub fn cold() -> Self {
        Self { cold: true, ..Self::default() }
    }
}

fn missing(rel: RelFork) -> StoreError {
    StoreError::Missing { rel }
}

/// Checks that `count` blocks from `first` exist, and returns the index of the first.
fn within(
    rel: RelFork,
    first: BlockNumber,
    count: usize,
    blocks: usize,
) -> Result<usize, StoreError> {
    let start = first.0 as usize;
    if start.saturating_add(count) <= blocks {
        return Ok(start);
    }
    let clip = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Err(StoreError::BeyondEnd { rel, first, count: clip(count), blocks: clip(blocks) })
}

impl PageStore for MemoryStore {
    fn create(&self, rel: RelFork) -> Result<(), StoreError> {
        self.forks.write().entry(rel).or_default();
        Ok(())
    }

    fn remove(&self, relation: RelationId) -> Result<(), StoreError> {
        self.forks.write().retain(|rel, _| rel.relation != relation);
        Ok(())
    }

    fn exists(&self, rel: RelFork) -> Result<bool, StoreError> {
        Ok(self.forks.read().contains_key(&rel))
    }

    fn block_count(&self, rel: RelFork) -> Result<u32, StoreError> {
        let blocks = self.forks.read().get(&rel).map_or(0, Vec::len);
        Ok(u32::try_from(blocks).unwrap_or(u32::MAX))
    }

    fn extend(&self, rel: RelFork, first: BlockNumber, count: u32) -> Result<(), StoreError> {
        let mut forks = self.forks.write();
        let pages = forks.get_mut(&rel).ok_or_else(|| missing(rel))?;
        let end = (first.0 as usize).saturating_add(count as usize);
        if pages.len() < end {
            pages.resize_with(end, || None);
        }
        Ok(())
    }

    fn truncate(&self, rel: RelFork, block_count: u32) -> Result<(), StoreError> {
        let mut forks = self.forks.write();
        forks.get_mut(&rel).ok_or_else(|| missing(rel))?.truncate(block_count as usize);
        Ok(())
    }

    fn read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        let forks = self.forks.read();
        let stored = forks.get(&rel).ok_or_else(|| missing(rel))?;
        let start = within(rel, first, pages.len(), stored.len())?;
        for (to, from) in pages.iter_mut().zip(&stored[start..]) {
            match from {
                Some(from) => to.copy_from_slice(&from[..]),
                None => to.fill(0),
            }
        }
        Ok(())
    }

    fn try_read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<bool, StoreError> {
        if self.cold {
            return Ok(false);
        }
        self.read(rel, first, pages).map(|()| true)
    }

    fn write(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&[u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        let mut forks = self.forks.write();
        let stored = forks.get_mut(&rel).ok_or_else(|| missing(rel))?;
        let start = within(rel, first, pages.len(), stored.len())?;
        for (from, to) in pages.iter().zip(&mut stored[start..]) {
            match to {
                Some(to) => to.copy_from_slice(&from[..]),
                None => *to = Some(Box::new(**from)),
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn relations(&self) -> Result<Vec<RelationId>, StoreError> {
        let mut all: Vec<_> = self.forks.read().keys().map(|rel| rel.relation).collect();
        all.dedup();
        Ok(all)
    }
}

/// For an `impl PageStore` of a test's store: the listed methods call those of the field `inner`,
/// by way of the store's method `around`.
#[cfg(all(test, not(loom)))]
macro_rules! as_inner {
    (create) => { as_inner!(fn create(rel: RelFork) -> ()); };
    (remove) => { as_inner!(fn remove(relation: RelationId) -> ()); };
    (exists) => { as_inner!(fn exists(rel: RelFork) -> bool); };
    (block_count) => { as_inner!(fn block_count(rel: RelFork) -> u32); };
    (extend) => { as_inner!(fn extend(rel: RelFork, first: BlockNumber, count: u32) -> ()); };
    (truncate) => { as_inner!(fn truncate(rel: RelFork, block_count: u32) -> ()); };
    (read) => {
        as_inner!(fn read(rel: RelFork, first: BlockNumber, to: &mut [&mut [u8; PAGE_SIZE]]) -> ());
    };
    (read_words) => {
        as_inner!(fn read_words(rel: RelFork, first: BlockNumber, to: &[&PageWords]) -> ());
    };
    (write) => {
        as_inner!(fn write(rel: RelFork, first: BlockNumber, pages: &[&[u8; PAGE_SIZE]]) -> ());
    };
    (sync) => { as_inner!(fn sync() -> ()); };
    (relations) => { as_inner!(fn relations() -> Vec<RelationId>); };
    (fn $method:ident($($arg:ident: $type:ty),*) -> $result:ty) => {
        fn $method(&self, $($arg: $type),*) -> Result<$result, StoreError> {
            self.around(stringify!($method), || self.inner.$method($($arg),*))
        }
    };
    ($($method:ident)+) => { $($crate::store::as_inner!($method);)+ };
}
#[cfg(all(test, not(loom)))]
pub(crate) use as_inner;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_it_is_given() {
        let store = MemoryStore::new();
        let rel = RelationId::constant(7).main();
        let mut page = Box::new([1u8; PAGE_SIZE]);
        assert!(matches!(
            store.read(rel, BlockNumber(0), &mut [&mut page]),
            Err(StoreError::Missing { .. })
        ));
        store.create(rel).unwrap();
        store.extend(rel, BlockNumber(0), 2).unwrap();
        assert_eq!(store.block_count(rel).unwrap(), 2);
        store.write(rel, BlockNumber(1), &[&[9; PAGE_SIZE]]).unwrap();
        store.read(rel, BlockNumber(0), &mut [&mut page]).unwrap();
        assert_eq!(page[..], [0; PAGE_SIZE]);
        store.read(rel, BlockNumber(1), &mut [&mut page]).unwrap();
        assert_eq!(page[..], [9; PAGE_SIZE]);
        let end = store.read(rel, BlockNumber(2), &mut [&mut page]);
        assert!(matches!(end, Err(StoreError::BeyondEnd { blocks: 2, .. })), "{end:?}");
        assert!(store.write(rel, BlockNumber(2), &[&page]).is_err());
        store.truncate(rel, 1).unwrap();
        assert_eq!(store.block_count(rel).unwrap(), 1);
        assert_eq!(store.relations().unwrap(), [rel.relation]);
        store.remove(rel.relation).unwrap();
        assert!(!store.exists(rel).unwrap());
    }
}
