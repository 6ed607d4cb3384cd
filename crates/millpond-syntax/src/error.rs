//! Why a text is no statement, in PostgreSQL's words.

use thiserror::Error;

/// PostgreSQL's code of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlState {
    /// 42601: the grammar refuses it.
    SyntaxError,
    /// 54001: nested too deep.
    StatementTooComplex,
    /// 54000: too long.
    ProgramLimitExceeded,
    /// 0A000: PostgreSQL's grammar knows it and refuses it, or this crate has no tree for it yet.
    FeatureNotSupported,
    /// 22025: an escape that stands for no character.
    InvalidEscapeSequence,
    /// 22P06: an escape that is not safe in every encoding.
    NonstandardUseOfEscapeCharacter,
    /// 22021: bytes that are no text.
    CharacterNotInRepertoire,
    /// 42602: a name that cannot be one.
    InvalidName,
    /// 22023: a value outside its range.
    InvalidParameterValue,
    /// 42P20: a window's frame that cannot be.
    WindowingError,
    /// 42710: said twice.
    DuplicateObject,
    /// 42939: a name that PostgreSQL keeps for itself.
    ReservedName,
    /// 42P13: a function's definition that cannot be.
    InvalidFunctionDefinition,
    /// 57014: parsing was told to stop.
    QueryCanceled,
}

impl SqlState {
    /// The five characters.
    pub fn code(self) -> &'static str {
        match self {
            SqlState::SyntaxError => "42601",
            SqlState::StatementTooComplex => "54001",
            SqlState::ProgramLimitExceeded => "54000",
            SqlState::FeatureNotSupported => "0A000",
            SqlState::InvalidEscapeSequence => "22025",
            SqlState::NonstandardUseOfEscapeCharacter => "22P06",
            SqlState::CharacterNotInRepertoire => "22021",
            SqlState::InvalidName => "42602",
            SqlState::InvalidParameterValue => "22023",
            SqlState::WindowingError => "42P20",
            SqlState::DuplicateObject => "42710",
            SqlState::ReservedName => "42939",
            SqlState::InvalidFunctionDefinition => "42P13",
            SqlState::QueryCanceled => "57014",
        }
    }
}

/// Why a text is no statement, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// PostgreSQL's code.
    pub code: SqlState,
    /// PostgreSQL's message.
    pub message: String,
    /// More about it, where PostgreSQL says more.
    pub detail: Option<&'static str>,
    /// What to do, where PostgreSQL says so.
    pub hint: Option<&'static str>,
    /// The byte of the text at which it is, unless it is about the whole.
    pub location: Option<usize>,
}

impl SyntaxError {
    pub(crate) fn new(code: SqlState, message: impl Into<String>, location: u32) -> Box<Self> {
        Box::new(Self {
            code,
            message: message.into(),
            detail: None,
            hint: None,
            location: Some(location as usize),
        })
    }

    /// Parsing was told to stop.
    pub(crate) fn stopped() -> Box<Self> {
        Self::new(SqlState::QueryCanceled, "parsing was told to stop", 0).without_location()
    }

    /// A message that says which piece of the text it is about, as PostgreSQL's scanner does.
    pub(crate) fn near(message: &str, text: &str, start: usize, end: usize) -> Box<Self> {
        let message = match text.get(start..end) {
            None | Some("") => format!("{message} at end of input"),
            Some(near) => format!("{message} at or near \"{near}\""),
        };
        Box::new(Self {
            code: SqlState::SyntaxError,
            message,
            detail: None,
            hint: None,
            location: Some(start),
        })
    }

    pub(crate) fn with_code(mut self: Box<Self>, code: SqlState) -> Box<Self> {
        self.code = code;
        self
    }

    pub(crate) fn with_hint(mut self: Box<Self>, hint: &'static str) -> Box<Self> {
        self.hint = Some(hint);
        self
    }

    pub(crate) fn with_detail(mut self: Box<Self>, detail: &'static str) -> Box<Self> {
        self.detail = Some(detail);
        self
    }

    /// For errors that PostgreSQL reports without a position.
    pub(crate) fn without_location(mut self: Box<Self>) -> Box<Self> {
        self.location = None;
        self
    }

    /// The position that a client is told: characters of `text`, from 1; 0 if it has none.
    pub fn position(&self, text: &str) -> usize {
        let Some(location) = self.location else { return 0 };
        match text.get(..location) {
            Some(before) => before.chars().count() + 1,
            None => text.chars().count() + 1,
        }
    }
}
