//! What fits into a page, and what its entries take.

use super::*;

#[test]
fn longest_keys_always_split() {
    // Three entries of the greatest length, in every order, on pages with the longest high key.
    let long = |first: u8, last: u8| {
        let mut key = vec![7; MAX_KEY_BYTES];
        key[0] = first;
        key[MAX_KEY_BYTES - 1] = last;
        key
    };
    for shape in [[(1, 0), (2, 0), (3, 0)], [(1, 1), (1, 2), (1, 3)], [(1, 1), (1, 1), (2, 1)]] {
        for new in 0..3 {
            for inner in [false, true] {
                let mut entries: Vec<Entry> = shape
                    .iter()
                    .enumerate()
                    .map(|(i, &(a, b))| (long(a, b), 10 + i as u64))
                    .collect();
                let frame = Frame {
                    flags: if inner { 0 } else { FLAG_LEAF },
                    level: u16::from(inner),
                    right: 5,
                    cycle: 0,
                    high: Some((long(9, 9), 3)),
                };
                let all = items_of(&entries, inner);
                entries.remove(new);
                let two = items_of(&entries, inner);
                assert!(two.build(&frame, 0..2).is_some(), "two entries and a high key fit");
                assert!(split::cut(&all, &frame, new, 9).is_some());
            }
        }
    }
}

/// The largest page of the first entries, and their number.
fn fullest(entries: &[Entry]) -> (usize, Page) {
    let fits = |n: usize| items_of(&entries[..n], false).build(&leaf_frame(), 0..n);
    (1..=entries.len()).rev().find_map(|n| fits(n).map(|page| (n, page))).unwrap()
}

#[test]
fn a_leaf_holds_over_a_thousand_neighbouring_integers() {
    let mut entries: Vec<Entry> = (0u32..1200).map(|n| (int(n), u64::from(n))).collect();
    let (count, page) = fullest(&entries);
    // The prefix takes three bytes, and the room for a high key of that length eleven.
    assert_eq!(count, (PAGE_SIZE - SLOTS - 14) / 8);
    entries.truncate(count);
    assert_eq!(entries_of(&page), entries);
    assert!(Node(&*page).is_narrow());
    assert_eq!(page.u16(12), PAGE_KIND);
    assert_eq!(page.u64(PREFIX_HEAD), 0x0100_0000 << 32);
    // Keys far apart take 16 bytes each.
    let sparse: Vec<Entry> = (0u32..600).map(|n| (int(n << 20), 1)).collect();
    let (count, page) = fullest(&sparse);
    assert_eq!((count, Node(&*page).is_narrow()), (509, false));
}

/// Adds an entry where it belongs; `None` if the page is full.
fn added(page: &Page, key: &[u8], tid: u64) -> Option<Page> {
    let index = Node(&**page).lower_bound(Target { key, tid });
    let item = Item { key, tid, child: 0 };
    let mut data = Vec::new();
    record::insert_data(&mut data, index, &item);
    let fits = !matches!(plan_insert(page, index, item), Insertion::Full);
    fits.then(|| redo(page, record::INSERT, 0, &data))
}

#[test]
fn a_wide_leaf_that_is_full_becomes_narrow_if_it_can() {
    let mut page = record::empty_root().unwrap();
    let mut count = 0;
    while let Some(next) = added(&page, &int(count), u64::from(count) + 1) {
        // The page stays wide as long as it has room: nothing is built anew without need.
        assert_eq!(Node(&*next).is_narrow(), count >= 509);
        (page, count) = (next, count + 1);
    }
    assert_eq!(count as usize, (PAGE_SIZE - SLOTS - 14) / 8);
    assert_eq!(page_problems(&page, 0), [] as [String; 0]);
}

#[test]
fn a_narrow_leaf_takes_every_key_with_its_prefix_in_place() {
    let entries: Vec<Entry> = (1000u32..1400).map(|n| (int(n), 5)).collect();
    let mut page = items_of(&entries, false).build(&leaf_frame(), 0..400).unwrap();
    let mut model: BTreeSet<Entry> = entries.into_iter().collect();
    let long = [&int(1100)[..], &[0; 700]].concat();
    let others = [
        (int(1100), 4),
        (int(1100), 0xFFFF),
        (int(1100), u64::MAX >> 16),
        (int(1100)[..3].to_vec(), 5),
        (int(1100)[..4].to_vec(), 5),
        ([&int(1100)[..], &[0]].concat(), 5),
        (long.clone(), 5),
        (long[..600].to_vec(), 6),
    ];
    for (key, tid) in &others {
        let index = Node(&*page).lower_bound(Target { key, tid: *tid });
        let item = Item { key, tid: *tid, child: 0 };
        assert!(matches!(plan_insert(&page, index, item), Insertion::InPlace(_)), "{key:?}");
        page = added(&page, key, *tid).unwrap();
        model.insert((key.clone(), *tid));
        assert_eq!(page_problems(&page, 0), [] as [String; 0]);
        assert!(entries_of(&page).iter().eq(model.iter()));
    }
    // Each entry is found, and so is the page's end.
    for (at, (key, tid)) in model.iter().enumerate() {
        let node = Node(&*page);
        assert_eq!(node.lower_bound(Target { key, tid: *tid }), at);
        assert!(node.key_is(at, key) && node.row(at) == *tid);
    }
    // After the others are removed, no body is left.
    let exceptional: Vec<u16> = (0..model.len())
        .filter(|&at| Node(&*page).body_range(at).is_some())
        .map(|at| at as u16)
        .collect();
    assert_eq!(exceptional.len(), others.len() - 1);
    let mut data = Vec::new();
    record::remove_data(&mut data, &exceptional);
    let page = redo(&page, record::REMOVE, 0, &data);
    assert!(Node(&*page).is_narrow());
    assert_eq!(Node(&*page).count(), 401);
}

/// What a leaf without a high key takes, including the room for one.
fn bytes_of(page: &Page) -> usize {
    let bodies = PAGE_SIZE - usize::from(page.u16(BODY_START));
    let room = bytes_for_high(true, usize::from(page.u16(PREFIX_LEN)), 0);
    SLOTS + Node(&**page).count() * Node(&**page).slot_bytes() + bodies + room
}

/// The leaf without an entry.
fn without(page: &Page, gone: usize) -> Page {
    let mut data = Vec::new();
    record::remove_data(&mut data, &[gone as u16]);
    let after = redo(page, record::REMOVE, 0, &data);
    assert_eq!(Node(&*after).count() + 1, Node(&**page).count());
    assert!(bytes_of(&after) <= bytes_of(page), "{} after {}", bytes_of(&after), bytes_of(page));
    after
}

#[test]
fn a_page_never_grows_by_a_removal() {
    // A full narrow leaf with one key that ends with the prefix. With or without it, the rest fits.
    let mut entries: Vec<Entry> = (0u32..1200).map(|n| (int(n), u64::from(n) + 1)).collect();
    let short = (int(0)[..3].to_vec(), 9);
    entries.insert(0, short);
    let (count, page) = fullest(&entries);
    assert!(count > 1000 && Node(&*page).is_narrow());
    for gone in [0, 1, 500, count - 1] {
        without(&page, gone);
    }
    // A full wide leaf whose keys, except one, have five bytes in common. Without that one they
    // have a prefix, and the leaf begins to keep room for a high key of that length.
    let shared = |rest: &[u8]| [&[9; 5][..], rest].concat();
    let mut entries: Vec<Entry> =
        (0u32..600).map(|n| (shared(&(n << 14).to_be_bytes()[1..]), 5)).collect();
    entries.insert(1, (shared(&[0; 4]), 5));
    entries.insert(0, (vec![1], 5));
    let (count, page) = fullest(&entries);
    assert_eq!((count, Node(&*page).is_narrow(), page.u16(PREFIX_LEN)), (508, false, 0));
    for gone in [0, 1, 2, 300, count - 1] {
        let after = without(&page, gone);
        assert_eq!(after.u16(PREFIX_LEN), if gone == 0 { 5 } else { 0 });
    }
}

#[test]
fn a_leaf_that_gets_a_prefix_by_a_removal_does_not_grow() {
    // Small leaves, where little is saved: some keys of `short` bytes, `shared` of them in common,
    // and a longer one.
    for shared in 1..=12 {
        for (short, longer) in (shared..shared + 5).flat_map(|s| (0..10).map(move |l| (s, l))) {
            for count in 1..=4 {
                let key = |len: usize, rest: u8| {
                    let mut key = vec![0; len];
                    key[..shared].fill(9);
                    if let Some(last) = key[shared..].last_mut() {
                        *last = rest;
                    }
                    key
                };
                let mut entries: Vec<Entry> =
                    (0..count).map(|n| (key(short, n), u64::from(n) + 1)).collect();
                let mut long = key(short + longer, 9);
                long[shared..].fill(255);
                entries.push((long, 9));
                entries.insert(0, (vec![1], 5));
                let items = items_of(&entries, false);
                let page = items.build(&leaf_frame(), 0..entries.len()).unwrap();
                entries.remove(0);
                assert_eq!(entries_of(&without(&page, 0)), entries);
            }
        }
    }
}

#[test]
fn a_key_without_the_prefix_of_a_full_leaf_splits_it() {
    // Keys with a long common start fill a leaf to the last byte. A key without it comes before or
    // after them. The entries left beside it would take more room, so there is no other place to
    // cut.
    for narrow in [true, false] {
        let rest = |n: u32| match narrow {
            true => (n as u16).to_be_bytes().to_vec(),
            false => (n << 20).to_be_bytes().to_vec(),
        };
        let entries: Vec<Entry> =
            (0..1200).map(|n| ([&[9; 2000][..], &rest(n)].concat(), 5)).collect();
        let (count, page) = fullest(&entries);
        assert_eq!(Node(&*page).is_narrow(), narrow);
        for new in [[&vec![9; 500][..], &[8]].concat(), [&vec![9; 500][..], &[10]].concat()] {
            let index = Node(&*page).lower_bound(Target { key: &new, tid: 5 });
            assert_eq!(index, if new[500] == 8 { 0 } else { count });
            assert!(added(&page, &new, 5).is_none());
            let mut items = Items::of(&*page);
            items.insert(index, Item { key: &new, tid: 5, child: 0 });
            assert!(split::cut(&items, &Frame::of(&*page), index, 77).is_some());
        }
    }
}
