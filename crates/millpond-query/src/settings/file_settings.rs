//! What the configuration files say at this moment, line by line, and whether a reload would apply
//! it: the view `pg_file_settings`. Nothing is applied here, and nothing goes to the log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::configuration::{Configuration, ConfigurationFiles, read};
use super::definition::Context;
use super::{SettingId, Settings, value};

/// One line of a configuration file that sets something, or that has a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSetting {
    /// The file.
    pub path: Arc<Path>,
    /// Where in it, from 1; 0 for a file that can't be read.
    pub line: u32,
    /// The setting's name, if the line has one.
    pub name: Option<String>,
    /// The value.
    pub setting: Option<String>,
    /// Whether a reload applies it.
    pub applied: bool,
    /// Why not, in PostgreSQL's words. A line that a later one replaces has none.
    pub error: Option<String>,
}

const SYNTAX: &str = "syntax error";
const NOT_APPLIED: &str = "setting could not be applied";

impl Configuration {
    /// The lines of the configuration files, in order. None if the database has no such files.
    pub fn file_settings(&self) -> Vec<FileSetting> {
        let running = self.current();
        let Some(files) = running.files.as_deref() else { return Vec::new() };
        let mut lines: Vec<FileSetting> = files.paths().into_iter().flat_map(lines_of).collect();
        // A reload applies nothing of files with such a mistake.
        let is_refused = lines.iter().any(|line| line.error.is_some());
        for at in 0..lines.len() {
            let is_last = !lines[at + 1..].iter().any(|later| is_same(later, &lines[at]));
            let line = &mut lines[at];
            if line.error.is_none() && is_last {
                line.error = refusal(line, files, &running);
                line.applied = line.error.is_none() && !is_refused;
            }
        }
        lines
    }
}

impl ConfigurationFiles {
    /// The files that there are, and the one that has to be there.
    fn paths(&self) -> Vec<PathBuf> {
        let [first, auto] = self.all_paths();
        let is_named = self.is_named();
        let first = Some(first).filter(|path| is_named || path.exists());
        first.into_iter().chain(Some(auto).filter(|path| path.exists())).collect()
    }
}

fn is_same(one: &FileSetting, other: &FileSetting) -> bool {
    match (&one.name, &other.name) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        _ => false,
    }
}

fn lines_of(path: PathBuf) -> Vec<FileSetting> {
    let path: Arc<Path> = path.into();
    let line = |line, name, setting, error: Option<&str>| FileSetting {
        path: Arc::clone(&path),
        line,
        name,
        setting,
        applied: false,
        error: error.map(str::to_owned),
    };
    let text = match read(&path) {
        Ok(text) => text,
        Err(error) => return vec![line(0, None, None, Some(&error.message))],
    };
    let parsed = (1u32..).zip(text.lines()).filter_map(|(number, text)| {
        Some(match value::parse_config_line(text) {
            Ok(None) => return None,
            Ok(Some((name, _))) if name.is_empty() => line(number, None, None, Some(SYNTAX)),
            Err(_) => line(number, None, None, Some(SYNTAX)),
            Ok(Some((name, setting))) => {
                let error = match SettingId::find(&name) {
                    Some(_) => None,
                    None => Some("unrecognized configuration parameter"),
                };
                line(number, Some(name), Some(setting), error)
            }
        })
    });
    parsed.collect()
}

/// Why a reload does not apply a line, whatever the others say.
fn refusal(line: &FileSetting, files: &ConfigurationFiles, running: &Settings) -> Option<String> {
    let (name, setting) = (line.name.as_deref()?, line.setting.as_deref()?);
    let id = SettingId::find(name)?;
    let definition = id.definition();
    // The command line has the last word, which is no mistake of the file's.
    if files.is_on_command_line(definition.name) {
        return None;
    }
    let is_applied = match value::parse(definition, setting) {
        Err(_) => false,
        Ok(new) => match definition.context {
            Context::Internal => false,
            Context::Postmaster | Context::Database => *running.value(id) == new,
            Context::Sighup | Context::Superuser | Context::User => true,
        },
    };
    (!is_applied).then(|| NOT_APPLIED.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The lines of these files, for a server that was started with others: name, value, applied,
    /// error.
    fn lines(config: &str, auto: &str) -> Vec<(Option<String>, bool, Option<String>)> {
        let data = tempfile::tempdir().unwrap();
        let command_line = vec![("port".to_owned(), "7000".to_owned())];
        let files = ConfigurationFiles::new(data.path(), None, command_line);
        let configuration = Configuration::new(files.read().unwrap());
        fs::write(data.path().join("millpond.conf"), config).unwrap();
        fs::write(data.path().join("postgresql.auto.conf"), auto).unwrap();
        let lines = configuration.file_settings();
        lines.into_iter().map(|line| (line.name, line.applied, line.error)).collect()
    }

    fn line(name: &str, applied: bool, error: &str) -> (Option<String>, bool, Option<String>) {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        (text(name), applied, text(error))
    }

    #[test]
    fn the_last_line_of_a_name_is_applied() {
        let found = lines("work_mem = 1MB\n# nothing\nport = 1\n", "WORK_MEM = '2MB'\n");
        let expected =
            [line("work_mem", false, ""), line("port", true, ""), line("WORK_MEM", true, "")];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_wrong_value_or_one_for_a_start_is_not_applied_and_others_are() {
        let found = lines("work_mem = lots\nmax_connections = 7\nlock_timeout = 1s\n", "");
        let expected = [
            line("work_mem", false, NOT_APPLIED),
            line("max_connections", false, NOT_APPLIED),
            line("lock_timeout", true, ""),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn nothing_is_applied_of_a_file_with_a_mistake() {
        let unknown = "unrecognized configuration parameter";
        let found = lines("work_memm = 1MB\nwork_mem = 1MB\n= 3\n", "lock_timeout = '1s'\n");
        let expected = [
            line("work_memm", false, unknown),
            line("work_mem", false, ""),
            line("", false, SYNTAX),
            line("lock_timeout", false, ""),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_database_without_files_has_no_lines() {
        assert_eq!(Configuration::new(Settings::default()).file_settings(), []);
    }
}
