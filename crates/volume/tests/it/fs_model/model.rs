//! The plain model: names of numbered nodes, and byte vectors.

use oblivio_volume::fs::{FileKind, RenameMode};
use std::collections::BTreeMap;

/// The model of an inode. Inodes are numbered, and names map to numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    File(Vec<u8>),
    Directory,
    Symlink(Vec<u8>),
    Special(FileKind),
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub nodes: BTreeMap<u64, Node>,
    /// Full paths without the leading slash; a directory's entries are the paths below it.
    pub names: BTreeMap<String, u64>,
    /// Extended attributes by inode and name.
    pub xattrs: BTreeMap<(u64, u8), Vec<u8>>,
    /// Inodes held open, once for each handle; they stay without a name.
    pub held: Vec<u64>,
    next: u64,
}

/// One of a few paths: `a` to `c`, up to three deep, so that operations often meet.
pub fn path(choice: u8) -> String {
    let names = ["a", "b", "c"];
    let name = |index: u8| names[usize::from(index % 3)];
    match choice % 4 {
        0 => name(choice / 4).to_string(),
        1 | 2 => format!("{}/{}", name(choice / 4), name(choice / 16)),
        _ => format!("{}/{}/{}", name(choice / 4), name(choice / 16), name(choice / 48)),
    }
}

pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl Model {
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.names.get(path).map(|id| &self.nodes[id])
    }

    pub fn is_directory(&self, path: &str) -> bool {
        path.is_empty() || self.get(path) == Some(&Node::Directory)
    }

    pub fn can_add(&self, path: &str) -> bool {
        self.is_directory(split(path).0) && !self.names.contains_key(path)
    }

    pub fn add(&mut self, path: &str, node: Node) -> bool {
        if !self.can_add(path) {
            return false;
        }
        self.next += 1;
        self.nodes.insert(self.next, node);
        self.names.insert(path.into(), self.next);
        true
    }

    pub fn has_entries(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        self.names.keys().any(|name| name.starts_with(&prefix))
    }

    pub fn remove(&mut self, path: &str) {
        if let Some(id) = self.names.remove(path) {
            self.forget(id);
        }
    }

    /// Drops an inode without names and handles.
    fn forget(&mut self, id: u64) {
        if !self.names.values().any(|&other| other == id) && !self.held.contains(&id) {
            self.nodes.remove(&id);
            self.xattrs.retain(|(owner, _), _| *owner != id);
        }
    }

    /// Closes one handle.
    pub fn release(&mut self, index: usize) {
        let id = self.held.remove(index);
        self.forget(id);
    }

    pub fn release_all(&mut self) {
        while !self.held.is_empty() {
            self.release(0);
        }
    }

    pub fn take_tree(&mut self, path: &str) -> Vec<(String, u64)> {
        let prefix = format!("{path}/");
        let inside = |name: &str| name == path || name.starts_with(&prefix);
        let all = std::mem::take(&mut self.names);
        let (taken, kept): (BTreeMap<_, _>, _) = all.into_iter().partition(|(n, _)| inside(n));
        self.names = kept;
        let tail = |name: String| name[path.len()..].to_string();
        taken.into_iter().map(|(name, id)| (tail(name), id)).collect()
    }

    pub fn put_tree(&mut self, path: &str, tree: Vec<(String, u64)>) {
        let entries = tree.into_iter();
        self.names.extend(entries.map(|(tail, id)| (format!("{path}{tail}"), id)));
    }

    /// Whether the rename succeeds; if so, the model does it.
    pub fn rename(&mut self, from: &str, to: &str, mode: RenameMode) -> bool {
        let below = |inner: &str, outer: &str| inner.starts_with(&format!("{outer}/"));
        let Some(&source) = self.names.get(from) else {
            return false;
        };
        if !self.is_directory(split(to).0) || (self.is_directory(from) && below(to, from)) {
            return false;
        }
        let target = self.names.get(to).copied();
        match (mode, target) {
            (RenameMode::NoReplace, Some(_)) | (RenameMode::Exchange, None) => return false,
            (_, Some(target)) if target == source => return true,
            (RenameMode::Exchange, Some(_)) => {
                if self.is_directory(to) && below(from, to) {
                    return false;
                }
                let (a, b) = (self.take_tree(from), self.take_tree(to));
                self.put_tree(to, a);
                self.put_tree(from, b);
                return true;
            }
            (_, Some(_)) => {
                if self.is_directory(from) != self.is_directory(to) || self.has_entries(to) {
                    return false;
                }
                self.remove(to);
            }
            (_, None) => {}
        }
        let tree = self.take_tree(from);
        self.put_tree(to, tree);
        true
    }

    /// The number of the file at a path, if it is one.
    pub fn file(&self, path: &str) -> Option<u64> {
        let id = *self.names.get(path)?;
        matches!(self.nodes[&id], Node::File(_)).then_some(id)
    }

    pub fn bytes(&mut self, id: u64) -> Option<&mut Vec<u8>> {
        match self.nodes.get_mut(&id) {
            Some(Node::File(bytes)) => Some(bytes),
            _ => None,
        }
    }
}
