//! Pages of items against a model: a map from line pointer to bytes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Insert { len: usize, fill: u8, reserve: usize },
    Kill(u16),
    Redirect(u16, u16),
    Free(u16),
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0usize..400, any::<u8>(), prop_oneof![Just(0usize), Just(800)])
            .prop_map(|(len, fill, reserve)| Step::Insert { len, fill, reserve }),
        1 => (1u16..60).prop_map(Step::Kill),
        1 => (1u16..60, 1u16..60).prop_map(|(a, b)| Step::Redirect(a, b)),
        2 => (1u16..60).prop_map(Step::Free),
        1 => Just(Step::Compact),
    ]
}

#[derive(Clone, Debug, PartialEq)]
enum Slot {
    Item(Vec<u8>),
    Redirect(u16),
    Dead,
}

fn page() -> Box<[u8; PAGE_SIZE]> {
    let mut page = Box::new([0; PAGE_SIZE]);
    init(&mut *page, PageKind::Heap);
    page
}

fn contents(page: &[u8; PAGE_SIZE]) -> BTreeMap<u16, Slot> {
    (1..=line_count(page))
        .filter_map(|offset| {
            let line = line(page, offset);
            Some((
                offset,
                match line.state() {
                    LineState::Unused => return None,
                    LineState::Normal => Slot::Item(page[line.item().unwrap()].to_vec()),
                    LineState::Redirect => Slot::Redirect(line.target()),
                    LineState::Dead => Slot::Dead,
                },
            ))
        })
        .collect()
}

proptest! {
    #[test]
    fn a_page_behaves_like_a_map(steps in prop::collection::vec(step(), 0..200)) {
        let mut page = page();
        let mut model: BTreeMap<u16, Slot> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Insert { len, fill, reserve } => {
                    let Some(offset) = slot_for(&*page, len, reserve) else {
                        prop_assert!(hole(&*page) < align8(len) + LINE_LEN + reserve
                            || line_count(&*page) == MAX_LINES);
                        continue;
                    };
                    let at = place(&mut *page, offset, len).unwrap();
                    let bytes = vec![fill; len];
                    page.write(at, &bytes);
                    prop_assert!(model.insert(offset, Slot::Item(bytes)).is_none());
                    prop_assert!(hole(&*page) >= reserve);
                }
                Step::Kill(offset) => if let Some(slot) = model.get_mut(&offset) {
                    set_line(&mut *page, offset, Line::DEAD);
                    *slot = Slot::Dead;
                },
                Step::Redirect(from, to) => if let Some(slot) = model.get_mut(&from) {
                    set_line(&mut *page, from, Line::redirect(to));
                    *slot = Slot::Redirect(to);
                },
                Step::Free(offset) => if model.remove(&offset).is_some() {
                    set_line(&mut *page, offset, Line::UNUSED);
                    let flags = page.u16(FLAGS);
                    page.put_u16(FLAGS, flags | FLAG_HAS_UNUSED);
                },
                Step::Compact => {
                    compact(&mut *page).unwrap();
                    let used: usize = model.values().map(|slot| match slot {
                        Slot::Item(bytes) => align8(bytes.len()),
                        _ => 0,
                    }).sum();
                    let last = model.keys().next_back().copied().unwrap_or(0);
                    prop_assert_eq!(line_count(&*page), last);
                    prop_assert_eq!(hole(&*page), PAGE_SIZE - LINES - LINE_LEN * last as usize - used);
                    let (lower, upper) = (page.u16(LOWER) as usize, page.u16(UPPER) as usize);
                    prop_assert!(page[lower..upper].iter().all(|&byte| byte == 0));
                }
            }
            check_bounds(&*page).unwrap();
            prop_assert_eq!(contents(&page), model.clone());
        }
    }

    /// Any bytes give an answer or an error, never a panic or a write beyond the page.
    #[test]
    fn garbage_is_harmless(
        seed in prop::collection::vec(any::<u8>(), 64),
        lower in any::<u16>(), upper in any::<u16>(), offset in any::<u16>(), len in 0usize..10_000,
    ) {
        let mut page = Box::new([0; PAGE_SIZE]);
        for (i, byte) in page.iter_mut().enumerate() {
            *byte = seed[i % seed.len()].wrapping_mul((i / 64) as u8 | 1);
        }
        page.put_u16(LOWER, lower);
        page.put_u16(UPPER, upper);
        let _ = (line(&*page, offset).item(), hole(&*page), free_for_item(&*page));
        let _ = slot_for(&*page, len, 0);
        let _ = place(&mut page.clone()[..].try_into().map(|p: [u8; PAGE_SIZE]| p).unwrap(), offset, len);
        let _ = compact(&mut *page);
    }

    #[test]
    fn line_sets_are_sets(members in prop::collection::btree_set(1u16..=MAX_LINES, 0..50)) {
        let mut set = LineSet::default();
        set.insert(0);
        set.insert(MAX_LINES + 1);
        prop_assert!(set.is_empty());
        for &member in &members {
            set.insert(member);
        }
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), members.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(set.len(), members.len());
    }
}

#[test]
fn the_longest_item_fits_an_empty_page_and_one_byte_more_does_not() {
    let page = page();
    assert_eq!(slot_for(&*page, MAX_ITEM_LEN, 0), Some(1));
    assert_eq!(slot_for(&*page, MAX_ITEM_LEN + 1, 0), None);
}

#[test]
fn lines_keep_their_parts() {
    let line = Line::normal(8184, 8);
    assert_eq!((line.state(), line.item()), (LineState::Normal, Some(8184..8192)));
    assert_eq!(Line::normal(8185, 8).item(), None);
    assert_eq!(Line::redirect(256).target(), 256);
    assert_eq!((Line::DEAD.state(), Line::UNUSED.state()), (LineState::Dead, LineState::Unused));
}

/// (heap rule 10)
#[test]
fn a_line_pointer_names_nothing_outside_of_the_page() {
    for (at, len) in [(0, 64), (24, 64), (8184, 9), (32, 8161), (0x7fff, 0x7fff), (8192, 1)] {
        assert_eq!(Line::normal(at, len).item(), None, "{len} bytes at {at}");
    }
    assert_eq!(Line::normal(8184, 8).item(), Some(8184..8192));
}
