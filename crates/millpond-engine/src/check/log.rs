//! Checks of the control file and the log.

use std::path::Path;
use std::sync::Arc;

use millpond_vfs::{Vfs, retry};

use super::Checked;
use super::files::names;
use super::watch::{Finding, Meter, Part, Watch};
use crate::control::{Control, read_copies};
use crate::error::{EngineError, EngineResult};
use crate::recovery::find_end;
use crate::wal::{FileLogStore, LogConfig, LogStore, WalError};

const CONTROL: &str = "control file";
const LOG: &str = "log";

/// Checks both. Returns the control file if recovery can use them.
pub(super) fn check(
    vfs: &Arc<dyn Vfs>,
    overlay: &Arc<dyn Vfs>,
    path: &Path,
    checked: &mut Checked,
    watch: &mut dyn Watch,
) -> EngineResult<Option<Control>> {
    // The control file does not depend on the segment size.
    let store = open(overlay, path, LogConfig::default().segment_bytes)?;
    let Some(control) = check_control(&*store, watch)? else { return Ok(None) };
    let wanted = control.segment_bytes;
    if !wanted.is_power_of_two() {
        watch.found(Finding::of(
            CONTROL,
            format_args!(
                "it says that a log segment has {wanted} bytes, which is not a power of two"
            ),
        ));
        return Ok(None);
    }
    let store = open(overlay, path, wanted)?;
    check_segments(&**vfs, path, &*store, watch)?;
    let store: Arc<dyn LogStore> = store;
    let segments = store.segments().map_err(|source| failed("list the log's segments", source))?;
    let last = segments.last().map_or(0, |last| (last + 1) * store.segment_bytes());
    let redo = control.redo.get();
    let mut meter = Meter::new(watch, Part::Log, last.saturating_sub(redo));
    let end = find_end(&store, &control, &mut |record| {
        checked.records += 1;
        meter.reach(record.end.get().saturating_sub(redo));
    });
    match end {
        Ok(_) => Ok(Some(control)),
        Err(error) if error.is_damage() => {
            watch.found(Finding::of(LOG, error));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn open(vfs: &Arc<dyn Vfs>, path: &Path, segment_bytes: u64) -> EngineResult<Arc<FileLogStore>> {
    let store = FileLogStore::open_on(Arc::clone(vfs), path, segment_bytes);
    Ok(Arc::new(store.map_err(|source| failed("open the log's directory", source))?))
}

fn failed(what: &str, source: std::io::Error) -> EngineError {
    WalError::io(format!("could not {what}"), source).into()
}

/// Checks both copies of the control file. Returns the current one.
fn check_control(store: &dyn LogStore, watch: &mut dyn Watch) -> EngineResult<Option<Control>> {
    let Some(copies) = read_copies(store)? else {
        watch.found(Finding::of(CONTROL, "it is missing, but there is data"));
        return Ok(None);
    };
    let mut valid: Vec<Control> = Vec::new();
    let mut damaged = Vec::new();
    for (number, copy) in copies.into_iter().enumerate() {
        match copy {
            Ok(control) => valid.push(control),
            Err(error @ WalError::Control { .. }) => damaged.push((number, error)),
            Err(error) => return Err(error.into()),
        }
    }
    valid.sort_by_key(|control| control.sequence);
    // A crash during the creation of a database leaves the second copy unwritten.
    let is_half_made = matches!(&valid[..], [only] if only.sequence <= 1);
    if !is_half_made {
        for (number, error) in damaged {
            watch.found(Finding::of(CONTROL, format_args!("copy {number}: {error}")));
        }
    }
    if let [older, newer] = &valid[..]
        && older.sequence + 1 != newer.sequence
    {
        let (older, newer) = (older.sequence, newer.sequence);
        let what =
            format!("its copies have the numbers {older} and {newer}, which are not consecutive");
        watch.found(Finding::of(CONTROL, what));
    }
    Ok(valid.pop())
}

/// Checks the lengths of the segments. Which segments exist proves nothing. After a crash, segments
/// from before the redo point may be back, and others may lie beyond a gap (wal rule 9). Reading
/// the records finds a missing segment.
fn check_segments(
    vfs: &dyn Vfs,
    path: &Path,
    store: &dyn LogStore,
    watch: &mut dyn Watch,
) -> EngineResult<()> {
    let wal = path.join("wal");
    for name in names(vfs, &wal)?.unwrap_or_default() {
        let number = name.to_str().filter(|name| name.len() == 16);
        let Some(number) = number.and_then(|name| u64::from_str_radix(name, 16).ok()) else {
            continue;
        };
        let bytes = retry(|| vfs.len(&wal.join(&name)))
            .map_err(|source| failed("read the length of a log segment", source))?;
        if bytes != store.segment_bytes() {
            let wanted = store.segment_bytes();
            let what = format!("segment {number:016x} has {bytes} bytes instead of {wanted}");
            watch.found(Finding::of(LOG, what));
        }
    }
    Ok(())
}
