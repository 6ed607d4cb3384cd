//! `jsonpath`: paths into JSON, parsed and printed as PostgreSQL prints them.
//!
//! A value is the path's printed text: it is short, and parsing it costs less than most paths'
//! work.

mod lexer;
mod parse;
mod print;

use crate::Numeric;
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;

/// How deep a path may nest.
const MAX_DEPTH: usize = 256;
/// How many binary operators a path may have. A chain of them is a tree as deep as it is long.
const MAX_OPERATORS: usize = 500;

/// A path: what it computes, and how it sees values of another kind than it expects.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    /// Whether structural errors are none, and arrays are unwrapped where something else is
    /// expected.
    pub lax: bool,
    /// What is computed.
    pub expr: Expr,
}

/// A part of a path that gives items, or a predicate.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// `$`
    Root,
    /// `@`
    Current,
    /// `last`
    Last,
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(Numeric),
    /// A string.
    String(String),
    /// `$name`
    Variable(String),
    /// Steps from something.
    Path(Box<Expr>, Vec<Step>),
    /// `+x`, or with true `-x`.
    Sign(bool, Box<Expr>),
    /// `x + y`
    Arith(Arith, Box<Expr>, Box<Expr>),
    /// `x && y`
    And(Box<Expr>, Box<Expr>),
    /// `x || y`
    Or(Box<Expr>, Box<Expr>),
    /// `!(x)`
    Not(Box<Expr>),
    /// `(x) is unknown`
    IsUnknown(Box<Expr>),
    /// `exists (x)`
    Exists(Box<Expr>),
    /// `x == y`
    Compare(Compare, Box<Expr>, Box<Expr>),
    /// `x starts with "prefix"`
    StartsWith(Box<Expr>, Box<Expr>),
    /// `x like_regex "pattern" flag "flags"`
    LikeRegex(Box<Expr>, String, Flags),
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// `.name`
    Key(String),
    /// `.*`
    AnyKey,
    /// `[*]`
    AnyArray,
    /// `[1, 3 to 5]`
    Index(Vec<(Expr, Option<Expr>)>),
    /// `.**{first to last}`: the levels, [`Step::LAST_LEVEL`] being the deepest.
    Any(u32, u32),
    /// `?(predicate)`
    Filter(Box<Expr>),
    /// `.method()`
    Method(Method),
    /// `.datetime("template")`
    Datetime(Option<String>),
}

impl Step {
    /// The level of leaves.
    pub const LAST_LEVEL: u32 = u32::MAX;
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $($variant:ident $text:literal),*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = $text] $variant),*
        }

        impl $name {
            /// As it is written.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),*
                }
            }

            pub(self) fn of(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

words!(
    /// An operator of numbers.
    Arith: Add "+", Sub "-", Mul "*", Div "/", Mod "%"
);
words!(
    /// A comparison.
    Compare: Eq "==", Ne "!=", Lt "<", Gt ">", Le "<=", Ge ">="
);
words!(
    /// A method without arguments.
    Method: Abs "abs", Size "size", Type "type", Floor "floor", Ceiling "ceiling",
    Double "double", KeyValue "keyvalue"
);

/// The flags of `like_regex`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// `i`
    pub ignore_case: bool,
    /// `s`: a dot also matches a newline.
    pub dot_all: bool,
    /// `m`: `^` and `$` match at newlines.
    pub multi_line: bool,
    /// `q`: the pattern is a plain string.
    pub quote: bool,
}

impl JsonPath {
    /// Reads a path.
    pub fn parse(text: &str) -> Result<Self> {
        parse::path(text)
    }
}

impl Expr {
    /// Whether it is true, false or unknown, and no value.
    pub fn is_predicate(&self) -> bool {
        matches!(
            self,
            Expr::And(..)
                | Expr::Or(..)
                | Expr::Not(_)
                | Expr::IsUnknown(_)
                | Expr::Exists(_)
                | Expr::Compare(..)
                | Expr::StartsWith(..)
                | Expr::LikeRegex(..)
        )
    }
}

#[cold]
fn syntax(message: impl Into<String>) -> DataException {
    DataException::new(SqlState::SYNTAX_ERROR, message)
}

#[cold]
fn too_deep() -> DataException {
    DataException::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
}
