//! The kept inputs: one file each, in `corpus/TARGET/`.

use std::path::PathBuf;
use std::{fs, io};

use crate::targets::Target;

/// The folder with a target's kept inputs.
pub fn folder(target: &Target) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).join(target.name)
}

/// A target's kept inputs in the order of their names, and then its seeds.
pub fn inputs(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let mut inputs = Vec::new();
    let folder = folder(target);
    if folder.try_exists()? {
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        files.sort();
        for file in files {
            inputs.push(fs::read(file)?);
        }
    }
    inputs.extend((target.seeds)());
    Ok(inputs)
}
