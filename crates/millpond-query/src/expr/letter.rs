//! Which characters are letters and digits, as the C library of PostgreSQL has them, and letters in
//! another case.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Whether it is a letter. Digits outside ASCII are letters, too: no other class is left to them.
pub(crate) fn is_alpha(c: char) -> bool {
    c.is_alphabetic() || !c.is_ascii() && c.general_category() == GeneralCategory::DecimalNumber
}

/// Whether it is a letter or a digit: no fraction, and no number that stands above the line.
pub(crate) fn is_alnum(c: char) -> bool {
    is_alpha(c) || c.is_ascii_digit()
}

/// Whether Unicode has given it a meaning, or left that to its users.
pub(crate) fn is_assigned(c: char) -> bool {
    c.general_category() != GeneralCategory::Unassigned
}

/// Which letters are wanted.
#[derive(Clone, Copy)]
pub(crate) enum LetterCase {
    Lower,
    Upper,
}

/// Each character by its simple mapping: one that has several characters as its counterpart stays.
pub(crate) fn mapped(s: &str, case: LetterCase) -> String {
    match case {
        LetterCase::Lower if s.is_ascii() => s.to_ascii_lowercase(),
        LetterCase::Upper if s.is_ascii() => s.to_ascii_uppercase(),
        _ => s.chars().map(|c| mapped_char(c, case)).collect(),
    }
}

fn mapped_char(c: char, case: LetterCase) -> char {
    match case {
        LetterCase::Lower => simple(c, c.to_lowercase()),
        LetterCase::Upper => simple(c, c.to_uppercase()),
    }
}

fn simple(c: char, mut mapped: impl ExactSizeIterator<Item = char>) -> char {
    match (mapped.len(), mapped.next()) {
        (1, Some(mapped)) => mapped,
        _ => c,
    }
}

/// The first letter of each word in upper case, the others in lower case.
pub(crate) fn initcap(s: &str) -> String {
    let mut in_word = false;
    s.chars()
        .map(|c| {
            let mapped = if in_word {
                mapped_char(c, LetterCase::Lower)
            } else {
                mapped_char(c, LetterCase::Upper)
            };
            in_word = is_alnum(c);
            mapped
        })
        .collect()
}
