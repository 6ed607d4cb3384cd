//! One heap page under random histories: pruning, freezing and redo must not change what is
//! visible.

use std::cell::RefCell;
use std::collections::BTreeMap;

use millpond_buffer::{BlockNumber, PAGE_SIZE};
use proptest::prelude::*;

use super::check::check_page;
use super::header::{TupleFlags, TupleHeader};
use super::judge::judge;
use super::page::{self, Chain, Mark, NewTuple, is_all_visible};
use super::prune::{PruneOptions, PrunePlan, plan, plan_free};
use super::record::{self, apply};
use crate::access::Tid;
use crate::access::heap::visibility::{Fates, UpdateStatus, update_status, visible};
use crate::error::{EngineError, EngineResult};
use crate::page::item::{self, LineSet, LineState};
use crate::transam::{CommandId, Csn, Horizon, LockStrength, Snapshot, Xid, XidStatus};

const BLOCK: BlockNumber = BlockNumber(7);
type Page = [u8; PAGE_SIZE];
type Images = BTreeMap<u16, Vec<u8>>;

#[derive(Default)]
struct ModelFates(RefCell<BTreeMap<Xid, XidStatus>>);

impl Fates for ModelFates {
    fn status(&self, xid: Xid) -> EngineResult<XidStatus> {
        Ok(self.0.borrow().get(&xid).copied().unwrap_or(XidStatus::Aborted))
    }
    fn combo(&self, _: CommandId) -> EngineResult<(CommandId, CommandId)> {
        Err(EngineError::Internal { what: "no combo ids in this model" })
    }
}

/// A page, the log of its records, and the roots that an index would name.
struct World {
    page: Box<Page>,
    log: Vec<(u8, Vec<u8>)>,
    fates: ModelFates,
    next_xid: u64,
    next_csn: u64,
    running: Vec<Xid>,
    roots: Vec<u16>,
}

#[derive(Clone, Debug)]
enum Step {
    Insert { len: usize, fill: u8 },
    InsertMany { count: usize, len: usize },
    Update { root: usize, len: usize, fill: u8 },
    Delete { root: usize },
    Lock { root: usize },
    Commit(usize),
    Abort(usize),
    Prune { back: u64 },
    Vacuum,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0usize..200, any::<u8>()).prop_map(|(len, fill)| Step::Insert { len, fill }),
        1 => (1usize..4, 0usize..60).prop_map(|(count, len)| Step::InsertMany { count, len }),
        6 => (any::<usize>(), 0usize..200, any::<u8>())
            .prop_map(|(root, len, fill)| Step::Update { root, len, fill }),
        1 => any::<usize>().prop_map(|root| Step::Delete { root }),
        1 => any::<usize>().prop_map(|root| Step::Lock { root }),
        5 => any::<usize>().prop_map(Step::Commit),
        2 => any::<usize>().prop_map(Step::Abort),
        2 => (0u64..6).prop_map(|back| Step::Prune { back }),
        1 => Just(Step::Vacuum),
    ]
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            page: Box::new([0; PAGE_SIZE]),
            log: Vec::new(),
            fates: ModelFates::default(),
            next_xid: 3,
            next_csn: 2,
            running: Vec::new(),
            roots: Vec::new(),
        };
        world.log_and_apply(record::INSERT_MANY | record::INIT_PAGE, {
            let mut data = Vec::new();
            record::encode_many(&mut data, Xid::FROZEN, CommandId(0), true, &[]);
            data
        });
        world
    }

    fn log_and_apply(&mut self, info: u8, data: Vec<u8>) {
        apply(&mut *self.page, info, 0, &data).unwrap();
        self.log.push((info, data));
    }

    fn begin(&mut self) -> Xid {
        let xid = Xid(self.next_xid);
        self.next_xid += 1;
        self.fates.0.borrow_mut().insert(xid, XidStatus::InProgress);
        self.running.push(xid);
        xid
    }

    /// What a snapshot sees: the columns behind each root.
    fn seen(&self, csn: u64) -> Images {
        let snapshot = Snapshot { csn: Csn(csn), own: None, command: CommandId(0) };
        let mut seen = Images::new();
        for &root in &self.roots {
            let mut chain = Chain::from_root(root);
            while let Some(member) = chain.next(&*self.page) {
                let shown = visible(&member.header, &snapshot, &self.fates).unwrap();
                if is_all_visible(&*self.page) {
                    assert!(shown, "{member:?} on an all-visible page");
                }
                if shown {
                    let payload = self.page[member.payload()].to_vec();
                    assert!(seen.insert(root, payload).is_none(), "two versions visible");
                }
            }
        }
        seen
    }

    /// The version behind a root that the next transaction could change.
    fn changeable(&self, root: usize) -> Option<(u16, TupleHeader)> {
        let root = *self.roots.get(root % self.roots.len().max(1))?;
        let mut chain = Chain::from_root(root);
        while let Some(member) = chain.next(&*self.page) {
            let own = Some(Xid(self.next_xid));
            let status =
                update_status(&member.header, own, CommandId(0), LockStrength::Update, &self.fates)
                    .unwrap();
            if status == UpdateStatus::Ok {
                return Some((member.offset, member.header));
            }
        }
        None
    }

    fn insert(&mut self, len: usize, fill: u8) {
        let Some(offset) = page::slot_for(&*self.page, len, 0) else { return };
        let xmin = self.begin();
        let payload = vec![fill; len];
        let new = NewTuple {
            offset,
            xmin,
            cid: CommandId(0),
            flags: TupleFlags::NONE,
            natts: 1,
            payload: &payload,
        };
        let mut data = Vec::new();
        record::encode_tuple(&mut data, &new);
        self.log_and_apply(record::INSERT, data);
        self.roots.push(offset);
    }

    fn insert_many(&mut self, count: usize, len: usize) {
        let first = item::line_count(&*self.page) + 1;
        if page::usable_space(&*self.page, 0) < count * (page::tuple_space(len) + 4)
            || first as usize + count > 250
        {
            return;
        }
        let xmin = self.begin();
        let payload = vec![9; len];
        let rows: Vec<_> =
            (0..count as u16).map(|i| (first + i, TupleFlags::NONE, 1, &payload[..])).collect();
        let mut data = Vec::new();
        record::encode_many(&mut data, xmin, CommandId(0), false, &rows);
        self.log_and_apply(record::INSERT_MANY, data);
        self.roots.extend(rows.iter().map(|row| row.0));
    }

    fn update(&mut self, root: usize, len: usize, fill: u8) {
        let Some((old, header)) = self.changeable(root) else { return };
        let Some(offset) = page::slot_for(&*self.page, len, 0) else { return };
        let old_payload = self.page[page::tuple(&*self.page, old).unwrap()][32..].to_vec();
        let mut payload = old_payload.clone();
        payload.resize(len, fill);
        if len > 0 {
            payload[len / 2] = fill;
        }
        let xmin = self.begin();
        let flags = header.flags.without(TupleFlags::XMAX_BITS);
        let away = TupleFlags::UPDATED_AWAY.with(TupleFlags::HOT_UPDATED);
        let mark = Mark {
            offset: old,
            xmax: xmin,
            cid: CommandId(0),
            flags: flags.with(away),
            next: Tid::new(BLOCK, offset),
        };
        let new = NewTuple {
            offset,
            xmin,
            cid: CommandId(0),
            flags: TupleFlags::HEAP_ONLY.with(TupleFlags::IS_UPDATE),
            natts: 1,
            payload: &payload,
        };
        let mut data = Vec::new();
        record::encode_update(&mut data, &mark, &new, &old_payload);
        self.log_and_apply(record::UPDATE, data);
        assert_eq!(self.page[page::tuple(&*self.page, offset).unwrap()][32..], payload);
    }

    fn mark(&mut self, root: usize, info: u8, flags: TupleFlags) {
        let Some((offset, header)) = self.changeable(root) else { return };
        let xmax = self.begin();
        let flags = header.flags.without(TupleFlags::XMAX_BITS).with(flags);
        let next = Tid::new(BlockNumber(0), 0);
        let mut data = Vec::new();
        record::encode_mark(&mut data, &Mark { offset, xmax, cid: CommandId(0), flags, next });
        self.log_and_apply(info, data);
    }

    fn finish(&mut self, which: usize, commit: bool) {
        if self.running.is_empty() {
            return;
        }
        let xid = self.running.remove(which % self.running.len());
        let status = if commit {
            self.next_csn += 1;
            XidStatus::Committed(Csn(self.next_csn - 1))
        } else {
            XidStatus::Aborted
        };
        self.fates.0.borrow_mut().insert(xid, status);
    }

    fn prune(&mut self, back: u64) {
        let horizon = (self.next_csn - 1).saturating_sub(back).max(1);
        let before: Vec<Images> = (horizon..self.next_csn).map(|csn| self.seen(csn)).collect();
        let at = Horizon {
            csn: Csn(horizon),
            oldest_running_xid: self.running.first().copied().unwrap_or(Xid(self.next_xid)),
        };
        let options = PruneOptions { has_indexes: true };
        let plan = plan(&self.page, options, |_, header| judge(header, &at, &self.fates, || false))
            .unwrap();
        let mut data = Vec::new();
        plan.encode(&mut data);
        assert_eq!(PrunePlan::decode(&data).unwrap(), plan);
        self.log_and_apply(record::PRUNE, data);
        for &root in &self.roots {
            assert_ne!(item::line(&*self.page, root).state(), LineState::Unused, "root {root}");
        }
        let after: Vec<Images> = (horizon..self.next_csn).map(|csn| self.seen(csn)).collect();
        assert_eq!(before, after, "horizon {horizon}, {plan:?}");
        let again =
            super::prune::plan(&self.page, options, |_, h| judge(h, &at, &self.fates, || false));
        assert!(again.unwrap().is_empty(), "pruning twice finds more");
    }

    /// Prunes, removes dead roots from the index, frees their line pointers.
    fn vacuum(&mut self) {
        self.prune(0);
        let mut dead = LineSet::default();
        self.roots.retain(|&root| {
            let gone = item::line(&*self.page, root).state() == LineState::Dead;
            if gone {
                dead.insert(root);
            }
            !gone
        });
        let mut data = Vec::new();
        plan_free(&self.page, &dead).encode(&mut data);
        self.log_and_apply(record::PRUNE, data);
    }

    fn check(&self) {
        check_page(&self.page, BLOCK, Xid(self.next_xid), &mut |problem| panic!("{problem}"));
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Insert { len, fill } => self.insert(len, fill),
            Step::InsertMany { count, len } => self.insert_many(count, len),
            Step::Update { root, len, fill } => self.update(root, len, fill),
            Step::Delete { root } => self.mark(root, record::DELETE, TupleFlags::NONE),
            Step::Lock { root } => self.mark(root, record::LOCK, TupleFlags::XMAX_LOCK_ONLY),
            Step::Commit(which) => self.finish(which, true),
            Step::Abort(which) => self.finish(which, false),
            Step::Prune { back } => self.prune(back),
            Step::Vacuum => self.vacuum(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// (heap rules 1, 4, 5, 7)
    #[test]
    fn pruning_and_redo_change_nothing_that_is_seen(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
            world.check();
        }
        let mut replayed = Box::new([0xAA; PAGE_SIZE]);
        for (info, data) in &world.log {
            apply(&mut *replayed, *info, 0, data).unwrap();
        }
        // Compares all but LSN and checksum (the pool's), and the hole (which has no meaning).
        let (lower, upper) = (item::line_count(&*replayed) as usize * 4 + 32, hole_end(&replayed));
        prop_assert_eq!(&replayed[12..lower], &world.page[12..lower]);
        prop_assert_eq!(&replayed[upper..].len(), &world.page[upper..].len());
        for offset in 1..=item::line_count(&*replayed) {
            if let Some(range) = page::tuple(&*replayed, offset) {
                prop_assert_eq!(&replayed[range.clone()], &world.page[range]);
            }
        }
    }

    /// Any bytes as a record on any page give an error or a change, never a panic.
    #[test]
    fn damaged_records_are_refused(
        steps in prop::collection::vec(step(), 1..20), info in 0u8..9, block in 0usize..2,
        data in prop::collection::vec(any::<u8>(), 0..80),
        flip in any::<(usize, u8)>(),
    ) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        let mut page = world.page.clone();
        let _ = apply(&mut *page, info, block, &data);
        let (info, mut data) = world.log[flip.0 % world.log.len()].clone();
        let at = flip.0 % data.len().max(1);
        if let Some(byte) = data.get_mut(at) {
            *byte ^= flip.1;
        }
        let mut page = world.page.clone();
        let _ = apply(&mut *page, info & !record::INIT_PAGE, 0, &data);
        // A flipped byte in the page is found or harmless, never a panic.
        let mut page = world.page.clone();
        page[12 + flip.0 % (PAGE_SIZE - 12)] ^= flip.1;
        check_page(&page, BLOCK, Xid(world.next_xid), &mut |_| ());
        let at = Horizon { csn: Csn(1), oldest_running_xid: Xid(3) };
        let options = PruneOptions { has_indexes: false };
        let plan = plan(&page, options, |_, header| judge(header, &at, &world.fates, || false)).unwrap();
        let _ = plan.apply(&mut *page);
    }
}

/// A chain ends where another row has reused the successor's line pointer (heap rule 4).
#[test]
fn a_line_pointer_that_is_used_again_ends_the_chain() {
    let mut page = Box::new([0; PAGE_SIZE]);
    page::init(&mut *page);
    let put = |page: &mut Page, offset, xmin, flags| {
        let cid = CommandId(0);
        let new = NewTuple { offset, xmin, cid, flags, natts: 1, payload: b"row" };
        page::put_tuple(page, &new).unwrap();
    };
    put(&mut page, 1, Xid(3), TupleFlags::NONE);
    let flags = TupleFlags::UPDATED_AWAY.with(TupleFlags::HOT_UPDATED);
    let next = Tid::new(BLOCK, 2);
    page::mark(&mut *page, &Mark { offset: 1, xmax: Xid(4), cid: CommandId(0), flags, next })
        .unwrap();
    for (maker, is_successor) in [(Xid(4), true), (Xid(9), false)] {
        let mut page = page.clone();
        put(&mut page, 2, maker, TupleFlags::HEAP_ONLY);
        let mut chain = Chain::from_root(1);
        assert!(chain.next(&*page).is_some());
        assert_eq!(chain.next(&*page).is_some(), is_successor);
        let sees = |header: &TupleHeader| header.xmin == maker;
        let found = super::fetch::find_version(&*page, 1, sees, |_| ());
        assert_eq!(found.offset, if is_successor { 2 } else { 0 });
    }
}

fn hole_end(page: &Page) -> usize {
    use millpond_buffer::PageRead;
    page.u16(item::UPPER) as usize
}
