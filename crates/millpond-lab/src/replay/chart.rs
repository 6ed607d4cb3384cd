//! Hit ratios as a chart: one panel per trace, one line per policy.

use super::policies::PolicyKind;
use super::run::{Outcome, Plan};
use crate::chart::{self, Series};
use std::error::Error;

/// A trace's name and the results of its simulations.
pub type Panel = (String, Vec<Outcome>);

/// Draws all panels as SVG, one below another.
pub fn svg(plan: &Plan, panels: &[Panel]) -> Result<String, Box<dyn Error>> {
    let panels: Vec<_> = panels.iter().map(|panel| picture(plan, panel)).collect();
    chart::svg(&panels)
}

fn picture(plan: &Plan, (name, outcomes): &Panel) -> chart::Panel {
    let series = |policy: &PolicyKind| {
        let mut points: Vec<_> = outcomes
            .iter()
            .filter(|outcome| outcome.policy == *policy)
            .map(|outcome| (outcome.size.pages as f64, outcome.hit_ratio() * 100.0))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (color, width) = style(*policy);
        Series { name: policy.name().to_owned(), color, width, points }
    };
    chart::Panel {
        caption: name.clone(),
        x: "pages in memory",
        y: "hits, per cent",
        range: range(outcomes.iter().map(|outcome| outcome.hit_ratio() * 100.0)),
        series: plan.policies.iter().map(series).collect(),
    }
}

/// The vertical range: that of the ratios, with a margin.
fn range(ratios: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        ratios.fold((100.0f64, 0.0f64), |(low, high), at| (low.min(at), high.max(at)));
    if low > high {
        return (0.0, 100.0);
    }
    let air = ((high - low) * 0.05).max(0.5);
    ((low - air).max(0.0), (high + air).min(100.5))
}

/// Color and width. The lines of the pool's own policies and of the optimum are thick.
fn style(policy: PolicyKind) -> ((u8, u8, u8), u32) {
    match policy {
        PolicyKind::Probation => ((0, 90, 181), 4),
        PolicyKind::ClockSweep => ((0, 90, 181), 2),
        PolicyKind::Opt => ((0, 0, 0), 3),
        PolicyKind::Lru => ((220, 50, 32), 1),
        PolicyKind::Fifo => ((150, 150, 150), 1),
        PolicyKind::Clock => ((230, 159, 0), 1),
        PolicyKind::TwoQ => ((0, 158, 115), 1),
        PolicyKind::Arc => ((204, 121, 167), 1),
        PolicyKind::Lirs => ((86, 180, 233), 1),
        PolicyKind::Sieve => ((120, 94, 240), 1),
        PolicyKind::S3Fifo => ((140, 86, 75), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Trace;
    use crate::replay::size::Size;

    #[test]
    fn every_policy_and_trace_is_drawn() {
        let trace = Trace::of("a <loop>", &[1, 2, 3, 1, 2, 3]);
        for sizes in [vec![2], vec![1, 2, 3]] {
            let plan = Plan {
                policies: PolicyKind::ALL.to_vec(),
                sizes: sizes.into_iter().map(Size::pages).collect(),
            };
            let outcomes = plan.run(&trace, &|_| ());
            let panels = [(trace.name.clone(), outcomes.clone()), ("other".to_owned(), outcomes)];
            let svg = svg(&plan, &panels).unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            for text in ["a &lt;loop&gt;", "other", "clock-sweep", "optimum", "s3-fifo"] {
                assert!(svg.contains(text), "{text}");
            }
        }
    }
}
