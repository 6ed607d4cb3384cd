//! `ROWS FROM (f(..), g(..))`, which sqlparser does not know.
//!
//! Before parsing it becomes the call of a function whose name no text can have. As many tokens
//! stay as there were, and each keeps its position in the text.

use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// The function's name: not quoted, and no word.
const NAME: &str = "rows from";

/// Whether a call stands for `ROWS FROM`.
pub(crate) fn is_rows_from(name: &ast::ObjectName) -> bool {
    matches!(name.0.as_slice(), [ast::ObjectNamePart::Identifier(one)]
        if one.quote_style.is_none() && one.value == NAME)
}

/// Rewrites the calls among the tokens of statements.
pub(super) fn rewrite(tokens: &mut [TokenWithSpan]) {
    // Of each open parenthesis, and of what is outside of all, whether it is in a FROM clause now:
    // in a select list `rows` is a column before FROM.
    let mut in_from = vec![false];
    for at in 0..tokens.len() {
        match &tokens[at].token {
            Token::LParen => in_from.push(false),
            Token::RParen => {
                in_from.pop();
                if in_from.is_empty() {
                    in_from.push(false);
                }
            }
            Token::SemiColon => in_from = vec![false],
            Token::Word(word) if word.quote_style.is_none() => {
                let is_now = match word.keyword {
                    Keyword::SELECT => Some(false),
                    Keyword::FROM | Keyword::USING => Some(true),
                    _ => None,
                };
                let level = in_from.last_mut();
                if let (Some(is_now), Some(level)) = (is_now, level) {
                    *level = is_now;
                } else if word.keyword == Keyword::ROWS && in_from.last() == Some(&true) {
                    call(&mut tokens[at..]);
                }
            }
            _ => {}
        }
    }
}

/// Makes a call of the tokens, if they begin with `ROWS FROM (`.
fn call(tokens: &mut [TokenWithSpan]) {
    let mut words =
        (1..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)));
    let (Some(from), Some(open)) = (words.next(), words.next()) else { return };
    let is_from = matches!(&tokens[from].token, Token::Word(word)
        if word.quote_style.is_none() && word.keyword == Keyword::FROM);
    if !is_from || tokens[open].token != Token::LParen {
        return;
    }
    if let Token::Word(word) = &mut tokens[0].token {
        NAME.clone_into(&mut word.value);
        word.keyword = Keyword::NoKeyword;
    }
    tokens[from].token = Token::Whitespace(Whitespace::Space);
}
