//! The least time that each operation takes, over many short runs. Other work of the machine hardly
//! disturbs such figures.
//!
//! `cargo bench -p millpond-buffer --bench costs`

use millpond_buffer::*;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const REL: RelFork = RelationId::constant(1).main();

fn least(name: &str, mut run: impl FnMut() -> u32) {
    let mut best = f64::MAX;
    for _ in 0..3000 {
        let start = Instant::now();
        let operations = run();
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(operations));
    }
    println!("{name:<44} {best:8.2} ns");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store: Arc<dyn PageStore> = match std::env::args_os().skip(1).find(|arg| arg != "--bench") {
        Some(folder) => Arc::new(FileStore::open(folder)?),
        None => Arc::new(MemoryStore::new()),
    };
    let pool = BufferPool::new(PoolConfig::new(12_000, 4), store.clone(), Arc::new(NoLog))?;
    pool.create(REL)?;
    let rel = pool.relation(REL)?;
    let session = pool.session()?;
    for _ in 0..10_000 {
        session.extend(&rel, Wait::Allowed)?;
    }
    pins(&session, &rel)?;
    latches_and_reads(&session, &rel);

    let small = BufferPool::new(PoolConfig::new(1000, 4), store, Arc::new(NoLog))?;
    let (session, rel) = (small.session()?, small.relation(REL)?);
    let mut next = 0;
    least("miss with a clean victim", || {
        for _ in 0..10 {
            next = (next + 1) % 10_000;
            black_box(session.pin(&rel, BlockNumber(next), Wait::Allowed)).ok();
        }
        10
    });
    Ok(())
}

fn pins(session: &BufferSession, rel: &RelHandle) -> Result<(), BufferError> {
    let pin = |block| session.pin(rel, BlockNumber(block), Wait::Allowed);
    least("pin and unpin one page", || {
        (0..100).for_each(|_| drop(black_box(pin(5))));
        100
    });
    least("pin and unpin a hundred pages in turn", || {
        (0..100).for_each(|block| drop(black_box(pin(block))));
        100
    });
    let held = pin(5)?;
    least("pin again and unpin", || {
        (0..100).for_each(|_| drop(black_box(pin(5))));
        100
    });
    drop(held);
    for count in [1, 10, 100, 1000, 10_000u32] {
        let mut held = Vec::with_capacity(count as usize);
        least(&format!("pin {count}, then unpin them"), || {
            (0..count).for_each(|at| held.extend(pin((at * 7919) % 10_000)));
            held.clear();
            count
        });
    }
    Ok(())
}

fn latches_and_reads(session: &BufferSession, rel: &RelHandle) {
    let pin = || session.pin(rel, BlockNumber(5), Wait::Allowed);
    least("pin, shared latch, and back", || {
        (0..100).for_each(|_| drop(black_box(pin().map(PinnedPage::into_shared))));
        100
    });
    least("pin and shared latch in one step, and back", || {
        for _ in 0..100 {
            drop(black_box(session.pin_shared(rel, BlockNumber(5), Wait::Allowed)));
        }
        100
    });
    least("pin, exclusive latch, and back", || {
        (0..100).for_each(|_| drop(black_box(pin().map(PinnedPage::into_exclusive))));
        100
    });
    least("optimistic read of one word", || {
        for _ in 0..100 {
            let read = session.read(rel, BlockNumber(5), Wait::Allowed, |page| page.u64(16));
            black_box(read).ok();
        }
        100
    });
    least("optimistic copy of a page", || {
        let mut copy = [0; PAGE_SIZE];
        for _ in 0..100 {
            let to = &mut copy;
            let read = session.read(rel, BlockNumber(5), Wait::Allowed, |p| p.copy_page(to));
            black_box(read).ok();
        }
        100
    });
}
