//! Sets of characters: what a bracket expression or a class escape matches.

use std::sync::LazyLock;

use crate::expr::letter::{is_alnum, is_alpha, is_assigned};

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
            Class::Alnum => is_alnum(c),
            Class::Alpha => is_alpha(c),
            Class::Blank => matches!(c, ' ' | '\t'),
            Class::Cntrl => c.is_control(),
            Class::Digit => c.is_ascii_digit(),
            Class::Graph => is_visible(c),
            // A letter in title case, of two with the second one small, is both.
            Class::Lower => c.is_lowercase() || variants(c)[1] != c,
            // Separators of lines and of paragraphs are not printed.
            Class::Print if matches!(c, '\u{2028}' | '\u{2029}') => false,
            Class::Print => is_visible(c) || is_space(c) && !c.is_control(),
            Class::Punct => is_visible(c) && !is_alnum(c),
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
    !c.is_control() && !is_space(c) && is_assigned(c)
}

/// Whether words are made of it.
pub(super) fn is_word(c: char) -> bool {
    is_alnum(c) || c == '_'
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

    /// Puts the two cases of each character in its place, and beside the characters of a range
    /// those of each. A text's character is then looked for as it is. So the sides of `~*` may not
    /// be changed: the lower case of the Kelvin sign is `k`, but the upper case of `k` is `K`.
    fn fold(&mut self) {
        let (single, wide): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.ranges).into_iter().partition(|(low, high)| low == high);
        let mut folded: Vec<(char, char)> =
            single.into_iter().flat_map(|(c, _)| variants(c)).map(|c| (c, c)).collect();
        // Merged, so that no character's cases are added twice.
        for (low, high) in merged(wide) {
            folded.push((low, high));
            let first = CASED.partition_point(|(c, _)| *c < low);
            let cased = CASED.iter().skip(first).take_while(|(c, _)| *c <= high);
            folded.extend(cased.flat_map(|(_, cases)| cases).map(|c| (*c, *c)));
        }
        self.ranges = merged(folded);
    }
}

/// Ranges in order that do not overlap.
fn merged(mut ranges: Vec<(char, char)>) -> Vec<(char, char)> {
    ranges.sort_unstable();
    let mut merged: Vec<(char, char)> = Vec::new();
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1 => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// No character behind this one has another in lower or in upper case.
pub(super) const LAST_CASED: char = '\u{1FFFF}';

/// All characters that have another one in lower or in upper case, in order, and the two. It is
/// made once, which takes some milliseconds.
static CASED: LazyLock<Vec<(char, [char; 2])>> = LazyLock::new(|| {
    let with_cases = ('\0'..=LAST_CASED).map(|c| (c, variants(c)));
    with_cases.filter(|(c, cases)| *cases != [*c, *c]).collect()
});

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

    /// How many ranges it keeps.
    #[cfg(test)]
    pub(super) fn ranges(&self) -> usize {
        self.parts.ranges.len()
    }

    pub(super) fn has(&self, c: char) -> bool {
        match u32::from(c) {
            code @ 0..128 => self.ascii >> code & 1 == 1,
            _ => self.parts.has(c),
        }
    }
}
