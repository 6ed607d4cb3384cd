//! Fuzz targets for B+tree pages of arbitrary bytes, and seeds of the tree's log records.

use millpond_buffer::PAGE_SIZE;

use crate::access::btree::check::page_problems;
use crate::access::btree::page::item::{Item, Target};
use crate::access::btree::page::items::{Frame, Insertion, Items, plan_insert};
use crate::access::btree::page::layout::{FLAG_LEAF, MAX_KEY_BYTES};
use crate::access::btree::page::node::Node;
use crate::access::btree::page::split;
use crate::access::btree::record::{self, Meta, SplitData};

type Page = [u8; PAGE_SIZE];

/// Searches a page and adds a key, as readers, writers and `check` do.
pub fn btree_page(page: &Page, key: &[u8], tid: u64) {
    let key = &key[..key.len().min(MAX_KEY_BYTES)];
    let node = Node(page);
    let _ = (node.is_node(), node.is_meta(), node.is_new(), node.is_deleted(), node.right());
    let _ = (Meta::of(page), record::deleted_at(page), node.cycle(), node.is_split_incomplete());
    search(page, Target { key, tid });
    let problems = page_problems(page, node.level());
    if problems.is_empty() {
        sound(page, key, tid);
    } else {
        // The results don't matter then, but the search must end. Cutting is slow for such a page,
        // because no cut fits: do it rarely.
        let index = node.lower_bound(Target { key, tid });
        add(page, index, Item { key, tid, child: 7 });
        if tid.is_multiple_of(32) {
            cut(page);
        }
    }
}

fn search(page: &Page, target: Target<'_>) {
    let node = Node(page);
    let count = node.count();
    assert!(node.lower_bound(target) <= count, "a leaf's search ends on the page");
    for from in [0, count / 2, count, count + 1] {
        let slot = node.lower_bound_from(from, target);
        assert!((from..=count.max(from)).contains(&slot), "a search from slot {from} ends");
    }
    let slots = [node.child_slot(target), node.child_slot_before(target)];
    assert!(slots.iter().all(|&slot| slot <= count), "an inner page's search ends on the page");
    let _ = (node.is_beyond(target), node.compare_high(target));
    for index in 0..count {
        let _ = (node.row(index), node.child(index), node.body_range(index));
        let _ = node.key_is(index, target.key);
    }
}

/// A page without findings from `check` keeps its entries in all operations.
fn sound(page: &Page, key: &[u8], tid: u64) {
    let (node, items) = (Node(page), Items::of(page));
    let leaf = node.is_leaf();
    for index in 0..items.len() {
        let item = items.get(index);
        if leaf {
            let target = Target { key: item.key, tid: item.tid };
            assert_eq!(node.lower_bound(target), index, "entry {index} is found");
            let found = node.lower_bound_from(index / 2, target);
            assert_eq!(found, index, "entry {index} is found from the middle of those before it");
            assert!(node.key_is(index, item.key), "entry {index} has its key");
        }
    }
    if let Some(again) = items.build(&Frame::of(page), 0..items.len()) {
        assert_same(&items, &Items::of(&*again), "a page built anew has the same entries");
    }
    let tid = tid & 0xFFFF_FFFF_FFFF;
    let index = node.lower_bound(Target { key, tid });
    let known = index < items.len() && {
        let item = items.get(index);
        (item.key, item.tid) == (key, tid)
    };
    if leaf && !known {
        let added = add(page, index, Item { key, tid, child: 0 });
        if let Some(added) = added {
            let mut more = items.clone();
            more.insert(index, Item { key, tid, child: 0 });
            assert_same(&more, &Items::of(&*added), "an addition leaves the others as they were");
        }
    }
    cut(page);
}

fn add(page: &Page, index: usize, item: Item<'_>) -> Option<Box<Page>> {
    use crate::wal::{PageEdit, RmgrRedo};
    if let Insertion::Full = plan_insert(page, index, item) {
        return None;
    }
    let (mut data, mut changed) = (Vec::new(), Box::new(*page));
    record::insert_data(&mut data, index, &item);
    let mut edit = PageEdit::new(super::page_id(), &mut *changed);
    let done = record::BTreeRedo.redo(record::INSERT, 0, &data, &[], &mut edit);
    assert!(done.is_ok(), "what was planned can be done: {done:?}");
    Some(changed)
}

fn cut(page: &Page) {
    let (items, frame) = (Items::of(page), Frame::of(page));
    let Some(cut) = split::cut(&items, &frame, items.len() / 2, 77) else { return };
    let left = Items::of(&*cut.left).len();
    assert_eq!((left, left + Items::of(&*cut.right).len()), (cut.at, items.len()));
}

fn assert_same(a: &Items, b: &Items, what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for index in 0..a.len() {
        assert_eq!(a.get(index), b.get(index), "{what}: entry {index}");
    }
}

/// Pages of all shapes: empty, wide, narrow, with long keys, inner, deleted.
pub fn btree_pages() -> Vec<Page> {
    let number = |n: u32, shift: u32| [&[1][..], &(n << shift).to_be_bytes()].concat();
    let leaf = Frame { flags: FLAG_LEAF, level: 0, right: 0, cycle: 0, high: None };
    let bounded = Frame { right: 9, cycle: 3, high: Some((number(1 << 9, 20), 5)), ..leaf.clone() };
    let inner = Frame { flags: 0, level: 1, ..bounded.clone() };
    let page = |frame: &Frame, keys: Vec<Vec<u8>>| {
        let mut items = Items::default();
        for (index, key) in keys.iter().enumerate() {
            let child = if frame.flags & FLAG_LEAF == 0 { index as u32 + 2 } else { 0 };
            let tid = if key.is_empty() { 0 } else { index as u64 + 1 };
            items.push(Item { key, tid, child });
        }
        items.build(frame, 0..items.len()).map(|page| *page)
    };
    let url = |n: u32| format!("https://example.org/{n:05}").into_bytes();
    let long = |n: u32| [&vec![9; 1500][..], &n.to_be_bytes()].concat();
    let mut separators = vec![Vec::new()];
    separators.extend((1..40).map(url));
    let pages = [
        page(&leaf, Vec::new()),
        page(&leaf, (0..30).map(|n| number(n, 20)).collect()),
        page(&leaf, (0..30).map(|n| number(n, 0)).collect()),
        page(&bounded, (0..400).map(|n| number(n, 0)).collect()),
        page(&bounded, (0..60).map(url).collect()),
        page(&leaf, (0..20).map(long).collect()),
        page(&inner, separators),
    ];
    let mut pages: Vec<Page> = pages.into_iter().flatten().collect();
    pages.extend([[0; PAGE_SIZE], record::deleted()]);
    pages
}

/// Data of an INSERT record.
pub fn insert_data(index: usize, key: &[u8], tid: u64) -> Vec<u8> {
    let mut out = Vec::new();
    record::insert_data(&mut out, index, &Item { key, tid, child: 0 });
    out
}

/// Data of a SPLIT record about the left page.
pub fn split_data(at: usize, separator: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let item = Item { key: separator, tid: 3, child: 0 };
    SplitData { new: Some((at, item)), at, right: 9, cycle: 1, separator: (separator, 3) }
        .encode(&mut out);
    out
}

/// Data of a ROOT_SPLIT record about the root.
pub fn root_data(separator: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    record::root_data(&mut out, 1, 2, 3, (separator, 4));
    out
}
