//! Arguments and results of functions as Rust's types.

use millpond_types::NumericRef;
use millpond_types::numeric::NumericError;

use crate::error::{Result, SqlError};
use crate::{Datum, Numeric, Value};

/// A type that an argument can be taken as.
pub(super) trait Arg<'a>: Sized {
    /// The argument; `None` if the value is of another type.
    fn of(datum: &Datum<'a>) -> Option<Self>;
}

/// A type that a function can return.
pub(super) trait Outcome {
    fn outcome(self) -> Result<Value>;
}

macro_rules! plain {
    ($($variant:ident: $ty:ty),*) => {$(
        impl<'a> Arg<'a> for $ty {
            fn of(datum: &Datum<'a>) -> Option<Self> {
                match datum {
                    Datum::$variant(value) => Some(*value),
                    _ => None,
                }
            }
        }

        impl Outcome for $ty {
            fn outcome(self) -> Result<Value> {
                Ok(Value::$variant(self))
            }
        }
    )*};
}

plain!(Bool: bool, Int2: i16, Int4: i32, Int8: i64, Float4: f32, Float8: f64);

impl<'a> Arg<'a> for &'a str {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<'a> Arg<'a> for &'a [u8] {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Bytea(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl<'a> Arg<'a> for NumericRef<'a> {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        match datum {
            Datum::Numeric(number) => Some(*number),
            _ => None,
        }
    }
}

impl<'a> Arg<'a> for Datum<'a> {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        Some(*datum)
    }
}

impl<'a, T: Arg<'a>> Arg<'a> for Option<T> {
    fn of(datum: &Datum<'a>) -> Option<Self> {
        if datum.is_null() { Some(None) } else { T::of(datum).map(Some) }
    }
}

impl Outcome for &str {
    fn outcome(self) -> Result<Value> {
        Ok(Value::Text(self.to_owned()))
    }
}

impl Outcome for String {
    fn outcome(self) -> Result<Value> {
        Ok(Value::Text(self))
    }
}

impl Outcome for &[u8] {
    fn outcome(self) -> Result<Value> {
        Ok(Value::Bytea(self.to_owned()))
    }
}

impl Outcome for Vec<u8> {
    fn outcome(self) -> Result<Value> {
        Ok(Value::Bytea(self))
    }
}

impl Outcome for Numeric {
    fn outcome(self) -> Result<Value> {
        Ok(Value::Numeric(self))
    }
}

impl Outcome for Value {
    fn outcome(self) -> Result<Value> {
        Ok(self)
    }
}

/// What `void` shows as.
impl Outcome for () {
    fn outcome(self) -> Result<Value> {
        Ok(Value::Text(String::new()))
    }
}

impl<T: Outcome> Outcome for Option<T> {
    fn outcome(self) -> Result<Value> {
        self.map_or(Ok(Value::Null), Outcome::outcome)
    }
}

impl<T: Outcome> Outcome for Result<T> {
    fn outcome(self) -> Result<Value> {
        self?.outcome()
    }
}

impl<T: Outcome> Outcome for Result<T, NumericError> {
    fn outcome(self) -> Result<Value> {
        self?.outcome()
    }
}

/// The binder converts arguments to the types of the table's entry, so this is never seen.
#[cold]
pub(super) fn wrong_arguments(count: usize) -> SqlError {
    SqlError::internal(format!("a function got {count} arguments of other types"))
}

/// A function's body: a closure over arguments of Rust's types. With a name before the arguments,
/// it sees the environment of the call under that name.
macro_rules! body {
    (|| $value:expr) => {
        $crate::expr::func::value::body!(_env, | | $value)
    };
    ($env:ident, || $value:expr) => {
        $crate::expr::func::value::body!($env, | | $value)
    };
    (|$($arg:ident: $ty:ty),*| $value:expr) => {
        $crate::expr::func::value::body!(_env, |$($arg: $ty),*| $value)
    };
    ($env:ident, |$($arg:ident: $ty:ty),*| $value:expr) => {
        $crate::expr::func::Body::Datums(|args, $env| {
            use $crate::expr::func::value;
            let [$($arg),*] = args else { return Err(value::wrong_arguments(args.len())) };
            $(let Some($arg) = <$ty as value::Arg<'_>>::of($arg) else {
                return Err(value::wrong_arguments(args.len()));
            };)*
            value::Outcome::outcome($value)
        })
    };
}
pub(super) use body;
