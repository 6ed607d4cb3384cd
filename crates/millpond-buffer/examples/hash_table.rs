//! A small persistent hash table on the pool: buckets of pages, read optimistically, changed under
//! exclusive latches. It counts the words of the files that are named, or of its own source.
//!
//! `cargo run --release -p millpond-buffer --example hash_table -- FOLDER [FILE...]`
//!
//! Without a log it is only as durable as its last `save`. A database would log each change and
//! give the record's end to `publish`.

use millpond_buffer::*;
use std::error::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const TABLE: RelFork = RelationId::constant(1).main();
const BUCKETS: u32 = 64;

// A page: LSN and checksum (the pool's), then at 16 the next page of the bucket, and at 20 the
// number of entries. The entries follow from 32 on: a key's hash and a value each.
const NEXT: usize = 16;
const COUNT: usize = 20;
const ENTRIES: usize = 32;
const ENTRY: usize = 16;
const ROOM: usize = (PAGE_SIZE - ENTRIES) / ENTRY;

struct HashTable {
    session: BufferSession,
    rel: RelHandle,
}

/// The place of a key in a page. This also runs on torn bytes, so it trusts no count.
fn find(page: &impl PageRead, key: u64) -> Option<usize> {
    let count = (page.u32(COUNT) as usize).min(ROOM);
    (0..count).map(|at| ENTRIES + at * ENTRY).find(|at| page.u64(*at) == key)
}

impl HashTable {
    fn open(pool: &Arc<BufferPool>) -> Result<Self, BufferError> {
        pool.create(TABLE)?;
        let table = Self { session: pool.session()?, rel: pool.relation(TABLE)? };
        while table.rel.block_count() < BUCKETS {
            table.session.extend(&table.rel, Wait::Allowed)?;
        }
        Ok(table)
    }

    fn bucket(key: u64) -> BlockNumber {
        BlockNumber((key % u64::from(BUCKETS)) as u32)
    }

    /// Looks a key up. If its pages are in memory, this writes to no shared memory.
    fn get(&self, key: u64) -> Result<Option<u64>, BufferError> {
        let mut block = Self::bucket(key);
        loop {
            let (value, next) = self.session.read(&self.rel, block, Wait::Allowed, |page| {
                (find(page, key).map(|at| page.u64(at + 8)), page.u32(NEXT))
            })?;
            // Block 0 is a bucket, so it follows no page.
            if value.is_some() || next == 0 {
                return Ok(value);
            }
            block = BlockNumber(next);
        }
    }

    fn update(&self, key: u64, change: impl Fn(u64) -> u64) -> Result<(), BufferError> {
        let mut block = Self::bucket(key);
        loop {
            let mut page = self.session.pin(&self.rel, block, Wait::Allowed)?.into_exclusive()?;
            if let Some(at) = find(&page, key) {
                let value = change(page.u64(at + 8));
                let mut edit = page.change();
                edit.write(at + 8, &value.to_le_bytes());
                edit.publish_unlogged();
                return Ok(());
            }
            let count = page.u32(COUNT) as usize;
            if page.u32(NEXT) != 0 {
                block = BlockNumber(page.u32(NEXT));
            } else if count < ROOM {
                let at = ENTRIES + count * ENTRY;
                let mut edit = page.change();
                edit.write(at, &key.to_le_bytes());
                edit.write(at + 8, &change(0).to_le_bytes());
                edit.write(COUNT, &(count as u32 + 1).to_le_bytes());
                edit.publish_unlogged();
                return Ok(());
            } else {
                let new = self.session.extend(&self.rel, Wait::Allowed)?.block();
                let mut edit = page.change();
                edit.write(NEXT, &new.get().to_le_bytes());
                edit.publish_unlogged();
                block = new;
            }
        }
    }

    fn save(&self) -> Result<(), BufferError> {
        let pool = self.session.pool();
        pool.write_dirty(&self.session, |_| ())?;
        pool.sync()
    }
}

fn hash(word: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: hash_table FOLDER [FILE...]")?;
    let mut files: Vec<_> = arguments.collect();
    if files.is_empty() {
        files.push(file!().replace('\\', "/"));
    }
    // Room for 32 pages, far fewer than a large table has.
    let store = Arc::new(FileStore::open(&folder)?);
    let pool = BufferPool::new(PoolConfig::new(32, 2), store, Arc::new(NoLog))?;
    let table = HashTable::open(&pool)?;
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|why| format!("{file}: {why}"))?;
        for word in text.split_whitespace() {
            table.update(hash(word), |count| count + 1)?;
        }
    }
    table.save()?;
    for word in ["the", "page", "pool"] {
        println!("{word}: {}", table.get(hash(word))?.unwrap_or(0));
    }
    let stats = pool.stats();
    println!("{} hits, {} misses, {} pages written", stats.hits, stats.misses, stats.writes);
    Ok(())
}
