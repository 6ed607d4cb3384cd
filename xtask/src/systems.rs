//! Other systems than Linux on x86-64: tests of the portable paths, and checks of other targets.

use crate::audit;
use crate::run::{Cmd, Failed, cargo, command};

/// The crates whose tests run on the portable paths.
const PORTABLE: [&str; 4] = ["millpond-sync", "millpond-vfs", "millpond-buffer", "millpond-engine"];

/// What the portable build leaves out, and why. A build for macOS leaves out the same, except what
/// says otherwise.
const LEFT_OUT: &str = "\
left out, because only a build with io_uring has it:
  millpond-buffer: store::file::background::{reaper, shared_rings, uring}, their tests;
    background::tests::failing, ::a_read_that_ends_at_once_begins_the_next,
    ::waiting::waiting_thread_leaves_when_its_page_has_come
  millpond-sync: send_batch with its tests (feature send-batch)
left out, because only Linux has it:
  millpond-vfs: os::tests::the_holder_of_a_lock_is_found_in_the_kernels_list
  millpond-buffer: background::tests::memory_that_is_not_aligned_will_do_for_direct_io (runs on
    macOS)";

/// Tests the portable paths on this system. Without arguments, of all crates that have some.
pub fn portable(packages: &[String]) -> Result<(), Failed> {
    let known = |package: &&str| {
        let short = package.trim_start_matches("millpond-");
        packages.is_empty() || packages.iter().any(|name| name == *package || name == short)
    };
    println!("{LEFT_OUT}");
    let named: Vec<_> =
        PORTABLE.iter().filter(|name| known(name)).flat_map(|name| ["-p", *name]).collect();
    if named.is_empty() {
        return Err(Failed(format!("none of {packages:?} has portable paths: {PORTABLE:?}")));
    }
    forced(cargo(&[&["test", "--lib", "--tests"][..], &named].concat())).run()
}

/// All that `.ci/run` leaves to the time before a release, because changes seldom break it.
pub fn elsewhere() -> Result<(), Failed> {
    for size in ["4096", "65536"] {
        println!("the buffer pool with pages of {size} bytes");
        // In a folder of their own: another size would build all crates above again.
        cargo(&["test", "--quiet", "-p", "millpond-buffer", "--lib"])
            .env("CARGO_TARGET_DIR", "target/pages")
            .env("MILLPOND_PAGE_SIZE", size)
            .run()?;
    }
    let caches = ["clippy", "--manifest-path", "bench/caches/Cargo.toml", "--locked", "--quiet"];
    cargo(&[&caches[..], &["--", "-D", "warnings"]].concat())
        .env("CARGO_TARGET_DIR", "target/caches")
        .run()?;
    audit::lint()?;
    crate::shuttle()?;
    portable(&[])?;
    targets(true)?;
    musl(false)
}

/// Lints the portable paths, tests included, in all crates that have some.
pub fn check_portable() -> Result<(), Failed> {
    let named: Vec<_> = PORTABLE.iter().flat_map(|name| ["-p", *name]).collect();
    let lints = ["--lib", "--tests", "--", "-D", "warnings"];
    forced(cargo(&[&["clippy", "--quiet"][..], &named, &lints].concat())).run()
}

fn forced(cmd: Cmd) -> Cmd {
    cmd.env("RUSTFLAGS", "--cfg millpond_portable").env("CARGO_TARGET_DIR", "target/portable")
}

/// The targets whose code is checked on this system.
const TARGETS: [&str; 3] =
    ["x86_64-apple-darwin", "aarch64-apple-darwin", "aarch64-unknown-linux-gnu"];

/// The crates that need no C compiler for the target.
const CHECKED: [&str; 7] = [
    "millpond-sync",
    "millpond-vfs",
    "millpond-types",
    "millpond-buffer",
    "millpond-engine",
    "millpond-sim",
    "millpond-lab",
];

/// A system that Millpond refuses with a message of its own, and words of that message.
const REFUSED: (&str, &str) = ("x86_64-pc-windows-gnu", "Millpond runs on Linux and macOS");

/// Installs the standard libraries of all targets.
pub fn install_targets() -> Result<(), Failed> {
    command("rustup", &["target", "add", REFUSED.0, MUSL]).args(&TARGETS.map(str::to_owned)).quiet()
}

/// Checks the code of other targets, without warnings. Installs their standard libraries.
pub fn targets(server: bool) -> Result<(), Failed> {
    install_targets()?;
    let mut named: Vec<_> = CHECKED.iter().flat_map(|name| ["-p", *name]).collect();
    named.extend(["--lib", "--tests"]);
    for target in TARGETS {
        for_target(target, &named).run()?;
        println!("{target}: checked {}, with tests", CHECKED.join(" "));
        if server {
            const SERVER: [&str; 5] =
                ["-p", "millpond-server", "--no-default-features", "--features", "lab"];
            for_target(target, &SERVER).run()?;
            println!("{target}: checked millpond millpond-server, without DataFusion");
        }
    }
    match for_target(REFUSED.0, &["-p", "millpond-sync"]).quiet() {
        Err(Failed(why)) if why.contains(REFUSED.1) => println!("{}: refused", REFUSED.0),
        Err(failed) => return Err(failed),
        Ok(()) => return Err(Failed(format!("{} is not refused", REFUSED.0))),
    }
    Ok(())
}

fn for_target(target: &str, packages: &[&str]) -> Cmd {
    cargo(&[&["check", "--quiet", "--target", target][..], packages].concat())
        .env("RUSTFLAGS", "-D warnings")
        .env("CARGO_TARGET_DIR", "target/targets")
        // Nothing is linked, so objects of C code are not needed.
        .env("TARGET_CC", "true")
        .env("TARGET_AR", "true")
}

const MUSL: &str = "x86_64-unknown-linux-musl";

/// Builds a server that needs no library of the system, and runs it. Without `full` it is a debug
/// build without DataFusion, which tests the same linking in less time.
pub fn musl(full: bool) -> Result<(), Failed> {
    const QUICK: [&str; 3] = ["--no-default-features", "--features", "lab"];
    install_targets()?;
    let options = if full { &["--release"][..] } else { &QUICK };
    cargo(
        &[&["build", "--quiet", "--target", MUSL, "-p", "millpond-server"][..], options].concat(),
    )
    .env("CARGO_TARGET_DIR", "target/musl")
    .run()?;
    let profile = if full { "release" } else { "debug" };
    let program = format!("target/musl/{MUSL}/{profile}/millpond");
    let headers = command("readelf", &["--program-headers", &program]).output_of_success()?;
    if headers.contains("INTERP") {
        return Err(Failed(format!("{program} is not static")));
    }
    command(&program, &["--version"]).run()?;
    println!("{program} is static");
    Ok(())
}
