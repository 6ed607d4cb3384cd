//! Calls that fail.

use super::*;

fn fail_next(fs: &SimFs, errno: Errno, when: When) {
    fs.fail_after(0, VfsFault::Error(errno, when));
}

#[test]
fn a_write_fails_before_halfway_or_after() {
    let written = |when| {
        outcomes(|fs| {
            let file = durable(fs, "file", b"");
            fail_next(fs, Errno::Io, when);
            let error = write_all_at(&*file, &[1; 100], 0).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(5));
            file.len().unwrap()
        })
    };
    assert_eq!(written(When::Before), BTreeSet::from([0]));
    assert_eq!(written(When::After), BTreeSet::from([100]));
    assert!(written(When::Halfway).len() > 20);
}

#[test]
fn a_rename_that_failed_may_have_happened() {
    let happened = |when| {
        outcomes(|fs| {
            durable(fs, "old", b"");
            fail_next(fs, Errno::Io, when);
            fs.mount().rename(&path("old"), &path("new")).unwrap_err();
            fs.bytes(&path("new")).is_ok()
        })
    };
    assert_eq!(happened(When::Before), BTreeSet::from([false]));
    assert_eq!(happened(When::Halfway), BTreeSet::from([false, true]));
    assert_eq!(happened(When::After), BTreeSet::from([true]));
}

#[test]
fn a_sync_after_a_failed_one_succeeds_without_having_written() {
    let found = outcomes(|fs| {
        let file = durable(fs, "file", b"old");
        write_all_at(&*file, b"new", 0).unwrap();
        fail_next(fs, Errno::Io, When::Before);
        file.sync_data().unwrap_err();
        file.sync_data().unwrap();
        let shown = content(fs, "file");
        fs.crash();
        (shown, content(fs, "file"))
    });
    let (old, new) = (b"old".to_vec(), b"new".to_vec());
    assert!(found.contains(&(new.clone(), old.clone())), "shown, and lost by the crash");
    assert!(found.contains(&(old.clone(), old)), "forgotten at once");
    assert!(found.contains(&(new.clone(), new)), "written after all");
}

#[test]
fn signals_and_short_transfers_are_survived_by_the_helpers() {
    for seed in 0..SEEDS {
        let fs = SimFs::new(seed);
        fs.set_rates(Rates { interrupted: 0.3, short: 0.3, ..Rates::default() });
        let open = || fs.mount().open(&path("file"), OpenFlags::CREATE);
        let file = millpond_vfs::retry(open).unwrap();
        let bytes: Vec<u8> = (0..10_000u32).map(|n| n as u8).collect();
        write_all_at(&*file, &bytes, 3).unwrap();
        let mut found = vec![0; bytes.len()];
        read_exact_at(&*file, &mut found, 3).unwrap();
        assert_eq!(found, bytes);
    }
}

#[test]
fn without_power_nothing_reaches_the_disk_until_the_crash() {
    let fs = SimFs::new(1);
    let file = durable(&fs, "file", b"");
    fs.fail_after(1, VfsFault::PowerLoss(When::Before));
    write_all_at(&*file, b"a", 0).unwrap();
    file.sync_data().unwrap_err();
    assert!(fs.is_powered_off());
    write_all_at(&*file, b"b", 0).unwrap_err();
    fs.heal();
    file.sync_data().unwrap_err();
    fs.crash();
    assert!(!fs.is_powered_off());
    file.sync_data().unwrap_err();
    assert!(matches!(content(&fs, "file").as_slice(), b"" | b"a" | b"\0"));
}

#[test]
fn a_sync_during_which_the_power_goes_may_have_happened() {
    let found = outcomes(|fs| {
        let file = durable(fs, "file", b"");
        write_all_at(&*file, b"x", 0).unwrap();
        fs.fail_after(0, VfsFault::PowerLoss(When::After));
        file.sync_data().unwrap_err();
        fs.crash();
        content(fs, "file")
    });
    assert_eq!(found, BTreeSet::from([b"x".to_vec()]));
}
