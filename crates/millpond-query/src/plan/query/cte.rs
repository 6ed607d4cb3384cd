//! Queries of WITH that are run once and kept.

use super::Planning;
use super::node::{CteKind, CtePlan, Node};
use crate::analyze::tree::{Cte, CteQuery, Query, Slot};
use crate::error::Result;

impl Planning<'_> {
    /// Plans the queries of WITH that are used, and not where they are used.
    pub(super) fn plan_ctes(&mut self, query: &Query) -> Result<()> {
        for cte in &query.ctes {
            if self.steps > 0 {
                self.step_ctes.insert(cte.id);
            }
            let changes = matches!(cte.query, CteQuery::Modification(_));
            let is_used = changes || self.cte_uses.contains_key(&cte.id);
            let is_planned = self.level.ctes.iter().any(|planned| planned.id == cte.id);
            if is_used && !is_planned && self.inlined(cte).is_none() {
                let planned = self.cte(cte)?;
                self.note_cte(&planned)?;
                self.level.ctes.push(planned);
            }
        }
        Ok(())
    }

    fn cte(&mut self, cte: &Cte) -> Result<CtePlan> {
        let (kind, columns) = match &cte.query {
            CteQuery::Plain(query) => {
                let (node, slot) = self.kept(query)?;
                (CteKind::Plain(node, slot), names_of(query))
            }
            CteQuery::Recursive { start, step, all } => {
                let columns = names_of(start);
                let start = self.kept(start)?;
                let first = self.level.ctes.len();
                self.steps += 1;
                let step = self.kept(step);
                self.steps -= 1;
                let step = step?;
                let step_ctes = self.level.ctes.iter().skip(first).map(|cte| cte.id).collect();
                (CteKind::Recursive { start, step, all: *all, step_ctes }, columns)
            }
            CteQuery::Modification(modification) => {
                let columns = modification.returning.iter().flatten();
                let columns = columns.map(|column| column.name.to_string()).collect();
                (CteKind::Modify(Box::new(self.modify(modification)?)), columns)
            }
        };
        Ok(CtePlan { id: cte.id, name: cte.name.clone(), kind, columns })
    }

    fn kept(&mut self, query: &Query) -> Result<(Node, Slot)> {
        let slot = self.new_slot(query.columns.len())?;
        let path = self.query_into(query, slot, &[])?;
        Ok((path.node, slot))
    }
}

fn names_of(query: &Query) -> Vec<String> {
    query.columns.iter().map(|column| column.name.to_string()).collect()
}
