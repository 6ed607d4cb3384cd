//! Tables and indexes that portals of the connection read: definitions of those must not change
//! under them.
//!
//! A portal that has been executed names what it reads, until it is dropped or its transaction
//! ends. As in PostgreSQL, it also does so once it has given all its rows. The connection holds no
//! portals, only weak pointers to these lists. (Outside of a transaction block a portal that ran in
//! one go is not listed. It goes with its batch, and listing it would cost each statement
//! something.)

use std::sync::{Arc, Weak};

use millpond_engine::table::TableError;
use smallvec::SmallVec;

use millpond_query::error::Result;
use millpond_query::plan::{Plan, Planned};

/// What one portal reads, by oid.
pub(super) type Reads = Arc<[u32]>;

/// What all portals of the running transaction read that have been executed.
#[derive(Debug, Default)]
pub(super) struct InUse(Vec<Weak<[u32]>>);

impl InUse {
    /// Notes what a portal reads, for as long as the result lives. What changes rows has done so by
    /// then, and reads nothing any more.
    pub(super) fn note(&mut self, planned: &Planned) -> Option<Reads> {
        let mut reads = SmallVec::<[u32; 4]>::new();
        match &planned.plan {
            Plan::Select(plan) => {
                reads.extend(plan.table.iter().map(|table| table.oid));
                reads.extend(plan.access.index().map(|index| index.oid));
            }
            Plan::Query(plan) => {
                reads.extend(plan.tables.iter().map(|table| table.oid));
                plan.each_index(&mut |index| reads.push(index.oid));
            }
            Plan::Insert(_) | Plan::Change(_) => {}
        }
        if reads.is_empty() {
            return None;
        }
        let reads = Reads::from(&reads[..]);
        self.0.retain(|other| other.strong_count() > 0);
        self.0.push(Arc::downgrade(&reads));
        Some(reads)
    }

    /// Fails if a portal reads the table or index.
    pub(super) fn check(&self, action: &'static str, oid: u32, name: &str) -> Result<()> {
        match self.0.iter().filter_map(Weak::upgrade).any(|reads| reads.contains(&oid)) {
            true => Err(TableError::InUse { action, table: name.to_owned() }.into()),
            false => Ok(()),
        }
    }

    /// The transaction has ended, and its portals with it.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
