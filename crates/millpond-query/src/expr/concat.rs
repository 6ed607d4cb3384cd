//! Chains of `||`.

use super::{Env, Expr, Val, func};
use crate::error::{Result, SqlError};
use crate::{Datum, Value};

/// Room for most results, so that they are written where they stay.
const FIRST_BYTES: usize = 64;

impl Expr {
    /// The text, or byte string, that a chain of `||` joins, in one piece of memory.
    pub(super) fn joined<'a>(&'a self, env: &Env<'a>) -> Result<Value> {
        let mut joined = Joined::Nothing;
        self.append(env, &mut joined)?;
        Ok(match joined {
            Joined::Nothing | Joined::Null => Value::Null,
            Joined::Text(text) => Value::Text(text),
            Joined::Bytes(bytes) => Value::Bytea(bytes),
        })
    }

    fn append<'a>(&'a self, env: &Env<'a>, joined: &mut Joined) -> Result<()> {
        match self {
            Expr::Concat(pair) => {
                pair.0.append(env, joined)?;
                pair.1.append(env, joined)
            }
            _ => joined.push(self.operand(env, &mut Val::null())?),
        }
    }
}

/// What has been joined so far.
enum Joined {
    Nothing,
    Text(String),
    Bytes(Vec<u8>),
    /// One part was NULL. The others are still computed: they may fail.
    Null,
}

impl Joined {
    fn push(&mut self, part: Datum<'_>) -> Result<()> {
        match (&mut *self, part) {
            (Joined::Null, _) => {}
            (_, Datum::Null) => *self = Joined::Null,
            (Joined::Text(text), Datum::Text(part)) => {
                func::check_length(text.len() + part.len())?;
                text.push_str(part);
            }
            (Joined::Bytes(bytes), Datum::Bytea(part)) => {
                func::check_length(bytes.len() + part.len())?;
                bytes.extend_from_slice(part);
            }
            (Joined::Nothing, Datum::Text(part)) => {
                let mut text = String::with_capacity(part.len().max(FIRST_BYTES));
                text.push_str(part);
                *self = Joined::Text(text);
            }
            (Joined::Nothing, Datum::Bytea(part)) => {
                let mut bytes = Vec::with_capacity(part.len().max(FIRST_BYTES));
                bytes.extend_from_slice(part);
                *self = Joined::Bytes(bytes);
            }
            _ => return Err(SqlError::internal("|| of what is no text")),
        }
        Ok(())
    }
}
