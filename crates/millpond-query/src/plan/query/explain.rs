//! Plans of queries as lines of text, as PostgreSQL writes them.

mod aggregation;
mod scan;
mod title;

use super::gather::gathered_scan;
use super::node::{CteKind, HashJoin, Modify, Node, QueryPlan, RowChange, Scan, SubPlan};
use super::node_walk::inputs;
use super::shown::{Names, calls_of};
use crate::analyze::tree::{Slot, SubqueryKind};
use crate::expr::Expr;
use crate::plan::explain::show;
use crate::plan::{Selected, SortKey};
use millpond_engine::catalog::TableDef;

/// The lines of a plan. `workers` says how many threads help to scan a table, `accelerator` is the
/// setting of that name.
pub(in crate::plan) fn lines(
    plan: &QueryPlan,
    (workers, accelerator): (&dyn Fn(&TableDef) -> usize, &str),
    lines: &mut Vec<String>,
) {
    let exprs = plan.output.exprs.iter().collect();
    let names = Names::of(plan);
    let shared = Vec::new();
    let mut explain = Explain { plan, names, exprs, workers, accelerator, shared, lines };
    explain.root(None);
}

/// The lines of what a statement reads that changes or inserts rows: it is called `what`, computes
/// `values` of each row, and then returns `returned`.
pub(in crate::plan) fn modification(
    what: &str,
    selected: &Selected,
    table: &TableDef,
    values: Vec<&Expr>,
    returned: &[Expr],
    lines: &mut Vec<String>,
) {
    let plan = &selected.plan;
    let (names, workers) = (Names::of(plan), &|_: &TableDef| 0);
    let (accelerator, shared) = ("off", Vec::new());
    let mut explain = Explain { plan, names, exprs: values, workers, accelerator, shared, lines };
    let (top, on) = (Place { indent: None }, called(table, &selected.alias));
    explain.head(top, format!("{what} on {on}"));
    explain.once(top);
    explain.node(&plan.root, Place { indent: Some(2) }, Vec::new(), false);
    let mut calls = Vec::new();
    returned.iter().for_each(|e| super::shown::note_calls(e, &mut calls));
    explain.calls(calls, top);
}

/// What is written about one plan.
struct Explain<'p> {
    plan: &'p QueryPlan,
    names: Names,
    /// What is computed of each row.
    exprs: Vec<&'p Expr>,
    workers: &'p dyn Fn(&TableDef) -> usize,
    accelerator: &'p str,
    /// The slots of the tables that several threads scan.
    shared: Vec<Slot>,
    lines: &'p mut Vec<String>,
}

/// A node's place.
#[derive(Clone, Copy)]
struct Place {
    /// Columns before the arrow; `None` at the top, where there is none.
    indent: Option<usize>,
}

impl Place {
    /// Columns before what is said about the node, and before the arrows of those below.
    fn notes(self) -> usize {
        self.indent.map_or(2, |indent| indent + 6)
    }

    fn below(self) -> Place {
        Place { indent: Some(self.notes()) }
    }
}

impl Explain<'_> {
    fn root(&mut self, indent: Option<usize>) {
        let place = Place { indent };
        let plan = self.plan;
        self.node(&plan.root, place, Vec::new(), true);
    }

    /// The plans that are run once: queries of WITH, and subqueries that use nothing of the rows.
    fn once(&mut self, place: Place) {
        let (plan, at) = (self.plan, place.notes());
        for (number, subplan) in plan.subplans.iter().enumerate() {
            if subplan.shown && self.names.is_init_plan(number) {
                let returns = self.names.init_param(number);
                self.label(at, format!("InitPlan {} (returns {returns})", number + 1));
                self.below(&subplan.plan, Names::of(&subplan.plan), at);
            }
        }
        for cte in &plan.ctes {
            self.label(at, format!("CTE {}", cte.name));
            let place = Place { indent: Some(at + 2) };
            match &cte.kind {
                CteKind::Plain(node, _) => self.node(node, place, Vec::new(), false),
                CteKind::Modify(modify) => self.modify(modify, place),
                CteKind::Recursive { start, step, .. } => {
                    self.head(place, "Recursive Union".into());
                    self.node(&start.0, place.below(), Vec::new(), false);
                    self.node(&step.0, place.below(), Vec::new(), false);
                }
            }
        }
    }

    /// A query of WITH that changes rows.
    fn modify(&mut self, modify: &Modify, place: Place) {
        let what = match modify.change {
            RowChange::Insert(_) => "Insert",
            RowChange::Update(_) => "Update",
            RowChange::Delete => "Delete",
        };
        self.head(place, format!("{what} on {}", called(&modify.table, &modify.alias)));
        self.node(&modify.input, place.below(), Vec::new(), false);
        let mut calls = Vec::new();
        modify.exprs().for_each(|e| super::shown::note_calls(e, &mut calls));
        self.calls(calls, place);
    }

    fn label(&mut self, at: usize, text: String) {
        self.lines.push(format!("{}{text}", " ".repeat(at)));
    }

    fn head(&mut self, place: Place, text: String) {
        self.lines.push(match place.indent {
            None => text,
            Some(indent) => format!("{}->  {text}", " ".repeat(indent)),
        });
    }

    fn note(&mut self, place: Place, text: String) {
        self.label(place.notes(), text);
    }

    /// A node with conditions that its rows must meet.
    fn node<'n>(&mut self, node: &'n Node, place: Place, filters: Vec<&'n Expr>, is_root: bool) {
        let planned = gathered_scan(node).map(|scan| (scan, (self.workers)(&scan.table)));
        let is_planned =
            |(scan, workers): &(&Scan, usize)| *workers > 0 && !self.shared.contains(&scan.slot);
        let Some((scan, workers)) = planned.filter(is_planned) else {
            return self.own_node(node, place, filters, is_root);
        };
        if let Node::Aggregate(aggregate) = node {
            if aggregate.accelerated.is_wanted(self.accelerator) {
                return self.own_node(node, place, filters, is_root);
            }
            return self.in_parts(aggregate, (node, scan, workers), place, filters, is_root);
        }
        self.shared.push(scan.slot);
        let is_sorted = matches!(node, Node::Sort { .. });
        self.head(place, if is_sorted { "Gather Merge" } else { "Gather" }.into());
        self.note(place, format!("Workers Planned: {workers}"));
        if is_root {
            self.once(place);
        }
        self.own_node(node, place.below(), filters, false);
    }

    fn own_node<'n>(
        &mut self,
        node: &'n Node,
        place: Place,
        filters: Vec<&'n Expr>,
        is_root: bool,
    ) {
        match node {
            Node::Filter { input, condition } => {
                let mut filters = filters;
                filters.insert(0, condition);
                return self.node(input, place, filters, is_root);
            }
            Node::Project { input, .. } => {
                let passes = filters.is_empty() || !keeps_filter(input);
                if passes {
                    return self.node(input, place, filters, is_root);
                }
                self.head(place, "Subquery Scan".into());
            }
            Node::Scan(scan) => self.scan(scan, place),
            other => {
                let head = self.title(other);
                self.head(place, head);
                self.notes(other, place);
            }
        }
        self.filters(node, place, filters);
        if is_root {
            self.once(place);
        }
        self.children(node, place);
        self.subplans(node, place);
    }

    fn notes(&mut self, node: &Node, place: Place) {
        match node {
            Node::HashJoin(join) => self.hash_conditions(join, place),
            Node::NestedLoop(join) => self.condition("Join Filter", join.on.as_ref(), place),
            Node::Sort { keys, presorted, .. } => {
                let sorted = self.sort_keys(keys);
                self.note(place, format!("Sort Key: {sorted}"));
                if let Some(first @ [_, ..]) = keys.get(..*presorted) {
                    let sorted = self.sort_keys(first);
                    self.note(place, format!("Presorted Key: {sorted}"));
                }
            }
            Node::Distinct { keys, sorted: false, .. } => {
                let keys = self.list(keys);
                self.note(place, format!("Group Key: {keys}"));
            }
            Node::Aggregate(aggregate) => {
                self.group_keys(aggregate, place);
                if aggregate.accelerated.is_wanted(self.accelerator) {
                    self.note(place, "Accelerated: true".to_owned());
                }
            }
            Node::Result { filter } => self.condition("One-Time Filter", filter.as_ref(), place),
            Node::Sample(sample) => self.sampling(sample, place),
            _ => {}
        }
    }

    fn hash_conditions(&mut self, join: &HashJoin, place: Place) {
        let equalities: Vec<String> = join
            .keys
            .iter()
            .map(|(a, b)| format!("({} = {})", self.shown(a), self.shown(b)))
            .collect();
        if !equalities.is_empty() {
            self.note(place, format!("Hash Cond: {}", conjunction(equalities)));
        }
        self.condition("Join Filter", join.on.as_ref(), place);
    }

    fn condition(&mut self, what: &str, condition: Option<&Expr>, place: Place) {
        if let Some(condition) = condition {
            let shown = self.shown(condition);
            self.note(place, format!("{what}: {shown}"));
        }
    }

    /// The conditions that a node's rows must meet, as one.
    fn filters(&mut self, node: &Node, place: Place, filters: Vec<&Expr>) {
        let own = match node {
            Node::Scan(scan) => scan.filter.as_ref(),
            _ => None,
        };
        let slot = match node {
            Node::Scan(scan) => Some(scan.slot),
            Node::Sample(sample) => Some(sample.slot),
            Node::Cte { slot, .. } | Node::Functions { slot, .. } => Some(*slot),
            _ => None,
        };
        let names = match node {
            Node::Aggregate(aggregate) => self.names.computing(aggregate.slot),
            _ => self.names.within(slot),
        };
        let mut shown = Vec::new();
        for filter in own.into_iter().chain(filters) {
            for conjunct in crate::plan::access::conjuncts(Some(filter)) {
                shown.push(show(conjunct, &names));
            }
        }
        if !shown.is_empty() {
            self.note(place, format!("Filter: {}", conjunction(shown)));
        }
    }

    fn children(&mut self, node: &Node, place: Place) {
        let below = place.below();
        if let Node::HashJoin(join) = node {
            self.node(&join.outer, below, Vec::new(), false);
            self.head(below, "Hash".into());
            return self.node(&join.inner, below.below(), Vec::new(), false);
        }
        for input in inputs(node) {
            self.node(input, below, Vec::new(), false);
        }
    }

    /// The subqueries in a node's expressions.
    fn subplans(&mut self, node: &Node, place: Place) {
        let plan = self.plan;
        let mut calls = calls_of(node);
        if std::ptr::eq(node, top(&plan.root)) {
            self.exprs.iter().for_each(|e| super::shown::note_calls(e, &mut calls));
        }
        self.calls(calls, place);
    }

    /// The plans of calls, with what they are told.
    fn calls(&mut self, calls: Vec<(usize, Vec<Expr>)>, place: Place) {
        let plan = self.plan;
        for (number, args) in calls {
            let Some(subplan) = plan.subplans.get(number) else { continue };
            if !subplan.shown || self.names.is_init_plan(number) {
                continue;
            }
            let at = place.notes();
            self.label(at, format!("SubPlan {}", number + 1));
            let args = args.iter().map(|arg| show(arg, &self.names.prefixed())).collect();
            let mut names = Names::of(&subplan.plan);
            names.set_args(subplan.first_arg, args);
            self.below(&subplan.plan, names, at);
        }
    }

    /// The plan of a subquery.
    fn below(&mut self, plan: &QueryPlan, names: Names, at: usize) {
        let exprs = plan.output.exprs.iter().collect();
        let Self { workers, accelerator, .. } = *self;
        let (shared, lines) = (Vec::new(), &mut *self.lines);
        let mut inner = Explain { plan, names, exprs, workers, accelerator, shared, lines };
        inner.root(Some(at + 2));
    }

    fn shown(&self, expr: &Expr) -> String {
        show(expr, &self.names.upper())
    }

    fn list(&self, exprs: &[Expr]) -> String {
        let shown: Vec<String> = exprs.iter().map(|e| self.shown(e)).collect();
        shown.join(", ")
    }

    fn sort_keys(&self, keys: &[SortKey]) -> String {
        let shown: Vec<String> = keys
            .iter()
            .map(|key| {
                let way = match (key.descending, key.nulls_first) {
                    (false, false) => "",
                    (false, true) => " NULLS FIRST",
                    (true, true) => " DESC",
                    (true, false) => " DESC NULLS LAST",
                };
                format!("{}{way}", self.shown(&key.expr))
            })
            .collect();
        shown.join(", ")
    }
}

/// A table with its alias.
fn called(table: &TableDef, alias: &str) -> String {
    match *alias == table.name {
        true => table.name.clone(),
        false => format!("{} {alias}", table.name),
    }
}

/// Conditions as PostgreSQL writes them: several in parentheses of their own.
fn conjunction(mut conditions: Vec<String>) -> String {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => format!("({})", conditions.join(" AND ")),
    }
}

/// Whether a condition on a node's rows can't be shown as the node's own.
fn keeps_filter(node: &Node) -> bool {
    match node {
        Node::Project { input, .. } | Node::Filter { input, .. } => keeps_filter(input),
        Node::Sort { .. }
        | Node::Limit(_)
        | Node::Distinct { .. }
        | Node::Window { .. }
        | Node::Append { .. }
        | Node::SetOp { .. }
        | Node::LockRows(_) => true,
        _ => false,
    }
}

/// The node whose line is the first.
fn top(node: &Node) -> &Node {
    match node {
        Node::Filter { input, .. } | Node::Project { input, .. } => top(input),
        other => other,
    }
}

/// What is written for the value of a subquery.
pub(super) fn call_name(subplan: Option<&SubPlan>, number: usize) -> String {
    match subplan {
        Some(SubPlan { once: true, kind: SubqueryKind::Any(..), .. }) => {
            format!("(hashed SubPlan {})", number + 1)
        }
        _ => format!("(SubPlan {})", number + 1),
    }
}
