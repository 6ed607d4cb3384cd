//! Omitting a class of syncs makes runs fail: each class has a test.

use std::path::Path;

use millpond_buffer::IoMethod;
use millpond_sim::vfs::SimFs;
use millpond_sim::whole::{Clients, Plan, Trouble, run_on};

/// The number of seeds to try until one run fails.
const SEEDS: u64 = 60;

fn plan(seed: u64) -> Plan {
    Plan {
        clients: Clients::Busy,
        lives: 4,
        steps: 30,
        writers: 2,
        buffers: 32,
        io_method: IoMethod::Sync,
        trouble: if seed.is_multiple_of(2) { Trouble::None } else { Trouble::PowerLoss },
        reach: 3000,
        is_mild: false,
    }
}

/// The first seed whose run fails when these syncs do nothing.
fn noticed_by(left_out: fn(&Path) -> bool) -> Option<u64> {
    (0..SEEDS).find(|&seed| {
        let fs = SimFs::new(seed);
        fs.ignore_syncs(Some(Box::new(left_out)));
        run_on(&fs, seed, plan(seed)).is_err()
    })
}

fn must_be_noticed(left_out: fn(&Path) -> bool) {
    let seed = noticed_by(left_out).expect("no run notices that the syncs are left out");
    eprintln!("noticed by seed {seed}");
}

fn is_in(path: &Path, directory: &str) -> bool {
    path.parent() == Some(Path::new(directory))
}

#[test]
fn runs_with_all_syncs_succeed() {
    for seed in 0..SEEDS / 4 {
        run_on(&SimFs::new(seed), seed, plan(seed)).unwrap();
    }
}

#[test]
fn syncs_of_data_files_are_missed() {
    must_be_noticed(|path| is_in(path, "/data/base"));
}

#[test]
fn syncs_of_the_base_directory_are_missed() {
    must_be_noticed(|path| path == Path::new("/data/base"));
}

#[test]
fn syncs_of_log_segments_are_missed() {
    must_be_noticed(|path| is_in(path, "/data/wal"));
}

#[test]
fn syncs_of_the_log_directory_are_missed() {
    must_be_noticed(|path| path == Path::new("/data/wal"));
}

#[test]
fn syncs_of_the_control_file_are_missed() {
    must_be_noticed(|path| is_in(path, "/data") && path.ends_with("control"));
}

#[test]
fn syncs_of_the_data_directory_are_missed() {
    must_be_noticed(|path| path == Path::new("/data"));
}
