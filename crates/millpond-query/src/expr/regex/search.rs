//! Running programs over a text.

use std::cell::Cell;

use super::Regex;
use super::node::{Assert, Node, NodeId};
use super::program::{Program, Step};
use super::set::is_word;
use super::threads::Threads;
use crate::error::Result;

/// The number of steps after which a search looks at the interrupt.
const STEPS_BETWEEN_CHECKS: u32 = 1 << 14;

/// A text that is searched.
pub(super) struct Search<'a> {
    pub(super) regex: &'a Regex,
    pub(super) text: &'a [char],
    /// Fails if the search is to stop.
    pub(super) check: &'a dyn Fn() -> Result<()>,
    pub(super) steps: Cell<u32>,
}

impl Search<'_> {
    /// Counts steps, and now and then asks whether to go on.
    fn count(&self, steps: usize) -> Result<()> {
        let sum = self.steps.get().saturating_add(steps as u32 + 1);
        if sum < STEPS_BETWEEN_CHECKS {
            self.steps.set(sum);
            return Ok(());
        }
        self.steps.set(0);
        (self.check)()
    }

    /// Adds a step, and all that it leads to without a character. Says whether that is a match.
    fn add(
        &self,
        program: &Program,
        threads: &mut Threads,
        step: usize,
        start: usize,
        at: usize,
    ) -> Result<bool> {
        let mut matched = false;
        let mut stack = smallvec::SmallVec::<[usize; 16]>::new();
        stack.push(step);
        while let Some(step) = stack.pop() {
            if threads.seen[step] == threads.round {
                continue;
            }
            threads.seen[step] = threads.round;
            match program.steps[step] {
                Step::Jump(to) => stack.push(to),
                Step::Split(a, b) => {
                    stack.push(b);
                    stack.push(a);
                }
                Step::Assert(assert) => {
                    if self.holds(assert, at) {
                        stack.push(step + 1);
                    }
                }
                Step::Look(id) => {
                    if self.looks(id, at)? {
                        stack.push(step + 1);
                    }
                }
                Step::Match => matched = true,
                Step::Char(_) | Step::Set(_) => threads.list.push((step, start)),
            }
        }
        Ok(matched)
    }

    fn takes(&self, step: Step, c: char) -> bool {
        match step {
            Step::Char(own) => own == c,
            Step::Set(id) => matches!(&self.regex.tree.nodes[id], Node::Set(set) if set.has(c)),
            _ => false,
        }
    }

    fn holds(&self, assert: Assert, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| self.text.get(at)).copied();
        let after = self.text.get(at).copied();
        let word = |c: Option<char>| c.is_some_and(is_word);
        match assert {
            Assert::LineStart(lines) => before.is_none() || (lines && before == Some('\n')),
            Assert::LineEnd(lines) => after.is_none() || (lines && after == Some('\n')),
            Assert::Start => before.is_none(),
            Assert::End => after.is_none(),
            Assert::WordStart => !word(before) && word(after),
            Assert::WordEnd => word(before) && !word(after),
            Assert::Boundary => word(before) != word(after),
            Assert::NoBoundary => word(before) == word(after),
        }
    }

    /// Whether a condition that is an expression of its own holds.
    fn looks(&self, id: NodeId, at: usize) -> Result<bool> {
        let Node::Look { child, ahead, negated } = self.regex.tree.nodes[id] else {
            return Ok(false);
        };
        let program = self.regex.program(child)?;
        let found = if ahead {
            let mut found = false;
            self.ends(program, at, self.text.len(), &mut |_| {
                found = true;
                false
            })?;
            found
        } else {
            let longest = self.regex.tree.facts[child].longest;
            let from = longest.map_or(0, |longest| at.saturating_sub(longest));
            self.reaches(program, from, at)?
        };
        Ok(found != negated)
    }

    /// Calls `visit` with the ends of the program's matches from a place on, the nearest first, up
    /// to `to`, until it answers false.
    pub(super) fn ends(
        &self,
        program: &Program,
        from: usize,
        to: usize,
        visit: &mut dyn FnMut(usize) -> bool,
    ) -> Result<()> {
        let (mut now, mut next) = (program.threads(), program.threads());
        let is_enough = self.add(program, &mut now, 0, from, from)? && !visit(from);
        for at in if is_enough { from..from } else { from..to } {
            if now.list.is_empty() {
                break;
            }
            self.count(now.list.len())?;
            let c = self.text[at];
            next.clear();
            let mut matched = false;
            for &(step, start) in &now.list {
                if self.takes(program.steps[step], c) {
                    matched |= self.add(program, &mut next, step + 1, start, at + 1)?;
                }
            }
            std::mem::swap(&mut now, &mut next);
            if matched && !visit(at + 1) {
                break;
            }
        }
        program.keep([now, next]);
        Ok(())
    }

    /// Whether the program matches from one place exactly to another.
    pub(super) fn matches(&self, program: &Program, from: usize, to: usize) -> Result<bool> {
        let mut last = None;
        self.ends(program, from, to, &mut |end| {
            last = Some(end);
            true
        })?;
        Ok(last == Some(to))
    }

    /// Whether a match that begins at `from` or behind it ends here.
    fn reaches(&self, program: &Program, from: usize, end: usize) -> Result<bool> {
        let (mut now, mut next) = (program.threads(), program.threads());
        let mut matched = self.add(program, &mut now, 0, from, from)?;
        for at in from..end {
            self.count(now.list.len())?;
            let c = self.text[at];
            next.clear();
            matched = false;
            for &(step, start) in &now.list {
                if self.takes(program.steps[step], c) {
                    matched |= self.add(program, &mut next, step + 1, start, at + 1)?;
                }
            }
            matched |= self.add(program, &mut next, 0, at + 1, at + 1)?;
            std::mem::swap(&mut now, &mut next);
        }
        program.keep([now, next]);
        Ok(matched)
    }

    /// Where the first match begins that begins at `from` or behind it. With `any`, some match
    /// will do.
    pub(super) fn first_start(
        &self,
        program: &Program,
        from: usize,
        any: bool,
    ) -> Result<Option<usize>> {
        let (mut now, mut next) = (program.threads(), program.threads());
        let (mut best, mut at): (Option<usize>, _) = (None, from);
        while at <= self.text.len() {
            if best.is_none() && now.list.is_empty() {
                // Nothing has begun, and nothing does before such a character.
                let rest = self.text.get(at..).unwrap_or_default();
                let skipped = rest.iter().position(|c| program.may_begin_with(*c));
                let skipped = skipped.unwrap_or(rest.len());
                if skipped > 0 {
                    // Conditions that did not hold here may hold there.
                    now.clear();
                    at += skipped;
                    self.count(skipped)?;
                }
            }
            if best.is_none() && self.add(program, &mut now, 0, at, at)? {
                best = Some(at);
            }
            if best.is_some() && (any || now.list.first().is_none_or(|t| Some(t.1) >= best)) {
                break;
            }
            let Some(&c) = self.text.get(at) else { break };
            self.count(now.list.len())?;
            next.clear();
            for &(step, start) in &now.list {
                // What began later is of no interest any more.
                if best.is_some_and(|best| start >= best) {
                    break;
                }
                if self.takes(program.steps[step], c)
                    && self.add(program, &mut next, step + 1, start, at + 1)?
                {
                    best = Some(start);
                }
            }
            std::mem::swap(&mut now, &mut next);
            at += 1;
        }
        program.keep([now, next]);
        Ok(best)
    }
}
