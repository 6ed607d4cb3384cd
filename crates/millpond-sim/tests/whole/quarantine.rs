//! A start that moves an unknown file to the quarantine loses power at each of its calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_buffer::IoMethod;
use millpond_engine::{Engine, EngineConfig, EngineResult};
use millpond_sim::vfs::{SimFs, VfsFault, When};

const SEGMENT: u64 = 1 << 17;
/// What a crash leaves of names that were not synced is drawn anew with each.
const SEEDS: u64 = 4;

fn open(fs: &SimFs) -> EngineResult<Arc<Engine>> {
    let mut config = EngineConfig::new(Path::new("/data"));
    config.vfs = fs.mount();
    config.buffers = 64;
    config.io_method = IoMethod::Sync;
    config.wal_segment_bytes = SEGMENT;
    config.wal_buffer_bytes = SEGMENT as usize;
    Engine::open(config)
}

/// The places where the unknown file is now.
fn places(fs: &SimFs) -> Vec<PathBuf> {
    let folders = fs.names(Path::new("/data/quarantine")).unwrap_or_default();
    let folders = folders.iter().map(|name| Path::new("/data/quarantine").join(name));
    let places = folders.chain([PathBuf::from("/data/base")]).map(|folder| folder.join("20000"));
    places.filter(|path| fs.bytes(path).is_ok()).collect()
}

#[test]
fn unknown_file_survives_a_power_loss_while_it_is_moved() {
    let bytes = vec![7; 8192];
    for call in 0.. {
        let mut is_over = false;
        for seed in 0..SEEDS {
            let fs = SimFs::new(call * SEEDS + seed);
            open(&fs).unwrap().shutdown().unwrap();
            fs.put(Path::new("/data/base/20000"), bytes.clone()).unwrap();
            fs.fail_after(call, VfsFault::PowerLoss(When::Before));
            if let Ok(engine) = open(&fs) {
                is_over = fs.has_planned_fault();
                drop(engine.shutdown());
            }
            fs.crash();
            // Under its old name, its new one, or both.
            let places = places(&fs);
            assert!(!places.is_empty(), "call {call}, seed {seed}: the file is lost");
            assert!(places.iter().all(|place| fs.bytes(place).unwrap() == bytes));
        }
        if is_over {
            return;
        }
    }
}
