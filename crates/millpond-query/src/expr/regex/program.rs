//! A regular expression, or a part of one, as a program: the steps of a nondeterministic automaton.
//!
//! A program is made of a node of the expression's tree, and finds where that node matches.
//! `search` runs it, in time proportional to the text times the program.

use super::bad;
use super::node::{Assert, Node, NodeId, Tree};
use super::parse::TOO_COMPLEX;
use crate::error::Result;

/// Steps at most.
const MAX_STEPS: usize = 100_000;
/// Nodes within nodes at most.
const MAX_DEPTH: usize = 1000;

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
}

impl Program {
    pub(super) fn of(tree: &Tree, node: NodeId) -> Result<Self> {
        let mut program = Program { steps: Vec::new() };
        program.compile(tree, node, 0)?;
        program.push(Step::Match)?;
        Ok(program)
    }

    fn push(&mut self, step: Step) -> Result<usize> {
        if self.steps.len() >= MAX_STEPS {
            return Err(bad(TOO_COMPLEX));
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    fn compile(&mut self, tree: &Tree, id: NodeId, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
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
            // All that the group may have matched. What it did match is compared later.
            Node::BackRef(number) => self.compile(tree, tree.groups[number - 1], depth)?,
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
