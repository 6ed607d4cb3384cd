//! `guided`: one target, led by the branches that its inputs take. It is libFuzzer's program, whose options it has.
//!
//! `cargo xtask fuzz guided` builds it with a compiler that counts branches, and says which target by `MILLPOND_FUZZ_TARGET`.

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
