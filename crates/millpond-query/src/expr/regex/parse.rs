//! From text to tree: PostgreSQL's advanced regular expressions, and the syntaxes of POSIX.

mod basic;
mod bracket;
mod escape;
mod prefix;

use super::node::{Assert, Node, NodeId, Preference, Tree};
use super::set::{CharSet, Parts, variants};
use super::{Options, Syntax, bad};
use crate::error::Result;

/// Groups within groups.
const MAX_DEPTH: usize = 200;
/// Repetitions at most, where a number is written.
const MAX_REPEAT: u32 = 255;
/// Nodes at most.
const MAX_NODES: usize = 200_000;

const REPEAT: &str = "quantifier operand invalid";
const PARENS: &str = "parentheses () not balanced";
const BRACES: &str = "braces {} not balanced";
const COUNTS: &str = "invalid repetition count(s)";
pub(super) const TOO_COMPLEX: &str = "regular expression is too complex";

/// Reads an expression; also returns its root.
pub(super) fn parse(pattern: &str, mut options: Options) -> Result<(Tree, NodeId)> {
    let text: Vec<char> = pattern.chars().collect();
    let at = prefix::read(&text, &mut options)?;
    let mut parser = Parser {
        text,
        at,
        options,
        tree: Tree::default(),
        depth: 0,
        conditions: 0,
        before: Before::Start,
    };
    parser.tree.ignore_case = parser.options.ignore_case;
    // Number 0 stands for a group that is not there yet.
    parser.tree.add(Node::Empty, None);
    let root = match parser.options.syntax {
        Syntax::Literal => parser.literal()?,
        _ => parser.alternatives()?,
    };
    if parser.at < parser.text.len() {
        return Err(bad(PARENS));
    }
    Ok((parser.tree, root))
}

struct Parser {
    text: Vec<char>,
    at: usize,
    options: Options,
    tree: Tree,
    depth: usize,
    /// How many conditions stand around the place. Groups within them capture nothing.
    conditions: usize,
    /// What stands before the place, in the basic syntax.
    before: Before,
}

/// What decides in the basic syntax whether `*` and `^` are characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The beginning of the expression or of a group.
    Start,
    /// A `^` there.
    Anchor,
    Other,
}

/// What stands at a place of an expression.
enum Atom {
    Node(NodeId),
    /// A condition, which can't be repeated.
    Condition(NodeId),
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    fn looking_at(&self, text: &str) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        text.chars().enumerate().all(|(place, c)| rest.get(place) == Some(&c))
    }

    fn add(&mut self, node: Node) -> Result<NodeId> {
        if self.tree.nodes.len() > MAX_NODES {
            return Err(bad(TOO_COMPLEX));
        }
        Ok(self.tree.add(node, None))
    }

    /// The rest of the text, each character as itself.
    fn literal(&mut self) -> Result<NodeId> {
        let mut items = Vec::new();
        while let Some(c) = self.next() {
            items.push(self.char(c)?);
        }
        Ok(self.tree.sequence(items))
    }

    fn char(&mut self, c: char) -> Result<NodeId> {
        if self.options.ignore_case && variants(c).iter().any(|variant| *variant != c) {
            return self.set(Parts { ranges: vec![(c, c)], ..Parts::default() });
        }
        self.add(Node::Char(c))
    }

    fn set(&mut self, parts: Parts) -> Result<NodeId> {
        let ignore_case = self.options.ignore_case;
        self.add(Node::Set(CharSet::new(Parts { ignore_case, ..parts })))
    }

    fn alternatives(&mut self) -> Result<NodeId> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(bad(TOO_COMPLEX));
        }
        self.before = Before::Start;
        let mut branches = vec![self.branch()?];
        while self.options.syntax != Syntax::Basic && self.eat('|') {
            branches.push(self.branch()?);
        }
        self.depth -= 1;
        match branches.as_slice() {
            [one] => Ok(*one),
            _ => self.add(Node::Alternatives(branches)),
        }
    }

    fn branch(&mut self) -> Result<NodeId> {
        let mut items = Vec::new();
        loop {
            self.skip_comments()?;
            if self.at_end_of_branch() {
                break;
            }
            let atom = match self.options.syntax {
                Syntax::Basic => self.basic_atom()?,
                _ => self.atom()?,
            };
            self.skip_comments()?;
            let item = match (atom, self.at_quantifier()) {
                (Atom::Condition(_), true) => return Err(bad(REPEAT)),
                (Atom::Condition(id), false) | (Atom::Node(id), false) => id,
                (Atom::Node(id), true) => self.quantified(id)?,
            };
            items.push(item);
        }
        Ok(self.tree.sequence(items))
    }

    fn at_end_of_branch(&self) -> bool {
        match (self.peek(), self.options.syntax) {
            (None, _) => true,
            (_, Syntax::Basic) => self.looking_at("\\)"),
            // POSIX lets it be a character where no group is open.
            (Some(')'), Syntax::Extended) => self.depth > 1,
            (Some(c), _) => matches!(c, '|' | ')'),
        }
    }

    fn is_advanced(&self) -> bool {
        self.options.syntax == Syntax::Advanced
    }

    /// Spaces and comments of the expanded syntax, and comments in parentheses.
    fn skip_comments(&mut self) -> Result<()> {
        loop {
            if self.is_advanced() && self.looking_at("(?#") {
                while self.peek().is_some_and(|c| c != ')') {
                    self.at += 1;
                }
                self.eat(')');
            } else if self.blanks_end(self.at) > self.at {
                self.at = self.blanks_end(self.at);
            } else {
                return Ok(());
            }
        }
    }

    /// Where spaces and comments of the expanded syntax end.
    fn blanks_end(&self, mut at: usize) -> usize {
        let mut in_comment = false;
        while let Some(c) = self.text.get(at).filter(|_| self.options.expanded) {
            in_comment = *c == '#' || in_comment && *c != '\n';
            if !in_comment && !c.is_whitespace() {
                break;
            }
            at += 1;
        }
        at
    }

    fn at_quantifier(&self) -> bool {
        if self.options.syntax == Syntax::Basic {
            return self.at_basic_quantifier();
        }
        match self.peek() {
            Some('*' | '+' | '?') => true,
            Some('{') => {
                let at = self.blanks_end(self.at + 1);
                self.text.get(at).is_some_and(char::is_ascii_digit)
            }
            _ => false,
        }
    }

    fn quantified(&mut self, child: NodeId) -> Result<NodeId> {
        let (min, max, exact) = match self.next() {
            Some('*') => (0, None, false),
            Some('+') => (1, None, false),
            Some('?') => (0, Some(1), false),
            // In the basic syntax the brace is behind a backslash.
            Some('\\') => {
                self.at += 1;
                self.bounds()?
            }
            _ => self.bounds()?,
        };
        let lazy = self.is_advanced() && self.eat('?');
        self.skip_comments()?;
        if self.at_quantifier() {
            return Err(bad(REPEAT));
        }
        if (min, max) == (1, Some(1)) && exact {
            return Ok(child);
        }
        if max == Some(0) {
            return self.add(Node::Empty);
        }
        let preference = match (exact, lazy) {
            (true, _) => None,
            (false, true) => Some(Preference::Shortest),
            (false, false) => Some(Preference::Longest),
        };
        if self.tree.nodes.len() > MAX_NODES {
            return Err(bad(TOO_COMPLEX));
        }
        if min > 0 && self.tree.facts[child].messy && !self.tree.facts[child].has_back_ref {
            return Ok(self.tree.last_of_many(child, min - 1, max.map(|max| max - 1), preference));
        }
        Ok(self.tree.add(Node::Repeat { child, min, max }, preference))
    }

    /// `m}`, `m,}` or `m,n}`; whether it is the first.
    fn bounds(&mut self) -> Result<(u32, Option<u32>, bool)> {
        self.at = self.blanks_end(self.at);
        if self.peek().is_none() {
            return Err(bad(BRACES));
        }
        // Only the basic syntax may leave it out.
        let min = self.number()?.unwrap_or(0);
        let mut max = Some(min);
        let exact = !self.eat(',');
        if !exact {
            self.at = self.blanks_end(self.at);
            max = self.number()?;
        }
        if self.options.syntax == Syntax::Basic && self.looking_at("\\}") {
            self.at += 1;
        } else if self.options.syntax == Syntax::Basic && self.peek().is_some() {
            return Err(bad(COUNTS));
        }
        match self.next() {
            Some('}') => {}
            None => return Err(bad(BRACES)),
            Some(_) => return Err(bad(COUNTS)),
        }
        if max.is_some_and(|max| max < min) {
            return Err(bad(COUNTS));
        }
        Ok((min, max, exact))
    }

    fn number(&mut self) -> Result<Option<u32>> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            self.at = self.blanks_end(self.at + 1);
            number = Some(number.unwrap_or(0) * 10 + digit);
            if number > Some(MAX_REPEAT) {
                return Err(bad(COUNTS));
            }
        }
        Ok(number)
    }

    fn atom(&mut self) -> Result<Atom> {
        if self.at_quantifier() {
            return Err(bad(REPEAT));
        }
        if let Some(assert) = self.bracket_condition() {
            return Ok(Atom::Condition(self.add(Node::Assert(assert))?));
        }
        let condition = match self.next() {
            None => return Ok(Atom::Node(self.add(Node::Empty)?)),
            Some('(') => return self.group(),
            Some('[') => return Ok(Atom::Node(self.bracket()?)),
            Some('\\') => return self.escape(),
            Some('.') => return Ok(Atom::Node(self.any_char()?)),
            Some('^') => Assert::LineStart(self.options.newline_anchors),
            Some('$') => Assert::LineEnd(self.options.newline_anchors),
            Some(c) => return Ok(Atom::Node(self.char(c)?)),
        };
        Ok(Atom::Condition(self.add(Node::Assert(condition))?))
    }

    /// `[[:<:]]` or `[[:>:]]`
    fn bracket_condition(&mut self) -> Option<Assert> {
        let words = [("[[:<:]]", Assert::WordStart), ("[[:>:]]", Assert::WordEnd)];
        let (words, assert) = words.into_iter().find(|(words, _)| self.looking_at(words))?;
        self.at += words.len();
        Some(assert)
    }

    fn any_char(&mut self) -> Result<NodeId> {
        let no_newline = self.options.newline_stops;
        self.set(Parts { negated: true, no_newline, ..Parts::default() })
    }

    /// What stands in parentheses, of which the first has been read.
    fn group(&mut self) -> Result<Atom> {
        if !self.is_advanced() {
            return self.capture();
        }
        for (start, ahead, negated) in
            [("?=", true, false), ("?!", true, true), ("?<=", false, false), ("?<!", false, true)]
        {
            if self.looking_at(start) {
                self.at += start.len();
                self.conditions += 1;
                let child = self.closed()?;
                self.conditions -= 1;
                return Ok(Atom::Condition(self.add(Node::Look { child, ahead, negated })?));
            }
        }
        if self.looking_at("?:") {
            self.at += 2;
            return Ok(Atom::Node(self.closed()?));
        }
        if self.peek() == Some('?') {
            return Err(bad(REPEAT));
        }
        if self.conditions > 0 {
            return Ok(Atom::Node(self.closed()?));
        }
        self.capture()
    }

    fn capture(&mut self) -> Result<Atom> {
        self.tree.groups.push(0);
        let number = self.tree.groups.len();
        let child = self.closed()?;
        self.tree.groups[number - 1] = child;
        Ok(Atom::Node(self.add(Node::Capture(number, child))?))
    }

    fn closed(&mut self) -> Result<NodeId> {
        let inner = self.alternatives()?;
        if self.options.syntax == Syntax::Basic && !self.eat('\\') {
            return Err(bad(PARENS));
        }
        if self.eat(')') { Ok(inner) } else { Err(bad(PARENS)) }
    }
}
