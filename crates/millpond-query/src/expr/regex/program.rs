//! A regular expression, or a part of one, as a program: the steps of a nondeterministic automaton.
//!
//! A program is made of a node of the expression's tree, and finds where that node matches.
//! `search` runs it, in time proportional to the text times the program.

use std::cell::RefCell;

use super::bad;
use super::node::{Assert, Node, NodeId, Tree};
use super::parse::TOO_COMPLEX;
use super::threads::Threads;
use crate::error::Result;

/// Steps at most.
const MAX_STEPS: usize = 100_000;
/// Nodes at most that a program is made of, each copy counted: some have no steps.
const MAX_NODES: usize = 10 * MAX_STEPS;
/// Nodes within nodes at most.
const MAX_DEPTH: usize = 1000;
/// Lists of threads that are kept: a condition within a search has its own.
const MAX_SPARE: usize = 4;
/// Lists of longer programs are not kept, so that a thread's memory stays small.
const MAX_KEPT_STEPS: usize = 1000;

#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Takes the character of this node.
    Char(char),
    /// Takes a character of the set of this node.
    Set(NodeId),
    /// Goes on where the condition holds.
    Assert(Assert),
    /// Goes on where the node's child matches, or does not.
    Look(NodeId),
    /// Goes on at both places.
    Split(usize, usize),
    Jump(usize),
    Match,
}

/// A program for one node.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    first: First,
    /// While it is made: within how many back references, which pass over conditions.
    back_refs: usize,
    /// While it is made: of how many nodes it is so far.
    nodes: usize,
    /// Lists of threads that are not in use.
    spare: RefCell<Vec<Threads>>,
}

/// The ASCII characters that a match can begin with; `None`: it may begin at any place.
type First = Option<Box<[bool; 128]>>;

impl Program {
    pub(super) fn of(tree: &Tree, node: NodeId) -> Result<Self> {
        let (steps, spare) = Default::default();
        let mut program = Program { steps, first: None, back_refs: 0, nodes: 0, spare };
        program.compile(tree, node, 0)?;
        program.push(Step::Match)?;
        program.first = program.first_characters(tree);
        Ok(program)
    }

    /// What the steps take that come before any other character. Conditions are assumed to hold.
    fn first_characters(&self, tree: &Tree) -> First {
        let mut first = Box::new([false; 128]);
        let (mut seen, mut open) = (vec![false; self.steps.len()], vec![0]);
        while let Some(step) = open.pop() {
            if std::mem::replace(&mut seen[step], true) {
                continue;
            }
            match self.steps[step] {
                Step::Char(c) => {
                    if let Some(own) = first.get_mut(c as usize) {
                        *own = true;
                    }
                }
                Step::Set(id) => {
                    let Node::Set(set) = &tree.nodes[id] else { return None };
                    for (c, own) in ('\0'..).zip(first.iter_mut()) {
                        *own |= set.has(c);
                    }
                }
                Step::Assert(_) | Step::Look(_) => open.push(step + 1),
                Step::Split(a, b) => open.extend([a, b]),
                Step::Jump(to) => open.push(to),
                Step::Match => return None,
            }
        }
        Some(first)
    }

    /// As if a match could begin with any character.
    #[cfg(test)]
    pub(super) fn begin_anywhere(&mut self) {
        self.first = None;
    }

    /// Whether a match may begin with a character.
    #[inline]
    pub(super) fn may_begin_with(&self, c: char) -> bool {
        match &self.first {
            Some(first) => first.get(c as usize).copied().unwrap_or(true),
            None => true,
        }
    }

    /// An empty list of threads.
    pub(super) fn threads(&self) -> Threads {
        match self.spare.borrow_mut().pop() {
            Some(mut threads) => {
                threads.clear();
                threads
            }
            None => Threads::new(self.steps.len()),
        }
    }

    /// Keeps a list of threads for the next search.
    pub(super) fn keep(&self, lists: [Threads; 2]) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < MAX_SPARE && self.steps.len() <= MAX_KEPT_STEPS {
            spare.extend(lists);
        }
    }

    fn push(&mut self, step: Step) -> Result<usize> {
        if self.steps.len() >= MAX_STEPS {
            return Err(bad(TOO_COMPLEX));
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    fn compile(&mut self, tree: &Tree, id: NodeId, depth: usize) -> Result<()> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(bad(TOO_COMPLEX));
        }
        let depth = depth + 1;
        match &tree.nodes[id] {
            Node::Empty => {}
            Node::Char(c) => {
                self.push(Step::Char(*c))?;
            }
            Node::Set(_) => {
                self.push(Step::Set(id))?;
            }
            Node::Assert(_) | Node::Look { .. } if self.back_refs > 0 => {}
            Node::Assert(assert) => {
                self.push(Step::Assert(*assert))?;
            }
            Node::Look { .. } => {
                self.push(Step::Look(id))?;
            }
            Node::Concat(items) => {
                for item in items {
                    self.compile(tree, *item, depth)?;
                }
            }
            Node::Alternatives(branches) => self.alternatives(tree, branches, depth)?,
            Node::Repeat { child, min, max } => self.repeat(tree, *child, *min, *max, depth)?,
            Node::Capture(_, child) => self.compile(tree, *child, depth)?,
            // All that the group may have matched, wherever it stands. What it did match is
            // compared later.
            Node::BackRef(number) => {
                self.back_refs += 1;
                self.compile(tree, tree.groups[number - 1], depth)?;
                self.back_refs -= 1;
            }
        }
        Ok(())
    }

    fn alternatives(&mut self, tree: &Tree, branches: &[NodeId], depth: usize) -> Result<()> {
        let mut jumps = Vec::new();
        for (number, branch) in branches.iter().enumerate() {
            let is_last = number + 1 == branches.len();
            let split = if is_last { None } else { Some(self.push(Step::Split(0, 0))?) };
            self.compile(tree, *branch, depth)?;
            if let Some(split) = split {
                jumps.push(self.push(Step::Jump(0))?);
                self.steps[split] = Step::Split(split + 1, self.steps.len());
            }
        }
        let end = self.steps.len();
        for jump in jumps {
            self.steps[jump] = Step::Jump(end);
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        tree: &Tree,
        child: NodeId,
        min: u32,
        max: Option<u32>,
        depth: usize,
    ) -> Result<()> {
        for _ in 0..min {
            self.compile(tree, child, depth)?;
        }
        let Some(max) = max else {
            let split = self.push(Step::Split(0, 0))?;
            self.compile(tree, child, depth)?;
            self.push(Step::Jump(split))?;
            self.steps[split] = Step::Split(split + 1, self.steps.len());
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in min..max {
            splits.push(self.push(Step::Split(0, 0))?);
            self.compile(tree, child, depth)?;
        }
        let end = self.steps.len();
        for split in splits {
            self.steps[split] = Step::Split(split + 1, end);
        }
        Ok(())
    }
}
