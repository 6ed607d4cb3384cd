//! What a transaction has changed of a session's settings.
//!
//! `SET` in a transaction is taken back when the transaction aborts, `SET LOCAL` when it ends in
//! any way. For that, the first change of a setting in a transaction remembers the value before.
//! `SET` remembers what has to stay after a commit, since a `SET LOCAL` may follow.

use super::SettingValue;

/// The changes, by what a setting is known as.
#[derive(Debug, Clone)]
pub(super) struct Changes<K>(Vec<Changed<K>>);

/// One setting that the running transaction has changed. `None` is the value without the session's.
#[derive(Debug, Clone)]
struct Changed<K> {
    setting: K,
    before: Option<SettingValue>,
    after_commit: Option<SettingValue>,
}

impl<K> Default for Changes<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq> Changes<K> {
    /// A setting gets a new value.
    pub(super) fn note(
        &mut self,
        setting: K,
        before: Option<&SettingValue>,
        new: Option<&SettingValue>,
        local: bool,
    ) {
        match self.0.iter_mut().find(|change| change.setting == setting) {
            Some(change) if !local => change.after_commit = new.cloned(),
            Some(_) => {}
            None => {
                let after_commit = if local { before } else { new }.cloned();
                self.0.push(Changed { setting, before: before.cloned(), after_commit });
            }
        }
    }

    /// The transaction has ended: the values that the settings have from now on.
    pub(super) fn end(
        &mut self,
        committed: bool,
    ) -> impl Iterator<Item = (K, Option<SettingValue>)> + use<K> {
        std::mem::take(&mut self.0).into_iter().map(move |change| {
            let last = if committed { change.after_commit } else { change.before };
            (change.setting, last)
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
