//! Measures the log alone: `cargo bench -p millpond-engine --bench log -- [DIRECTORY]`.
//!
//! First it prints the time of one insertion for several record sizes and numbers of threads; these
//! insertions don't wait for the disk. Then it prints durable commits per second and syncs per
//! commit. It measures threads that block, and one thread that keeps many commits in flight, as an
//! event loop does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use millpond_buffer::Lsn;
use millpond_engine::transam::{SessionNo, Xid};
use millpond_engine::wal::{FileLogStore, Log, LogConfig, LogStart, Record, RmgrId};

type Failure = Box<dyn std::error::Error>;

const SEGMENT: u64 = 16 << 20;

fn open(directory: &Path) -> Result<Arc<Log>, Failure> {
    let store = Arc::new(FileLogStore::open(directory, SEGMENT)?);
    let start =
        LogStart { end: Lsn(SEGMENT), durable: Lsn(SEGMENT), redo: Lsn(SEGMENT), start_no: 1 };
    Ok(Log::open(store, LogConfig::default(), start)?)
}

/// Runs `work` in `threads` threads until `time` is over. Returns the number of runs and the
/// elapsed seconds.
fn run(threads: u16, time: Duration, work: impl Fn(u16) + Sync) -> (u64, f64) {
    let begin = Instant::now();
    let total = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (work, total) = (&work, &total);
            scope.spawn(move || {
                let mut count = 0;
                while begin.elapsed() < time {
                    for _ in 0..8 {
                        work(thread);
                    }
                    count += 8;
                }
                total.fetch_add(count, Ordering::Relaxed);
            });
        }
    });
    (total.load(Ordering::Relaxed), begin.elapsed().as_secs_f64())
}

fn main() -> Result<(), Failure> {
    let directory = std::env::args()
        .skip(1)
        .find(|arg| arg != "--bench")
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = directory.join(format!("log_bench.{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let result = measure(&directory);
    std::fs::remove_dir_all(&directory)?;
    result
}

fn measure(directory: &Path) -> Result<(), Failure> {
    let log = open(directory)?;
    for bytes in [16, 100, 1000] {
        let payload = vec![7; bytes];
        for threads in [1, 2, 8] {
            let record = Record::new(Xid(1), RmgrId::Heap, 0, &payload);
            let (count, seconds) = run(threads, Duration::from_millis(300), |thread| {
                if log.insert(SessionNo(thread), &record).is_err() {
                    std::process::abort();
                }
            });
            log.retire(log.flushed(), 256 << 20);
            println!(
                "insert {bytes:5} bytes, {threads} threads: {:7.0} ns per record and thread, {:.2} M/s",
                seconds * 1e9 * f64::from(threads) / count as f64,
                count as f64 / seconds / 1e6
            );
        }
    }
    log.flush(log.insert_position())?;
    let payload = [7; 180];
    for threads in [1, 2, 8, 32, 128] {
        let before = log.syncs();
        let record = Record::new(Xid(1), RmgrId::Transaction, 0, &payload);
        let (count, seconds) = run(threads, Duration::from_secs(2), |thread| {
            let inserted = log.insert(SessionNo(thread), &record);
            if inserted.and_then(|inserted| log.flush(inserted.end)).is_err() {
                std::process::abort();
            }
        });
        let syncs = (log.syncs() - before) as f64;
        println!(
            "commit, {threads:3} threads: {:7.0}/s, {:.3} syncs per commit",
            count as f64 / seconds,
            syncs / count as f64
        );
        log.retire(log.flushed(), 256 << 20);
    }
    for under_way in [1, 8, 32, 128] {
        let before = log.syncs();
        let (count, seconds) = tasks(&log, under_way)?;
        let syncs = (log.syncs() - before) as f64;
        println!(
            "commit, one thread with {under_way:3} under way: {:7.0}/s, {:.3} syncs per commit",
            count as f64 / seconds,
            syncs / count as f64
        );
    }
    log.close()?;
    Ok(())
}

struct Ready(AtomicU64, std::thread::Thread);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        if self.0.fetch_add(1, Ordering::AcqRel) == 0 {
            self.1.unpark();
        }
    }
}

fn tasks(log: &Log, under_way: u64) -> Result<(u64, f64), Failure> {
    let record = Record::new(Xid(1), RmgrId::Transaction, 0, &[7; 180]);
    let ready = Arc::new(Ready(AtomicU64::new(under_way), std::thread::current()));
    let begin = Instant::now();
    let mut count = 0;
    while begin.elapsed() < Duration::from_secs(2) {
        let woken = ready.0.swap(0, Ordering::AcqRel);
        if woken == 0 {
            std::thread::park();
        }
        for _ in 0..woken {
            let inserted = log.insert(SessionNo(0), &record)?;
            log.on_flushed(inserted.end, Waker::from(Arc::clone(&ready)));
        }
        count += woken;
    }
    Ok((count, begin.elapsed().as_secs_f64()))
}
