//! A session's settings: what it has set on top of the database's, with PostgreSQL's transactional
//! rules ([`changes`](super::changes)).

use std::sync::Arc;
use std::time::Duration;

use millpond_engine::BulkAccess;
use millpond_engine::transam::CommitDelay;

use super::bulk::bulk_access_of;
use super::changes::Changes;
use super::custom::{CustomSettings, SettingName};
use super::{
    Configuration, Origin, SettingId, SettingValue, Settings, cannot_be_changed, unknown, value,
};
use crate::error::Result;
use crate::types::{DateStyle, FormatOptions, IntervalStyle, Zone};

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    base: Arc<Settings>,
    /// The configuration's when `base` was taken from it.
    generation: u64,
    own: Vec<Option<SettingValue>>,
    /// What the client's start-up packet has set: RESET leads back to it.
    given: Vec<(SettingId, SettingValue)>,
    changes: Changes<SettingId>,
    pub(super) custom: CustomSettings,
    to_report: Vec<SettingId>,
    hot: Hot,
    // The engine's session has not been told of `hot` as it is now.
    news: bool,
    pub(super) calls: super::calls::Calls,
}

/// Values that statements look at, kept ready.
#[derive(Debug, Clone, Copy)]
struct Hot {
    statement_timeout: Option<Duration>,
    idle_in_transaction_session_timeout: Option<Duration>,
    lock_timeout: Option<Duration>,
    deadlock_timeout: Duration,
    synchronous_commit: bool,
    commit_delay: CommitDelay,
    default_read_only: bool,
    default_isolation_is_plain: bool,
    standard_strings: bool,
    format: FormatOptions,
    bulk_access: BulkAccess,
}

impl SessionSettings {
    /// A new session's.
    pub fn new(base: Arc<Settings>) -> Self {
        let own = vec![None; super::SETTINGS.len()];
        let hot = Hot {
            statement_timeout: None,
            idle_in_transaction_session_timeout: None,
            lock_timeout: None,
            deadlock_timeout: Duration::from_secs(1),
            synchronous_commit: true,
            commit_delay: CommitDelay::default(),
            default_read_only: false,
            default_isolation_is_plain: true,
            standard_strings: true,
            format: FormatOptions::default(),
            bulk_access: BulkAccess::default(),
        };
        let mut settings = SessionSettings {
            base,
            generation: 0,
            own,
            given: Vec::new(),
            changes: Changes::default(),
            custom: CustomSettings::default(),
            to_report: Vec::new(),
            hot,
            news: true,
            calls: super::calls::Calls::default(),
        };
        settings.refresh();
        settings
    }

    /// A new session's of a database that is open.
    pub fn of(configuration: &Configuration) -> Self {
        // A change in between is followed once more.
        let generation = configuration.generation();
        SessionSettings { generation, ..Self::new(configuration.current()) }
    }

    /// Takes over what has become of the database's settings, if anything.
    #[inline]
    pub fn follow(&mut self, configuration: &Configuration) {
        if configuration.generation() != self.generation {
            self.take_over(configuration);
        }
    }

    #[cold]
    fn take_over(&mut self, configuration: &Configuration) {
        self.generation = configuration.generation();
        let base = configuration.current();
        for id in SettingId::all() {
            let is_new = self.own[id.index()].is_none() && base.value(id) != self.base.value(id);
            if is_new && id.definition().report && !self.to_report.contains(&id) {
                self.to_report.push(id);
            }
        }
        self.base = base;
        self.refresh();
    }

    /// Whether the session has set it.
    pub fn is_own(&self, id: SettingId) -> bool {
        self.own[id.index()].is_some()
    }

    /// Where the database's value comes from.
    pub fn origin(&self, id: SettingId) -> Origin {
        self.base.origin(id).clone()
    }

    /// Whether the configuration files have another value, for the next start.
    pub fn is_pending(&self, id: SettingId) -> bool {
        self.base.is_pending(id)
    }

    /// A value.
    pub fn value(&self, id: SettingId) -> &SettingValue {
        self.own[id.index()].as_ref().unwrap_or_else(|| self.base.value(id))
    }

    /// A value as `SHOW` shows it.
    pub fn show(&self, id: SettingId) -> String {
        match self.base.live(id) {
            Some(live) => value::show(id.definition(), &live),
            None => value::show(id.definition(), self.value(id)),
        }
    }

    /// The same of a setting by its name, which an application's has once it was set.
    pub fn show_named(&self, name: &SettingName) -> Result<String> {
        match name {
            SettingName::Registered(id) => Ok(self.show(*id)),
            SettingName::Custom(name) => {
                self.custom.show(name).map(str::to_owned).ok_or_else(|| unknown(name))
            }
        }
    }

    /// A text or word by name.
    pub fn text(&self, name: &str) -> &str {
        SettingId::find(name).map_or("", |id| self.value(id).as_text())
    }

    /// A number by name.
    pub fn int(&self, name: &str) -> i64 {
        SettingId::find(name).map_or(0, |id| self.value(id).as_int())
    }

    /// A real number by name.
    pub fn real(&self, name: &str) -> f64 {
        SettingId::find(name).map_or(0.0, |id| self.value(id).as_real())
    }

    /// A switch by name.
    pub fn bool(&self, name: &str) -> bool {
        SettingId::find(name).is_some_and(|id| self.value(id).as_bool())
    }

    /// `statement_timeout`, unless it is 0.
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.hot.statement_timeout
    }

    /// `idle_in_transaction_session_timeout`, unless it is 0.
    pub fn idle_in_transaction_session_timeout(&self) -> Option<Duration> {
        self.hot.idle_in_transaction_session_timeout
    }

    /// `lock_timeout`, unless it is 0.
    pub fn lock_timeout(&self) -> Option<Duration> {
        self.hot.lock_timeout
    }

    /// `deadlock_timeout`.
    pub fn deadlock_timeout(&self) -> Duration {
        self.hot.deadlock_timeout
    }

    /// Whether a commit waits for the log.
    pub fn synchronous_commit(&self) -> bool {
        self.hot.synchronous_commit
    }

    /// `commit_delay` and `commit_siblings`.
    pub fn commit_delay(&self) -> CommitDelay {
        self.hot.commit_delay
    }

    /// `default_transaction_read_only`.
    pub fn default_read_only(&self) -> bool {
        self.hot.default_read_only
    }

    /// Whether `default_transaction_isolation` has the value that it has if nothing sets it.
    pub fn default_isolation_is_plain(&self) -> bool {
        self.hot.default_isolation_is_plain
    }

    /// `standard_conforming_strings`.
    pub fn standard_strings(&self) -> bool {
        self.hot.standard_strings
    }

    /// How bulk work uses the buffer pool.
    pub fn bulk_access(&self) -> BulkAccess {
        self.hot.bulk_access
    }

    /// `work_mem` in bytes, and `hash_mem_multiplier`.
    pub fn work_mem(&self) -> (usize, f64) {
        let kilobytes = usize::try_from(self.int("work_mem")).unwrap_or(0);
        (kilobytes.saturating_mul(1024), self.real("hash_mem_multiplier"))
    }

    /// `temp_file_limit`; `None`: there is none.
    pub fn temp_file_limit_kb(&self) -> Option<u64> {
        u64::try_from(self.int("temp_file_limit")).ok()
    }

    /// What the text of values depends on.
    pub fn format_options(&self) -> &FormatOptions {
        &self.hot.format
    }

    /// Sets a value as the client's start-up packet does: for the whole session.
    pub fn set_at_start(&mut self, name: &str, text: &str) -> Result<()> {
        let id = match SettingName::of(name)? {
            SettingName::Registered(id) => id,
            SettingName::Custom(name) => {
                if let Some(value) = self.custom.value(&name, Some(text))? {
                    self.custom.set_at_start(name, value);
                }
                return Ok(());
            }
        };
        let parsed = self.check(id, text)?;
        self.own[id.index()] = Some(parsed.clone());
        self.given.retain(|(other, _)| *other != id);
        self.given.push((id, parsed));
        self.refresh();
        Ok(())
    }

    /// The value of the client's start-up packet.
    fn given(&self, id: SettingId) -> Option<&SettingValue> {
        self.given.iter().find(|(given, _)| *given == id).map(|(_, value)| value)
    }

    /// Checks a value of `shared_buffers`: in pages. `None` is what the database was opened with.
    pub fn buffers_wanted(&self, text: Option<&str>) -> Result<usize> {
        let id = SettingId::named("shared_buffers")?;
        let wanted = match text {
            Some(text) => value::parse(id.definition(), text)?.as_int(),
            None => self.base.value(id).as_int(),
        };
        Ok(usize::try_from(wanted).unwrap_or(0))
    }

    /// `shared_buffers` has been changed, for all sessions.
    pub fn set_live_buffers(&self, pages: usize) {
        self.base.set_live_buffers(pages);
    }

    /// `SET [LOCAL] name = text`; `None` is DEFAULT.
    pub fn set(&mut self, name: &SettingName, text: Option<&str>, local: bool) -> Result<()> {
        let id = match name {
            SettingName::Registered(id) => *id,
            SettingName::Custom(name) => {
                let new = self.custom.value(name, text)?;
                self.custom.set(name, new, local);
                return Ok(());
            }
        };
        let new = match text {
            Some(text) => Some(self.check(id, text)?),
            None if id.definition().context.is_of_session() => self.given(id).cloned(),
            None => return Err(cannot_be_changed(id.definition())),
        };
        self.assign(id, new, local);
        Ok(())
    }

    /// `RESET ALL`.
    pub fn reset_all(&mut self) {
        for id in SettingId::all() {
            if self.own[id.index()].is_some() && !id.definition().name.starts_with("transaction_") {
                let given = self.given(id).cloned();
                self.assign(id, given, false);
            }
        }
        self.custom.reset_all();
    }

    /// The transaction has ended: take back what does not last.
    pub fn end_transaction(&mut self, committed: bool) {
        self.custom.end_transaction(committed);
        if self.changes.is_empty() {
            return;
        }
        for (id, value) in self.changes.end(committed) {
            self.put(id, value);
        }
        self.refresh();
    }

    /// Settings that clients are told about and that have changed since the last call.
    pub fn take_reports(&mut self) -> Vec<SettingId> {
        std::mem::take(&mut self.to_report)
    }

    /// Whether there is anything to report.
    pub fn has_reports(&self) -> bool {
        !self.to_report.is_empty()
    }

    /// The value that RESET leads to.
    pub(super) fn default_of(&self, id: SettingId) -> &SettingValue {
        self.given(id).unwrap_or_else(|| self.base.value(id))
    }

    pub(super) fn check(&self, id: SettingId, text: &str) -> Result<SettingValue> {
        let definition = id.definition();
        if !definition.context.is_of_session() {
            return Err(cannot_be_changed(definition));
        }
        if definition.name == "DateStyle" {
            // What the text leaves open stays as it is.
            let style = |value: &SettingValue| DateStyle::named(value.as_text());
            return value::parse_date_style(
                text,
                style(self.value(id)),
                style(self.default_of(id)),
            );
        }
        value::parse(definition, text)
    }

    fn assign(&mut self, id: SettingId, new: Option<SettingValue>, local: bool) {
        self.changes.note(id, self.own[id.index()].as_ref(), new.as_ref(), local);
        self.put(id, new);
        self.refresh();
    }

    fn put(&mut self, id: SettingId, new: Option<SettingValue>) {
        let differs = new.as_ref().unwrap_or_else(|| self.base.value(id)) != self.value(id);
        if differs && id.definition().report && !self.to_report.contains(&id) {
            self.to_report.push(id);
        }
        self.own[id.index()] = new;
    }

    /// Whether there is something new for the engine's session to know; once.
    #[inline]
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// The engine's session has been told something else for the time being.
    pub fn make_news(&mut self) {
        self.news = true;
    }

    fn refresh(&mut self) {
        self.news = true;
        let millis = |name: &str| match self.int(name) {
            0 => None,
            millis => Some(Duration::from_millis(millis.unsigned_abs())),
        };
        self.hot = Hot {
            statement_timeout: millis("statement_timeout"),
            idle_in_transaction_session_timeout: millis("idle_in_transaction_session_timeout"),
            lock_timeout: millis("lock_timeout"),
            deadlock_timeout: Duration::from_millis(self.int("deadlock_timeout").unsigned_abs()),
            synchronous_commit: self.text("synchronous_commit") != "off",
            commit_delay: CommitDelay {
                delay: Duration::from_micros(self.int("commit_delay").unsigned_abs()),
                siblings: usize::try_from(self.int("commit_siblings")).unwrap_or(0),
            },
            default_read_only: self.bool("default_transaction_read_only"),
            default_isolation_is_plain: self.text("default_transaction_isolation")
                == "read committed",
            standard_strings: self.bool("standard_conforming_strings"),
            format: FormatOptions {
                zone: Zone::parse(self.text("TimeZone")).map_or(Zone::UTC, |(zone, _)| zone),
                bytea_escape: self.text("bytea_output") == "escape",
                interval_style: IntervalStyle::named(self.text("IntervalStyle")),
                date_style: DateStyle::named(self.text("DateStyle")),
                now: None,
                extra_float_digits: self.int("extra_float_digits").clamp(-15, 3) as i8,
            },
            bulk_access: bulk_access_of(|name| self.int(name), |name| self.bool(name)),
        };
    }
}
