//! The calls of [`VfsFile`], with their faults.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use millpond_vfs::VfsFile;
use parking_lot::Mutex;
use rand::Rng;

use super::calls::{Noted, call, failure, whole};
use super::machine::Machine;
use super::trace::hash_of;
use super::tree::NodeId;
use super::{Errno, Kind, VfsFault, When};

#[derive(Debug)]
pub(super) struct SimVfsFile {
    pub(super) machine: Arc<Mutex<Machine>>,
    pub(super) generation: u64,
    pub(super) handle: u64,
    pub(super) node: NodeId,
    pub(super) path: PathBuf,
    pub(super) read_only: bool,
}

impl SimVfsFile {
    fn call<T>(
        &self,
        kind: Kind,
        noted: Noted<'_>,
        effect: impl FnOnce(&mut Machine, Option<VfsFault>) -> io::Result<T>,
        as_number: impl FnOnce(&T) -> u64,
    ) -> io::Result<T> {
        if self.read_only && matches!(kind, Kind::Write | Kind::Grow) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        call(&self.machine, self.generation, (kind, noted), effect, as_number)
    }

    fn read(
        &self,
        machine: &mut Machine,
        fault: Option<VfsFault>,
        at: usize,
        into: &mut [u8],
    ) -> io::Result<usize> {
        if let Some((_, error)) = failure(machine, fault) {
            return Err(error);
        }
        let mut wanted = into.len();
        if fault == Some(VfsFault::Short) && wanted > 1 {
            wanted = machine.rng.random_range(1..wanted);
        }
        let into = &mut into[..wanted];
        let file = machine.tree.file_mut(self.node)?;
        if fault == Some(VfsFault::LatentSector) && !into.is_empty() {
            file.spoil(at + machine.rng.random_range(0..into.len()));
        }
        if !file.is_readable(at, into.len()) {
            return Err(Errno::Io.error());
        }
        if fault == Some(VfsFault::StaleRead) {
            return Ok(file.read_stale(at, into));
        }
        let count = file.read(at, into);
        if fault == Some(VfsFault::FlippedRead) && count > 0 {
            let bit = machine.rng.random_range(0..count * 8);
            into[bit / 8] ^= 1 << (bit % 8);
        }
        Ok(count)
    }

    fn write(
        &self,
        machine: &mut Machine,
        fault: Option<VfsFault>,
        at: usize,
        bytes: &[u8],
    ) -> io::Result<usize> {
        let len = machine.tree.file(self.node)?.len();
        let grows = (at + bytes.len()).saturating_sub(len);
        if machine.is_full(grows as u64) {
            return Err(Errno::NoSpace.error());
        }
        if let Some((when, error)) = failure(machine, fault) {
            let count = machine.share(when, bytes.len());
            if count > 0 {
                machine.tree.file_mut(self.node)?.write(at, &bytes[..count]);
            }
            return Err(error);
        }
        let mut count = bytes.len();
        let mut at = at;
        match fault {
            Some(VfsFault::Short) if count > 1 => count = machine.rng.random_range(1..count),
            Some(VfsFault::LostWrite) => return Ok(count),
            Some(VfsFault::MisdirectedWrite) => {
                at = machine.rng.random_range(0..=len.max(at)) / 4096 * 4096;
            }
            _ => {}
        }
        machine.tree.file_mut(self.node)?.write(at, &bytes[..count]);
        Ok(count)
    }

    fn resize(&self, machine: &mut Machine, fault: Option<VfsFault>, to: usize) -> io::Result<()> {
        let failed = failure(machine, fault);
        let len = machine.tree.file(self.node)?.len();
        let to = match &failed {
            Some((when, _)) => {
                let share = machine.share(*when, to.abs_diff(len));
                if to > len { len + share } else { len - share }
            }
            None => to,
        };
        if to != len {
            machine.tree.file_mut(self.node)?.set_len(to);
        }
        failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn sync(&self, machine: &mut Machine, fault: Option<VfsFault>) -> io::Result<()> {
        let failed = failure(machine, fault);
        if machine.ignores_sync_of(&self.path) {
            return failed.map_or(Ok(()), |(_, error)| Err(error));
        }
        let sector = machine.sector;
        let file = machine.tree.file_mut(self.node)?;
        match failed {
            None => file.sync(),
            Some((When::After, error)) => {
                file.sync();
                return Err(error);
            }
            // After a power loss, the crash decides what survives.
            Some((_, error)) if machine.faults.powered_off => return Err(error),
            Some((_, error)) => {
                file.fail_sync(&mut machine.rng, sector);
                return Err(error);
            }
        }
        Ok(())
    }
}

impl VfsFile for SimVfsFile {
    fn read_at(&self, pieces: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let wanted = pieces.iter().map(|piece| piece.len()).sum();
        let mut bytes = vec![0; wanted];
        let noted = Noted::new("read", &self.path).at(offset, wanted as u64);
        let effect =
            |machine: &mut Machine, fault| self.read(machine, fault, offset as usize, &mut bytes);
        let count = self.call(Kind::Read, noted, effect, |count| *count as u64)?;
        let mut rest = &bytes[..count];
        for piece in pieces {
            let (now, later) = rest.split_at(piece.len().min(rest.len()));
            piece[..now.len()].copy_from_slice(now);
            rest = later;
        }
        Ok(count)
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let mut bytes = Vec::new();
        pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
        let noted = Noted {
            content: hash_of(&bytes),
            ..Noted::new("write", &self.path).at(offset, bytes.len() as u64)
        };
        let effect =
            |machine: &mut Machine, fault| self.write(machine, fault, offset as usize, &bytes);
        self.call(Kind::Write, noted, effect, |count| *count as u64)
    }

    fn len(&self) -> io::Result<u64> {
        let look = |machine: &mut Machine| Ok(machine.tree.file(self.node)?.len() as u64);
        let noted = Noted::new("file_len", &self.path);
        self.call(Kind::Look, noted, |machine, fault| whole(machine, fault, look), |len| *len)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let noted = Noted::new("set_len", &self.path).at(bytes, 0);
        let effect = |machine: &mut Machine, fault| self.resize(machine, fault, bytes as usize);
        self.call(Kind::Grow, noted, effect, |()| 0)
    }

    fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let noted = Noted::new("allocate", &self.path).at(offset, bytes);
        let effect = |machine: &mut Machine, fault| {
            let len = machine.tree.file(self.node)?.len();
            let end = len.max((offset + bytes) as usize);
            if machine.is_full((end - len) as u64) {
                return Err(Errno::NoSpace.error());
            }
            self.resize(machine, fault, end)
        };
        self.call(Kind::Grow, noted, effect, |()| 0)
    }

    fn sync_data(&self) -> io::Result<()> {
        let noted = Noted::new("sync", &self.path);
        self.call(Kind::Sync, noted, |machine, fault| self.sync(machine, fault), |()| 0)
    }

    fn try_lock(&self) -> io::Result<bool> {
        let change = |machine: &mut Machine| Ok(machine.try_lock(self.node, self.handle));
        let noted = Noted::new("lock", &self.path);
        let effect = |machine: &mut Machine, fault| whole(machine, fault, change);
        self.call(Kind::Look, noted, effect, |locked| u64::from(*locked))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Drop for SimVfsFile {
    fn drop(&mut self) {
        self.machine.lock().close(self.generation, self.handle);
    }
}
