//! Relations of things that Millpond does not have. Clients join with them.
//!
//! `empty.txt` has a line for each: its number, its name, then its columns with their types, as in
//! PostgreSQL 15. Types that are not here are shown as text.

use std::sync::LazyLock;

use super::{Cell, Kind, Source, View, view};

/// The relations of this file.
pub(crate) fn views() -> &'static [View] {
    static VIEWS: LazyLock<Vec<View>> =
        LazyLock::new(|| include_str!("empty.txt").lines().filter_map(parsed).collect());
    &VIEWS
}

fn parsed(line: &'static str) -> Option<View> {
    let mut words = line.split(' ');
    let (oid, name) = (words.next()?.parse().ok()?, words.next()?);
    let column = |word: &'static str| {
        let (name, kind) = word.split_once(':')?;
        Some((name, kind_of(kind)?))
    };
    let columns: Vec<_> = words.map(column).collect::<Option<_>>()?;
    // It stays for as long as the program runs, as all relations do.
    Some(view(name, oid, columns.leak(), nothing))
}

fn nothing(_: &Source<'_>) -> Vec<Vec<Cell>> {
    Vec::new()
}

fn kind_of(name: &str) -> Option<Kind> {
    Some(match name {
        "oid" => Kind::Oid,
        "xid" => Kind::Xid,
        "pg_lsn" => Kind::Lsn,
        "name" => Kind::Name,
        "text" => Kind::Text,
        "char" => Kind::Char,
        "bool" => Kind::Bool,
        "int2" => Kind::Int2,
        "int4" => Kind::Int4,
        "int8" => Kind::Int8,
        "float4" => Kind::Float4,
        "float8" => Kind::Float8,
        "numeric" => Kind::Numeric,
        "timestamptz" => Kind::TimestampTz,
        "aclitem[]" => Kind::AclArray,
        "text[]" => Kind::TextArray,
        "int2[]" => Kind::Int2Array,
        "char[]" => Kind::CharArray,
        "oid[]" => Kind::OidArray,
        "int2vector" => Kind::Int2Vector,
        "oidvector" => Kind::OidVector,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_line_is_a_relation() {
        let lines = include_str!("empty.txt").lines().count();
        assert_eq!(super::views().len(), lines);
        assert!(super::views().iter().all(|view| !view.columns.is_empty()));
    }
}
