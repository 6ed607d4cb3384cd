//! Finds cycles in the order of snapshots and commits.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{Anomaly, Edge, How, Kind, Level, Object, Txn};

/// The largest number of cycles to report: one cycle usually comes with many more.
const MOST_CYCLES: usize = 5;

/// The reason why one moment is before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Depends(Edge),
    /// A transaction's snapshot is before its own commit.
    Own,
    /// Real time passed between them.
    Time,
}

/// The dependencies that a pass considers. Each pass adds a kind, so that a cycle gets the simplest
/// name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pass {
    Writes,
    Flow,
    AntiDependencies,
    RealTime,
}

/// Moments and their order. Moment 2n is transaction n's snapshot, 2n + 1 is its commit. Moments of
/// the clock follow.
struct Order {
    next: Vec<Vec<(u32, Why)>>,
    /// The number of moments that belong to transactions.
    owned: usize,
}

pub(super) fn cycles(
    history: &[Txn],
    committed: &[bool],
    edges: &[Edge],
    found: &mut Vec<Anomaly>,
) {
    for pass in [Pass::Writes, Pass::Flow, Pass::AntiDependencies, Pass::RealTime] {
        let order = Order::new(history, committed, edges, pass);
        let before = found.len();
        for component in order.components() {
            if found.len() - before >= MOST_CYCLES {
                break;
            }
            if let Some(cycle) = order.shortest_cycle(&component) {
                found.push(describe(&cycle));
            }
        }
        if found.len() > before {
            return;
        }
    }
}

impl Order {
    fn new(history: &[Txn], committed: &[bool], edges: &[Edge], pass: Pass) -> Self {
        let owned = 2 * history.len();
        let mut order = Order { next: vec![Vec::new(); owned], owned };
        for number in 0..history.len() {
            order.next[2 * number].push((commit(number), Why::Own));
        }
        let mut seen = HashSet::new();
        for edge in edges {
            let wanted = match edge.how {
                How::Ww => true,
                How::Wr => pass >= Pass::Flow,
                How::Rw => pass >= Pass::AntiDependencies,
            };
            if !wanted {
                continue;
            }
            let (from, to) = match edge.how {
                How::Rw => (snapshot(edge.from), commit(edge.to)),
                How::Ww | How::Wr if history[edge.to].level == Level::RepeatableRead => {
                    (commit(edge.from), snapshot(edge.to))
                }
                How::Ww | How::Wr => (commit(edge.from), commit(edge.to)),
            };
            if seen.insert((from, to)) {
                order.next[from as usize].push((to, Why::Depends(*edge)));
            }
        }
        if pass >= Pass::RealTime {
            order.add_time(history, committed);
        }
        order
    }

    /// Adds a moment of the clock for each acknowledged commit, in order. A transaction's snapshot
    /// comes after the last of these moments before its begin.
    fn add_time(&mut self, history: &[Txn], committed: &[bool]) {
        let mut ends: Vec<(u64, usize)> = (0..history.len())
            .filter(|number| committed[*number])
            .map(|number| (history[number].ended, number))
            .collect();
        ends.sort_unstable();
        for (place, (_, number)) in ends.iter().enumerate() {
            let moment = (self.owned + place) as u32;
            self.next[commit(*number) as usize].push((moment, Why::Time));
            self.next.push(Vec::new());
            if place > 0 {
                self.next[self.owned + place - 1].push((moment, Why::Time));
            }
        }
        for (number, txn) in history.iter().enumerate().filter(|(number, _)| committed[*number]) {
            let earlier = ends.partition_point(|(ended, _)| *ended < txn.begun);
            if earlier > 0 {
                self.next[self.owned + earlier - 1].push((snapshot(number), Why::Time));
            }
        }
    }

    /// Strongly connected components with more than one moment (Tarjan's algorithm, without
    /// recursion).
    fn components(&self) -> Vec<Vec<u32>> {
        const NONE: u32 = u32::MAX;
        let count = self.next.len();
        let (mut index, mut low) = (vec![NONE; count], vec![0u32; count]);
        let mut on_stack = vec![false; count];
        let (mut stack, mut found, mut counter) = (Vec::new(), Vec::new(), 0u32);
        for root in 0..count {
            if index[root] != NONE {
                continue;
            }
            let mut calls: Vec<(usize, usize)> = vec![(root, 0)];
            while let Some((node, at)) = calls.pop() {
                if at == 0 {
                    index[node] = counter;
                    low[node] = counter;
                    counter += 1;
                    stack.push(node as u32);
                    on_stack[node] = true;
                }
                if let Some((child, _)) = self.next[node].get(at) {
                    calls.push((node, at + 1));
                    let child = *child as usize;
                    if index[child] == NONE {
                        calls.push((child, 0));
                    } else if on_stack[child] {
                        low[node] = low[node].min(index[child]);
                    }
                    continue;
                }
                if let Some((parent, _)) = calls.last() {
                    low[*parent] = low[*parent].min(low[node]);
                }
                if low[node] == index[node] {
                    let mut component = Vec::new();
                    while let Some(member) = stack.pop() {
                        on_stack[member as usize] = false;
                        component.push(member);
                        if member as usize == node {
                            break;
                        }
                    }
                    if component.len() > 1 {
                        found.push(component);
                    }
                }
            }
        }
        found
    }

    /// The shortest cycle through one of the first 200 moments of a component.
    fn shortest_cycle(&self, component: &[u32]) -> Option<Vec<Why>> {
        let members: HashSet<u32> = component.iter().copied().collect();
        let starts = component.iter().take(200);
        starts.filter_map(|start| self.cycle_from(*start, &members)).min_by_key(Vec::len)
    }

    fn cycle_from(&self, start: u32, members: &HashSet<u32>) -> Option<Vec<Why>> {
        let mut came: HashMap<u32, (u32, Why)> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for (child, why) in &self.next[node as usize] {
                if !members.contains(child) || came.contains_key(child) {
                    continue;
                }
                came.insert(*child, (node, *why));
                if *child == start {
                    let (mut path, mut at) = (Vec::new(), start);
                    while let Some((from, why)) = came.get(&at) {
                        path.push(*why);
                        at = *from;
                        if at == start {
                            break;
                        }
                    }
                    path.reverse();
                    return Some(path);
                }
                queue.push_back(*child);
            }
        }
        None
    }
}

fn snapshot(number: usize) -> u32 {
    2 * number as u32
}

fn commit(number: usize) -> u32 {
    2 * number as u32 + 1
}

fn describe(cycle: &[Why]) -> Anomaly {
    let edges: Vec<Edge> = cycle
        .iter()
        .filter_map(|why| match why {
            Why::Depends(edge) => Some(*edge),
            Why::Own | Why::Time => None,
        })
        .collect();
    let timed = cycle.contains(&Why::Time);
    let count = |how: How| edges.iter().filter(|edge| edge.how == how).count();
    let objects: HashSet<Object> = edges.iter().map(|edge| edge.object).collect();
    let kind = match (count(How::Rw), timed) {
        (_, true) => Kind::StaleRead,
        (0, _) if count(How::Wr) == 0 => Kind::DirtyWrite,
        (0, _) => Kind::CircularFlow,
        (1, _) if count(How::Wr) == 0 && objects.len() == 1 => Kind::LostUpdate,
        (1, _) => Kind::ReadSkew,
        _ => Kind::NonAdjacent,
    };
    let mut what = String::new();
    let mut txns = Vec::new();
    for why in cycle {
        match why {
            Why::Depends(edge) => {
                txns.push(edge.from);
                what.push_str(&format!(
                    "{} -{}({})-> {}; ",
                    edge.from,
                    format!("{:?}", edge.how).to_lowercase(),
                    edge.object,
                    edge.to
                ));
            }
            Why::Time => what.push_str("then; "),
            Why::Own => {}
        }
    }
    Anomaly { kind, what: what.trim_end_matches("; ").replace("then; then; ", "then; "), txns }
}
