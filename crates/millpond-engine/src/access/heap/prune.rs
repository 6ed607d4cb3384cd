//! Pruning: a plan of what no snapshot can see any more on a page, carried out by a log record.
//!
//! [`plan`] reads a page and the fate of each version on it and decides what to do;
//! [`PrunePlan::apply`] does it. A chain loses its dead prefix: its root becomes a redirect to the
//! first member that is kept, or dead if none is. Heap-only versions that an aborted transaction
//! left are freed. The same record freezes old xmins (heap rule 8) and clears xmaxes without
//! effect.
//!
//! [`plan_free`] makes a plan for vacuum instead: it only frees dead line pointers that no index
//! names any more.
//!
//! Invariants: a version that any snapshot can see stays, at its line pointer (heap rule 6). A line
//! pointer that an index entry may name never becomes unused here unless the table has no indexes
//! (heap rule 5).
//!
//! Record data: flags u8 (bit 0: set all-visible, bit 1: clear it), then five counts u16
//! (redirects, dead, unused, frozen, forgotten), prune hint u64. Line pointers follow as u8 (number
//! minus one): redirects as pairs (from, to), then the other four lists.

use millpond_buffer::PAGE_SIZE;
use millpond_sync::mutant;
use smallvec::SmallVec;

use super::header::{TupleFlags, TupleHeader, XMIN};
use super::input::Input;
use super::page::{self, Chain, is_all_visible};
use crate::page::item::{self, Line, LineSet, LineState};
use crate::page::{PageError, PageMut};
use crate::transam::Xid;

/// A version's fate, for all sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Made by a committed transaction, deleted by none.
    Live,
    /// Made by a transaction that is still running.
    Inserting,
    /// Deleted or replaced by a transaction that is still running.
    Deleting,
    /// Deleted, but a snapshot may still see it.
    RecentlyDead,
    /// No snapshot will ever see it.
    Dead,
}

/// A version's fate, and what can be cleaned up in its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The fate.
    pub fate: Fate,
    /// xmin committed before every snapshot (also when it is frozen already).
    pub xmin_is_old: bool,
    /// xmax is set, but neither deletes nor locks any more, and no other transaction holds the row.
    pub xmax_is_void: bool,
}

type Lines = SmallVec<[u16; 32]>;

/// What to do to a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrunePlan {
    /// Roots that become redirects, with their targets.
    pub redirects: SmallVec<[(u16, u16); 32]>,
    /// Roots whose whole chain is gone; index entries may name them.
    pub dead: Lines,
    /// Line pointers that become unused.
    pub unused: Lines,
    /// Versions whose xmin need not be looked up any more.
    pub freeze: Lines,
    /// Versions whose xmax is void.
    pub forget: Lines,
    /// The new value of the all-visible flag, if it changes.
    pub all_visible: Option<bool>,
    /// The new prune hint.
    pub hint: Xid,
}

/// Options of planning.
#[derive(Clone, Copy, Debug)]
pub struct PruneOptions {
    /// Whether index entries may name line pointers of this table.
    pub has_indexes: bool,
}

impl PrunePlan {
    /// Whether the plan removes versions or line pointers.
    pub fn frees(&self) -> bool {
        !(self.redirects.is_empty() && self.dead.is_empty() && self.unused.is_empty())
    }

    /// Whether the plan has nothing worth a record.
    pub fn is_empty(&self) -> bool {
        !self.frees()
            && self.freeze.is_empty()
            && self.forget.is_empty()
            && self.all_visible.is_none()
    }

    /// Appends the record's data.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.all_visible {
            None => 0,
            Some(true) => 1,
            Some(false) => 2,
        });
        let lists = [&self.dead, &self.unused, &self.freeze, &self.forget];
        out.extend_from_slice(&(self.redirects.len() as u16).to_le_bytes());
        for list in lists {
            out.extend_from_slice(&(list.len() as u16).to_le_bytes());
        }
        out.extend_from_slice(&self.hint.0.to_le_bytes());
        for &(from, to) in &self.redirects {
            out.extend_from_slice(&[(from - 1) as u8, (to - 1) as u8]);
        }
        for list in lists {
            out.extend(list.iter().map(|&offset| (offset - 1) as u8));
        }
    }

    /// The plan in a record's data.
    pub fn decode(data: &[u8]) -> Result<Self, PageError> {
        let mut input = Input(data);
        let all_visible = match input.u8()? {
            0 => None,
            1 => Some(true),
            2 => Some(false),
            _ => return Err(PageError::Malformed("unknown prune flags")),
        };
        let mut counts = [0usize; 5];
        for count in &mut counts {
            *count = input.u16()? as usize;
        }
        let hint = Xid(input.u64()?);
        let redirects = input.take(2 * counts[0])?.chunks_exact(2);
        let redirects = redirects.map(|pair| (pair[0] as u16 + 1, pair[1] as u16 + 1)).collect();
        let mut lines = |count| -> Result<Lines, PageError> {
            Ok(input.take(count)?.iter().map(|&line| line as u16 + 1).collect())
        };
        let (dead, unused) = (lines(counts[1])?, lines(counts[2])?);
        let (freeze, forget) = (lines(counts[3])?, lines(counts[4])?);
        input.end()?;
        Ok(Self { redirects, dead, unused, freeze, forget, all_visible, hint })
    }

    /// Carries out the plan.
    pub fn apply<P: PageMut + ?Sized>(&self, page: &mut P) -> Result<(), PageError> {
        for &offset in &self.freeze {
            let Some(header) = page::header(page, offset) else {
                return Err(PageError::Line { offset, what: "no tuple to freeze" });
            };
            page::set_flags(page, offset, header.flags.with(TupleFlags::XMIN_FROZEN))?;
            if mutant!("heap-freeze-overwrites-xmin")
                && let Some(range) = page::tuple(page, offset)
            {
                page.put_u64(range.start + XMIN, Xid::FROZEN.0);
            }
        }
        for &offset in &self.forget {
            page::clear_xmax(page, offset)?;
        }
        for &(from, to) in &self.redirects {
            if from > item::line_count(page) || page::tuple(page, to).is_none() {
                return Err(PageError::Line { offset: to, what: "no tuple to redirect to" });
            }
            item::set_line(page, from, Line::redirect(to));
        }
        for (list, line) in [(&self.dead, Line::DEAD), (&self.unused, Line::UNUSED)] {
            for &offset in list {
                if offset > item::line_count(page) {
                    return Err(PageError::Line { offset, what: "no such line pointer" });
                }
                item::set_line(page, offset, line);
            }
        }
        if self.frees() {
            item::compact(page)?;
        }
        if let Some(on) = self.all_visible {
            page::set_all_visible(page, on);
        }
        page.put_u64(page::PRUNE_HINT, self.hint.0);
        Ok(())
    }
}

/// A version of a page, judged.
struct Judged {
    header: TupleHeader,
    verdict: Verdict,
}

/// The versions of a page by their line pointers. An update of a full page looks at all of them, so
/// each is read once.
struct Versions(SmallVec<[Option<Judged>; 128]>);

impl Versions {
    fn get(&self, offset: u16) -> Option<&Judged> {
        self.0.get((offset as usize).wrapping_sub(1))?.as_ref()
    }

    fn fate(&self, offset: u16) -> Option<Fate> {
        self.get(offset).map(|version| version.verdict.fate)
    }
}

/// Plans what to do to a page. Asks `judge` about each version at most once.
pub fn plan<E>(
    page: &[u8; PAGE_SIZE],
    options: PruneOptions,
    mut judge: impl FnMut(u16, &TupleHeader) -> Result<Verdict, E>,
) -> Result<PrunePlan, E> {
    let mut versions = Versions(SmallVec::with_capacity(item::line_count(page) as usize));
    for (offset, line) in item::lines(page) {
        versions.0.push(match page::header_of(page, line) {
            Some(header) => Some(Judged { header, verdict: judge(offset, &header)? }),
            None => None,
        });
    }

    let mut plan = PrunePlan::default();
    let mut settled = LineSet::default();
    for (offset, line) in item::lines(page) {
        let is_root = match line.state() {
            LineState::Unused => false,
            LineState::Dead => {
                if !options.has_indexes {
                    plan.unused.push(offset);
                }
                false
            }
            LineState::Normal => {
                versions.get(offset).is_none_or(|version| !version.header.is_heap_only())
            }
            LineState::Redirect => true,
        };
        // Most chains are one version that stays.
        let first = if line.state() == LineState::Redirect { line.target() } else { offset };
        let stays = |fate| !matches!(fate, Fate::Dead | Fate::RecentlyDead);
        if is_root && !versions.fate(first).is_some_and(stays) {
            prune_chain(page, offset, options, &versions, &mut plan, &mut settled);
        }
    }
    tidy(page, &versions, &settled, &mut plan);
    Ok(plan)
}

/// Cuts the dead prefix off the chain that begins at `root`. `gone` collects the versions removed.
fn prune_chain(
    page: &[u8; PAGE_SIZE],
    root: u16,
    options: PruneOptions,
    versions: &Versions,
    plan: &mut PrunePlan,
    gone: &mut LineSet,
) {
    let mut chain = Chain::from_root(root);
    let mut prefix: SmallVec<[u16; 16]> = SmallVec::new();
    let mut dead = 0;
    let mut survivor = None;
    while let Some(member) = chain.next(page) {
        match versions.fate(member.offset) {
            Some(Fate::Dead) => {
                prefix.push(member.offset);
                dead = prefix.len();
                survivor = None;
            }
            Some(Fate::RecentlyDead) => {
                survivor = survivor.or(Some(member.offset));
                prefix.push(member.offset);
            }
            _ => {
                survivor = survivor.or(Some(member.offset));
                break;
            }
        }
    }
    if dead == 0 && survivor.is_some() {
        return;
    }
    for &offset in &prefix[..dead] {
        gone.insert(offset);
        if offset != root {
            plan.unused.push(offset);
        }
    }
    match survivor {
        Some(offset) => plan.redirects.push((root, offset)),
        None if options.has_indexes && !mutant!("heap-prune-frees-roots") => plan.dead.push(root),
        None => plan.unused.push(root),
    }
}

/// Frees heap-only versions that no chain reaches: aborted updates left them. Plans freezing and
/// clearing for the versions that stay, and the all-visible flag.
fn tidy(page: &[u8; PAGE_SIZE], versions: &Versions, gone: &LineSet, plan: &mut PrunePlan) {
    let mut all_visible = true;
    let mut hint = Xid::INVALID;
    for (offset, version) in (1..).zip(&versions.0) {
        let Some(Judged { header, verdict }) = version else { continue };
        if gone.contains(offset) {
            continue;
        }
        if verdict.fate == Fate::Dead && header.is_heap_only() {
            plan.unused.push(offset);
            continue;
        }
        if verdict.xmin_is_old
            && !header.flags.contains(TupleFlags::XMIN_FROZEN)
            && !mutant!("heap-left-unfrozen")
        {
            plan.freeze.push(offset);
        }
        if verdict.xmax_is_void {
            plan.forget.push(offset);
        }
        // The mark of an update that was rolled back stays while other transactions hold the row.
        let settled = verdict.xmax_is_void || header.has_no_xmax() || header.is_locked_only();
        let is_old = verdict.xmin_is_old || mutant!("heap-all-visible-too-soon");
        all_visible &= verdict.fate == Fate::Live && is_old && settled;
        if matches!(verdict.fate, Fate::Deleting | Fate::RecentlyDead | Fate::Dead)
            && (!hint.is_valid() || header.xmax < hint)
        {
            hint = header.xmax;
        }
    }
    plan.hint = hint;
    if all_visible != is_all_visible(page) {
        plan.all_visible = Some(all_visible);
    }
}

/// A plan that only frees dead line pointers: vacuum's third pass, once no index names them. Only
/// those in `named` are freed; others may have died since.
pub fn plan_free(page: &[u8; PAGE_SIZE], named: &LineSet) -> PrunePlan {
    let mut plan = PrunePlan { hint: page::prune_hint(page), ..PrunePlan::default() };
    for offset in named.iter() {
        if item::line(page, offset).state() == LineState::Dead {
            plan.unused.push(offset);
        }
    }
    plan
}
