//! The lock of a store on its directory: `lock`, a file without content, locked by the system (`flock`).
//!
//! It ends with the process however that ends, so a lock file that is left behind means nothing. Two stores on one
//! directory would each take what the other has written for its own, and neither would sync it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use millpond_vfs::{OpenFlags, Vfs, VfsFile, retry};

/// A store that is being dropped may be held for a moment more, by a read that is being finished.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Locks a directory until the result is dropped.
pub(super) fn lock(vfs: &dyn Vfs, directory: &Path) -> io::Result<Arc<dyn VfsFile>> {
    let flags = OpenFlags { no_follow: true, ..OpenFlags::CREATE };
    let file = retry(|| vfs.open(&directory.join("lock"), flags))?;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            thread::sleep(PAUSE);
        }
        if retry(|| file.try_lock())? {
            return Ok(file);
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "another store has it open"))
}
