//! A page store of your own: pages as objects of a bucket, as in a cloud's object storage. Here the
//! objects are the files of a folder. The pool need not know.
//!
//! `cargo run --release -p millpond-buffer --example own_store -- FOLDER`
//!
//! When it is run again, it finds what it left behind.

use millpond_buffer::*;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A bucket of objects: whole values under names, which can be put, got, listed and deleted.
struct Bucket {
    folder: PathBuf,
    /// Objects that were put since the last flush.
    unsynced: Mutex<Vec<PathBuf>>,
}

impl Bucket {
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.folder.join(name);
        let half = path.with_extension("new");
        // Renamed into place, so that no reader ever sees half an object.
        let put = fs::write(&half, bytes).and_then(|()| fs::rename(&half, &path));
        put.map_err(|why| StoreError::io(format!("put {name}"), why))?;
        self.unsynced().push(path);
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        match fs::read(self.folder.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
            Err(why) => Err(StoreError::io(format!("get {name}"), why)),
        }
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        match fs::remove_file(self.folder.join(name)) {
            Err(why) if why.kind() != ErrorKind::NotFound => {
                Err(StoreError::io(format!("delete {name}"), why))
            }
            _ => Ok(()),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(&self.folder)?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn flush(&self) -> io::Result<()> {
        let unsynced = std::mem::take(&mut *self.unsynced());
        for path in unsynced.iter().filter(|path| path.exists()) {
            File::open(path)?.sync_all()?;
        }
        File::open(&self.folder)?.sync_all()
    }

    fn unsynced(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.unsynced.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Pages as objects "relation.fork.block", and each fork's length as "relation.fork.length".
struct ObjectStore {
    bucket: Bucket,
    /// The reason why an earlier flush failed. What was put before it may be lost, so later calls
    /// must see it.
    stopped: Mutex<Option<Arc<str>>>,
}

impl ObjectStore {
    fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let bucket = Bucket { folder: folder.into(), unsynced: Mutex::default() };
        Ok(Self { bucket, stopped: Mutex::default() })
    }

    fn name(rel: RelFork, what: impl std::fmt::Display) -> String {
        format!("{}.{}.{what}", rel.relation.get(), rel.fork as u8)
    }

    fn length(&self, rel: RelFork) -> Result<Option<u32>, StoreError> {
        let object = self.bucket.get(&Self::name(rel, "length"))?;
        Ok(object.and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?))))
    }

    fn set_length(&self, rel: RelFork, blocks: u32) -> Result<(), StoreError> {
        self.bucket.put(&Self::name(rel, "length"), &blocks.to_le_bytes())
    }

    /// The numbers of `count` blocks from `first`, if they exist.
    fn blocks(
        &self,
        rel: RelFork,
        first: BlockNumber,
        count: usize,
    ) -> Result<std::ops::Range<u32>, StoreError> {
        let blocks = self.length(rel)?.ok_or(StoreError::Missing { rel })?;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        match first.get().checked_add(count) {
            Some(end) if end <= blocks => Ok(first.get()..end),
            _ => Err(StoreError::BeyondEnd { rel, first, count, blocks }),
        }
    }

    fn still_going(&self) -> Result<(), StoreError> {
        let stopped = self.stopped.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        stopped.clone().map_or(Ok(()), |why| Err(StoreError::Stopped { why }))
    }
}

type Page = [u8; PAGE_SIZE];

impl PageStore for ObjectStore {
    fn create(&self, rel: RelFork) -> Result<(), StoreError> {
        if self.exists(rel)? { Ok(()) } else { self.set_length(rel, 0) }
    }

    fn remove(&self, relation: RelationId) -> Result<(), StoreError> {
        let ours = format!("{}.", relation.get());
        let names = self.bucket.list().map_err(|why| StoreError::io("list the objects", why))?;
        names
            .iter()
            .filter(|name| name.starts_with(&ours))
            .try_for_each(|name| self.bucket.delete(name))
    }

    fn exists(&self, rel: RelFork) -> Result<bool, StoreError> {
        Ok(self.length(rel)?.is_some())
    }

    fn block_count(&self, rel: RelFork) -> Result<u32, StoreError> {
        Ok(self.length(rel)?.unwrap_or(0))
    }

    /// Takes no space: a block without an object is a page of zeros.
    fn extend(&self, rel: RelFork, first: BlockNumber, count: u32) -> Result<(), StoreError> {
        let now = self.length(rel)?.ok_or(StoreError::Missing { rel })?;
        self.set_length(rel, now.max(first.get().saturating_add(count)))
    }

    fn truncate(&self, rel: RelFork, block_count: u32) -> Result<(), StoreError> {
        let now = self.length(rel)?.ok_or(StoreError::Missing { rel })?;
        (block_count..now).try_for_each(|block| self.bucket.delete(&Self::name(rel, block)))?;
        self.set_length(rel, now.min(block_count))
    }

    fn read(
        &self,
        rel: RelFork,
        first: BlockNumber,
        pages: &mut [&mut Page],
    ) -> Result<(), StoreError> {
        for (block, page) in self.blocks(rel, first, pages.len())?.zip(pages) {
            match self.bucket.get(&Self::name(rel, block))? {
                // The pool checks what it is given: a truncated object fails its checksum.
                Some(object) if object.len() == PAGE_SIZE => page.copy_from_slice(&object),
                Some(_) => page.fill(0xff),
                None => page.fill(0),
            }
        }
        Ok(())
    }

    /// Always false: every read of a bucket has to wait.
    fn try_read(
        &self,
        _: RelFork,
        _: BlockNumber,
        _: &mut [&mut Page],
    ) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn write(&self, rel: RelFork, first: BlockNumber, pages: &[&Page]) -> Result<(), StoreError> {
        self.still_going()?;
        let mut blocks = self.blocks(rel, first, pages.len())?.zip(pages);
        blocks.try_for_each(|(block, page)| self.bucket.put(&Self::name(rel, block), *page))
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.still_going()?;
        self.bucket.flush().map_err(|why| {
            let mut stopped = self.stopped.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            *stopped = Some(why.to_string().into());
            StoreError::io("flush the bucket", why)
        })
    }

    fn relations(&self) -> Result<Vec<RelationId>, StoreError> {
        let names = self.bucket.list().map_err(|why| StoreError::io("list the objects", why))?;
        let mut all: Vec<_> = names
            .iter()
            .filter_map(|name| name.split('.').next()?.parse().ok().and_then(RelationId::new))
            .collect();
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: own_store FOLDER")?;
    let store = Arc::new(ObjectStore::open(Path::new(&folder))?);
    let pool = BufferPool::new(PoolConfig::new(64, 2), store, Arc::new(NoLog))?;
    let rel = RelationId::constant(1).main();
    pool.create(rel)?;
    let (rel, session) = (pool.relation(rel)?, pool.session()?);
    if rel.block_count() == 0 {
        drop(session.extend(&rel, Wait::Allowed)?);
    }
    let mut page = session.pin(&rel, BlockNumber(0), Wait::Allowed)?.into_exclusive()?;
    let visits = page.u64(16) + 1;
    let mut change = page.change();
    change.write(16, &visits.to_le_bytes());
    change.publish_unlogged();
    drop(page);
    pool.write_dirty(&session, |_| ())?;
    pool.sync()?;
    println!("visit {visits}");
    Ok(())
}
