//! The circles of modules in each crate, compared with the exceptions.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::exceptions::{EXCEPTIONS, Exception};
use super::graph::Graph;
use super::methods::Methods;
use super::modules::Tree;
use super::uses;
use crate::run::Failed;

/// The crates whose modules are checked.
const CRATES: &[&str] = &[
    "millpond-sync",
    "millpond-vfs",
    "millpond-types",
    "millpond-buffer",
    "millpond-engine",
    "millpond",
];

/// Crates whose circles are counted and named, but are no faults: they are to become fewer.
const REPORTED: &[&str] = &["millpond-query"];

/// Modules of one folder that use each other in a circle.
pub struct Circle {
    /// Their paths, in order.
    pub modules: BTreeSet<String>,
    /// The uses, each with the first line that makes it.
    pub uses: Vec<String>,
}

/// Fails if a circle is no exception, or if an exception is no circle.
pub fn check() -> Result<(), Failed> {
    let read = |file: &Path| fs::read_to_string(file).ok();
    let mut trees = Vec::new();
    for &krate in CRATES.iter().chain(REPORTED) {
        let root = format!("crates/{krate}/src/lib.rs");
        trees.push((krate, Tree::load(Path::new(&root), &read)?));
    }
    let mut faults = 0;
    for (krate, tree) in &trees {
        // What is called on another crate's type is no call of ours.
        let others = trees.iter().filter(|(other, _)| other != krate);
        let foreign =
            others.flat_map(|(_, tree)| Methods::of(tree, &BTreeSet::new()).into_names()).collect();
        let graph = uses::graph(tree, &Methods::of(tree, &foreign));
        let circles = circles(tree, &graph);
        let exceptions: Vec<&Exception> =
            EXCEPTIONS.iter().filter(|exception| exception.krate == *krate).collect();
        let wrong = compare(krate, &circles, &exceptions);
        let (files, edges) = (tree.files(), graph.edges().count());
        println!("{krate}: {files} modules, {edges} uses, {} circles", circles.len());
        if REPORTED.contains(krate) {
            circles.iter().for_each(|circle| println!("  {}", joined(&circle.modules)));
            continue;
        }
        wrong.iter().for_each(|fault| println!("{fault}"));
        faults += wrong.len();
    }
    if faults == 0 { Ok(()) } else { Err(Failed(format!("{faults} faults of layers"))) }
}

/// The circles among the modules of each folder.
pub fn circles(tree: &Tree, graph: &Graph) -> Vec<Circle> {
    let path = |module: usize| tree.modules[module].path.clone();
    let mut found = Vec::new();
    for folder in 0..tree.modules.len() {
        let level = graph.grouped(|module| tree.child_of(folder, module));
        for circle in level.circles() {
            let uses =
                level.edges().filter(|(from, to, _)| circle.contains(from) && circle.contains(to));
            let uses = uses.map(|(from, to, line)| {
                format!("{} -> {} at {}:{}", path(from), path(to), line.file.display(), line.number)
            });
            let uses = uses.collect();
            found.push(Circle {
                modules: circle.iter().map(|&module| path(module)).collect(),
                uses,
            });
        }
    }
    found
}

/// What to say of circles that are no exceptions, and of exceptions that are no circles.
pub fn compare(krate: &str, circles: &[Circle], exceptions: &[&Exception]) -> Vec<String> {
    let mut faults = Vec::new();
    for circle in circles {
        if !exceptions.iter().any(|exception| exception.set() == circle.modules) {
            let (names, uses) = (joined(&circle.modules), circle.uses.join("\n  "));
            faults.push(format!("{krate}: a circle of modules: {names}\n  {uses}"));
        }
    }
    for exception in exceptions {
        let set = exception.set();
        if !circles.iter().any(|circle| circle.modules == set) {
            let (names, reason) = (joined(&set), exception.reason);
            faults.push(format!(
                "{krate}: no circle of exactly these modules, so mend the exception: {names} \
                 ({reason})"
            ));
        }
    }
    faults
}

fn joined(modules: &BTreeSet<String>) -> String {
    modules.iter().cloned().collect::<Vec<_>>().join(", ")
}
