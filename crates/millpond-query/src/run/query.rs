//! Running the plan of a statement.

use super::context::{Context, PlanData, PlanEnv, Work};
use super::state::State;
use super::{SlotRows, cte};
use crate::Value;
use crate::error::Result;
use crate::expr::Env;
use crate::plan::query::node::QueryPlan;

/// Calls a function for each row of a plan, until it wants no more.
pub(crate) fn run(
    plan: &QueryPlan,
    params: &[Value],
    work: &Work<'_>,
    each: &mut dyn FnMut(&Env<'_>) -> Result<bool>,
) -> Result<()> {
    struct Each<'e>(&'e mut dyn FnMut(&Env<'_>) -> Result<bool>);
    impl Consumer for Each<'_> {
        fn row(&mut self, cx: &mut Context<'_>) -> Result<bool> {
            (self.0)(&cx.env())
        }
    }
    consume(plan, params, work, &mut Each(each))
}

/// What takes a query's rows.
pub(crate) trait Consumer {
    /// Takes the row that is in the slots, and says whether there may be more. It may put other
    /// rows into slots, if it puts back those that were there.
    fn row(&mut self, cx: &mut Context<'_>) -> Result<bool>;

    /// All rows have been given.
    fn end(&mut self, cx: &mut Context<'_>) -> Result<()> {
        let _ = cx;
        Ok(())
    }
}

/// Runs a query for its rows.
pub(crate) fn consume(
    plan: &QueryPlan,
    params: &[Value],
    work: &Work<'_>,
    consumer: &mut dyn Consumer,
) -> Result<()> {
    let data = PlanData::new(plan, work);
    let env = PlanEnv { work, plan, params, data: &data, parent: None };
    let mut cx = Context::new(&env, SlotRows::default());
    let result = rows(plan, &mut cx, consumer);
    let rows = cx.rows;
    work.pool()?.end_statement(rows);
    result
}

fn rows(plan: &QueryPlan, cx: &mut Context<'_>, consumer: &mut dyn Consumer) -> Result<()> {
    let mut root = State::new(&plan.root, cx)?;
    while root.next(&plan.root, cx)? && consumer.row(cx)? {}
    consumer.end(cx)?;
    cte::finish_modifications(cx.plan)
}
