//! Reading several rows together when the session may not wait and their page may leave memory.

use std::cell::RefCell;
use std::thread;

use millpond_buffer::{BlockNumber, Wait};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::world::{Held, Tx, World};
use crate::access::Tid;
use crate::access::heap::visibility::Fates;
use crate::access::heap::{
    ChangeOutcome, FetchedRun, HeapScan, InsertOptions, KeyChange, NewRow, fetch, insert_many,
    update,
};
use crate::ctx::Ctx;
use crate::error::{EngineError, EngineResult};
use crate::transam::{CommandId, Xid, XidStatus};

const FRAMES: usize = 64;
/// They fit one page, and are fewer than those for which the page is copied as a whole.
const ROWS: usize = 5;

fn payload(number: usize) -> Vec<u8> {
    let mut bytes = vec![(number % 250) as u8 + 1; 1000];
    bytes[..4].copy_from_slice(&(number as u32).to_le_bytes());
    bytes
}

/// The number of the row with these columns; `None` if no row has them.
fn number(columns: &[u8]) -> Option<usize> {
    let number = u32::from_le_bytes(columns.get(..4)?.try_into().unwrap()) as usize;
    (columns == payload(number)).then_some(number)
}

/// Tids of rows, with the rows' numbers.
type Rows = Vec<(Tid, Option<usize>)>;

/// A heap with this many rows of a kilobyte, and their tids.
fn world(rows: usize) -> (World, Vec<Tid>) {
    let world = World::new(FRAMES, 100);
    let ctx = world.ctx();
    let tx = Tx::begin(&ctx);
    let payloads: Vec<Vec<u8>> = (0..rows).map(payload).collect();
    let rows: Vec<_> = payloads.iter().map(|payload| NewRow { payload, natts: 1 }).collect();
    let mut tids = Vec::new();
    let options = InsertOptions::default();
    insert_many(&ctx, &world.heap, &rows, tx.xid, tx.command, options, &mut tids).unwrap();
    tx.finish(true);
    (world, tids)
}

/// The rows that a run returns.
fn taken(run: &mut FetchedRun) -> Rows {
    let mut rows = Vec::new();
    while let Some((tid, root, columns)) = run.next_row() {
        assert_eq!(tid, root);
        rows.push((tid, number(columns)));
    }
    rows
}

fn expected(tids: &[Tid]) -> Rows {
    tids.iter().enumerate().map(|(number, tid)| (*tid, Some(number))).collect()
}

/// What happens while a page is read, before the first fate is returned.
type Meanwhile<'a> = RefCell<Option<Box<dyn FnOnce() + 'a>>>;

/// The real fates, but something happens before the first one is returned.
struct Disturbed<'a>(&'a Ctx, Meanwhile<'a>);

impl Fates for Disturbed<'_> {
    fn status(&self, xid: Xid) -> EngineResult<XidStatus> {
        if let Some(meanwhile) = self.1.take() {
            meanwhile();
        }
        self.0.status(xid)
    }

    fn combo(&self, id: CommandId) -> EngineResult<(CommandId, CommandId)> {
        self.0.combo(id)
    }
}

#[test]
fn run_returns_no_rows_if_its_page_is_evicted_during_the_read() {
    let (world, tids) = world(ROWS);
    let (ctx, other) = (world.ctx(), world.ctx());
    let held = Held::take(&ctx);
    let mut run = FetchedRun::default();
    ctx.set_wait(Wait::Never);
    let fates = Disturbed(&ctx, RefCell::new(Some(Box::new(|| world.push_out(&other)))));
    let found = run.find(&ctx, &world.heap, &tids, &held.snapshot, None, &fates);
    assert!(fates.1.borrow().is_none(), "the page was read");
    assert!(matches!(found, Err(EngineError::WouldBlock)), "{found:?}");
    assert_eq!(taken(&mut run), []);
    // The call can be repeated.
    ctx.set_wait(Wait::Allowed);
    run.fetch(&ctx, &world.heap, &tids, &held.snapshot, None).unwrap();
    assert_eq!(taken(&mut run), expected(&tids));
    // If the session may wait, the page is read again.
    let fates = Disturbed(&ctx, RefCell::new(Some(Box::new(|| world.push_out(&other)))));
    run.find(&ctx, &world.heap, &tids, &held.snapshot, None, &fates).unwrap();
    assert!(fates.1.borrow().is_none(), "the page was read");
    assert_eq!(taken(&mut run), expected(&tids));
}

#[test]
fn run_returns_no_rows_if_its_page_is_truncated_during_the_read() {
    let (world, tids) = world(ROWS);
    let ctx = world.ctx();
    let held = Held::take(&ctx);
    let mut run = FetchedRun::default();
    let cut = || world.shared.pool.truncate(world.heap.main.rel(), 0).unwrap();
    let fates = Disturbed(&ctx, RefCell::new(Some(Box::new(cut))));
    let found = run.find(&ctx, &world.heap, &tids, &held.snapshot, None, &fates).unwrap();
    assert!(fates.1.borrow().is_none(), "the page was read");
    assert_eq!(found, None);
    assert_eq!(taken(&mut run), []);
}

/// Reads all rows by runs that may not wait. Between two tries it waits for the missing page.
fn by_runs(world: &World, ctx: &Ctx, held: &Held<'_>, tids: &[Tid]) -> (Rows, usize) {
    let (mut run, mut found, mut refused) = (FetchedRun::default(), Vec::new(), 0);
    ctx.set_wait(Wait::Never);
    for roots in tids.chunk_by(|a, b| a.block == b.block) {
        while let Err(error) = run.fetch(ctx, &world.heap, roots, &held.snapshot, None) {
            assert!(matches!(error, EngineError::WouldBlock), "{error}");
            refused += 1;
            assert_eq!(taken(&mut run), []);
            let pinned = ctx.buffers().pin(&world.heap.main, roots[0].block, Wait::Allowed);
            drop(pinned.unwrap());
        }
        found.append(&mut taken(&mut run));
    }
    ctx.set_wait(Wait::Allowed);
    (found, refused)
}

#[test]
fn runs_that_may_not_wait_give_each_row_once() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    // More pages than the pool has.
    let (world, tids) = world(700);
    let ctx = world.ctx();
    let held = Held::take(&ctx);
    let (mut scan, mut by_table) = (HeapScan::new(world.heap.clone()), Vec::new());
    while let Some(page) = scan.next_page(&ctx, &held.snapshot).unwrap() {
        by_table.extend(page.iter().map(|(tid, columns)| (tid, number(columns))));
    }
    assert!(by_table == expected(&tids));
    world.push_out(&ctx);
    thread::scope(|scope| {
        // Evicts pages while they are read.
        let other = scope.spawn(|| {
            let (ctx, mut rng) = (world.ctx(), SmallRng::seed_from_u64(seed));
            for _ in 0..20_000 {
                let block = BlockNumber(rng.random_range(0..world.heap.block_count()));
                drop(ctx.buffers().pin(&world.heap.main, block, Wait::Allowed).unwrap());
            }
        });
        loop {
            let (found, refused) = by_runs(&world, &ctx, &held, &tids);
            assert!(refused > 0);
            assert!(found == by_table, "seed {seed}");
            if other.is_finished() {
                break;
            }
        }
    });
}

/// Replaces a row's version; returns where the new one is, on the same page.
fn replace(world: &World, ctx: &Ctx, tid: Tid) -> (Tid, Xid) {
    let (tx, row) = (Tx::begin(ctx), NewRow { payload: b"newer", natts: 1 });
    let outcome = update(ctx, &world.heap, tid, row, KeyChange::None, tx.changer()).unwrap();
    let ChangeOutcome::Done { tid, hot: true } = outcome else { panic!("{outcome:?}") };
    let xid = tx.xid;
    tx.finish(true);
    (tid, xid)
}

#[test]
fn fetch_succeeds_when_its_page_cannot_be_pruned() {
    let world = World::new(FRAMES, 100);
    let ctx = world.ctx();
    let row = NewRow { payload: b"first", natts: 1 };
    // The page's hint names a transaction so old that its status is only on a page of statuses.
    let (_, hint) = replace(&world, &ctx, world.committed_row(&ctx, row));
    for _ in 0..17 {
        (0..1000).for_each(|_| Tx::begin(&ctx).finish(false));
        ctx.txns().maintain(&ctx).unwrap();
    }
    let root = world.committed_row(&ctx, row);
    let newest = (0..5).fold(root, |tid, _| replace(&world, &ctx, tid).0);
    assert_eq!(newest.block, root.block);

    let cold = |ctx: &Ctx| {
        ctx.set_wait(Wait::Allowed);
        world.push_out(ctx);
        drop(ctx.buffers().pin(&world.heap.main, root.block, Wait::Allowed).unwrap());
        ctx.set_wait(Wait::Never);
        assert!(matches!(ctx.status(hint), Err(EngineError::WouldBlock)));
    };
    let held = Held::take(&ctx);
    let mut run = FetchedRun::default();
    cold(&ctx);
    run.fetch(&ctx, &world.heap, &[root], &held.snapshot, None).unwrap();
    let row = run.next_row().map(|(tid, root, columns)| (tid, root, columns.to_vec()));
    assert_eq!(row, Some((newest, root, b"newer".to_vec())));
    assert_eq!(run.next_row(), None);
    let mut columns = Vec::new();
    cold(&ctx);
    assert_eq!(fetch(&ctx, &world.heap, root, &held.snapshot, &mut columns).unwrap(), Some(newest));
    assert_eq!(columns, b"newer");
}
