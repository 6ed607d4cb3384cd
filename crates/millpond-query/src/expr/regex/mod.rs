//! PostgreSQL's regular expressions: POSIX's, with the leftmost match that is longest or shortest
//! as the expression prefers, and with back references and conditions.
//!
//! [`parse`] makes a tree, [`program`] makes automata of its nodes, [`search`] runs them over a
//! text, and [`dissect`] finds what the groups have matched. [`automaton`] knows sooner whether
//! there is a match at all. Except for back references, time is polynomial. All loops ask now and
//! then whether to go on.

mod automaton;
mod dissect;
mod node;
mod parse;
mod program;
mod search;
mod set;
mod threads;

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use super::recent::Recent;
use crate::error::{Result, SqlError, SqlState};
use automaton::Automaton;
use node::{Node, NodeId, Tree};
use program::Program;
use search::Search;

pub(crate) use dissect::Groups;

#[cold]
fn bad(what: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_REGULAR_EXPRESSION,
        format!("invalid regular expression: {what}"),
    )
}

/// What the characters of an expression mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// PostgreSQL's own: POSIX's extended syntax with escapes, conditions and more.
    #[default]
    Advanced,
    /// POSIX's extended syntax.
    Extended,
    /// POSIX's basic syntax: `\(`, `\{` and no `|`.
    Basic,
    /// Each character is itself.
    Literal,
}

/// How an expression is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) ignore_case: bool,
    /// `.` and `[^...]` do not match a line feed.
    pub(crate) newline_stops: bool,
    /// `^` and `$` match at line feeds, too.
    pub(crate) newline_anchors: bool,
    /// Spaces and comments do not count.
    pub(crate) expanded: bool,
    pub(crate) syntax: Syntax,
}

impl Options {
    /// Applies an option by its letter; false if there is none.
    pub(crate) fn set(&mut self, letter: char) -> bool {
        match letter {
            'c' => self.ignore_case = false,
            'i' => self.ignore_case = true,
            'm' | 'n' => (self.newline_stops, self.newline_anchors) = (true, true),
            'p' => (self.newline_stops, self.newline_anchors) = (true, false),
            'w' => (self.newline_stops, self.newline_anchors) = (false, true),
            's' => (self.newline_stops, self.newline_anchors) = (false, false),
            'b' => self.syntax = Syntax::Basic,
            'e' => self.syntax = Syntax::Extended,
            'q' => self.syntax = Syntax::Literal,
            't' => self.expanded = false,
            'x' => self.expanded = true,
            _ => return false,
        }
        true
    }
}

/// A regular expression.
#[derive(Debug)]
pub(crate) struct Regex {
    tree: Tree,
    root: NodeId,
    /// The programs of nodes that have been needed.
    programs: Vec<OnceCell<Program>>,
    /// The expression is this text.
    literal: Option<String>,
    /// It has neither back references nor conditions that an automaton does not know.
    automaton: Option<RefCell<Automaton>>,
}

impl Regex {
    fn new(pattern: &str, options: Options) -> Result<Self> {
        let (tree, root) = parse::parse(pattern, options)?;
        let programs = tree.nodes.iter().map(|_| OnceCell::new()).collect();
        let literal = literal_of(&tree, root);
        let mut regex = Regex { tree, root, programs, literal, automaton: None };
        let program = regex.program(root)?;
        if !regex.tree.facts[root].has_back_ref {
            regex.automaton = Automaton::of(program).map(RefCell::new);
        }
        Ok(regex)
    }

    fn program(&self, id: NodeId) -> Result<&Program> {
        if let Some(program) = self.programs[id].get() {
            return Ok(program);
        }
        let program = Program::of(&self.tree, id)?;
        Ok(self.programs[id].get_or_init(|| program))
    }

    /// How many groups capture what they match.
    pub(crate) fn groups(&self) -> usize {
        self.tree.groups.len()
    }

    /// Whether any part of the text matches.
    pub(crate) fn is_match(&self, text: &str, check: &dyn Fn() -> Result<()>) -> Result<bool> {
        if let Some(literal) = &self.literal {
            return Ok(text.contains(literal));
        }
        if let Some(automaton) = &self.automaton {
            let program = (self.program(self.root)?, &self.tree);
            return automaton.borrow_mut().is_match(program, text, check);
        }
        let chars: Vec<char> = text.chars().collect();
        if self.tree.facts[self.root].has_back_ref {
            return Ok(self.find(&chars, 0, check)?.is_some());
        }
        let search = Search { regex: self, text: &chars, check, steps: Cell::new(0) };
        Ok(search.first_start(self.program(self.root)?, 0, true)?.is_some())
    }

    /// The first match that begins at a place or behind it.
    pub(crate) fn find(
        &self,
        text: &[char],
        from: usize,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Option<Groups>> {
        let search = Search { regex: self, text, check, steps: Cell::new(0) };
        let program = self.program(self.root)?;
        let facts = self.tree.facts[self.root];
        let mut from = from;
        while let Some(start) = search.first_start(program, from, false)? {
            let mut ends = search.preferred_ends(self.root, start, text.len())?;
            if !facts.has_back_ref {
                // The first one can be divided among the groups.
                ends.truncate(1);
            }
            for end in ends {
                let mut groups: Groups = vec![None; self.groups() + 1];
                groups[0] = Some((start, end));
                if search.dissect(self.root, start, end, &mut groups, 0)? {
                    return Ok(Some(groups));
                }
            }
            check()?;
            from = start + 1;
        }
        Ok(None)
    }
}

/// The text that the expression is, if it is one.
fn literal_of(tree: &Tree, root: NodeId) -> Option<String> {
    let char = |id: &NodeId| match tree.nodes[*id] {
        Node::Char(c) => Some(c),
        _ => None,
    };
    match &tree.nodes[root] {
        Node::Char(c) => Some(c.to_string()),
        Node::Concat(items) => items.iter().map(char).collect(),
        _ => None,
    }
}

/// A regular expression; the thread keeps the last ones.
pub(crate) fn compiled(pattern: &str, options: Options) -> Result<Rc<Regex>> {
    thread_local! {
        static RECENT: RefCell<Recent<Options, Regex>> = const { RefCell::new(Recent::new()) };
    }
    RECENT.with_borrow_mut(|recent| {
        recent.get(pattern, options, |pattern, options| Regex::new(pattern, *options))
    })
}

#[cfg(test)]
mod tests;
