//! The calls of [`Vfs`] and [`VfsDirectory`], with their faults.
//!
//! Each call is a scheduling point: another thread may run before its effect and after it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_sync::scheduler;
use millpond_vfs::{OpenFlags, Vfs, VfsDirectory, VfsFile};
use parking_lot::Mutex;

use super::file::SimVfsFile;
use super::machine::{Machine, power_loss};
use super::trace::{Called, hash_of, outcome};
use super::tree::NodeId;
use super::{Errno, Kind, Rates, SimVfs, VfsFault, When};

#[derive(Debug)]
struct SimVfsDirectory {
    machine: Arc<Mutex<Machine>>,
    generation: u64,
    handle: u64,
    node: NodeId,
    path: PathBuf,
}

/// What the trace records of a call.
pub(super) struct Noted<'a> {
    pub(super) kind: &'static str,
    pub(super) path: &'a Path,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) content: u64,
}

impl<'a> Noted<'a> {
    pub(super) fn new(kind: &'static str, path: &'a Path) -> Self {
        Self { kind, path, offset: 0, bytes: 0, content: 0 }
    }

    pub(super) fn at(self, offset: u64, bytes: u64) -> Self {
        Self { offset, bytes, ..self }
    }
}

/// Carries out a call under the machine's lock, and records it in the trace.
pub(super) fn call<T>(
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
        match fault {
            Some(VfsFault::DiskFull) => machine.faults.disk_full = true,
            Some(VfsFault::ReadOnly) => {
                machine.faults.read_only = true;
                return Err(Errno::Io.error());
            }
            Some(VfsFault::Dead) => {
                machine.faults.rates = Rates::DEAD;
                return Err(Errno::Io.error());
            }
            _ => {}
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
pub(super) fn failure(machine: &mut Machine, fault: Option<VfsFault>) -> Option<(When, io::Error)> {
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
pub(super) fn whole<T>(
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
