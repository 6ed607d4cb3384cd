//! `IS [NOT] DISTINCT FROM` binds closer than AND and OR, but sqlparser takes all that follows for
//! its right side. So before parsing, one that AND or OR follows is put in parentheses.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// How many tokens of an operand are looked at.
const LONGEST: usize = 1000;

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// Adds the parentheses among the tokens of statements.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut added: Vec<(usize, Token)> = Vec::new();
    for at in 0..tokens.len() {
        let Some(right) = right_side(tokens, at) else { continue };
        let Some(end) = end_before_logic(&tokens[right..]) else { continue };
        let Some(start) = start_of_left(&tokens[..at]) else { continue };
        added.push((start, Token::LParen));
        added.push((right + end, Token::RParen));
    }
    if added.is_empty() {
        return;
    }
    added.sort_by_key(|(at, token)| (*at, *token == Token::LParen));
    let mut added = added.into_iter().peekable();
    let mut all = Vec::with_capacity(tokens.len() + added.len());
    for (at, token) in std::mem::take(tokens).into_iter().enumerate() {
        while let Some((_, paren)) = added.next_if(|(place, _)| *place == at) {
            all.push(TokenWithSpan { token: paren, span: token.span });
        }
        all.push(token);
    }
    *tokens = all;
}

/// Where the left side begins that ends these tokens. `None`: it is not clear.
fn start_of_left(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut start = tokens.len();
    let mut has_equals = false;
    for (at, token) in tokens.iter().enumerate().rev().take(LONGEST) {
        match (&token.token, keyword(token)) {
            (Token::RParen | Token::RBracket, _) | (_, Some(Keyword::END)) => depth += 1,
            (Token::LParen | Token::LBracket, _) | (_, Some(Keyword::CASE)) => {
                match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => return Some(start),
                }
            }
            _ if depth > 0 => {}
            (_, Some(Keyword::AND)) => {
                // It may be the AND of BETWEEN.
                let before = tokens[..at].iter().rev().take(LONGEST).map(keyword);
                let logic = [Some(Keyword::BETWEEN), Some(Keyword::AND), Some(Keyword::OR)];
                let mut logic = before.filter(|word| logic.contains(word));
                return (logic.next() != Some(Some(Keyword::BETWEEN))).then_some(start);
            }
            // What is on the left of a comparison may be a column that is set.
            (_, Some(Keyword::SET)) | (Token::Comma, _) => return (!has_equals).then_some(start),
            (Token::SemiColon, _)
            | (
                _,
                Some(
                    Keyword::OR
                    | Keyword::NOT
                    | Keyword::SELECT
                    | Keyword::ALL
                    | Keyword::DISTINCT
                    | Keyword::WHERE
                    | Keyword::ON
                    | Keyword::HAVING
                    | Keyword::BY
                    | Keyword::WHEN
                    | Keyword::THEN
                    | Keyword::ELSE
                    | Keyword::RETURNING,
                ),
            ) => return Some(start),
            (Token::Eq, _) => has_equals = true,
            _ => {}
        }
        if !is_space(token) {
            start = at;
        }
    }
    None
}

/// Where the right side begins, if an `IS` that DISTINCT FROM follows is at this place.
fn right_side(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    if keyword(tokens.get(at)?) != Some(Keyword::IS) {
        return None;
    }
    let mut words = (at + 1..tokens.len()).filter(|at| !is_space(&tokens[*at]));
    let mut next = words.next()?;
    if keyword(&tokens[next]) == Some(Keyword::NOT) {
        next = words.next()?;
    }
    let from = words.next()?;
    let is_it = keyword(&tokens[next]) == Some(Keyword::DISTINCT)
        && keyword(&tokens[from]) == Some(Keyword::FROM);
    if is_it { words.next() } else { None }
}

/// How many tokens are before the AND or OR that ends an expression, if one of them does.
fn end_before_logic(tokens: &[TokenWithSpan]) -> Option<usize> {
    // Parentheses, brackets and CASE that are open.
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().take(LONGEST) {
        match (&token.token, keyword(token)) {
            (Token::LParen | Token::LBracket, _) | (_, Some(Keyword::CASE)) => depth += 1,
            (Token::RParen | Token::RBracket, _) | (_, Some(Keyword::END)) => {
                depth = depth.checked_sub(1)?;
            }
            _ if depth > 0 => {}
            (_, Some(Keyword::AND | Keyword::OR)) => return (at > 0).then_some(at),
            // An AND of BETWEEN belongs to the right side: that is left as it is.
            (Token::Comma | Token::SemiColon | Token::EOF, _)
            | (
                _,
                Some(
                    Keyword::BETWEEN
                    | Keyword::THEN
                    | Keyword::WHEN
                    | Keyword::ELSE
                    | Keyword::FROM
                    | Keyword::WHERE
                    | Keyword::GROUP
                    | Keyword::HAVING
                    | Keyword::ORDER
                    | Keyword::WINDOW
                    | Keyword::UNION
                    | Keyword::INTERSECT
                    | Keyword::EXCEPT
                    | Keyword::JOIN
                    | Keyword::INNER
                    | Keyword::LEFT
                    | Keyword::RIGHT
                    | Keyword::FULL
                    | Keyword::CROSS
                    | Keyword::NATURAL
                    | Keyword::LIMIT
                    | Keyword::OFFSET
                    | Keyword::FETCH,
                ),
            ) => return None,
            _ => {}
        }
    }
    None
}
