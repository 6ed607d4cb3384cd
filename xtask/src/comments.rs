//! Checks comments: at most 100 columns, and "it" for threads, sessions and pages.

use std::fs;

use crate::run::{Failed, command};

/// The most columns of a line.
const COLUMNS: usize = 100;
/// Words for persons. A comment names an actor: the session, the kernel, the caller.
const PERSONS: &[&str] = &["he", "him", "himself", "his", "whoever"];

/// Fails if a comment of a Rust file is too wide or uses a word for persons.
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
    let comment = line.trim_start();
    if !comment.starts_with("//") {
        return Vec::new();
    }
    let columns = line.chars().count();
    let wide = (columns > COLUMNS).then(|| format!("{columns} columns, at most {COLUMNS}"));
    let words = comment.split(|c: char| !c.is_alphanumeric() && c != '_');
    let persons = words.filter(|word| PERSONS.contains(&word.to_lowercase().as_str()));
    wide.into_iter().chain(persons.map(|word| format!("\"{word}\": say what it is"))).collect()
}

#[cfg(test)]
mod tests {
    use super::faults;

    #[test]
    fn wide_comments_and_persons_are_found() {
        assert_eq!(faults(&format!("    // {}", "x".repeat(93))), [""; 0]);
        assert_eq!(faults(&format!("    // {}", "x".repeat(94))), ["101 columns, at most 100"]);
        assert_eq!(faults("/// Whoever waits."), ["\"Whoever\": say what it is"]);
        assert_eq!(faults("let he = \"whoever\";"), [""; 0]);
        assert_eq!(faults("// The `the` of this: ähe."), [""; 0]);
    }
}
