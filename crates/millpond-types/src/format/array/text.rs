//! Arrays as text: `{1,2}`, `{{a,"b c"},{NULL,d}}`, `[0:1]={1,2}`.

use crate::array::{ArrayRef, Dimension, MAX_DIMENSIONS};

use super::{build, count_of, element_text, too_many_dimensions};
use crate::error::{DataException, Result};
use crate::format::{FormatOptions, text};
use crate::sqlstate::SqlState;
use crate::{DataType, Value};

/// Appends an array's text.
pub(in crate::format) fn write(
    ty: DataType,
    bytes: &[u8],
    options: &FormatOptions,
    out: &mut Vec<u8>,
) {
    let Some(element) = ty.element() else { return };
    let Some(array) = ArrayRef::from_bytes(element.oid(), bytes) else { return };
    let dimensions = array.dimensions();
    if dimensions.is_empty() {
        return out.extend_from_slice(b"{}");
    }
    if dimensions.iter().any(|dimension| dimension.lower != 1) {
        for dimension in dimensions {
            let upper = i64::from(dimension.lower) + i64::from(dimension.length) - 1;
            out.extend_from_slice(format!("[{}:{upper}]", dimension.lower).as_bytes());
        }
        out.push(b'=');
    }
    // How many elements a brace of each dimension holds, all inner ones included.
    let mut sizes = Vec::from_iter(dimensions.iter().map(|dimension| dimension.length as usize));
    for place in (0..sizes.len().saturating_sub(1)).rev() {
        sizes[place] = sizes[place].saturating_mul(sizes[place + 1]);
    }
    for (place, datum) in array.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend(sizes.iter().filter(|size| place.is_multiple_of((**size).max(1))).map(|_| b'{'));
        if datum.is_null() {
            out.extend_from_slice(b"NULL");
        } else {
            write_element(&element_text(element, &datum, options), out);
        }
        let next = place + 1;
        out.extend(sizes.iter().filter(|size| next.is_multiple_of((**size).max(1))).map(|_| b'}'));
    }
}

/// Appends an element, in quotes where it would be read as something else.
fn write_element(text: &str, out: &mut Vec<u8>) {
    let special = |c: char| matches!(c, '"' | '\\' | '{' | '}' | ',') || is_space(c);
    let quoted = text.is_empty() || text.eq_ignore_ascii_case("null") || text.contains(special);
    if !quoted {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

#[cold]
fn malformed(text: &str, detail: impl Into<String>) -> DataException {
    DataException::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("malformed array literal: \"{text}\""),
    )
    .detail(detail)
}

/// Reads an array.
pub(in crate::format) fn parse(
    ty: DataType,
    input: &str,
    options: &FormatOptions,
) -> Result<Value> {
    let Some(element) = ty.element() else {
        return Err(DataException::new(SqlState::INTERNAL_ERROR, "an array of no type"));
    };
    let mut reader = Reader { input, rest: input, element, options, lengths: Vec::new() };
    let given = reader.dimensions()?;
    let mut values = Vec::new();
    reader.skip_spaces();
    if !reader.rest.starts_with('{') {
        return Err(malformed(
            input,
            if given.is_some() {
                "Array contents must start with \"{\"."
            } else {
                "Array value must start with \"{\" or dimension information."
            },
        ));
    }
    reader.braces(0, &mut values)?;
    reader.skip_spaces();
    if !reader.rest.is_empty() {
        return Err(malformed(input, "Junk after closing right brace."));
    }
    let found = reader.lengths.iter().map(|length| length.unwrap_or(0));
    let dimensions = match given {
        Some(given) => {
            if !found.eq(given.iter().map(|dimension| dimension.length)) {
                return Err(malformed(
                    input,
                    "Specified array dimensions do not match array contents.",
                ));
            }
            given
        }
        None => found.map(|length| Dimension { length, lower: 1 }).collect(),
    };
    count_of(&dimensions)?;
    build(ty.oid(), &dimensions, values.iter().map(Value::as_datum))
}

struct Reader<'a> {
    input: &'a str,
    rest: &'a str,
    element: DataType,
    options: &'a FormatOptions,
    /// The length of each dimension, once a brace of it has been closed.
    lengths: Vec<Option<u32>>,
}

impl Reader<'_> {
    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(is_space);
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn eat(&mut self, expected: char) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn number(&mut self) -> Option<i32> {
        let digits = self.rest.strip_prefix(['-', '+']).unwrap_or(self.rest);
        let sign = self.rest.len() - digits.len();
        let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (number, rest) = self.rest.split_at_checked(sign + length)?;
        self.rest = rest;
        number.parse().ok()
    }

    /// `[1:2][0:3]=`
    fn dimensions(&mut self) -> Result<Option<Vec<Dimension>>> {
        let mut dimensions = Vec::new();
        self.skip_spaces();
        while self.eat('[') {
            if dimensions.len() >= MAX_DIMENSIONS {
                return Err(too_many_dimensions(dimensions.len() + 1));
            }
            let wrong = "\"[\" must introduce explicitly-specified array dimensions.";
            let first = self.number().ok_or_else(|| malformed(self.input, wrong))?;
            let (lower, upper) = if self.eat(':') {
                let upper = self
                    .number()
                    .ok_or_else(|| malformed(self.input, "Missing array dimension value."))?;
                (first, upper)
            } else {
                (1, first)
            };
            if !self.eat(']') {
                return Err(malformed(self.input, "Missing \"]\" after array dimensions."));
            }
            let length = i64::from(upper) - i64::from(lower) + 1;
            if length <= 0 {
                return Err(DataException::new(
                    SqlState::ARRAY_SUBSCRIPT_ERROR,
                    "upper bound cannot be less than lower bound",
                ));
            }
            let length = u32::try_from(length).map_err(|_| super::too_large())?;
            dimensions.push(Dimension { length, lower });
            self.skip_spaces();
        }
        if dimensions.is_empty() {
            return Ok(None);
        }
        if !self.eat('=') {
            return Err(malformed(self.input, "Missing \"=\" after array dimensions."));
        }
        Ok(Some(dimensions))
    }

    /// The rest of an array whose opening brace comes next. `depth` is bounded by the number of
    /// dimensions.
    fn braces(&mut self, depth: usize, values: &mut Vec<Value>) -> Result<()> {
        if depth >= MAX_DIMENSIONS {
            return Err(too_many_dimensions(depth + 1));
        }
        self.eat('{');
        if self.lengths.len() <= depth {
            // Braces deeper than the first elements stand.
            if !values.is_empty() {
                return Err(malformed(self.input, "Unexpected \"{\" character."));
            }
            self.lengths.push(None);
        }
        self.skip_spaces();
        if depth == 0 && self.eat('}') {
            self.lengths.clear();
            return Ok(());
        }
        let mut count = 0u32;
        loop {
            self.skip_spaces();
            if self.rest.starts_with('{') {
                self.braces(depth + 1, values)?;
            } else if self.lengths.len() > depth + 1 {
                let detail = match self.rest.chars().next() {
                    Some('}') => "Unexpected \"}\" character.",
                    Some(_) => "Unexpected array element.",
                    None => "Unexpected end of input.",
                };
                return Err(malformed(self.input, detail));
            } else {
                let value = self.element()?;
                values.push(value);
            }
            count = count.checked_add(1).ok_or_else(super::too_large)?;
            self.skip_spaces();
            match self.next() {
                Some(',') => {}
                Some('}') => break,
                Some(_) => return Err(malformed(self.input, "Unexpected array element.")),
                None => return Err(malformed(self.input, "Unexpected end of input.")),
            }
        }
        let length = self.lengths.get_mut(depth);
        if length.is_some_and(|length| *length.get_or_insert(count) != count) {
            let detail = "Multidimensional arrays must have sub-arrays with matching dimensions.";
            return Err(malformed(self.input, detail));
        }
        Ok(())
    }

    /// One element, in quotes or not.
    fn element(&mut self) -> Result<Value> {
        let (mut text, mut quoted) = (String::new(), false);
        // Spaces at the end of an element without quotes are no part of it.
        let mut length = 0;
        if self.eat('"') {
            quoted = true;
            loop {
                match self.next() {
                    Some('"') => break,
                    Some('\\') => text.extend(self.next()),
                    Some(c) => text.push(c),
                    None => return Err(malformed(self.input, "Unexpected end of input.")),
                }
            }
            length = text.len();
        } else {
            loop {
                match self.rest.chars().next() {
                    None => return Err(malformed(self.input, "Unexpected end of input.")),
                    Some(c @ (',' | '}')) => {
                        if text.is_empty() {
                            let detail = format!("Unexpected \"{c}\" character.");
                            return Err(malformed(self.input, detail));
                        }
                        break;
                    }
                    Some('{') => {
                        return Err(malformed(self.input, "Unexpected \"{\" character."));
                    }
                    Some('"') => return Err(malformed(self.input, "Unexpected array element.")),
                    Some('\\') => {
                        self.next();
                        quoted = true;
                        text.extend(self.next());
                        length = text.len();
                    }
                    Some(c) => {
                        self.next();
                        text.push(c);
                        if !is_space(c) {
                            length = text.len();
                        }
                    }
                }
            }
        }
        text.truncate(length);
        if !quoted && text.eq_ignore_ascii_case("null") {
            return Ok(Value::Null);
        }
        text::parse(self.element, &text, self.options)
    }
}
