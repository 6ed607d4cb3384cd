//! Files without which no database can start: damage to them stops the start, and the start changes
//! nothing.

use super::older::{settled, with_two_status_pages};
use super::*;

#[test]
fn a_directory_without_its_files_is_not_a_new_database() {
    let dir = settled();
    fs::remove_dir_all(dir.path().join("base")).unwrap();
    assert_refused(dir.path(), "base");
    fs::create_dir(dir.path().join("base")).unwrap();
    assert_refused(dir.path(), "base/1");
    let dir = settled();
    fs::remove_dir_all(dir.path().join("wal")).unwrap();
    assert_refused(dir.path(), "wal");
}

/// The first status page, while the current transaction ids are on a later one.
#[test]
fn a_zeroed_status_page_rolls_nothing_back() {
    let dir = with_two_status_pages().0;
    zero(&dir.path().join("base/2"), 0);
    assert_refused(dir.path(), "base/2");
}

/// The newer copy of the control file is damaged. The start uses the older one and repairs the
/// damage.
#[test]
fn a_damaged_copy_of_the_control_file_is_mended() {
    let dir = settled();
    let control =
        OpenOptions::new().read(true).write(true).open(dir.path().join("control")).unwrap();
    let copy = |n: u64| {
        let mut bytes = [0; 512];
        control.read_exact_at(&mut bytes, n * PAGE).unwrap();
        bytes
    };
    let sequence = |n| u64::from_le_bytes(copy(n)[24..32].try_into().unwrap());
    let newest = u64::from(sequence(1) > sequence(0));
    let start_no = |n| u32::from_le_bytes(copy(n)[20..24].try_into().unwrap());
    let last = start_no(newest);
    control.write_all_at(&[copy(newest)[40] ^ 4], newest * PAGE + 40).unwrap();
    let engine = open(dir.path());
    // A start never reuses the number of an earlier one.
    assert!(start_no(1 - newest).max(start_no(newest)) > last);
    assert_eq!(rows(&mut engine.session().unwrap(), "indexed").unwrap(), ROWS as u64);
    engine.shutdown().unwrap();
    drop(engine);
    // Either copy alone is now enough.
    for n in [0, 1] {
        let whole = copy(n);
        control.write_all_at(&[0; 512], n * PAGE).unwrap();
        let read = millpond_engine::wal::FileLogStore::open(dir.path(), SEGMENT).unwrap();
        let read = millpond_engine::control::ControlFile::read(Arc::new(read)).unwrap().unwrap();
        assert!(read.damaged_copy().is_some());
        control.write_all_at(&whole, n * PAGE).unwrap();
    }
}
