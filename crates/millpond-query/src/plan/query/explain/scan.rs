//! How a table is read.

use millpond_engine::catalog::TableDef;
use millpond_engine::table::Direction;

use super::{Explain, Place, called, conjunction};
use crate::analyze::tree::Slot;
use crate::plan::access::{Access, IndexRange};
use crate::plan::explain;
use crate::plan::query::node::{Sample, Scan};

impl Explain<'_> {
    /// The lines of a table that is read.
    pub(super) fn scan(&mut self, scan: &Scan, place: Place) {
        let Scan { slot, table, alias, access, .. } = scan;
        let on = called(table, alias);
        match access {
            Access::Nothing => self.head(place, "Result".into()),
            Access::Heap if self.shared.contains(slot) => {
                self.head(place, format!("Parallel Seq Scan on {on}"));
            }
            Access::Heap => self.head(place, format!("Seq Scan on {on}")),
            Access::Point { index, key } => {
                self.head(place, format!("Index Scan using {} on {on}", index.name));
                let names = self.names.within(Some(*slot));
                let conditions = in_parentheses(explain::equalities(table, index, key, &names));
                self.note(place, format!("Index Cond: {}", conjunction(conditions)));
            }
            Access::Tids(tids) => {
                self.head(place, format!("Tid Scan on {on}"));
                let names = self.names.within(Some(*slot));
                self.note(place, format!("TID Cond: {}", explain::tid_condition(tids, &names)));
            }
            Access::Range(range) => {
                let backward = range.direction == Direction::Backward;
                let way = if backward { " Backward" } else { "" };
                self.head(place, format!("Index Scan{way} using {} on {on}", range.index.name));
                if let Some(conditions) = self.range(*slot, table, range) {
                    self.note(place, format!("Index Cond: {conditions}"));
                }
            }
        }
    }

    /// The conditions of a range of an index, if it has any.
    fn range(&self, slot: Slot, table: &TableDef, range: &IndexRange) -> Option<String> {
        let names = self.names.within(Some(slot));
        let each = range.any_of.iter().map(|bounds| {
            let conditions = explain::conditions(table, &range.index, bounds, &names);
            (!conditions.is_empty()).then(|| conjunction(in_parentheses(conditions)))
        });
        let mut each: Vec<String> = each.collect::<Option<_>>()?;
        match each.len() {
            1 => each.pop(),
            _ => Some(format!("({})", each.join(" OR "))),
        }
    }

    /// How a sample is drawn.
    pub(super) fn sampling(&mut self, sample: &Sample, place: Place) {
        let method = if sample.is_system { "system" } else { "bernoulli" };
        let seed = match &sample.seed {
            Some(seed) => format!(" REPEATABLE ({})", self.shown(seed)),
            None => String::new(),
        };
        let percent = self.shown(&sample.percent);
        self.note(place, format!("Sampling: {method} ({percent}){seed}"));
    }
}

fn in_parentheses(conditions: Vec<String>) -> Vec<String> {
    conditions.into_iter().map(|condition| format!("({condition})")).collect()
}
