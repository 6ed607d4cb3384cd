//! The calls of [`Vfs`] and [`VfsFile`], with their faults.
//!
//! Each call is a scheduling point: another thread may run before its effect and after it.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_sync::scheduler;
use millpond_vfs::{OpenFlags, Vfs, VfsDirectory, VfsFile};
use parking_lot::Mutex;
use rand::Rng;

use super::machine::{Machine, power_loss};
use super::trace::{Called, hash_of, outcome};
use super::tree::NodeId;
use super::{Errno, Kind, SimVfs, VfsFault, When};

#[derive(Debug)]
struct SimVfsFile {
    machine: Arc<Mutex<Machine>>,
    generation: u64,
    handle: u64,
    node: NodeId,
    path: PathBuf,
    read_only: bool,
}

#[derive(Debug)]
struct SimVfsDirectory {
    machine: Arc<Mutex<Machine>>,
    generation: u64,
    handle: u64,
    node: NodeId,
    path: PathBuf,
}

/// What the trace records of a call.
struct Noted<'a> {
    kind: &'static str,
    path: &'a Path,
    offset: u64,
    bytes: u64,
    content: u64,
}

impl<'a> Noted<'a> {
    fn new(kind: &'static str, path: &'a Path) -> Self {
        Self { kind, path, offset: 0, bytes: 0, content: 0 }
    }

    fn at(self, offset: u64, bytes: u64) -> Self {
        Self { offset, bytes, ..self }
    }
}

/// Carries out a call under the machine's lock, and records it in the trace.
fn call<T>(
    machine: &Mutex<Machine>,
    generation: u64,
    (kind, noted): (Kind, Noted<'_>),
    effect: impl FnOnce(&mut Machine, Option<VfsFault>) -> io::Result<T>,
    as_number: impl FnOnce(&T) -> u64,
) -> io::Result<T> {
    scheduler::point();
    let result = {
        let mut machine = machine.lock();
        carried_out(&mut machine, generation, (kind, noted), effect, as_number)
    };
    scheduler::point();
    result
}

fn carried_out<T>(
    machine: &mut Machine,
    generation: u64,
    (kind, noted): (Kind, Noted<'_>),
    effect: impl FnOnce(&mut Machine, Option<VfsFault>) -> io::Result<T>,
    as_number: impl FnOnce(&T) -> u64,
) -> io::Result<T> {
    let result = machine.begin(generation, kind).and_then(|fault| {
        if fault == Some(VfsFault::DiskFull) {
            machine.faults.disk_full = true;
        }
        if fault == Some(VfsFault::ReadOnly) {
            machine.faults.read_only = true;
            return Err(Errno::Io.error());
        }
        effect(machine, fault)
    });
    let shown = result.as_ref().map(as_number).map_err(|error| io::Error::other(error.to_string()));
    machine.trace.note(Called {
        kind: noted.kind,
        path: noted.path.display().to_string(),
        offset: noted.offset,
        bytes: noted.bytes,
        content: noted.content,
        outcome: outcome(&shown),
    });
    result
}

/// If the call fails: at which moment, and with which error.
fn failure(machine: &mut Machine, fault: Option<VfsFault>) -> Option<(When, io::Error)> {
    match fault? {
        VfsFault::Error(errno, when) => Some((when, errno.error())),
        VfsFault::PowerLoss(when) => {
            machine.faults.powered_off = true;
            Some((when, power_loss()))
        }
        _ => None,
    }
}

/// Carries out a change that happens as a whole or not at all.
fn whole<T>(
    machine: &mut Machine,
    fault: Option<VfsFault>,
    change: impl FnOnce(&mut Machine) -> io::Result<T>,
) -> io::Result<T> {
    let Some((when, error)) = failure(machine, fault) else { return change(machine) };
    if machine.share(when, 1) == 1 {
        change(machine)?;
    }
    Err(error)
}

impl SimVfs {
    fn call<T>(
        &self,
        kind: Kind,
        noted: Noted<'_>,
        effect: impl FnOnce(&mut Machine, Option<VfsFault>) -> io::Result<T>,
        as_number: impl FnOnce(&T) -> u64,
    ) -> io::Result<T> {
        call(&self.machine, self.generation, (kind, noted), effect, as_number)
    }
}

fn node_for(machine: &mut Machine, path: &Path, flags: OpenFlags) -> io::Result<NodeId> {
    if flags.direct {
        return Err(io::ErrorKind::Unsupported.into());
    }
    if !machine.has_open_room() {
        return Err(Errno::TooManyFiles.error());
    }
    match machine.tree.find(path) {
        Ok(_) if flags.create && flags.exclusive => Err(io::ErrorKind::AlreadyExists.into()),
        Ok(node) => {
            machine.tree.file(node)?;
            if flags.truncate {
                machine.tree.file_mut(node)?.set_len(0);
            }
            Ok(node)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && flags.create => {
            machine.tree.create_file(path)
        }
        Err(error) => Err(error),
    }
}

impl Vfs for SimVfs {
    fn open(&self, path: &Path, flags: OpenFlags) -> io::Result<Arc<dyn VfsFile>> {
        let effect = |machine: &mut Machine, fault: Option<VfsFault>| {
            let node = whole(machine, fault, |machine| node_for(machine, path, flags))?;
            Ok((node, machine.open(node)))
        };
        let as_number = |&(node, _): &(NodeId, u64)| node;
        let noted = Noted::new("open", path);
        let (node, handle) = self.call(Kind::Open, noted, effect, as_number)?;
        Ok(Arc::new(SimVfsFile {
            machine: Arc::clone(&self.machine),
            generation: self.generation,
            handle,
            node,
            path: path.to_owned(),
            read_only: flags.read_only,
        }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        let change = |machine: &mut Machine| machine.tree.create_directories(path);
        let noted = Noted::new("create_directory", path);
        self.call(Kind::Name, noted, |machine, fault| whole(machine, fault, change), |()| 0)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let look = |machine: &mut Machine| machine.tree.list(directory);
        let noted = Noted::new("list", directory);
        let effect = |machine: &mut Machine, fault| whole(machine, fault, look);
        self.call(Kind::Look, noted, effect, |names| names.len() as u64)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let look = |machine: &mut Machine| {
            let node = machine.tree.find(path)?;
            Ok(machine.tree.file(node)?.len() as u64)
        };
        let noted = Noted::new("len", path);
        self.call(Kind::Look, noted, |machine, fault| whole(machine, fault, look), |len| *len)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let change = |machine: &mut Machine| machine.tree.remove(path);
        let noted = Noted::new("remove", path);
        self.call(Kind::Name, noted, |machine, fault| whole(machine, fault, change), |()| 0)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let change = |machine: &mut Machine| machine.tree.rename(from, to);
        let content = hash_of(to.as_os_str().as_encoded_bytes());
        let noted = Noted { content, ..Noted::new("rename", from) };
        self.call(Kind::Name, noted, |machine, fault| whole(machine, fault, change), |()| 0)
    }

    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn VfsDirectory>> {
        let open = |machine: &mut Machine| {
            if !machine.has_open_room() {
                return Err(Errno::TooManyFiles.error());
            }
            machine.tree.find_directory(path)
        };
        let effect = |machine: &mut Machine, fault: Option<VfsFault>| {
            let node = whole(machine, fault, open)?;
            Ok((node, machine.open(node)))
        };
        let noted = Noted::new("open_directory", path);
        let as_number = |&(node, _): &(NodeId, u64)| node;
        let (node, handle) = self.call(Kind::Open, noted, effect, as_number)?;
        Ok(Arc::new(SimVfsDirectory {
            machine: Arc::clone(&self.machine),
            generation: self.generation,
            handle,
            node,
            path: path.to_owned(),
        }))
    }
}

impl VfsDirectory for SimVfsDirectory {
    fn sync(&self) -> io::Result<()> {
        let change = |machine: &mut Machine| {
            if machine.ignores_sync_of(&self.path) {
                return Ok(());
            }
            machine.tree.sync_directory(self.node)
        };
        let noted = (Kind::Sync, Noted::new("sync_directory", &self.path));
        let effect = |machine: &mut Machine, fault| whole(machine, fault, change);
        call(&self.machine, self.generation, noted, effect, |()| 0)
    }
}

impl Drop for SimVfsDirectory {
    fn drop(&mut self) {
        self.machine.lock().close(self.generation, self.handle);
    }
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
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
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
