//! After redo: recovery compares the table of forks with the existing files (wal rules 18 and 19).
//!
//! 1. The files of dropped relations are removed, and so are those of transactions that have not
//!    committed: the log names them. Nothing else is ever removed.
//! 2. A file longer than its fork is cut to the fork's length. A crash came between its growth and
//!    the first record about the new blocks, which are zeros.
//! 3. A missing free space map is created anew, empty.
//! 4. A missing file, or one that is too short, is reported. The pool refuses such forks from then
//!    on. Other forks are not affected.
//! 5. Files that nothing names are moved away (quarantine.rs).

use std::collections::{BTreeMap, BTreeSet};

use millpond_buffer::{
    BlockNumber, BufferError, Fork, PageBuffer, RelFork, RelationId, StoreError, is_new,
};
use millpond_sync::mutant;

use crate::access::heap::visibility::Fates;
use crate::ctx::Ctx;
use crate::error::{EngineResult, relation_file};
use crate::transam::XidStatus;
use crate::wal::forks::{KnownFork, is_system};

/// A fork whose file is damaged or missing.
#[derive(Debug)]
pub struct DamagedFork {
    /// The fork.
    pub rel: RelFork,
    /// What is wrong.
    pub error: BufferError,
}

/// The forks of committed relations, by the log. Asks for the status of each creating transaction.
pub(crate) fn committed_forks(ctx: &Ctx) -> EngineResult<BTreeMap<RelFork, KnownFork>> {
    let forks = ctx.log().forks();
    forks.settle_makers(|xid| {
        ctx.status(xid).map(|status| matches!(status, XidStatus::Committed(_)))
    })?;
    let mut all = forks.all();
    all.retain(|_, fork| is_committed(fork));
    Ok(all)
}

fn is_committed(fork: &KnownFork) -> bool {
    !fork.dropped && !fork.made_by.is_valid()
}

/// Removes the files of what was dropped or never committed. Call it after [`committed_forks`].
pub(crate) fn remove_dropped(ctx: &Ctx) -> EngineResult<()> {
    let forks = ctx.log().forks();
    let gone = forks.all().into_iter().filter(|(_, fork)| !is_committed(fork));
    let gone = gone.filter(|_| !mutant!("wal-uncommitted-files-stay"));
    let gone: BTreeSet<RelationId> = gone.map(|(rel, _)| rel.relation).collect();
    for relation in gone {
        tracing::info!(%relation, "removing files of a relation that was dropped or did not commit");
        ctx.pool().drop_relation(relation)?;
        forks.remove(relation);
    }
    Ok(())
}

/// Creates missing free space maps: they hold only hints.
pub(crate) fn mend_maps(ctx: &Ctx, forks: &BTreeMap<RelFork, KnownFork>) -> EngineResult<()> {
    for rel in forks.keys().filter(|rel| rel.fork != Fork::Main) {
        if !ctx.pool().store().exists(*rel).map_err(BufferError::from)? {
            tracing::warn!(file = %relation_file(*rel), "a free space map is missing; creating an empty one");
            ctx.pool().create(*rel)?;
        }
    }
    Ok(())
}

/// Compares the lengths of main forks with the files. Returns the damaged forks.
pub(crate) fn settle_lengths(
    ctx: &Ctx,
    forks: &BTreeMap<RelFork, KnownFork>,
    files: &BTreeMap<RelFork, u32>,
) -> EngineResult<Vec<DamagedFork>> {
    let mut damaged = Vec::new();
    for (&rel, fork) in forks.iter().filter(|(rel, _)| rel.fork == Fork::Main) {
        let error = match files.get(&rel) {
            None => Some(StoreError::Missing { rel }.into()),
            Some(&blocks) if blocks < fork.blocks => {
                Some(BufferError::CutShort { rel, blocks, least: fork.blocks })
            }
            Some(&blocks) if blocks > fork.blocks => cut_to(ctx, rel, fork.blocks, blocks)?,
            Some(_) => None,
        };
        if let Some(error) = error {
            let file = relation_file(rel);
            tracing::error!(%file, %error, "a relation's file is damaged: the relation cannot be used");
            damaged.push(DamagedFork { rel, error });
        }
    }
    Ok(damaged)
}

/// Cuts a fork to its length, if only zeros lie beyond it.
fn cut_to(ctx: &Ctx, rel: RelFork, known: u32, blocks: u32) -> EngineResult<Option<BufferError>> {
    let mut buffer = PageBuffer::new(1);
    for block in known..blocks {
        let read = ctx.pool().store().read(rel, BlockNumber(block), &mut buffer.pages_mut());
        read.map_err(BufferError::from)?;
        if !buffer.pages().all(is_new) && !mutant!("wal-rows-beyond-the-end-cut") {
            return Ok(Some(BufferError::TooLong { rel, blocks, known }));
        }
    }
    ctx.pool().truncate(rel, known)?;
    Ok(None)
}

/// Forks that have files and that the log does not know.
pub(crate) fn unnamed(ctx: &Ctx, files: &BTreeMap<RelFork, u32>) -> Vec<RelFork> {
    let forks = ctx.log().forks();
    files.keys().copied().filter(|rel| forks.get(*rel).is_none()).collect()
}

/// A user's committed relation that the catalog does not name. `named` has those that it names.
pub(crate) fn missing_in_catalog(
    forks: &BTreeMap<RelFork, KnownFork>,
    named: &BTreeSet<RelationId>,
) -> Option<RelFork> {
    let is_missing = |rel: &RelFork| !is_system(*rel) && !named.contains(&rel.relation);
    forks.keys().copied().find(is_missing).filter(|_| !mutant!("wal-start-on-an-old-catalog"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_user_that_the_catalog_does_not_name_is_found() {
        let fork = |oid| RelationId::constant(oid).main();
        let known = |oid| (fork(oid), KnownFork::default());
        let forks = BTreeMap::from([known(1), known(16_384), known(16_385)]);
        let named = |oids: &[u32]| oids.iter().map(|oid| RelationId::constant(*oid)).collect();
        assert_eq!(missing_in_catalog(&forks, &named(&[16_384])), Some(fork(16_385)));
        // The engine's own files are in no catalog.
        assert_eq!(missing_in_catalog(&forks, &named(&[16_384, 16_385])), None);
    }
}
