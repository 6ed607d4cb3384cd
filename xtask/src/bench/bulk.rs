//! Point readers beside bulk work: how much a scan, VACUUM or COPY slows down other sessions.

use clap::Args;

use super::figures::{Figures, Spread, cell, goal, ratio};
use super::{Common, name};
use crate::run::Failed;

/// Pages that a select by key reads at scale 100: three levels of the index and the row's page.
/// Used for a system whose own statistics don't tell.
const PAGES_PER_SELECT: f64 = 4.0;

/// Point selects beside bulk work.
#[derive(Args)]
pub struct Bulk {
    #[command(flatten)]
    common: Common,
    /// shared_buffers
    #[arg(long, default_value = "256MB")]
    buffers: String,
    /// Which systems: pg15, pg18, mp
    #[arg(long, default_value = "pg18,mp", value_delimiter = ',')]
    systems: Vec<String>,
    /// What runs beside the readers: alone (nothing), seqscan, vacuum, copy, indexscan
    #[arg(long, default_value = "alone,seqscan,vacuum,copy,indexscan", value_delimiter = ',')]
    jobs: Vec<String>,
    /// Distributions of the readers' accounts: uniform, zipfian (1.1, permuted), none (no readers:
    /// the job alone)
    #[arg(long, default_value = "uniform,zipfian,none", value_delimiter = ',')]
    keys: Vec<String>,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Seconds for which the readers run alone before each measurement
    #[arg(long, default_value_t = 4)]
    warmup: u32,
    /// Count over this many selects of each of the two readers instead of over seconds: hit ratios
    /// that don't depend on the clock
    #[arg(long, default_value_t = 0)]
    selects: u32,
    /// Rows of a COPY
    #[arg(long, default_value_t = 10_000_000)]
    copy_rows: u32,
    /// PostgreSQL's max_parallel_workers_per_gather
    #[arg(long, default_value_t = 0)]
    parallel: u32,
}

impl Bulk {
    /// Measures, and writes `bulk.csv` and `bulk.md`.
    pub fn run(&self) -> Result<(), Failed> {
        let csv = self.common.figures(
            "bulk.sh",
            &[
                ("BUFFERS", self.buffers.clone()),
                ("SYSTEMS", self.systems.join(" ")),
                ("JOBS", self.jobs.join(" ")),
                ("KEYS", self.keys.join(" ")),
                ("RUN_SECONDS", self.seconds.to_string()),
                ("WARMUP_SECONDS", self.warmup.to_string()),
                ("SELECTS", self.selects.to_string()),
                ("COPY_ROWS", self.copy_rows.to_string()),
                ("PARALLEL", self.parallel.to_string()),
            ],
        )?;
        let figures = Figures::parse(&csv)?;
        let report = table(&figures)? + &goals(&figures)?;
        println!("{report}");
        self.common.write("bulk.md", &report)
    }
}

/// The figures of one system beside one job.
struct Case<'f> {
    figures: &'f Figures,
    keys: [(&'f str, &'f str); 3],
}

impl<'f> Case<'f> {
    fn new(figures: &'f Figures, system: &'f str, keys: &'f str, job: &'f str) -> Self {
        Self { figures, keys: [("system", system), ("keys", keys), ("job", job)] }
    }

    fn tps(&self) -> Result<Option<Spread>, Failed> {
        self.figures.column(&self.keys, "tps")
    }

    /// The percentage of the readers' pages that were in the pool.
    fn hit_ratio(&self) -> Result<Option<Spread>, Failed> {
        let told = self.figures.spread(&self.keys, &["hits", "reads"], |numbers| {
            100.0 * numbers[0] / (numbers[0] + numbers[1]).max(1.0)
        })?;
        Ok(match told {
            Some(told) => Some(told),
            None => {
                self.figures.spread(&self.keys, &["preads", "tps", "window_ms"], |numbers| {
                    let asked = PAGES_PER_SELECT * numbers[1] * numbers[2] / 1000.0;
                    100.0 * (1.0 - numbers[0] / asked.max(1.0))
                })?
            }
        })
    }

    /// Pages that the readers read from files, per thousand selects.
    fn reads_per_thousand(&self) -> Result<Option<Spread>, Failed> {
        self.figures.spread(&self.keys, &["preads", "tps", "window_ms"], |numbers| {
            1e6 * numbers[0] / (numbers[1] * numbers[2]).max(1.0)
        })
    }

    fn job_ms(&self) -> Result<Option<Spread>, Failed> {
        self.figures.column(&self.keys, "job_ms")
    }

    /// The processor time of one job: its share of the window, over the job's duration.
    fn job_cpu_ms(&self) -> Result<Option<Spread>, Failed> {
        self.figures.spread(&self.keys, &["cpu_ms", "window_ms", "job_ms"], |numbers| {
            numbers[0] / numbers[1].max(1.0) * numbers[2]
        })
    }
}

fn table(figures: &Figures) -> Result<String, Failed> {
    let mut text = String::from(
        "| readers' keys | beside | system | readers' tps | hit ratio % | pages read for 1000 selects | one job ms | its processor time ms |\n",
    );
    text += "|---|---|---|---|---|---|---|---|\n";
    for keys in figures.distinct("keys")? {
        for job in figures.distinct("job")? {
            for system in figures.distinct("system")? {
                let case = Case::new(figures, system, keys, job);
                if case.figures.column(&case.keys, "window_ms")?.is_none() {
                    continue;
                }
                let cells = [
                    keys.to_owned(),
                    job.to_owned(),
                    name(system).to_owned(),
                    cell(case.tps()?, 0),
                    cell(case.hit_ratio()?, 2),
                    cell(case.reads_per_thousand()?, 0),
                    cell(case.job_ms()?, 0),
                    cell(case.job_cpu_ms()?, 0),
                ];
                text += &format!("| {} |\n", cells.join(" | "));
            }
        }
    }
    Ok(text)
}

fn goals(figures: &Figures) -> Result<String, Failed> {
    let mut text = String::from("\n");
    for keys in figures.distinct("keys")? {
        for job in figures.distinct("job")?.into_iter().filter(|job| *job != "alone") {
            let ours = Case::new(figures, "mp", keys, job);
            if keys != "none" {
                let before = Case::new(figures, "mp", keys, "alone").hit_ratio()?;
                let fallen = before.zip(ours.hit_ratio()?).map(|(a, b)| a.median - b.median);
                let what =
                    format!("{keys} beside {job}: points that Millpond's hit ratio falls by");
                text += &goal(&what, fallen, |points| points <= 0.2, "at most 0.2");
            }
            for other in figures.distinct("system")?.into_iter().filter(|system| *system != "mp") {
                let theirs = Case::new(figures, other, keys, job);
                let of = format!("{keys} beside {job}: Millpond's");
                if keys != "none" {
                    let reached = ratio(ours.tps()?, theirs.tps()?);
                    let what = format!("{of} readers, of {}'s", name(other));
                    text += &goal(&what, reached, |x| x >= 4.0, "at least 4");
                }
                if job.ends_with("scan") {
                    let time = ratio(ours.job_ms()?, theirs.job_ms()?);
                    let what = format!("{of} time for a scan, of {}'s", name(other));
                    text += &goal(&what, time, |x| x <= 1.0 / 3.0, "at most 0.33");
                    let cpu = ratio(ours.job_cpu_ms()?, theirs.job_cpu_ms()?);
                    let what = format!("{of} processor time for a scan, of {}'s", name(other));
                    text += &goal(&what, cpu, |x| x <= 1.0 / 3.0, "at most 0.33");
                }
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "system,keys,job,run,tps,window_ms,hits,reads,preads,cpu_ms,job_ms\n\
        pg18,uniform,alone,1,40000,10000,900,100,300000,0,\n\
        mp,uniform,alone,1,120000,10000,,,1200000,0,\n\
        pg18,uniform,seqscan,1,20000,10000,800,200,150000,9000,1500\n\
        mp,uniform,seqscan,1,90000,10000,,,900000,6000,400\n";

    #[test]
    fn the_report_has_every_case_and_goal() {
        let figures = Figures::parse(CSV).expect("CSV");
        let table = table(&figures).expect("table");
        assert!(
            table.contains(
                "| uniform | seqscan | PostgreSQL 18 | 20000 | 80.00 | 750 | 1500 | 1350 |"
            ),
            "{table}"
        );
        // 4 pages for each of 900,000 selects, and one page read from files per select.
        assert!(
            table.contains("| uniform | seqscan | Millpond | 90000 | 75.00 | 1000 | 400 | 240 |"),
            "{table}"
        );
        let goals = goals(&figures).expect("goals");
        assert!(goals.contains("falls by: 0.00 (goal: at most 0.2): met"), "{goals}");
        assert!(
            goals.contains("readers, of PostgreSQL 18's: 4.50 (goal: at least 4): met"),
            "{goals}"
        );
        assert!(goals.contains("processor time for a scan, of PostgreSQL 18's: 0.18"), "{goals}");
    }
}
