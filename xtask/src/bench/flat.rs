//! How flat Millpond's throughput is over the number of connections, and how certain that is.
//!
//! The ratio of the last of 19 medians to the largest one is below 1 even for a perfectly flat
//! server. Noise makes one of the 19 the largest. Cells are therefore short, and each round has one
//! for each number of clients, in a random order. The rounds are then drawn many times with
//! replacement (a bootstrap). That gives the interval of the ratio. It also gives the ratio that a
//! server would show with the same median for every number of clients and the measured spread.

use clap::Args;

use super::figures::{Figures, cell};
use super::{Common, Rising};
use crate::run::Failed;

/// The number of bootstrap draws.
const DRAWS: usize = 2000;

/// Millpond alone as connections rise, in many short rounds.
#[derive(Args)]
pub struct Flat {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    rising: Rising,
    /// Seconds of each cell
    #[arg(long, default_value_t = 1)]
    seconds: u32,
    /// The example `canned` of millpond-server, a server that does nothing: measured in the same
    /// rounds
    #[arg(long, value_name = "PROGRAM")]
    canned: Option<String>,
    /// A file of which `canned` reads random pages, 92 for a hundred selects
    #[arg(long, value_name = "FILE", requires = "canned")]
    read: Option<String>,
}

impl Flat {
    /// Measures, and writes `flat.csv` and `flat.md`.
    pub fn run(&self) -> Result<(), Failed> {
        let csv = self.common.figures(
            "flat.sh",
            &self.rising.settings([
                ("RUN_SECONDS", self.seconds.to_string()),
                ("CANNED", self.canned.clone().unwrap_or_default()),
                ("READ", self.read.clone().unwrap_or_default()),
            ]),
        )?;
        let report = report(&Figures::parse(&csv)?)?;
        println!("{report}");
        self.common.write("flat.md", &report)
    }
}

/// A table for each size and system, and the flatness that follows from it.
fn report(figures: &Figures) -> Result<String, Failed> {
    let mut text = String::new();
    for size in figures.distinct("shared_buffers")? {
        for system in figures.distinct("system")? {
            let mut clients: Vec<u32> =
                figures.distinct("clients")?.iter().filter_map(|n| n.parse().ok()).collect();
            clients.sort_unstable();
            text += &format!("shared_buffers {size}, {}:\n\n", called(system));
            text += "| clients | tps | server's processor time for a select, ns |\n|---|---|---|\n";
            for clients in &clients {
                let clients = clients.to_string();
                let keys = [("shared_buffers", size), ("clients", &*clients), ("system", system)];
                let of = |column| figures.column(&keys, column);
                let (tps, time) = (cell(of("tps")?, 0), cell(of("server_ns")?, 0));
                text += &format!("| {clients} | {tps} | {time} |\n");
            }
            let rounds = rounds(figures, size, system, &clients)?;
            text += &match flatness(&rounds) {
                Some(found) => found.words(&clients, rounds.len(), system == "mp"),
                None => "\nNo round is complete.\n".to_owned(),
            };
            text.push('\n');
        }
    }
    Ok(text)
}

fn called(system: &str) -> &str {
    if system == "canned" { "a server that does nothing" } else { super::name(system) }
}

/// The throughput of each complete round, by number of clients.
fn rounds(
    figures: &Figures,
    size: &str,
    system: &str,
    clients: &[u32],
) -> Result<Vec<Vec<f64>>, Failed> {
    let mut rounds = Vec::new();
    for run in figures.distinct("run")? {
        let mut round = Vec::new();
        for clients in clients {
            let clients = clients.to_string();
            let keys = [
                ("shared_buffers", size),
                ("clients", &*clients),
                ("system", system),
                ("run", run),
            ];
            round.extend(figures.column(&keys, "tps")?.map(|tps| tps.median));
        }
        if !round.is_empty() && round.len() == clients.len() {
            rounds.push(round);
        }
    }
    Ok(rounds)
}

/// The last median as a fraction of the largest.
#[derive(Debug, PartialEq)]
struct Flatness {
    part: f64,
    /// The position of the largest median.
    best: usize,
    /// The middle 95% of the draws.
    interval: (f64, f64),
    /// The same for a flat server with the same spread: the median and the middle 95% of the draws.
    if_flat: (f64, f64, f64),
}

impl Flatness {
    fn words(&self, clients: &[u32], rounds: usize, has_goal: bool) -> String {
        let name = |at: usize| clients.get(at).copied().unwrap_or(0);
        let verdict = match (has_goal, self.part >= 0.95) {
            (false, _) => "",
            (true, true) => " (goal: at least 0.95): met",
            (true, false) => " (goal: at least 0.95): not met",
        };
        let (low, high) = self.interval;
        let (flat, flat_low, flat_high) = self.if_flat;
        format!(
            "\n- At {} clients, of its own most (at {}): {:.3}{verdict}. {rounds} rounds, 95% of draws: {low:.3} to {high:.3}\n\
             - A flat server with this spread would be measured at {flat:.3} ({flat_low:.3} to {flat_high:.3})\n",
            name(clients.len().saturating_sub(1)),
            name(self.best),
            self.part,
        )
    }
}

fn flatness(rounds: &[Vec<f64>]) -> Option<Flatness> {
    let all: Vec<usize> = (0..rounds.len()).collect();
    let (part, best) = last_of_most(rounds, &all)?;
    // Every number of clients gets the same median and keeps its own spread.
    let columns = rounds.first()?.len();
    let medians: Vec<f64> = (0..columns).map(|at| median(rounds, &all, at)).collect();
    let level = |round: &Vec<f64>| round.iter().zip(&medians).map(|(tps, m)| tps / m).collect();
    let levelled: Vec<Vec<f64>> = rounds.iter().map(level).collect();
    let mut random = 0x9E37_79B9_7F4A_7C15;
    let (mut parts, mut flat_parts) = (Vec::new(), Vec::new());
    for _ in 0..DRAWS {
        let drawn: Vec<usize> =
            (0..rounds.len()).map(|_| next(&mut random) as usize % rounds.len()).collect();
        parts.extend(last_of_most(rounds, &drawn).map(|(part, _)| part));
        flat_parts.extend(last_of_most(&levelled, &drawn).map(|(part, _)| part));
    }
    let at = |sorted: &[f64], share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    parts.sort_by(f64::total_cmp);
    flat_parts.sort_by(f64::total_cmp);
    Some(Flatness {
        part,
        best,
        interval: (at(&parts, 0.025), at(&parts, 0.975)),
        if_flat: (at(&flat_parts, 0.5), at(&flat_parts, 0.025), at(&flat_parts, 0.975)),
    })
}

/// The last median of these rounds as a fraction of the largest, and the position of the largest.
fn last_of_most(rounds: &[Vec<f64>], which: &[usize]) -> Option<(f64, usize)> {
    let columns = rounds.first()?.len();
    let medians: Vec<f64> = (0..columns).map(|at| median(rounds, which, at)).collect();
    let (best, most) = medians.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    Some((medians.last()? / most, best))
}

fn median(rounds: &[Vec<f64>], which: &[usize], column: usize) -> f64 {
    let mut values: Vec<f64> = which.iter().map(|round| rounds[*round][column]).collect();
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

/// Pseudo-random numbers for the draws, the same in each run.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds whose cells vary by up to a tenth around the means.
    fn noisy(means: &[f64], count: usize) -> Vec<Vec<f64>> {
        let mut random = 7;
        let mut cell = |mean: f64| mean * (0.9 + (next(&mut random) % 1000) as f64 / 5000.0);
        (0..count).map(|_| means.iter().map(|mean| cell(*mean)).collect()).collect()
    }

    #[test]
    fn noise_makes_a_flat_server_seem_to_fall_and_the_report_says_how_far() {
        let found = flatness(&noisy(&[100.0; 19], 9)).expect("rounds");
        assert!(found.part < 1.0 && found.if_flat.0 < 0.99, "{found:?}");
        assert!(found.if_flat.1 <= found.part, "within what a flat server reads: {found:?}");
    }

    #[test]
    fn a_fall_is_found_and_the_interval_has_it() {
        let mut means = [100.0; 19];
        means[18] = 70.0;
        let found = flatness(&noisy(&means, 31)).expect("rounds");
        assert!(found.interval.0 <= found.part && found.part <= found.interval.1, "{found:?}");
        assert!(found.part < found.if_flat.1, "no flat server reads that: {found:?}");
        assert_eq!(flatness(&[]), None);
    }

    #[test]
    fn only_complete_rounds_count() {
        let csv = "shared_buffers,clients,run,system,tps,server_ns\n\
            1GB,27,1,mp,100,3000\n1GB,2,1,mp,80,3100\n1GB,2,2,mp,90,3100\n1GB,27,2,mp,,\n";
        let figures = Figures::parse(csv).expect("CSV");
        assert_eq!(rounds(&figures, "1GB", "mp", &[2, 27]).expect("rounds"), [[80.0, 100.0]]);
        let report = report(&figures).expect("report");
        assert!(report.contains("| 27 | 100 | 3000 |"), "{report}");
        assert!(report.contains("At 27 clients, of its own most (at 27): 1.000"), "{report}");
        assert!(report.contains("met. 1 rounds"), "{report}");
    }
}
