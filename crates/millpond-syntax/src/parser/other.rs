//! Statements that have no tree yet. squawk-syntax says whether they are in the grammar.

use squawk_syntax::SourceFile;

use super::cursor::too_deep;
use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::lexer::TokenKind;
use crate::tree::Statement;

/// How many brackets, CASEs and operators in a row squawk-syntax is given. It recurses without a
/// limit of its own.
const NESTING: usize = 200;

/// How many operators that may make a tree deeper it is given between two commas.
const CHAIN: usize = 500;

/// Strings of more bytes are not shown to it.
const LONG_STRING: usize = 1000;

impl Parser<'_> {
    pub(super) fn other(&mut self) -> Parse<Statement> {
        let Some(kind) = self.command_tag() else {
            let ahead = self.unknown_object();
            return Err(self.unexpected_at(ahead));
        };
        let start = self.at;
        let end = self.statement_end()?;
        let from = self.location() as usize;
        let to = self.token(end - start).start as usize;
        let text = self.without_bodies(end, from, to);
        let parsed = SourceFile::parse(&text);
        let mut wrong = None;
        for error in parsed.errors() {
            let at = u32::from(error.range().start()) as usize + from;
            // The parser points between two tokens, or at one. PostgreSQL names the later one.
            let tokens = self.tokens.get(start..end).unwrap_or_default();
            let ahead = tokens.partition_point(|token| token.end as usize <= at);
            // What is inside of a string is not the grammar's.
            let inside = self.is_string_at(ahead) && at > self.token(ahead).start as usize;
            if !inside && wrong.is_none_or(|before| ahead < before) {
                wrong = Some(ahead);
            }
        }
        if let Some(ahead) = wrong {
            return Err(self.unexpected_at(ahead));
        }
        self.at = end;
        Ok(Statement::Other { kind })
    }

    /// The text of the statement, with spaces for the long strings: squawk-syntax would parse the
    /// bodies of functions.
    fn without_bodies(&self, end: usize, from: usize, to: usize) -> String {
        let mut text = String::with_capacity(to - from);
        let mut copied = from;
        for token in self.tokens.get(self.at..end).unwrap_or_default() {
            let (start, end) = (token.start as usize, token.end as usize);
            let length = end - start;
            let quote = match token.kind {
                TokenKind::DollarString => {
                    let source = self.slice(*token);
                    source.get(1..).and_then(|rest| rest.find('$')).unwrap_or_default() + 2
                }
                TokenKind::String if length > LONG_STRING => 1,
                _ => continue,
            };
            if length < 2 * quote {
                continue;
            }
            text.push_str(self.text.get(copied..start + quote).unwrap_or_default());
            text.extend(std::iter::repeat_n(' ', length - 2 * quote));
            copied = end - quote;
        }
        text.push_str(self.text.get(copied..to).unwrap_or_default());
        text
    }

    /// The token behind the statement: a semicolon outside of parentheses and bodies, or the end.
    fn statement_end(&mut self) -> Parse<usize> {
        let (mut bodies, mut run, mut cases) = (0_usize, 0, 0);
        // For each bracket that is open, the operators since the last comma in it.
        let mut chains = vec![0];
        for ahead in 0.. {
            let kind = self.kind_at(ahead);
            run = if is_prefix(kind) { run + 1 } else { 0 };
            let chain = chains.last_mut().map_or(0, |chain| {
                *chain = if kind == TokenKind::Char(b',') { 0 } else { *chain + deepens(kind) };
                *chain
            });
            match kind {
                TokenKind::Bad => return Err(self.unexpected_at(ahead)),
                TokenKind::End => return Ok(self.at + ahead),
                TokenKind::Char(b';') if chains.len() == 1 && bodies == 0 => {
                    return Ok(self.at + ahead);
                }
                TokenKind::Char(b';') => chains.iter_mut().for_each(|chain| *chain = 0),
                TokenKind::Char(b'(' | b'[') => chains.push(0),
                // One that nothing opened ends the statement, too: the caller refuses it.
                TokenKind::Char(b')' | b']') if chains.len() == 1 => {
                    return Ok(self.at + ahead);
                }
                TokenKind::Char(b')' | b']') => {
                    chains.pop();
                }
                TokenKind::Keyword(Keyword::Begin)
                    if self.is_keyword_at(ahead + 1, Keyword::Atomic) =>
                {
                    bodies += 1;
                }
                TokenKind::Keyword(Keyword::Case) if bodies > 0 => bodies += 1,
                TokenKind::Keyword(Keyword::End) if bodies > 0 => bodies -= 1,
                // Outside of a body nothing says where CASE ends.
                TokenKind::Keyword(Keyword::Case) => cases += 1,
                _ => {}
            }
            if chains.len() + bodies + cases > NESTING || run > NESTING || chain > CHAIN {
                return Err(too_deep(self.token(ahead).start));
            }
        }
        Err(self.unexpected())
    }

    /// How many words of a statement that defines something are right.
    fn unknown_object(&self) -> usize {
        let words = [Keyword::Create, Keyword::Alter, Keyword::Drop, Keyword::Security];
        if !self.keyword().is_some_and(|keyword| words.contains(&keyword)) {
            return 0;
        }
        let modifiers = [
            Keyword::Temp,
            Keyword::Temporary,
            Keyword::Unlogged,
            Keyword::Unique,
            Keyword::Materialized,
            Keyword::Recursive,
        ];
        let create = self.is_keyword(Keyword::Create);
        let mut ahead = 1;
        if create && self.is_keyword_at(1, Keyword::Or) && self.is_keyword_at(2, Keyword::Replace) {
            ahead = 3;
        }
        if create && self.keyword_at(ahead).is_some_and(|keyword| modifiers.contains(&keyword)) {
            ahead += 1;
        }
        ahead
    }

    /// PostgreSQL's command tag, from the first words.
    fn command_tag(&self) -> Option<&'static str> {
        Some(match self.keyword()? {
            Keyword::Create => return self.definition_tag(0),
            Keyword::Alter => return self.definition_tag(1),
            Keyword::Drop => return self.definition_tag(2),
            Keyword::Set => "SET CONSTRAINTS",
            Keyword::Grant if self.is_role_grant() => "GRANT ROLE",
            Keyword::Grant => "GRANT",
            Keyword::Revoke if self.is_role_grant() => "REVOKE ROLE",
            Keyword::Revoke => "REVOKE",
            Keyword::Comment => "COMMENT",
            Keyword::Security => "SECURITY LABEL",
            Keyword::Do => "DO",
            Keyword::Call => "CALL",
            Keyword::Cluster => "CLUSTER",
            Keyword::Refresh => "REFRESH MATERIALIZED VIEW",
            Keyword::Import => "IMPORT FOREIGN SCHEMA",
            Keyword::Reassign => "REASSIGN OWNED",
            Keyword::Load => "LOAD",
            _ => return None,
        })
    }

    /// Whether roles are granted: no ON in front of TO or FROM.
    fn is_role_grant(&self) -> bool {
        for ahead in 1.. {
            match self.kind_at(ahead) {
                TokenKind::Keyword(Keyword::On) => return false,
                TokenKind::Keyword(Keyword::To | Keyword::From) => return true,
                TokenKind::End | TokenKind::Bad | TokenKind::Char(b';') => return false,
                _ => {}
            }
        }
        false
    }

    /// The tag of CREATE, ALTER or DROP, by the words that say of what.
    fn definition_tag(&self, verb: usize) -> Option<&'static str> {
        let mut ahead = 1;
        if self.is_keyword_at(1, Keyword::Or) && self.is_keyword_at(2, Keyword::Replace) {
            ahead = 3;
        }
        let skipped =
            [Keyword::Constraint, Keyword::Procedural, Keyword::Trusted, Keyword::Default];
        while self.keyword_at(ahead).is_some_and(|keyword| skipped.contains(&keyword)) {
            ahead += 1;
        }
        let found = TAGS.iter().find(|(words, _)| {
            words.iter().enumerate().all(|(at, &word)| self.is_keyword_at(ahead + at, word))
        })?;
        found.1.get(verb).copied().filter(|tag| !tag.is_empty())
    }
}

/// 1 for a token that may make squawk-syntax's tree a level deeper.
fn deepens(kind: TokenKind) -> usize {
    let deepens = match kind {
        TokenKind::Op
        | TokenKind::Typecast
        | TokenKind::LessEquals
        | TokenKind::GreaterEquals
        | TokenKind::NotEquals => true,
        TokenKind::Char(byte) => !matches!(byte, b')' | b']' | b';' | b','),
        TokenKind::Keyword(keyword) => matches!(
            keyword,
            Keyword::And
                | Keyword::Or
                | Keyword::Not
                | Keyword::Is
                | Keyword::Isnull
                | Keyword::Notnull
                | Keyword::In
                | Keyword::Like
                | Keyword::Ilike
                | Keyword::Similar
                | Keyword::Between
                | Keyword::At
                | Keyword::Collate
                | Keyword::Union
                | Keyword::Intersect
                | Keyword::Except
                | Keyword::Join
                | Keyword::Operator
        ),
        _ => false,
    };
    usize::from(deepens)
}

fn is_prefix(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Op
            | TokenKind::Char(b'+' | b'-')
            | TokenKind::Keyword(Keyword::Not | Keyword::Explain | Keyword::Create)
    )
}

/// What may be created, altered, dropped: the words, and the three tags. Longer words come first.
const TAGS: &[(&[Keyword], [&str; 3])] = &[
    (&[Keyword::Access, Keyword::Method], ["CREATE ACCESS METHOD", "", "DROP ACCESS METHOD"]),
    (&[Keyword::Aggregate], ["CREATE AGGREGATE", "ALTER AGGREGATE", "DROP AGGREGATE"]),
    (&[Keyword::Cast], ["CREATE CAST", "", "DROP CAST"]),
    (&[Keyword::Collation], ["CREATE COLLATION", "ALTER COLLATION", "DROP COLLATION"]),
    (&[Keyword::Conversion], ["CREATE CONVERSION", "ALTER CONVERSION", "DROP CONVERSION"]),
    (&[Keyword::Database], ["CREATE DATABASE", "ALTER DATABASE", "DROP DATABASE"]),
    (&[Keyword::Privileges], ["", "ALTER DEFAULT PRIVILEGES", ""]),
    (&[Keyword::Domain], ["CREATE DOMAIN", "ALTER DOMAIN", "DROP DOMAIN"]),
    (
        &[Keyword::Event, Keyword::Trigger],
        ["CREATE EVENT TRIGGER", "ALTER EVENT TRIGGER", "DROP EVENT TRIGGER"],
    ),
    (&[Keyword::Extension], ["CREATE EXTENSION", "ALTER EXTENSION", "DROP EXTENSION"]),
    (
        &[Keyword::Foreign, Keyword::Data, Keyword::Wrapper],
        ["CREATE FOREIGN DATA WRAPPER", "ALTER FOREIGN DATA WRAPPER", "DROP FOREIGN DATA WRAPPER"],
    ),
    (
        &[Keyword::Foreign, Keyword::Table],
        ["CREATE FOREIGN TABLE", "ALTER FOREIGN TABLE", "DROP FOREIGN TABLE"],
    ),
    (&[Keyword::Function], ["CREATE FUNCTION", "ALTER FUNCTION", "DROP FUNCTION"]),
    (&[Keyword::Group], ["CREATE ROLE", "ALTER ROLE", "DROP ROLE"]),
    (&[Keyword::Index], ["CREATE INDEX", "ALTER INDEX", "DROP INDEX"]),
    (&[Keyword::Language], ["CREATE LANGUAGE", "ALTER LANGUAGE", "DROP LANGUAGE"]),
    (&[Keyword::Large, Keyword::Object], ["", "ALTER LARGE OBJECT", ""]),
    (
        &[Keyword::Materialized, Keyword::View],
        ["CREATE MATERIALIZED VIEW", "ALTER MATERIALIZED VIEW", "DROP MATERIALIZED VIEW"],
    ),
    (
        &[Keyword::Operator, Keyword::Class],
        ["CREATE OPERATOR CLASS", "ALTER OPERATOR CLASS", "DROP OPERATOR CLASS"],
    ),
    (
        &[Keyword::Operator, Keyword::Family],
        ["CREATE OPERATOR FAMILY", "ALTER OPERATOR FAMILY", "DROP OPERATOR FAMILY"],
    ),
    (&[Keyword::Operator], ["CREATE OPERATOR", "ALTER OPERATOR", "DROP OPERATOR"]),
    (&[Keyword::Owned], ["", "", "DROP OWNED"]),
    (&[Keyword::Policy], ["CREATE POLICY", "ALTER POLICY", "DROP POLICY"]),
    (&[Keyword::Procedure], ["CREATE PROCEDURE", "ALTER PROCEDURE", "DROP PROCEDURE"]),
    (&[Keyword::Publication], ["CREATE PUBLICATION", "ALTER PUBLICATION", "DROP PUBLICATION"]),
    (&[Keyword::Role], ["CREATE ROLE", "ALTER ROLE", "DROP ROLE"]),
    (&[Keyword::Routine], ["", "ALTER ROUTINE", "DROP ROUTINE"]),
    (&[Keyword::Rule], ["CREATE RULE", "ALTER RULE", "DROP RULE"]),
    (&[Keyword::Schema], ["CREATE SCHEMA", "ALTER SCHEMA", "DROP SCHEMA"]),
    (&[Keyword::Sequence], ["CREATE SEQUENCE", "ALTER SEQUENCE", "DROP SEQUENCE"]),
    (&[Keyword::Server], ["CREATE SERVER", "ALTER SERVER", "DROP SERVER"]),
    (&[Keyword::Statistics], ["CREATE STATISTICS", "ALTER STATISTICS", "DROP STATISTICS"]),
    (&[Keyword::Subscription], ["CREATE SUBSCRIPTION", "ALTER SUBSCRIPTION", "DROP SUBSCRIPTION"]),
    (&[Keyword::System], ["", "ALTER SYSTEM", ""]),
    (&[Keyword::Table], ["CREATE TABLE", "ALTER TABLE", "DROP TABLE"]),
    (&[Keyword::Tablespace], ["CREATE TABLESPACE", "ALTER TABLESPACE", "DROP TABLESPACE"]),
    (
        &[Keyword::Text, Keyword::Search, Keyword::Configuration],
        [
            "CREATE TEXT SEARCH CONFIGURATION",
            "ALTER TEXT SEARCH CONFIGURATION",
            "DROP TEXT SEARCH CONFIGURATION",
        ],
    ),
    (
        &[Keyword::Text, Keyword::Search, Keyword::Dictionary],
        [
            "CREATE TEXT SEARCH DICTIONARY",
            "ALTER TEXT SEARCH DICTIONARY",
            "DROP TEXT SEARCH DICTIONARY",
        ],
    ),
    (
        &[Keyword::Text, Keyword::Search, Keyword::Parser],
        ["CREATE TEXT SEARCH PARSER", "ALTER TEXT SEARCH PARSER", "DROP TEXT SEARCH PARSER"],
    ),
    (
        &[Keyword::Text, Keyword::Search, Keyword::Template],
        ["CREATE TEXT SEARCH TEMPLATE", "ALTER TEXT SEARCH TEMPLATE", "DROP TEXT SEARCH TEMPLATE"],
    ),
    (&[Keyword::Transform], ["CREATE TRANSFORM", "", "DROP TRANSFORM"]),
    (&[Keyword::Trigger], ["CREATE TRIGGER", "ALTER TRIGGER", "DROP TRIGGER"]),
    (&[Keyword::Type], ["CREATE TYPE", "ALTER TYPE", "DROP TYPE"]),
    (
        &[Keyword::User, Keyword::Mapping],
        ["CREATE USER MAPPING", "ALTER USER MAPPING", "DROP USER MAPPING"],
    ),
    (&[Keyword::User], ["CREATE ROLE", "ALTER ROLE", "DROP ROLE"]),
    (&[Keyword::View], ["CREATE VIEW", "ALTER VIEW", "DROP VIEW"]),
];
