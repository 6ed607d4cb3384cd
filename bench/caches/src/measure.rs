//! Runs threads for a given time, and makes medians and tables.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The number of keys between two checks of the clock.
const BATCH: usize = 256;

/// The work of all threads together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// Millions of keys per second.
    pub millions: f64,
    /// The number of keys.
    pub count: u64,
}

/// Runs `work`, made by `start` in each thread, on one list of keys per thread, in batches.
pub fn rate<W: FnMut(&[u32]) -> u64>(
    keys: &[Vec<u32>],
    time: Duration,
    start: impl Fn() -> W + Sync,
) -> Rate {
    let over = AtomicBool::new(false);
    let begin = Barrier::new(keys.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = keys
            .iter()
            .map(|keys| {
                let (over, begin, start) = (&over, &begin, &start);
                scope.spawn(move || {
                    let mut work = start();
                    begin.wait();
                    let (from, mut count) = (Instant::now(), 0u64);
                    for batch in keys.chunks_exact(BATCH).cycle() {
                        std::hint::black_box(work(batch));
                        count += BATCH as u64;
                        if over.load(Ordering::Relaxed) || from.elapsed() >= time {
                            break;
                        }
                    }
                    over.store(true, Ordering::Relaxed);
                    Rate { millions: count as f64 / from.elapsed().as_secs_f64() / 1e6, count }
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).fold(
            Rate::default(),
            |all, one| Rate { millions: all.millions + one.millions, count: all.count + one.count },
        )
    })
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// `median (least to most)`.
pub fn cell(values: &[f64], decimals: usize) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.as_slice() {
        [] => String::new(),
        [one] => format!("{one:.decimals$}"),
        [least, .., most] => {
            let median = median(values);
            format!("{median:.decimals$} ({least:.decimals$} to {most:.decimals$})")
        }
    }
}

/// A table under construction: one line for each subject, one column for each measurement.
pub struct Table {
    head: Vec<String>,
    lines: Vec<Vec<String>>,
}

impl Table {
    pub fn new(corner: &str, subjects: impl IntoIterator<Item = String>) -> Self {
        Self {
            head: vec![corner.to_owned()],
            lines: subjects.into_iter().map(|subject| vec![subject]).collect(),
        }
    }

    pub fn column(&mut self, head: String, cells: impl IntoIterator<Item = String>) {
        self.head.push(head);
        for (line, cell) in self.lines.iter_mut().zip(cells) {
            line.push(cell);
        }
    }

    pub fn print(&self, title: &str) {
        println!("\n{title}\n\n| {} |", self.head.join(" | "));
        println!("|{}", "---|".repeat(self.head.len()));
        for line in &self.lines {
            println!("| {} |", line.join(" | "));
        }
    }
}
