//! Linker options of the `millpond` binary in release builds: identical functions are folded into
//! one, and relocations are packed.
//!
//! Generic code produces many identical functions; folding them saves several megabytes. Tables of
//! functions produce 150,000 relocations of 24 bytes each; a packed relocation takes a few bits.
//! Both are features of LLD, which rustc uses by default on x86-64 Linux; for other targets this
//! script sets no options. Relocations are packed only if this machine's C library understands them
//! (glibc 2.36 or later). An older library refuses to start the binary, with an error message.

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

/// The version of the build machine's C library, if it is glibc and reports one.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
