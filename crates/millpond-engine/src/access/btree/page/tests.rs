//! Properties of single pages: search against sorted vectors, growth by insertion and splits
//! against a set, redo against itself. Random bytes must not cause a panic.

use std::collections::BTreeSet;

use millpond_buffer::{BlockNumber, PAGE_SIZE, PageId, RelationId};
use proptest::prelude::*;

use super::super::check::page_problems;
use super::super::record::{self, BTreeRedo, SplitData};
use super::PageRead;
use super::item::Item;
use super::item::Target;
use super::items::{Frame, Insertion, Items, plan_insert};
use super::layout::{
    BODY_START, FLAG_LEAF, FLAG_NARROW, MAX_KEY_BYTES, PAGE_KIND, PREFIX_HEAD, PREFIX_LEN, SLOTS,
    head_of,
};
use super::node::{Node, bytes_for_high};
use super::split;
use crate::wal::{PageEdit, RmgrRedo};

mod inner;
mod sizes;

type Page = Box<[u8; PAGE_SIZE]>;
type Entry = (Vec<u8>, u64);

fn page_id() -> PageId {
    RelationId::constant(7).main().page(BlockNumber(1))
}

/// Keys of the shapes that matter: numbers, long common starts, zeros at the end, duplicates, the
/// longest.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0u32..5000).prop_map(|n| [&[1][..], &n.to_be_bytes()].concat()),
        4 => (0u64..100_000).prop_map(|n| [&[1][..], &n.to_be_bytes()].concat()),
        3 => (0u32..3000).prop_map(|n| format!("https://example.org/{n:05}").into_bytes()),
        2 => proptest::collection::vec(0u8..3, 0..14),
        1 => (0u8..4, 1000usize..=MAX_KEY_BYTES).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

/// Neighbouring keys, as in narrow leaves. Some are shorter or longer, or have another prefix.
fn dense() -> impl Strategy<Value = Vec<u8>> {
    let number = |n: u32| [&[1][..], &n.to_be_bytes()].concat();
    prop_oneof![
        120 => (65_000u32..67_000).prop_map(number),
        2 => (65_000u32..67_000, 0usize..5).prop_map(move |(n, len)| number(n)[..len].to_vec()),
        2 => (65_000u32..67_000, 0u8..3).prop_map(move |(n, more)| [&number(n)[..], &[more]].concat()),
        1 => (65_000u32..67_000, 1usize..300).prop_map(move |(n, more)| [&number(n)[..], &vec![3; more]].concat()),
        1 => any::<u32>().prop_map(number),
    ]
}

/// Keys with hundreds of bytes in common, and some that lack part of them.
fn with_long_prefix() -> impl Strategy<Value = Vec<u8>> {
    let key = |len: usize, n: u16| [&vec![9; len][..], &n.to_be_bytes()].concat();
    prop_oneof![
        150 => any::<u16>().prop_map(move |n| key(1500, n)),
        1 => (0usize..1500, any::<u16>()).prop_map(move |(len, n)| key(len, n)),
        1 => (0usize..1000, any::<u16>()).prop_map(move |(more, n)| [&key(1500, n)[..], &vec![1; more]].concat()),
    ]
}

/// Keys of one shape only, as in an index.
fn keys(count: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<Entry>> {
    let count = count.into();
    // Sometimes a line pointer that no row has.
    let tid = || prop_oneof![30 => 1u64..1 << 20, 1 => Just(0xFFFF), 1 => Just(7 << 16 | 0xFFFF)];
    let of = |key: BoxedStrategy<Vec<u8>>| {
        proptest::collection::vec((key, tid()), count.clone()).boxed()
    };
    let number = (0u64..1 << 40).prop_map(|n| [&[1][..], &n.to_be_bytes()].concat());
    let text =
        (0u32..300_000).prop_map(|n| format!("https://example.org/{n:06}/and/so/on").into_bytes());
    prop_oneof![
        of(key().boxed()),
        of(number.boxed()),
        of(text.boxed()),
        of(dense().boxed()),
        of(with_long_prefix().boxed()),
        of(Just(b"same".to_vec()).boxed())
    ]
}

fn int(n: u32) -> Vec<u8> {
    [&[1][..], &n.to_be_bytes()].concat()
}

fn leaf_frame() -> Frame {
    Frame { flags: FLAG_LEAF, level: 0, right: 0, cycle: 0, high: None }
}

fn items_of(entries: &[Entry], inner: bool) -> Items {
    let mut items = Items::default();
    for (index, (key, tid)) in entries.iter().enumerate() {
        let child = if inner { index as u32 + 1 } else { 0 };
        items.push(Item { key, tid: *tid, child });
    }
    items
}

fn entries_of(page: &[u8; PAGE_SIZE]) -> Vec<Entry> {
    let items = Items::of(page);
    (0..items.len()).map(|index| (items.get(index).key.to_vec(), items.get(index).tid)).collect()
}

fn redo(page: &Page, info: u8, block: usize, data: &[u8]) -> Page {
    let mut page = page.clone();
    BTreeRedo.redo(info, block, data, &[], &mut PageEdit::new(page_id(), &mut *page)).unwrap();
    page
}

/// A page of as many of the entries, from the first, as fit it.
fn fit(entries: &mut Vec<Entry>, frame: &Frame, inner: bool) -> Page {
    loop {
        let items = items_of(entries, inner);
        if let Some(page) = items.build(frame, 0..items.len()) {
            return page;
        }
        let keep = entries.len() * 3 / 4;
        entries.truncate(keep);
    }
}

/// A search stays within the page, whatever its bytes are (btree rule 2).
#[test]
fn a_page_of_ones_has_no_more_slots_than_a_page_can_have() {
    for flags in [0, FLAG_LEAF, FLAG_LEAF | FLAG_NARROW] {
        let mut page = Box::new([0xFF; PAGE_SIZE]);
        page[super::layout::FLAGS..][..2].copy_from_slice(&flags.to_le_bytes());
        let node = Node(&*page);
        assert!(SLOTS + node.count() * node.slot_bytes() <= PAGE_SIZE, "{} slots", node.count());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn leaves_are_searched_like_sorted_vectors(entries in keys(0..400), probes in keys(40)) {
        let mut entries: Vec<Entry> = entries.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        let page = fit(&mut entries, &leaf_frame(), false);
        prop_assert_eq!(&entries_of(&page), &entries);
        prop_assert_eq!(page_problems(&page, 0), [] as [String; 0]);
        let node = Node(&*page);
        for (key, tid) in probes.iter().chain(&entries) {
            for tid in [0, *tid, tid + 1, u64::MAX] {
                let expected = entries.partition_point(|(k, t)| (&k[..], *t) < (&key[..], tid));
                let found = node.lower_bound(Target { key, tid });
                prop_assert_eq!(found, expected);
                for from in [0, expected / 2, expected.saturating_sub(1), expected] {
                    let found = node.lower_bound_from(from, Target { key, tid });
                    prop_assert_eq!(found, expected);
                }
                if found < entries.len() {
                    prop_assert_eq!(node.key_is(found, key), entries[found].0 == *key);
                    if entries[found].0 == *key {
                        prop_assert_eq!(node.row(found), entries[found].1);
                    }
                }
            }
        }
    }

    #[test]
    fn inner_pages_lead_to_the_right_child(entries in keys(1..400), probes in keys(40), lowest: bool, with_tids: bool) {
        let mut set: BTreeSet<Entry> = entries.into_iter().map(|(k, t)| (k, if with_tids { t } else { 0 })).collect();
        if lowest {
            set.insert((Vec::new(), 0));
        }
        let mut entries: Vec<Entry> = set.into_iter().collect();
        let frame = Frame { flags: 0, level: 1, right: 9, cycle: 3, high: Some((vec![255; 12], 5)) };
        let page = fit(&mut entries, &frame, true);
        prop_assert_eq!(&entries_of(&page), &entries);
        prop_assert_eq!(Frame::of(&*page), frame);
        let node = Node(&*page);
        for (key, tid) in probes.iter().chain(&entries) {
            let target = Target { key, tid: *tid };
            let at = entries[1..].partition_point(|(k, t)| (&k[..], *t) <= (&key[..], *tid));
            prop_assert_eq!(node.child_slot(target), at);
            prop_assert_eq!(node.child(at), at as u32 + 1);
            let before = entries[1..].partition_point(|(k, t)| (&k[..], *t) < (&key[..], *tid));
            prop_assert_eq!(node.child_slot_before(target), before);
            prop_assert_eq!(node.is_beyond(target), (&key[..], *tid) >= (&[255; 12][..], 5));
        }
    }

    #[test]
    fn pages_grow_and_split_like_a_set(entries in keys(1..1500), removed in proptest::collection::vec(any::<u16>(), 40)) {
        // A level of leaves, from left to right, without a tree above.
        let mut pages: Vec<Page> = vec![record::empty_root().unwrap()];
        let mut model = BTreeSet::new();
        let mut data = Vec::new();
        for (key, tid) in entries {
            let target = Target { key: &key, tid };
            if !model.insert((key.clone(), tid)) {
                continue;
            }
            let home = pages.iter().position(|page| !Node(&**page).is_beyond(target)).unwrap();
            let page = pages[home].clone();
            let index = Node(&*page).lower_bound(target);
            let item = Item { key: &key, tid, child: 0 };
            if !matches!(plan_insert(&page, index, item), Insertion::Full) {
                record::insert_data(&mut data, index, &item);
                pages[home] = redo(&page, record::INSERT, 0, &data);
                continue;
            }
            let mut items = Items::of(&*page);
            items.insert(index, item);
            let cut = split::cut(&items, &Frame::of(&*page), index, 77).unwrap();
            let split = SplitData {
                new: Some((index, item)), at: cut.at, right: 77, cycle: 0, separator: (&cut.key, cut.tid),
            };
            split.encode(&mut data);
            let left = redo(&page, record::SPLIT, 1, &data);
            prop_assert!(left[12..] == cut.left[12..]);
            prop_assert!(Node(&*left).is_split_incomplete());
            data.clear();
            record::image(&mut data, &cut.right);
            let right = redo(&Box::new([0xAA; PAGE_SIZE]), record::SPLIT, 0, &data);
            prop_assert!(right[12..] == cut.right[12..]);
            pages[home] = redo(&left, record::INSERT, 1, &[]);
            pages.insert(home + 1, right);
        }
        for page in &pages {
            prop_assert_eq!(page_problems(page, 0), [] as [String; 0]);
        }
        let found: Vec<Entry> = pages.iter().flat_map(|page| entries_of(page)).collect();
        prop_assert!(found.iter().eq(model.iter()));
        // Removes some of the slots.
        let page = &pages[0];
        let all = entries_of(page);
        let gone: BTreeSet<u16> = removed.iter().map(|n| n % all.len() as u16).collect();
        let gone: Vec<u16> = gone.into_iter().collect();
        record::remove_data(&mut data, &gone);
        let kept: Vec<Entry> =
            all.iter().enumerate().filter(|(i, _)| !gone.contains(&(*i as u16))).map(|(_, e)| e.clone()).collect();
        prop_assert_eq!(entries_of(&redo(page, record::REMOVE, 0, &data)), kept);
    }

    #[test]
    fn random_page_bytes_cause_no_panic(seed: u64, data in proptest::collection::vec(any::<u8>(), 0..80), key in key(), stay in 0usize..600, known: bool, leaf: bool, narrow: bool) {
        use rand::{Rng, SeedableRng};
        let mut rng = rand::rngs::SmallRng::seed_from_u64(seed);
        let mut page: Page = Box::new([0; PAGE_SIZE]);
        rng.fill(&mut page[..]);
        let flags = if leaf { FLAG_LEAF } else { 0 } | if narrow { FLAG_NARROW } else { 0 };
        page[14..16].copy_from_slice(&flags.to_le_bytes());
        // A page of another kind is not read any further.
        if known {
            page[12..14].copy_from_slice(&PAGE_KIND.to_le_bytes());
        }
        let node = Node(&*page);
        let target = Target { key: &key, tid: 5 };
        let at = node.lower_bound(target);
        let _ = (node.key_is(at, &key), node.child_slot(target), node.child_slot_before(target), node.is_beyond(target));
        let mut out = Vec::new();
        let _ = (node.key_into(at, &mut out), node.high_into(&mut out));
        let _ = (node.row(at), node.child(at), node.body_range(at), page_problems(&page, 0));
        let empty: Page = Box::new([0; PAGE_SIZE]);
        let mut cut = Vec::new();
        SplitData { new: None, at: stay, right: 9, cycle: 1, separator: (&key, 5) }.encode(&mut cut);
        for page in [&page, &empty] {
            let mut page = page.clone();
            let _ = BTreeRedo.redo(record::SPLIT, 1, &cut, &[], &mut PageEdit::new(page_id(), &mut *page));
        }
        for info in 0..10 {
            for block in 0..4 {
                for page in [&page, &empty] {
                    let mut page = page.clone();
                    let _ = BTreeRedo.redo(info, block, &data, &[], &mut PageEdit::new(page_id(), &mut *page));
                }
            }
        }
    }
}

#[test]
fn a_head_with_a_damaged_padding_is_a_problem() {
    // A search for the key does not find such an entry.
    let entries: Vec<Entry> = (0u32..20).map(|n| (int(n << 20)[..4].to_vec(), 5)).collect();
    let page = items_of(&entries, false).build(&leaf_frame(), 0..20).unwrap();
    assert!(!Node(&*page).is_narrow());
    assert_eq!(page_problems(&page, 0), [] as [String; 0]);
    let mut damaged = page.clone();
    // The lowest byte of the first head, which is stored as a little-endian number.
    damaged[SLOTS] ^= 1;
    assert_eq!(entries_of(&damaged), entries);
    assert_eq!(page_problems(&damaged, 0), ["entry 0 is not found under its own key"]);
}

#[test]
fn heads_of_short_keys_are_padded_with_zeros() {
    let key = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    for len in 0..=9 {
        let mut padded = [0; 8];
        padded[..len.min(8)].copy_from_slice(&key[..len.min(8)]);
        assert_eq!(head_of(&key[..len]), u64::from_be_bytes(padded));
    }
}
