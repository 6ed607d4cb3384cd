//! Which of a file's bytes survive a crash.

use super::*;

#[test]
fn synced_bytes_survive_every_crash() {
    let found = outcomes(|fs| {
        let file = durable(fs, "file", b"");
        write_all_at(&*file, &[7; 10_000], 0).unwrap();
        file.sync_data().unwrap();
        fs.crash();
        content(fs, "file") == [7; 10_000]
    });
    assert_eq!(found, BTreeSet::from([true]));
}

#[test]
fn unsynced_bytes_survive_sector_by_sector_or_not_at_all() {
    let found = outcomes(|fs| {
        let file = durable(fs, "file", &[1; 16_384]);
        write_all_at(&*file, &[2; 16_384], 0).unwrap();
        fs.crash();
        let new = content(fs, "file").iter().filter(|byte| **byte == 2).count();
        assert_eq!(new % 64, 0, "no sector is smaller than 64 bytes");
        [0, 1, 16_384].map(|count| new == count).iter().position(|is| *is).unwrap_or(3)
    });
    assert_eq!(found, BTreeSet::from([0, 2, 3]));
}

#[test]
fn a_later_write_may_survive_without_an_earlier_one() {
    let found = outcomes(|fs| {
        let file = durable(fs, "file", &[0; 8192]);
        write_all_at(&*file, &[1; 4096], 0).unwrap();
        write_all_at(&*file, &[1; 4096], 4096).unwrap();
        fs.crash();
        let bytes = content(fs, "file");
        (bytes[0], bytes[4096])
    });
    assert_eq!(found, BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)]));
}

#[test]
fn a_length_survives_without_the_bytes_which_are_zeros() {
    let found = outcomes(|fs| {
        let file = durable(fs, "file", b"");
        write_all_at(&*file, &[9; 4096], 0).unwrap();
        fs.crash();
        let bytes = content(fs, "file");
        (bytes.len(), bytes.first().copied())
    });
    assert!(found.contains(&(0, None)), "{found:?}");
    assert!(found.contains(&(4096, Some(0))), "{found:?}");
    assert!(found.contains(&(4096, Some(9))), "{found:?}");
}

#[test]
fn a_cut_that_was_not_synced_may_be_undone() {
    let found = outcomes(|fs| {
        let file = durable(fs, "file", &[5; 8192]);
        file.set_len(0).unwrap();
        fs.crash();
        content(fs, "file").len()
    });
    assert_eq!(found, BTreeSet::from([0, 8192]));
    let found = outcomes(|fs| {
        let file = durable(fs, "file", &[5; 8192]);
        file.set_len(0).unwrap();
        file.sync_data().unwrap();
        fs.crash();
        content(fs, "file").len()
    });
    assert_eq!(found, BTreeSet::from([0]));
}

#[test]
fn a_killed_process_loses_no_byte() {
    let found = outcomes(|fs| {
        let file = durable(fs, "file", b"");
        write_all_at(&*file, b"kept", 0).unwrap();
        fs.kill();
        assert!(file.len().is_err(), "the file belongs to the process that died");
        content(fs, "file")
    });
    assert_eq!(found, BTreeSet::from([b"kept".to_vec()]));
}

#[test]
fn a_sync_that_is_left_out_makes_nothing_durable() {
    let found = outcomes(|fs| {
        let file = durable(fs, "file", b"old");
        fs.ignore_syncs(Some(Box::new(|path| path.ends_with("file"))));
        write_all_at(&*file, b"new", 0).unwrap();
        file.sync_data().unwrap();
        fs.crash();
        content(fs, "file")
    });
    assert_eq!(found, BTreeSet::from([b"old".to_vec(), b"new".to_vec()]));
}

#[test]
fn the_same_seed_gives_the_same_hash_and_the_same_disk() {
    let run = |seed| {
        let fs = SimFs::new(seed);
        fs.set_rates(Rates { write_error: 0.1, ..Rates::MILD });
        let vfs = fs.mount();
        for number in 0..50u8 {
            let Ok(file) = vfs.open(&path(&format!("{}", number % 5)), OpenFlags::CREATE) else {
                continue;
            };
            let _ = write_all_at(&*file, &[number; 5000], u64::from(number) * 100);
            let _ = file.sync_data();
        }
        let hash = fs.hash();
        fs.crash();
        (hash, fs.names(Path::new("/")).unwrap().len())
    };
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed));
    }
    assert_ne!(run(1).0, run(2).0);
}
