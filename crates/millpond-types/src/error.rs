//! The error of a value: text or bytes that are no value of their type, or a result out of range.

use std::fmt;

use crate::numeric::NumericError;
use crate::sqlstate::SqlState;

/// What the calls of [`format`](crate::format) return.
pub type Result<T, E = DataException> = std::result::Result<T, E>;

/// Why there is no value, in PostgreSQL's words. Boxed, so that a `Result` stays small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataException(Box<Fields>);

/// The fields of a [`DataException`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fields {
    /// The five-character code that programs look at.
    pub sqlstate: SqlState,
    /// What went wrong, in one line.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl DataException {
    /// An error of this code and message.
    #[cold]
    pub fn new(sqlstate: SqlState, message: impl Into<String>) -> Self {
        let message = message.into();
        DataException(Box::new(Fields { sqlstate, message, detail: None, hint: None }))
    }

    /// Adds a detail line.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds a hint line.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The fields, to be taken into an error of another layer.
    pub fn into_fields(self) -> Fields {
        *self.0
    }
}

impl std::ops::Deref for DataException {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.0
    }
}

impl fmt::Display for DataException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.sqlstate)
    }
}

impl std::error::Error for DataException {}

impl From<NumericError> for DataException {
    #[cold]
    fn from(error: NumericError) -> Self {
        let state = match &error {
            NumericError::Syntax(_) => SqlState::INVALID_TEXT_REPRESENTATION,
            NumericError::DivisionByZero => SqlState::DIVISION_BY_ZERO,
            NumericError::NotConvertible(..) => SqlState::FEATURE_NOT_SUPPORTED,
            NumericError::Overflow
            | NumericError::OutOfRange(_)
            | NumericError::FieldOverflow { .. } => SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        };
        let data = DataException::new(state, error.to_string());
        match error {
            NumericError::FieldOverflow { precision, scale } => {
                let power = i32::from(precision) - i32::from(scale);
                let bound = if power == 0 { "1".to_owned() } else { format!("10^{power}") };
                data.detail(format!(
                    "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
                ))
            }
            _ => data,
        }
    }
}
