//! Sorting in parts: threads sort the rows that they read, and the session merges them.
//!
//! A thread gives its rows at the end of each chunk of the table, or when they take much memory:
//! each time a run, sorted. The session takes the runs in the order of the table. So rows whose
//! keys are equal stay in that order, and all is as if one thread had sorted.
//!
//! Where only the first rows are wanted, a thread gives no more of them at a time, and leaves out
//! rows that are not before the last one of these. It reads chunks in the order of the table, so
//! the rows that it has given come first where keys are equal.
//!
//! ```text
//! a row: the length of its key (4 bytes), the key, the row as `kept` has it
//! ```

use std::sync::Arc;

use millpond_sync::mutant;

use super::top::Top;
use super::{Keys, Rows, SortState, push_keys};
use crate::error::Result;
use crate::expr::{Env, Expr};
use crate::memory::{Collected, Resources, Sorter, appending, row_bytes};
use crate::plan::SortKey;
use crate::plan::query::node::Node;
use crate::run::Context;
use crate::run::gather::{Fragment, can_settle, settled, workers_for};

/// How much memory a thread's rows may take, and one row more. That is not counted.
const MOST_BYTES: usize = if cfg!(test) { 2 << 10 } else { 256 << 10 };

/// What all threads do with each row.
pub(in crate::run) struct PartialSort {
    keys: Vec<SortKey>,
    /// How many rows are wanted; `None`: all.
    wanted: Option<usize>,
}

impl PartialSort {
    /// A sort, with expressions for threads.
    fn of(
        keys: &[SortKey],
        wanted: Option<usize>,
        settled: &dyn Fn(&Expr) -> Result<Expr>,
    ) -> Result<Self> {
        let of_key = |key: &SortKey| Ok(SortKey { expr: settled(&key.expr)?, ..*key });
        Ok(Self { keys: keys.iter().map(of_key).collect::<Result<_>>()?, wanted })
    }
}

/// The rows of a chunk, on one thread.
#[derive(Default)]
pub(in crate::run) struct SortedPart {
    rows: Collected,
    key: Vec<u8>,
    /// The key of the last row that may be wanted.
    last: Option<Vec<u8>>,
}

impl SortedPart {
    /// Forgets the rows.
    pub(in crate::run) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Takes the row of `env` in. True if the rows are to be given now.
    pub(in crate::run) fn add(
        &mut self,
        sort: &PartialSort,
        env: &Env<'_>,
        write_row: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<bool> {
        self.key.clear();
        if !push_keys(&sort.keys, env, self.last.as_deref(), &mut self.key)? {
            return Ok(false);
        }
        self.rows.push_with(appending(&self.key), write_row)?;
        Ok(self.rows.sizes().0 > MOST_BYTES)
    }

    /// Gives the rows in order, and forgets them. `each` gets a function that writes a row.
    pub(in crate::run) fn give(
        &mut self,
        sort: &PartialSort,
        look: &dyn Fn() -> Result<()>,
        mut each: impl FnMut(&dyn Fn(&mut Vec<u8>)),
    ) -> Result<()> {
        if !mutant!("sort-part-is-not-sorted") {
            self.rows.sort(look)?;
        }
        let wanted = sort.wanted.unwrap_or(usize::MAX);
        for (key, row) in self.rows.keys().zip(self.rows.rows()).take(wanted) {
            each(&|out| push_keyed(key, row, out));
        }
        if self.rows.len() >= wanted {
            let place = if mutant!("sort-part-last-is-first") { 0 } else { wanted - 1 };
            self.last = self.rows.keys().nth(place).map(<[u8]>::to_vec);
        }
        self.rows.clear();
        Ok(())
    }
}

/// Appends a row for the session.
fn push_keyed(key: &[u8], row: &[u8], out: &mut Vec<u8>) {
    // `Collected` refuses keys that are longer.
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(row);
}

fn keyed(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let parts = bytes
        .split_first_chunk()
        .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize));
    parts.ok_or_else(row_bytes::damaged)
}

/// The session's part: it merges runs, which it takes in the order of the table.
enum Merging {
    /// Only the first rows are wanted.
    Top(Top),
    All(Box<Sorter>),
}

impl Merging {
    fn new(wanted: Option<usize>, resources: &Arc<Resources>) -> Self {
        match wanted {
            Some(wanted) => Self::Top(Top::new(wanted, &resources.memory)),
            None => Self::All(Box::new(Sorter::new(resources))),
        }
    }

    fn add(&mut self, bytes: &[u8], look: &dyn Fn() -> Result<()>) -> Result<()> {
        let (key, row) = keyed(bytes)?;
        match self {
            Self::Top(top) if top.last().is_none_or(|last| key < last) => {
                top.insert(key, appending(row))
            }
            Self::Top(_) => Ok(()),
            Self::All(sorter) => sorter.push(key, row, look),
        }
    }

    fn finish(self, look: &dyn Fn() -> Result<()>) -> Result<Rows> {
        Ok(match self {
            Self::Top(top) => Rows::Top { top, given: 0 },
            Self::All(sorter) => Rows::Sorted(Box::new(sorter.finish(look)?)),
        })
    }
}

impl SortState {
    /// Sorts what threads have sorted. `wanted`: no more rows are wanted, and they are few. `None`
    /// if threads are not worth it.
    pub(super) fn parts(
        &mut self,
        input: &Node,
        keys: Keys<'_>,
        wanted: Option<usize>,
        cx: &mut Context<'_>,
    ) -> Result<Option<Rows>> {
        let Some(mut fragment) = self.begin_parts(input, keys.all, wanted, cx)? else {
            return Ok(None);
        };
        self.batch.is_last = true;
        self.slots = fragment.output().to_vec();
        let look = || cx.work().tick();
        let mut merging = Merging::new(wanted, cx.work().resources);
        while fragment.advance(cx)? {
            merging.add(fragment.bytes(), &look)?;
        }
        drop(fragment);
        merging.finish(&look).map(Some)
    }

    fn begin_parts(
        &mut self,
        input: &Node,
        keys: &[SortKey],
        wanted: Option<usize>,
        cx: &mut Context<'_>,
    ) -> Result<Option<Box<Fragment>>> {
        if workers_for(input, cx.work())? == 0
            || !can_settle(keys.iter().map(|key| &key.expr), &[input], cx)?
        {
            return Ok(None);
        }
        let Some(mut begun) = self.input.begin_fragment(input, cx)? else { return Ok(None) };
        begun.sort(PartialSort::of(keys, wanted, &|expr| settled(expr, cx))?);
        begun.start(cx).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Datum;
    use crate::expr::Row;
    use crate::expr::tests::with_params;
    use crate::memory::tuplestore_tests::resources;

    /// Rows of two numbers, sorted by the first one as threads and the session do it. Threads take
    /// turns with chunks of this size.
    fn sorted(
        rows: &[(i32, i32)],
        chunk: usize,
        threads: usize,
        wanted: Option<usize>,
    ) -> Vec<(i32, i32)> {
        let key = SortKey { expr: Expr::Column(0), descending: true, nulls_first: false };
        let sort = PartialSort::of(&[key], wanted, &|expr| Ok(expr.clone())).unwrap();
        let mut parts: Vec<SortedPart> = (0..threads).map(|_| SortedPart::default()).collect();
        let resources = resources(64 << 20);
        let mut merging = Merging::new(wanted, &resources);
        let mut give = |part: &mut SortedPart| {
            let mut run = Vec::new();
            let each = |write: &dyn Fn(&mut Vec<u8>)| {
                run.push(Vec::new());
                write(run.last_mut().unwrap());
            };
            part.give(&sort, &|| Ok(()), each).unwrap();
            run.iter().for_each(|row| merging.add(row, &|| Ok(())).unwrap());
        };
        for (number, rows) in rows.chunks(chunk).enumerate() {
            let part = &mut parts[number % threads];
            part.clear();
            for (first, second) in rows {
                let row = [Datum::Int4(*first), Datum::Int4(*second)];
                let is_enough = with_params(&[], |env| {
                    let env = env.with_row(Row::Datums(&row));
                    part.add(&sort, &env, |out| row_bytes::push(&row, out)).unwrap()
                });
                if is_enough {
                    give(part);
                }
            }
            give(part);
        }
        let numbers = |row: &[u8]| match row_bytes::read(row).unwrap().as_slice() {
            [Datum::Int4(first), Datum::Int4(second)] => (*first, *second),
            other => panic!("{other:?}"),
        };
        match merging.finish(&|| Ok(())).unwrap() {
            Rows::Top { top, .. } => (0..).map_while(|at| top.row(at).map(numbers)).collect(),
            Rows::Sorted(mut sorted) => {
                let mut found = Vec::new();
                while let Some(row) = sorted.next().unwrap() {
                    found.push(numbers(row));
                }
                found
            }
            _ => panic!("no rows"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn rows_come_as_from_one_thread(
            firsts in prop::collection::vec(-3..40i32, 0..400),
            chunk in 1..60usize,
            threads in 1..4usize,
            wanted in prop::option::of(1..50usize),
        ) {
            let rows: Vec<(i32, i32)> = firsts.into_iter().zip(0..).collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|(first, _)| std::cmp::Reverse(*first));
            expected.truncate(wanted.unwrap_or(usize::MAX));
            prop_assert_eq!(sorted(&rows, chunk, threads, wanted), expected);
        }
    }
}
