//! Draws line charts with a logarithmic horizontal axis as SVG, one panel below another.

use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;

const WIDTH: u32 = 900;
const PANEL_HEIGHT: u32 = 440;

/// A chart of some lines.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The caption above the chart.
    pub caption: String,
    /// The label of the horizontal axis.
    pub x: &'static str,
    /// The label of the vertical axis.
    pub y: &'static str,
    /// The vertical range.
    pub range: (f64, f64),
    /// The lines.
    pub series: Vec<Series>,
}

/// A line.
#[derive(Debug, Clone)]
pub struct Series {
    /// The name in the legend. A line with an empty name is not in the legend.
    pub name: String,
    /// Its colour: red, green, blue.
    pub color: (u8, u8, u8),
    /// Its width.
    pub width: u32,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Draws all panels, one below the other.
pub fn svg(panels: &[Panel]) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    {
        let height = PANEL_HEIGHT * panels.len().max(1) as u32;
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        for (area, panel) in root.split_evenly((panels.len().max(1), 1)).iter().zip(panels) {
            draw(area, panel)?;
        }
        root.present()?;
    }
    Ok(text)
}

fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    panel: &Panel,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let points = panel.series.iter().flat_map(|series| &series.points);
    let (first, last) =
        points.fold((f64::MAX, 1.0f64), |(low, high), (at, _)| (low.min(*at), high.max(*at)));
    let last = if last > first { last } else { first * 2.0 };
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.caption, ("sans-serif", 18))
        .margin(12)
        .margin_right(150)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d((first..last).log_scale(), panel.range.0..panel.range.1)?;
    chart
        .configure_mesh()
        .x_desc(panel.x)
        .y_desc(panel.y)
        .x_label_formatter(&|x| format!("{}", x.round()))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .label_style(("sans-serif", 12))
        .draw()?;
    for series in &panel.series {
        let (red, green, blue) = series.color;
        let style = RGBColor(red, green, blue).stroke_width(series.width);
        let line = LineSeries::new(series.points.iter().copied(), style).point_size(3);
        let drawn = chart.draw_series(line)?;
        if !series.name.is_empty() {
            drawn
                .label(&series.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::Coordinate((WIDTH - 210) as i32, 8))
        .label_font(("sans-serif", 13))
        .draw()?;
    Ok(())
}
