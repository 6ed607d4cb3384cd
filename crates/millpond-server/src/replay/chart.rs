//! Hit ratios as a picture: a panel per trace, a line per policy.

use super::policies::PolicyKind;
use super::run::{Outcome, Plan};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

/// A trace's name and what its simulations came to.
pub type Panel = (String, Vec<Outcome>);

const WIDTH: u32 = 900;
const PANEL_HEIGHT: u32 = 440;

/// Draws all panels, one below the other, as SVG.
pub fn svg(plan: &Plan, panels: &[Panel]) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let height = PANEL_HEIGHT * panels.len().max(1) as u32;
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        for (area, panel) in root.split_evenly((panels.len().max(1), 1)).iter().zip(panels) {
            draw(area, plan, panel)?;
        }
        root.present()?;
    }
    Ok(text)
}

fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    plan: &Plan,
    (name, outcomes): &Panel,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let ratios = outcomes.iter().map(|outcome| outcome.hit_ratio() * 100.0);
    let (low, high) = range(ratios);
    let pages = plan.sizes.iter().map(|size| size.pages as f64);
    let (first, last) =
        pages.fold((f64::MAX, 1.0f64), |(low, high), at| (low.min(at), high.max(at)));
    let last = if last > first { last } else { first * 2.0 };
    let mut chart = ChartBuilder::on(area)
        .caption(name, ("sans-serif", 18))
        .margin(12)
        .margin_right(150)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d((first..last).log_scale(), low..high)?;
    chart
        .configure_mesh()
        .x_desc("pages in memory")
        .y_desc("hits, per cent")
        .x_label_formatter(&|pages| format!("{}", pages.round()))
        .y_label_formatter(&|ratio| format!("{ratio:.0}"))
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .label_style(("sans-serif", 12))
        .draw()?;
    for policy in &plan.policies {
        let style = style(*policy);
        let mut points: Vec<_> = outcomes
            .iter()
            .filter(|outcome| outcome.policy == *policy)
            .map(|outcome| (outcome.size.pages as f64, outcome.hit_ratio() * 100.0))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style).point_size(3))?
            .label(policy.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::Coordinate((WIDTH - 210) as i32, 8))
        .label_font(("sans-serif", 13))
        .draw()?;
    Ok(())
}

/// The vertical range: what is drawn, and some air.
fn range(ratios: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        ratios.fold((100.0f64, 0.0f64), |(low, high), at| (low.min(at), high.max(at)));
    if low > high {
        return (0.0, 100.0);
    }
    let air = ((high - low) * 0.05).max(0.5);
    ((low - air).max(0.0), (high + air).min(100.5))
}

/// The pool's own policies and the optimum stand out.
fn style(policy: PolicyKind) -> ShapeStyle {
    let (color, width) = match policy {
        PolicyKind::Probation => (RGBColor(0, 90, 181), 4),
        PolicyKind::ClockSweep => (RGBColor(0, 90, 181), 2),
        PolicyKind::Opt => (BLACK, 3),
        PolicyKind::Lru => (RGBColor(220, 50, 32), 1),
        PolicyKind::Fifo => (RGBColor(150, 150, 150), 1),
        PolicyKind::Clock => (RGBColor(230, 159, 0), 1),
        PolicyKind::TwoQ => (RGBColor(0, 158, 115), 1),
        PolicyKind::Arc => (RGBColor(204, 121, 167), 1),
        PolicyKind::Lirs => (RGBColor(86, 180, 233), 1),
        PolicyKind::Sieve => (RGBColor(120, 94, 240), 1),
        PolicyKind::S3Fifo => (RGBColor(140, 86, 75), 1),
    };
    color.stroke_width(width)
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
