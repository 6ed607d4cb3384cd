//! Unique, and its hashed form: rows that are equal to one before are left out.

use super::key_table::KeyTable;
use super::state::State;
use super::{Context, datum_key};
use crate::error::Result;
use crate::expr::Expr;
use crate::memory::Held;
use crate::plan::query::node::Node;

pub(super) struct DistinctState {
    input: State,
    /// Keys of all rows, where rows are not sorted.
    seen: KeyTable,
    held: Held,
    /// The key of the row before, where they are.
    last: Option<Vec<u8>>,
    key: Vec<u8>,
}

impl DistinctState {
    pub(super) fn new(input: &Node, cx: &Context<'_>) -> Result<Self> {
        Ok(Self {
            input: State::new(input, cx)?,
            seen: KeyTable::default(),
            held: Held::new(&cx.work().resources.memory, "Unique"),
            last: None,
            key: Vec::new(),
        })
    }

    pub(super) fn rescan(&mut self) {
        self.input.rescan();
        self.seen.clear();
        self.held.clear();
        self.last = None;
    }

    pub(super) fn next(
        &mut self,
        input: &Node,
        keys: &[Expr],
        sorted: bool,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        while self.input.next(input, cx)? {
            cx.work().tick()?;
            self.key.clear();
            let env = cx.env();
            for key in keys {
                datum_key::push(&key.eval(&env)?.datum(), &mut self.key);
            }
            if sorted {
                if self.last.as_ref() != Some(&self.key) {
                    let last = self.last.get_or_insert_default();
                    std::mem::swap(last, &mut self.key);
                    return Ok(true);
                }
                continue;
            }
            let key = self.seen.enter(&self.key, cx.work())?;
            if key.is_new() {
                self.held.grow(key.grown)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}
