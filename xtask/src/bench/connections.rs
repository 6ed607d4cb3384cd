//! Throughput as connections rise. Replacement under a partitioned mapping once collapsed here.

use clap::Args;

use super::figures::{Figures, cell, goal, ratio};
use super::plot::{self, Series};
use super::{Common, Rising, name};
use crate::run::Failed;

/// Point selects (pgbench -S) as connections rise.
#[derive(Args)]
pub struct Connections {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    rising: Rising,
    /// Which systems: pg15, pg18, mp
    #[arg(long, default_value = "pg15,pg18,mp", value_delimiter = ',')]
    systems: Vec<String>,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Also log the latency of this share of the transactions (0.1), for 99th percentiles
    #[arg(long)]
    latency: Option<f64>,
}

impl Connections {
    /// Measures, and writes `connections.csv`, `connections.md` and a chart for each size.
    pub fn run(&self) -> Result<(), Failed> {
        let csv = self.common.figures(
            "connections.sh",
            &self.rising.settings([
                ("SYSTEMS", self.systems.join(" ")),
                ("RUN_SECONDS", self.seconds.to_string()),
                ("LATENCY", self.latency.map_or(String::new(), |share| share.to_string())),
            ]),
        )?;
        let figures = Figures::parse(&csv)?;
        let mut report = String::new();
        for size in figures.distinct("shared_buffers")? {
            report += &table(&figures, size)?;
            report += &goals(&figures, size)?;
            report.push('\n');
            let title = format!("pgbench -S, scale {}, shared_buffers {size}", self.common.scale);
            let svg = plot::clients(&title, &series(&figures, size)?)
                .map_err(|error| Failed(format!("could not draw: {error}")))?;
            self.common.write(&format!("connections-{size}.svg"), &svg)?;
        }
        println!("{report}");
        self.common.write("connections.md", &report)
    }
}

/// The table of one size, with a line for each number of clients.
fn table(figures: &Figures, size: &str) -> Result<String, Failed> {
    let systems = figures.distinct("system")?;
    let others: Vec<&str> = systems.iter().copied().filter(|system| *system != "mp").collect();
    let mut head = vec!["clients".to_owned()];
    head.extend(systems.iter().map(|system| format!("{} tps", name(system))));
    head.extend(others.iter().map(|other| format!("Millpond / {}", name(other))));
    let keys = [("shared_buffers", size)];
    let latency = figures.column(&keys, "p99_us")?.is_some();
    if latency {
        head.extend(systems.iter().map(|system| format!("{} p99 µs", name(system))));
    }
    let mut text = format!("shared_buffers {size}:\n\n| {} |\n", head.join(" | "));
    text += &format!("|{}\n", "---|".repeat(head.len()));
    for clients in figures.distinct("clients")? {
        let of = |system, column| {
            let keys = [("shared_buffers", size), ("clients", clients), ("system", system)];
            figures.column(&keys, column)
        };
        let mut line = vec![clients.to_owned()];
        for system in &systems {
            line.push(cell(of(system, "tps")?, 0));
        }
        for other in &others {
            let ratio = ratio(of("mp", "tps")?, of(other, "tps")?);
            line.push(ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")));
        }
        if latency {
            for system in &systems {
                line.push(cell(of(system, "p99_us")?, 0));
            }
        }
        text += &format!("| {} |\n", line.join(" | "));
    }
    Ok(text)
}

/// Reports the goals of one size.
fn goals(figures: &Figures, size: &str) -> Result<String, Failed> {
    let clients = figures.distinct("clients")?;
    let of = |system, clients| {
        let keys = [("shared_buffers", size), ("clients", clients), ("system", system)];
        figures.column(&keys, "tps")
    };
    let mut text = String::from("\n");
    let most = clients.iter().max_by_key(|clients| clients.parse::<u32>().unwrap_or(0));
    let mut best: Option<(f64, &str)> = None;
    for clients in &clients {
        if let Some(tps) = of("mp", clients)?
            && best.is_none_or(|(best, _)| tps.median > best)
        {
            best = Some((tps.median, clients));
        }
    }
    if let (Some(most), Some((best, best_at))) = (most, best) {
        let last = of("mp", most)?.map(|last| last.median / best);
        let what = format!("Millpond at {most} clients, of its own most (at {best_at})");
        text += &goal(&what, last, |part| part >= 0.95, "at least 0.95");
    }
    for (clients, factor) in [("2", 3.0), ("397", 8.0)] {
        for other in figures.distinct("system")?.into_iter().filter(|system| *system != "mp") {
            let reached = ratio(of("mp", clients)?, of(other, clients)?);
            let what = format!("Millpond at {clients} clients, of {}", name(other));
            text += &goal(&what, reached, |x| x >= factor, &format!("at least {factor}"));
        }
    }
    Ok(text)
}

/// The lines of one size's chart.
fn series(figures: &Figures, size: &str) -> Result<Vec<Series>, Failed> {
    let mut all = Vec::new();
    for system in figures.distinct("system")? {
        let mut points = Vec::new();
        for clients in figures.distinct("clients")? {
            let keys = [("shared_buffers", size), ("clients", clients), ("system", system)];
            if let (Ok(at), Some(tps)) = (clients.parse(), figures.column(&keys, "tps")?) {
                points.push((at, tps));
            }
        }
        all.push(Series { name: name(system).to_owned(), points });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "shared_buffers,clients,run,system,tps,p99_us\n\
        128MB,2,1,pg18,40000,\n128MB,2,1,mp,150000,\n128MB,397,1,pg18,10000,\n128MB,397,1,mp,120000,\n";

    #[test]
    fn the_report_has_every_cell_and_goal() {
        let figures = Figures::parse(CSV).expect("CSV");
        let table = table(&figures, "128MB").expect("table");
        assert!(table.contains("| 397 | 10000 | 120000 | 12.00 |"), "{table}");
        assert!(!table.contains("p99"), "{table}");
        let goals = goals(&figures, "128MB").expect("goals");
        assert!(goals.contains(
            "at 397 clients, of its own most (at 2): 0.80 (goal: at least 0.95): not met"
        ));
        assert!(
            goals.contains("at 2 clients, of PostgreSQL 18: 3.75 (goal: at least 3): met"),
            "{goals}"
        );
        assert_eq!(series(&figures, "128MB").expect("series").len(), 2);
    }
}
