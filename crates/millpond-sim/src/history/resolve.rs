//! Decides which transactions have committed: those that were acknowledged, and of the unanswered
//! ones those whose writes were seen.

use std::collections::{HashMap, HashSet};

use super::objects::Writers;
use super::{Anomaly, Fate, Kind, Op, Txn};

/// What the reads of a history reveal about writes.
struct Evidence<'h> {
    history: &'h [Txn],
    /// Values of lists and of registers that another transaction has read.
    listed: HashSet<(u32, u32)>,
    read: HashSet<(u32, u32)>,
    /// The reads of each list and register: when they began, and what they showed.
    lists: HashMap<u32, Vec<(u64, &'h [u32])>>,
    registers: HashMap<u32, Vec<(u64, u32)>>,
    /// Versions of registers that acknowledged transactions wrote.
    owned: HashSet<(u32, u32)>,
}

/// Whether each transaction has committed.
pub(super) fn committed(history: &[Txn], writers: &Writers, found: &mut Vec<Anomaly>) -> Vec<bool> {
    let mut committed = Vec::from_iter(history.iter().map(|txn| txn.fate == Fate::Committed));
    if history.iter().all(|txn| txn.fate != Fate::Unknown) {
        return committed;
    }
    let evidence = Evidence::of(history, writers);
    for (number, txn) in history.iter().enumerate() {
        if txn.fate != Fate::Unknown {
            continue;
        }
        let (mut there, mut missing) = (None, None);
        for op in &txn.ops {
            match evidence.of_write(txn, op) {
                Some(true) => there = Some(op),
                Some(false) => missing = Some(op),
                None => {}
            }
        }
        if let (Some(there), Some(missing)) = (there, missing) {
            found.push(Anomaly {
                kind: Kind::TornCommit,
                what: format!("{there:?} is there, {missing:?} is not"),
                txns: vec![number],
            });
        }
        committed[number] = there.is_some();
    }
    committed
}

impl<'h> Evidence<'h> {
    fn of(history: &'h [Txn], writers: &Writers) -> Self {
        let mut evidence = Evidence {
            history,
            listed: HashSet::new(),
            read: HashSet::new(),
            lists: HashMap::new(),
            registers: HashMap::new(),
            owned: HashSet::new(),
        };
        for (number, txn) in history.iter().enumerate() {
            for op in &txn.ops {
                match op {
                    Op::List { key, values } => {
                        for &value in values {
                            if writers.of_list(*key, value).is_some_and(|w| w != number) {
                                evidence.listed.insert((*key, value));
                            }
                        }
                        evidence.lists.entry(*key).or_default().push((txn.begun, values));
                    }
                    Op::Read { key, value, version } => {
                        let writer = writers.of_register(*key, *value).map(|write| write.txn);
                        if writer == Some(number) {
                            // Its own write, which it may have taken back.
                            continue;
                        }
                        if writer.is_some() {
                            evidence.read.insert((*key, *value));
                        }
                        evidence.registers.entry(*key).or_default().push((txn.begun, *version));
                    }
                    Op::Write { key, version, .. } if txn.fate == Fate::Committed => {
                        evidence.owned.insert((*key, *version));
                    }
                    Op::Append { .. } | Op::Write { .. } => {}
                }
            }
        }
        evidence
    }

    /// Whether a write of an unanswered transaction is there; `None` if the history does not tell.
    fn of_write(&self, txn: &Txn, op: &Op) -> Option<bool> {
        match op {
            Op::Append { key, value } => {
                if self.listed.contains(&(*key, *value)) {
                    return Some(true);
                }
                let later = self.lists.get(key)?.iter().any(|(begun, _)| *begun > txn.ended);
                later.then_some(false)
            }
            Op::Write { key, value, version } => {
                if self.read.contains(&(*key, *value)) {
                    return Some(true);
                }
                if self.owned.contains(&(*key, *version)) {
                    return Some(false);
                }
                // A later write of the same transaction hides this one.
                if let Some(last) = own_last(txn, *key)
                    && last != *version
                {
                    return None;
                }
                let reads = self.registers.get(key)?;
                let most =
                    reads.iter().filter(|(begun, _)| *begun > txn.ended).map(|r| r.1).max()?;
                if most < *version {
                    return Some(false);
                }
                // A later version follows it, and no other transaction can have written it.
                (self.rivals(*key, *version) == 1).then_some(true)
            }
            Op::List { .. } | Op::Read { .. } => None,
        }
    }

    /// The number of unanswered transactions that wrote this version.
    fn rivals(&self, key: u32, version: u32) -> usize {
        let wrote = |txn: &&Txn| {
            let is_it = |op: &Op| matches!(op, Op::Write { key: k, version: v, .. } if (*k, *v) == (key, version));
            txn.fate == Fate::Unknown && txn.ops.iter().any(is_it)
        };
        self.history.iter().filter(wrote).count()
    }
}

/// The last version of a register that a transaction wrote.
fn own_last(txn: &Txn, register: u32) -> Option<u32> {
    txn.ops.iter().rev().find_map(|op| match op {
        Op::Write { key, version, .. } if *key == register => Some(*version),
        _ => None,
    })
}
