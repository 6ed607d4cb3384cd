//! Sort, and the first rows of an order (Top-N).
//!
//! What is in the slots of the input is kept beside the keys and put back. A sort that may need
//! much memory spills: see [`Sorter`].

use super::state::State;
use super::{Context, kept, parts};
use crate::Value;
use crate::analyze::tree::Slot;
use crate::error::{Result, SqlError};
use crate::exec::row_count;
use crate::memory::{Held, KeyOrder, Sorted, Sorter, bytes_of, compare_keys};
use crate::plan::SortKey;
use crate::plan::query::node::{Bound, Node};

/// So many first rows are kept in order while rows come. If more are wanted all rows are sorted.
const MAX_TOP: u64 = 1024;

pub(super) struct SortState {
    input: State,
    slots: Vec<Slot>,
    order: Vec<KeyOrder>,
    rows: Rows,
    /// A row in the making.
    bytes: Vec<u8>,
}

enum Rows {
    /// The input has not been read.
    Unread,
    Top {
        rows: Vec<(Vec<Value>, Vec<u8>)>,
        given: usize,
        _held: Held,
    },
    Sorted(Box<Sorted>),
    End,
}

impl SortState {
    pub(super) fn new(input: &Node, keys: &[SortKey], cx: &Context<'_>) -> Result<Self> {
        Ok(Self {
            input: State::new(input, cx)?,
            slots: parts::output(input),
            order: keys.iter().map(SortKey::order).collect(),
            rows: Rows::Unread,
            bytes: Vec::new(),
        })
    }

    pub(super) fn rescan(&mut self) {
        self.input.rescan();
        self.rows = Rows::Unread;
    }

    pub(super) fn next(
        &mut self,
        input: &Node,
        keys: &[SortKey],
        bound: Option<&Bound>,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        if let Rows::Unread = self.rows {
            self.rows = match bound.map(|bound| rows_wanted(bound, cx)).transpose()?.flatten() {
                Some(0) => Rows::End,
                Some(wanted) if wanted <= MAX_TOP => self.top(input, keys, wanted as usize, cx)?,
                _ => self.sort(input, keys, cx)?,
            };
        }
        match &mut self.rows {
            Rows::Top { rows, given, .. } => {
                let Some((_, row)) = rows.get(*given) else { return Ok(false) };
                *given += 1;
                kept::load(row, &self.slots, &mut cx.rows)?;
                Ok(true)
            }
            Rows::Sorted(sorted) => match sorted.next()?.as_deref() {
                Some([Value::Bytea(row)]) => {
                    kept::load(row, &self.slots, &mut cx.rows)?;
                    cx.work().tick()?;
                    Ok(true)
                }
                Some(_) => Err(SqlError::internal("a sorted row of another kind")),
                None => {
                    self.rows = Rows::End;
                    Ok(false)
                }
            },
            Rows::Unread | Rows::End => Ok(false),
        }
    }

    fn sort(&mut self, input: &Node, keys: &[SortKey], cx: &mut Context<'_>) -> Result<Rows> {
        let mut sorter = Sorter::new(cx.work().resources, self.order.iter().copied());
        while self.input.next(input, cx)? {
            cx.work().tick()?;
            let mut values = Vec::with_capacity(keys.len());
            cx.values(keys.iter().map(|key| &key.expr), &mut values)?;
            let mut row = Vec::new();
            kept::save(&cx.rows, &self.slots, &mut row)?;
            sorter.push(values, vec![Value::Bytea(row)])?;
        }
        Ok(Rows::Sorted(Box::new(sorter.finish()?)))
    }

    /// Keeps the first `wanted` rows in order.
    fn top(
        &mut self,
        input: &Node,
        keys: &[SortKey],
        wanted: usize,
        cx: &mut Context<'_>,
    ) -> Result<Rows> {
        let mut held = Held::new(&cx.work().resources.memory, "Sort");
        let mut top: Vec<(Vec<Value>, Vec<u8>)> = Vec::new();
        let (mut values, mut used) = (Vec::new(), 0);
        while self.input.next(input, cx)? {
            cx.work().tick()?;
            values.clear();
            cx.values(keys.iter().map(|key| &key.expr), &mut values)?;
            // A row behind all its equals: the first to come stays.
            let order = &self.order;
            let place =
                top.partition_point(|(before, _)| compare_keys(order, before, &values).is_le());
            if place == wanted {
                continue;
            }
            self.bytes.clear();
            kept::save(&cx.rows, &self.slots, &mut self.bytes)?;
            if top.len() == wanted
                && let Some((keys, row)) = top.pop()
            {
                used -= bytes_of(&keys) + row.len();
            }
            used += bytes_of(&values) + self.bytes.len();
            held.resize(used)?;
            top.insert(place, (std::mem::take(&mut values), self.bytes.clone()));
        }
        Ok(Rows::Top { rows: top, given: 0, _held: held })
    }
}

/// How many rows are wanted; `None` if all are.
fn rows_wanted(bound: &Bound, cx: &Context<'_>) -> Result<Option<u64>> {
    let env = cx.env();
    let offset = row_count(bound.offset.as_ref(), &env, true)?.unwrap_or(0);
    let limit = row_count(Some(&bound.limit), &env, false)?;
    Ok(limit.and_then(|limit| limit.checked_add(offset)))
}
