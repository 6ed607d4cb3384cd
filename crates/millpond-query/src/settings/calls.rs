//! What functions change of a session while a statement runs: settings (`set_config`), and the
//! state of its random numbers (`setseed`).
//!
//! A statement sees settings as a shared reference, so what it sets is kept here until it ends.

use std::cell::{Cell, RefCell};

use super::custom::{MOST_BYTES, too_many_bytes};
use super::session::SessionSettings;
use super::{SettingId, SettingName, SettingValue, value};
use crate::error::{Result, SqlError, SqlState};

/// A setting that the running statement has set.
#[derive(Debug, Clone)]
pub struct Call {
    pub name: SettingName,
    /// `None` is the default.
    pub text: Option<String>,
    /// Until the transaction ends.
    pub local: bool,
    value: Option<SettingValue>,
}

/// What functions have changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    settings: RefCell<Vec<Call>>,
    /// How long the texts of these are.
    bytes: Cell<usize>,
    random: Cell<Option<[u64; 2]>>,
}

impl SessionSettings {
    /// `set_config(name, text, local)`: the new value as `SHOW` shows it.
    pub(crate) fn call_set(&self, name: &str, text: Option<&str>, local: bool) -> Result<String> {
        let name = SettingName::of(name)?;
        let value = match &name {
            SettingName::Registered(id) => self.called_value(*id, text)?,
            SettingName::Custom(name) => self.custom.value(name, text)?,
        };
        let bytes = self.calls.bytes.get() + name.as_str().len() + text.map_or(0, str::len);
        if bytes > MOST_BYTES {
            return Err(too_many_bytes());
        }
        self.calls.bytes.set(bytes);
        let call = Call { name: name.clone(), text: text.map(str::to_owned), local, value };
        self.calls.settings.borrow_mut().push(call);
        self.show_called(&name)
    }

    fn called_value(&self, id: SettingId, text: Option<&str>) -> Result<Option<SettingValue>> {
        let name = id.definition().name;
        if matches!(name, "transaction_isolation" | "transaction_read_only" | "shared_buffers") {
            return Err(SqlError::unsupported(format!("set_config of {name}")));
        }
        if name == "default_transaction_isolation" && text == Some("serializable") {
            return Err(SqlError::unsupported("isolation level SERIALIZABLE"));
        }
        text.map(|text| self.check(id, text)).transpose()
    }

    /// A setting as the running statement sees it.
    pub(crate) fn show_called(&self, name: &SettingName) -> Result<String> {
        let calls = self.calls.settings.borrow();
        let Some(call) = calls.iter().rev().find(|call| call.name == *name) else {
            return self.show_named(name);
        };
        Ok(match (name, &call.value) {
            (SettingName::Registered(id), Some(own)) => value::show(id.definition(), own),
            (SettingName::Registered(id), None) => {
                value::show(id.definition(), self.default_of(*id))
            }
            (SettingName::Custom(_), own) => {
                own.as_ref().map_or("", SettingValue::as_text).to_owned()
            }
        })
    }

    /// Whether the last statement has set anything.
    #[inline]
    pub fn has_calls(&mut self) -> bool {
        !self.calls.settings.get_mut().is_empty()
    }

    /// What the last statement has set.
    pub fn take_calls(&mut self) -> Vec<Call> {
        self.calls.bytes.set(0);
        self.calls.settings.take()
    }

    /// `setseed(seed)`
    pub(crate) fn seed_random(&self, seed: f64) -> Result<()> {
        if !(-1.0..=1.0).contains(&seed) {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("setseed parameter {} is out of allowed range [-1,1]", shown(seed)),
            ));
        }
        // 52 bits and the sign.
        let mut state = ((((1u64 << 52) - 1) as f64 * seed) as i64).cast_unsigned();
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            split_mix(state)
        };
        self.calls.random.set(Some([next(), next()]));
        Ok(())
    }

    /// A random number in [0, 1); `None` if there is no seed.
    pub(crate) fn seeded_random(&self) -> Option<f64> {
        let [a, b] = self.calls.random.get()?;
        // xoroshiro128**
        let bits = a.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let mixed = a ^ b;
        self.calls
            .random
            .set(Some([a.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37)]));
        Some((bits >> 12) as f64 / (1u64 << 52) as f64)
    }
}

/// SplitMix64's output.
fn split_mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A float as C's `%g` prints it, about.
fn shown(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() };
    }
    let rounded = format!("{number:.5e}");
    rounded.parse::<f64>().map_or(rounded, |number| number.to_string())
}
