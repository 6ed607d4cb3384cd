//! Checks the direction of dependency between crates: each may reach only those below it, directly
//! or through others.

use crate::run::{Failed, cargo};

/// A crate, what it may reach of Millpond's crates, and what it must not reach of others.
struct Layer {
    package: &'static str,
    below: &'static [&'static str],
    forbidden: &'static [&'static str],
}

/// What only the crates at the top may use.
const TOP: &[&str] = &["tokio", "mio", "sqlparser", "arrow", "pgwire"];

const LAYERS: &[Layer] = &[
    Layer { package: "millpond-sync", below: &[], forbidden: TOP },
    Layer { package: "millpond-syntax", below: &[], forbidden: TOP },
    Layer { package: "millpond-oracle", below: &[], forbidden: TOP },
    Layer { package: "millpond-vfs", below: &["millpond-sync"], forbidden: TOP },
    Layer { package: "millpond-types", below: &["millpond-sync"], forbidden: TOP },
    Layer { package: "millpond-buffer", below: &["millpond-sync", "millpond-vfs"], forbidden: TOP },
    Layer {
        package: "millpond-engine",
        below: &["millpond-sync", "millpond-vfs", "millpond-types", "millpond-buffer"],
        forbidden: TOP,
    },
    Layer {
        package: "millpond-query",
        below: &[
            "millpond-sync",
            "millpond-syntax",
            "millpond-vfs",
            "millpond-types",
            "millpond-buffer",
            "millpond-engine",
        ],
        forbidden: TOP,
    },
    Layer {
        package: "millpond-datafusion",
        below: &[
            "millpond-sync",
            "millpond-syntax",
            "millpond-vfs",
            "millpond-types",
            "millpond-buffer",
            "millpond-engine",
            "millpond-query",
        ],
        // It plans nothing (ADR 32).
        forbidden: &["mio", "sqlparser", "datafusion", "datafusion-optimizer", "pgwire"],
    },
    Layer {
        package: "millpond",
        below: &[
            "millpond-sync",
            "millpond-syntax",
            "millpond-vfs",
            "millpond-types",
            "millpond-buffer",
            "millpond-engine",
            "millpond-query",
            "millpond-datafusion",
        ],
        forbidden: &["mio", "pgwire"],
    },
    Layer {
        package: "millpond-lab",
        below: &[
            "millpond-sync",
            "millpond-vfs",
            "millpond-types",
            "millpond-buffer",
            "millpond-engine",
        ],
        forbidden: &["mio"],
    },
];

/// Fails with the first dependency that points the wrong way.
pub fn check() -> Result<(), Failed> {
    for Layer { package, below, forbidden } in LAYERS {
        let tree = cargo(&["tree", "-p", package, "-e", "normal", "--prefix", "none"]).output()?;
        let mut reached: Vec<&str> =
            tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
        if reached.is_empty() {
            return Err(Failed(format!("cargo tree knows no package {package}")));
        }
        let is_wrong = |name: &str| {
            let is_own = name.starts_with("millpond") && name != *package;
            is_own && !below.contains(&name) || forbidden.contains(&name)
        };
        if let Some(wrong) = reached.iter().find(|name| is_wrong(name)) {
            return Err(Failed(format!("{package} must not depend on {wrong}")));
        }
        reached.sort_unstable();
        reached.dedup();
        println!("{package}: {} crates, none forbidden", reached.len());
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
