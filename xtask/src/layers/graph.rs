//! A directed graph of modules, and its circles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A line of source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// The file.
    pub file: PathBuf,
    /// The line's number, from 1 on.
    pub number: usize,
}

/// Which module uses which. Each edge has the first line that makes it.
#[derive(Debug, Default)]
pub struct Graph {
    edges: BTreeMap<usize, BTreeMap<usize, Line>>,
}

impl Graph {
    /// Adds an edge, or a better line of an edge. A module that uses itself is no edge.
    pub fn add(&mut self, from: usize, to: usize, line: Line) {
        if from != to {
            let known = self.edges.entry(from).or_default().entry(to).or_insert(line.clone());
            if line < *known {
                *known = line;
            }
        }
    }

    /// All edges, in order.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize, &Line)> {
        self.edges
            .iter()
            .flat_map(|(&from, targets)| targets.iter().map(move |(&to, line)| (from, to, line)))
    }

    /// The graph in which `group` has named a node for each node. Without a name, its edges go.
    pub fn grouped(&self, group: impl Fn(usize) -> Option<usize>) -> Self {
        let mut grouped = Self::default();
        for (from, to, line) in self.edges() {
            if let (Some(from), Some(to)) = (group(from), group(to)) {
                grouped.add(from, to, line.clone());
            }
        }
        grouped
    }

    /// The strongly connected components of more than one node, each in ascending order.
    pub fn circles(&self) -> Vec<BTreeSet<usize>> {
        let forward: BTreeMap<usize, BTreeSet<usize>> =
            self.edges.keys().map(|&node| (node, self.reached(node))).collect();
        let mut found: Vec<BTreeSet<usize>> = Vec::new();
        for (&node, reached) in &forward {
            if !reached.contains(&node) || found.iter().any(|circle| circle.contains(&node)) {
                continue;
            }
            let comes_back =
                |other: &usize| forward.get(other).is_some_and(|back| back.contains(&node));
            found.push(reached.iter().copied().filter(comes_back).collect());
        }
        found
    }

    /// The nodes that can be reached from `start` by one edge or more.
    fn reached(&self, start: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut next = vec![start];
        while let Some(node) = next.pop() {
            for &to in self.edges.get(&node).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(to) {
                    next.push(to);
                }
            }
        }
        reached
    }
}
