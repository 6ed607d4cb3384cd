//! The pool as a cache of 8 KiB pages: first all hits, then with ten times the pages that fit.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use millpond_buffer::{
    BufferPool, FileStore, FileStoreOptions, Lsn, NoLog, PageStore, PoolConfig, RelFork,
    RelationId, Wait,
};

use crate::caches::{
    Cache, Foyer, Moka, Page, Pinned, Pool, QuickCache, Reader, Sharded, Source, Valued, WORD,
};
use crate::keys::Keys;
use crate::measure::{self, Rate, Table};
use crate::{How, Result};

const REL: RelFork = RelationId::constant(1).main();

/// What is read of each page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Word,
    Copy,
}

/// One cache, independent of its type.
trait Subject {
    fn name(&self) -> &str;
    fn rate(&self, keys: &[Vec<u32>], how: &How, work: Work) -> Rate;
    /// Reads pages one after the other, without a time limit.
    fn fill(&self, blocks: &[u32]);
    /// Pages read from the file so far.
    fn reads(&self) -> u64;
}

struct Named<C, F> {
    name: &'static str,
    cache: C,
    reads: F,
}

impl<C: Cache, F: Fn(&C) -> u64 + Sync> Subject for Named<C, F> {
    fn name(&self) -> &str {
        self.name
    }

    fn rate(&self, keys: &[Vec<u32>], how: &How, work: Work) -> Rate {
        match work {
            Work::Word => measure::rate(keys, how.time(), || {
                let mut reader = self.cache.reader();
                move |batch: &[u32]| batch.iter().fold(0, |sum, block| sum ^ reader.word(*block))
            }),
            Work::Copy => measure::rate(keys, how.time(), || {
                let mut reader = self.cache.reader();
                let mut page: Box<Page> = Box::new([0; 8192]);
                move |batch: &[u32]| {
                    batch.iter().fold(0, |sum, block| {
                        reader.copy(*block, &mut page);
                        sum ^ u64::from(page[WORD])
                    })
                }
            }),
        }
    }

    fn fill(&self, blocks: &[u32]) {
        let mut reader = self.cache.reader();
        for block in blocks {
            std::hint::black_box(reader.word(*block));
        }
    }

    fn reads(&self) -> u64 {
        (self.reads)(&self.cache)
    }
}

/// Writes a file of `blocks` pages. Each page has its own number.
fn write_file(store: Arc<FileStore>, blocks: u32) -> Result<()> {
    let pool = BufferPool::new(PoolConfig::new(4096, 1), store, Arc::new(NoLog))?;
    pool.create(REL)?;
    let rel = pool.relation(REL)?;
    let session = pool.session()?;
    for block in 0..blocks {
        let mut page = session.extend(&rel, Wait::Allowed)?;
        let mut change = page.change();
        change.write(WORD, &u64::from(block).to_le_bytes());
        change.publish(Lsn(1));
    }
    pool.write_dirty(&session, |_| ())?;
    Ok(pool.sync()?)
}

/// All caches, empty, each for `pages` pages of the file.
fn subjects(store: &Arc<FileStore>, file: &Path, pages: u32) -> Result<Vec<Box<dyn Subject>>> {
    let capacity = pages as usize;
    let source = || -> Result<_> { Ok(Arc::new(Source::new(File::open(file)?))) };
    let pool = || -> Result<_> {
        let store: Arc<dyn PageStore> = Arc::<FileStore>::clone(store);
        let pool = BufferPool::new(PoolConfig::new(capacity, 8), store, Arc::new(NoLog))?;
        Ok(Pool { rel: pool.relation(REL)?, pool })
    };
    let reads = |source: &Arc<Source>| source.reads.load(Ordering::Relaxed);
    let moka = moka::sync::Cache::builder().max_capacity(u64::from(pages));
    let foyer = foyer_memory::CacheBuilder::new(capacity)
        .with_shards(64)
        .with_eviction_config(foyer_memory::S3FifoConfig::default())
        .with_hash_builder(foldhash::fast::RandomState::default())
        .build();
    Ok(vec![
        Box::new(Named {
            name: "millpond-buffer, optimistic read",
            cache: pool()?,
            reads: |pool: &Pool| pool.pool.stats().reads,
        }),
        Box::new(Named {
            name: "millpond-buffer, pin and shared latch",
            cache: Pinned(pool()?),
            reads: |pinned: &Pinned| pinned.0.pool.stats().reads,
        }),
        Box::new(Named {
            name: "sharded RwLock pool",
            cache: Sharded::new(pages, source()?),
            reads: move |sharded: &Sharded| reads(sharded.source()),
        }),
        Box::new(Named {
            name: "quick_cache",
            cache: Valued(QuickCache(quick_cache::sync::Cache::new(capacity), source()?)),
            reads: move |cache: &Valued<QuickCache>| reads(&cache.0.1),
        }),
        Box::new(Named {
            name: "moka",
            cache: Valued(Moka(moka.build_with_hasher(Default::default()), source()?)),
            reads: move |cache: &Valued<Moka>| reads(&cache.0.1),
        }),
        Box::new(Named {
            name: "foyer (S3-FIFO)",
            cache: Valued(Foyer(foyer, source()?)),
            reads: move |cache: &Valued<Foyer>| reads(&cache.0.1),
        }),
    ])
}

/// Measures each subject in turn, round by round.
fn rounds(
    subjects: &[Box<dyn Subject>],
    how: &How,
    mut one: impl FnMut(&dyn Subject) -> f64,
) -> Vec<Vec<f64>> {
    let mut results = vec![Vec::new(); subjects.len()];
    for _ in 0..how.runs {
        for (subject, results) in subjects.iter().zip(&mut results) {
            results.push(one(subject.as_ref()));
        }
    }
    results
}

/// Runs the whole comparison.
pub fn run(how: &How, pages: u32) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut options = FileStoreOptions::default();
    options.segment_blocks = 1 << 30;
    let store = Arc::new(FileStore::open_with(directory.path(), options)?);
    let blocks = pages * 10;
    write_file(Arc::clone(&store), blocks)?;
    let file = directory.path().join("1");
    all_hits(&subjects(&store, &file, pages)?, how, pages)?;
    misses(&subjects(&store, &file, pages)?, how, pages)
}

fn names(subjects: &[Box<dyn Subject>]) -> impl Iterator<Item = String> {
    subjects.iter().map(|subject| subject.name().to_owned())
}

fn all_hits(subjects: &[Box<dyn Subject>], how: &How, pages: u32) -> Result<()> {
    // Half of what fits, so that shards and admission windows never have to evict a page.
    let wanted = pages / 2;
    let every: Vec<u32> = (0..wanted).collect();
    for subject in subjects {
        // Twice, for caches that admit a page only at its second access.
        subject.fill(&every);
        subject.fill(&every);
    }
    for (work, what) in [(Work::Word, "one word read"), (Work::Copy, "the whole page copied out")] {
        let mut table = Table::new("millions a second", names(subjects));
        let before: u64 = subjects.iter().map(|subject| subject.reads()).sum();
        for keys in [Keys::Uniform, Keys::Zipfian, Keys::One] {
            for threads in &how.threads {
                let drawn = keys.draw(wanted, *threads);
                let results =
                    rounds(subjects, how, |subject| subject.rate(&drawn, how, work).millions);
                table.column(
                    format!("{}, {threads}", keys.name()),
                    results.iter().map(|rates| measure::cell(rates, 1)),
                );
            }
        }
        table.print(&format!("All hits, {what}: {wanted} of {pages} pages; keys, threads"));
        let loaded = subjects.iter().map(|subject| subject.reads()).sum::<u64>() - before;
        if loaded > 0 {
            println!("\n({loaded} pages were loaded meanwhile.)");
        }
    }
    Ok(())
}

fn misses(subjects: &[Box<dyn Subject>], how: &How, pages: u32) -> Result<()> {
    let mut table = Table::new("millions a second; hit ratio", names(subjects));
    for keys in [Keys::Uniform, Keys::Zipfian] {
        for threads in &how.threads {
            let drawn = keys.draw(pages * 10, *threads);
            for subject in subjects {
                // Enough to fill the cache and to let its policy learn.
                subject.fill(&drawn[0][..drawn[0].len().min(pages as usize * 8)]);
            }
            let mut ratios = vec![Vec::new(); subjects.len()];
            let mut at = (0..subjects.len()).cycle();
            let results = rounds(subjects, how, |subject| {
                let before = subject.reads();
                let rate = subject.rate(&drawn, how, Work::Word);
                let read = (subject.reads() - before) as f64;
                if let Some(at) = at.next() {
                    ratios[at].push(100.0 * (1.0 - read / rate.count as f64));
                }
                rate.millions
            });
            table.column(
                format!("{}, {threads}", keys.name()),
                results.iter().zip(&ratios).map(|(rates, ratios)| {
                    format!("{}; {:.1}%", measure::cell(rates, 2), measure::median(ratios))
                }),
            );
        }
    }
    table.print(&format!(
        "Ten times as many pages as fit ({} of them), in a file that the system has in memory; keys, threads",
        pages * 10
    ));
    Ok(())
}
