//! The grammar of paths.

mod steps;

use super::lexer::{Lexer, Token, near};
use super::{Arith, Compare, Expr, Flags, JsonPath, MAX_DEPTH, MAX_OPERATORS, syntax, too_deep};
use crate::error::{DataException, Result};
use crate::sqlstate::SqlState;

pub(super) fn path(text: &str) -> Result<JsonPath> {
    if text.trim().is_empty() {
        return Err(DataException::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type jsonpath: \"{text}\""),
        ));
    }
    let mut parser = Parser::new(text)?;
    let lax = !parser.eat_word("strict")?;
    if lax {
        parser.eat_word("lax")?;
    }
    let expr = parser.or()?;
    match parser.token {
        Token::End => {}
        _ => return Err(parser.unexpected()),
    }
    match parser.misplaced {
        Some(what) => Err(syntax(what)),
        None => Ok(JsonPath { lax, expr }),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next word, and how it is written.
    token: Token,
    written: &'a str,
    depth: usize,
    operators: usize,
    /// In how many filters and subscripts this place is.
    filters: usize,
    subscripts: usize,
    /// The first word that may not stand where it does. Errors of syntax come before it.
    misplaced: Option<&'static str>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let (token, written) = lexer.next()?;
        Ok(Self {
            lexer,
            token,
            written,
            depth: 0,
            operators: 0,
            filters: 0,
            subscripts: 0,
            misplaced: None,
        })
    }

    /// Takes the next word.
    fn take(&mut self) -> Result<Token> {
        let (next, written) = self.lexer.next()?;
        self.written = written;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(own) if own == sign)
    }

    fn eat(&mut self, sign: &str) -> Result<bool> {
        let found = self.is_sign(sign);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.eat(sign)? { Ok(()) } else { Err(self.unexpected()) }
    }

    fn is_word(&self, word: &str) -> bool {
        match &self.token {
            // These three are words in lower case only.
            Token::Name(own) if matches!(word, "null" | "true" | "false") => own == word,
            Token::Name(own) => own.eq_ignore_ascii_case(word),
            _ => false,
        }
    }

    fn eat_word(&mut self, word: &str) -> Result<bool> {
        let found = self.is_word(word);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word)? { Ok(()) } else { Err(self.unexpected()) }
    }

    fn string(&mut self) -> Result<String> {
        match self.take()? {
            Token::String(text) => Ok(text),
            other => {
                self.token = other;
                Err(self.unexpected())
            }
        }
    }

    #[cold]
    fn unexpected(&self) -> DataException {
        near(self.written)
    }

    fn predicate(&self, expr: Expr) -> Result<Box<Expr>> {
        if expr.is_predicate() { Ok(Box::new(expr)) } else { Err(self.unexpected()) }
    }

    fn value(&self, expr: Expr) -> Result<Box<Expr>> {
        if expr.is_predicate() { Err(self.unexpected()) } else { Ok(Box::new(expr)) }
    }

    /// Parses what stands deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Takes a binary operator.
    fn operator(&mut self) -> Result<()> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(too_deep());
        }
        self.take().map(drop)
    }

    fn or(&mut self) -> Result<Expr> {
        self.nested(|parser| {
            let mut expr = parser.and()?;
            while parser.is_sign("||") {
                let left = parser.predicate(expr)?;
                parser.operator()?;
                let right = parser.and()?;
                expr = Expr::Or(left, parser.predicate(right)?);
            }
            Ok(expr)
        })
    }

    fn and(&mut self) -> Result<Expr> {
        let mut expr = self.not()?;
        while self.is_sign("&&") {
            let left = self.predicate(expr)?;
            self.operator()?;
            let right = self.not()?;
            expr = Expr::And(left, self.predicate(right)?);
        }
        Ok(expr)
    }

    fn not(&mut self) -> Result<Expr> {
        if !self.eat("!")? {
            return self.comparison();
        }
        if self.is_word("exists") {
            let exists = self.exists()?;
            return Ok(Expr::Not(Box::new(exists)));
        }
        self.expect("(")?;
        let inner = self.or()?;
        let inner = self.predicate(inner)?;
        self.expect(")")?;
        Ok(Expr::Not(inner))
    }

    fn exists(&mut self) -> Result<Expr> {
        self.take()?;
        self.expect("(")?;
        let inner = self.or()?;
        let inner = self.value(inner)?;
        self.expect(")")?;
        Ok(Expr::Exists(inner))
    }

    fn comparison(&mut self) -> Result<Expr> {
        let left = self.additive()?;
        if left.is_predicate() {
            return Ok(left);
        }
        let compare = match self.token {
            Token::Sign("<>") => Some(Compare::Ne),
            Token::Sign("=") => Some(Compare::Eq),
            Token::Sign(sign) => Compare::of(sign),
            _ => None,
        };
        if let Some(compare) = compare {
            self.take()?;
            let right = self.additive()?;
            return Ok(Expr::Compare(compare, Box::new(left), self.value(right)?));
        }
        if self.eat_word("starts")? {
            self.expect_word("with")?;
            let prefix = match self.take()? {
                Token::String(text) => Expr::String(text),
                Token::Variable(name) => Expr::Variable(name),
                _ => return Err(self.unexpected()),
            };
            return Ok(Expr::StartsWith(Box::new(left), Box::new(prefix)));
        }
        if self.eat_word("like_regex")? {
            let pattern = self.string()?;
            let flags = match self.eat_word("flag")? {
                true => flags(&self.string()?)?,
                false => Flags::default(),
            };
            return Ok(Expr::LikeRegex(Box::new(left), pattern, flags));
        }
        Ok(left)
    }

    fn additive(&mut self) -> Result<Expr> {
        let mut expr = self.multiplicative()?;
        while let Token::Sign(sign @ ("+" | "-")) = self.token {
            let left = self.value(expr)?;
            self.operator()?;
            let right = self.multiplicative()?;
            expr = arith(sign, left, self.value(right)?);
        }
        Ok(expr)
    }

    fn multiplicative(&mut self) -> Result<Expr> {
        let mut expr = self.signed()?;
        while let Token::Sign(sign @ ("*" | "/" | "%")) = self.token {
            let left = self.value(expr)?;
            self.operator()?;
            let right = self.signed()?;
            expr = arith(sign, left, self.value(right)?);
        }
        Ok(expr)
    }

    fn signed(&mut self) -> Result<Expr> {
        let Token::Sign(sign @ ("+" | "-")) = self.token else { return self.accessors() };
        self.take()?;
        let inner = self.nested(Self::signed)?;
        Ok(Expr::Sign(sign == "-", self.value(inner)?))
    }

    /// Something with the steps behind it.
    fn accessors(&mut self) -> Result<Expr> {
        let head = self.primary()?;
        let mut steps = Vec::new();
        while let Token::Sign("." | "[" | "?" | "**") = self.token {
            steps.push(self.step()?);
        }
        if !steps.is_empty() {
            return Ok(Expr::Path(Box::new(head), steps));
        }
        Ok(head)
    }

    fn primary(&mut self) -> Result<Expr> {
        if self.is_word("exists") {
            return self.exists();
        }
        for (word, value) in
            [("null", Expr::Null), ("true", Expr::Bool(true)), ("false", Expr::Bool(false))]
        {
            if self.eat_word(word)? {
                return Ok(value);
            }
        }
        if self.is_word("last") {
            if self.subscripts == 0 {
                self.misplaced.get_or_insert("LAST is allowed only in array subscripts");
            }
            self.take()?;
            return Ok(Expr::Last);
        }
        match &self.token {
            Token::Sign("@") if self.filters == 0 => {
                self.misplaced.get_or_insert("@ is not allowed in root expressions");
            }
            Token::Sign("$" | "@" | "(") | Token::String(_) | Token::Variable(_) => {}
            Token::Number(_) => {}
            _ => return Err(self.unexpected()),
        }
        Ok(match self.take()? {
            Token::Sign("$") => Expr::Root,
            Token::Sign("@") => Expr::Current,
            Token::String(text) => Expr::String(text),
            Token::Variable(name) => Expr::Variable(name),
            Token::Number(number) => Expr::Number(number.parse()?),
            _ => return self.parentheses(),
        })
    }

    /// What follows an opening parenthesis.
    fn parentheses(&mut self) -> Result<Expr> {
        let inner = self.or()?;
        self.expect(")")?;
        if inner.is_predicate() && self.is_word("is") {
            self.take()?;
            self.expect_word("unknown")?;
            return Ok(Expr::IsUnknown(Box::new(inner)));
        }
        Ok(inner)
    }
}

fn arith(sign: &str, left: Box<Expr>, right: Box<Expr>) -> Expr {
    Expr::Arith(Arith::of(sign).unwrap_or(Arith::Add), left, right)
}

fn flags(letters: &str) -> Result<Flags> {
    let mut flags = Flags::default();
    for letter in letters.chars() {
        match letter {
            'i' => flags.ignore_case = true,
            's' => flags.dot_all = true,
            'm' => flags.multi_line = true,
            'q' => flags.quote = true,
            'x' => {
                return Err(DataException::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "XQuery \"x\" flag (expanded regular expressions) is not implemented",
                ));
            }
            _ => {
                return Err(syntax("invalid input syntax for type jsonpath").detail(format!(
                    "Unrecognized flag character \"{letter}\" in LIKE_REGEX predicate."
                )));
            }
        }
    }
    Ok(flags)
}
