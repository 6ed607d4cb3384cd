//! A query's text as the tree of sqlparser, which DataFusion's planner reads.
//!
//! The text is known to be a query of PostgreSQL's grammar. sqlparser does not know all of those,
//! and takes some for something else. Where that can be seen, the tokens are set right
//! ([`operator`], [`distinct_from`]), or the text is refused ([`misunderstood`]). Nesting and chain
//! lengths are limited before anything recurses ([`limits`]).

mod dialect;
mod distinct_from;
mod limits;
mod operator;

use datafusion::sql::sqlparser::ast::{Query, Statement};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use dialect::Bounded;
use millpond_query::error::Result;
use millpond_query::memory::ValueRoom;
use millpond_query::parse::is_bytewise;

/// About what a token takes in sqlparser's tree and in the plan that is made of it.
const MEMORY_OF_TOKEN: usize = 480;

/// The query that a text is; `None` if sqlparser does not know its grammar.
pub fn parse(sql: &str) -> Result<Option<Box<Query>>> {
    let Some(mut tokens) = tokens(sql) else { return Ok(None) };
    ValueRoom::check_for(tokens.len().saturating_mul(MEMORY_OF_TOKEN), "parser")?;
    limits::check(&tokens)?;
    distinct_from::rewrite(&mut tokens);
    let dialect = Bounded::new(tokens.len());
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(limits::MAX_NESTING)
        .with_tokens_with_locations(tokens);
    let parsed = parser.parse_statement();
    Ok(match (parsed, &parser.peek_token().token) {
        (Ok(Statement::Query(query)), Token::EOF) => Some(query),
        _ => None,
    })
}

/// What in a query's text the query engine would take for something else. It would take no row
/// locks, misread the formats of some functions, and ignore some collations and columns.
pub fn misunderstood(sql: &str) -> Option<String> {
    let tokens = tokens(sql)?;
    let words: Vec<&TokenWithSpan> =
        tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    (0..words.len()).find_map(|at| {
        let [first, second, after @ ..] = &words[at..] else { return None };
        let (Token::Word(first), second) = (&first.token, &second.token) else { return None };
        if first.quote_style.is_some() {
            return None;
        }
        match (first.value.to_ascii_lowercase().as_str(), second) {
            ("for", Token::Word(next)) => {
                let next = next.value.to_ascii_lowercase();
                matches!(next.as_str(), "update" | "share" | "no" | "key")
                    .then(|| format!("FOR {} on anything but a table", next.to_uppercase()))
            }
            ("collate", Token::Word(name)) => {
                // COLLATE pg_catalog.default
                let name = match after {
                    [point, last, ..] if point.token == Token::Period => match &last.token {
                        Token::Word(last) => last,
                        _ => name,
                    },
                    _ => name,
                };
                (!is_bytewise(&name.value)).then(|| format!("the collation \"{}\"", name.value))
            }
            // After a function's arguments; elsewhere it may be what a common table expression is
            // called.
            ("with", Token::Word(next)) if at > 0 && words[at - 1].token == Token::RParen => {
                next.value.eq_ignore_ascii_case("ordinality").then(|| "WITH ORDINALITY".to_owned())
            }
            _ => None,
        }
    })
}

fn tokens(sql: &str) -> Option<Vec<TokenWithSpan>> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location();
    tokens.ok().map(operator::rewrite)
}
