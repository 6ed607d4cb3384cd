//! Settings with PostgreSQL's names: a registry, parsing and showing of values. A database has its
//! values ([`Settings`]), and a session its own on top of them ([`SessionSettings`]).
//!
//! A setting is addressed by [`SettingId`], its place in the registry. Values are kept parsed.

mod bulk;
mod calls;
mod changes;
mod configuration;
mod custom;
mod definition;
mod file_settings;
mod registry;
mod session;
#[cfg(test)]
mod tests;
mod value;

pub use bulk::{bulk_access_of, pages_of};
pub use configuration::{Configuration, ConfigurationFiles};
pub use custom::SettingName;
pub use definition::{Context, Definition, Kind, Unit};
pub use file_settings::FileSetting;
pub use registry::SETTINGS;
pub use session::SessionSettings;
pub use value::SettingValue;
pub(crate) use value::usage_limit_kb;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::error::{Result, SqlError, SqlState};

/// The version of PostgreSQL whose behaviour clients can expect, and what we are.
pub const SERVER_VERSION: &str = "15.0 (Millpond 0.1.0)";
/// The version as a number, as clients compare it.
pub const SERVER_VERSION_NUM: i64 = 150_000;
pub(crate) const SERVER_VERSION_NUM_TEXT: &str = "150000";

/// A setting, by its place in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SettingId(u16);

impl SettingId {
    /// The setting of that name, in any letter case; the error names the nearest one.
    pub fn named(name: &str) -> Result<SettingId> {
        Self::find(name).ok_or_else(|| unknown(name))
    }

    /// The setting of that name, in any letter case.
    pub fn find(name: &str) -> Option<SettingId> {
        let place = SETTINGS.iter().position(|d| d.name.eq_ignore_ascii_case(name))?;
        Some(SettingId(place as u16))
    }

    /// What the registry says about it.
    pub fn definition(self) -> &'static Definition {
        &SETTINGS[usize::from(self.0)]
    }

    /// All settings.
    pub fn all() -> impl Iterator<Item = SettingId> {
        (0..SETTINGS.len() as u16).map(SettingId)
    }

    fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The nearest of some words to one that is not among them, if any is near.
pub(crate) fn nearest<'a>(word: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    among
        .map(|candidate| {
            (strsim::damerau_levenshtein(&word, &candidate.to_ascii_lowercase()), candidate)
        })
        .filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()) / 2)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn unknown(name: &str) -> SqlError {
    let error = SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("unrecognized configuration parameter \"{name}\""),
    );
    match nearest(name, SETTINGS.iter().map(|d| d.name)) {
        Some(near) => error.hint(format!("Perhaps you meant \"{near}\".")),
        None => error,
    }
}

/// The values with which a database is opened; sessions start from them.
#[derive(Debug, Clone)]
pub struct Settings {
    values: Vec<SettingValue>,
    /// Where they come from.
    origins: Vec<Origin>,
    /// Those of which the files say something else, for the next start.
    pending: Vec<bool>,
    /// The pages of `shared_buffers` now, once it has been changed; for all sessions.
    buffers: LiveBuffers,
    /// What is in force where the value says that the database is to find one.
    in_force: Vec<(SettingId, i64)>,
    /// Where to read them from again, if they were read from files.
    files: Option<Arc<ConfigurationFiles>>,
}

/// Where a setting's value comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origin {
    /// It was not set.
    #[default]
    Default,
    /// A configuration file.
    File {
        /// Which.
        path: Arc<Path>,
        /// Where in it, from 1.
        line: u32,
    },
    /// The command line, or the program that has opened the database.
    CommandLine,
}

impl Origin {
    /// PostgreSQL's words, as `pg_settings.source` shows them.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::File { .. } => "configuration file",
            Origin::CommandLine => "command line",
        }
    }
}

/// A copy of the settings is another database's: nothing has been changed there.
#[derive(Debug, Default)]
struct LiveBuffers(Arc<AtomicI64>);

impl Clone for LiveBuffers {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Default for Settings {
    fn default() -> Self {
        let values: Vec<SettingValue> = SETTINGS
            .iter()
            .map(|d| {
                value::parse(d, d.default).unwrap_or_else(|_| SettingValue::Text(d.default.into()))
            })
            .collect();
        Settings {
            origins: vec![Origin::Default; values.len()],
            pending: vec![false; values.len()],
            values,
            buffers: LiveBuffers::default(),
            in_force: Vec::new(),
            files: None,
        }
    }
}

impl Settings {
    /// PostgreSQL's defaults (but 400 connections, and port 5433).
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a value given as text, as `--set NAME=VALUE` does. An unknown name or a bad value is an
    /// error that names the nearest valid one.
    pub fn set(&mut self, name: &str, text: &str) -> Result<()> {
        self.put(name, text, Origin::CommandLine)
    }

    /// The same, as a builder.
    pub fn with(mut self, name: &str, text: &str) -> Result<Self> {
        self.set(name, text)?;
        Ok(self)
    }

    /// The same settings, for the same database.
    fn clone_live(&self) -> Self {
        let buffers = LiveBuffers(Arc::clone(&self.buffers.0));
        Settings { buffers, ..self.clone() }
    }

    /// A value, parsed.
    pub fn value(&self, id: SettingId) -> &SettingValue {
        &self.values[id.index()]
    }

    /// The database has found a value for a setting that leaves it the choice (0), in the setting's
    /// unit. `SHOW` tells it from now on.
    pub fn found(&mut self, name: &str, value: u64) {
        if let Some(id) = SettingId::find(name) {
            self.in_force.retain(|(known, _)| *known != id);
            self.in_force.push((id, i64::try_from(value).unwrap_or(i64::MAX)));
        }
    }

    /// What a setting is in force with, if that is not its value. It has been changed for the whole
    /// database, or the database has found one.
    pub(crate) fn live(&self, id: SettingId) -> Option<SettingValue> {
        if *self.value(id) == SettingValue::Int(0) {
            let found = self.in_force.iter().find(|(known, _)| *known == id);
            return found.map(|(_, value)| SettingValue::Int(*value));
        }
        let pages = self.buffers.0.load(Ordering::Relaxed);
        (pages > 0 && id.definition().name == "shared_buffers").then_some(SettingValue::Int(pages))
    }

    /// `shared_buffers` has been changed.
    pub(crate) fn set_live_buffers(&self, pages: usize) {
        self.buffers.0.store(i64::try_from(pages).unwrap_or(0), Ordering::Relaxed);
    }

    /// A value as `SHOW` shows it.
    pub fn show(&self, name: &str) -> Result<String> {
        let id = SettingId::named(name)?;
        let live = self.live(id);
        Ok(value::show(id.definition(), live.as_ref().unwrap_or_else(|| self.value(id))))
    }

    /// A size in bytes (`shared_buffers`, `max_wal_size`, ...); 0 for what has none.
    pub fn bytes(&self, name: &str) -> u64 {
        self.in_smallest_unit(name)
    }

    /// A time (`checkpoint_timeout`, `deadlock_timeout`, ...); zero for what has none.
    pub fn duration(&self, name: &str) -> std::time::Duration {
        std::time::Duration::from_micros(self.in_smallest_unit(name))
    }

    /// A plain number.
    pub fn int(&self, name: &str) -> i64 {
        SettingId::find(name).map_or(0, |id| self.value(id).as_int())
    }

    /// A real number.
    pub fn real(&self, name: &str) -> f64 {
        SettingId::find(name).map_or(0.0, |id| self.value(id).as_real())
    }

    /// A switch.
    pub fn bool(&self, name: &str) -> bool {
        SettingId::find(name).is_some_and(|id| self.value(id).as_bool())
    }

    /// A text or word.
    pub fn text(&self, name: &str) -> &str {
        SettingId::find(name).map_or("", |id| self.value(id).as_text())
    }

    fn in_smallest_unit(&self, name: &str) -> u64 {
        let Some(id) = SettingId::find(name) else { return 0 };
        let unit = match id.definition().kind {
            Kind::Int(_, _, unit) | Kind::Real(_, _, unit) => unit,
            _ => return 0,
        };
        let factor = unit.family().map_or(1, |(_, factor)| factor);
        match self.value(id) {
            SettingValue::Real(real) => (real * factor as f64) as u64,
            other => u64::try_from(other.as_int().saturating_mul(factor)).unwrap_or(0),
        }
    }
}

pub(crate) fn cannot_be_changed(definition: &Definition) -> SqlError {
    let name = definition.name;
    let message = match definition.context {
        Context::Internal => format!("parameter \"{name}\" cannot be changed"),
        Context::Postmaster => {
            format!("parameter \"{name}\" cannot be changed without restarting the server")
        }
        _ => format!("parameter \"{name}\" cannot be changed now"),
    };
    SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message)
}
