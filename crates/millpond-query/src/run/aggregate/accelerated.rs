//! Groups that a second executor makes.

use std::sync::Arc;

use crate::convert::would_block;
use crate::error::Result;
use crate::exec::Scanner;
use crate::memory::{Rows, Tuplestore};
use crate::plan::external::{Aggregation, Outcome, Surroundings};
use crate::plan::query::node::Aggregate;
use crate::plan::query::node_walk::each_scan;
use crate::run::{Context, SlotRow, kept};
use crate::{Datum, Value};

/// Whether the second executor is to run an aggregation, if it can.
pub(super) fn is_wanted(aggregate: &Aggregate, cx: &Context<'_>) -> bool {
    let work = cx.work();
    work.accelerator.is_some()
        && aggregate.accelerated.is_wanted(work.facts.settings.text("accelerator"))
}

/// The groups of an aggregation; `None` if they have to be made here.
pub(super) fn rows(aggregate: &Aggregate, cx: &Context<'_>) -> Result<Option<Rows>> {
    let work = cx.work();
    let Some(accelerated) = work.accelerator else { return Ok(None) };
    if !work.may_wait {
        return Err(would_block());
    }
    let mut tables = Vec::new();
    each_scan(&aggregate.input, &mut |scan| tables.push(&scan.table));
    let cancel = accelerated.cancel.clone();
    let scanner = Arc::new(Scanner::new(work.session()?, &tables, cancel, work.resources)?);
    let surroundings = Arc::new(Surroundings::new(&cx.env()));
    let aggregation = Aggregation { aggregate, surroundings: &surroundings };
    let mut store = Tuplestore::new(work.resources, "Aggregate");
    let mut each = |row: &[Datum<'_>]| store.push(row);
    match accelerated.engine.run(&aggregation, scanner, &mut each)? {
        Outcome::Done => store.into_rows().map(Some),
        Outcome::Declined => Ok(None),
    }
}

/// Puts the next group into the aggregation's slot. False at the end.
pub(super) fn give(rows: &mut Rows, aggregate: &Aggregate, cx: &mut Context<'_>) -> Result<bool> {
    cx.work().tick()?;
    let mut values = kept::take_values(cx.row_mut(aggregate.slot)?);
    let Some(row) = rows.next()? else { return Ok(false) };
    values.extend(row.iter().map(Datum::to_value));
    // No key is left out of any group.
    values.extend(aggregate.grouping.iter().map(|_| Value::Int4(0)));
    cx.set(aggregate.slot, SlotRow::Values(values))?;
    Ok(true)
}
