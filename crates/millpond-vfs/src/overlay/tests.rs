//! Compares an overlay with real files: the same calls on both give the same answers.

use std::collections::BTreeMap;
use std::fs;

use rand::prelude::{Rng, SeedableRng, StdRng};

use super::*;
use crate::{OsVfs, read_up_to_at, write_all_at};

const NAMES: [&str; 5] = ["a", "b", "inner/c", "inner/d", "made/e"];

/// Makes the same files in each directory.
fn fill(directory: &Path) {
    fs::create_dir(directory.join("inner")).unwrap();
    fs::write(directory.join("a"), vec![7; 3 * spill::BLOCK + 100]).unwrap();
    fs::write(directory.join("inner/c"), b"short").unwrap();
}

/// All files of a directory, by name.
fn files(vfs: &dyn Vfs, root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for name in vfs.list(&directory).unwrap() {
            let path = directory.join(name);
            if !vfs.is_regular(&path).unwrap() {
                open.push(path);
                continue;
            }
            let mut bytes = vec![0; vfs.len(&path).unwrap() as usize];
            let file = vfs.open(&path, OpenFlags::READ).unwrap();
            assert_eq!(read_up_to_at(&*file, &mut bytes, 0).unwrap(), bytes.len());
            found.insert(path.strip_prefix(root).unwrap().to_owned(), bytes);
        }
    }
    found
}

/// Makes one random call and returns its answer as text.
fn step(vfs: &dyn Vfs, root: &Path, rng: &mut StdRng) -> String {
    let path = root.join(NAMES[rng.random_range(0..NAMES.len())]);
    let other = root.join(NAMES[rng.random_range(0..NAMES.len())]);
    let (at, long) = (rng.random_range(0..40_000), rng.random_range(0..20_000_usize));
    let byte = rng.random_range(0..3_u8);
    let all = [OpenFlags::READ, OpenFlags::WRITE, OpenFlags::CREATE, OpenFlags::CREATE_NEW];
    let mut flags = all[rng.random_range(0..all.len())];
    flags.truncate = !flags.read_only && rng.random_ratio(1, 8);
    let kind = |error: io::Error| error.kind();
    match rng.random_range(0..11) {
        0 => format!("{:?}", vfs.remove(&path).map_err(kind)),
        1 if path != other => format!("{:?}", vfs.rename(&path, &other).map_err(kind)),
        2 => format!("{:?}", vfs.create_directory(&root.join("made")).map_err(kind)),
        3 => format!("{:?}", vfs.len(&path).map_err(kind)),
        choice => match vfs.open(&path, flags).map_err(kind) {
            Err(kind) => format!("{kind:?}"),
            Ok(file) if choice == 4 && !flags.read_only => {
                format!("{:?} {:?}", file.set_len(at).map_err(kind), file.len().unwrap())
            }
            Ok(file) if choice < 8 && !flags.read_only => {
                let bytes = vec![byte; long];
                format!("{:?}", write_all_at(&*file, &bytes, at).map_err(kind))
            }
            Ok(file) => {
                let mut bytes = vec![0; long];
                let read = read_up_to_at(&*file, &mut bytes, at).unwrap();
                format!("{:?}", &bytes[..read])
            }
        },
    }
}

#[test]
fn an_overlay_answers_as_files_do_and_changes_none() {
    for seed in 0..40 {
        let (changed, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let elsewhere = tempfile::tempdir().unwrap();
        fill(changed.path());
        fill(kept.path());
        let before = files(&OsVfs, kept.path());
        let memory = if seed % 2 == 0 { 0 } else { 3 * spill::BLOCK as u64 };
        let os: Arc<dyn Vfs> = Arc::new(OsVfs);
        let spill = Spill::to_directory(memory, Arc::clone(&os), elsewhere.path().to_owned());
        let overlay = OverlayVfs::new(os, spill);
        let (mut one, mut two) = (StdRng::seed_from_u64(seed), StdRng::seed_from_u64(seed));
        for number in 0..150 {
            let expected = step(&OsVfs, changed.path(), &mut one);
            let answer = step(&overlay, kept.path(), &mut two);
            assert!(answer == expected, "seed {seed}, call {number}: {answer} and {expected}");
        }
        assert!(files(&overlay, kept.path()) == files(&OsVfs, changed.path()), "seed {seed}");
        assert!(files(&OsVfs, kept.path()) == before, "seed {seed}: the files below changed");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "the spill has no name");
    }
}

#[test]
fn overlay_lock_is_the_lock_of_the_file_below() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lock");
    let own = OsVfs.open(&path, OpenFlags::CREATE).unwrap();
    let overlay = OverlayVfs::new(Arc::new(OsVfs), Spill::in_memory());
    assert!(own.try_lock().unwrap());
    assert!(!overlay.open(&path, OpenFlags::CREATE).unwrap().try_lock().unwrap());
    drop(own);
    let lock = overlay.open(&path, OpenFlags::CREATE).unwrap();
    assert!(lock.try_lock().unwrap());
    write_all_at(&*lock, b"1234", 0).unwrap();
    assert!(!OsVfs.open(&path, OpenFlags::WRITE).unwrap().try_lock().unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn blocks_of_zeros_take_no_space_in_the_spill() {
    let directory = tempfile::tempdir().unwrap();
    let overlay = OverlayVfs::new(
        Arc::new(OsVfs),
        Spill::to_directory(0, Arc::new(OsVfs), directory.path().join("missing")),
    );
    let file = overlay.open(&directory.path().join("file"), OpenFlags::CREATE).unwrap();
    write_all_at(&*file, &vec![0; 1 << 20], 0).unwrap();
    assert_eq!(file.len().unwrap(), 1 << 20);
    // Anything else needs the temporary file, which can't be made.
    assert!(write_all_at(&*file, &[1], 77).is_err());
}
