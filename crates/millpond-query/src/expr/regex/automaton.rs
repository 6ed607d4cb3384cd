//! Whether a text has a match, by a deterministic automaton that is made as texts need it.
//!
//! A state is a set of steps of a program: those that wait for a character, and conditions on the
//! end of the text. So a search takes one look into a table for each ASCII character. Programs with
//! other conditions, and back references, are left to `search`.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use millpond_sync::mutant;

use super::node::{Assert, Node, Tree};
use super::program::{Program, Step};
use crate::error::Result;

/// States at most: all are forgotten when there are more.
const MAX_STATES: usize = 128;
/// Longer programs have no automaton, so that a thread's memory stays small.
const MAX_STEPS: usize = 1000;
/// Transitions by other characters than ASCII's that are kept.
const MAX_OTHERS: usize = 512;
/// Characters between two looks whether the search is to stop.
const CHARACTERS_BETWEEN_CHECKS: usize = 1 << 14;

/// The number of a state.
type StateNumber = u32;

/// It is not known yet.
const UNKNOWN: StateNumber = 0;
/// There is a match.
const MATCH: StateNumber = 1;
/// There will be none.
const DEAD: StateNumber = 2;
/// The number of the first state in the list: the one before the first character.
const START: StateNumber = 3;

#[derive(Debug)]
struct State {
    /// In order.
    steps: Box<[usize]>,
    by_ascii: Box<[StateNumber; 128]>,
    matches_at_end: bool,
}

#[derive(Debug)]
pub(super) struct Automaton {
    states: Vec<State>,
    numbers: HashMap<Box<[usize]>, StateNumber, RandomState>,
    by_others: HashMap<(StateNumber, char), StateNumber, RandomState>,
    /// While a set is made: which steps are in it, or have been followed.
    seen: Vec<bool>,
}

impl Automaton {
    /// `None` if the program has steps that no automaton has.
    pub(super) fn of(program: &Program) -> Option<Self> {
        let is_known = |step: &Step| match step {
            Step::Look(_) => false,
            Step::Assert(assert) => is_of_start(*assert) || is_of_end(*assert),
            _ => true,
        };
        if program.steps.len() > MAX_STEPS || !program.steps.iter().all(is_known) {
            return None;
        }
        let seen = vec![false; program.steps.len()];
        let (states, numbers, by_others) = Default::default();
        Some(Self { states, numbers, by_others, seen })
    }

    /// Whether any part of the text matches. `check` fails if the search is to stop.
    pub(super) fn is_match(
        &mut self,
        (program, tree): (&Program, &Tree),
        text: &str,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<bool> {
        let mut state = self.start(program);
        let (mut rest, mut left) = (text, CHARACTERS_BETWEEN_CHECKS);
        while state > DEAD {
            let Some(&byte) = rest.as_bytes().first() else { return Ok(self.ends(state)) };
            let known = match self.states.get((state - START) as usize) {
                Some(known) if byte.is_ascii() => known.by_ascii[usize::from(byte)],
                _ => UNKNOWN,
            };
            let mut chars = rest.chars();
            let Some(c) = chars.next() else { break };
            state = if known == UNKNOWN { self.next((program, tree), state, c) } else { known };
            rest = chars.as_str();
            left -= 1;
            if left == 0 {
                check()?;
                left = CHARACTERS_BETWEEN_CHECKS;
            }
        }
        Ok(state == MATCH)
    }

    fn ends(&self, state: StateNumber) -> bool {
        self.states.get((state - START) as usize).is_some_and(|state| state.matches_at_end)
    }

    /// The state before the first character.
    fn start(&mut self, program: &Program) -> StateNumber {
        if !self.states.is_empty() {
            return START;
        }
        match self.closure(program, vec![0], Place { is_start: true, is_end: false }) {
            Some(steps) => {
                let matches_at_end = self.matches_at_end(program, &steps, true);
                self.states.push(State::new(steps, matches_at_end));
                START
            }
            None => MATCH,
        }
    }

    /// The state behind a character.
    fn next(
        &mut self,
        (program, tree): (&Program, &Tree),
        state: StateNumber,
        c: char,
    ) -> StateNumber {
        if let Some(known) = self.by_others.get(&(state, c)) {
            return *known;
        }
        let place = (state - START) as usize;
        let steps = self.states.get(place).map(|state| &*state.steps).unwrap_or_default();
        let takes = |step: &usize| match program.steps[*step] {
            Step::Char(own) => own == c,
            Step::Set(id) => matches!(&tree.nodes[id], Node::Set(set) if set.has(c)),
            _ => false,
        };
        let mut behind: Vec<usize> =
            steps.iter().filter(|step| takes(step)).map(|step| step + 1).collect();
        // A match may begin here.
        if !mutant!("regex-match-begins-at-the-start") {
            behind.push(0);
        }
        let next = match self.closure(program, behind, Place { is_start: false, is_end: false }) {
            None => MATCH,
            Some(steps) if steps.is_empty() => DEAD,
            Some(steps) => match self.number_of(program, steps) {
                Some(number) => number,
                None if mutant!("regex-states-before-forgetting") => START + 1,
                // All have been forgotten, and the next one is the second.
                None => return START + 1,
            },
        };
        match self.states.get_mut(place) {
            Some(state) if c.is_ascii() => state.by_ascii[c as usize] = next,
            _ if self.by_others.len() < MAX_OTHERS => {
                self.by_others.insert((state, c), next);
            }
            _ => {}
        }
        next
    }

    /// The number of the state with these steps. `None` if it was one too many.
    fn number_of(&mut self, program: &Program, steps: Box<[usize]>) -> Option<StateNumber> {
        if let Some(number) = self.numbers.get(&steps) {
            return Some(*number);
        }
        let is_full = self.states.len() >= MAX_STATES;
        if is_full {
            self.states.truncate(1);
            self.states.iter_mut().for_each(|start| start.by_ascii.fill(UNKNOWN));
            self.numbers.clear();
            self.by_others.clear();
        }
        let number = START + self.states.len() as StateNumber;
        let matches_at_end = self.matches_at_end(program, &steps, false);
        self.numbers.insert(steps.clone(), number);
        self.states.push(State::new(steps, matches_at_end));
        (!is_full).then_some(number)
    }

    /// The steps that are reached without a character, of those that a state has; `None` if one
    /// of all is a match.
    fn closure(
        &mut self,
        program: &Program,
        mut open: Vec<usize>,
        place: Place,
    ) -> Option<Box<[usize]>> {
        let mut steps = Vec::new();
        let mut is_match = false;
        self.seen.fill(false);
        while let Some(step) = open.pop() {
            if std::mem::replace(&mut self.seen[step], true) {
                continue;
            }
            match program.steps[step] {
                Step::Jump(to) => open.push(to),
                Step::Split(a, b) => open.extend([a, b]),
                Step::Assert(assert) if is_of_start(assert) => {
                    if place.is_start || mutant!("regex-start-anywhere") {
                        open.push(step + 1);
                    }
                }
                Step::Assert(_) if place.is_end => open.push(step + 1),
                Step::Match => is_match = true,
                Step::Assert(_) | Step::Look(_) | Step::Char(_) | Step::Set(_) => steps.push(step),
            }
        }
        steps.sort_unstable();
        (!is_match).then_some(steps.into())
    }

    /// Whether there is a match if the text ends here.
    fn matches_at_end(&mut self, program: &Program, steps: &[usize], is_start: bool) -> bool {
        let is_end = !mutant!("regex-no-end");
        self.closure(program, steps.to_vec(), Place { is_start, is_end }).is_none()
    }
}

/// Where in the text conditions are looked at.
#[derive(Clone, Copy)]
struct Place {
    is_start: bool,
    is_end: bool,
}

impl State {
    fn new(steps: Box<[usize]>, matches_at_end: bool) -> Self {
        Self { steps, by_ascii: Box::new([UNKNOWN; 128]), matches_at_end }
    }
}

/// Whether a condition holds at the start of the text alone.
fn is_of_start(assert: Assert) -> bool {
    matches!(assert, Assert::Start | Assert::LineStart(false))
}

/// Whether a condition holds at the end of the text alone.
fn is_of_end(assert: Assert) -> bool {
    matches!(assert, Assert::End | Assert::LineEnd(false))
}
