//! The control file: where recovery starts, and the properties of a data directory.
//!
//! The file has two copies, written in turn, each with its own checksum and a sequence number. A
//! crash during the write of one leaves the other. The copy with the higher number is valid.
//! docs/wal-format.md gives the bytes. If one copy is damaged, it is unknown which was newer. The
//! start uses the other one and reports that. The next write replaces the damaged copy, because it
//! goes to the copy that is not in force.
//!
//! Failure: a write that fails leaves the older copy in force. The log that this copy needs is
//! still there, because segments are retired only after the control file is durable (wal rule 9).

use std::sync::Arc;

use millpond_buffer::{Lsn, PAGE_SIZE};

use crate::wal::record::Reader;
use crate::wal::{CONTROL_COPY_BYTES, LogStore, WalError};

/// The version of everything on disk. The engine refuses any other version.
pub const FORMAT_VERSION: u32 = 4;

const MAGIC: &[u8; 8] = b"millpond";
/// The most bytes that other parts may keep in the control file.
pub const STATE_BYTES: usize = 256;

/// The content of the control file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The number of times that it has been written.
    pub sequence: u64,
    /// Bytes of a log segment.
    pub segment_bytes: u64,
    /// A random number given to the database when it was created.
    pub system_id: u64,
    /// The number of times that the engine has started on it.
    pub start_no: u32,
    /// The engine ended with a checkpoint and wrote nothing after it.
    pub clean: bool,
    /// Recovery starts here.
    pub redo: Lsn,
    /// The end of the last checkpoint's last record: the log was durable up to here.
    pub checkpoint_end: Lsn,
    /// When the last checkpoint completed, in seconds since 1970.
    pub checkpoint_time: u64,
    /// Counters of other parts as of the redo point (next ids). At most [`STATE_BYTES`].
    pub state: Vec<u8>,
}

/// The control file in its two copies.
pub struct ControlFile {
    store: Arc<dyn LogStore>,
    current: Control,
    damaged_copy: Option<WalError>,
}

impl ControlFile {
    /// Reads the file. `None` if there is none, so that the data directory is new.
    pub fn read(store: Arc<dyn LogStore>) -> Result<Option<Self>, WalError> {
        let Some(copies) = read_copies(&*store)? else { return Ok(None) };
        let mut damage = None;
        let mut best: Option<Control> = None;
        for copy in copies {
            match copy {
                Ok(control) => {
                    if best.as_ref().is_none_or(|best| best.sequence < control.sequence) {
                        best = Some(control);
                    }
                }
                Err(error) => damage = Some(error),
            }
        }
        match (best, damage) {
            (Some(current), damaged_copy) => Ok(Some(Self { store, current, damaged_copy })),
            (None, damage) => Err(damage.unwrap_or_else(|| corrupt("it is empty"))),
        }
    }

    /// What is wrong with the other copy, which may be the newer one. The next write replaces it.
    pub fn damaged_copy(&self) -> Option<&WalError> {
        self.damaged_copy.as_ref()
    }

    /// The number of the next start: above that of every earlier start, even if the copy with the
    /// last one is lost. (The two copies are at most one start apart.)
    pub fn next_start_no(&self) -> u32 {
        self.current.start_no + if self.damaged_copy.is_some() { 2 } else { 1 }
    }

    /// Writes the first control file of a new database.
    pub fn create(store: Arc<dyn LogStore>, first: Control) -> Result<Self, WalError> {
        let mut this = Self { store, current: first, damaged_copy: None };
        // Write both copies, so that from now on both exist.
        this.write(this.current.clone())?;
        this.write(this.current.clone())?;
        Ok(this)
    }

    /// The content in force.
    pub fn current(&self) -> &Control {
        &self.current
    }

    /// Replaces the older copy, durably. After an error the newer one is still in force.
    pub fn write(&mut self, mut next: Control) -> Result<(), WalError> {
        next.sequence = self.current.sequence + 1;
        let copy = (next.sequence % 2) as usize;
        self.store
            .write_control(copy, &encode(&next))
            .map_err(|source| WalError::io("could not write the control file", source))?;
        self.current = next;
        self.damaged_copy = None;
        Ok(())
    }
}

/// Decodes both copies. `None` if there is no control file. A read error is an error.
pub(crate) fn read_copies(
    store: &dyn LogStore,
) -> Result<Option<[Result<Control, WalError>; 2]>, WalError> {
    let read = |copy| {
        let bytes = store.read_control(copy);
        bytes.map_err(|source| WalError::io("could not read the control file", source))
    };
    let (Some(first), Some(second)) = (read(0)?, read(1)?) else { return Ok(None) };
    Ok(Some([decode(&first), decode(&second)]))
}

pub(crate) fn encode(control: &Control) -> [u8; CONTROL_COPY_BYTES] {
    let mut out = Vec::with_capacity(CONTROL_COPY_BYTES);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&(PAGE_SIZE as u32).to_le_bytes());
    out.extend_from_slice(&control.start_no.to_le_bytes());
    for number in [
        control.sequence,
        control.segment_bytes,
        control.system_id,
        u64::from(control.clean),
        control.redo.get(),
        control.checkpoint_end.get(),
        control.checkpoint_time,
    ] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    let state = &control.state[..control.state.len().min(STATE_BYTES)];
    out.extend_from_slice(&(state.len() as u32).to_le_bytes());
    out.extend_from_slice(state);
    let mut bytes = [0; CONTROL_COPY_BYTES];
    bytes[..out.len()].copy_from_slice(&out);
    let crc = crc_fast::crc32_iscsi(&bytes);
    bytes[8..12].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn corrupt(what: &str) -> WalError {
    WalError::Control { what: format!("the control file is damaged: {what}") }
}

pub(crate) fn decode(bytes: &[u8; CONTROL_COPY_BYTES]) -> Result<Control, WalError> {
    let mut reader = Reader(bytes);
    let short = || corrupt("too short");
    if reader.take(8) != Some(MAGIC) {
        return Err(corrupt("this is not a Millpond control file, or both copies are lost"));
    }
    let crc = reader.u32().ok_or_else(short)?;
    let version = reader.u32().ok_or_else(short)?;
    let mut without = *bytes;
    without[8..12].fill(0);
    if crc_fast::crc32_iscsi(&without) != crc {
        return Err(corrupt("checksum mismatch"));
    }
    if version != FORMAT_VERSION {
        return Err(WalError::Incompatible {
            what: format!(
                "the data directory has format version {version}, this program reads and \
                 writes version {FORMAT_VERSION} only; dump it with the program that made it"
            ),
        });
    }
    let page_bytes = reader.u32().ok_or_else(short)?;
    if page_bytes as usize != PAGE_SIZE {
        return Err(WalError::Incompatible {
            what: format!(
                "the data directory has pages of {page_bytes} bytes, this program's have \
                 {PAGE_SIZE}; dump it with the program that made it"
            ),
        });
    }
    decode_rest(&mut reader).ok_or_else(|| corrupt("invalid state length"))
}

fn decode_rest(reader: &mut Reader<'_>) -> Option<Control> {
    let start_no = reader.u32()?;
    let sequence = reader.u64()?;
    let segment_bytes = reader.u64()?;
    let system_id = reader.u64()?;
    let clean = reader.u64()? != 0;
    let redo = Lsn(reader.u64()?);
    let checkpoint_end = Lsn(reader.u64()?);
    let checkpoint_time = reader.u64()?;
    let state_bytes = Some(reader.u32()? as usize).filter(|&bytes| bytes <= STATE_BYTES)?;
    let state = reader.take(state_bytes)?.to_vec();
    Some(Control {
        sequence,
        segment_bytes,
        system_id,
        start_no,
        clean,
        redo,
        checkpoint_end,
        checkpoint_time,
        state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wal::FileLogStore;
    use proptest::prelude::*;

    fn control() -> Control {
        Control {
            sequence: 0,
            segment_bytes: 1 << 16,
            system_id: 7,
            start_no: 3,
            clean: true,
            redo: Lsn(1 << 20),
            checkpoint_end: Lsn(1 << 21),
            checkpoint_time: 12345,
            state: vec![1, 2, 3],
        }
    }

    #[test]
    fn one_damaged_control_copy_is_tolerated_and_two_are_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let store: Arc<dyn LogStore> =
            Arc::new(FileLogStore::open(directory.path(), 1 << 16).unwrap());
        assert!(ControlFile::read(Arc::clone(&store)).unwrap().is_none());
        let mut file = ControlFile::create(Arc::clone(&store), control()).unwrap();
        let newer = Control { redo: Lsn(99), ..control() };
        file.write(newer.clone()).unwrap();
        let read = ControlFile::read(Arc::clone(&store)).unwrap().unwrap();
        assert_eq!(read.current().redo, Lsn(99));
        assert_eq!(read.current().state, [1, 2, 3]);

        let copy = (read.current().sequence % 2) as usize;
        let mut bytes = store.read_control(copy).unwrap().unwrap();
        bytes[100] ^= 1;
        store.write_control(copy, &bytes).unwrap();
        let older = ControlFile::read(Arc::clone(&store)).unwrap().unwrap();
        assert_eq!(older.current().redo, Lsn(1 << 20));
        store.write_control(1 - copy, &bytes).unwrap();
        let error = ControlFile::read(store).err().unwrap().to_string();
        assert!(error.contains("damaged"), "{error}");
    }

    #[test]
    fn another_version_is_refused_by_number() {
        let mut bytes = encode(&control());
        bytes[12..16].copy_from_slice(&9u32.to_le_bytes());
        bytes[8..12].fill(0);
        let crc = crc_fast::crc32_iscsi(&bytes);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        let error = decode(&bytes).unwrap_err().to_string();
        assert!(error.contains("format version 9"), "{error}");
    }

    #[test]
    fn a_state_longer_than_any_that_is_written_is_refused() {
        let mut bytes = encode(&Control { state: vec![7; STATE_BYTES], ..control() });
        assert_eq!(decode(&bytes).unwrap().state, vec![7; STATE_BYTES]);
        let length_at = 24 + 7 * 8;
        assert_eq!(bytes[length_at..length_at + 4], (STATE_BYTES as u32).to_le_bytes());
        bytes[length_at..length_at + 4].copy_from_slice(&(STATE_BYTES as u32 + 1).to_le_bytes());
        bytes[8..12].fill(0);
        let crc = crc_fast::crc32_iscsi(&bytes);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        let error = decode(&bytes).unwrap_err().to_string();
        assert!(error.contains("damaged"), "{error}");
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), CONTROL_COPY_BYTES), valid: bool) {
            let mut bytes: [u8; CONTROL_COPY_BYTES] = bytes.try_into().unwrap();
            if valid {
                bytes[..8].copy_from_slice(MAGIC);
                bytes[12..16].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
                bytes[16..20].copy_from_slice(&(PAGE_SIZE as u32).to_le_bytes());
                bytes[8..12].fill(0);
                let crc = crc_fast::crc32_iscsi(&bytes);
                bytes[8..12].copy_from_slice(&crc.to_le_bytes());
            }
            let _ = decode(&bytes);
        }
    }
}
