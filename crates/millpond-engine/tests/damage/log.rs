//! Damage to the log: what a start needs of it, after a clean stop and after a crash.
//!
//! After a clean stop the start needs all of it: the control file says where it ends. After a crash
//! the last flush may be missing, because a crash can leave the log in that state.

use std::path::PathBuf;

use millpond_engine::lmgr::LockMode;
use millpond_engine::wal::FileLogStore;
use millpond_engine::wal::reader::{LogReader, Step};

use super::*;

/// Commits after the last checkpoint, each of which is flushed.
const COMMITS: i32 = 60;

/// A stopped or crashed directory, and a copy of its log directory after half of the commits.
struct Logged {
    dir: tempfile::TempDir,
    halfway: BTreeMap<String, Vec<u8>>,
    /// The end of the log at that time.
    middle: u64,
}

fn logged(crashed: bool) -> Logged {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let table = create(&mut session, NewTable { name: "plain".into(), ..accounts() });
    fill(&mut session, &table, ROWS);
    engine.checkpoint().unwrap();
    let (mut middle, mut halfway) = (0, BTreeMap::new());
    let owner = "o".repeat(4000);
    for id in 0..COMMITS {
        if id == COMMITS / 2 {
            middle = engine.log().insert_position().get();
            halfway = bytes_of(&dir.path().join("wal"));
        }
        run(&mut session, |s| {
            s.lock_table(&table, LockMode::RowExclusive)?;
            s.insert(&table, &row(ROWS + 1 + id, &owner, 1)).map(|_| ())
        })
        .unwrap();
    }
    drop((session, table));
    if !crashed {
        engine.shutdown().unwrap();
    }
    drop(engine);
    Logged { dir, halfway, middle }
}

impl Logged {
    fn segment(&self, at: u64) -> (PathBuf, String) {
        let name = format!("{:016x}", at / SEGMENT);
        (self.dir.path().join("wal").join(&name), name)
    }

    /// The start of each record from the redo point on, and last the end of the log.
    fn records(&self) -> Vec<u64> {
        let store = Arc::new(FileLogStore::open(self.dir.path(), SEGMENT).unwrap());
        let control = millpond_engine::control::ControlFile::read(store.clone()).unwrap().unwrap();
        let mut reader = LogReader::new(store, control.current().redo).unwrap();
        let mut starts = Vec::new();
        loop {
            match reader.next().unwrap() {
                Step::Record(record) => starts.push(record.start.get()),
                Step::End { at, .. } => {
                    starts.push(at.get());
                    return starts;
                }
            }
        }
    }

    /// Asserts that the start is refused with an error that names the segment, and changes nothing.
    fn assert_refused(&self, segment: &str, what: &str) {
        let dir = self.dir.path();
        let before = bytes_of(dir);
        let error = Engine::open(config(dir))
            .err()
            .unwrap_or_else(|| panic!("{what}: the start is not refused"));
        assert!(error.to_string().contains(segment), "{what}: {segment} is not named: {error}");
        let after = bytes_of(dir);
        assert!(before == after, "{what}: a file has changed");
    }

    fn rows(&self) -> u64 {
        let engine = open(self.dir.path());
        rows(&mut engine.session().unwrap(), "plain").unwrap()
    }
}

/// A kind of damage, and a function that does it at a position in a segment.
type Inflict = (&'static str, fn(&Path, u64));

const INFLICT: [Inflict; 5] = [
    ("deleted", |segment, _| fs::remove_file(segment).unwrap()),
    ("cut short", |segment, at| cut(segment, at)),
    ("a bit flipped", |segment, at| flip(segment, at + 30)),
    ("a page of zeros", |segment, at| {
        let file = OpenOptions::new().write(true).open(segment).unwrap();
        file.write_all_at(&[0; 200], at).unwrap();
    }),
    ("another relation's file", |segment, _| {
        let base = segment.parent().unwrap().parent().unwrap().join("base/1");
        fs::copy(base, segment).unwrap();
    }),
];

#[test]
fn a_log_that_is_damaged_before_its_end_stops_the_start() {
    for (crashed, (what, inflict)) in
        [false, true].into_iter().flat_map(|crashed| INFLICT.map(|one| (crashed, one)))
    {
        let log = logged(crashed);
        // After a clean stop, redo begins with the last checkpoint.
        let at = if crashed { log.middle } else { log.records()[1] };
        let (path, name) = log.segment(at);
        inflict(&path, at % SEGMENT);
        log.assert_refused(&name, what);
    }
}

/// Replaces each segment by older contents: another segment's bytes, zeros, or the first part of
/// its own.
#[test]
fn an_older_copy_of_a_segment_stops_the_start() {
    for crashed in [false, true] {
        let log = logged(crashed);
        let records = log.records();
        let (first, end) = (records[0], records[records.len() - 1]);
        let whole = bytes_of(&log.dir.path().join("wal"));
        // After a crash, the last segment holds the last flush.
        let last = end / SEGMENT - u64::from(crashed);
        assert!(!crashed || last > first / SEGMENT, "there is one segment only");
        for segment in first / SEGMENT..=last {
            let (path, name) = log.segment(segment * SEGMENT);
            let recycled = whole.values().next().unwrap();
            let mut half = whole[&name].clone();
            half[SEGMENT as usize / 2..].fill(0);
            let zeros = vec![0; SEGMENT as usize];
            let halfway = log.halfway.get(&name);
            for (what, older) in [("recycled", recycled), ("half full", &half), ("new", &zeros)]
                .into_iter()
                .chain(halfway.map(|bytes| ("halfway", bytes)))
            {
                if needed(older, &records, segment) == needed(&whole[&name], &records, segment) {
                    continue;
                }
                fs::write(&path, older).unwrap();
                log.assert_refused(&name, what);
            }
            fs::write(&path, &whole[&name]).unwrap();
        }
        assert_eq!(log.rows(), (ROWS + COMMITS) as u64);
    }
}

/// The bytes of a segment that belong to the log, from the first record to the end of the last.
fn needed<'a>(bytes: &'a [u8], records: &[u64], segment: u64) -> &'a [u8] {
    let within = |at: u64| at.saturating_sub(segment * SEGMENT).min(SEGMENT) as usize;
    &bytes[within(records[0])..within(records[records.len() - 1])]
}

/// After a clean stop every record is needed, even those of the last flush.
#[test]
fn after_a_clean_stop_the_last_flush_is_needed() {
    let log = logged(false);
    let whole = bytes_of(log.dir.path());
    let control = {
        let store = Arc::new(FileLogStore::open(log.dir.path(), SEGMENT).unwrap());
        millpond_engine::control::ControlFile::read(store).unwrap().unwrap().current().clone()
    };
    assert!(control.clean);
    let needed = log.records().into_iter().take_while(|at| *at < control.checkpoint_end.get());
    let needed: Vec<u64> = needed.collect();
    assert!(needed.len() > 3, "{needed:?}");
    for at in needed {
        let (path, name) = log.segment(at);
        let before = fs::read(&path).unwrap();
        for (what, inflict) in INFLICT {
            inflict(&path, at % SEGMENT);
            log.assert_refused(&name, &format!("{what} at {at:x}"));
            fs::write(&path, &before).unwrap();
        }
    }
    assert!(whole == bytes_of(log.dir.path()));
    assert_eq!(log.rows(), (ROWS + COMMITS) as u64);
}

/// After a crash, damage in the last flush looks like the end that a crash leaves. Everything
/// durable before it is there.
#[test]
fn after_a_crash_the_last_flush_may_be_the_end() {
    let log = logged(true);
    let records = log.records();
    let (path, _) = log.segment(records[records.len() - 2]);
    flip(&path, records[records.len() - 2] % SEGMENT + 30);
    let found = log.rows();
    assert!(found == (ROWS + COMMITS) as u64 || found == (ROWS + COMMITS) as u64 - 1, "{found}");
}
