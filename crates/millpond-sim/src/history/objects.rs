//! Versions of lists and registers: their order, the dependencies that follow, and the anomalies
//! that need no cycle.

use std::collections::HashMap;

use super::{Anomaly, Edge, Fate, How, Kind, Level, Object, Op, Txn};

/// The writer of a register's value.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegisterWrite {
    pub(super) txn: usize,
    pub(super) version: u32,
    /// Whether it is its transaction's last write of the register.
    pub(super) last: bool,
}

#[derive(Default)]
pub(super) struct Writers {
    lists: HashMap<(u32, u32), usize>,
    registers: HashMap<(u32, u32), RegisterWrite>,
}

impl Writers {
    pub(super) fn of(history: &[Txn], found: &mut Vec<Anomaly>) -> Self {
        let mut writers = Self::default();
        for (number, txn) in history.iter().enumerate() {
            let mut last = HashMap::new();
            for op in &txn.ops {
                let twice = match op {
                    Op::Append { key, value } => {
                        writers.lists.insert((*key, *value), number).is_some()
                    }
                    Op::Write { key, value, version } => {
                        if let Some(before) = last.insert(*key, *value)
                            && let Some(before) = writers.registers.get_mut(&(*key, before))
                        {
                            before.last = false;
                        }
                        let write = RegisterWrite { txn: number, version: *version, last: true };
                        writers.registers.insert((*key, *value), write).is_some()
                    }
                    Op::List { .. } | Op::Read { .. } => false,
                };
                if twice {
                    found.push(Anomaly {
                        kind: Kind::Garbage,
                        what: format!("{op:?} is not unique: the test is wrong"),
                        txns: vec![number],
                    });
                }
            }
        }
        writers
    }

    pub(super) fn of_list(&self, key: u32, value: u32) -> Option<usize> {
        self.lists.get(&(key, value)).copied()
    }

    pub(super) fn of_register(&self, key: u32, value: u32) -> Option<RegisterWrite> {
        self.registers.get(&(key, value)).copied()
    }
}

/// What a transaction knows of an object from its own earlier steps.
#[derive(Default)]
struct Known {
    /// What it read, plus its writes since. Only REPEATABLE READ may rely on it.
    state: Option<Vec<u32>>,
    /// Its writes: for a list all its values, for a register the last value.
    own: Vec<u32>,
}

/// Finds reads that contradict what their transaction wrote or read before.
pub(super) fn check_internal(history: &[Txn], found: &mut Vec<Anomaly>) {
    for (number, txn) in history.iter().enumerate() {
        let mut known: HashMap<Object, Known> = HashMap::new();
        for op in &txn.ops {
            let (object, seen) = match op {
                Op::Append { key, value } => {
                    let known = known.entry(Object::List(*key)).or_default();
                    known.own.push(*value);
                    if let Some(state) = &mut known.state {
                        state.push(*value);
                    }
                    continue;
                }
                Op::Write { key, value, .. } => {
                    let known = known.entry(Object::Register(*key)).or_default();
                    known.own = vec![*value];
                    known.state = Some(vec![*value]);
                    continue;
                }
                Op::List { key, values } => (Object::List(*key), values.clone()),
                Op::Read { key, value, .. } => (Object::Register(*key), vec![*value]),
            };
            let known = known.entry(object).or_default();
            let same = known.state.as_ref().is_none_or(|state| *state == seen);
            if !seen.ends_with(&known.own) || (txn.level == Level::RepeatableRead && !same) {
                found.push(Anomaly {
                    kind: Kind::Internal,
                    what: format!("{object}: {op:?} after {:?}, own {:?}", known.state, known.own),
                    txns: vec![number],
                });
            }
            known.state = Some(seen);
        }
    }
}

/// A read of a list, without the reader's own appends.
struct ListRead<'h> {
    reader: usize,
    values: &'h [u32],
}

/// Finds the order, dependencies and anomalies of lists.
pub(super) fn lists(
    history: &[Txn],
    writers: &Writers,
    committed: &[bool],
    edges: &mut Vec<Edge>,
    found: &mut Vec<Anomaly>,
) {
    let mut reads: HashMap<u32, Vec<ListRead<'_>>> = HashMap::new();
    let mut longest: HashMap<u32, (usize, &[u32])> = HashMap::new();
    let mut appended: HashMap<(usize, u32), usize> = HashMap::new();
    for (reader, txn) in history.iter().enumerate() {
        for op in &txn.ops {
            match op {
                Op::Append { key, .. } => *appended.entry((reader, *key)).or_default() += 1,
                Op::List { key, values } => {
                    let own = values.iter().rev();
                    let own = own.take_while(|v| writers.of_list(*key, **v) == Some(reader));
                    let others = &values[..values.len() - own.count()];
                    reads.entry(*key).or_default().push(ListRead { reader, values: others });
                    let seen = if committed[reader] { values } else { others };
                    let most = longest.entry(*key).or_insert((reader, seen));
                    if seen.len() > most.1.len() {
                        *most = (reader, seen);
                    }
                }
                Op::Write { .. } | Op::Read { .. } => {}
            }
        }
    }
    for (&key, &(witness, order)) in &longest {
        let list = OneList { key, order, witness, history, writers, committed };
        list.check_order(found);
        list.check_writes(found);
        list.edges_of_writes(edges);
        for read in reads.get(&key).into_iter().flatten() {
            list.check_read(read, &appended, found);
            list.edges_of_read(read, edges);
        }
    }
}

struct OneList<'h> {
    key: u32,
    /// The longest value of the list that a transaction has seen.
    order: &'h [u32],
    /// The transaction that has seen it.
    witness: usize,
    history: &'h [Txn],
    writers: &'h Writers,
    committed: &'h [bool],
}

impl OneList<'_> {
    fn writer(&self, value: u32) -> Option<usize> {
        self.writers.of_list(self.key, value)
    }

    fn anomaly(&self, kind: Kind, what: String, txns: Vec<usize>) -> Anomaly {
        Anomaly { kind, what: format!("list {}: {what}", self.key), txns }
    }

    /// Finds values that no transaction appended, and values that occur twice.
    fn check_order(&self, found: &mut Vec<Anomaly>) {
        let mut seen = std::collections::HashSet::new();
        for &value in self.order {
            if self.writer(value).is_none() {
                let what = format!("{value} was never appended");
                found.push(self.anomaly(Kind::Garbage, what, vec![self.witness]));
            }
            if !seen.insert(value) {
                let what = format!("{value} is there twice");
                found.push(self.anomaly(Kind::Garbage, what, vec![self.witness]));
            }
        }
    }

    /// Finds acknowledged appends that the witness, which began later, has not seen.
    fn check_writes(&self, found: &mut Vec<Anomaly>) {
        let there: std::collections::HashSet<u32> = self.order.iter().copied().collect();
        for (number, txn) in self.history.iter().enumerate() {
            if !self.committed[number] || txn.ended >= self.history[self.witness].begun {
                continue;
            }
            for op in &txn.ops {
                if let Op::Append { key, value } = op
                    && *key == self.key
                    && !there.contains(value)
                {
                    let what = format!("{value} was appended and is not there");
                    found.push(self.anomaly(Kind::LostWrite, what, vec![number, self.witness]));
                }
            }
        }
    }

    fn edges_of_writes(&self, edges: &mut Vec<Edge>) {
        let mut last = None;
        for writer in self.order.iter().filter_map(|value| self.writer(*value)) {
            if let Some(last) = last
                && last != writer
            {
                self.edge(last, writer, How::Ww, edges);
            }
            last = Some(writer);
        }
    }

    fn edge(&self, from: usize, to: usize, how: How, edges: &mut Vec<Edge>) {
        if from != to && self.committed[from] && self.committed[to] {
            edges.push(Edge { from, to, how, object: Object::List(self.key) });
        }
    }

    fn check_read(
        &self,
        read: &ListRead<'_>,
        appended: &HashMap<(usize, u32), usize>,
        found: &mut Vec<Anomaly>,
    ) {
        if !self.order.starts_with(read.values) {
            let what = format!("{:?} and {:?}", read.values, self.order);
            found.push(self.anomaly(Kind::Disorder, what, vec![read.reader, self.witness]));
        }
        for &value in read.values {
            if let Some(writer) = self.writer(value)
                && writer != read.reader
                && self.history[writer].fate == Fate::Aborted
            {
                let what = format!("{value} was rolled back");
                found.push(self.anomaly(Kind::AbortedRead, what, vec![writer, read.reader]));
            }
        }
        let Some(writer) = read.values.last().and_then(|value| self.writer(*value)) else { return };
        let here = read.values.iter().filter(|v| self.writer(**v) == Some(writer)).count();
        let all = appended.get(&(writer, self.key)).copied().unwrap_or(0);
        if writer != read.reader && here < all {
            let what = format!("{here} of its {all} values were seen");
            found.push(self.anomaly(Kind::IntermediateRead, what, vec![writer, read.reader]));
        }
    }

    fn edges_of_read(&self, read: &ListRead<'_>, edges: &mut Vec<Edge>) {
        if let Some(writer) = read.values.last().and_then(|value| self.writer(*value)) {
            self.edge(writer, read.reader, How::Wr, edges);
        }
        let next = self.order.get(read.values.len()).and_then(|value| self.writer(*value));
        if let Some(next) = next {
            self.edge(read.reader, next, How::Rw, edges);
        }
    }
}

/// Finds the order, dependencies and anomalies of registers.
pub(super) fn registers(
    history: &[Txn],
    writers: &Writers,
    committed: &[bool],
    edges: &mut Vec<Edge>,
    found: &mut Vec<Anomaly>,
) {
    // The transaction that wrote each version.
    let mut versions: HashMap<(u32, u32), usize> = HashMap::new();
    for (number, txn) in history.iter().enumerate().filter(|(number, _)| committed[*number]) {
        for op in &txn.ops {
            if let Op::Write { key, version, .. } = op
                && let Some(other) = versions.insert((*key, *version), number)
            {
                found.push(Anomaly {
                    kind: Kind::LostUpdate,
                    what: format!("register {key}: version {version} was written twice"),
                    txns: vec![other, number],
                });
            }
        }
    }
    let at = |key: u32, version: u32| versions.get(&(key, version)).copied();
    let mut edge = |from: Option<usize>, to: Option<usize>, how: How, key: u32| {
        if let (Some(from), Some(to)) = (from, to)
            && from != to
        {
            edges.push(Edge { from, to, how, object: Object::Register(key) });
        }
    };
    for (number, txn) in history.iter().enumerate() {
        for op in &txn.ops {
            match op {
                Op::Write { key, version, .. } if committed[number] => {
                    let before = version.checked_sub(1).unwrap_or_default();
                    if before > 0 && at(*key, before).is_none() {
                        found.push(Anomaly {
                            kind: Kind::DirtyWrite,
                            what: format!(
                                "register {key}: version {version} follows {before}, which no transaction committed"
                            ),
                            txns: vec![number],
                        });
                    }
                    edge(at(*key, before), Some(number), How::Ww, *key);
                }
                Op::Read { key, value, version } => {
                    check_register_read(history, writers, number, (*key, *value, *version), found);
                    if committed[number] {
                        edge(at(*key, *version), Some(number), How::Wr, *key);
                        edge(Some(number), at(*key, *version + 1), How::Rw, *key);
                    }
                }
                _ => {}
            }
        }
    }
}

fn check_register_read(
    history: &[Txn],
    writers: &Writers,
    reader: usize,
    (key, value, version): (u32, u32, u32),
    found: &mut Vec<Anomaly>,
) {
    let mut anomaly = |kind, what: &str, txns| {
        let what = format!("register {key}: value {value}, version {version}: {what}");
        found.push(Anomaly { kind, what, txns });
    };
    if version == 0 {
        return;
    }
    match writers.of_register(key, value) {
        None => anomaly(Kind::Garbage, "never written", vec![reader]),
        Some(write) if write.version != version => {
            anomaly(Kind::Garbage, "written as another version", vec![write.txn, reader]);
        }
        Some(write) if write.txn == reader => {}
        Some(write) if history[write.txn].fate == Fate::Aborted => {
            anomaly(Kind::AbortedRead, "rolled back", vec![write.txn, reader]);
        }
        Some(write) if !write.last => {
            anomaly(Kind::IntermediateRead, "replaced by its writer", vec![write.txn, reader]);
        }
        Some(_) => {}
    }
}
