//! Joins.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::{JoinType, NullEquality};
use datafusion_expr::utils::split_conjunction;
use datafusion_expr::{BinaryExpr, Expr as Planned, Operator, and};
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{Partitioning, PhysicalExpr};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::joins::utils::{JoinFilter, JoinOn};
use datafusion_physical_plan::joins::{
    CrossJoinExec, HashJoinExecBuilder, NestedLoopJoinExecBuilder, PartitionMode,
};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::repartition::RepartitionExec;
use millpond_query::expr::{Compare, Expr};
use millpond_query::plan::external::{HashJoin, JoinKind, NestedLoop, Node, each_scan};

use super::nodes::Rows;
use super::{Columns, Operators, Translated, Translator, add_columns, parts_of, physical};
use crate::errors::Failure;

/// If the tables below the side that is hashed have these bytes or more, before any condition, each
/// part hashes some keys of them. Then the rows of the other side are distributed by their keys,
/// too, which costs more than one hash table that all parts look into.
const LARGE_BUILD_BYTES: u64 = 32 << 20;

/// The two inputs of a join. The rows of the first are kept, and those of the second are compared
/// with them.
struct Sides<'n> {
    build: &'n Node,
    probe: &'n Node,
    /// DataFusion's type of the join, with `build` as its left side.
    kind: JoinType,
}

impl Translator<'_> {
    pub(super) fn nested_loop(&mut self, join: &NestedLoop, wanted: &Columns) -> Translated<Rows> {
        let kind = match join.kind {
            JoinKind::Inner => JoinType::Inner,
            JoinKind::Left => JoinType::Left,
            JoinKind::Right => JoinType::Right,
            JoinKind::Full => JoinType::Full,
            JoinKind::Semi => JoinType::LeftSemi,
            JoinKind::Anti => JoinType::LeftAnti,
        };
        let sides = Sides { build: &join.outer, probe: &join.inner, kind };
        let on = join.on.iter().cloned().collect();
        Ok(self.join(&sides, on, wanted)?.0)
    }

    pub(super) fn hash_join(&mut self, join: &HashJoin, wanted: &Columns) -> Translated<Rows> {
        let kind = match (join.kind, join.gives_inner) {
            (JoinKind::Inner, _) => JoinType::Inner,
            (JoinKind::Left, _) => JoinType::Right,
            (JoinKind::Right, _) => JoinType::Left,
            (JoinKind::Full, _) => JoinType::Full,
            (JoinKind::Semi, false) => JoinType::RightSemi,
            (JoinKind::Anti, false) => JoinType::RightAnti,
            (JoinKind::Semi, true) => JoinType::LeftSemi,
            (JoinKind::Anti, true) => JoinType::LeftAnti,
        };
        let equal = |(outer, inner): &(Expr, Expr)| {
            Expr::Compare(Compare::Eq, Box::new((outer.clone(), inner.clone())))
        };
        let on = join.keys.iter().map(equal).chain(join.on.iter().cloned()).collect();
        let sides = Sides { build: &join.inner, probe: &join.outer, kind };
        let (rows, by_keys) = self.join(&sides, on, wanted)?;
        // If no kernel compares the keys, each pair of rows would be looked at.
        if by_keys || join.keys.is_empty() { Ok(rows) } else { Err(Failure::Declined) }
    }

    /// The rows of a join, and whether they are found by keys.
    fn join(
        &mut self,
        sides: &Sides<'_>,
        mut on: Vec<Expr>,
        wanted: &Columns,
    ) -> Translated<(Rows, bool)> {
        let mut below = wanted.clone();
        on.iter().for_each(|condition| add_columns(condition, &mut below));
        let build = self.node(sides.build, &below)?;
        let probe = self.node(sides.probe, &below)?;
        let known: Columns = build.columns.iter().chain(&probe.columns).copied().collect();
        // An inner join may leave to the one above what it does not know. A condition on rows that
        // are given without a match, too, is no condition on matches.
        let (keeps_build, keeps_probe) = kept_sides(sides.kind);
        let of_build = build.conditions.into_iter().map(|condition| (condition, keeps_build));
        let of_probe = probe.conditions.into_iter().map(|condition| (condition, keeps_probe));
        let mut conditions = Vec::new();
        for (condition, is_kept) in of_build.chain(of_probe) {
            let mut used = Columns::new();
            add_columns(&condition, &mut used);
            match (used.is_subset(&known), sides.kind) {
                (true, _) if !is_kept => on.push(condition),
                (false, JoinType::Inner) => conditions.push(condition),
                _ => return Err(Failure::Declined),
            }
        }
        let mut all = Vec::new();
        for condition in &on {
            all.push(self.condition(condition)?);
        }
        let of = Inputs { build: build.plan, probe: probe.plan, kind: sides.kind };
        let columns = of.columns(build.columns, probe.columns);
        let kept: Vec<usize> =
            (0..columns.len()).filter(|at| wanted.contains(&columns[*at])).collect();
        let (plan, by_keys) = self.joined(of, &all, sides.build, &kept)?;
        let columns = kept.into_iter().map(|at| columns[at]).collect();
        Ok((Rows { plan, columns, conditions }, by_keys))
    }

    /// The operators of a join, which give the `kept` ones of its columns, and whether these find
    /// rows by keys.
    fn joined(
        &self,
        inputs: Inputs,
        on: &[Planned],
        build_node: &Node,
        kept: &[usize],
    ) -> Translated<(Operators, bool)> {
        let (keys, others) = inputs.keys(on)?;
        let filter = others.into_iter().reduce(and);
        let filter = filter.map(|filter| inputs.filter(&filter)).transpose()?;
        let Inputs { build, probe, kind } = inputs;
        if keys.is_empty() {
            let build = in_one_part(build);
            if filter.is_none() && kind == JoinType::Inner {
                let join = projected(Arc::new(CrossJoinExec::new(build, probe)), kept)?;
                return Ok((join, false));
            }
            let join = NestedLoopJoinExecBuilder::new(build, probe, kind)
                .with_filter(filter)
                .with_projection(Some(kept.to_vec()))
                .build()?;
            return Ok((Arc::new(join), false));
        }
        let mut build_bytes = 0;
        each_scan(build_node, &mut |scan| build_bytes += self.scanner.table_bytes(&scan.table));
        let in_parts = self.parts > 1 && build_bytes >= LARGE_BUILD_BYTES;
        let (build, probe, mode) = if in_parts {
            let (build_keys, probe_keys): (Vec<_>, Vec<_>) = keys.iter().cloned().unzip();
            let build = distributed(build, build_keys, self.parts)?;
            (build, distributed(probe, probe_keys, self.parts)?, PartitionMode::Partitioned)
        } else {
            (in_one_part(build), probe, PartitionMode::CollectLeft)
        };
        let join = HashJoinExecBuilder::new(build, probe, keys, kind)
            .with_filter(filter)
            .with_projection(Some(kept.to_vec()))
            .with_partition_mode(mode)
            .with_null_equality(NullEquality::NullEqualsNothing)
            .build()?;
        Ok((Arc::new(join), true))
    }
}

/// Whether a join gives rows of its left and of its right side that have no match, or only asks
/// whether they have one.
fn kept_sides(kind: JoinType) -> (bool, bool) {
    let left = matches!(kind, JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti);
    let right = matches!(kind, JoinType::Right | JoinType::RightSemi | JoinType::RightAnti);
    (left || kind == JoinType::Full, right || kind == JoinType::Full)
}

/// The rows of the two sides.
struct Inputs {
    build: Operators,
    probe: Operators,
    kind: JoinType,
}

impl Inputs {
    /// The columns of the join's rows.
    fn columns(&self, build: Vec<usize>, probe: Vec<usize>) -> Vec<usize> {
        match self.kind {
            JoinType::LeftSemi | JoinType::LeftAnti => build,
            JoinType::RightSemi | JoinType::RightAnti => probe,
            _ => build.into_iter().chain(probe).collect(),
        }
    }

    /// What must be equal of both sides, and the other conditions.
    fn keys(&self, on: &[Planned]) -> Translated<(JoinOn, Vec<Planned>)> {
        let (build, probe) = (self.build.schema(), self.probe.schema());
        let (mut keys, mut others) = (Vec::new(), Vec::new());
        for condition in on.iter().flat_map(split_conjunction) {
            if let Planned::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition {
                if is_of(left, &build) && is_of(right, &probe) {
                    keys.push((physical(left, &build)?, physical(right, &probe)?));
                    continue;
                }
                if is_of(left, &probe) && is_of(right, &build) {
                    keys.push((physical(right, &build)?, physical(left, &probe)?));
                    continue;
                }
            }
            others.push(condition.clone());
        }
        Ok((keys, others))
    }

    /// A condition over pairs of rows. Of these it has the columns that it uses.
    fn filter(&self, condition: &Planned) -> Translated<JoinFilter> {
        let used = condition.column_refs();
        let at = |schema: &SchemaRef| -> Vec<usize> {
            let is_used = |at: &usize| used.iter().any(|c| c.name() == schema.field(*at).name());
            (0..schema.fields().len()).filter(is_used).collect()
        };
        let (build, probe) = (self.build.schema(), self.probe.schema());
        let (of_build, of_probe) = (at(&build), at(&probe));
        let fields = of_build.iter().map(|at| build.field(*at).clone());
        let fields = fields.chain(of_probe.iter().map(|at| probe.field(*at).clone()));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let indices = JoinFilter::build_column_indices(of_build, of_probe);
        Ok(JoinFilter::new(physical(condition, &schema)?, indices, schema))
    }
}

/// Whether an expression uses columns of a schema, and no other.
fn is_of(expr: &Planned, schema: &SchemaRef) -> bool {
    let used = expr.column_refs();
    !used.is_empty() && used.iter().all(|c| schema.column_with_name(c.name()).is_some())
}

/// The same rows in one part.
pub(super) fn in_one_part(plan: Operators) -> Operators {
    if parts_of(&plan) == 1 { plan } else { Arc::new(CoalescePartitionsExec::new(plan)) }
}

/// The same rows, distributed by the values of `keys`.
pub(super) fn distributed(
    plan: Operators,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    parts: usize,
) -> Translated<Operators> {
    Ok(Arc::new(RepartitionExec::try_new(plan, Partitioning::Hash(keys, parts))?))
}

/// The columns at these places.
fn projected(plan: Operators, places: &[usize]) -> Translated<Operators> {
    let schema = plan.schema();
    let column = |at: &usize| {
        let name = schema.field(*at).name();
        (Arc::new(Column::new(name, *at)) as Arc<dyn PhysicalExpr>, name.clone())
    };
    Ok(Arc::new(ProjectionExec::try_new(places.iter().map(column), plan)?))
}
