//! The files of settings, and the command line: what they say of which setting.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::{Origin, Settings, value};
use crate::error::{Result, SqlError, SqlState};

/// The configuration file that is read if none is named.
pub(super) const CONFIG_FILE: &str = "millpond.conf";

/// The file that `ALTER SYSTEM` writes.
pub(super) const AUTO_FILE: &str = "postgresql.auto.conf";

/// What is set where.
#[derive(Debug, Clone)]
pub(in crate::settings) struct Entry {
    pub(in crate::settings) name: String,
    pub(in crate::settings) text: String,
    pub(in crate::settings) path: Arc<Path>,
    pub(in crate::settings) line: u32,
}

impl Entry {
    pub(super) fn origin(&self) -> Origin {
        Origin::File { path: Arc::clone(&self.path), line: self.line }
    }

    /// Says where an error is.
    pub(super) fn at(&self, error: SqlError) -> SqlError {
        match error.context {
            Some(_) => error,
            None => error.context(place(&self.path, self.line)),
        }
    }
}

pub(super) fn place(path: &Path, line: u32) -> String {
    format!("line {line} of configuration file \"{}\"", path.display())
}

/// Where a server's settings come from.
#[derive(Debug, Clone)]
pub struct ConfigurationFiles {
    /// Named on the command line, so it has to be there.
    named: Option<PathBuf>,
    pub(super) data: PathBuf,
    /// What the command line says.
    command_line: Vec<(String, String)>,
}

impl ConfigurationFiles {
    /// Those of a data directory; `named` is read instead of its `millpond.conf`, `command_line`
    /// goes before both.
    pub fn new(
        data: &Path,
        named: Option<PathBuf>,
        command_line: Vec<(String, String)>,
    ) -> ConfigurationFiles {
        let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
        ConfigurationFiles { named, data, command_line }
    }

    /// The settings for a start. Any mistake is an error.
    pub fn read(self) -> Result<Settings> {
        let mut settings = Settings::default();
        for entry in self.entries()? {
            settings.put(&entry.name, &entry.text, entry.origin()).map_err(|e| entry.at(e))?;
        }
        for (name, text) in &self.command_line {
            settings.put(name, text, Origin::CommandLine)?;
        }
        settings.files = Some(Arc::new(self));
        Ok(settings)
    }

    /// The configuration file and what `ALTER SYSTEM` writes, in the order in which they are read.
    pub(in crate::settings) fn all_paths(&self) -> [PathBuf; 2] {
        let first = self.named.clone().unwrap_or_else(|| self.data.join(CONFIG_FILE));
        [first, self.data.join(AUTO_FILE)]
    }

    /// Whether the configuration file is named on the command line, so that it has to be there.
    pub(in crate::settings) fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// Whether the command line sets it.
    pub(in crate::settings) fn is_on_command_line(&self, setting: &str) -> bool {
        self.command_line.iter().any(|(name, _)| name.eq_ignore_ascii_case(setting))
    }

    /// What the files say, in order: the last one of a name counts.
    pub(super) fn entries(&self) -> Result<Vec<Entry>> {
        let [first, auto] = self.all_paths();
        let mut entries =
            if self.is_named() { parse(&first, &read(&first)?)? } else { optional(&first)? };
        entries.extend(optional(&auto)?);
        Ok(entries)
    }
}

pub(in crate::settings) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| {
        let path = path.display();
        SqlError::new(
            SqlState::CONFIG_FILE_ERROR,
            format!("could not read configuration file \"{path}\": {error}"),
        )
    })
}

pub(super) fn optional(path: &Path) -> Result<Vec<Entry>> {
    if path.exists() { parse(path, &read(path)?) } else { Ok(Vec::new()) }
}

pub(in crate::settings) fn parse(path: &Path, text: &str) -> Result<Vec<Entry>> {
    let path: Arc<Path> = path.into();
    let mut entries = Vec::new();
    for (number, line) in (1u32..).zip(text.lines()) {
        let at_line = |error: SqlError| error.context(place(&path, number));
        if let Some((name, text)) = value::parse_config_line(line).map_err(at_line)? {
            entries.push(Entry { name, text, path: Arc::clone(&path), line: number });
        }
    }
    Ok(entries)
}
