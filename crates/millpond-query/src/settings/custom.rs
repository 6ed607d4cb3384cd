//! Settings of applications: names with a point, such as `app.user`, with any text as their value.
//!
//! They are the session's alone. One is there from the first time that it is set, and then stays:
//! where its value is taken back, it is empty.

use std::collections::BTreeMap;

use smol_str::SmolStr;

use super::changes::Changes;
use super::{SettingId, SettingValue, unknown};
use crate::error::{Result, SqlError, SqlState};

/// What all of a session's may take, names included, and what one statement may set.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// What a setting is known as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingName {
    /// It is one of the registry.
    Registered(SettingId),
    /// It is an application's, in lower case.
    Custom(SmolStr),
}

impl SettingName {
    /// The setting of a name, in any letter case. An application's need not have been set.
    pub fn of(name: &str) -> Result<Self> {
        if let Some(id) = SettingId::find(name) {
            return Ok(SettingName::Registered(id));
        }
        if !name.contains('.') {
            return Err(unknown(name));
        }
        Ok(SettingName::Custom(name.to_ascii_lowercase().into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        match self {
            SettingName::Registered(id) => id.definition().name,
            SettingName::Custom(name) => name,
        }
    }
}

pub(super) fn too_many_bytes() -> SqlError {
    let message = "settings of applications take more than 16 MB";
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

impl From<SettingId> for SettingName {
    fn from(id: SettingId) -> Self {
        SettingName::Registered(id)
    }
}

fn is_identifier(part: &str) -> bool {
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80;
    let is_next = |byte: u8| is_start(byte) || byte.is_ascii_digit() || byte == b'$';
    part.bytes().next().is_some_and(is_start) && part.bytes().all(is_next)
}

/// A session's settings of applications.
#[derive(Debug, Clone, Default)]
pub(super) struct CustomSettings {
    /// `None`: it is there, and has no value.
    values: BTreeMap<SmolStr, Option<SettingValue>>,
    /// What the client's start-up packet has set.
    given: BTreeMap<SmolStr, SettingValue>,
    changes: Changes<SmolStr>,
}

impl CustomSettings {
    /// The value of one that is there.
    pub(super) fn show(&self, name: &str) -> Option<&str> {
        Some(self.values.get(name)?.as_ref().map_or("", SettingValue::as_text))
    }

    /// The value of a text; without one, that of the start-up packet.
    pub(super) fn value(&self, name: &str, text: Option<&str>) -> Result<Option<SettingValue>> {
        if !name.split('.').all(is_identifier) {
            return Err(SqlError::new(
                SqlState::INVALID_NAME,
                format!("invalid configuration parameter name \"{name}\""),
            )
            .detail(
                "Custom parameter names must be two or more simple identifiers separated by dots.",
            ));
        }
        let Some(text) = text else { return Ok(self.given.get(name).cloned()) };
        let own = |(name, value): (&SmolStr, &Option<SettingValue>)| {
            name.len() + value.as_ref().map_or(0, |value| value.as_text().len())
        };
        let others = self.values.iter().filter(|(other, _)| other.as_str() != name);
        let bytes = others.map(own).sum::<usize>() + name.len() + text.len();
        if bytes > MOST_BYTES {
            return Err(too_many_bytes());
        }
        Ok(Some(SettingValue::Text(text.into())))
    }

    pub(super) fn set(&mut self, name: &SmolStr, new: Option<SettingValue>, local: bool) {
        let before = self.values.get(name).and_then(Option::as_ref);
        self.changes.note(name.clone(), before, new.as_ref(), local);
        self.values.insert(name.clone(), new);
    }

    pub(super) fn set_at_start(&mut self, name: SmolStr, value: SettingValue) {
        self.values.insert(name.clone(), Some(value.clone()));
        self.given.insert(name, value);
    }

    pub(super) fn reset_all(&mut self) {
        let names: Vec<SmolStr> = self.values.keys().cloned().collect();
        for name in names {
            let given = self.given.get(&name).cloned();
            self.set(&name, given, false);
        }
    }

    pub(super) fn end_transaction(&mut self, committed: bool) {
        // Most transactions change none.
        if !self.changes.is_empty() {
            self.values.extend(self.changes.end(committed));
        }
    }
}
