//! Bulk build: builds an index from sorted entries. Pages are filled in memory, left to right,
//! level by level, and logged as a whole. No other session may use the relation, which must be new.
//! Blocks are assigned in order, so a page's right link is known before its sibling is written.

use millpond_buffer::{PAGE_SIZE, RelHandle, Ring};

use super::env::{Env, latch};
use super::grow::new_record;
use super::insert::check_key;
use super::page::item::Item;
use super::page::items::{Frame, Items, common_prefix};
use super::page::layout::{
    FLAG_LEAF, FLAG_META, FLAGS, KIND, MAX_NARROW_SLOTS, MAX_WIDE_SLOTS, PAGE_KIND, SLOTS,
    WIDE_HEAD_BYTES, WIDE_SLOT_BYTES,
};
use super::page::narrow::NarrowCost;
use super::page::node::bytes_for_high;
use super::page::split::separator;
use super::record::{self, PAGES};
use super::{META, META_MAGIC, META_MAGIC_AT, META_VERSION, META_VERSION_AT, ROOT};
use crate::access::Tid;
use crate::wal::ImageMode;
use crate::{EngineError, EngineResult};

/// The fill factor, in percent, unless the caller gives another.
pub const DEFAULT_FILLFACTOR: u8 = 90;

/// Makes an empty tree in an empty relation: the meta page and a root without entries.
pub fn create<E: Env + ?Sized>(env: &E, rel: &RelHandle) -> EngineResult<()> {
    let mut meta = [0; PAGE_SIZE];
    meta[KIND..KIND + 2].copy_from_slice(&PAGE_KIND.to_le_bytes());
    meta[FLAGS..FLAGS + 2].copy_from_slice(&FLAG_META.to_le_bytes());
    meta[META_MAGIC_AT..META_MAGIC_AT + 4].copy_from_slice(&META_MAGIC.to_le_bytes());
    meta[META_VERSION_AT..META_VERSION_AT + 4].copy_from_slice(&META_VERSION.to_le_bytes());
    let root = record::empty_root()
        .ok_or(EngineError::Internal { what: "the root of an empty tree does not fit a page" })?;
    let to = Output { env, rel, ring: None };
    append_page(&to, META, &meta)?;
    append_page(&to, ROOT, &root)
}

/// Where the pages go: into `rel`, through the ring if there is one.
struct Output<'a, E: ?Sized> {
    env: &'a E,
    rel: &'a RelHandle,
    ring: Option<&'a Ring>,
}

/// Adds a page at the end of the relation, which must become block `block`.
fn append_page<E: Env + ?Sized>(
    to: &Output<'_, E>,
    block: u32,
    page: &[u8; PAGE_SIZE],
) -> EngineResult<()> {
    let mut target = to.env.buffers().extend_with(to.rel, to.env.wait(), to.ring)?;
    if target.block().get() != block {
        return Err(EngineError::Internal {
            what: "another session extended an index during its build",
        });
    }
    write_page(to.env, &mut target, page)
}

fn write_page<E: Env + ?Sized>(
    env: &E,
    target: &mut millpond_buffer::ExclusivePage<'_>,
    page: &[u8; PAGE_SIZE],
) -> EngineResult<()> {
    let mut data = Vec::with_capacity(PAGE_SIZE);
    record::image(&mut data, page);
    let record = new_record(PAGES).block(target.page_id(), ImageMode::Never, &data);
    env.log_and_apply(&mut [target], record)?;
    Ok(())
}

/// Entries of one level that wait for their page.
struct Pending {
    items: Items,
    leaf: bool,
    /// Bytes that all keys begin with.
    prefix: usize,
    /// Bytes of bodies in the wide form with this prefix.
    bodies: usize,
    /// What a leaf's entries take in the narrow form.
    narrow: NarrowCost,
}

impl Pending {
    fn new(leaf: bool) -> Self {
        let narrow = NarrowCost::default();
        Self { items: Items::default(), leaf, prefix: 0, bodies: 0, narrow }
    }

    /// Bytes of the page with one more entry. For a high key it counts only the room that any leaf
    /// keeps. The caller asks about each entry before it adds it.
    fn bytes_with(&mut self, item: &Item<'_>) -> usize {
        let prefix = self.prefix_with(item.key);
        if prefix != self.prefix {
            self.prefix = prefix;
            self.bodies =
                (0..self.items.len()).map(|index| self.body_bytes(&self.items.get(index))).sum();
        }
        let slots = (self.items.len() + 1) * WIDE_SLOT_BYTES;
        let prefix = self.prefix + bytes_for_high(self.leaf, self.prefix, 0);
        let wide = SLOTS + slots + prefix + self.bodies + self.body_bytes(item);
        if self.leaf { wide.min(self.narrow_bytes_with(item)) } else { wide }
    }

    fn narrow_bytes_with(&mut self, item: &Item<'_>) -> usize {
        let first = if self.items.len() == 0 { item.key } else { self.items.get(0).key };
        let common = common_prefix(first, item.key);
        if self.items.len() == 0 || common != self.narrow.common() {
            self.narrow = NarrowCost::new(common);
            (0..self.items.len()).for_each(|index| self.narrow.add(&self.items.get(index)));
        }
        let mut with = self.narrow;
        with.add(item);
        with.best(|prefix| SLOTS + prefix + bytes_for_high(true, prefix, 0)).1
    }

    fn prefix_with(&self, key: &[u8]) -> usize {
        let lowest = !self.leaf && self.items.len() > 0 && self.items.get(0).key.is_empty();
        match self.items.len().checked_sub(usize::from(lowest)) {
            None | Some(0) => 0,
            Some(1) => common_prefix(self.items.get(usize::from(lowest)).key, key),
            Some(_) => common_prefix(&self.items.get(usize::from(lowest)).key[..self.prefix], key),
        }
    }

    /// An upper bound of the body's bytes: a tid is counted wherever there may be one.
    fn body_bytes(&self, item: &Item<'_>) -> usize {
        let rest = item.key.len().saturating_sub(self.prefix);
        let tid = if self.leaf || item.tid == 0 { 0 } else { 8 };
        tid + if rest > WIDE_HEAD_BYTES { rest - WIDE_HEAD_BYTES + 2 } else { 0 }
    }

    fn push(&mut self, item: Item<'_>) {
        self.bodies += self.body_bytes(&item);
        self.narrow.add(&item);
        self.items.push(item);
    }

    fn max_slots(&self) -> usize {
        if self.leaf { MAX_NARROW_SLOTS } else { MAX_WIDE_SLOTS }
    }

    fn clear(&mut self) {
        self.items.clear();
        self.prefix = 0;
        self.bodies = 0;
    }
}

/// One level while it is written: the pending page, and the downlinks to the pages before it.
struct Level {
    level: u16,
    pending: Pending,
    /// The separator before the pending page.
    fence: (Vec<u8>, u64),
    downlinks: Items,
}

impl Level {
    fn new(level: u16) -> Self {
        let pending = Pending::new(level == 0);
        Self { level, pending, fence: (Vec::new(), 0), downlinks: Items::default() }
    }

    /// Puts an entry on the pending page, writing that page first if it is full.
    fn place<E: Env + ?Sized>(
        &mut self,
        to: &Output<'_, E>,
        limit: usize,
        item: Item<'_>,
    ) -> EngineResult<()> {
        let count = self.pending.items.len();
        // Two entries always fit, even with the longest high key.
        if self.pending.bytes_with(&item) > limit && count >= 2 || count >= self.pending.max_slots()
        {
            self.close(to, Some(item))?;
            self.pending.bytes_with(&item);
        }
        self.pending.push(item);
        Ok(())
    }

    /// Writes the pending page; `next` is the first entry of the page that follows.
    fn close<E: Env + ?Sized>(
        &mut self,
        to: &Output<'_, E>,
        next: Option<Item<'_>>,
    ) -> EngineResult<()> {
        let block = to.rel.block_count();
        let count = self.pending.items.len();
        // With a long high key, the last entries may not fit: they go to the next page.
        let built = (1..=count).rev().find_map(|kept| {
            let frame = self.frame(kept, block, next);
            Some((kept, self.pending.items.build(&frame, 0..kept)?, frame.high))
        });
        let (kept, page, high) = built.ok_or(NO_ROOM)?;
        append_page(to, block, &page)?;
        self.downlinks.push(Item { key: &self.fence.0, tid: self.fence.1, child: block });
        self.fence = high.unwrap_or_default();
        let rest = std::mem::take(&mut self.pending.items);
        self.pending.clear();
        for index in kept..count {
            self.pending.bytes_with(&rest.get(index));
            self.pending.push(rest.get(index));
        }
        if kept < count && next.is_none() { self.close(to, None) } else { Ok(()) }
    }

    /// The frame of the pending page if it takes the first `kept` entries.
    fn frame(&self, kept: usize, block: u32, next: Option<Item<'_>>) -> Frame {
        let leaf = self.pending.leaf;
        let items = &self.pending.items;
        let next = if kept < items.len() { Some(items.get(kept)) } else { next };
        let high = next.map(|next| {
            let (key, tid) =
                if leaf { separator(&items.get(kept - 1), &next) } else { (next.key, next.tid) };
            (key.to_vec(), tid)
        });
        let flags = if leaf { FLAG_LEAF } else { 0 };
        let right = if high.is_some() { block + 1 } else { 0 };
        Frame { flags, level: self.level, right, cycle: 0, high }
    }
}

/// Builds an index from entries in (key, tid) order.
pub struct Builder<'a, E: Env + ?Sized> {
    to: Output<'a, E>,
    limit: usize,
    leaves: Level,
    entries: u64,
}

impl<'a, E: Env + ?Sized> Builder<'a, E> {
    /// A builder for a relation that is empty, or in which [`create`] made an empty tree. Its pages
    /// go through the ring, if there is one.
    pub fn new(
        env: &'a E,
        rel: &'a RelHandle,
        ring: Option<&'a Ring>,
        fillfactor: u8,
    ) -> EngineResult<Self> {
        match rel.block_count() {
            0 => create(env, rel)?,
            2 => {}
            _ => {
                return Err(EngineError::Internal {
                    what: "an index is built in a relation that is in use",
                });
            }
        }
        let limit = PAGE_SIZE * usize::from(fillfactor.clamp(10, 100)) / 100;
        let to = Output { env, rel, ring };
        Ok(Self { to, limit, leaves: Level::new(0), entries: 0 })
    }

    /// Adds the next entry. Returns whether its key equals the last one: a unique index must check
    /// that.
    pub fn add(&mut self, key: &[u8], tid: Tid) -> EngineResult<bool> {
        check_key(key)?;
        let item = Item { key, tid: tid.to_u64(), child: 0 };
        let items = &self.leaves.pending.items;
        let mut same = false;
        if let Some(last) = items.len().checked_sub(1) {
            let last = items.get(last);
            if (last.key, last.tid) >= (key, item.tid) {
                return Err(EngineError::Internal {
                    what: "entries of an index build are not in order",
                });
            }
            same = last.key == key;
        }
        self.entries += 1;
        self.leaves.place(&self.to, self.limit, item)?;
        Ok(same)
    }

    /// Writes what is pending and the levels above. Returns the number of entries.
    pub fn finish(mut self) -> EngineResult<u64> {
        if self.leaves.downlinks.len() == 0 {
            self.write_root(0, &self.leaves.pending.items)?;
            return Ok(self.entries);
        }
        self.leaves.close(&self.to, None)?;
        let mut children = std::mem::take(&mut self.leaves.downlinks);
        for level in 1.. {
            let frame = Frame { flags: 0, level, right: 0, cycle: 0, high: None };
            if children.build(&frame, 0..children.len()).is_some() {
                self.write_root(level, &children)?;
                break;
            }
            let mut parents = Level::new(level);
            for index in 0..children.len() {
                parents.place(&self.to, self.limit, children.get(index))?;
            }
            parents.close(&self.to, None)?;
            children = parents.downlinks;
        }
        Ok(self.entries)
    }

    fn write_root(&self, level: u16, items: &Items) -> EngineResult<()> {
        let flags = if level == 0 { FLAG_LEAF } else { 0 };
        let frame = Frame { flags, level, right: 0, cycle: 0, high: None };
        let page = items.build(&frame, 0..items.len()).ok_or(NO_ROOM)?;
        let Output { env, rel, .. } = self.to;
        write_page(env, &mut latch(env, rel, ROOT)?, &page)
    }
}

const NO_ROOM: EngineError =
    EngineError::Internal { what: "a page of an index build has no room for its entries" };

/// Builds an index from a stream of entries in (key, tid) order. Returns their number.
pub fn bulk_build<E: Env + ?Sized, K: AsRef<[u8]>>(
    env: &E,
    rel: &RelHandle,
    entries: impl IntoIterator<Item = EngineResult<(K, Tid)>>,
    fillfactor: u8,
) -> EngineResult<u64> {
    let mut builder = Builder::new(env, rel, None, fillfactor)?;
    for entry in entries {
        let (key, tid) = entry?;
        builder.add(key.as_ref(), tid)?;
    }
    builder.finish()
}
