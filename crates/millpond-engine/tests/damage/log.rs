//! The log's segments, damaged in the middle of what recovery needs.

use std::path::PathBuf;

use millpond_engine::lmgr::LockMode;

use super::*;

/// What is done to a segment, and how it is done at a place in it.
type Inflict = (&'static str, fn(&Path, u64));

/// Commits after the last checkpoint, each of which is flushed.
const COMMITS: i32 = 20;

/// A directory whose engine was killed after some commits; and where in the log half of them end.
fn crashed() -> (tempfile::TempDir, PathBuf, u64) {
    let dir = tempfile::tempdir().unwrap();
    make_tables(dir.path());
    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let plain = table(&session, "plain");
    let mut middle = 0;
    for id in 0..COMMITS {
        if id == COMMITS / 2 {
            middle = engine.log().insert_position().get();
        }
        run(&mut session, |s| {
            s.lock_table(&plain, LockMode::RowExclusive)?;
            s.insert(&plain, &row(id, "late", 1)).map(|_| ())
        })
        .unwrap();
    }
    let bytes = config(dir.path()).wal_segment_bytes;
    drop((session, engine, plain));
    let segment = dir.path().join(format!("wal/{:016x}", middle / bytes));
    (dir, segment, middle % bytes)
}

fn assert_refused_or_whole(dir: &Path, what: &str) {
    match Engine::open(config(dir)) {
        Err(error) => assert!(error.to_string().contains("log"), "{what}: {error}"),
        Ok(engine) => {
            let mut session = engine.session().unwrap();
            let all = (ROWS + COMMITS) as u64;
            assert_eq!(rows(&mut session, "plain").unwrap(), all, "{what}");
        }
    }
}

#[test]
fn a_log_that_is_damaged_before_its_end_stops_the_start() {
    let inflict: [Inflict; 5] = [
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
    for (what, inflict) in inflict {
        let (dir, segment, at) = crashed();
        inflict(&segment, at);
        let before = bytes_of(dir.path());
        assert_refused_or_whole(dir.path(), what);
        if Engine::open(config(dir.path())).is_err() {
            let base: Vec<_> = before.keys().filter(|name| name.starts_with("base/")).collect();
            let after = bytes_of(dir.path());
            assert!(base.iter().all(|name| before[*name] == after[*name]), "{what}: files changed");
        }
    }
}
