//! `guided`: libFuzzer's program, with its options, for one target. It follows the branches taken.
//!
//! `cargo xtask fuzz guided` builds it with instrumented branches and passes the target's name in
//! `MILLPOND_FUZZ_TARGET`.

#![no_main]

use std::sync::LazyLock;

use millpond_fuzz::{TARGETS, Target, check};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("MILLPOND_FUZZ_TARGET").unwrap_or_default();
    let Some(target) = TARGETS.iter().find(|target| target.name == name) else {
        eprintln!("MILLPOND_FUZZ_TARGET is {name:?}, which is no target");
        std::process::exit(2);
    };
    target
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| check(&TARGET, data));
