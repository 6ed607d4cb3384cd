//! The number of the input that a target's process is running.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The time limit of an input. (A run has millions of inputs, and a slow one takes milliseconds.)
const LONGEST: Duration = Duration::from_secs(20);

/// A file with a number, and the same number for a thread that watches it.
pub struct Progress {
    file: File,
    at: Arc<AtomicU64>,
}

impl Progress {
    /// Creates the file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Self { file: options.open(path)?, at: Arc::default() })
    }

    /// Opens an existing file.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().write(true).open(path)?, at: Arc::default() })
    }

    /// Writes a number.
    pub fn write(&self, number: u64) -> io::Result<()> {
        self.at.store(number, Ordering::Relaxed);
        self.file.write_all_at(&number.to_le_bytes(), 0)
    }

    /// Reads the number.
    pub fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Starts a thread that aborts the process if an input takes too long.
    pub fn watch(&self) {
        let at = Arc::clone(&self.at);
        thread::spawn(move || {
            let mut before = u64::MAX;
            loop {
                thread::sleep(LONGEST);
                let now = at.load(Ordering::Relaxed);
                if now == before {
                    eprintln!("an input has run for over {} seconds", LONGEST.as_secs());
                    std::process::abort();
                }
                before = now;
            }
        });
    }
}
