//! Compares the table with the mutants in the sources and the rules in the documents.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{Mutant, runner};
use crate::run::Failed;

/// The file that describes mutants; its examples don't count.
const DESCRIPTION: &str = "millpond-sync/src/mutant.rs";

/// Documents in which every numbered rule needs a mutant, and the name of such a rule.
const RULES: &[(&str, &str)] = &[
    ("wal rule", "crates/millpond-engine/src/wal/README.md"),
    ("transam rule", "crates/millpond-engine/src/transam/README.md"),
    ("heap rule", "crates/millpond-engine/src/access/heap/README.md"),
    ("btree rule", "crates/millpond-engine/src/access/btree/README.md"),
    ("lmgr rule", "crates/millpond-engine/src/lmgr/README.md"),
];

/// Fails unless the table has exactly the mutants of the sources, and at least one for each rule.
pub(super) fn compare(table: &[Mutant]) -> Result<(), Failed> {
    let mut in_sources = BTreeSet::new();
    collect(&runner::root().join("crates"), &mut in_sources)?;
    let in_table: BTreeSet<String> = table.iter().map(|mutant| mutant.name.to_owned()).collect();
    let only = |some: &BTreeSet<String>, others: &BTreeSet<String>| {
        some.difference(others).cloned().collect::<Vec<_>>().join(", ")
    };
    let (without_test, without_source) =
        (only(&in_sources, &in_table), only(&in_table, &in_sources));
    if !without_test.is_empty() {
        return Err(Failed(format!("mutants that the table does not have: {without_test}")));
    }
    if !without_source.is_empty() {
        return Err(Failed(format!("mutants that no source has: {without_source}")));
    }
    let without_mutant = rules_without_mutant(table)?.join(", ");
    if !without_mutant.is_empty() {
        return Err(Failed(format!("rules without a mutant: {without_mutant}")));
    }
    Ok(())
}

fn rules_without_mutant(table: &[Mutant]) -> Result<Vec<String>, Failed> {
    let mut without = Vec::new();
    for (name, path) in RULES {
        let text = fs::read_to_string(runner::root().join(path))
            .map_err(|error| Failed(format!("could not read {path}: {error}")))?;
        let numbers = text.lines().filter_map(number_of_rule);
        let rules = numbers.map(|number| format!("{name} {number}"));
        without.extend(rules.filter(|rule| table.iter().all(|mutant| mutant.rule != rule)));
    }
    Ok(without)
}

/// The number of the rule that begins on this line.
fn number_of_rule(line: &str) -> Option<u32> {
    line.split_once(". ")?.0.parse().ok()
}

fn collect(folder: &Path, names: &mut BTreeSet<String>) -> Result<(), Failed> {
    let failed = |error| Failed(format!("could not read {}: {error}", folder.display()));
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(&path, names)?;
        } else if path.extension().is_some_and(|ext| ext == "rs") && !path.ends_with(DESCRIPTION) {
            names.extend(named_in(&fs::read_to_string(&path).map_err(failed)?));
        }
    }
    Ok(())
}

/// The names in a source file: the strings after `mutant!(` and `ordering!(`.
fn named_in(source: &str) -> Vec<String> {
    let name = |after: &str| {
        let quoted = after.trim_start().strip_prefix('"')?;
        quoted.split_once('"').map(|(name, _)| name.to_owned())
    };
    let uses = ["mutant!(", "ordering!("].into_iter().flat_map(|call| source.split(call).skip(1));
    uses.filter_map(name).collect()
}
