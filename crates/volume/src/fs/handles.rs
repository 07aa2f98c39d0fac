//! Open handles, and who else still refers to an inode without names.

use super::types::{Handle, Ino};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};

type Kept = Box<dyn Fn(Ino) -> bool + Send + Sync>;

/// The handles that are open.
#[derive(Default)]
pub(super) struct Handles {
    inodes: HashMap<u64, Ino>,
    /// Those of directories among them.
    directories: HashSet<u64>,
    counts: HashMap<Ino, u32>,
    last: u64,
    /// Says whether an outsider still refers to an inode without names.
    kept: Option<Kept>,
}

impl Handles {
    /// The file behind a handle.
    pub(super) fn file(&self, handle: Handle) -> Result<Ino> {
        match self.directories.contains(&handle.0) {
            true => Err(Error::IsADirectory("the handle leads to one".into())),
            false => self.inode(handle),
        }
    }

    fn inode(&self, handle: Handle) -> Result<Ino> {
        let ino = self.inodes.get(&handle.0).copied();
        ino.ok_or_else(|| Error::Invalid("the file handle is not open".into()))
    }

    /// A handle of a file.
    pub(super) fn open(&mut self, ino: Ino) -> Handle {
        self.last += 1;
        self.inodes.insert(self.last, ino);
        *self.counts.entry(ino).or_default() += 1;
        Handle(self.last)
    }

    /// A handle of a directory.
    pub(super) fn open_directory(&mut self, ino: Ino) -> Handle {
        let handle = self.open(ino);
        self.directories.insert(handle.0);
        handle
    }

    /// Closes the handles of inodes whose creation was undone.
    pub(super) fn close_newer(&mut self, next_ino: Ino) {
        self.inodes.retain(|_, ino| *ino < next_ino);
        self.counts.retain(|ino, _| *ino < next_ino);
    }

    /// Inodes for which `kept` says so stay without names.
    pub(super) fn keep_while(&mut self, kept: Kept) {
        self.kept = Some(kept);
    }

    /// Whether an inode stays after its last name goes.
    pub(super) fn is_wanted(&self, ino: Ino) -> bool {
        self.counts.contains_key(&ino) || self.kept.as_ref().is_some_and(|kept| kept(ino))
    }

    /// Closes a handle; gives its inode if that was the last one.
    pub(super) fn close(&mut self, handle: Handle) -> Result<Option<Ino>> {
        let ino = self.inode(handle)?;
        self.inodes.remove(&handle.0);
        self.directories.remove(&handle.0);
        let Some(count) = self.counts.get_mut(&ino) else { return Ok(None) };
        *count -= 1;
        if *count > 0 {
            return Ok(None);
        }
        self.counts.remove(&ino);
        Ok(Some(ino))
    }
}
