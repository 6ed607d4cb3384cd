//! How the `millpond` binary is linked in release: functions that came out identical are folded into one, and
//! relocations are packed.
//!
//! Generic code makes many of the first; folding takes several megabytes off the binary. Tables of functions make a hundred
//! and fifty thousand of the second, which take 24 bytes each, and packed a few bits. Both are features of LLD, which rustc
//! links with on x86-64 Linux unless it is told otherwise; elsewhere nothing is asked for. Packed relocations are
//! asked for only where the C library here understands them (glibc 2.36); an older one would refuse the binary, and say why.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|now| now == value);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let own_linker = flags.contains("link") || env::var_os("RUSTC_LINKER").is_some();
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("PROFILE", "release") && !own_linker {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
        if glibc().is_some_and(|version| version >= (2, 36)) {
            println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// The version of the C library of the machine that builds, where it is glibc and says so.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
