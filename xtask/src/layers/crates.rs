//! Checks the one direction of dependency: `sync <- vfs <- buffer <- engine <- millpond <- server`.
//! `syntax` sits beside the engine and depends on none of them.

use crate::run::{Failed, cargo};

/// Crates that a layer must never reach, directly or through others.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("millpond-vfs", &["millpond-buffer", "millpond-engine", "millpond", "millpond-server"]),
    (
        "millpond-sync",
        &["millpond-vfs", "millpond-buffer", "millpond-engine", "millpond", "millpond-server"],
    ),
    ("millpond-buffer", &["millpond-engine", "millpond", "millpond-server", "tokio", "sqlparser"]),
    (
        "millpond-engine",
        &["millpond", "millpond-server", "tokio", "mio", "sqlparser", "datafusion", "pgwire"],
    ),
    (
        "millpond-syntax",
        &[
            "millpond-sync",
            "millpond-vfs",
            "millpond-buffer",
            "millpond-engine",
            "millpond",
            "millpond-server",
            "millpond-lab",
            "millpond-sim",
            "sqlparser",
            "datafusion",
        ],
    ),
    ("millpond-lab", &["millpond", "millpond-server", "mio"]),
    ("millpond", &["millpond-server", "millpond-lab", "millpond-oracle", "mio", "pgwire"]),
];

/// Fails with the first dependency that points the wrong way.
pub fn check() -> Result<(), Failed> {
    for (package, forbidden) in FORBIDDEN {
        let tree = cargo(&["tree", "-p", package, "-e", "normal", "--prefix", "none"]).output()?;
        let reached: Vec<&str> =
            tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
        if reached.is_empty() {
            return Err(Failed(format!("cargo tree knows no package {package}")));
        }
        if let Some(wrong) = forbidden.iter().find(|name| reached.contains(name)) {
            return Err(Failed(format!("{package} must not depend on {wrong}")));
        }
        println!("{package}: {} crates, none forbidden", {
            let mut distinct = reached.clone();
            distinct.sort_unstable();
            distinct.dedup();
            distinct.len()
        });
    }
    features()
}

/// Checks that the pool builds with fewer features, and with all of them.
fn features() -> Result<(), Failed> {
    const CHECK: [&str; 4] = ["check", "--quiet", "-p", "millpond-buffer"];
    for some in [
        &["--no-default-features"][..],
        &["--no-default-features", "--features", "file-store"],
        &["--no-default-features", "--features", "trace-file"],
        &["--no-default-features", "--features", "metrics"],
        &["--all-features"],
    ] {
        cargo(&CHECK).args(&some.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>()).run()?;
        println!("millpond-buffer builds with {}", some.join(" "));
    }
    Ok(())
}
