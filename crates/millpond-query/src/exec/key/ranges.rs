//! The parts of an index that a plan reads, as bytes.

use std::mem;

use millpond_engine::catalog::{IndexDef, TableDef};
use millpond_engine::session::Session;
use millpond_engine::table::{Direction, KeyRange};
use millpond_types::key::{AFTER, NextColumn, first_bytes};

use super::read_ahead::ReadAhead;
use super::{Key, KeyVals, each_exact, each_value, end, exact};
use crate::Datum;
use crate::error::{Result, SqlError};
use crate::expr::{Env, Val, literal_prefix};
use crate::plan::{IndexRange, KeyBounds, KeyPart};

/// Memory above this is not kept between statements.
const BYTES_KEPT: usize = 64 << 10;

/// The ranges of keys that a plan asks for. They do not overlap, and come in the plan's order of
/// reading: the index's own, so that what is read has it, too.
#[derive(Debug, Default)]
pub(crate) struct KeyRanges {
    /// The keys of the ranges, where there are several.
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// How many of those were given out.
    given: usize,
    /// The range that was added last. If there is only one, it is only here.
    last: KeyRange,
    pending: Pending,
    read_ahead: ReadAhead,
}

/// What is in [`KeyRanges::last`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Pending {
    #[default]
    None,
    Range {
        is_key: bool,
    },
    /// It was given out.
    Given {
        is_key: bool,
    },
}

/// One or two conditions on the column behind the equal ones.
type Next<'a> = (NextColumn<'a>, Option<NextColumn<'a>>);

const ANY: Next<'static> = (NextColumn::Any, None);

/// Where the ends of a range are among the bytes. The two ends may share bytes.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// [`first_bytes`] of the lower end: most comparisons need no more.
    first: u64,
    lower: (usize, usize),
    upper: (usize, usize),
    /// It is a whole key of a unique index, and that is its lower end.
    is_key: bool,
}

impl KeyRanges {
    /// Evaluates what a plan asks for. Bounds that no key can meet give no range.
    pub(crate) fn fill(&mut self, plan: &IndexRange, env: &Env<'_>) -> Result<()> {
        self.bytes.clear();
        self.spans.clear();
        (self.given, self.pending) = (0, Pending::None);
        self.read_ahead.begin();
        for bounds in &plan.any_of {
            self.add(&plan.index, bounds, env)?;
        }
        if !self.spans.is_empty() {
            self.put_to_others();
            self.merge();
            if plan.direction == Direction::Backward {
                self.spans.reverse();
            }
        }
        Ok(())
    }

    /// Reads pages of the next rows ahead, if their keys are whole and pages of earlier rows were
    /// not in memory. To be called before each range, where the statement may wait. About `wanted`
    /// rows will be read.
    pub(crate) fn read_ahead(
        &mut self,
        session: &Session,
        (table, index): (&TableDef, &IndexDef),
        wanted: usize,
    ) {
        let Self { read_ahead, bytes, spans, given, .. } = self;
        let rest = spans.get(*given..).unwrap_or_default();
        if !rest.first().is_some_and(|span| span.is_key) {
            return;
        }
        let Some(most) = read_ahead.keys_now(*given, wanted, session) else { return };
        let keys = rest.iter().take(most).take_while(|span| span.is_key);
        let keys = keys.filter_map(|span| bytes.get(span.lower.0..span.lower.1));
        read_ahead.read((*given, keys), session, (table, index));
    }

    /// The next range; false when there is none.
    pub(crate) fn next(&mut self, into: &mut KeyRange) -> bool {
        if let Pending::Range { is_key } = self.pending {
            mem::swap(into, &mut self.last);
            self.pending = Pending::Given { is_key };
            return true;
        }
        let Some(span) = self.spans.get(self.given) else { return false };
        self.given += 1;
        for (key, place) in [(&mut into.lower, span.lower), (&mut into.upper, span.upper)] {
            key.clear();
            key.extend_from_slice(self.bytes.get(place.0..place.1).unwrap_or_default());
        }
        true
    }

    /// Whether the range given last is a whole key of a unique index, which is its lower end.
    pub(crate) fn is_key(&self) -> bool {
        if let Pending::Given { is_key } = self.pending {
            return is_key;
        }
        let last = self.given.checked_sub(1).and_then(|last| self.spans.get(last));
        last.is_some_and(|span| span.is_key)
    }

    /// Gives back memory that few statements need.
    pub(crate) fn trim(&mut self) {
        if self.bytes.capacity() + self.spans.capacity() * size_of::<Span>() > BYTES_KEPT {
            *self = KeyRanges::default();
        }
        self.read_ahead = ReadAhead::default();
    }

    fn add(&mut self, index: &IndexDef, bounds: &KeyBounds, env: &Env<'_>) -> Result<()> {
        let has_range = bounds.from.is_some() || bounds.to.is_some() || bounds.not_null;
        if !has_range && bounds.list.is_none() && bounds.like.is_none() {
            return self.add_equal(index, &bounds.equal, env);
        }
        let mut held = KeyVals::new();
        let Some(equal) = exact(&bounds.equal, env, &mut held)? else { return Ok(()) };
        let pattern = bounds.like.as_ref().map(|part| part.expr.eval(env)).transpose()?;
        let from_value = bounds.from.as_ref().map(|(part, _)| part.expr.eval(env)).transpose()?;
        let to_value = bounds.to.as_ref().map(|(part, _)| part.expr.eval(env)).transpose()?;
        let from = end(bounds.from.as_ref(), from_value.as_ref(), true, env);
        let to = end(bounds.to.as_ref(), to_value.as_ref(), false, env);
        let (Some(from), Some(to)) = (from, to) else { return Ok(()) };
        let range = has_range.then_some(NextColumn::Value { from, to });
        let begins = match pattern.as_ref().map(Val::datum) {
            None => None,
            Some(Datum::Text(pattern)) => Some(match literal_prefix(pattern) {
                "" => NextColumn::Value { from: None, to: None },
                prefix => NextColumn::Prefix(prefix),
            }),
            Some(_) => return Ok(()),
        };
        let next = match (range, begins) {
            (Some(range), begins) => (range, begins),
            (None, Some(begins)) => (begins, None),
            (None, None) => ANY,
        };
        let Some(list) = &bounds.list else { return self.push(index, &equal, next) };
        let mut held = KeyVals::new();
        let Some(then) = exact(&bounds.then, env, &mut held)? else { return Ok(()) };
        let is_whole = !has_range && pattern.is_none();
        each_value(list, env, &mut |value| match is_whole {
            true => self.push_whole(index, &equal, value, &then),
            false => {
                let key = equal.iter().copied().chain([value]).chain(then.iter().copied());
                self.push(index, &key.collect::<Key<'_>>(), next)
            }
        })
    }

    /// Adds the range of keys that begin with these values. Encodes them where they stay, because a
    /// list may be long.
    fn push_whole(
        &mut self,
        index: &IndexDef,
        equal: &[Datum<'_>],
        value: Datum<'_>,
        then: &[Datum<'_>],
    ) -> Result<()> {
        let start = self.bytes.len();
        let mut has_null = false;
        for (column, value) in equal.iter().chain([&value]).chain(then).enumerate() {
            has_null |= value.is_null();
            let encoded = index.keys.encode_column(column, value, &mut self.bytes);
            encoded.map_err(|error| SqlError::internal(error.to_string()))?;
        }
        let end = self.bytes.len();
        self.bytes.push(AFTER);
        let is_whole = index.unique && equal.len() + 1 + then.len() == index.columns.len();
        let first = first_bytes(self.bytes.get(start..end).unwrap_or_default());
        let (lower, upper) = ((start, end), (start, end + 1));
        self.spans.push(Span { first, lower, upper, is_key: is_whole && !has_null });
        Ok(())
    }

    /// Adds the keys that begin with these values. Most ranges of a nested loop are of this kind,
    /// so each value is encoded as soon as it is known.
    fn add_equal(&mut self, index: &IndexDef, parts: &[KeyPart], env: &Env<'_>) -> Result<()> {
        self.put_to_others();
        let KeyRange { lower, upper } = &mut self.last;
        lower.clear();
        let mut has_null = false;
        let is_possible = each_exact(parts, env, |column, value| {
            has_null |= value.is_null();
            let encoded = index.keys.encode_column(column, &value, lower);
            encoded.map_err(|error| SqlError::internal(error.to_string()))
        })?;
        if is_possible {
            upper.clear();
            upper.extend_from_slice(lower);
            upper.push(AFTER);
            let is_key = index.unique && parts.len() == index.columns.len() && !has_null;
            self.pending = Pending::Range { is_key };
        }
        Ok(())
    }

    /// Adds the keys with these values whose next column meets both conditions of `next`.
    fn push(&mut self, index: &IndexDef, equal: &[Datum<'_>], next: Next<'_>) -> Result<()> {
        self.put_to_others();
        let range = |next, into: &mut KeyRange| {
            let made = index.keys.range(equal, next, &mut into.lower, &mut into.upper);
            made.map_err(|error| SqlError::internal(error.to_string()))
        };
        range(next.0, &mut self.last)?;
        if let Some(also) = next.1 {
            let mut other = KeyRange::default();
            range(also, &mut other)?;
            if other.lower > self.last.lower {
                self.last.lower = other.lower;
            }
            if other.upper < self.last.upper {
                self.last.upper = other.upper;
            }
        }
        let KeyRange { lower, upper } = &self.last;
        if lower < upper {
            let is_whole = index.unique && equal.len() == index.columns.len();
            let is_key = is_whole && !equal.iter().any(Datum::is_null);
            self.pending = Pending::Range { is_key };
        }
        Ok(())
    }

    /// Puts the range that was added last to the others.
    fn put_to_others(&mut self) {
        let Pending::Range { is_key } = mem::take(&mut self.pending) else { return };
        let mut append = |key: &[u8]| {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(key);
            (start, self.bytes.len())
        };
        let (lower, upper) = (append(&self.last.lower), append(&self.last.upper));
        let first = first_bytes(&self.last.lower);
        self.spans.push(Span { first, lower, upper, is_key });
    }

    /// Sorts the ranges and joins those that overlap.
    fn merge(&mut self) {
        let bytes = &self.bytes;
        let key = |place: (usize, usize)| bytes.get(place.0..place.1).unwrap_or_default();
        self.spans.sort_unstable_by(|a, b| {
            a.first.cmp(&b.first).then_with(|| key(a.lower).cmp(key(b.lower)))
        });
        self.spans.dedup_by(|next, kept| {
            let joins = key(next.lower) <= key(kept.upper);
            if joins && key(next.upper) > key(kept.upper) {
                kept.upper = next.upper;
                kept.is_key = false;
            }
            kept.is_key &= next.is_key || !joins;
            joins
        });
    }
}
