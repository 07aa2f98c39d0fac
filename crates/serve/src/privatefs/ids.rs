//! The kernel's numbers for inodes, and what it may have cached of them.

use fuser::Errno;
use oblivio_privatefs::{FileKind, NodeAttr, Owner, ROOT, ROOT_INO, number};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names that are remembered; beyond it, the kernel finds changes when its own memory is too old.
const MOST_NAMES: usize = 1 << 16;

struct Known {
    id: Owner,
    /// How often the kernel learned it, less what it forgot.
    lookups: u64,
    /// What the kernel's pages belong to.
    pages_of: [u8; 16],
}

/// Numbers that the kernel refers to. A number is the beginning of the file's own, so that all
/// clients show the same one, unless two of them begin alike.
#[derive(Default)]
pub struct Ids(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    known: BTreeMap<u64, Known>,
    numbers: BTreeMap<Owner, u64>,
    /// Names of anything but directories, by their directory.
    names: BTreeMap<Owner, BTreeSet<Vec<u8>>>,
    names_count: usize,
}

impl Tables {
    fn number(&self, id: Owner) -> u64 {
        if let Some(&number) = self.numbers.get(&id) {
            return number;
        }
        let mut number = number(id);
        while self.known.contains_key(&number) {
            number = number.wrapping_add(1).max(ROOT_INO + 1);
        }
        number
    }
}

impl Ids {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn id(&self, ino: u64) -> Result<Owner, Errno> {
        match ino {
            ROOT_INO => Ok(ROOT),
            _ => self.tables().known.get(&ino).map(|known| known.id).ok_or(Errno::ESTALE),
        }
    }

    /// The number for listings, which the kernel does not refer to.
    pub fn number(&self, id: Owner) -> u64 {
        self.tables().number(id)
    }

    /// The kernel learns of an inode, under a name.
    pub fn learned(&self, attr: &NodeAttr, parent: Owner, name: &[u8]) -> u64 {
        let mut tables = self.tables();
        let number = tables.number(attr.id);
        if number != ROOT_INO {
            tables.numbers.insert(attr.id, number);
            let new = Known { id: attr.id, lookups: 0, pages_of: [0; 16] };
            tables.known.entry(number).or_insert(new).lookups += 1;
        }
        if attr.kind != FileKind::Directory && tables.names_count < MOST_NAMES {
            let new = tables.names.entry(parent).or_default().insert(name.to_vec());
            tables.names_count += usize::from(new);
        }
        number
    }

    pub fn forgotten(&self, ino: u64, lookups: u64) {
        let mut tables = self.tables();
        let Some(known) = tables.known.get_mut(&ino) else { return };
        known.lookups = known.lookups.saturating_sub(lookups);
        if known.lookups == 0 {
            let id = known.id;
            tables.known.remove(&ino);
            tables.numbers.remove(&id);
        }
    }

    /// Whether the kernel's pages of a file are those of this state of it. They are from now on.
    pub fn keeps_pages(&self, ino: u64, attr: &NodeAttr) -> bool {
        let mut tables = self.tables();
        let known = tables.known.get_mut(&ino);
        known
            .is_some_and(|known| std::mem::replace(&mut known.pages_of, attr.change) == attr.change)
    }

    /// The number, if the kernel refers to it.
    pub fn known_number(&self, id: Owner) -> Option<u64> {
        match id {
            ROOT => Some(ROOT_INO),
            _ => self.tables().numbers.get(&id).copied(),
        }
    }

    /// All numbers that the kernel refers to.
    pub fn all(&self) -> Vec<u64> {
        self.tables().known.keys().copied().collect()
    }

    /// The names that the kernel may remember of a directory. It remembers them no more.
    pub fn take_names(&self, directory: Owner) -> BTreeSet<Vec<u8>> {
        let mut tables = self.tables();
        let names = tables.names.remove(&directory).unwrap_or_default();
        tables.names_count -= names.len();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_privatefs::{Attr, Timestamp};

    fn node(id: Owner) -> NodeAttr {
        let at = Timestamp::default();
        let (ino, kind) = (number(id), FileKind::File);
        let (size, blocks, mode, uid, gid, nlink, rdev) = (0, 0, 0, 0, 0, 1, 0);
        let (atime, mtime, ctime, crtime) = (at, at, at, at);
        let attr = Attr {
            ino,
            kind,
            size,
            blocks,
            mode,
            uid,
            gid,
            nlink,
            rdev,
            atime,
            mtime,
            ctime,
            crtime,
        };
        NodeAttr { id, change: [1; 16], attr }
    }

    #[test]
    fn two_files_that_begin_alike_have_two_numbers() {
        let ids = Ids::default();
        let (a, mut b) = (node([7; 16]), node([7; 16]));
        b.id[15] = 8;
        let (first, second) = (ids.learned(&a, ROOT, b"a"), ids.learned(&b, ROOT, b"b"));
        assert_ne!(first, second);
        assert_eq!((ids.id(first).ok(), ids.id(second).ok()), (Some(a.id), Some(b.id)));
        ids.forgotten(first, 1);
        assert!(ids.id(first).is_err());
        assert_eq!(ids.number(b.id), second);
        assert_eq!(ids.take_names(ROOT).len(), 2);
    }

    #[test]
    fn pages_are_kept_while_the_file_is_the_same() {
        let ids = Ids::default();
        let mut a = node([7; 16]);
        let ino = ids.learned(&a, ROOT, b"a");
        assert!(!ids.keeps_pages(ino, &a));
        assert!(ids.keeps_pages(ino, &a));
        a.change = [2; 16];
        assert!(!ids.keeps_pages(ino, &a));
    }
}
