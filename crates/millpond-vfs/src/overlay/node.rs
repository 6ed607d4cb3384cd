//! A file of an overlay.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_sync::sync::Mutex;

use super::spill::{BLOCK, Block, Place, Spill};
use crate::{VfsFile, read_up_to_at};

/// A block that was written.
#[derive(Clone, Copy, Debug)]
enum Written {
    /// It holds nothing but zeros.
    Zeros,
    At(Place),
}

/// A file: the file below, and what was written over it.
#[derive(Debug)]
pub(super) struct Node {
    below: Option<PathBuf>,
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    len: u64,
    /// The length of the file below that still shows, where no block is written. Zeros follow it.
    shown: u64,
    blocks: BTreeMap<u64, Written>,
}

impl Node {
    pub(super) fn empty() -> Self {
        Self { below: None, content: Mutex::default() }
    }

    /// A file with the content of the file below.
    pub(super) fn over(below: PathBuf, len: u64) -> Self {
        let content = Content { len, shown: len, blocks: BTreeMap::new() };
        Self { below: Some(below), content: Mutex::new(content) }
    }

    pub(super) fn path_below(&self) -> Option<&Path> {
        self.below.as_deref()
    }

    pub(super) fn len(&self) -> u64 {
        self.content.lock().len
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct Handle {
    node: Arc<Node>,
    below: Option<Arc<dyn VfsFile>>,
    spill: Arc<Spill>,
    read_only: bool,
}

/// The part of a transfer that lies in one block.
struct Part {
    block: u64,
    within: usize,
    bytes: usize,
}

fn part(offset: u64, bytes: usize) -> Part {
    let within = (offset % BLOCK as u64) as usize;
    Part { block: offset / BLOCK as u64, within, bytes: bytes.min(BLOCK - within) }
}

impl Handle {
    pub(super) fn new(
        node: Arc<Node>,
        below: Option<Arc<dyn VfsFile>>,
        spill: Arc<Spill>,
        read_only: bool,
    ) -> Self {
        Self { node, below, spill, read_only }
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.read_only { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }

    /// The current content of a whole block.
    fn load(&self, content: &Content, block: u64) -> io::Result<Box<Block>> {
        let mut bytes = Box::new([0; BLOCK]);
        match content.blocks.get(&block) {
            Some(Written::Zeros) => {}
            Some(Written::At(place)) => self.spill.get(*place, &mut bytes)?,
            None => {
                let start = block * BLOCK as u64;
                let shown = content.shown.saturating_sub(start).min(BLOCK as u64) as usize;
                if let (Some(below), Some(part @ [_, ..])) = (&self.below, bytes.get_mut(..shown)) {
                    read_up_to_at(&**below, part, start)?;
                }
            }
        }
        Ok(bytes)
    }

    /// Replaces a whole block.
    fn store(&self, content: &mut Content, block: u64, bytes: &Block) -> io::Result<()> {
        let before = content.blocks.get(&block).copied();
        if bytes.iter().all(|&byte| byte == 0) {
            content.blocks.insert(block, Written::Zeros);
            if let Some(Written::At(place)) = before {
                self.spill.release(place);
            }
            return Ok(());
        }
        let place = match before {
            Some(Written::At(place)) => Some(place),
            Some(Written::Zeros) | None => None,
        };
        let place = self.spill.put(place, bytes)?;
        content.blocks.insert(block, Written::At(place));
        Ok(())
    }

    /// Reads bytes, all of which lie before the file's end.
    fn read(&self, content: &Content, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !out.is_empty() {
            let Part { block, within, bytes } = part(offset, out.len());
            let (now, rest) = out.split_at_mut(bytes);
            now.copy_from_slice(&self.load(content, block)?[within..within + bytes]);
            out = rest;
            offset += bytes as u64;
        }
        Ok(())
    }

    fn write(&self, content: &mut Content, mut from: &[u8], mut offset: u64) -> io::Result<()> {
        while !from.is_empty() {
            let Part { block, within, bytes } = part(offset, from.len());
            let (now, rest) = from.split_at(bytes);
            match now.try_into() {
                Ok(whole) => self.store(content, block, whole)?,
                Err(_) => {
                    let mut changed = self.load(content, block)?;
                    changed[within..within + bytes].copy_from_slice(now);
                    self.store(content, block, &changed)?;
                }
            }
            from = rest;
            offset += bytes as u64;
            content.len = content.len.max(offset);
        }
        Ok(())
    }
}

impl VfsFile for Handle {
    fn read_at(&self, pieces: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let content = self.node.content.lock();
        let wanted: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        let end = offset.saturating_add(wanted);
        if let (Some(below), true) = (&self.below, end <= content.shown)
            && content
                .blocks
                .range(offset / BLOCK as u64..end.div_ceil(BLOCK as u64))
                .next()
                .is_none()
        {
            drop(content);
            return below.read_at(pieces, offset);
        }
        let mut done = 0;
        for piece in pieces {
            let left = content.len.saturating_sub(offset + done as u64);
            let bytes = (piece.len() as u64).min(left) as usize;
            self.read(&content, &mut piece[..bytes], offset + done as u64)?;
            done += bytes;
        }
        Ok(done)
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.check_writable()?;
        let mut content = self.node.content.lock();
        let mut done = 0;
        for piece in pieces {
            self.write(&mut content, piece, offset + done as u64)?;
            done += piece.len();
        }
        Ok(done)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.node.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut content = self.node.content.lock();
        if bytes < content.len {
            let Part { block, within, .. } = part(bytes, 0);
            if within > 0 && content.blocks.contains_key(&block) {
                let mut last = self.load(&content, block)?;
                last[within..].fill(0);
                self.store(&mut content, block, &last)?;
            }
            for (_, written) in content.blocks.split_off(&bytes.div_ceil(BLOCK as u64)) {
                if let Written::At(place) = written {
                    self.spill.release(place);
                }
            }
            content.shown = content.shown.min(bytes);
        }
        content.len = bytes;
        Ok(())
    }

    fn allocate(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut content = self.node.content.lock();
        content.len = content.len.max(offset.saturating_add(bytes));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        match &self.below {
            Some(below) => below.try_lock(),
            None => Ok(true),
        }
    }

    fn is_locked_here(&self) -> bool {
        self.below.as_ref().is_some_and(|below| below.is_locked_here())
    }

    fn lock_holder(&self) -> Option<u32> {
        self.below.as_ref()?.lock_holder()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
