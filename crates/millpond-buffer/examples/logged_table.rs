//! A hash table of counters with a log of its own. Several threads write and read at a time, and
//! what was committed survives a crash.
//!
//! `cargo run --release -p millpond-buffer --example logged_table -- FOLDER [crash]`
//!
//! With `crash` it ends without having written its pages. When it is run again, it still finds
//! every committed count.
//!
//! A record is one write to one page: its length and checksum, the page, the offset, the bytes. The
//! log is kept from the beginning, so a page that a crash has torn is made again from zeros. A
//! database would begin at its last checkpoint, and would log the whole page with its first change
//! after that.

use crc_fast::{CrcAlgorithm, checksum};
use millpond_buffer::*;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, atomic::AtomicU64, atomic::Ordering};

const TABLE: RelFork = RelationId::constant(1).main();
const BUCKETS: u32 = 16;
const WRITERS: u64 = 3;
const COUNTS: u64 = 300;
const KEYS: u64 = 20_000;

// A page: the pool's 12 bytes, the next page of the bucket, the number of entries, and the entries,
// each a key and a count.
const NEXT: usize = 12;
const COUNT: usize = 16;
const ENTRIES: usize = 32;
const ROOM: usize = (PAGE_SIZE - ENTRIES) / 16;
const HEAD: usize = 20;

struct Log {
    file: File,
    tail: Mutex<Tail>,
    flushing: Mutex<()>,
    durable: AtomicU64,
}

/// The records that have been appended and not written, and where they end. After a failed flush,
/// also the reason.
struct Tail {
    bytes: Vec<u8>,
    end: u64,
    stopped: Option<LogFlushError>,
}

struct Record<'a> {
    end: Lsn,
    page: PageId,
    offset: usize,
    bytes: &'a [u8],
}

/// The record at `at` in a log, if it is whole.
fn record(log: &[u8], at: usize) -> Option<Record<'_>> {
    let number =
        |from: usize| Some(u32::from_le_bytes(log.get(at + from..)?.get(..4)?.try_into().ok()?));
    let len = number(0)? as usize;
    let rest = log.get(at + 8..(at + 8).checked_add(len)?)?;
    let page = u64::from_le_bytes(rest.get(..8)?.try_into().ok()?);
    let is_whole = checksum(CrcAlgorithm::Crc32Iscsi, rest) as u32 == number(4)?;
    let (end, offset) = (Lsn((at + 8 + len) as u64), number(16)? as usize);
    is_whole.then_some(Record {
        end,
        page: PageId::from_raw(page)?,
        offset,
        bytes: rest.get(12..)?,
    })
}

impl Log {
    fn open(path: &Path, end: usize) -> std::io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        file.set_len(end as u64)?; // A record that was cut off is no record.
        file.sync_all()?;
        let tail = Tail { bytes: Vec::new(), end: end as u64, stopped: None };
        Ok(Self {
            file,
            tail: Mutex::new(tail),
            flushing: Mutex::new(()),
            durable: AtomicU64::new(end as u64),
        })
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn append(&self, page: PageId, offset: usize, bytes: &[u8]) -> Lsn {
        let mut body = page.raw().to_le_bytes().to_vec();
        body.extend((offset as u32).to_le_bytes());
        body.extend(bytes);
        let sum = checksum(CrcAlgorithm::Crc32Iscsi, &body) as u32;
        let mut tail = self.tail();
        tail.bytes.extend((body.len() as u32).to_le_bytes());
        tail.bytes.extend(sum.to_le_bytes());
        tail.bytes.extend(body);
        tail.end += (HEAD + bytes.len()) as u64;
        Lsn(tail.end)
    }
}

impl LogFlush for Log {
    /// The first thread that comes flushes for all that have appended before. The next thread
    /// flushes what others append meanwhile.
    fn flush_to(&self, lsn: Lsn) -> Result<(), LogFlushError> {
        let _alone = self.flushing.lock();
        let (bytes, end) = {
            let mut tail = self.tail();
            if let Some(stopped) = &tail.stopped {
                return Err(stopped.clone());
            }
            if self.flushed() >= lsn {
                return Ok(());
            }
            (std::mem::take(&mut tail.bytes), tail.end)
        };
        if let Err(why) = (&self.file).write_all(&bytes).and_then(|()| self.file.sync_data()) {
            // The contents of the file are unknown now, so nothing may follow them.
            return Err(self.tail().stopped.insert(LogFlushError::new(why.to_string())).clone());
        }
        self.durable.store(end, Ordering::Release);
        Ok(())
    }

    fn flushed(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }
}

/// The place of a key in a page. This also runs on torn bytes, so it trusts no count.
fn find(page: &impl PageRead, key: u64) -> Option<usize> {
    let count = (page.u32(COUNT) as usize).min(ROOM);
    (0..count).map(|at| ENTRIES + at * 16).find(|at| page.u64(*at) == key)
}

/// One thread's access to the table.
struct Table {
    session: BufferSession,
    rel: RelHandle,
    log: Arc<Log>,
}

impl Table {
    fn new(pool: &Arc<BufferPool>, log: &Arc<Log>) -> Result<Self, BufferError> {
        Ok(Self { session: pool.session()?, rel: pool.relation(TABLE)?, log: log.clone() })
    }

    fn write(&self, page: &mut ExclusivePage<'_>, offset: usize, bytes: &[u8]) -> Lsn {
        // Dirty from here on: a checkpoint that begins before the record exists finds the page.
        let mut change = page.change();
        let end = self.log.append(change.page_id(), offset, bytes);
        change.write(offset, bytes);
        change.publish(end);
        end
    }

    fn redo(&self, record: &Record<'_>) -> Result<(), BufferError> {
        let page = self.session.pin_or_zero(&self.rel, record.page.block())?;
        let mut page = page.into_exclusive()?;
        if page.lsn() < record.end {
            let mut change = page.change();
            change.write(record.offset, record.bytes);
            change.publish(record.end);
        }
        Ok(())
    }

    fn get(&self, key: u64) -> Result<u64, BufferError> {
        let mut block = BlockNumber((key % u64::from(BUCKETS)) as u32);
        loop {
            let look =
                |page: &PageView<'_>| (find(page, key).map(|at| page.u64(at + 8)), page.u32(NEXT));
            match self.session.read(&self.rel, block, Wait::Allowed, look)? {
                (Some(count), _) => return Ok(count),
                (None, 0) => return Ok(0),
                (None, next) => block = BlockNumber(next),
            }
        }
    }

    /// Counts a key, and returns when a crash can't undo that.
    fn count(&self, key: u64) -> Result<(), BufferError> {
        let mut block = BlockNumber((key % u64::from(BUCKETS)) as u32);
        let end = loop {
            let mut page = self.session.pin(&self.rel, block, Wait::Allowed)?.into_exclusive()?;
            let count = page.u32(COUNT);
            if let Some(at) = find(&page, key) {
                let more = page.u64(at + 8) + 1;
                break self.write(&mut page, at + 8, &more.to_le_bytes());
            } else if page.u32(NEXT) != 0 {
                block = BlockNumber(page.u32(NEXT));
            } else if (count as usize) < ROOM {
                let entry = [key.to_le_bytes(), 1u64.to_le_bytes()].concat();
                self.write(&mut page, ENTRIES + count as usize * 16, &entry);
                break self.write(&mut page, COUNT, &(count + 1).to_le_bytes());
            } else {
                // Logged before the link to it, so that a session that follows the link after a
                // crash finds a page.
                let mut new = self.session.extend(&self.rel, Wait::Allowed)?;
                self.write(&mut new, NEXT, &0u32.to_le_bytes());
                block = new.block();
                self.write(&mut page, NEXT, &block.get().to_le_bytes());
            }
        };
        Ok(self.log.flush_to(end)?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: logged_table FOLDER [crash]")?;
    let store = Arc::new(FileStore::open(&folder)?);
    let path = Path::new(&folder).join("log");
    let old = fs::read(&path).unwrap_or_default();
    let next = |from: &usize| record(&old, *from).map(|record| record.end.get() as usize);
    let end = std::iter::successors(Some(0), next).last().unwrap_or(0);
    let log = Arc::new(Log::open(&path, end)?);
    // Fewer frames than the table has pages.
    let pool = BufferPool::new(PoolConfig::new(24, 8), store, log.clone())?;
    pool.create(TABLE)?;
    let table = Table::new(&pool, &log)?;
    let mut at = 0;
    while let Some(record) = record(&old, at) {
        table.redo(&record)?;
        at = record.end.get() as usize;
    }
    while table.rel.block_count() < BUCKETS {
        let mut page = table.session.extend(&table.rel, Wait::Allowed)?;
        table.write(&mut page, NEXT, &0u32.to_le_bytes());
    }
    let total = || (0..KEYS).try_fold(0, |sum, key| Ok::<_, BufferError>(sum + table.get(key)?));
    let before = total()?;
    println!("found {before} counts, after {end} bytes of log");
    std::thread::scope(|scope| {
        let write = |nth: u64| {
            let table = Table::new(&pool, &log)?;
            (0..COUNTS).try_for_each(|n| table.count((n * WRITERS + nth) * 7919 % KEYS))
        };
        let writers: Vec<_> = (0..WRITERS).map(|nth| scope.spawn(move || write(nth))).collect();
        total()?; // A reader beside them.
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer has not panicked"))
    })?;
    let after = total()?;
    println!("has {after} counts");
    assert_eq!(after, before + COUNTS * WRITERS);
    if arguments.next().as_deref() == Some("crash") {
        std::process::abort();
    }
    pool.write_dirty(&table.session, |_| ())?;
    Ok(pool.sync()?)
}
