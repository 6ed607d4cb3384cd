//! Checks comments and names of functions: at most 100 columns, and no words for persons.

use std::fs;

use crate::run::{Failed, command};

/// The most columns of a line.
const COLUMNS: usize = 100;
/// Words for persons. A comment names an actor: the session, the kernel, the caller.
const PERSONS: &[&str] = &["he", "him", "himself", "his", "nobody", "somebody", "whoever", "whom"];

/// Fails if a comment of a Rust file is too wide, or if it or a function's name has a word for
/// persons.
pub fn check() -> Result<(), Failed> {
    let files = command("git", &["ls-files", "*.rs"]).output()?;
    let mut found = 0;
    for path in files.lines() {
        let text = fs::read_to_string(path).map_err(|error| Failed(format!("{path}: {error}")))?;
        for (number, line) in text.lines().enumerate() {
            for fault in faults(line) {
                println!("{path}:{}: {fault}", number + 1);
                found += 1;
            }
        }
    }
    if found == 0 { Ok(()) } else { Err(Failed(format!("{found} comments to mend"))) }
}

fn faults(line: &str) -> Vec<String> {
    let is_person = |word: &&str| PERSONS.contains(&word.to_lowercase().as_str());
    let fault = |word: &str| format!("\"{word}\": say what it is");
    let text = line.trim_start();
    if text.starts_with("//") {
        let columns = line.chars().count();
        let wide = (columns > COLUMNS).then(|| format!("{columns} columns, at most {COLUMNS}"));
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        return wide.into_iter().chain(words.filter(is_person).map(fault)).collect();
    }
    // Not in a string.
    let name = text.split_once("fn ").filter(|(before, _)| !before.contains('"'));
    let name = name.map_or("", |(_, name)| name);
    let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    name.split('_').filter(|word| is_person(word) || *word == "who").map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::faults;

    #[test]
    fn wide_comments_and_words_for_persons_are_found() {
        assert_eq!(faults(&format!("    // {}", "x".repeat(93))), [""; 0]);
        assert_eq!(faults(&format!("    // {}", "x".repeat(94))), ["101 columns, at most 100"]);
        assert_eq!(faults("/// Whoever waits."), ["\"Whoever\": say what it is"]);
        assert_eq!(faults("let he = \"whoever\";"), [""; 0]);
        assert_eq!(
            faults("    fn who_waits_for_whom() {"),
            ["\"who\": say what it is", "\"whom\": say what it is"]
        );
        assert_eq!(faults("fn the_lock() -> Whoever {"), [""; 0]);
        assert_eq!(faults("// The `the` of this: ähe."), [""; 0]);
    }
}
