//! Texts as SQL writes them, and `format`, which puts them into others.

use super::Body;
use super::catalog::Param::AnyElement as ELEMENT;
use super::catalog::{ANY, Proc, TEXT, proc};
use super::keywords;
use super::string::{check_length, print};
use super::value::body;
use crate::error::{Result, SqlError, SqlState};
use crate::expr::{Env, cast};
use crate::{Datum, Value};

pub(super) static PROCS: &[Proc] = &[
    proc(1282, "quote_ident", &[TEXT], TEXT, body!(|s: &str| quote_ident(s))),
    proc(1283, "quote_literal", &[TEXT], TEXT, body!(|s: &str| quote_literal(s))),
    proc(
        1285,
        "quote_literal",
        &[ELEMENT],
        TEXT,
        body!(env, |value: Datum<'_>| quote_literal(&cast::text_of(
            &value,
            env.facts.settings.format_options()
        ))),
    )
    .stable(),
    proc(
        1289,
        "quote_nullable",
        &[TEXT],
        TEXT,
        body!(|s: Option<&str>| s.map_or_else(|| Ok("NULL".to_owned()), quote_literal)),
    )
    .called_on_null(),
    proc(
        1290,
        "quote_nullable",
        &[ELEMENT],
        TEXT,
        body!(env, |value: Datum<'_>| {
            if value.is_null() {
                return Ok(Value::Text("NULL".to_owned()));
            }
            quote_literal(&cast::text_of(&value, env.facts.settings.format_options()))
        }),
    )
    .stable()
    .called_on_null(),
    proc(3539, "format", &[TEXT, ANY], TEXT, Body::Datums(format))
        .stable()
        .called_on_null()
        .variadic(),
    proc(3540, "format", &[TEXT], TEXT, Body::Datums(format)).stable().called_on_null(),
];

/// Whether a name needs no quotes. It is made of small letters, digits, `_` and `$`, and does not
/// begin with a digit. It is no word that PostgreSQL reserves in some place.
fn is_plain(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    first && bytes.all(rest) && !keywords::is_reserved(name)
}

/// A text as a name that SQL reads.
fn quote_ident(name: &str) -> Result<String> {
    check_length(name.len().saturating_mul(2))?;
    Ok(quoted_name(name))
}

/// The name of something as SQL reads it.
pub fn quoted_name(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A text as a literal.
fn quote_literal(text: &str) -> Result<String> {
    check_length(text.len().saturating_mul(2))?;
    let escape = if text.contains('\\') { "E" } else { "" };
    Ok(format!("{escape}'{}'", text.replace('\'', "''").replace('\\', "\\\\")))
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

#[cold]
fn unterminated() -> SqlError {
    invalid("unterminated format() type specifier").hint("For a single \"%\" use \"%%\".")
}

/// How wide a value is to be printed.
#[derive(Clone, Copy)]
enum Width {
    Fixed(i32),
    /// It is an argument: of this number, or the next one.
    Argument(Option<usize>),
}

/// A placeholder: `%[position][-][width]type`.
struct Specifier {
    /// The number of the argument; `None` is the next one.
    position: Option<usize>,
    left: bool,
    width: Width,
    kind: char,
}

/// What is left of a format.
struct Reader<'a>(std::iter::Peekable<std::str::Chars<'a>>);

impl Reader<'_> {
    fn peek(&mut self) -> Result<char> {
        self.0.peek().copied().ok_or_else(unterminated)
    }

    fn skip(&mut self, c: char) -> bool {
        self.0.next_if_eq(&c).is_some()
    }

    /// A number, if there is one. Something must follow it.
    fn number(&mut self) -> Result<Option<i32>> {
        let mut number: Option<i32> = None;
        while let Some(digit) = self.0.peek().and_then(|c| c.to_digit(10)) {
            self.0.next();
            let more =
                number.unwrap_or(0).checked_mul(10).and_then(|n| n.checked_add(digit as i32));
            number = Some(more.ok_or_else(|| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range")
            })?);
        }
        if number.is_some() {
            self.peek()?;
        }
        Ok(number)
    }

    fn specifier(&mut self) -> Result<Specifier> {
        let mut found =
            Specifier { position: None, left: false, width: Width::Fixed(0), kind: 's' };
        if let Some(number) = self.number()? {
            if !self.skip('$') {
                found.width = Width::Fixed(number);
                found.kind = self.peek()?;
                self.0.next();
                return Ok(found);
            }
            found.position = Some(argument_number(number)?);
            self.peek()?;
        }
        while self.skip('-') {
            found.left = true;
            self.peek()?;
        }
        if self.skip('*') {
            self.peek()?;
            let number = self.number()?;
            if number.is_some() && !self.skip('$') {
                return Err(invalid("width argument position must be ended by \"$\""));
            }
            found.width = Width::Argument(number.map(argument_number).transpose()?);
        } else if let Some(number) = self.number()? {
            found.width = Width::Fixed(number);
        }
        found.kind = self.peek()?;
        self.0.next();
        Ok(found)
    }
}

fn argument_number(number: i32) -> Result<usize> {
    match usize::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(invalid("format specifies argument 0, but arguments are numbered from 1")),
    }
}

/// Bytes reserved for each argument at first.
const ROOM_OF_ARGUMENT: usize = 16;

fn format(args: &[Datum<'_>], env: &Env<'_>) -> Result<Value> {
    let Some((Datum::Text(template), args)) = args.split_first() else { return Ok(Value::Null) };
    let mut reader = Reader(template.chars().peekable());
    let mut out = String::with_capacity(template.len() + ROOM_OF_ARGUMENT * args.len());
    // The number of arguments before the next one.
    let mut used = 0;
    while let Some(c) = reader.0.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if reader.peek()? == '%' {
            reader.0.next();
            out.push('%');
            continue;
        }
        let specifier = reader.specifier()?;
        if !matches!(specifier.kind, 's' | 'I' | 'L') {
            return Err(invalid(format!(
                "unrecognized format() type specifier \"{}\"",
                specifier.kind
            ))
            .hint("For a single \"%\" use \"%%\"."));
        }
        let mut argument = |position: Option<usize>| {
            used = position.unwrap_or(used + 1);
            args.get(used - 1).ok_or_else(|| invalid("too few arguments for format()"))
        };
        let width = match specifier.width {
            Width::Fixed(width) => width,
            Width::Argument(position) => width_of(argument(position)?)?,
        };
        let argument = argument(specifier.position)?;
        if specifier.kind == 's' && width == 0 {
            print(argument, env, &mut out)?;
            continue;
        }
        let text = convert(specifier.kind, argument, env)?;
        append(&text, width, specifier.left, &mut out)?;
    }
    check_length(out.len())?;
    Ok(Value::Text(out))
}

fn width_of(argument: &Datum<'_>) -> Result<i32> {
    match argument {
        Datum::Null => Ok(0),
        Datum::Int4(width) => Ok(*width),
        Datum::Int2(width) => Ok((*width).into()),
        other => {
            let text = cast::to_text(other);
            match crate::types::text::parse(crate::DataType::Int4, &text, &Default::default())? {
                Value::Int4(width) => Ok(width),
                _ => Ok(0),
            }
        }
    }
}

fn convert(kind: char, value: &Datum<'_>, env: &Env<'_>) -> Result<String> {
    let mut text = String::new();
    print(value, env, &mut text)?;
    match (kind, value.is_null()) {
        ('s', _) => Ok(text),
        ('L', true) => Ok("NULL".to_owned()),
        ('L', false) => quote_literal(&text),
        (_, true) => Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "null values cannot be formatted as an SQL identifier",
        )),
        (_, false) => quote_ident(&text),
    }
}

/// Appends a text with spaces before it, or behind it if it is to stand on the left or the width is
/// negative.
fn append(text: &str, width: i32, left: bool, out: &mut String) -> Result<()> {
    let wanted = width.unsigned_abs() as usize;
    let missing = wanted.saturating_sub(text.chars().count());
    check_length(out.len() + text.len() + missing)?;
    let left = left || width < 0;
    if !left {
        out.extend(std::iter::repeat_n(' ', missing));
    }
    out.push_str(text);
    if left {
        out.extend(std::iter::repeat_n(' ', missing));
    }
    Ok(())
}
