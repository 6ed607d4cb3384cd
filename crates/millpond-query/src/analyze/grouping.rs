//! GROUP BY, and what its groups make of the other clauses.

mod keys;

use millpond_syntax::tree;

use self::keys::{Keys, MAX_SETS, is_set, too_many_sets, union};
use super::aggregate::{AGGREGATES, GROUPINGS};
use super::level::{Clause, Level};
use super::ordered_set::is_ordered_set;
use super::set_step::SetSteps;
use super::targets::Target;
use super::tree::{Distinct, Grouping, Slot, SystemColumn, column, slot_of};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::Expr;
use crate::expr::bind::{Binder, beyond};
use crate::plan::SortKey;
use crate::plan::query::node::SlotKind;

const DIRECT_ARGUMENTS: &str =
    "Direct arguments of an ordered-set aggregate must use only grouped columns.";

/// A bound GROUP BY.
#[derive(Debug)]
pub(super) struct GroupBy {
    keys: Vec<Expr>,
    /// The keys of each grouping set, if there is more than plain keys.
    sets: Option<Vec<Vec<usize>>>,
}

impl GroupBy {
    pub(super) fn keys_mut(&mut self) -> &mut [Expr] {
        &mut self.keys
    }
}

impl Level<'_> {
    /// Binds GROUP BY over FROM and the select list.
    pub(super) fn group_by(
        &self,
        list: &[tree::Expr],
        targets: &[Target],
        binder: &mut Binder<'_>,
    ) -> Result<Option<GroupBy>> {
        if list.is_empty() {
            return Ok(None);
        }
        self.within(Clause::GroupBy, || {
            let mut keys = Keys { level: self, targets, list: Vec::new() };
            let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
            let mut plain = true;
            for item in list {
                plain &= !is_set(item);
                let choices = keys.choices(item, binder)?;
                let count = sets.len().saturating_mul(choices.len());
                if count > MAX_SETS {
                    return Err(too_many_sets());
                }
                sets = sets
                    .iter()
                    .flat_map(|set| choices.iter().map(move |choice| union(set, choice)))
                    .collect();
            }
            let keys = keys.list;
            let is_one = sets.len() == 1 && sets[0].len() == keys.len() && !keys.is_empty();
            let sets = (!plain && !is_one).then_some(sets);
            Ok(Some(GroupBy { keys, sets }))
        })
    }

    /// Whether there are groups, or one of all rows.
    pub(super) fn has_groups(&self, group_by: Option<&GroupBy>, having: Option<&Expr>) -> bool {
        let collected = self.collected.borrow();
        group_by.is_some()
            || having.is_some()
            || !collected.aggregates.is_empty()
            || !collected.grouping.is_empty()
    }

    /// Makes the clauses that come after grouping refer to the groups, if there are any.
    pub(super) fn grouped(
        &self,
        group_by: Option<GroupBy>,
        targets: &mut [Target],
        having: &mut Option<Expr>,
        order_by: &mut [SortKey],
        distinct: &mut Distinct,
        sets: &mut SetSteps,
    ) -> Result<Option<Grouping>> {
        if !self.has_groups(group_by.as_ref(), having.as_ref()) {
            return Ok(None);
        }
        let mut collected = self.collected.take();
        let slot = self.group_slot()?;
        let GroupBy { keys, sets: key_sets } =
            group_by.unwrap_or_else(|| GroupBy { keys: Vec::new(), sets: None });
        let (written, near) = (keys.len(), 0);
        let mut groups =
            Groups { level: self, slot, written, keys, sets: key_sets, near, references: &[] };
        groups.references = &collected.references;
        for target in targets.iter_mut() {
            groups.near = target.references;
            groups.regroup(&mut target.expr)?;
        }
        groups.near = 0;
        if let Some(having) = having {
            groups.regroup(having)?;
        }
        for key in order_by.iter_mut() {
            groups.regroup(&mut key.expr)?;
        }
        if let Distinct::On(keys) = distinct {
            keys.iter_mut().try_for_each(|key| groups.regroup(key))?;
        }
        for window in &mut collected.windows {
            window.exprs_mut(&mut |e| groups.regroup(e))?;
        }
        sets.exprs_mut(&mut |e| groups.regroup(e))?;
        for call in collected.aggregates.iter().filter(|call| is_ordered_set(call.function)) {
            // The arguments are those of a group, not of its rows.
            for arg in &call.args {
                groups.regroup(&mut arg.clone()).map_err(|error| error.detail(DIRECT_ARGUMENTS))?;
            }
        }
        let grouping = collected
            .grouping
            .iter()
            .map(|args| groups.places_of(args))
            .collect::<Result<Vec<_>>>()?;
        let Groups { keys, sets: key_sets, .. } = groups;
        let aggregates = std::mem::take(&mut collected.aggregates);
        self.analyzer.set_width(slot, keys.len() + aggregates.len() + grouping.len());
        // Only now it is known where the keys end.
        let place = |e: &mut Expr| {
            e.change(&mut |part| {
                if let Expr::Column(c) = part
                    && let (own, place) = slot_of(*c)
                    && own == slot
                    && place >= AGGREGATES
                {
                    let place = match place.checked_sub(GROUPINGS) {
                        Some(nth) => keys.len() + aggregates.len() + nth,
                        None => keys.len() + place - AGGREGATES,
                    };
                    *c = column(slot, place);
                }
                Ok(false)
            })
        };
        targets.iter_mut().try_for_each(|target| place(&mut target.expr))?;
        having.iter_mut().try_for_each(place)?;
        order_by.iter_mut().try_for_each(|key| place(&mut key.expr))?;
        if let Distinct::On(list) = distinct {
            list.iter_mut().try_for_each(place)?;
        }
        for window in &mut collected.windows {
            window.exprs_mut(&mut |e| place(e))?;
        }
        sets.exprs_mut(&mut |e| place(e))?;
        self.collected.replace(collected);
        Ok(Some(Grouping { slot, keys, sets: key_sets, aggregates, grouping }))
    }
}

/// The groups of a SELECT, while other clauses are made to refer to them.
struct Groups<'g, 'l> {
    level: &'g Level<'l>,
    slot: Slot,
    /// How many of the keys were written; those behind them depend on a primary key among them.
    written: usize,
    keys: Vec<Expr>,
    sets: Option<Vec<Vec<usize>>>,
    /// Where among the references that of a column that is at fault is to be looked for first.
    near: usize,
    references: &'g [super::level::Reference],
}

impl Groups<'_, '_> {
    fn regroup(&mut self, e: &mut Expr) -> Result<()> {
        // A constant that is a key is NULL in the sets without it. Within an expression it is no
        // key, even if it has the same value.
        if self.sets.is_some()
            && let Expr::Const(_) | Expr::Param(_) = e
            && let Some(key) = self.keys.iter().position(|key| key == e)
        {
            *e = Expr::Column(column(self.slot, key));
            return Ok(());
        }
        self.replace(e, false)
    }

    fn replace(&mut self, e: &mut Expr, in_subquery: bool) -> Result<()> {
        if let Some(key) = self.keys.iter().position(|key| key == e)
            && !matches!(e, Expr::Const(_) | Expr::Param(_))
        {
            *e = Expr::Column(column(self.slot, key));
            return Ok(());
        }
        if let Expr::Column(c) = e {
            if self.level.owns(*c) {
                let key = self.dependent(*c).ok_or_else(|| self.ungrouped(*c, in_subquery))?;
                *e = Expr::Column(column(self.slot, key));
            } else if self.level.is_set_in_from(slot_of(*c).0) {
                return Err(beyond("a set-returning function of GROUP BY beside its key"));
            }
            return Ok(());
        }
        e.parts_mut(&mut |part| self.replace(part, in_subquery))?;
        if let Expr::Subquery(subquery) = e {
            std::sync::Arc::make_mut(&mut subquery.query)
                .exprs_mut(&mut |part| self.replace(part, true))?;
        }
        Ok(())
    }

    /// The key that a column becomes because a primary key that is grouped by decides it.
    fn dependent(&mut self, c: usize) -> Option<usize> {
        let (slot, _) = slot_of(c);
        let primary: Vec<Expr> = {
            let slots = self.level.analyzer.slots.borrow();
            let Some(SlotKind::Stored(table)) = slots.get(slot.index()) else { return None };
            let columns = &table.primary_key()?.columns;
            columns.iter().map(|own| Expr::Column(column(slot, own.column))).collect()
        };
        let places: Option<Vec<usize>> = primary
            .iter()
            .map(|part| self.keys[..self.written].iter().position(|key| key == part))
            .collect();
        let places = places?;
        let is_everywhere = match &self.sets {
            None => true,
            Some(sets) => sets.iter().all(|set| places.iter().all(|place| set.contains(place))),
        };
        if !is_everywhere {
            return None;
        }
        self.keys.push(Expr::Column(c));
        let place = self.keys.len() - 1;
        self.sets.iter_mut().flatten().for_each(|set| set.push(place));
        Some(place)
    }

    fn ungrouped(&self, c: usize, in_subquery: bool) -> SqlError {
        let (slot, place) = slot_of(c);
        let names = self.level.analyzer.names.borrow();
        let name = names.get(slot.index()).map_or_else(String::new, |names| {
            // Behind the named columns there is one that stands for the whole row.
            let system = SystemColumn::at_place(place).map(SystemColumn::name);
            let column = names.columns.get(place).map(|name| name.as_str()).or(system);
            let column = column.unwrap_or("*");
            format!("{}.{column}", names.relation)
        });
        let error = SqlError::new(
            SqlState::GROUPING_ERROR,
            if in_subquery {
                format!("subquery uses ungrouped column \"{name}\" from outer query")
            } else {
                format!(
                    "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
                )
            },
        );
        let (before, after) = self.references.split_at(self.near.min(self.references.len()));
        match after.iter().chain(before).find(|reference| reference.column == c) {
            Some(reference) => self.level.analyzer.source.place(error, reference.at),
            None => error,
        }
    }

    /// The places of GROUPING()'s arguments among the keys.
    fn places_of(&self, args: &[(Expr, u32)]) -> Result<Vec<usize>> {
        args.iter()
            .map(|(arg, at)| {
                let place = self.keys[..self.written].iter().position(|key| key == arg);
                place.ok_or_else(|| {
                    let error = SqlError::new(
                        SqlState::GROUPING_ERROR,
                        "arguments to GROUPING must be grouping expressions of the associated query level",
                    );
                    self.level.analyzer.source.place(error, *at)
                })
            })
            .collect()
    }
}
