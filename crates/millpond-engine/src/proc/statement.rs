//! A session's last statement, for `pg_stat_activity`: written at every statement, rarely read.
//!
//! The session writes to its own memory, so a statement pays for a few stores to its own cache
//! lines. An observer copies the text and then checks whether it changed during the copy.
//!
//! | field | meaning |
//! |---|---|
//! | version | odd while length and text are being written |
//! | length | bytes of the text |
//! | text | its first bytes, packed into words |
//! | began | when the statement began |
//! | transaction_began | when the last transaction began |
//! | state | the state in the low 3 bits, the time of its last change above them |
//!
//! Invariants and ordering: only the session writes, one thread at a time. Text and length are
//! protected by a sequence lock ([`Version`]). Each other field is one word and needs no
//! protection. For a moment, times and text may belong to consecutive statements.
//!
//! Failure: a session that loses its processor in the middle of a write delays no observer. An
//! observer tries a fixed number of times, then shows no text.

use millpond_sync::CachePadded;
use millpond_sync::atomic::{AtomicU64, Ordering};
use millpond_sync::latch::Version;
use millpond_sync::prefetch::prefetch;

use super::ActivityState;

/// The bytes of a text that are shown, including PostgreSQL's terminating zero byte
/// (`track_activity_query_size`).
const TEXT_BYTES: usize = if cfg!(any(loom, shuttle)) { 17 } else { 1024 };
const WORDS: usize = TEXT_BYTES.div_ceil(8);
/// The longest text that is shown whole, in bytes.
pub const MAX_SHOWN_TEXT: usize = TEXT_BYTES - 1;
/// How often an observer tries to copy a text while it changes.
const TRIES: u32 = 100;
const STATE_BITS: u32 = 3;

/// The part of a session's line that shows its statement. Times are microseconds since 2000.
pub(super) struct StatementSlot {
    state: AtomicU64,
    began: AtomicU64,
    transaction_began: AtomicU64,
    version: Version,
    length: AtomicU64,
    text: [AtomicU64; WORDS],
}

/// A session's last statement, as others see it. Times are microseconds since 2000.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementInfo {
    /// What the session is doing.
    pub state: ActivityState,
    /// Since when.
    pub state_changed: Option<i64>,
    /// The text, cut to what fits; `None` if it kept changing.
    pub query: Option<String>,
    /// When it began.
    pub began: Option<i64>,
    /// When the last transaction began.
    pub transaction_began: Option<i64>,
}

impl StatementSlot {
    pub(super) fn new() -> CachePadded<Self> {
        CachePadded::new(StatementSlot {
            state: AtomicU64::new(0),
            began: AtomicU64::new(0),
            transaction_began: AtomicU64::new(0),
            version: Version::new(),
            length: AtomicU64::new(0),
            text: std::array::from_fn(|_| AtomicU64::new(0)),
        })
    }

    /// Clears the slot for a new session.
    pub(super) fn clear(&self) {
        if self.state.load(Ordering::Relaxed) == 0 {
            return;
        }
        self.state.store(0, Ordering::Relaxed);
        self.began.store(0, Ordering::Relaxed);
        self.transaction_began.store(0, Ordering::Relaxed);
        self.set_text("");
    }

    /// Prefetches the memory that a statement with a short text writes.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.state);
        prefetch(&self.text[..8.min(WORDS)]);
    }

    #[inline]
    pub(super) fn set_state(&self, state: ActivityState, now: i64) {
        let word = (now << STATE_BITS) | i64::from(state as u8);
        self.state.store(word.cast_unsigned(), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn set_began(&self, now: i64) {
        self.began.store(now.cast_unsigned(), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn set_transaction_began(&self, now: i64) {
        self.transaction_began.store(now.cast_unsigned(), Ordering::Relaxed);
    }

    /// Stores a text.
    #[inline]
    pub(super) fn set_text(&self, text: &str) {
        let shown = text.floor_char_boundary(MAX_SHOWN_TEXT);
        let bytes = text.as_bytes().get(..shown).unwrap_or_default();
        let (whole, rest) = bytes.as_chunks::<8>();
        self.version.write_begin();
        self.length.store(shown as u64, Ordering::Relaxed);
        for (to, word) in self.text.iter().zip(whole) {
            to.store(u64::from_le_bytes(*word), Ordering::Relaxed);
        }
        if let Some(to) = self.text.get(whole.len()).filter(|_| !rest.is_empty()) {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            to.store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.version.write_end();
    }

    /// The text, or `None` if it changed during all attempts.
    fn text(&self) -> Option<String> {
        let found = (0..TRIES).find_map(|_| {
            let copy = self.try_copy();
            if copy.is_none() {
                millpond_sync::thread::yield_now();
            }
            copy
        })?;
        Some(String::from_utf8_lossy(&found).into_owned())
    }

    pub(super) fn try_copy(&self) -> Option<Vec<u8>> {
        let version = self.version.read_begin()?;
        let length = (self.length.load(Ordering::Relaxed) as usize).min(WORDS * 8);
        let words = self.text.iter().take(length.div_ceil(8));
        let mut bytes = Vec::with_capacity(WORDS * 8);
        words.for_each(|word| bytes.extend(word.load(Ordering::Relaxed).to_le_bytes()));
        bytes.truncate(length);
        self.version.validate(version).then_some(bytes)
    }

    /// A copy for observers.
    pub(super) fn info(&self) -> StatementInfo {
        let known = |time: i64| Some(time).filter(|time| *time != 0);
        let time = |word: &AtomicU64| known(word.load(Ordering::Relaxed).cast_signed());
        let state = self.state.load(Ordering::Relaxed).cast_signed();
        StatementInfo {
            state: ActivityState::of_number((state & ((1 << STATE_BITS) - 1)) as u8),
            state_changed: known(state >> STATE_BITS),
            query: self.text(),
            began: time(&self.began),
            transaction_began: time(&self.transaction_began),
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        let slot = StatementSlot::new();
        for text in ["", "select 1", "select 12", "sélect 'ü'"] {
            slot.set_text(text);
            assert_eq!(slot.info().query.as_deref(), Some(text));
        }
        let long = "ü".repeat(1000);
        slot.set_text(&long);
        assert_eq!(slot.info().query.unwrap(), "ü".repeat(511));
    }

    #[test]
    fn a_state_comes_with_its_time() {
        let slot = StatementSlot::new();
        assert_eq!(slot.info(), StatementInfo { query: Some(String::new()), ..Default::default() });
        slot.set_state(ActivityState::IdleInTransactionAborted, 846_000_000_000_123);
        assert_eq!(slot.info().state, ActivityState::IdleInTransactionAborted);
        assert_eq!(slot.info().state_changed, Some(846_000_000_000_123));
    }

    #[test]
    fn no_text_is_seen_half_written() {
        let slot = StatementSlot::new();
        let texts = ["a".repeat(1000), "b".repeat(900)];
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                for _ in 0..2000 {
                    if let Some(text) = slot.info().query {
                        assert!(text.is_empty() || texts.contains(&text), "{text}");
                    }
                }
            });
            while !watcher.is_finished() {
                texts.iter().for_each(|text| slot.set_text(text));
            }
        });
    }
}

#[cfg(all(test, any(loom, shuttle)))]
mod models {
    use std::sync::Arc;

    use super::*;
    use millpond_sync::thread;

    /// An observer beside a session that shows one text after the other.
    fn texts_are_whole() {
        let slot = Arc::new(StatementSlot::new());
        let session = Arc::clone(&slot);
        let thread = thread::spawn(move || {
            session.set_text("aaaaaaaaaaaaaaaa");
            session.set_text("bbbbbbbbb");
        });
        if let Some(copy) = slot.try_copy() {
            let text = String::from_utf8(copy).unwrap();
            assert!(["", "aaaaaaaaaaaaaaaa", "bbbbbbbbb"].contains(&&*text), "{text}");
        }
        thread.join().unwrap();
    }

    #[cfg(loom)]
    #[test]
    fn loom_a_statement_is_seen_whole() {
        loom::model(texts_are_whole);
    }

    #[cfg(all(shuttle, not(loom)))]
    #[test]
    fn shuttle_a_statement_is_seen_whole() {
        shuttle::check_random(texts_are_whole, 2000);
    }
}
