//! The log's segments and the control file on a simulated disk.

use std::io;
use std::sync::Arc;

use millpond_engine::wal::{CONTROL_COPY_BYTES, LogStore};

use crate::disk::{Call, Name, SimDisk};

/// A log store on a [`SimDisk`].
pub struct SimLog {
    pub(crate) disk: Arc<SimDisk>,
    pub(crate) generation: u64,
    pub(crate) segment_bytes: u64,
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "simulated: no such segment")
}

impl LogStore for SimLog {
    fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    fn segments(&self) -> io::Result<Vec<u64>> {
        let mut state = self.disk.state.lock();
        state.call(self.generation, Call::Read, |_| ())?;
        let names = state.files.iter().filter(|(_, file)| file.bytes().is_some());
        let segments = names.filter_map(|(name, _)| match name {
            Name::Segment(segment) => Some(*segment),
            _ => None,
        });
        Ok(segments.collect())
    }

    fn create(&self, segment: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.call(self.generation, Call::Grow, |state| {
            let file = state.files.entry(Name::Segment(segment)).or_default();
            file.create();
            file.extend(self.segment_bytes as usize);
            file.sync();
        })
    }

    fn recycle(&self, from: u64, to: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.call(self.generation, Call::Change, |state| {
            if let Some(file) = state.files.remove(&Name::Segment(from)) {
                state.files.insert(Name::Segment(to), file);
            }
        })
    }

    fn remove(&self, segment: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.call(self.generation, Call::Change, |state| {
            state.files.remove(&Name::Segment(segment));
        })
    }

    fn read(&self, segment: u64, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.call(self.generation, Call::Read, |_| ())?;
        let file = state.files.get(&Name::Segment(segment)).and_then(|file| file.bytes());
        let start = offset as usize;
        let found = file.and_then(|file| file.get(start..start + bytes.len()));
        bytes.copy_from_slice(found.ok_or_else(missing)?);
        Ok(())
    }

    fn write(&self, segment: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        if !state.files.contains_key(&Name::Segment(segment)) {
            return Err(missing());
        }
        state.call(self.generation, Call::Change, |state| {
            if let Some(file) = state.files.get_mut(&Name::Segment(segment)) {
                file.write(offset as usize, bytes);
            }
        })
    }

    fn sync(&self, segment: u64) -> io::Result<()> {
        let state = &mut *self.disk.state.lock();
        let synced = state.call(self.generation, Call::Sync, |state| {
            if let Some(file) = state.files.get_mut(&Name::Segment(segment)) {
                file.sync();
            }
        });
        if synced.is_err()
            && state.is_alive(self.generation)
            && let Some(file) = state.files.get_mut(&Name::Segment(segment))
        {
            file.fail_sync(&mut state.rng, state.sector);
        }
        synced
    }

    fn read_control(&self, copy: usize) -> io::Result<Option<[u8; CONTROL_COPY_BYTES]>> {
        let mut state = self.disk.state.lock();
        state.call(self.generation, Call::Read, |_| ())?;
        let copies = [Name::Control(0), Name::Control(1)];
        if copies.iter().all(|name| !state.files.contains_key(name)) {
            return Ok(None);
        }
        let mut bytes = [0; CONTROL_COPY_BYTES];
        if let Some(found) = state.files.get(&copies[copy]).and_then(|file| file.bytes()) {
            let length = found.len().min(CONTROL_COPY_BYTES);
            bytes[..length].copy_from_slice(&found[..length]);
        }
        Ok(Some(bytes))
    }

    fn write_control(&self, copy: usize, bytes: &[u8; CONTROL_COPY_BYTES]) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        let mut copies = state.files.keys().filter(|name| matches!(name, Name::Control(_)));
        // The first control file appears as a whole: a real store writes it under another name.
        let is_new = copies.next().is_none();
        let written = state.call(self.generation, Call::Change, |state| {
            let file = state.files.entry(Name::Control(copy)).or_default();
            file.create();
            file.write(0, bytes);
            if is_new {
                file.sync();
            }
        });
        if written.is_ok()
            && let Some(file) = state.files.get_mut(&Name::Control(copy))
        {
            file.sync();
        }
        written
    }
}
