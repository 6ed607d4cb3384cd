//! The model's predictions as text and as a chart, and a comparison with this machine.

use super::measure;
use super::model::{Machine, throughput};
use super::profile::{self, Profile};
use super::workload::{Statement, World};
use crate::chart::{Panel, Series};
use millpond_engine::EngineResult;
use std::fmt::Write as _;
use std::time::Duration;

/// The numbers of cores to predict for.
const CORES: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Factors of the transfer time, to show how sensitive the predictions are.
const SENSITIVITY: [f64; 3] = [1.0, 0.5, 2.0];

/// The predictions of one statement, by transfer time and then by cores.
pub struct Prediction {
    profile: Profile,
    throughput: [Vec<f64>; 3],
}

impl Prediction {
    /// Runs the model.
    #[must_use]
    pub fn of(profile: Profile, machine: &Machine) -> Self {
        let throughput = SENSITIVITY.map(|times| {
            let machine = machine.slower(times);
            CORES.iter().map(|&cores| throughput(&profile, &machine, cores)).collect()
        });
        Self { profile, throughput }
    }
}

/// A group of predictions that share a table and a chart.
pub struct Part {
    caption: &'static str,
    predictions: Vec<Prediction>,
}

/// Computes all predictions. First measures each statement on one core of this machine for `time`.
pub fn predict(machine: &Machine, time: Duration) -> EngineResult<Vec<Part>> {
    let world = World::new(1)?;
    let mut statements = Vec::new();
    for statement in Statement::ALL {
        let work_ns = 1e9 / measure::statements(&world, statement, 1, time)?;
        statements.push(Prediction::of(profile::millpond(statement, work_ns), machine));
    }
    let servers = [profile::millpond_select(), profile::postgresql_select()];
    let servers = servers.map(|profile| Prediction::of(profile, machine)).into();
    Ok(vec![
        Part { caption: "select by key, prepared, with its client", predictions: servers },
        Part { caption: "Millpond's statements through the engine's API", predictions: statements },
    ])
}

/// The predictions as text.
#[must_use]
pub fn report(parts: &[Part], machine: &Machine) -> String {
    let mut text = format!(
        "A model, not a measurement: cores that run statements, and cache lines that go from one to the next.\n\
         A line takes {:.0} ns within a socket of {} cores and {:.0} ns between sockets; half and twice that beside.\n\
         Thousands of statements a second.\n",
        machine.near_ns, machine.cores_per_socket, machine.far_ns
    );
    for part in parts {
        let _ = write!(text, "\n{:<44}", part.caption);
        for cores in CORES {
            let _ = write!(text, "{cores:>9}");
        }
        let _ = writeln!(text);
        for prediction in &part.predictions {
            for (times, throughput) in SENSITIVITY.iter().zip(&prediction.throughput) {
                if *times != 1.0 && prediction.profile.steps.is_empty() {
                    continue;
                }
                let name = match *times {
                    1.0 => format!(
                        "{} ({:.2} us)",
                        prediction.profile.name,
                        prediction.profile.work_ns / 1e3
                    ),
                    times => format!("  transfers x{times}"),
                };
                let _ = write!(text, "{name:<44}");
                for figure in throughput {
                    let _ = write!(text, "{:>9.0}", figure / 1e3);
                }
                let _ = writeln!(text);
            }
        }
    }
    text
}

/// The predictions as charts.
#[must_use]
pub fn panels(parts: &[Part]) -> Vec<Panel> {
    const COLORS: [(u8, u8, u8); 5] =
        [(0, 90, 181), (220, 50, 32), (0, 158, 115), (230, 159, 0), (120, 94, 240)];
    let panel = |part: &Part| {
        let mut series = Vec::new();
        for (prediction, color) in part.predictions.iter().zip(COLORS.iter().cycle()) {
            for (times, throughput) in SENSITIVITY.iter().zip(&prediction.throughput) {
                let is_plain = *times == 1.0;
                let name = if is_plain { prediction.profile.name } else { "" };
                let points = CORES.iter().zip(throughput);
                // Relative to one core: some statements take a hundred times as long as others.
                let one = throughput.first().copied().unwrap_or(1.0);
                let points = points.map(|(&cores, figure)| (cores as f64, figure / one)).collect();
                let width = if is_plain { 3 } else { 1 };
                series.push(Series { name: name.to_owned(), color: *color, width, points });
            }
        }
        let highest = series.iter().flat_map(|series| &series.points).map(|point| point.1);
        let highest = highest.fold(1.0, f64::max);
        Panel {
            caption: format!("{} (a model; thin: transfers x0.5 and x2)", part.caption),
            x: "cores",
            y: "times one core",
            range: (0.0, highest * 1.05),
            series,
        }
    };
    parts.iter().map(panel).collect()
}

/// Compares the model with one and two threads on this machine. Each measurement takes `time`.
pub fn validate(time: Duration) -> EngineResult<String> {
    let near_ns = measure::transfer_ns();
    let scaling = measure::two_cores(time);
    let machine = Machine { near_ns, far_ns: near_ns, cores_per_socket: 64 };
    let mut text = format!(
        "This machine: a line takes {near_ns:.0} ns to the other core; two threads do {scaling:.2} times as much as one on\n\
         memory of their own. The model's figure for two cores is scaled by that. Thousands of statements a second.\n\n\
         {:<30}{:>14}{:>14}{:>14}{:>10}\n",
        "statement", "measured, 1", "measured, 2", "model, 2", "error"
    );
    for statement in Statement::ALL {
        // A new table for each measurement, and the better of two: other work may disturb one.
        let measured = |threads| {
            let once = || measure::statements(&World::new(2)?, statement, threads, time);
            Ok::<_, millpond_engine::EngineError>(once()?.max(once()?))
        };
        let (one, two) = (measured(1)?, measured(2)?);
        let profile = profile::millpond(statement, 1e9 / one);
        let model = throughput(&profile, &machine, 2) * scaling / 2.0;
        let _ = writeln!(
            text,
            "{:<30}{:>14.1}{:>14.1}{:>14.1}{:>9.0}%",
            statement.name(),
            one / 1e3,
            two / 1e3,
            model / 1e3,
            (model / two - 1.0) * 100.0
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart;

    const MACHINE: Machine = Machine { near_ns: 51.0, far_ns: 108.0, cores_per_socket: 64 };

    #[test]
    fn select_scales_with_cores_in_the_model() {
        let at = |profile: &Profile, cores| throughput(profile, &MACHINE, cores);
        let (ours, theirs) = (profile::millpond_select(), profile::postgresql_select());
        let gain = at(&ours, 256) / at(&ours, 1);
        assert!((250.0..260.0).contains(&gain), "{gain}");
        let gain = at(&theirs, 256) / at(&theirs, 1);
        assert!(gain < 200.0, "{gain}");
        // Four transfers of `ProcArrayLock`'s line, one after another.
        assert!(at(&theirs, 256) < 1e9 / (4.0 * MACHINE.near_ns));
    }

    #[test]
    fn predictions_are_reported_and_drawn() {
        let prediction = |profile| Prediction::of(profile, &MACHINE);
        let drawn = [Statement::SelectByKey, Statement::UpdateInPage];
        let predictions = drawn.map(|statement| prediction(profile::millpond(statement, 2000.0)));
        let part = Part { caption: "statements", predictions: predictions.into() };
        let text = report(&[part], &MACHINE);
        assert!(text.starts_with("A model, not a measurement"));
        let part = Part {
            caption: "servers",
            predictions: vec![prediction(profile::postgresql_select())],
        };
        let svg = chart::svg(&panels(&[part])).expect("a picture");
        for name in ["PostgreSQL 18", "servers (a model", "cores"] {
            assert!(svg.contains(name), "{name}");
        }
        for statement in drawn {
            assert!(text.contains(statement.name()), "{text}");
        }
    }
}
