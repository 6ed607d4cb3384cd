//! Each promise of the file system, and each way to break it.
#![allow(clippy::unwrap_used)]

mod damage;
mod durability;
mod failures;
mod limits;
mod names;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use millpond_vfs::{OpenFlags, Vfs, VfsFile, read_exact_at, sync_directory, write_all_at};

use super::*;

/// Enough seeds that each possible outcome occurs.
const SEEDS: u64 = 200;

fn path(name: &str) -> std::path::PathBuf {
    Path::new("/").join(name)
}

fn create(vfs: &SimVfs, name: &str) -> Arc<dyn VfsFile> {
    vfs.open(&path(name), OpenFlags::CREATE).unwrap()
}

/// A file with a durable name and durable bytes.
fn durable(fs: &SimFs, name: &str, bytes: &[u8]) -> Arc<dyn VfsFile> {
    fs.put(&path(name), bytes.to_vec()).unwrap();
    fs.mount().open(&path(name), OpenFlags::WRITE).unwrap()
}

fn content(fs: &SimFs, name: &str) -> Vec<u8> {
    fs.bytes(&path(name)).unwrap()
}

/// The distinct results of an experiment under many seeds.
fn outcomes<T: Ord>(experiment: impl Fn(&SimFs) -> T) -> BTreeSet<T> {
    (0..SEEDS).map(|seed| experiment(&SimFs::new(seed))).collect()
}
