//! Function Scan: functions that return rows, side by side.

use super::{Context, SlotRow, kept, system_scan};
use crate::Value;
use crate::analyze::tree::{SetFunction, SetFunctionKind, Slot};
use crate::error::Result;
use crate::expr::Series;
use crate::memory::Held;

pub(super) struct FunctionsState {
    /// One for each function, once they have begun.
    series: Vec<Series>,
    has_begun: bool,
    /// How many rows have been given.
    given: i64,
    /// The rows that functions have made already.
    held: Held,
}

impl FunctionsState {
    pub(super) fn new(cx: &Context<'_>) -> Self {
        let held = Held::new(&cx.work().resources.memory, "Function Scan");
        Self { series: Vec::new(), has_begun: false, given: 0, held }
    }

    pub(super) fn rescan(&mut self) {
        self.series.clear();
        self.held.clear();
        (self.has_begun, self.given) = (false, 0);
    }

    pub(super) fn next(
        &mut self,
        slot: Slot,
        functions: &[SetFunction],
        with_ordinality: bool,
        cx: &mut Context<'_>,
    ) -> Result<bool> {
        cx.work().tick()?;
        if !self.has_begun {
            for function in functions {
                let series = begin(function, cx)?;
                self.held.grow(series.bytes())?;
                self.series.push(series);
            }
            self.has_begun = true;
        }
        let mut row = kept::take_values(cx.row_mut(slot)?);
        let mut has_any = false;
        for (function, series) in functions.iter().zip(&mut self.series) {
            if series.next(&mut row)? {
                has_any = true;
            } else {
                // Another function has more rows.
                row.extend((0..function.columns).map(|_| Value::Null));
            }
        }
        if has_any {
            self.given += 1;
            if with_ordinality {
                row.push(Value::Int8(self.given));
            }
        }
        cx.set(slot, SlotRow::Values(row))?;
        Ok(has_any)
    }
}

fn begin(function: &SetFunction, cx: &Context<'_>) -> Result<Series> {
    let mut args = Vec::with_capacity(function.args.len());
    cx.values(function.args.iter(), &mut args)?;
    match &function.kind {
        SetFunctionKind::Value => Ok(Series::one_row(args)),
        SetFunctionKind::System(oid) => {
            let rows = system_scan::all_rows(*oid, cx)?;
            Ok(Series::of_rows(rows, function.columns))
        }
        SetFunctionKind::Rows(func) => func.rows(&args, &cx.env()),
        SetFunctionKind::Records(func, columns) => func.records(&args, columns, &cx.env()),
    }
}
