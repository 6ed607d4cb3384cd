//! Names: the directories, what they show, and what of it is durable.
//!
//! Creating, removing or renaming a file is noted in its directory as a [`NameChange`]. A sync of
//! the directory makes the noted changes durable. A crash keeps or loses each of them at random. A
//! rename is kept or lost as a whole. A file's own sync has no effect on its name.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path};

use rand::Rng;
use rand::rngs::StdRng;

use super::inode::Inode;

/// A number that identifies a file or directory under any name.
pub(super) type NodeId = u64;

const ROOT: NodeId = 0;

#[derive(Clone, Debug)]
enum NameChange {
    Added(OsString, NodeId),
    Removed(OsString),
    Renamed {
        from: OsString,
        to: OsString,
        node: NodeId,
    },
    /// The old name of a node that moved to another directory.
    MovedTo {
        from: OsString,
        directory: NodeId,
        to: OsString,
        node: NodeId,
    },
}

type Names = BTreeMap<OsString, NodeId>;

#[derive(Clone, Debug, Default)]
struct Directory {
    cached: Names,
    durable: Names,
    unsynced: Vec<NameChange>,
}

#[derive(Debug)]
enum Node {
    File(Inode),
    Directory(Directory),
}

/// All files and directories.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: BTreeMap<NodeId, Node>,
    next: NodeId,
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl NameChange {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Added(name, node) => drop(names.insert(name.clone(), *node)),
            Self::Removed(name) | Self::MovedTo { from: name, .. } => drop(names.remove(name)),
            Self::Renamed { from, to, node } => {
                if names.get(from) == Some(node) {
                    names.remove(from);
                }
                names.insert(to.clone(), *node);
            }
        }
    }
}

impl Directory {
    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.cached);
        self.unsynced.push(change);
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.cached);
        self.unsynced.clear();
    }

    /// Keeps a random part of the changes that are not durable. Returns the chosen moves.
    fn crash(&mut self, rng: &mut StdRng) -> Vec<NameChange> {
        let kept_share = [0.0, 0.5, 1.0][rng.random_range(0..3)];
        let mut moves = Vec::new();
        for change in std::mem::take(&mut self.unsynced) {
            if !rng.random_bool(kept_share) {
                continue;
            }
            match change {
                NameChange::MovedTo { .. } => moves.push(change),
                change => change.apply(&mut self.durable),
            }
        }
        moves
    }
}

impl Tree {
    pub fn new() -> Self {
        let root = Node::Directory(Directory::default());
        Self { nodes: BTreeMap::from([(ROOT, root)]), next: ROOT + 1 }
    }

    fn directory(&self, node: NodeId) -> io::Result<&Directory> {
        match self.nodes.get(&node) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(not_found()),
        }
    }

    fn directory_mut(&mut self, node: NodeId) -> io::Result<&mut Directory> {
        match self.nodes.get_mut(&node) {
            Some(Node::Directory(directory)) => Ok(directory),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(not_found()),
        }
    }

    pub fn file(&self, node: NodeId) -> io::Result<&Inode> {
        match self.nodes.get(&node) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Directory(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(not_found()),
        }
    }

    pub fn file_mut(&mut self, node: NodeId) -> io::Result<&mut Inode> {
        match self.nodes.get_mut(&node) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Directory(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(not_found()),
        }
    }

    pub fn find(&self, path: &Path) -> io::Result<NodeId> {
        components(path).try_fold(ROOT, |at, name| {
            self.directory(at)?.cached.get(name).copied().ok_or_else(not_found)
        })
    }

    fn parent_of<'a>(&self, path: &'a Path) -> io::Result<(NodeId, &'a OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.find(path.parent().unwrap_or(Path::new("/")))?;
        self.directory(parent)?;
        Ok((parent, name))
    }

    fn add(&mut self, node: Node) -> NodeId {
        let id = self.next;
        self.next += 1;
        self.nodes.insert(id, node);
        id
    }

    pub fn create_file(&mut self, path: &Path) -> io::Result<NodeId> {
        let (parent, name) = self.parent_of(path)?;
        let node = self.add(Node::File(Inode::default()));
        self.directory_mut(parent)?.change(NameChange::Added(name.to_owned(), node));
        Ok(node)
    }

    pub fn create_directories(&mut self, path: &Path) -> io::Result<()> {
        let mut at = ROOT;
        for name in components(path) {
            at = match self.directory(at)?.cached.get(name) {
                Some(&node) => node,
                None => {
                    let node = self.add(Node::Directory(Directory::default()));
                    let change = NameChange::Added(name.to_owned(), node);
                    self.directory_mut(at)?.change(change);
                    node
                }
            };
        }
        self.directory(at).map(|_| ())
    }

    pub fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        Ok(self.directory(self.find(path)?)?.cached.keys().cloned().collect())
    }

    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.file(self.find(path)?)?;
        let (parent, name) = self.parent_of(path)?;
        self.directory_mut(parent)?.change(NameChange::Removed(name.to_owned()));
        Ok(())
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.find(from)?;
        let (source, from) = self.parent_of(from)?;
        let (target, to) = self.parent_of(to)?;
        let (from, to) = (from.to_owned(), to.to_owned());
        if source == target {
            self.directory_mut(source)?.change(NameChange::Renamed { from, to, node });
        } else {
            self.directory_mut(target)?.change(NameChange::Added(to.clone(), node));
            let change = NameChange::MovedTo { from, directory: target, to, node };
            self.directory_mut(source)?.change(change);
        }
        Ok(())
    }

    pub fn find_directory(&self, path: &Path) -> io::Result<NodeId> {
        let node = self.find(path)?;
        self.directory(node).map(|_| node)
    }

    pub fn sync_directory(&mut self, node: NodeId) -> io::Result<()> {
        self.directory_mut(node)?.sync();
        Ok(())
    }

    pub fn crash(&mut self, rng: &mut StdRng, sector: usize) {
        let mut moves = Vec::new();
        for (&id, node) in &mut self.nodes {
            match node {
                Node::File(file) => file.crash(rng, sector),
                Node::Directory(directory) => {
                    moves.extend(directory.crash(rng).into_iter().map(|change| (id, change)));
                }
            }
        }
        for (id, change) in moves {
            self.finish_move(id, &change);
        }
        for node in self.nodes.values_mut() {
            if let Node::Directory(directory) = node {
                directory.cached.clone_from(&directory.durable);
            }
        }
        self.forget_unnamed(&BTreeSet::new());
    }

    /// A node never loses its old name before the new one is durable.
    fn finish_move(&mut self, source: NodeId, change: &NameChange) {
        let NameChange::MovedTo { directory, to, node, .. } = change else { return };
        let has_arrived = matches!(self.nodes.get(directory),
            Some(Node::Directory(target)) if target.durable.get(to) == Some(node));
        if has_arrived && let Ok(source) = self.directory_mut(source) {
            change.apply(&mut source.durable);
        }
    }

    /// Drops nodes that have no name and are not open.
    pub fn forget_unnamed(&mut self, open: &BTreeSet<NodeId>) {
        let mut reached = open.clone();
        let mut ahead = vec![ROOT];
        while let Some(id) = ahead.pop() {
            if reached.insert(id)
                && let Some(Node::Directory(directory)) = self.nodes.get(&id)
            {
                let changes = directory.unsynced.iter().filter_map(|change| match change {
                    NameChange::Added(_, node) | NameChange::Renamed { node, .. } => Some(node),
                    _ => None,
                });
                let named = directory.cached.values().chain(directory.durable.values());
                ahead.extend(named.chain(changes));
            }
        }
        self.nodes.retain(|id, _| reached.contains(id));
    }

    /// The total size of the files that have a name or are open.
    pub fn used(&self, open: &BTreeSet<NodeId>) -> u64 {
        let mut counted = open.clone();
        for node in self.nodes.values() {
            if let Node::Directory(directory) = node {
                counted.extend(directory.cached.values());
            }
        }
        counted.iter().filter_map(|node| self.file(*node).ok()).map(|f| f.len() as u64).sum()
    }

    /// Creates or replaces a durable file with a durable name, bypassing all faults.
    pub fn put(&mut self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        let node = match self.find(path) {
            Ok(node) => node,
            Err(_) => self.create_file(path)?,
        };
        *self.file_mut(node)? = Inode::holding(bytes);
        let (parent, _) = self.parent_of(path)?;
        self.directory_mut(parent)?.sync();
        Ok(())
    }
}

fn components(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}
