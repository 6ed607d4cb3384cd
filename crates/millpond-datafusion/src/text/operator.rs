//! Where an operator ends.
//!
//! sqlparser takes all of `>-` in `a>-1` for one operator. In PostgreSQL an operator of several
//! characters rarely ends with `+` or `-`. It does only if it has a character that SQL's own
//! operators do not have.

use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

/// Takes the signs of an operand off the operators before them.
pub(super) fn rewrite(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_signed = |token: &TokenWithSpan| signed(&token.token).is_some();
    if !tokens.iter().any(is_signed) {
        return tokens;
    }
    let mut rewritten = Vec::with_capacity(tokens.len() + 1);
    for token in tokens {
        let Some((operator, signs)) = signed(&token.token) else {
            rewritten.push(token);
            continue;
        };
        let mut start = token.span.start;
        let mut push = |token, length| {
            let end = Location::new(start.line, start.column + length);
            rewritten.push(TokenWithSpan::new(token, Span::new(start, end)));
            start = end;
        };
        push(operator.0, operator.1);
        for sign in signs.bytes() {
            push(if sign == b'-' { Token::Minus } else { Token::Plus }, 1);
        }
    }
    rewritten
}

/// The operator without the signs after it and its length, and the signs.
fn signed(token: &Token) -> Option<((Token, u64), &str)> {
    let Token::CustomBinaryOperator(text) = token else { return None };
    let operator = text.trim_end_matches(['+', '-']);
    let token = match operator {
        "<" => Token::Lt,
        "<=" => Token::LtEq,
        "<>" => Token::Neq,
        "=" => Token::Eq,
        ">" => Token::Gt,
        ">=" => Token::GtEq,
        "*" => Token::Mul,
        "/" => Token::Div,
        _ => return None,
    };
    let signs = text.strip_prefix(operator).filter(|signs| !signs.is_empty())?;
    Some(((token, operator.len() as u64), signs))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn tokens(sql: &str) -> Vec<(String, u64, u64)> {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().unwrap();
        let seen = |token: TokenWithSpan| {
            (token.token.to_string(), token.span.start.column, token.span.end.column)
        };
        rewrite(tokens).into_iter().map(seen).collect()
    }

    #[test]
    fn sign_of_an_operand_is_no_part_of_the_operator() {
        for operator in ["<", "<=", "<>", "=", ">", ">=", "*", "/"] {
            for sign in ["-", "+"] {
                let (joined, apart) =
                    (format!("a{operator}{sign}1"), format!("a{operator} {sign}1"));
                let joined: Vec<String> = tokens(&joined).into_iter().map(|t| t.0).collect();
                let apart: Vec<String> = tokens(&apart).into_iter().map(|t| t.0).collect();
                assert_eq!(joined, [&apart[..2], &apart[3..]].concat());
            }
        }
    }

    #[test]
    fn tokens_keep_their_places() {
        let found = tokens("a>=-b");
        let places: Vec<(u64, u64)> = found.iter().map(|token| (token.1, token.2)).collect();
        assert_eq!(places, [(1, 2), (2, 4), (4, 5), (5, 6)]);
    }

    #[test]
    fn operator_with_a_character_of_its_own_may_end_with_a_sign() {
        assert_eq!(tokens("a||-b")[1].0, "||-");
    }
}
