//! The expected content of the files: compared with them, and kept for the next run.

use anyhow::{Result, bail, ensure};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The directories of all files.
pub(super) const DIRECTORIES: [&str; 2] = ["left", "right"];

/// A file's expected content; names and open files share it, as they share an inode.
pub(super) type Node = Rc<RefCell<Vec<u8>>>;

/// Saves the model as files elsewhere, hard links included.
pub(super) fn save(names: &BTreeMap<String, Node>, model: &Path) -> Result<()> {
    if model.exists() {
        fs::remove_dir_all(model)?;
    }
    let mut saved: HashMap<*const RefCell<Vec<u8>>, PathBuf> = HashMap::new();
    for directory in DIRECTORIES {
        fs::create_dir_all(model.join(directory))?;
    }
    for (name, node) in names {
        let path = model.join(name);
        match saved.get(&Rc::as_ptr(node)) {
            Some(first) => fs::hard_link(first, &path)?,
            None => {
                fs::write(&path, &*node.borrow())?;
                saved.insert(Rc::as_ptr(node), path);
            }
        }
    }
    Ok(())
}

pub(super) fn load(model: &Path) -> Result<BTreeMap<String, Node>> {
    let mut names = BTreeMap::new();
    let mut loaded: HashMap<u64, Node> = HashMap::new();
    for directory in DIRECTORIES {
        for entry in model.join(directory).read_dir()? {
            let entry = entry?;
            let name = format!("{directory}/{}", entry.file_name().display());
            let ino = entry.metadata()?.ino();
            let node = match loaded.get(&ino) {
                Some(node) => Rc::clone(node),
                None => Rc::new(RefCell::new(fs::read(entry.path())?)),
            };
            loaded.insert(ino, Rc::clone(&node));
            names.insert(name, node);
        }
    }
    Ok(names)
}

pub(super) fn put(node: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let (from, to) = (offset as usize, offset as usize + data.len());
    if node.len() < to {
        node.resize(to, 0);
    }
    node[from..to].copy_from_slice(data);
}

pub(super) fn clear(node: &mut [u8], offset: u64, len: u64) {
    let to = node.len().min((offset + len) as usize);
    if let Some(range) = node.get_mut(offset as usize..to) {
        range.fill(0);
    }
}

/// Reads a range, which may go beyond the end, and compares it.
pub(super) fn compare(file: &File, node: &[u8], offset: u64, len: u64) -> Result<()> {
    let mut read = vec![0; len as usize];
    let mut filled = 0;
    while filled < read.len() {
        match file.read_at(&mut read[filled..], offset + filled as u64)? {
            0 => break,
            some => filled += some,
        }
    }
    let from = node.len().min(offset as usize);
    let to = node.len().min((offset + len) as usize);
    same(&read[..filled], &node[from..to], offset)
}

pub(super) fn same(read: &[u8], wanted: &[u8], offset: u64) -> Result<()> {
    if read == wanted {
        return Ok(());
    }
    ensure!(read.len() == wanted.len(), "{} bytes instead of {}", read.len(), wanted.len());
    let differ = |at: &usize| read[*at] != wanted[*at];
    let first = (0..read.len()).find(differ).unwrap_or_default();
    let last = (0..read.len()).rfind(differ).unwrap_or_default();
    bail!(
        "bytes {} to {} differ: {:02x} instead of {:02x} at the first",
        offset + first as u64,
        offset + last as u64,
        read[first],
        wanted[first]
    )
}
