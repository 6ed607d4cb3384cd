//! What the columns of a plan's slots are called when it is shown.

use std::collections::HashMap;

use super::explain::call_name;
use super::node::{Node, QueryPlan, SlotKind};
use super::node_walk::inputs;
use crate::analyze::tree::{
    AggregateCall, AggregateFunction, Hypothetical, JsonKind, Regression, Slot, SubqueryKind,
    SystemColumn, WindowFunction, slot_of,
};
use crate::expr::{Expr, SubPlanCall};
use crate::plan::explain::{Namer, show};

/// What a plan's columns, parameters and subplans are called.
pub(super) struct Names {
    /// Of relations: the alias and the columns.
    relations: HashMap<Slot, (String, Vec<String>)>,
    /// Of computed slots: the columns.
    computed: HashMap<Slot, Vec<String>>,
    /// The first parameter that is an argument, and what the arguments are.
    args: (usize, Vec<String>),
    /// Of each subplan how it is called, and whether it is an InitPlan.
    subplans: Vec<(String, bool)>,
}

/// Which columns are written with their relation.
#[derive(Clone, Copy)]
enum Prefix {
    Never,
    Always,
    /// Those of other relations.
    Others(Slot),
}

/// Names as one node shows them.
pub(super) struct Shown<'n> {
    names: &'n Names,
    prefix: Prefix,
    /// The slot whose columns are computed by the node itself: they need no parentheses.
    own: Option<Slot>,
}

impl Namer for Shown<'_> {
    fn column(&self, column: usize) -> String {
        let (slot, place) = slot_of(column);
        if let Some((alias, columns)) = self.names.relations.get(&slot) {
            let system = SystemColumn::at_place(place).map(SystemColumn::name);
            let own = columns.get(place).map(String::as_str);
            let Some(name) = own.or(system) else { return "?".to_owned() };
            return match self.prefix {
                Prefix::Always => format!("{alias}.{name}"),
                Prefix::Others(own) if own != slot => format!("{alias}.{name}"),
                Prefix::Others(_) | Prefix::Never => name.to_owned(),
            };
        }
        let computed = self.names.computed.get(&slot).and_then(|columns| columns.get(place));
        let Some(name) = computed else { return "?".to_owned() };
        let bare = name.strip_prefix('(').and_then(|name| name.strip_suffix(')'));
        match bare {
            Some(bare) if self.own == Some(slot) && !bare.contains(" OVER ") => bare.to_owned(),
            _ => name.clone(),
        }
    }

    fn param(&self, number: usize) -> String {
        let (first, args) = &self.names.args;
        let arg = number.checked_sub(*first).and_then(|place| args.get(place));
        arg.cloned().unwrap_or_else(|| format!("${}", number + 1))
    }

    fn subplan(&self, call: &SubPlanCall) -> String {
        let name = self.names.subplans.get(call.number).map(|(name, _)| name.clone());
        name.unwrap_or_else(|| call_name(None, call.number))
    }
}

impl Names {
    pub(super) fn of(plan: &QueryPlan) -> Self {
        let mut names = Names {
            relations: HashMap::new(),
            computed: HashMap::new(),
            args: (usize::MAX, Vec::new()),
            subplans: Vec::new(),
        };
        let mut params = 0;
        for (number, subplan) in plan.subplans.iter().enumerate() {
            let is_init = subplan.once
                && !matches!(subplan.kind, SubqueryKind::Any(..) | SubqueryKind::All(..));
            let name = match is_init {
                true => {
                    params += 1;
                    format!("${}", params - 1)
                }
                false => call_name(Some(subplan), number),
            };
            names.subplans.push((name, is_init));
        }
        for cte in &plan.ctes {
            match &cte.kind {
                super::node::CteKind::Plain(node, _) => names.note(node, plan),
                super::node::CteKind::Modify(modify) => names.note(&modify.input, plan),
                super::node::CteKind::Recursive { start, step, .. } => {
                    names.note(&start.0, plan);
                    names.note(&step.0, plan);
                }
            }
        }
        names.note(&plan.root, plan);
        names
    }

    pub(super) fn set_args(&mut self, first: usize, args: Vec<String>) {
        self.args = (first, args);
    }

    pub(super) fn is_init_plan(&self, number: usize) -> bool {
        self.subplans.get(number).is_some_and(|(_, is_init)| *is_init)
    }

    pub(super) fn init_param(&self, number: usize) -> &str {
        self.subplans.get(number).map_or("?", |(name, _)| name)
    }

    pub(super) fn relation(&self, slot: Slot) -> &str {
        self.relations.get(&slot).map_or("?", |(alias, _)| alias)
    }

    /// As a node shows them that is not on one relation.
    pub(super) fn upper(&self) -> Shown<'_> {
        let prefix = if self.relations.len() > 1 { Prefix::Always } else { Prefix::Never };
        Shown { names: self, prefix, own: None }
    }

    /// As a scan of a relation shows them.
    pub(super) fn within(&self, slot: Option<Slot>) -> Shown<'_> {
        match slot {
            Some(slot) => Shown { names: self, prefix: Prefix::Others(slot), own: None },
            None => self.upper(),
        }
    }

    /// As a node shows them that computes a slot.
    pub(super) fn computing(&self, slot: Slot) -> Shown<'_> {
        Shown { own: Some(slot), ..self.upper() }
    }

    pub(super) fn prefixed(&self) -> Shown<'_> {
        Shown { names: self, prefix: Prefix::Always, own: None }
    }

    /// Notes the columns of the slots that a node and those below it fill.
    fn note(&mut self, node: &Node, plan: &QueryPlan) {
        for input in inputs(node) {
            self.note(input, plan);
        }
        let numbered = |count: usize| (1..=count).map(|n| format!("column{n}")).collect();
        match node {
            Node::Scan(scan) => {
                let columns = scan.table.columns.iter().map(|column| column.name.clone());
                self.relations.insert(scan.slot, (scan.alias.clone(), columns.collect()));
            }
            Node::Sample(sample) => {
                let columns = sample.table.columns.iter().map(|column| column.name.clone());
                self.relations.insert(sample.slot, (sample.alias.clone(), columns.collect()));
            }
            Node::Values { slot, rows } => {
                let columns = numbered(rows.first().map_or(0, Vec::len));
                self.relations.insert(*slot, ("\"*VALUES*\"".to_owned(), columns));
            }
            Node::Functions { slot, .. } => {
                let columns = numbered(width(plan, *slot));
                self.relations.insert(*slot, ("function".to_owned(), columns));
            }
            Node::Cte { slot, cte, .. } | Node::WorkTable { slot, cte } => {
                let known = plan.ctes.iter().find(|known| known.id == *cte);
                let columns = known.map(|known| known.columns.clone());
                let columns = columns.unwrap_or_else(|| numbered(width(plan, *slot)));
                let name = known.map_or("?", |known| known.name.as_str()).to_owned();
                self.relations.insert(*slot, (name, columns));
            }
            Node::Project { slot, exprs, .. } => {
                let columns = exprs.iter().map(|e| show(e, &self.upper())).collect();
                self.computed.insert(*slot, columns);
            }
            Node::Aggregate(aggregate) => {
                let mut columns: Vec<String> =
                    aggregate.keys.iter().map(|e| show(e, &self.upper())).collect();
                columns.extend(aggregate.calls.iter().map(|call| format!("({})", self.call(call))));
                for keys in &aggregate.grouping {
                    let keys: Vec<&str> = keys
                        .iter()
                        .filter_map(|key| columns.get(*key))
                        .map(String::as_str)
                        .collect();
                    columns.push(format!("(GROUPING({}))", keys.join(", ")));
                }
                self.computed.insert(aggregate.slot, columns);
            }
            Node::Window { window, .. } => {
                let call = |call: &crate::analyze::tree::WindowCall| {
                    let args = self.list(&call.args);
                    format!("({}({args}) OVER (?))", window_name(call.function))
                };
                let columns = window.calls.iter().map(call).collect();
                self.computed.insert(window.slot, columns);
            }
            Node::Append { slot, inputs } => {
                let of_first = inputs.first().and_then(|(_, first)| self.computed.get(first));
                if let Some(columns) = of_first.cloned() {
                    self.computed.insert(*slot, columns);
                }
            }
            Node::SetOp { slot, left, .. } => {
                let columns = self.computed.get(&left.1).cloned().unwrap_or_default();
                self.computed.insert(*slot, columns);
            }
            _ => {}
        }
    }

    fn list(&self, exprs: &[Expr]) -> String {
        let shown: Vec<String> = exprs.iter().map(|e| show(e, &self.upper())).collect();
        shown.join(", ")
    }

    fn call(&self, call: &AggregateCall) -> String {
        let args = match call.function {
            AggregateFunction::CountRows => "*".to_owned(),
            _ => self.list(&call.args),
        };
        let distinct = if call.distinct { "DISTINCT " } else { "" };
        let filter = call.filter.as_ref().map_or(String::new(), |filter| {
            format!(" FILTER (WHERE {})", show(filter, &self.upper()))
        });
        format!("{}({distinct}{args}){filter}", function_name(call.function))
    }
}

fn width(plan: &QueryPlan, slot: Slot) -> usize {
    match plan.slots.get(slot.index()) {
        Some(SlotKind::Computed(columns)) => *columns,
        Some(SlotKind::Stored(table)) => table.columns.len(),
        None => 0,
    }
}

/// The subplans that a node's expressions call, with what they are told.
pub(super) fn calls_of(node: &Node) -> Vec<(usize, Vec<Expr>)> {
    let mut calls = Vec::new();
    super::node_walk::each_own(node, &mut |e| note_calls(e, &mut calls));
    calls
}

pub(super) fn note_calls(expr: &Expr, calls: &mut Vec<(usize, Vec<Expr>)>) {
    expr.walk(&mut |e| {
        if let Expr::SubPlan(call) = e
            && !calls.iter().any(|(number, _)| *number == call.number)
        {
            calls.push((call.number, call.args.clone()));
        }
    });
}

fn window_name(function: WindowFunction) -> &'static str {
    match function {
        WindowFunction::RowNumber => "row_number",
        WindowFunction::Rank => "rank",
        WindowFunction::DenseRank => "dense_rank",
        WindowFunction::PercentRank => "percent_rank",
        WindowFunction::CumeDist => "cume_dist",
        WindowFunction::Ntile => "ntile",
        WindowFunction::Lag => "lag",
        WindowFunction::Lead => "lead",
        WindowFunction::FirstValue => "first_value",
        WindowFunction::LastValue => "last_value",
        WindowFunction::NthValue => "nth_value",
        WindowFunction::Aggregate(function) => function_name(function),
    }
}

pub(super) fn function_name(function: AggregateFunction) -> &'static str {
    use AggregateFunction as F;
    match function {
        F::CountRows | F::Count => "count",
        F::Sum => "sum",
        F::Min => "min",
        F::Max => "max",
        F::Avg => "avg",
        F::BoolAnd => "bool_and",
        F::BoolOr => "bool_or",
        F::BitAnd => "bit_and",
        F::BitOr => "bit_or",
        F::BitXor => "bit_xor",
        F::StringAgg => "string_agg",
        F::ArrayAgg | F::ArrayAggOfArrays => "array_agg",
        F::JsonList(JsonKind::Json) => "json_agg",
        F::JsonList(JsonKind::Jsonb) => "jsonb_agg",
        F::JsonObject(JsonKind::Json) => "json_object_agg",
        F::JsonObject(JsonKind::Jsonb) => "jsonb_object_agg",
        F::VarPop => "var_pop",
        F::VarSamp => "var_samp",
        F::StddevPop => "stddev_pop",
        F::StddevSamp => "stddev_samp",
        F::PercentileCont => "percentile_cont",
        F::PercentileDisc => "percentile_disc",
        F::Mode => "mode",
        F::Hypothetical(what) => match what {
            Hypothetical::Rank => "rank",
            Hypothetical::DenseRank => "dense_rank",
            Hypothetical::PercentRank => "percent_rank",
            Hypothetical::CumeDist => "cume_dist",
        },
        F::Regression(regression) => match regression {
            Regression::Corr => "corr",
            Regression::CovarPop => "covar_pop",
            Regression::CovarSamp => "covar_samp",
            Regression::AvgX => "regr_avgx",
            Regression::AvgY => "regr_avgy",
            Regression::Count => "regr_count",
            Regression::Intercept => "regr_intercept",
            Regression::R2 => "regr_r2",
            Regression::Slope => "regr_slope",
            Regression::Sxx => "regr_sxx",
            Regression::Sxy => "regr_sxy",
            Regression::Syy => "regr_syy",
        },
    }
}
