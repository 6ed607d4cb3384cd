//! Charts of throughput over the number of clients.

use plotters::prelude::*;
use std::error::Error;

use super::figures::Spread;

/// A line of the chart.
pub struct Series {
    pub name: String,
    /// Number of clients, and transactions per second.
    pub points: Vec<(f64, Spread)>,
}

const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(120, 120, 120)];
/// The labelled numbers of clients, as far as the series reaches.
const TICKS: [f64; 10] = [1.0, 2.0, 3.0, 5.0, 7.0, 17.0, 27.0, 53.0, 107.0, 397.0];

/// Draws throughput over clients as SVG, with a logarithmic axis of clients and throughput from 0.
/// A median is a dot, and its range is a stroke. The names of the lines are above them.
pub fn clients(title: &str, series: &[Series]) -> Result<String, Box<dyn Error>> {
    let points = || series.iter().flat_map(|series| &series.points);
    let most_clients = points().map(|(clients, _)| *clients).fold(2.0, f64::max);
    let most_tps = points().map(|(_, tps)| tps.most).fold(1.0, f64::max);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (860, 480)).into_drawing_area();
        area.fill(&WHITE)?;
        let clients = (0.9..most_clients * 1.1).log_scale();
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 18))
            .margin(14)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d(clients.with_key_points(TICKS.to_vec()), 0.0..most_tps * 1.25)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc("clients")
            .y_desc("transactions a second")
            .x_label_formatter(&|clients| format!("{clients:.0}"))
            .y_label_formatter(&|tps| format!("{:.0}k", tps / 1000.0))
            .draw()?;
        for (series, colour) in series.iter().zip(COLOURS.iter().cycle()) {
            let style = colour.stroke_width(2);
            let line = series.points.iter().map(|(clients, tps)| (*clients, tps.median));
            chart
                .draw_series(LineSeries::new(line.clone(), style))?
                .label(&series.name)
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
            chart.draw_series(line.map(|at| Circle::new(at, 3, colour.filled())))?;
            chart.draw_series(series.points.iter().map(|(clients, tps)| {
                PathElement::new(vec![(*clients, tps.least), (*clients, tps.most)], colour.mix(0.5))
            }))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .draw()?;
        area.present()?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_in_the_drawing() {
        let spread = |median| Spread { median, least: median * 0.9, most: median * 1.1 };
        let series = ["Millpond", "PostgreSQL 15"].map(|name| Series {
            name: name.to_owned(),
            points: vec![(1.0, spread(40_000.0)), (397.0, spread(90_000.0))],
        });
        let svg = clients("128MB", &series).expect("drawn");
        assert!(svg.contains("Millpond") && svg.contains("PostgreSQL 15") && svg.contains("397"));
    }
}
