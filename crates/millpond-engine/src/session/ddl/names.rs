//! Names of new tables and indexes.

use std::collections::HashSet;

use super::{Ddl, invalid};
use crate::catalog::{NewIndex, TableDef};
use crate::error::EngineResult;
use crate::lmgr::{LockMode, LockTag};
use crate::table::TableError;

/// The lock class of names. Name locks keep two transactions from creating the same name.
const NAME_CLASS: u32 = 1;
/// PostgreSQL's limit for the length of a name.
const MAX_NAME_BYTES: usize = 63;

/// A hash of a name, for its lock. If two names collide, their creators only wait for each other.
fn name_number(name: &str) -> u32 {
    // FNV-1a.
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl Ddl<'_> {
    pub(super) fn lock_name(&self, name: &str) -> EngineResult<()> {
        let tag = LockTag::Object { class: NAME_CLASS, id: name_number(name) };
        self.session.ctx.lock(tag, LockMode::Exclusive)?;
        Ok(())
    }

    pub(super) fn is_taken(&self, name: &str) -> bool {
        self.session.catalog().relation(name).is_some()
    }

    pub(super) fn claim_name(&self, name: &str) -> EngineResult<()> {
        self.lock_name(name)?;
        if self.is_taken(name) {
            return Err(TableError::DuplicateRelation(name.to_owned()).into());
        }
        Ok(())
    }

    /// Chooses a free name for an unnamed index, as PostgreSQL does.
    pub(super) fn make_name(
        &self,
        table: &TableDef,
        index: &NewIndex,
        taken: &HashSet<String>,
    ) -> EngineResult<String> {
        let columns = index.columns.iter().filter_map(|column| table.columns.get(column.column));
        let columns = Vec::from_iter(columns.map(|column| column.name.as_str())).join("_");
        let (middle, suffix) = match (index.primary, index.constraint) {
            (true, _) => (String::new(), "pkey"),
            (false, true) => (format!("_{columns}"), "key"),
            (false, false) => (format!("_{columns}"), "idx"),
        };
        for number in 0u32.. {
            let number = if number == 0 { String::new() } else { number.to_string() };
            let room = MAX_NAME_BYTES.saturating_sub(suffix.len() + number.len() + 1);
            let mut start = format!("{}{middle}", table.name);
            while start.len() > room {
                start.pop();
            }
            let name = format!("{start}_{suffix}{number}");
            if taken.contains(&name) {
                continue;
            }
            self.lock_name(&name)?;
            if !self.is_taken(&name) {
                return Ok(name);
            }
        }
        Err(invalid("no free name for an index"))
    }
}
