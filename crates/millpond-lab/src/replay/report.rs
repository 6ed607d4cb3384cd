//! Hit ratios as a table.

use super::run::{Outcome, Plan};
use super::trace::Trace;
use std::fmt::Write;

/// The table of one trace: a row per policy, a column per size, hits in percent.
#[must_use]
pub fn table(trace: &Trace, plan: &Plan, outcomes: &[Outcome]) -> String {
    let mut text = heading(trace);
    let first = plan.policies.iter().map(|policy| policy.name().len()).max().unwrap_or(0).max(6);
    let width = plan.sizes.iter().map(|size| size.to_string().len()).max().unwrap_or(0).max(6);
    let _ = write!(text, "{:first$}", "policy");
    for size in &plan.sizes {
        let _ = write!(text, "  {:>width$}", size.to_string());
    }
    text.push('\n');
    for policy in &plan.policies {
        let _ = write!(text, "{policy:first$}");
        for size in &plan.sizes {
            let mut of_cell = outcomes.iter().filter(|o| o.policy == *policy && o.size == *size);
            match of_cell.next() {
                Some(outcome) => {
                    let _ = write!(text, "  {:>width$.2}", outcome.hit_ratio() * 100.0);
                }
                None => {
                    let _ = write!(text, "  {:>width$}", "-");
                }
            }
        }
        text.push('\n');
    }
    text
}

fn heading(trace: &Trace) -> String {
    let mut text = format!(
        "{}: {} accesses of {} pages; hits in per cent\n",
        trace.name,
        trace.len(),
        trace.distinct
    );
    if let Some(hits) = trace.recorded_hits.filter(|_| !trace.is_empty()) {
        let ratio = hits as f64 / trace.len() as f64 * 100.0;
        let _ = writeln!(text, "  {ratio:.2} when it was recorded");
    }
    for note in &trace.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::PolicyKind;
    use crate::replay::size::Size;

    #[test]
    fn report_columns_are_aligned() {
        let mut trace = Trace::of("t", &[1, 2, 1, 2]);
        trace.recorded_hits = Some(3);
        trace.notes.push("half of it is missing".to_owned());
        let plan = Plan {
            policies: vec![PolicyKind::Lru, PolicyKind::ClockSweep],
            sizes: vec![Size::pages(1), "128MB".parse().unwrap()],
        };
        let outcomes = plan.run(&trace, &|_| ());
        let expected = "\
t: 4 accesses of 2 pages; hits in per cent
  75.00 when it was recorded
  note: half of it is missing
policy            1   128MB
lru            0.00   50.00
clock-sweep    0.00   50.00
";
        assert_eq!(table(&trace, &plan, &outcomes), expected);
    }
}
