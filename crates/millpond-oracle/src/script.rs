//! Splits a script of psql into statements.
//!
//! It knows what ends a statement and what hides a semicolon: strings, dollar quotes, quoted names,
//! comments and parentheses. Of psql's own commands it knows `\set`, `\g` and the like, which end a
//! statement, and the data behind `COPY ... FROM STDIN`. It skips other commands.

use std::collections::HashMap;

/// A statement of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Without the semicolon.
    pub text: String,
    /// The line on which it begins, counted from 1.
    pub line: usize,
    /// The lines behind `COPY ... FROM STDIN`.
    pub data: String,
}

/// The statements of a script in which these variables are set.
pub fn statements(script: &str, variables: &[(&str, &str)]) -> Vec<Statement> {
    let variables =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut splitter =
        Splitter { script, at: 0, variables, text: String::new(), found: Vec::new() };
    splitter.run();
    splitter.found
}

/// Whether the statement orders its rows: whether ORDER BY is outside of all parentheses.
pub fn is_ordered(statement: &str) -> bool {
    let (mut at, mut depth, mut last) = (0, 0_usize, String::new());
    while let Some(rest) = statement.get(at..).filter(|rest| !rest.is_empty()) {
        let length = token_length(rest);
        let token = &rest[..length];
        at += length;
        match token {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ if token.trim().is_empty() => continue,
            _ => {}
        }
        let word = token.to_ascii_lowercase();
        if depth == 0 && word == "by" && last == "order" {
            return true;
        }
        last = word;
    }
    false
}

/// The statement's words, without spaces and comments. Names are in lower case, quoted names
/// without their quotes. Literals have a single quote in front. All else comes character by
/// character.
pub fn words(statement: &str) -> Vec<String> {
    let (mut at, mut found) = (0, Vec::new());
    while let Some(rest) = statement.get(at..).filter(|rest| !rest.is_empty()) {
        let length = token_length(rest);
        let token = &rest[..length];
        at += length;
        if token.trim().is_empty() || token.starts_with("--") || token.starts_with("/*") {
            continue;
        }
        found.push(match token.chars().next() {
            Some('"') => token.trim_matches('"').to_owned(),
            Some('e' | 'E') if token.ends_with('\'') => token[1..].to_owned(),
            Some('$') if length > 1 => format!("'{token}'"),
            Some('\'') => token.to_owned(),
            _ => token.to_lowercase(),
        });
    }
    found
}

struct Splitter<'a> {
    script: &'a str,
    at: usize,
    variables: HashMap<String, String>,
    /// The statement so far.
    text: String,
    found: Vec<Statement>,
}

impl Splitter<'_> {
    fn run(&mut self) {
        let (mut depth, mut line) = (0_usize, 1);
        while self.at < self.script.len() {
            let rest = &self.script[self.at..];
            let length = token_length(rest);
            let token = &rest[..length];
            if self.text.is_empty() {
                line = 1 + self.script[..self.at].matches('\n').count();
            }
            match token {
                ";" if depth == 0 => {
                    self.at += length;
                    self.end(line);
                    continue;
                }
                "\\" => {
                    let command = rest.split('\n').next().unwrap_or_default().to_owned();
                    self.at += command.len();
                    if command.starts_with("\\g") && !command.starts_with("\\getenv") {
                        depth = 0;
                        self.end(line);
                    } else {
                        self.set(&command);
                    }
                    continue;
                }
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += length;
            let hidden = token.starts_with("--") || token.starts_with("/*");
            if self.text.is_empty() && (hidden || token.trim().is_empty()) {
                continue;
            }
            let value = token.strip_prefix(':').and_then(|name| self.value(name));
            self.text.push_str(value.as_deref().unwrap_or(token));
        }
        self.end(line);
    }

    /// Ends a statement.
    fn end(&mut self, line: usize) {
        let text = std::mem::take(&mut self.text).trim_end().to_owned();
        if text.is_empty() {
            return;
        }
        let lower = text.to_ascii_lowercase();
        let data = if lower.starts_with("copy") && lower.contains("from stdin") {
            self.take_data()
        } else {
            String::new()
        };
        self.found.push(Statement { text, line, data });
    }

    /// The lines up to `\.`
    fn take_data(&mut self) -> String {
        let rest = &self.script[self.at..];
        let start = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
        let (mut data, mut end) = (String::new(), start);
        for line in rest[start..].split_inclusive('\n') {
            end += line.len();
            if line.trim_end() == "\\." {
                break;
            }
            data.push_str(line);
        }
        self.at += end;
        data
    }

    /// `\set name part...`: the parts without anything between them.
    fn set(&mut self, command: &str) {
        let Some(rest) = command.strip_prefix("\\set").map(str::trim_start) else { return };
        let (name, mut rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let mut value = String::new();
        while let Some(token) = Some(rest).filter(|rest| !rest.is_empty()) {
            let (token, behind) = token.split_at(token_length(token));
            rest = behind;
            match token.strip_prefix(':').and_then(|name| self.value(name)) {
                Some(of_variable) => value.push_str(&of_variable),
                None if token.starts_with('\'') => {
                    let inner = token[1..].strip_suffix('\'').unwrap_or(&token[1..]);
                    value.push_str(&inner.replace("''", "'"));
                }
                None => value.push_str(token.trim()),
            }
        }
        self.variables.insert(name.trim().to_owned(), value);
    }

    /// The value of `:name`, of `:'name'` as a literal, or of `:"name"` as a name.
    fn value(&self, name: &str) -> Option<String> {
        let bare = name.trim_matches(['\'', '"']);
        let value = self.variables.get(bare)?;
        Some(match name.chars().next() {
            Some('\'') => format!("'{}'", value.replace('\'', "''")),
            Some('"') => format!("\"{}\"", value.replace('"', "\"\"")),
            _ => value.clone(),
        })
    }
}

/// The length of the token at the front of a text that isn't empty. A token is space, a comment, a
/// string, a name, a variable of psql, or one other character.
fn token_length(text: &str) -> usize {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or(' ');
    let second = chars.next().unwrap_or(' ');
    match (first, second) {
        ('-', '-') => text.find('\n').unwrap_or(text.len()),
        ('/', '*') => block_comment(text),
        (':', ':') => 2,
        (':', '\'' | '"') => 1 + quoted(&text[1..], false),
        (':', c) if is_word(c) => 1 + word(&text[1..]),
        ('e' | 'E', '\'') => 1 + quoted(&text[1..], true),
        ('\'' | '"', _) => quoted(text, false),
        ('$', c) if c == '$' || (is_word(c) && !c.is_ascii_digit()) => dollar_quoted(text),
        (c, _) if c.is_whitespace() => {
            text.find(|c: char| !c.is_whitespace()).unwrap_or(text.len())
        }
        (c, _) if is_word(c) => word(text),
        _ => first.len_utf8(),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(text: &str) -> usize {
    text.find(|c: char| !is_word(c) && c != '$').unwrap_or(text.len())
}

/// The length of a string or quoted name. In it, a backslash hides the next character if it is an
/// escape.
fn quoted(text: &str, escapes: bool) -> usize {
    let mut chars = text.char_indices();
    let Some((_, quote)) = chars.next() else { return text.len() };
    let mut chars = chars.peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && escapes {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + c.len_utf8();
        }
    }
    text.len()
}

fn dollar_quoted(text: &str) -> usize {
    let Some(end) = text[1..].find('$') else { return 1 };
    let tag = &text[..end + 2];
    if !tag[1..end + 1].chars().all(is_word) {
        return 1;
    }
    text[tag.len()..].find(tag).map_or(text.len(), |at| at + 2 * tag.len())
}

fn block_comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if rest.starts_with("*/") {
            (at, depth) = (at + 2, depth - 1);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{is_ordered, statements, words};

    fn texts(script: &str) -> Vec<String> {
        statements(script, &[("dir", "/a'b")]).into_iter().map(|s| s.text).collect()
    }

    #[test]
    fn what_hides_a_semicolon() {
        assert_eq!(texts("select 1; select 2"), ["select 1", "select 2"]);
        assert_eq!(
            texts("select ';''', e'\\';', \"a;\"\"\";x"),
            ["select ';''', e'\\';', \"a;\"\"\"", "x"]
        );
        assert_eq!(texts("do $a$ ; $$ ; $a$; select $1;"), ["do $a$ ; $$ ; $a$", "select $1"]);
        assert_eq!(
            texts("-- x;\nselect /* ; /* ; */ ; */ 1 -- ;\n;"),
            ["select /* ; /* ; */ ; */ 1 -- ;"]
        );
        assert_eq!(texts("create rule r do (a; b); z"), ["create rule r do (a; b)", "z"]);
        assert_eq!(texts("select 'ä;'::text;;"), ["select 'ä;'::text"]);
        assert_eq!(texts("select 'open"), ["select 'open"]);
    }

    #[test]
    fn commands_and_variables_of_psql() {
        assert_eq!(texts("\\pset null x\nselect 1 \\gset\nselect 2;"), ["select 1", "select 2"]);
        assert_eq!(texts("\\set f :dir '/x'\nselect :'f', a::int;"), ["select '/a''b/x', a::int"]);
        assert_eq!(texts("\\set q 'select ' :dir '''b'''\n:q;"), ["select /a'b'b'"]);
        assert_eq!(texts("select a[1:2], :unknown;"), ["select a[1:2], :unknown"]);
    }

    #[test]
    fn data_of_a_copy_and_lines() {
        let script = "copy t from stdin;\n1\n;\n\\.\n-- a comment\n\nselect 1;\nselect 2;";
        let found = statements(script, &[]);
        assert_eq!(found[0].data, "1\n;\n");
        assert_eq!(found.iter().map(|s| s.line).collect::<Vec<_>>(), [1, 7, 8]);
    }

    #[test]
    fn words_of_a_statement() {
        assert_eq!(
            words("Select \"A b\", e'X' /* c */ FROM t::int -- d"),
            ["select", "A b", ",", "'X'", "from", "t", "::", "int"]
        );
    }

    #[test]
    fn order_outside_of_parentheses() {
        assert!(is_ordered("select 1 ORDER\n by 1"));
        assert!(!is_ordered("select (select 1 order by 1)"));
        assert!(!is_ordered("select 'order by'"));
    }
}
