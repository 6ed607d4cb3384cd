//! Checks the names in a data directory, and pages by their checksums alone.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use millpond_buffer::{
    BlockNumber, BufferError, FileStore, FileStoreOptions, IoMethod, PAGE_SIZE, PageStore, RelFork,
    verify_checksum,
};
use millpond_vfs::{OverlayVfs, Spill, Vfs, retry};

use super::watch::{Finding, Meter, Part, Watch};
use crate::engine::Engine;
use crate::error::{EngineError, EngineResult, relation_file};
use crate::recovery::DirectoryError;

/// The names in a directory; `None` if it does not exist.
pub(super) fn names(vfs: &dyn Vfs, path: &Path) -> EngineResult<Option<Vec<OsString>>> {
    match retry(|| vfs.list(path)) {
        Ok(names) => Ok(Some(names)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => {
            let path = path.display().to_string();
            Err(DirectoryError::Io { what: "read directory", path, source }.into())
        }
    }
}

/// Checks that the directory is a database's, and that its parts exist.
pub(super) fn check_names(vfs: &dyn Vfs, path: &Path, watch: &mut dyn Watch) -> EngineResult<()> {
    let refuse = |what| {
        let path = path.display().to_string();
        Err(EngineError::from(DirectoryError::NotADatabase { path, what }))
    };
    let own = match names(vfs, path) {
        Ok(Some(own)) => own,
        Ok(None) => return refuse("there is no such directory"),
        Err(EngineError::Directory(DirectoryError::Io { source, .. }))
            if source.kind() == io::ErrorKind::NotADirectory =>
        {
            return refuse("it is not a directory");
        }
        Err(error) => return Err(error),
    };
    let (wal, base) = (names(vfs, &path.join("wal"))?, names(vfs, &path.join("base"))?);
    let has_any = |names: &Option<Vec<OsString>>| names.as_ref().is_some_and(|n| !n.is_empty());
    if !own.iter().any(|name| name == "control") && !has_any(&wal) && !has_any(&base) {
        return refuse("it has no control file");
    }
    for (name, found) in [("wal", &wal), ("base", &base)] {
        if found.is_none() {
            watch.found(Finding::of(name, "the directory is missing"));
        }
    }
    Ok(())
}

/// Fails if temporary files would be created in the directory under check.
pub(super) fn refuse_inside(
    vfs: &dyn Vfs,
    path: &Path,
    temporary: Option<&Path>,
) -> EngineResult<()> {
    let resolved = |path| vfs.resolve(path).ok();
    match (resolved(path), temporary.and_then(resolved)) {
        (Some(path), Some(temporary)) if temporary.starts_with(&path) => {
            let source = io::Error::other(
                "TMPDIR lies in the data directory; set it to a directory elsewhere",
            );
            Err(EngineError::TemporaryFile { what: "make", source })
        }
        _ => Ok(()),
    }
}

/// Reports the damage to files that the start found. Files of tables and indexes that can't be
/// opened are not included: the check of their relation finds them.
pub(super) fn report_settling(engine: &Engine, watch: &mut dyn Watch) {
    for file in &engine.findings().set_aside {
        let what = format_args!("a file of {} bytes that belongs to no relation", file.bytes);
        watch.found(Finding::of(relation_file(file.rel), what));
    }
    for damaged in &engine.findings().damaged {
        if let BufferError::TooLong { .. } = damaged.error {
            watch.found(Finding::of(relation_file(damaged.rel), &damaged.error));
        }
    }
}

/// Verifies the checksum of every page, for a database that can't be opened. The findings include
/// pages that a crash has torn, though recovery would restore them.
pub(super) fn check_pages(
    vfs: Arc<dyn Vfs>,
    path: &Path,
    watch: &mut dyn Watch,
) -> EngineResult<()> {
    let base = path.join("base");
    if names(&*vfs, &base)?.is_none() {
        return Ok(());
    }
    let mut options = FileStoreOptions::default();
    options.io_method = IoMethod::Sync;
    // The check writes nothing. If the store did, the overlay would keep it from the files.
    options.vfs = Arc::new(OverlayVfs::new(vfs, Spill::in_memory()));
    let store = FileStore::open_with(base, options).map_err(store_error)?;
    let mut forks = Vec::new();
    for relation in store.relations().map_err(store_error)? {
        // A crash may tear a free space map, which is no damage.
        forks.push((relation.main(), store.block_count(relation.main()).map_err(store_error)?));
    }
    let pages = forks.iter().map(|(_, blocks)| u64::from(*blocks)).sum();
    let mut meter = Meter::new(watch, Part::Pages, pages);
    for (rel, blocks) in forks {
        for block in (0..blocks).map(BlockNumber) {
            check_page(&store, rel, block, &mut meter)?;
            meter.step();
        }
    }
    Ok(())
}

fn check_page(
    store: &FileStore,
    rel: RelFork,
    block: BlockNumber,
    watch: &mut dyn Watch,
) -> EngineResult<()> {
    let mut page = [0; PAGE_SIZE];
    let read = store.read(rel, block, &mut [&mut page]).map_err(store_error);
    let verified =
        read.and_then(|()| Ok(verify_checksum(rel.page(block), &page).map_err(BufferError::from)?));
    match verified {
        Ok(()) => Ok(()),
        Err(error) if error.is_damage() => {
            let (relation, what) = (rel.to_string(), error.to_string());
            watch.found(Finding { relation, block: Some(block), what });
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn store_error(error: millpond_buffer::StoreError) -> EngineError {
    EngineError::Buffer(error.into())
}
