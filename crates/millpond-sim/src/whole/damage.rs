//! Checks of a directory after a crash, before the next start: the consistency check, and damage to
//! one of its files.
//!
//! The consistency check finds nothing wrong in what a crash leaves, and changes no byte of it.
//! After damage to one file, the start and the reads agree with the whole ledger or fail. An error
//! names the place, and the check finds the damage, too. Afterwards the files are restored.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_engine::check::{CheckConfig, Finding, Watch, check_directory};
use millpond_engine::control::{Control, ControlFile};
use millpond_engine::wal::FileLogStore;
use millpond_engine::wal::reader::{LogReader, Step};
use millpond_engine::{EngineError, EngineResult, Session};
use millpond_vfs::Spill;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::definitions::{TABLES, found, name_of};
use super::ledger::Ledger;
use super::life::{SEGMENT, start, surely};
use super::plan::Plan;
use super::tables::{named, recorded, run};
use super::ticks::ticks;
use super::writers::compare;
use crate::vfs::SimFs;

const PAGE: usize = 8192;
const DATA: &str = "/data";

/// All files, read past all faults.
type Image = BTreeMap<PathBuf, Vec<u8>>;

/// Examines what the last life has left, after some of the lives.
pub(super) fn judge(fs: &SimFs, plan: &Plan, ledger: &Ledger, seed: u64) {
    let rng = &mut StdRng::seed_from_u64(seed ^ 0x6461_6d61);
    if rng.random_bool(0.3) {
        let findings = check(fs);
        // A crash may tear the copy of the control file that was being written.
        let is_torn = |finding: &String| finding.starts_with("control file: copy");
        assert!(findings.iter().all(is_torn), "after a crash: {findings:?}");
    }
    if rng.random_bool(0.5) {
        let before = image(fs);
        if let Some(hit) = damage(fs, &before, rng) {
            read_damaged(fs, plan, ledger.clone(), &hit);
        }
        restore(fs, &before);
    }
}

fn image(fs: &SimFs) -> Image {
    let mut image = Image::new();
    let mut open = vec![PathBuf::from(DATA)];
    while let Some(directory) = open.pop() {
        for name in fs.names(&directory).unwrap_or_default() {
            let path = directory.join(name);
            match fs.bytes(&path) {
                Ok(bytes) => drop(image.insert(path, bytes)),
                Err(_) => open.push(path),
            }
        }
    }
    image
}

fn put(fs: &SimFs, path: &Path, bytes: Vec<u8>) {
    fs.put(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn restore(fs: &SimFs, image: &Image) {
    for path in self::image(fs).into_keys().filter(|path| !image.contains_key(path)) {
        fs.delete(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    for (path, bytes) in image {
        put(fs, path, bytes.clone());
    }
}

#[derive(Default)]
struct Findings(Vec<String>);

impl Watch for Findings {
    fn found(&mut self, finding: Finding) {
        self.0.push(finding.to_string());
    }
}

/// Runs the consistency check, which changes no byte.
fn check(fs: &SimFs) -> Vec<String> {
    let mut config = CheckConfig::new(DATA);
    config.vfs = fs.mount();
    config.changes = Spill::in_memory();
    config.buffers = 64;
    let before = image(fs);
    let mut findings = Findings::default();
    surely("check", check_directory(config, &mut findings));
    assert!(before == image(fs), "the check has changed a file");
    fs.kill();
    findings.0
}

struct Hit {
    file: PathBuf,
    what: String,
}

impl fmt::Display for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.file.display(), self.what)
    }
}

/// Damages one file. `None` if the choice changes nothing, or hits bytes not known to be durable.
fn damage(fs: &SimFs, image: &Image, rng: &mut StdRng) -> Option<Hit> {
    let is_lock =
        |path: &Path| path.extension().is_some_and(|it| it == "lock") || path.ends_with("lock");
    let files: Vec<&PathBuf> = image.keys().filter(|path| !is_lock(path)).collect();
    let file = files[rng.random_range(0..files.len())];
    let old = &image[file];
    let mut new = old.clone();
    let at = rng.random_range(0..old.len().max(1));
    let (what, hit) = match rng.random_range(0..5) {
        0 => {
            let first = at / PAGE * PAGE;
            let end = old.len().min(first + PAGE);
            new[first..end].fill(0);
            (format!("a page of zeros at {first}"), first..end)
        }
        1 if !old.is_empty() => {
            new[at] ^= 1 << rng.random_range(0..8);
            (format!("a bit flipped at {at}"), at..at + 1)
        }
        2 => {
            new.truncate(at);
            (format!("cut to {at}"), 0..old.len())
        }
        3 => {
            let other = files[rng.random_range(0..files.len())];
            new.clone_from(&image[other]);
            (format!("exchanged for {}", other.display()), 0..old.len())
        }
        _ => (String::from("deleted"), 0..old.len()),
    };
    let is_deleted = what == "deleted";
    if !is_deleted && new == *old || !is_known(fs, file, hit) {
        return None;
    }
    match is_deleted {
        true => fs.delete(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())),
        false => put(fs, file, new),
    }
    Some(Hit { file: file.clone(), what })
}

/// Whether something else proves that these bytes were durable. For the last flush of the log
/// before a crash, nothing does.
fn is_known(fs: &SimFs, file: &Path, hit: std::ops::Range<usize>) -> bool {
    if file.parent() != Some(&Path::new(DATA).join("wal")) {
        return true;
    }
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Ok(segment) = u64::from_str_radix(name, 16) else { return true };
    let hit = segment * SEGMENT + hit.start as u64..segment * SEGMENT + hit.end as u64;
    let (control, claims) = claims(fs);
    let is_beyond = |end: u64| hit.start >= end;
    let is_claimed = |(start, durable): &(u64, u64)| *start >= hit.end && !is_beyond(*durable);
    let last = claims.iter().map(|(start, _)| *start).max().unwrap_or(0);
    let is_spare = hit.end <= control.redo.get() || hit.start > last + SEGMENT;
    is_spare || !is_beyond(control.checkpoint_end.get()) || claims.iter().any(is_claimed)
}

/// The control file, and for each log record its start and how far it says the log was durable.
fn claims(fs: &SimFs) -> (Control, Vec<(u64, u64)>) {
    let store = FileLogStore::open_on(fs.mount(), Path::new(DATA), SEGMENT);
    let store = Arc::new(store.unwrap_or_else(|error| panic!("the log's directory: {error}")));
    let read = || {
        let control = ControlFile::read(store.clone())?.map(|file| file.current().clone());
        let control = control.unwrap_or_else(|| panic!("no control file"));
        let mut reader = LogReader::new(store.clone(), control.redo)?;
        let mut claims = Vec::new();
        while let Step::Record(record) = reader.next()? {
            claims.push((record.start.get(), record.flushed.get()));
        }
        Ok((control, claims))
    };
    let result: EngineResult<_> = read();
    surely("read the log", result)
}

fn read_damaged(fs: &SimFs, plan: &Plan, mut ledger: Ledger, hit: &Hit) {
    let findings = check(fs);
    let mut failed = Vec::new();
    match start(fs, plan) {
        Err(error) => failed.push(error),
        Ok(engine) => {
            let mut session = surely("session", engine.session());
            read_all(&mut session, &mut ledger, &mut failed);
            drop(session);
            engine.log().abandon();
        }
    }
    fs.kill();
    for error in &failed {
        assert!(error.is_damage(), "{hit}: {error}");
        assert!(names(error, &hit.file), "{hit} is not named: {error}");
    }
    assert!(failed.is_empty() || !findings.is_empty(), "{hit}: the check misses {failed:?}");
}

/// What can be read must agree with the ledger.
fn read_all(session: &mut Session, ledger: &mut Ledger, failed: &mut Vec<EngineError>) {
    let writers = ledger.writers.len();
    let history = named(session, "history").unwrap_or_else(|| panic!("no history"));
    match run(session, |session| recorded(session, &history, writers)) {
        Ok(numbers) => ledger.settle_writers(numbers),
        Err(error) => failed.push(error),
    }
    failed.extend(compare(session).err());
    match ticks(session) {
        Ok(found) => found.into_iter().for_each(|found| ledger.settle_ticks(found)),
        Err(error) => failed.push(error),
    }
    for name in (0..TABLES).map(name_of) {
        match found(session, &name) {
            Ok(found) => ledger.settle_table(&name, found),
            Err(error) => failed.push(error),
        }
    }
}

/// Whether an error names the file.
fn names(error: &EngineError, file: &Path) -> bool {
    let text = error.to_string();
    let relative = file.strip_prefix(DATA).unwrap_or(file).display().to_string();
    let number = file.file_name().map(|name| name.to_string_lossy().into_owned());
    let relation = format!("relation {}", number.as_deref().unwrap_or_default());
    let is_log = relative.starts_with("wal/") || relative == "control";
    text.contains(&relative)
        || text.contains(&relation)
        || is_log && text.contains("log")
        || relative == "control" && text.contains("control file")
}
