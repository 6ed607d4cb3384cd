//! Pages with arbitrary bytes.

use std::convert::Infallible;
use std::sync::LazyLock;

use millpond_buffer::{BlockNumber, PAGE_SIZE, PageRead, set_checksum, verify_checksum};
use millpond_engine::access::Tid;
use millpond_engine::access::heap::check::check_page;
use millpond_engine::access::heap::header::TupleFlags;
use millpond_engine::access::heap::page::{self, Chain, Mark, NewTuple};
use millpond_engine::access::heap::prune::{Fate, PruneOptions, PrunePlan, Verdict, plan};
use millpond_engine::fuzzing;
use millpond_engine::page::item::{self, Line};
use millpond_engine::transam::{CommandId, Xid};
use millpond_engine::types::DataType;
use millpond_engine::types::tuple::TupleLayout;

use crate::bytes::{Bytes, page_input};

type Page = [u8; PAGE_SIZE];

const BLOCK: BlockNumber = BlockNumber(1);

/// Pages of tables: new, empty, full of small rows, with chains, redirects and dead line pointers.
pub fn heap_bases() -> Vec<Page> {
    let mut empty = [0; PAGE_SIZE];
    page::init(&mut empty);
    let mut rows = empty;
    let row = |offset, flags, payload| NewTuple {
        offset,
        xmin: Xid(5),
        cid: CommandId(0),
        flags,
        natts: 2,
        payload,
    };
    for offset in 1..=40 {
        let _ =
            page::put_tuple(&mut rows, &row(offset, TupleFlags::NONE, b"\x04\0\x01\0\0\0\x03abc"));
    }
    let mut full = empty;
    for offset in 1..=item::MAX_LINES {
        let _ = page::put_tuple(&mut full, &row(offset, TupleFlags::XMIN_FROZEN, b""));
    }
    let mut chains = rows;
    let replaced = TupleFlags::UPDATED_AWAY.with(TupleFlags::HOT_UPDATED);
    for (root, next) in [(1, 41), (41, 42), (7, 43)] {
        let heap_only = TupleFlags::HEAP_ONLY.with(TupleFlags::IS_UPDATE);
        let new = NewTuple { xmin: Xid(9), ..row(next, heap_only, b"\x04\0\x02\0\0\0\x03xyz") };
        let _ = page::put_tuple(&mut chains, &new);
        let flags = if root == 41 { heap_only.with(replaced) } else { replaced };
        let mark = Mark {
            offset: root,
            xmax: Xid(9),
            cid: CommandId(1),
            flags,
            next: Tid::new(BLOCK, next),
        };
        let _ = page::mark(&mut chains, &mark);
    }
    item::set_line(&mut chains, 5, Line::DEAD);
    item::set_line(&mut chains, 6, Line::UNUSED);
    item::set_line(&mut chains, 7, Line::redirect(43));
    let _ = item::compact(&mut chains);
    vec![[0; PAGE_SIZE], empty, rows, full, chains]
}

static HEAP: LazyLock<Vec<Page>> = LazyLock::new(heap_bases);

/// A page of a table.
pub fn heap(input: &[u8]) {
    let mut input = Bytes(input);
    let page = input.page(&HEAP);
    let mut problems = 0;
    check_page(&page, BLOCK, Xid(100), &mut |_| problems += 1);
    read(&page);
    let indexed = input.byte() & 1 != 0;
    let fates = input.take(64);
    prune(&page, indexed, fates, problems == 0);
    insert(&page, input.0, problems == 0);
}

fn read(page: &Page) {
    let layout = TupleLayout::new([DataType::Int4, DataType::Text]);
    let _ = (page::count_tuples(page), page::usable_space(page, 100), item::free_for_item(page));
    for offset in 0..=item::MAX_LINES + 1 {
        let (mut chain, mut members) = (Chain::from_root(offset), 0);
        while let Some(member) = chain.next(page) {
            assert!(member.bytes.end <= PAGE_SIZE, "a row lies on its page");
            let columns = page.get(member.payload()).unwrap_or_default();
            let _ = layout.decode(columns, |_, _| {});
            members += 1;
        }
        assert!(members <= item::MAX_LINES, "a chain ends");
        let _ = (page::tuple(page, offset), page::header(page, offset));
    }
}

fn prune(page: &Page, has_indexes: bool, fates: &[u8], sound: bool) {
    const FATES: [Fate; 5] =
        [Fate::Live, Fate::Inserting, Fate::Deleting, Fate::RecentlyDead, Fate::Dead];
    let judge = |offset: u16, _: &_| {
        let byte = if fates.is_empty() { 0 } else { fates[usize::from(offset) % fates.len()] };
        let fate = FATES[usize::from(byte & 7) % FATES.len()];
        let verdict = Verdict { fate, xmin_is_old: byte & 8 != 0, xmax_is_void: byte & 16 != 0 };
        Ok::<_, Infallible>(verdict)
    };
    let Ok(plan) = plan(page, PruneOptions { has_indexes }, judge);
    let mut bytes = Vec::new();
    plan.encode(&mut bytes);
    assert_eq!(PrunePlan::decode(&bytes).as_ref(), Ok(&plan), "a plan is read as it was written");
    let mut pruned = *page;
    let done = plan.apply(&mut pruned);
    if sound && page::is_heap(page) {
        assert_eq!(done, Ok(()), "a sound page can be pruned");
        assert_eq!(item::check_bounds(&pruned), Ok(()));
        assert!(item::hole(&pruned) >= item::hole(page), "pruning takes no room");
    }
}

fn insert(page: &Page, payload: &[u8], sound: bool) {
    let mut changed = *page;
    let Some(offset) = page::slot_for(page, payload.len(), 0) else { return };
    if !page::is_heap(page) {
        page::init(&mut changed);
    }
    let new = NewTuple {
        offset,
        xmin: Xid(50),
        cid: CommandId(0),
        flags: TupleFlags::NONE,
        natts: 1,
        payload,
    };
    let done = page::put_tuple(&mut changed, &new);
    if sound {
        assert_eq!(done, Ok(()), "a page has the room that it says");
        let stored = page::tuple(&changed, offset).and_then(|range| changed.get(range));
        assert!(stored.is_some_and(|stored| stored.ends_with(payload)));
        check_page(&changed, BLOCK, Xid(100), &mut |problem| {
            panic!("after an insertion: {problem}")
        });
    }
}

pub fn heap_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for base in 0..HEAP.len() as u8 {
        for changes in [
            &[][..],
            &[(16, &[48, 0][..])],
            &[(18, &[0, 31]), (32, &[0, 1, 2, 3])],
            &[(8100, &[9; 30])],
        ] {
            let mut seed = page_input(base, changes);
            seed.push(1);
            seed.extend_from_slice(&[0b11100, 0b01011, 0, 4, 2]);
            seeds.push(seed);
        }
    }
    seeds
}

static BTREE: LazyLock<Vec<Page>> = LazyLock::new(fuzzing::btree_pages);

/// A page of an index, and a key to search for.
pub fn btree(input: &[u8]) {
    let mut input = Bytes(input);
    let page = input.page(&BTREE);
    let tid = input.u64();
    fuzzing::btree_page(&page, input.0, tid);
}

pub fn btree_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for base in 0..BTREE.len() as u8 {
        for changes in [
            &[][..],
            &[(14, &[1, 0][..])],
            &[(22, &[5, 0, 0, 16])],
            &[(26, &[255, 255, 0, 31])],
            &[(48, &[7; 16])],
        ] {
            for key in [&b""[..], b"\x01\0\0\0\x07", b"https://example.org/00020"] {
                let mut seed = page_input(base, changes);
                seed.extend_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0]);
                seed.extend_from_slice(key);
                seeds.push(seed);
            }
        }
    }
    seeds
}

static MAP: LazyLock<Vec<Page>> = LazyLock::new(|| {
    let mut map = [0; PAGE_SIZE];
    map[12] = 3;
    map[32..34].copy_from_slice(&[9, 200]);
    map[100] = 9;
    map[96 + 126 + 3] = 200;
    let mut high = map;
    high[32..96].fill(255);
    vec![map, high, [0; PAGE_SIZE], HEAP[2]]
});

/// A page of the free space map, read as a map page and checked by its checksum.
pub fn map(input: &[u8]) {
    let mut input = Bytes(input);
    let mut page = input.page(&MAP);
    fuzzing::free_space_page(&page, input.byte(), input.u16().into());
    let id = fuzzing::page_id();
    let _ = verify_checksum(id, &page);
    set_checksum(id, &mut page);
    assert!(verify_checksum(id, &page).is_ok(), "a page is read as it was written");
    let (at, bit) = (usize::from(input.u16()) % PAGE_SIZE, input.byte() % 8);
    page[at] ^= 1 << bit;
    assert!(verify_checksum(id, &page).is_err(), "bit {bit} of byte {at} has changed");
    let _ = (page.u64(at), page.u32(PAGE_SIZE - 1), page.compare(at, 9, &[1, 2]));
}

pub fn map_seeds() -> Vec<Vec<u8>> {
    (0..4u8)
        .map(|base| {
            let mut seed = page_input(base, &[(33, &[100, 7])]);
            seed.extend_from_slice(&[100, 3, 0, 0, 1, 2]);
            seed
        })
        .collect()
}
