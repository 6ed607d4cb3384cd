//! Which files have been written since the last sync, and whether the store has stopped: what the store shares with
//! the threads that write for it in the background.

use std::io;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::segment::Segment;
use crate::store::StoreError;

/// Files to be synced. (`segment.rs` has the argument why none is missed.)
#[derive(Default)]
pub(super) struct Unsynced {
    files: Mutex<Vec<Arc<Segment>>>,
    stopped: OnceLock<Arc<str>>,
}

impl Unsynced {
    /// A write to the file has ended, however: the next sync has to sync it.
    pub(super) fn add(&self, segment: &Arc<Segment>) {
        if segment.set_dirty() {
            self.files.lock().push(Arc::clone(segment));
        }
    }

    #[cfg(all(test, not(miri)))]
    pub(super) fn len(&self) -> usize {
        self.files.lock().len()
    }

    /// Syncs them all. On a failure nothing is put back, because the store has stopped.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.sync_by(Segment::sync_data)
    }

    /// The same, each by `sync_data`.
    fn sync_by(&self, sync_data: impl Fn(&Segment) -> io::Result<()>) -> Result<(), StoreError> {
        let files = std::mem::take(&mut *self.files.lock());
        for segment in files {
            segment.clear_dirty();
            if segment.is_removed() {
                continue;
            }
            sync_data(&segment)
                .map_err(|error| self.stop(format!("sync {}", segment.path().display()), error))?;
        }
        Ok(())
    }

    /// Stops the store for good: nobody knows what the device has of what was written.
    pub(super) fn stop(&self, operation: String, source: io::Error) -> StoreError {
        let why: Arc<str> = format!("could not {operation}: {source}").into();
        // First of all: who writes the line to the log may panic, and nothing may be written after it all the same.
        let _ = self.stopped.set(Arc::clone(&why));
        tracing::error!(%why, "no page is written any more");
        StoreError::io(operation, source)
    }

    pub(super) fn check_running(&self) -> Result<(), StoreError> {
        match self.stopped.get() {
            None => Ok(()),
            Some(why) => Err(StoreError::Stopped { why: Arc::clone(why) }),
        }
    }
}

// Miri opens no files.
#[cfg(all(test, not(miri)))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::file::fork::Folder;

    fn written(unsynced: &Unsynced, path: std::path::PathBuf) -> Arc<Segment> {
        let folder = Folder {
            vfs: Arc::new(millpond_vfs::OsVfs),
            path: path.parent().unwrap().to_owned(),
            segment_blocks: 3,
            direct: false,
        };
        let segment = Arc::new(Segment::open(&folder, path, true).unwrap().unwrap());
        segment.grow(1).unwrap();
        unsynced.add(&segment);
        segment
    }

    /// What the device was told before the write ended need not be all of it.
    #[test]
    fn a_write_that_ends_while_its_file_is_synced_is_synced_again() {
        let dir = tempfile::tempdir().unwrap();
        let unsynced = Unsynced::default();
        let segment = written(&unsynced, dir.path().join("1"));
        let sync = |synced: &Segment| {
            synced.sync_data()?;
            unsynced.add(&segment);
            Ok(())
        };
        unsynced.sync_by(sync).unwrap();
        assert_eq!(unsynced.len(), 1);
        unsynced.sync().unwrap();
        assert_eq!(unsynced.len(), 0);
    }

    #[test]
    fn the_first_sync_that_fails_stops_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let unsynced = Unsynced::default();
        let _files = ["1", "2"].map(|name| written(&unsynced, dir.path().join(name)));
        let failed = unsynced.sync_by(|_| Err(io::Error::other("made to fail")));
        assert!(failed.unwrap_err().to_string().contains("made to fail"));
        assert!(matches!(unsynced.check_running(), Err(StoreError::Stopped { .. })));
    }
}
