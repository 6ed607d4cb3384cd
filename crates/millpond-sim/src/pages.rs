//! The relations' files on a simulated disk.

use std::collections::BTreeSet;
use std::sync::Arc;

use millpond_buffer::{
    BlockNumber, Fork, PAGE_SIZE, PageStore, PendingWrite, RelFork, RelationId, StoreError,
};

use crate::disk::{Call, Name, SimDisk, State};
use crate::late;

/// A page store on a [`SimDisk`].
pub struct SimPages {
    pub(crate) disk: Arc<SimDisk>,
    pub(crate) generation: u64,
}

pub(crate) fn offset_of(block: BlockNumber) -> usize {
    block.0 as usize * PAGE_SIZE
}

pub(crate) fn failed(what: &str, rel: RelFork) -> impl FnOnce(std::io::Error) -> StoreError {
    let what = format!("{what} {rel}");
    move |source| StoreError::io(what, source)
}

impl SimPages {
    fn range(first: BlockNumber, count: usize) -> std::ops::Range<usize> {
        let start = offset_of(first);
        start..start + count * PAGE_SIZE
    }

    fn beyond(rel: RelFork, first: BlockNumber, count: usize, length: usize) -> StoreError {
        let blocks = (length / PAGE_SIZE) as u32;
        StoreError::BeyondEnd { rel, first, count: count as u32, blocks }
    }

    /// Checks that the blocks to be written exist.
    fn check(
        state: &State,
        rel: RelFork,
        first: BlockNumber,
        count: usize,
    ) -> Result<(), StoreError> {
        let file = state.files.get(&Name::fork(rel)).and_then(|file| file.bytes());
        let length = file.ok_or(StoreError::Missing { rel })?.len();
        if Self::range(first, count).end > length {
            return Err(Self::beyond(rel, first, count, length));
        }
        Ok(())
    }

    /// Checks that no block to be cut off is being written.
    fn check_at_rest(&self, state: &State, rel: RelFork, first: u32) {
        let busy = state.is_being_written(self.generation, rel, first);
        assert!(!busy, "{rel} is cut off at block {first} while that is written");
    }
}

impl PageStore for SimPages {
    fn create(&self, rel: RelFork) -> Result<(), StoreError> {
        let mut state = self.disk.state.lock();
        state
            .call(self.generation, Call::Grow, |state| {
                state.files.entry(Name::fork(rel)).or_default().create();
            })
            .map_err(failed("create", rel))
    }

    fn remove(&self, relation: RelationId) -> Result<(), StoreError> {
        let mut state = self.disk.state.lock();
        for fork in Fork::ALL {
            self.check_at_rest(&state, relation.fork(fork), 0);
        }
        state
            .call(self.generation, Call::Change, |state| {
                let of = Name::Fork(relation.get(), 0)..=Name::Fork(relation.get(), u8::MAX);
                state.files.range_mut(of).for_each(|(_, file)| file.remove());
            })
            .map_err(failed("remove", relation.main()))
    }

    fn exists(&self, rel: RelFork) -> Result<bool, StoreError> {
        let state = self.disk.state.lock();
        Ok(state.files.get(&Name::fork(rel)).is_some_and(|file| file.bytes().is_some()))
    }

    fn block_count(&self, rel: RelFork) -> Result<u32, StoreError> {
        let mut state = self.disk.state.lock();
        state
            .call(self.generation, Call::Read, |_| ())
            .map_err(failed("read the length of", rel))?;
        let file = state.files.get(&Name::fork(rel));
        let length = file.and_then(|file| file.bytes()).map_or(0, |bytes| bytes.len());
        Ok((length / PAGE_SIZE) as u32)
    }

    fn extend(&self, rel: RelFork, first: BlockNumber, count: u32) -> Result<(), StoreError> {
        let mut state = self.disk.state.lock();
        let end = Self::range(first, count as usize).end;
        state
            .call(self.generation, Call::Grow, |state| {
                if let Some(file) = state.files.get_mut(&Name::fork(rel)) {
                    file.extend(end);
                }
            })
            .map_err(failed("extend", rel))
    }

    fn truncate(&self, rel: RelFork, block_count: u32) -> Result<(), StoreError> {
        let mut state = self.disk.state.lock();
        self.check_at_rest(&state, rel, block_count);
        state
            .call(self.generation, Call::Change, |state| {
                if let Some(file) = state.files.get_mut(&Name::fork(rel)) {
                    file.truncate(block_count as usize * PAGE_SIZE);
                }
            })
            .map_err(failed("truncate", rel))
    }

    fn read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        let mut state = self.disk.state.lock();
        state.call(self.generation, Call::Read, |_| ()).map_err(failed("read", rel))?;
        let file = state.files.get(&Name::fork(rel)).and_then(|file| file.bytes());
        let bytes = file.ok_or(StoreError::Missing { rel })?;
        let found = bytes
            .get(Self::range(first, pages.len()))
            .ok_or_else(|| Self::beyond(rel, first, pages.len(), bytes.len()))?;
        for (page, bytes) in pages.iter_mut().zip(found.chunks_exact(PAGE_SIZE)) {
            page.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn try_read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut [u8; PAGE_SIZE]],
    ) -> Result<bool, StoreError> {
        self.read(rel, first, pages).map(|()| true)
    }

    fn write(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &[&[u8; PAGE_SIZE]],
    ) -> Result<(), StoreError> {
        let mut state = self.disk.state.lock();
        Self::check(&state, rel, first, pages.len())?;
        let bytes: Vec<u8> = pages.iter().flat_map(|page| page.iter().copied()).collect();
        state
            .call(self.generation, Call::Change, |state| {
                if let Some(file) = state.files.get_mut(&Name::fork(rel)) {
                    file.write(offset_of(first), &bytes);
                }
            })
            .map_err(failed("write", rel))
    }

    /// The write ends later ([`crate::late`]).
    fn start_write(&self, write: PendingWrite) {
        let checked =
            Self::check(&self.disk.state.lock(), write.rel(), write.first(), write.count());
        match checked {
            Ok(()) => late::start(&self.disk, self.generation, write),
            Err(error) => write.finish(Err(error)),
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        let state = &mut *self.disk.state.lock();
        let synced = state.call(self.generation, Call::Sync, |state| {
            let forks = state.files.iter_mut().filter(|(name, _)| matches!(name, Name::Fork(..)));
            forks.for_each(|(_, file)| file.sync());
        });
        synced.map_err(|source| {
            if !state.is_alive(self.generation) {
                return StoreError::io("sync the relations", source);
            }
            let (rng, sector) = (&mut state.rng, state.sector);
            let forks = state.files.iter_mut().filter(|(name, _)| matches!(name, Name::Fork(..)));
            forks.for_each(|(_, file)| file.fail_sync(rng, sector));
            StoreError::io("sync the relations", source)
        })
    }

    fn relations(&self) -> Result<Vec<RelationId>, StoreError> {
        let state = self.disk.state.lock();
        let there = state.files.iter().filter(|(_, file)| file.bytes().is_some());
        let numbers: BTreeSet<u32> = there
            .filter_map(|(name, _)| match name {
                Name::Fork(relation, _) => Some(*relation),
                _ => None,
            })
            .collect();
        Ok(numbers.into_iter().filter_map(RelationId::new).collect())
    }
}
