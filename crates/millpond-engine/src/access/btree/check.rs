//! Checks that a tree is whole, for `millpond check`, while no other session uses the index.
//!
//! It goes level by level from the root. Every page is of the level that its parent says. Its
//! entries are in order, not before the separator that leads to it, and before its high key. The
//! pages of a level form one chain, whose links agree with the downlinks above it, except where a
//! split is marked incomplete. Every page of the file is in the tree, new or deleted. The check
//! hands every entry of a leaf to the caller, which compares it with its row.

use millpond_buffer::{BlockNumber, PAGE_SIZE, PinnedPage, RelHandle};

use super::env::Env;
use super::page::PageRead;
use super::page::item::Target;
use super::page::items::Items;
use super::page::layout::{
    BODY_START, COUNT, FLAG_DELETED, FLAG_INCOMPLETE_SPLIT, FLAG_LEAF, FLAG_NARROW, FLAGS,
    NARROW_EXCEPTIONAL, NARROW_HEAD_BYTES, NEXT_FREE, PREFIX_AT, PREFIX_HEAD, PREFIX_LEN, SLOTS,
    head_of, prefix_mask,
};
use super::page::node::Node;
use super::record::Meta;
use super::{META, META_MAGIC, META_MAGIC_AT, META_VERSION, META_VERSION_AT, ROOT};
use crate::access::Tid;
use crate::{EngineError, EngineResult};

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// What is wrong, each with its block. Empty: the tree is whole.
    pub problems: Vec<String>,
    /// Entries of all leaves.
    pub entries: u64,
    /// Levels of the tree.
    pub levels: u16,
    /// Pages in the tree.
    pub pages: u32,
    /// Pages of the file that are not in the tree: new or deleted ones.
    pub free_pages: u32,
}

/// A downlink from the level above.
struct Downlink {
    key: Vec<u8>,
    tid: u64,
    child: u32,
}

struct Checker<'a, E: Env + ?Sized> {
    env: &'a E,
    rel: &'a RelHandle,
    report: CheckReport,
    visitor: &'a mut dyn Visitor,
    seen: Vec<bool>,
    page: Box<[u8; PAGE_SIZE]>,
}

/// The most problems that are listed.
const MAX_PROBLEMS: usize = 100;

/// Is called with what a check finds.
pub trait Visitor {
    /// An entry of a leaf. An error ends the check.
    fn entry(&mut self, key: &[u8], tid: Tid) -> EngineResult<()>;

    /// A page of the file has been checked.
    fn page(&mut self) {}
}

/// Passes on entries only.
struct Entries<'a>(&'a mut dyn FnMut(&[u8], Tid));

impl Visitor for Entries<'_> {
    fn entry(&mut self, key: &[u8], tid: Tid) -> EngineResult<()> {
        (self.0)(key, tid);
        Ok(())
    }
}

/// Checks a whole tree, handing each entry to `entry`.
pub fn check<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    entry: &mut dyn FnMut(&[u8], Tid),
) -> EngineResult<CheckReport> {
    check_for(env, rel, &mut Entries(entry))
}

/// Checks a whole tree and tells the visitor of each entry and page. A damaged page is reported as
/// a problem. Any other read error ends the check.
pub fn check_for<E: Env + ?Sized>(
    env: &E,
    rel: &RelHandle,
    visitor: &mut dyn Visitor,
) -> EngineResult<CheckReport> {
    let blocks = rel.block_count();
    let mut checker = Checker {
        env,
        rel,
        report: CheckReport::default(),
        visitor,
        seen: vec![false; blocks as usize],
        page: Box::new([0; PAGE_SIZE]),
    };
    if blocks <= ROOT {
        checker.problem(META, "the file is too short for a B+tree");
        return Ok(checker.report);
    }
    checker.check_meta()?;
    checker.check_levels()?;
    checker.check_rest()?;
    checker.check_free()?;
    Ok(checker.report)
}

impl<E: Env + ?Sized> Checker<'_, E> {
    fn problem(&mut self, block: u32, what: impl std::fmt::Display) {
        if self.report.problems.len() < MAX_PROBLEMS {
            let place = self.rel.rel().page(BlockNumber(block));
            self.report.problems.push(format!("B+tree, {place}: {what}"));
        }
    }

    /// Copies a page. A damaged page is a problem, not the end of the check.
    fn load(&mut self, block: u32) -> EngineResult<bool> {
        let pinned = self.env.buffers().pin(self.rel, BlockNumber(block), self.env.wait());
        match pinned.and_then(PinnedPage::into_shared) {
            Ok(latched) => {
                self.page.copy_from_slice(latched.bytes());
                Ok(true)
            }
            Err(error) => {
                let error = EngineError::from(error);
                if !error.is_damage() {
                    return Err(error);
                }
                self.problem(block, error);
                Ok(false)
            }
        }
    }

    fn check_meta(&mut self) -> EngineResult<()> {
        if self.load(META)? {
            let (magic, version) = (self.page.u32(META_MAGIC_AT), self.page.u32(META_VERSION_AT));
            if !Node(&*self.page).is_meta() || magic != META_MAGIC {
                self.problem(META, "not the meta page of a B+tree");
            } else if version != META_VERSION {
                self.problem(META, format_args!("version {version}, expected {META_VERSION}"));
            }
        }
        self.seen[META as usize] = true;
        self.visitor.page();
        Ok(())
    }

    fn check_levels(&mut self) -> EngineResult<()> {
        if !self.load(ROOT)? {
            return Ok(());
        }
        let top = Node(&*self.page).level();
        let mut downlinks = vec![Downlink { key: Vec::new(), tid: 0, child: ROOT }];
        self.report.levels = top.saturating_add(1);
        for level in (0..=top).rev() {
            downlinks = self.check_level(level, &downlinks)?;
            if downlinks.is_empty() && level > 0 {
                return Ok(()); // The problem is noted already.
            }
        }
        Ok(())
    }

    /// Walks the pages of a level along the right links, and returns their downlinks.
    fn check_level(&mut self, level: u16, expected: &[Downlink]) -> EngineResult<Vec<Downlink>> {
        let mut found = Vec::new();
        let mut expected = expected.iter().peekable();
        let mut next = expected.peek().map(|first| first.child);
        // Where the page must begin, and whether its left neighbour says that its downlink is
        // missing.
        let (mut fence, mut unlinked) = ((Vec::new(), 0), false);
        while let Some(block) = next {
            match self.seen.get_mut(block as usize) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => {
                    self.problem(block, "reached twice: two links lead to this page");
                    return Ok(found);
                }
                None => {
                    self.problem(
                        block,
                        "a link leads to this page, but it is beyond the end of the file",
                    );
                    return Ok(found);
                }
            }
            match expected.peek() {
                Some(downlink) if downlink.child == block => {
                    if (&downlink.key[..], downlink.tid) != (&fence.0[..], fence.1) {
                        self.problem(
                            block,
                            "its downlink's separator is not its left neighbour's high key",
                        );
                    }
                    if unlinked {
                        self.problem(
                            block,
                            "has a downlink, but its left neighbour's split is marked incomplete",
                        );
                    }
                    expected.next();
                }
                _ if unlinked => {}
                _ => self.problem(block, "reached from the left, but without a downlink"),
            }
            if !self.load(block)? {
                return Ok(found);
            }
            self.report.pages += 1;
            fence = self.check_page(block, level, fence, &mut found)?;
            self.visitor.page();
            let node = Node(&*self.page);
            (next, unlinked) = (node.right(), node.is_split_incomplete());
        }
        for downlink in expected {
            self.problem(downlink.child, "has a downlink, but is not reached from the left");
        }
        Ok(found)
    }

    /// Checks the copied page. Returns its high key, where its right neighbour must begin.
    fn check_page(
        &mut self,
        block: u32,
        level: u16,
        fence: (Vec<u8>, u64),
        found: &mut Vec<Downlink>,
    ) -> EngineResult<(Vec<u8>, u64)> {
        for problem in page_problems(&self.page, level) {
            self.problem(block, problem);
        }
        let node = Node(&*self.page);
        let items = Items::of(&*self.page);
        let mut high = Vec::new();
        let high_tid = node.high_into(&mut high);
        let mut problems = Vec::new();
        let (leaf, right) = (node.is_leaf(), node.right());
        if right.is_some() != high_tid.is_some() {
            problems.push("a right sibling and a high key must go together".to_owned());
        }
        for index in 0..items.len() {
            let item = items.get(index);
            let place = (item.key, item.tid);
            if place < (&fence.0[..], fence.1) {
                problems
                    .push(format!("entry {index} is before the separator that leads to the page"));
            }
            if high_tid.is_some_and(|tid| place >= (&high[..], tid)) {
                problems.push(format!("entry {index} is not before the high key"));
            }
            if leaf {
                // A reader's search must find the entry again.
                if node.lower_bound(Target { key: item.key, tid: item.tid }) != index {
                    problems.push(format!("entry {index} is not where a search looks for it"));
                }
                self.visitor.entry(item.key, Tid::from_u64(item.tid))?;
                self.report.entries += 1;
            } else {
                found.push(Downlink { key: item.key.to_vec(), tid: item.tid, child: item.child });
            }
        }
        if !leaf && items.len() == 0 {
            problems.push("inner page without entries".to_owned());
        } else if !leaf && (items.get(0).key, items.get(0).tid) != (&fence.0[..], fence.1) {
            problems.push("its first entry is not the separator that leads to the page".to_owned());
        }
        for problem in problems {
            self.problem(block, problem);
        }
        Ok((high, high_tid.unwrap_or(0)))
    }

    /// Checks that the pages in the list of free pages are deleted and outside the tree.
    fn check_free(&mut self) -> EngineResult<()> {
        let mut next = if self.load(META)? { Meta::of(&*self.page).free } else { 0 };
        let mut left = self.seen.len();
        while next != 0 {
            if left == 0 || !self.load(next)? {
                self.problem(next, "the list of free pages does not end");
                return Ok(());
            }
            if !Node(&*self.page).is_deleted() || self.seen.get(next as usize) != Some(&false) {
                self.problem(next, "in the list of free pages, but not a deleted page");
                return Ok(());
            }
            next = self.page.u32(NEXT_FREE);
            left -= 1;
        }
        Ok(())
    }

    /// Checks that pages to which no link leads are new or deleted.
    fn check_rest(&mut self) -> EngineResult<()> {
        for block in 0..self.seen.len() as u32 {
            if self.seen[block as usize] {
                continue;
            }
            let is_read = self.load(block)?;
            self.visitor.page();
            if !is_read {
                continue;
            }
            let node = Node(&*self.page);
            if node.is_new() || node.is_deleted() {
                self.report.free_pages += 1;
            } else {
                self.problem(
                    block,
                    "the page is in no level of the tree, and neither new nor deleted",
                );
            }
        }
        Ok(())
    }
}

/// Problems that a page shows alone.
pub(crate) fn page_problems(page: &[u8; PAGE_SIZE], level: u16) -> Vec<String> {
    let mut problems = Vec::new();
    let node = Node(page);
    if !node.is_node() {
        return vec!["not a page of a B+tree".to_owned()];
    }
    if node.level() != level {
        problems.push(format!("level {}, expected {level}", node.level()));
    }
    if node.is_leaf() != (level == 0) {
        problems.push(format!("the leaf flag is {} at level {level}", node.is_leaf()));
    }
    let unknown =
        page.u16(FLAGS) & !(FLAG_LEAF | FLAG_INCOMPLETE_SPLIT | FLAG_DELETED | FLAG_NARROW);
    if unknown != 0 {
        problems.push(format!("unknown flags {unknown:#x}"));
    }
    let (count, low) = (usize::from(page.u16(COUNT)), usize::from(page.u16(BODY_START)));
    if SLOTS + count * node.slot_bytes() > low || low > PAGE_SIZE {
        problems.push(format!("{count} slots and bodies from {low} overlap"));
    }
    let (prefix_at, prefix) = (usize::from(page.u16(PREFIX_AT)), usize::from(page.u16(PREFIX_LEN)));
    if prefix != 0 && (prefix_at < low || prefix_at + prefix > PAGE_SIZE) {
        problems.push(format!("prefix of {prefix} bytes at {prefix_at} is outside the bodies"));
    }
    for index in 0..node.count() {
        if let Some((from, to)) = node.body_range(index)
            && (from < low || to > PAGE_SIZE)
        {
            problems.push(format!(
                "body of entry {index}, bytes {from} to {to}, is outside the bodies"
            ));
        }
    }
    let items = Items::of(page);
    for index in 0..items.len() {
        let item = items.get(index);
        // A search compares heads, whose padding is zero, and prefixes.
        if !item.is_lowest(node.is_leaf()) && !node.key_is(index, item.key) {
            problems.push(format!("entry {index} is not found under its own key"));
        }
    }
    for index in 1..items.len() {
        let (a, b) = (items.get(index - 1), items.get(index));
        if (a.key, a.tid) >= (b.key, b.tid) {
            problems.push(format!("entries {} and {index} are not in order", index - 1));
        }
    }
    if page.u16(FLAGS) & FLAG_NARROW != 0 {
        narrow_problems(page, &items, &mut problems);
    }
    problems
}

/// Problems of a page that is marked as a narrow leaf.
fn narrow_problems(page: &[u8; PAGE_SIZE], items: &Items, problems: &mut Vec<String>) {
    let node = Node(page);
    if !node.is_leaf() {
        problems.push("marked as a narrow leaf, but not a leaf".to_owned());
        return;
    }
    let (prefix_at, prefix) = (usize::from(page.u16(PREFIX_AT)), usize::from(page.u16(PREFIX_LEN)));
    let bytes = page.get(prefix_at..prefix_at + prefix).unwrap_or(&[]);
    if page.u64(PREFIX_HEAD) != head_of(bytes) & prefix_mask(bytes.len()) {
        problems.push("the stored head of the prefix differs from the prefix".to_owned());
    }
    for index in 0..items.len() {
        let item = items.get(index);
        let fits_slot =
            item.key.len() == prefix + NARROW_HEAD_BYTES && item.tid & 0xFFFF != NARROW_EXCEPTIONAL;
        if fits_slot != node.body_range(index).is_none() {
            problems.push(format!("entry {index} has a body that it does not need, or lacks one"));
        }
    }
}
