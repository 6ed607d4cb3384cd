//! Sets of characters: what a bracket expression or a class escape matches.

use std::sync::LazyLock;

/// A named class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Alnum,
    Alpha,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Xdigit,
    Word,
}

impl Class {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "alnum" => Class::Alnum,
            "alpha" => Class::Alpha,
            "blank" => Class::Blank,
            "cntrl" => Class::Cntrl,
            "digit" => Class::Digit,
            "graph" => Class::Graph,
            "lower" => Class::Lower,
            "print" => Class::Print,
            "punct" => Class::Punct,
            "space" => Class::Space,
            "upper" => Class::Upper,
            "xdigit" => Class::Xdigit,
            "word" => Class::Word,
            _ => return None,
        })
    }

    fn has(self, c: char) -> bool {
        match self {
            Class::Alnum => c.is_alphanumeric(),
            Class::Alpha => c.is_alphabetic(),
            Class::Blank => matches!(c, ' ' | '\t'),
            Class::Cntrl => c.is_control(),
            Class::Digit => c.is_ascii_digit(),
            Class::Graph => is_visible(c),
            // A letter in title case, of two with the second one small, is both.
            Class::Lower => c.is_lowercase() || variants(c)[1] != c,
            // Separators of lines and of paragraphs are not printed.
            Class::Print if matches!(c, '\u{2028}' | '\u{2029}') => false,
            Class::Print => is_visible(c) || is_space(c) && !c.is_control(),
            Class::Punct => is_visible(c) && !c.is_alphanumeric(),
            Class::Space => is_space(c),
            Class::Upper => c.is_uppercase() || variants(c)[0] != c,
            Class::Xdigit => c.is_ascii_hexdigit(),
            Class::Word => is_word(c),
        }
    }
}

/// Whether it separates words: a space at which no line may break does not.
fn is_space(c: char) -> bool {
    c.is_whitespace() && !matches!(c, '\u{85}' | '\u{A0}' | '\u{2007}' | '\u{202F}')
}

fn is_visible(c: char) -> bool {
    !c.is_control() && !is_space(c)
}

/// Whether words are made of it.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A set of characters, as it is being written.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Parts {
    pub(super) ranges: Vec<(char, char)>,
    /// Classes; the flag says that all but the class is meant.
    pub(super) classes: Vec<(Class, bool)>,
    /// All but these.
    pub(super) negated: bool,
    /// Never a line feed.
    pub(super) no_newline: bool,
    pub(super) ignore_case: bool,
}

impl Parts {
    fn lists(&self, c: char) -> bool {
        self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&c))
            || self.classes.iter().any(|(class, not)| self.class_has(*class, c) != *not)
    }

    fn class_has(&self, class: Class, c: char) -> bool {
        match class {
            Class::Lower | Class::Upper if self.ignore_case => Class::Alpha.has(c),
            class => class.has(c),
        }
    }

    fn has(&self, c: char) -> bool {
        if self.no_newline && c == '\n' {
            return false;
        }
        self.lists(c) != self.negated
    }

    /// Adds what the characters are in lower and in upper case. A single character is replaced by
    /// that. So `~*` may differ with the sides changed, where several characters have one that is
    /// the other case of all: U+212A is in the set of `k`, and `k` is not in that of U+212A.
    fn fold(&mut self) {
        let mut folded = Vec::new();
        for (low, high) in std::mem::take(&mut self.ranges) {
            if low == high {
                folded.extend(variants(low).map(|c| (c, c)));
                continue;
            }
            folded.push((low, high));
            let first = CASED.partition_point(|c| *c < low);
            let cased = CASED.iter().skip(first).take_while(|c| **c <= high);
            folded.extend(cased.flat_map(|c| variants(*c)).map(|c| (c, c)));
        }
        folded.sort_unstable();
        for (low, high) in folded {
            match self.ranges.last_mut() {
                Some(last) if low <= last.1 => last.1 = last.1.max(high),
                _ => self.ranges.push((low, high)),
            }
        }
    }
}

/// All characters that have another one in lower or in upper case, in order.
static CASED: LazyLock<Vec<char>> =
    LazyLock::new(|| ('\0'..=char::MAX).filter(|c| variants(*c) != [*c, *c]).collect());

/// The character in lower and in upper case.
pub(super) fn variants(c: char) -> [char; 2] {
    fn one(mut chars: impl Iterator<Item = char>) -> Option<char> {
        chars.next().filter(|_| chars.next().is_none())
    }
    // The only one that is two characters in lower case: the second is a dot above the first.
    let lower = if c == 'İ' { Some('i') } else { one(c.to_lowercase()) };
    [lower.unwrap_or(c), one(c.to_uppercase()).unwrap_or(c)]
}

/// A set of characters, quick to ask about ASCII.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CharSet {
    ascii: u128,
    parts: Parts,
}

impl CharSet {
    pub(super) fn new(mut parts: Parts) -> Self {
        if parts.ignore_case {
            parts.fold();
        }
        let ascii = (0..128u8).filter(|&b| parts.has(char::from(b))).fold(0, |set, b| set | 1 << b);
        CharSet { ascii, parts }
    }

    pub(super) fn has(&self, c: char) -> bool {
        match u32::from(c) {
            code @ 0..128 => self.ascii >> code & 1 == 1,
            _ => self.parts.has(c),
        }
    }
}
