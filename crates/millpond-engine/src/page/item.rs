//! Pages of items behind line pointers.
//!
//! docs/file-format.md ("Pages of items") gives the bytes of the page and of line pointers.
//!
//! Invariants: 32 <= lower <= upper <= 8192; lower is 32 plus a multiple of 4; items do not
//! overlap; the last line pointer is not unused. The free space is one hole: whatever frees an item
//! also compacts the page.

use std::ops::Range;

use millpond_buffer::{PAGE_SIZE, PageRead};
use millpond_sync::mutant;
use smallvec::SmallVec;

use super::{FLAGS, KIND, PageError, PageKind, PageMut};

/// Offset of the end of the line pointer array.
pub const LOWER: usize = 16;
/// Offset of the start of the items.
pub const UPPER: usize = 18;
/// Offset of the word that belongs to the page's kind.
pub const KIND_WORD: usize = 24;
/// Where line pointers begin.
pub const LINES: usize = 32;
/// Bytes of a line pointer.
pub const LINE_LEN: usize = 4;
/// The most line pointers that a page can have. A set of them fits four words.
pub const MAX_LINES: u16 = 256;
/// The longest item that fits an empty page.
pub const MAX_ITEM_LEN: usize = PAGE_SIZE - LINES - 2 * LINE_LEN;

/// The page has line pointers that are unused: look for one before adding another.
pub const FLAG_HAS_UNUSED: u16 = 1 << 0;

/// The state of a line pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineState {
    /// Free for use.
    Unused,
    /// Names an item.
    Normal,
    /// Names another line pointer.
    Redirect,
    /// Names nothing, but something outside may name it.
    Dead,
}

/// A line pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Line(pub u32);

impl Line {
    /// A free line pointer.
    pub const UNUSED: Self = Self(0);
    /// A dead line pointer.
    pub const DEAD: Self = Self(3 << 15);

    /// Names the item of `len` bytes at `at`.
    #[inline]
    pub const fn normal(at: u16, len: u16) -> Self {
        Self((at as u32 & 0x7fff) | 1 << 15 | (len as u32 & 0x7fff) << 17)
    }

    /// Names line pointer `offset`.
    #[inline]
    pub const fn redirect(offset: u16) -> Self {
        Self((offset as u32 & 0x7fff) | 2 << 15)
    }

    /// The state.
    #[inline]
    pub const fn state(self) -> LineState {
        match self.0 >> 15 & 3 {
            0 => LineState::Unused,
            1 => LineState::Normal,
            2 => LineState::Redirect,
            _ => LineState::Dead,
        }
    }

    /// Whether an item is named.
    #[inline]
    pub const fn is_normal(self) -> bool {
        self.0 >> 15 & 3 == 1
    }

    /// Where the item starts, or the line pointer that a redirect names.
    #[inline]
    pub const fn target(self) -> u16 {
        (self.0 & 0x7fff) as u16
    }

    /// The item's length.
    #[inline]
    pub const fn len(self) -> u16 {
        (self.0 >> 17) as u16
    }

    /// Whether the item has no bytes.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The item's bytes, when an item is named and lies within the page.
    #[inline]
    pub fn item(self) -> Option<Range<usize>> {
        let (start, end) = (self.target() as usize, self.target() as usize + self.len() as usize);
        let is_within = end <= PAGE_SIZE || mutant!("heap-item-beyond-page");
        (self.is_normal() && start >= LINES && is_within).then_some(start..end)
    }
}

/// Rounds up to a multiple of eight.
#[inline]
pub const fn align8(len: usize) -> usize {
    (len + 7) & !7
}

/// How many line pointers the page has; at most [`MAX_LINES`], whatever the bytes.
#[inline]
pub fn line_count<P: PageRead + ?Sized>(page: &P) -> u16 {
    let lower = page.u16(LOWER) as usize;
    ((lower.saturating_sub(LINES) / LINE_LEN) as u16).min(MAX_LINES)
}

/// The offset of line pointer `offset` (from one).
#[inline]
pub const fn line_at(offset: u16) -> usize {
    LINES + (offset as usize).wrapping_sub(1).wrapping_mul(LINE_LEN)
}

/// Line pointer `offset` (from one); unused if the page has no such line pointer.
#[inline]
pub fn line<P: PageRead + ?Sized>(page: &P, offset: u16) -> Line {
    if offset == 0 || offset > line_count(page) {
        return Line::UNUSED;
    }
    Line(page.u32(line_at(offset)))
}

/// All line pointers of a page, with their numbers from one.
#[inline]
pub fn lines(page: &[u8; PAGE_SIZE]) -> impl Iterator<Item = (u16, Line)> + '_ {
    let bytes = page.get(LINES..LINES + line_count(page) as usize * LINE_LEN).unwrap_or_default();
    let (lines, _) = bytes.as_chunks::<LINE_LEN>();
    (1..).zip(lines.iter().map(|line| Line(u32::from_le_bytes(*line))))
}

/// The number of line pointers that name an item of at least `len` bytes. All line pointers are
/// copied first, so that counting needs no bounds check for each.
#[inline]
pub fn count_items<P: PageRead + ?Sized>(page: &P, len: usize) -> u16 {
    let mut bytes = [0; MAX_LINES as usize * LINE_LEN];
    let bytes = &mut bytes[..line_count(page) as usize * LINE_LEN];
    page.copy(LINES, bytes);
    let (lines, _) = bytes.as_chunks::<LINE_LEN>();
    let is_item = |line: &[u8; LINE_LEN]| {
        let line = Line(u32::from_le_bytes(*line));
        line.len() as usize >= len && line.item().is_some()
    };
    lines.iter().map(|line| u16::from(is_item(line))).sum()
}

/// Overwrites line pointer `offset`.
#[inline]
pub fn set_line<P: PageMut + ?Sized>(page: &mut P, offset: u16, line: Line) {
    page.put_u32(line_at(offset), line.0);
}

/// The bytes between the line pointers and the items.
#[inline]
pub fn hole<P: PageRead + ?Sized>(page: &P) -> usize {
    (page.u16(UPPER) as usize).saturating_sub(page.u16(LOWER) as usize)
}

/// The longest item that fits this page, after room for its line pointer is set aside. Zero if the
/// page already has the maximum number of line pointers.
pub fn free_for_item<P: PageRead + ?Sized>(page: &P) -> usize {
    if line_count(page) >= MAX_LINES && page.u16(FLAGS) & FLAG_HAS_UNUSED == 0 {
        return 0;
    }
    hole(page).saturating_sub(LINE_LEN) & !7
}

/// Makes the page an empty page of `kind`.
pub fn init<P: PageMut + ?Sized>(page: &mut P, kind: PageKind) {
    page.put_u16(KIND, kind as u16);
    page.put_u16(FLAGS, 0);
    page.put_u16(LOWER, LINES as u16);
    page.put_u16(UPPER, PAGE_SIZE as u16);
    page.put_u32(20, 0);
    page.put_u64(KIND_WORD, 0);
}

/// Checks the bounds.
pub fn check_bounds<P: PageRead + ?Sized>(page: &P) -> Result<(), PageError> {
    let (lower, upper) = (page.u16(LOWER), page.u16(UPPER));
    let good = (LINES..=LINES + MAX_LINES as usize * LINE_LEN).contains(&(lower as usize))
        && (lower as usize - LINES).is_multiple_of(LINE_LEN)
        && lower <= upper
        && upper as usize <= PAGE_SIZE
        && upper.is_multiple_of(8);
    if good { Ok(()) } else { Err(PageError::Bounds { lower, upper }) }
}

/// The line pointer that an item of `len` bytes would get if at least `reserve` bytes stay free;
/// `None` if there is no room. Unused line pointers are taken first.
pub fn slot_for<P: PageRead + ?Sized>(page: &P, len: usize, reserve: usize) -> Option<u16> {
    let count = line_count(page);
    let unused = if page.u16(FLAGS) & FLAG_HAS_UNUSED != 0 {
        (1..=count).find(|&offset| line(page, offset).state() == LineState::Unused)
    } else {
        None
    };
    let (offset, line_bytes) = match unused {
        Some(offset) => (offset, 0),
        None if count < MAX_LINES => (count + 1, LINE_LEN),
        None => return None,
    };
    (align8(len) + line_bytes + reserve <= hole(page)).then_some(offset)
}

/// Makes room for an item of `len` bytes under line pointer `offset` and returns where its bytes
/// go. The line pointer must be unused or the next new one.
pub fn place<P: PageMut + ?Sized>(
    page: &mut P,
    offset: u16,
    len: usize,
) -> Result<usize, PageError> {
    check_bounds(page)?;
    let count = line_count(page);
    let bad = |what| Err(PageError::Line { offset, what });
    let added = if offset == 0 || offset > MAX_LINES {
        return bad("no such line pointer");
    } else if offset == count + 1 {
        LINE_LEN
    } else if offset > count {
        return bad("beyond the next new line pointer");
    } else if line(page, offset).state() != LineState::Unused {
        return bad("already used");
    } else {
        0
    };
    if align8(len) + added > hole(page) || len > MAX_ITEM_LEN {
        return Err(PageError::Full { bytes: len, free: hole(page) });
    }
    let at = page.u16(UPPER) as usize - align8(len);
    page.put_u16(UPPER, at as u16);
    if added > 0 {
        page.put_u16(LOWER, (line_at(offset) + LINE_LEN) as u16);
    }
    set_line(page, offset, Line::normal(at as u16, len as u16));
    Ok(at)
}

/// A set of line pointers of one page.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LineSet([u64; MAX_LINES as usize / 64]);

impl LineSet {
    /// Adds line pointer `offset` (from one).
    #[inline]
    pub fn insert(&mut self, offset: u16) {
        let bit = offset.wrapping_sub(1) as usize;
        if let Some(word) = self.0.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Whether line pointer `offset` is in the set.
    #[inline]
    pub fn contains(&self, offset: u16) -> bool {
        let bit = offset.wrapping_sub(1) as usize;
        self.0.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 != 0)
    }

    /// How many are in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (1..=MAX_LINES).filter(|&offset| self.contains(offset))
    }
}

/// Closes the gaps between items, drops unused line pointers at the end, and sets
/// [`FLAG_HAS_UNUSED`] accordingly. Bytes that become free are zeroed, which keeps page images in
/// the log small. The result depends on the page alone, so recovery gets the same bytes.
///
/// It works on a copy, and writes what has changed in two pieces: a frame takes a long write much
/// faster than many short ones.
pub fn compact<P: PageMut + ?Sized>(page: &mut P) -> Result<(), PageError> {
    check_bounds(page)?;
    let mut old = [0; PAGE_SIZE];
    page.copy(0, &mut old);
    let (old_lower, old_upper) = (old.u16(LOWER) as usize, old.u16(UPPER) as usize);
    let Contents { mut items, count, has_unused } = contents(&old)?;
    let lower = LINES + count as usize * LINE_LEN;
    let flags = old.u16(FLAGS) & !FLAG_HAS_UNUSED;

    // Items are sorted from the page's end downwards. Those already in place are not touched.
    items.sort_unstable_by(|a, b| b.cmp(a));
    let settled = settle(&items);
    let (top, mut upper) = (settled.end, settled.end);
    if top < old_lower {
        return Err(PageError::Bounds { lower: old_lower as u16, upper: top as u16 });
    }
    if top != old_upper || old_lower != lower {
        let mut new = [0; PAGE_SIZE];
        new[LINES..old_lower].copy_from_slice(&old[LINES..old_lower]);
        for &(at, len, offset) in &items[settled.count..] {
            upper = upper
                .checked_sub(align8(len as usize))
                .filter(|&at| at >= old_lower)
                .ok_or(PageError::Line { offset, what: "items overlap" })?;
            let (at, len_bytes) = (at as usize, len as usize);
            new[upper..upper + len_bytes].copy_from_slice(&old[at..at + len_bytes]);
            set_line(&mut new, offset, Line::normal(upper as u16, len));
        }
        page.write(LINES, &new[LINES..top]);
    }
    if upper < lower {
        return Err(PageError::Bounds { lower: lower as u16, upper: upper as u16 });
    }
    let mut fields = [0; UPPER + 2 - FLAGS];
    let flags = if has_unused { flags | FLAG_HAS_UNUSED } else { flags };
    for (field, value) in
        fields.as_chunks_mut().0.iter_mut().zip([flags, lower as u16, upper as u16])
    {
        *field = u16::to_le_bytes(value);
    }
    page.write(FLAGS, &fields);
    Ok(())
}

/// What a page holds.
struct Contents {
    /// Where each item begins, its length, and the offset of its line pointer.
    items: SmallVec<[(u16, u16, u16); 128]>,
    /// How many line pointers there are up to the last one in use.
    count: u16,
    /// Whether one of these is unused.
    has_unused: bool,
}

#[inline]
fn contents(page: &[u8; PAGE_SIZE]) -> Result<Contents, PageError> {
    let mut items = SmallVec::new();
    let mut count = 0;
    let mut unused = 0;
    for (offset, line) in lines(page) {
        match line.state() {
            LineState::Normal => {
                let Some(range) = line.item() else {
                    return Err(PageError::Line { offset, what: "item lies outside the page" });
                };
                items.push((range.start as u16, line.len(), offset));
            }
            LineState::Unused => {
                unused += 1;
                continue;
            }
            LineState::Redirect | LineState::Dead => {}
        }
        count = offset;
    }
    Ok(Contents { items, count, has_unused: unused > line_count(page) - count })
}

/// How many items lie without a gap, counted from the page's end downwards, and where they end.
struct Settled {
    count: usize,
    end: usize,
}

fn settle(items: &[(u16, u16, u16)]) -> Settled {
    let mut end = PAGE_SIZE;
    for (count, &(at, len, _)) in items.iter().enumerate() {
        if at as usize + align8(len as usize) != end {
            return Settled { count, end };
        }
        end = at as usize;
    }
    Settled { count: items.len(), end }
}

#[cfg(test)]
mod tests;
