//! Sample Scan: some rows of a table.
//!
//! A hash of a row's place and of a seed decides whether the row is in the sample: of its page and
//! its line pointer for BERNOULLI, of its page for SYSTEM. The hash and the seed are PostgreSQL's,
//! so that with REPEATABLE rows in the same places give the same sample.

use millpond_engine::access::Tid;
use millpond_engine::session::HeapScan;

use super::Context;
use super::place_hash::{hash_of_float, hash_of_words};
use crate::Datum;
use crate::convert::would_block;
use crate::error::{Result, SqlError, SqlState};
use crate::exec::MAX_BLOCKS_UNWAITING;
use crate::plan::query::node::Sample;

#[derive(Default)]
pub(super) struct SampleState {
    /// Without REPEATABLE the seed is chosen once for all scans.
    chosen: Option<u32>,
    scan: Option<Running>,
}

/// A scan that has begun.
struct Running {
    heap: HeapScan,
    /// The next row of the page.
    next: usize,
    seed: u32,
    /// Hashes below this are in the sample.
    end: u64,
}

impl SampleState {
    pub(super) fn rescan(&mut self) {
        self.scan = None;
    }

    pub(super) fn next(&mut self, sample: &Sample, cx: &mut Context<'_>) -> Result<bool> {
        let mut running = match self.scan.take() {
            Some(running) => running,
            None => self.start(sample, cx)?,
        };
        let found = running.next(sample, cx);
        self.scan = Some(running);
        found
    }

    fn start(&mut self, sample: &Sample, cx: &Context<'_>) -> Result<Running> {
        let session = cx.work().session()?;
        if !cx.work().may_wait && session.block_count(&sample.table)? > MAX_BLOCKS_UNWAITING {
            return Err(would_block());
        }
        let env = cx.env();
        let percent = match sample.percent.eval(&env)?.datum() {
            Datum::Float4(percent) => f64::from(percent),
            _ => return Err(argument("TABLESAMPLE parameter cannot be null")),
        };
        if !(0.0..=100.0).contains(&percent) {
            return Err(argument("sample percentage must be between 0 and 100"));
        }
        let seed = match &sample.seed {
            Some(seed) => match seed.eval(&env)?.datum() {
                Datum::Float8(seed) => hash_of_float(seed),
                _ => {
                    let what = "TABLESAMPLE REPEATABLE parameter cannot be null";
                    return Err(SqlError::new(SqlState::INVALID_TABLESAMPLE_REPEAT, what));
                }
            },
            None => *self.chosen.get_or_insert_with(rand::random),
        };
        let all = (u64::from(u32::MAX) + 1) as f64;
        let end = (all * percent / 100.0).round_ties_even() as u64;
        Ok(Running { heap: session.heap_scan(&sample.table)?, next: 0, seed, end })
    }
}

impl Running {
    fn next(&mut self, sample: &Sample, cx: &mut Context<'_>) -> Result<bool> {
        loop {
            let Some((tid, bytes)) = self.heap.row(self.next) else {
                cx.work().tick()?;
                if self.heap.advance_page(cx.work().session()?)? {
                    self.next = 0;
                    continue;
                }
                return Ok(false);
            };
            self.next += 1;
            if self.has(tid, sample.is_system) {
                cx.stored_mut(sample.slot)?.set(tid, bytes);
                cx.work().count_row()?;
                return Ok(true);
            }
        }
    }

    fn has(&self, tid: Tid, is_system: bool) -> bool {
        let block = tid.block.0;
        let hash = match is_system {
            true => hash_of_words(&[block, self.seed]),
            false => hash_of_words(&[block, u32::from(tid.offset), self.seed]),
        };
        u64::from(hash) < self.end
    }
}

fn argument(what: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_TABLESAMPLE_ARGUMENT, what)
}
