//! How the `millpond` binary is linked in release: functions that came out identical are folded into one.
//!
//! Generic code makes many of them; folding takes several megabytes off the binary. It is a feature of
//! LLD, which rustc links with on x86-64 Linux unless it is told otherwise; elsewhere nothing is asked for.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|now| now == value);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let own_linker = flags.contains("link") || env::var_os("RUSTC_LINKER").is_some();
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("PROFILE", "release") && !own_linker {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
