//! What reads the text of statements, for the fuzz targets in the package `fuzz`.
//!
//! Only built with the feature `fuzzing`, and no part of the API.

use millpond_query::error::Result;
use millpond_query::lex::{self, Literals};
use millpond_query::parse;

/// Takes a text through the lexer of the fast path and through the parser; returns how many
/// statements it has.
pub fn statements(sql: &str) -> Result<usize> {
    let (mut key, mut literals) = (Vec::new(), Literals::new());
    if lex::scan(sql, &mut key, &mut literals).is_some() {
        let mut end = 0;
        for literal in &literals {
            assert!(literal.start >= end && literal.end >= literal.start, "literals are in order");
            assert!(sql.get(literal.start as usize..literal.end as usize).is_some());
            end = literal.end;
        }
        assert!(key.len() <= sql.len(), "a key is no longer than its text");
        let _ = parse::parse_lifted(sql, &literals);
    }
    let _ = parse::parse_expression(sql);
    parse::parse(sql, &|| false).map(|statements| statements.len())
}
