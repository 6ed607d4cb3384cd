//! What EXPLAIN shows of aggregations.

use super::{Explain, Place};
use crate::expr::Expr;
use crate::plan::query::node::{Aggregate, Node, Scan};

impl Explain<'_> {
    /// An aggregation of which threads do a part.
    pub(super) fn in_parts<'n>(
        &mut self,
        aggregate: &'n Aggregate,
        (node, scan, workers): (&'n Node, &'n Scan, usize),
        place: Place,
        filters: Vec<&'n Expr>,
        is_root: bool,
    ) {
        let title = self.title(node);
        self.head(place, format!("Finalize {title}"));
        self.notes(node, place);
        self.filters(node, place, filters);
        if is_root {
            self.once(place);
        }
        self.shared.push(scan.slot);
        let gather = place.below();
        self.head(gather, "Gather".into());
        self.note(gather, format!("Workers Planned: {workers}"));
        let partial = gather.below();
        self.head(partial, format!("Partial {title}"));
        self.group_keys(aggregate, partial);
        self.children(node, partial);
        self.subplans(node, place);
    }

    pub(super) fn group_keys(&mut self, aggregate: &Aggregate, place: Place) {
        match &aggregate.sets {
            None if aggregate.keys.is_empty() => {}
            None => {
                let keys = self.list(&aggregate.keys);
                self.note(place, format!("Group Key: {keys}"));
            }
            Some(sets) => {
                for set in sets {
                    let keys: Vec<String> = set
                        .iter()
                        .filter_map(|key| aggregate.keys.get(*key))
                        .map(|key| self.shown(key))
                        .collect();
                    let text = match keys.is_empty() {
                        true => "Group Key: ()".to_owned(),
                        false => format!("Hash Key: {}", keys.join(", ")),
                    };
                    self.note(place, text);
                }
            }
        }
    }
}
