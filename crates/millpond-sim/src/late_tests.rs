#![allow(clippy::unwrap_used)]

use super::*;
use millpond_buffer::{BlockNumber, PAGE_SIZE, PageBuffer, PageStore, RelationId};
use std::sync::mpsc;

const REL: RelFork = RelationId::constant(3).main();
const BLOCKS: u32 = 8;

type Told = mpsc::Receiver<(u32, bool)>;

/// A disk with a durable fork of zeros, and a write of ones to each of its blocks in flight. Only
/// the returned `Ending` ends these writes.
fn under_way(seed: u64) -> (Arc<SimDisk>, Ending, Told) {
    let disk = at_rest(seed);
    let (tell, told) = mpsc::channel();
    for block in 0..BLOCKS {
        begin(&disk, block, &tell);
    }
    (disk.clone(), Ending(disk), told)
}

/// The same without the writes.
fn at_rest(seed: u64) -> Arc<SimDisk> {
    let disk = SimDisk::new(seed);
    let pages = disk.pages();
    pages.create(REL).unwrap();
    pages.extend(REL, BlockNumber(0), BLOCKS).unwrap();
    pages.sync().unwrap();
    disk.state.lock().late_thread = true;
    disk
}

/// Begins to write ones to a block.
fn begin(disk: &Arc<SimDisk>, block: u32, tell: &mpsc::Sender<(u32, bool)>) {
    let mut buffer = PageBuffer::new(1);
    *buffer.pages_mut()[0] = [1; PAGE_SIZE];
    let tell = tell.clone();
    let done = move |_, result: Result<(), StoreError>| {
        let _ = tell.send((block, result.is_ok()));
    };
    disk.pages().start_write(PendingWrite::new(REL, BlockNumber(block), buffer, done));
}

/// The number of written sectors of each block.
fn written(disk: &Arc<SimDisk>) -> Vec<usize> {
    let read = |block| {
        let mut page = [0; PAGE_SIZE];
        disk.pages().read(REL, BlockNumber(block), &mut [&mut page]).unwrap();
        page.chunks(64).filter(|sector| sector[0] == 1).count()
    };
    (0..BLOCKS).map(read).collect()
}

const ALL: usize = PAGE_SIZE / 64;

#[test]
fn writes_end_later_and_in_another_order() {
    let orders = (0..8).map(|seed| {
        let (disk, ending, told) = under_way(seed);
        assert_eq!(written(&disk), [0; BLOCKS as usize]);
        assert_eq!(told.try_iter().count(), 0);
        while ending.one() {}
        assert_eq!(written(&disk), [ALL; BLOCKS as usize]);
        told.try_iter().map(|(block, ok)| if ok { block } else { panic!("failed") }).collect()
    });
    let orders: Vec<Vec<u32>> = orders.collect();
    assert!(orders.iter().all(|order| order.len() == BLOCKS as usize));
    assert!(orders.iter().any(|order| !order.is_sorted()), "{orders:?}");
    assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
}

#[test]
fn late_writes_end_by_themselves() {
    let (disk, ending, told) = under_way(1);
    drop(ending);
    disk.state.lock().late_thread = false;
    let (tell, last) = mpsc::channel();
    let done = move |_, result: Result<(), StoreError>| tell.send(result.is_ok()).unwrap();
    let buffer = PageBuffer::new(1);
    disk.pages().start_write(PendingWrite::new(REL, BlockNumber(0), buffer, done));
    assert!(last.recv().unwrap());
    assert_eq!(told.iter().filter(|(_, ok)| *ok).count(), BLOCKS as usize);
}

/// Runs `stop` with many seeds while writes are in flight, after a sync that does not cover them.
/// Returns what survives of each. No caller may be told that its write has succeeded.
fn left(stop: impl Fn(&Arc<SimDisk>)) -> Vec<usize> {
    let mut left = Vec::new();
    for seed in 0..30 {
        let (disk, ending, told) = under_way(seed);
        disk.pages().sync().unwrap();
        stop(&disk);
        left.extend(written(&disk));
        while ending.one() {}
        assert!(told.try_iter().all(|(_, ok)| !ok));
        assert_eq!(left[left.len() - BLOCKS as usize..], written(&disk));
    }
    left
}

#[test]
fn crash_leaves_late_writes_whole_torn_or_absent() {
    let left = left(|disk| disk.crash());
    assert!(left.contains(&0) && left.contains(&ALL));
    assert!(left.iter().any(|sectors| (1..ALL).contains(sectors)), "none torn");
}

#[test]
fn a_killed_process_leaves_all_or_nothing_of_each() {
    let left = left(|disk| disk.kill());
    assert!(left.contains(&0) && left.contains(&ALL));
    assert!(left.iter().all(|sectors| [0, ALL].contains(sectors)));
}

#[test]
fn late_writes_may_reach_the_disk_at_power_loss() {
    let left = left(|disk| {
        disk.fail_after(0, crate::Fault::PowerLoss);
        assert!(disk.pages().sync().is_err());
        disk.crash();
    });
    assert!(left.contains(&0) && left.contains(&ALL));
}

#[test]
fn a_write_begun_after_the_power_has_gone_never_reaches_the_disk() {
    for seed in 0..30 {
        let disk = at_rest(seed);
        disk.fail_after(0, crate::Fault::PowerLoss);
        assert!(disk.pages().sync().is_err());
        let (tell, told) = mpsc::channel();
        (0..BLOCKS).for_each(|block| begin(&disk, block, &tell));
        // The thread that begins the write is told at once.
        assert_eq!(told.try_iter().filter(|(_, ok)| !ok).count(), BLOCKS as usize);
        disk.crash();
        assert_eq!(written(&disk), [0; BLOCKS as usize], "seed {seed}");
        assert!(!Ending(Arc::clone(&disk)).one());
    }
}

#[test]
fn power_loss_decides_which_late_writes_reach_the_disk() {
    let whole = |disk: &Arc<SimDisk>| {
        let state = disk.state.lock();
        let bytes = state.files[&Name::fork(REL)].bytes().unwrap();
        bytes.chunks(PAGE_SIZE).map(|page| page[0] == 1).collect::<Vec<_>>()
    };
    for seed in 0..30 {
        let (disk, ending, _told) = under_way(seed);
        disk.fail_after(0, crate::Fault::PowerLoss);
        assert!(disk.pages().sync().is_err());
        let decided = whole(&disk);
        // Neither `heal` nor the end of a write changes that.
        disk.heal();
        assert!(disk.pages().sync().is_err());
        ending.one();
        assert_eq!(whole(&disk), decided, "seed {seed}");
        disk.crash();
        // A write may be torn or lost now, but one that did not reach the disk stays absent.
        let left = written(&disk);
        assert!(
            left.iter().zip(&decided).all(|(sectors, there)| *there || *sectors == 0),
            "{seed}"
        );
        while ending.one() {}
        assert_eq!(written(&disk), left, "seed {seed}");
    }
}

#[test]
#[should_panic(expected = "cut off at block 5 while that is written")]
fn blocks_under_way_must_not_be_cut_off() {
    let (disk, _ending, _told) = under_way(1);
    let _ = disk.pages().truncate(REL, 5);
}
