//! A regular expression as a tree.

use super::set::CharSet;

/// A node's number in its tree.
pub(super) type NodeId = usize;

/// A condition on a place between characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assert {
    /// `^`, also behind a line feed if the flag is set.
    LineStart(bool),
    /// `$`, also before a line feed if the flag is set.
    LineEnd(bool),
    /// `\A`
    Start,
    /// `\Z`
    End,
    /// `\m`
    WordStart,
    /// `\M`
    WordEnd,
    /// `\y`
    Boundary,
    /// `\Y`
    NoBoundary,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    Empty,
    Char(char),
    Set(CharSet),
    Assert(Assert),
    Concat(Vec<NodeId>),
    Alternatives(Vec<NodeId>),
    Repeat {
        child: NodeId,
        min: u32,
        max: Option<u32>,
    },
    /// A capturing group, counted from 1.
    Capture(usize, NodeId),
    /// What the group has matched.
    BackRef(usize),
    Look {
        child: NodeId,
        ahead: bool,
        negated: bool,
    },
}

/// Which of several matches a part prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preference {
    None,
    Longest,
    Shortest,
}

/// What is known about a node beside what it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) preference: Preference,
    /// It has captures or back references within: that it matches is not all that matters.
    pub(super) messy: bool,
    pub(super) has_back_ref: bool,
    /// The characters of its longest match; `None` if there is no bound.
    pub(super) longest: Option<usize>,
}

/// A tree.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) facts: Vec<Facts>,
    /// The groups' nodes, by their numbers less 1; 0 while the group is open.
    pub(super) groups: Vec<NodeId>,
    /// Back references ignore case.
    pub(super) ignore_case: bool,
}

impl Tree {
    /// Adds a node. `preference` is for repetitions, whose spelling decides.
    pub(super) fn add(&mut self, node: Node, preference: Option<Preference>) -> NodeId {
        let of = |id: &NodeId| self.facts[*id];
        let plain = Facts {
            preference: Preference::None,
            messy: false,
            has_back_ref: false,
            longest: Some(0),
        };
        let mut facts = match &node {
            Node::Concat(list) => list.iter().map(of).fold(plain, |all, one| Facts {
                preference: match all.preference {
                    Preference::None => one.preference,
                    first => first,
                },
                messy: all.messy || one.messy,
                has_back_ref: all.has_back_ref || one.has_back_ref,
                longest: all.longest.zip(one.longest).and_then(|(a, b)| a.checked_add(b)),
            }),
            Node::Alternatives(list) => list.iter().map(of).fold(plain, |all, one| Facts {
                preference: Preference::Longest,
                messy: all.messy || one.messy,
                has_back_ref: all.has_back_ref || one.has_back_ref,
                longest: all.longest.zip(one.longest).map(|(a, b)| a.max(b)),
            }),
            Node::Repeat { child, max, .. } => {
                let own = of(child);
                let most = |longest: usize| match max {
                    _ if longest == 0 => Some(0),
                    Some(max) => longest.checked_mul(*max as usize),
                    None => None,
                };
                Facts { longest: own.longest.and_then(most), ..own }
            }
            Node::Capture(_, child) => Facts { messy: true, ..of(child) },
            Node::BackRef(_) => Facts { messy: true, has_back_ref: true, longest: None, ..plain },
            Node::Char(_) | Node::Set(_) => Facts { longest: Some(1), ..plain },
            Node::Empty | Node::Assert(_) | Node::Look { .. } => plain,
        };
        if let Some(preference) = preference {
            facts.preference = preference;
        }
        self.nodes.push(node);
        self.facts.push(facts);
        self.nodes.len() - 1
    }

    /// A node that matches after `min` to `max` matches of its own. Only what groups capture in the
    /// last one counts, so those before it take what they prefer.
    pub(super) fn last_of_many(
        &mut self,
        child: NodeId,
        min: u32,
        max: Option<u32>,
        preference: Option<Preference>,
    ) -> NodeId {
        let preference = Some(preference.unwrap_or(self.facts[child].preference));
        let before = self.add(Node::Repeat { child, min, max }, preference);
        self.facts[before].messy = false;
        self.add(Node::Concat(vec![before, child]), preference)
    }

    /// A sequence. Neighbours that are neither captures nor back references become one node.
    pub(super) fn sequence(&mut self, items: Vec<NodeId>) -> NodeId {
        if items.iter().any(|&item| self.facts[item].messy) {
            let mut grouped: Vec<NodeId> = Vec::new();
            let mut run: Vec<NodeId> = Vec::new();
            for item in items {
                if !self.facts[item].messy {
                    // A part with another preference is matched for itself.
                    let own = self.facts[item].preference;
                    let before = run.iter().map(|&id| self.facts[id].preference);
                    let mixed = before.clone().any(|p| p != Preference::None && p != own);
                    if mixed && own != Preference::None {
                        grouped.push(self.joined(std::mem::take(&mut run)));
                    }
                    run.push(item);
                    continue;
                }
                if !run.is_empty() {
                    grouped.push(self.joined(std::mem::take(&mut run)));
                }
                grouped.push(item);
            }
            if !run.is_empty() {
                grouped.push(self.joined(run));
            }
            // Each of these is matched for itself, so the rest is a node of its own.
            let mut rest = grouped.pop().unwrap_or(0);
            while let Some(first) = grouped.pop() {
                rest = self.add(Node::Concat(vec![first, rest]), None);
            }
            return rest;
        }
        self.joined(items)
    }

    fn joined(&mut self, items: Vec<NodeId>) -> NodeId {
        match items.as_slice() {
            [] => self.add(Node::Empty, None),
            [one] => *one,
            _ => self.add(Node::Concat(items), None),
        }
    }
}
