//! The start-up parameter `options`: switches of PostgreSQL's server, as `PGOPTIONS` and drivers
//! send them. Those that set a setting have a meaning here: `-c name=value` and `--name=value`.

use millpond::{Result, SqlError, SqlState};

/// The settings of a start-up packet, with those that `options` holds in front of the others.
pub(super) fn settings(sent: Vec<(String, String)>) -> Result<Vec<(String, String)>> {
    let (options, others): (Vec<_>, Vec<_>) =
        sent.into_iter().partition(|(name, _)| name == "options");
    let mut settings = Vec::with_capacity(others.len());
    for (_, options) in options {
        let mut words = words(&options).into_iter();
        while let Some(word) = words.next() {
            settings.push(setting(&word, &mut words)?);
        }
    }
    settings.extend(others);
    Ok(settings)
}

/// The words of a text. A backslash makes the next character, also a space, a part of a word.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The setting of a switch, which may go on in the next word.
fn setting(word: &str, more: &mut impl Iterator<Item = String>) -> Result<(String, String)> {
    let (shown, assignment) = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
        (Some(rest), _) if !rest.is_empty() => (format!("--{rest}"), rest.to_owned()),
        (_, Some("")) => match more.next() {
            Some(next) => (format!("-c {next}"), next),
            None => return Err(invalid("invalid command-line argument for server process: -c")),
        },
        (_, Some(rest)) => (format!("-c {rest}"), rest.to_owned()),
        _ => {
            let message = format!("invalid command-line argument for server process: {word}");
            return Err(invalid(message));
        }
    };
    match assignment.split_once('=') {
        Some((name, value)) => Ok((name.replace('-', "_"), value.to_owned())),
        None => Err(invalid(format!("{shown} requires a value"))),
    }
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::fatal(SqlState::SYNTAX_ERROR, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &str) -> Result<Vec<(String, String)>> {
        settings(vec![
            ("application_name".to_owned(), "a".to_owned()),
            ("options".to_owned(), options.to_owned()),
        ])
    }

    fn own(options: &str) -> Vec<(String, String)> {
        let mut settings = of(options).unwrap();
        assert_eq!(settings.pop(), Some(("application_name".to_owned(), "a".to_owned())));
        settings
    }

    #[test]
    fn switches_are_settings() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(own(""), []);
        assert_eq!(
            own(" -c work_mem=1MB\t-cjit=off "),
            [pair("work_mem", "1MB"), pair("jit", "off")]
        );
        assert_eq!(own("--statement-timeout=5s"), [pair("statement_timeout", "5s")]);
        assert_eq!(own(r"-c application_name=a\ b\\c="), [pair("application_name", r"a b\c=")]);
        assert_eq!(own("-c search_path="), [pair("search_path", "")]);
    }

    #[test]
    fn other_switches_are_refused() {
        for (options, message) in [
            ("-c", "invalid command-line argument for server process: -c"),
            ("-c work_mem", "-c work_mem requires a value"),
            ("--work-mem", "--work-mem requires a value"),
            ("-F", "invalid command-line argument for server process: -F"),
            ("work_mem=1MB", "invalid command-line argument for server process: work_mem=1MB"),
            ("--", "invalid command-line argument for server process: --"),
        ] {
            let error = of(options).unwrap_err();
            assert_eq!((error.sqlstate, &*error.message), (SqlState::SYNTAX_ERROR, message));
        }
    }
}
