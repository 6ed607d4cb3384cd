//! Which part of a match each group has matched.
//!
//! The whole match is found first. Then each part takes as much of it as it prefers and the parts
//! behind it allow, from left to right.

use std::collections::HashSet;

use super::bad;
use super::node::{Node, NodeId, Preference};
use super::parse::TOO_COMPLEX;
use super::search::Search;
use super::set::variants;
use crate::error::Result;

/// What the groups have matched, the whole match first.
pub(crate) type Groups = Vec<Option<(usize, usize)>>;

/// Parts within parts at most.
const MAX_DEPTH: usize = 500;

impl Search<'_> {
    /// Finds what the groups of a node match if the node matches from one place to another, which
    /// its program says it does. False if that can't be, for a back reference.
    pub(super) fn dissect(
        &self,
        id: NodeId,
        from: usize,
        to: usize,
        groups: &mut Groups,
        depth: usize,
    ) -> Result<bool> {
        if !self.regex.tree.facts[id].messy {
            return Ok(true);
        }
        if depth > MAX_DEPTH {
            return Err(bad(TOO_COMPLEX));
        }
        let depth = depth + 1;
        match &self.regex.tree.nodes[id] {
            Node::Capture(number, child) => {
                let found = self.dissect(*child, from, to, groups, depth)?;
                if found {
                    groups[*number] = Some((from, to));
                }
                Ok(found)
            }
            Node::BackRef(number) => Ok(self.is_same(groups[*number], from, to)),
            Node::Concat(items) => match items.as_slice() {
                [left, right] => self.dissect_pair(*left, *right, (from, to), groups, depth),
                _ => Ok(false),
            },
            Node::Alternatives(branches) => {
                for &branch in branches {
                    if self.matches(self.regex.program(branch)?, from, to)? {
                        let before = groups.clone();
                        if self.dissect(branch, from, to, groups, depth)? {
                            return Ok(true);
                        }
                        *groups = before;
                    }
                }
                Ok(false)
            }
            Node::Repeat { child, min, max } => {
                self.dissect_repeat(*child, (*min, *max), (from, to), groups, depth)
            }
            _ => Ok(true),
        }
    }

    /// Whether a part of the text is what a group has matched.
    fn is_same(&self, group: Option<(usize, usize)>, from: usize, to: usize) -> bool {
        let Some((start, end)) = group else { return false };
        let (own, other) = (&self.text[from..to], &self.text[start..end]);
        let same = |(a, b): (&char, &char)| {
            a == b || (self.regex.tree.ignore_case && variants(*a).contains(&variants(*b)[0]))
        };
        own.len() == other.len() && own.iter().zip(other).all(same)
    }

    /// Whether a part of the text is what a group has matched, some number of times. An empty match
    /// is there as often as it is wanted. What a group has not matched is not there even 0 times.
    fn is_repeated(
        &self,
        group: Option<(usize, usize)>,
        (min, max): (u32, Option<u32>),
        from: usize,
        to: usize,
    ) -> bool {
        let Some((start, end)) = group else { return false };
        let (length, whole) = (end - start, to - from);
        if length == 0 || whole == 0 {
            return whole == 0 && (length == 0 || min == 0);
        }
        let count = whole / length;
        whole.is_multiple_of(length)
            && count >= min as usize
            && max.is_none_or(|max| count <= max as usize)
            && (0..count).all(|place| {
                let from = from + place * length;
                self.is_same(group, from, from + length)
            })
    }

    /// The ends of a node's matches, in the order in which it prefers them.
    pub(super) fn preferred_ends(&self, id: NodeId, from: usize, to: usize) -> Result<Vec<usize>> {
        let mut ends = Vec::new();
        self.ends(self.regex.program(id)?, from, to, &mut |end| {
            ends.push(end);
            true
        })?;
        if self.regex.tree.facts[id].preference != Preference::Shortest {
            ends.reverse();
        }
        Ok(ends)
    }

    fn dissect_pair(
        &self,
        left: NodeId,
        right: NodeId,
        (from, to): (usize, usize),
        groups: &mut Groups,
        depth: usize,
    ) -> Result<bool> {
        let right_program = self.regex.program(right)?;
        for middle in self.preferred_ends(left, from, to)? {
            if !self.matches(right_program, middle, to)? {
                continue;
            }
            let before = groups.clone();
            if self.dissect(left, from, middle, groups, depth)?
                && self.dissect(right, middle, to, groups, depth)?
            {
                return Ok(true);
            }
            *groups = before;
        }
        Ok(false)
    }

    /// Divides a part of the text into matches of a repeated node.
    fn dissect_repeat(
        &self,
        child: NodeId,
        (min, max): (u32, Option<u32>),
        (from, to): (usize, usize),
        groups: &mut Groups,
        depth: usize,
    ) -> Result<bool> {
        if let Node::BackRef(number) = self.regex.tree.nodes[child] {
            return Ok(self.is_repeated(groups[number], (min, max), from, to));
        }
        if from == to && min == 0 {
            // A group that can match nothing has then done so, rather than not matched.
            let before = groups.clone();
            if self.matches(self.regex.program(child)?, from, to)?
                && !self.dissect(child, from, to, groups, depth)?
            {
                *groups = before;
            }
            return Ok(true);
        }
        let min = min.max(1) as usize;
        let max = max.map_or(usize::MAX, |max| max as usize);
        // Places from which no division leads to the end, with the number of matches before them
        // as far as it matters.
        let mut dead: HashSet<(usize, usize)> = HashSet::new();
        let counted = |done: usize| if max == usize::MAX { done.min(min) } else { done };
        // Each match that has been chosen, with the ends that it may have and the next to try.
        let mut chosen: Vec<(usize, Vec<usize>, usize)> =
            vec![(from, self.preferred_ends(child, from, to)?, 0)];
        while let Some((start, ends, next)) = chosen.last_mut() {
            let (start, place) = (*start, *next);
            *next += 1;
            let Some(&end) = ends.get(place) else {
                chosen.pop();
                dead.insert((start, counted(chosen.len())));
                continue;
            };
            let done = chosen.len();
            // An empty match is only good for reaching the least number.
            if end == start && done > min {
                continue;
            }
            if end == to {
                if done >= min && self.dissect_each(child, &chosen, groups, depth)? {
                    return Ok(true);
                }
                continue;
            }
            if done < max && !dead.contains(&(end, counted(done))) {
                chosen.push((end, self.preferred_ends(child, end, to)?, 0));
            }
        }
        Ok(false)
    }

    /// Each of a repeated node's matches for itself: the last one's groups stay.
    fn dissect_each(
        &self,
        child: NodeId,
        chosen: &[(usize, Vec<usize>, usize)],
        groups: &mut Groups,
        depth: usize,
    ) -> Result<bool> {
        let before = groups.clone();
        for (start, ends, next) in chosen {
            self.forget(child, groups, depth)?;
            let end = ends[next - 1];
            if !self.dissect(child, *start, end, groups, depth)? {
                *groups = before;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Groups within a node have matched nothing yet.
    fn forget(&self, id: NodeId, groups: &mut Groups, depth: usize) -> Result<()> {
        if depth > 2 * MAX_DEPTH {
            return Err(bad(TOO_COMPLEX));
        }
        match &self.regex.tree.nodes[id] {
            Node::Capture(number, child) => {
                groups[*number] = None;
                self.forget(*child, groups, depth + 1)?;
            }
            Node::Concat(items) | Node::Alternatives(items) => {
                for item in items.iter().filter(|item| self.regex.tree.facts[**item].messy) {
                    self.forget(*item, groups, depth + 1)?;
                }
            }
            Node::Repeat { child, .. } => self.forget(*child, groups, depth + 1)?,
            _ => {}
        }
        Ok(())
    }
}
