//! What the tables say, as records.

use super::kinds::{Gap, Key, Kind};
use super::trees::Tables;
use crate::fs::inode::{Inode, decode_inode};
use crate::fs::segments::Extent;
use crate::fs::tables::{Counters, Dirent, Pack, decode};
use crate::fs::types::Ino;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// A name in a directory.
pub(super) type Name = (Ino, Vec<u8>);

/// All records that are left.
#[derive(Default)]
pub(super) struct Records {
    pub(super) inodes: BTreeMap<Ino, Inode>,
    pub(super) dirents: BTreeMap<Name, Dirent>,
    pub(super) segments: BTreeMap<(Ino, u64), Extent>,
    pub(super) packs: BTreeMap<u64, Pack>,
    pub(super) xattrs: BTreeMap<Name, Vec<u8>>,
    pub(super) holes: BTreeSet<u64>,
    pub(super) counters: Option<Counters>,
    /// Whether no inode is lost.
    pub(super) all_inodes: bool,
    /// Whether no hole is lost.
    pub(super) all_holes: bool,
    /// Where records of segments may be lost.
    pub(super) unmapped: Vec<Gap>,
    /// The highest inode that any record names, and the highest pack.
    pub(super) last: (Ino, u64),
}

impl Records {
    /// # Errors
    /// `Unsupported` for a record that a newer program wrote.
    pub(super) fn load(tables: Tables) -> Result<Self> {
        let mut records = Self::default();
        let mut unwritten = None;
        for (kind, tree) in tables {
            match kind {
                Kind::Inodes => records.all_inodes = tree.is_whole(),
                Kind::Holes => records.all_holes = tree.is_whole(),
                Kind::Segments => records.unmapped = tree.gaps,
                _ => {}
            }
            for (key, value) in tree.pairs {
                match (kind, key) {
                    (Kind::Counters, Key::Text(name)) => match name.as_slice() {
                        b"all" => records.counters = sound(decode(&value))?,
                        b"unwritten" => unwritten = sound(decode(&value))?,
                        _ => {}
                    },
                    (_, key) => records.take(kind, key, &value)?,
                }
            }
        }
        if let Some(counters) = &mut records.counters {
            counters.unwritten = unwritten.unwrap_or(0);
        }
        Ok(records)
    }

    fn take(&mut self, kind: Kind, key: Key, value: &[u8]) -> Result<()> {
        match (kind, key) {
            (Kind::Inodes, Key::One(ino)) => {
                self.inodes.extend(sound(decode_inode(value))?.map(|inode| (ino, inode)));
                self.met(ino, 0);
            }
            (Kind::Dirents, Key::Named(parent, name)) => {
                if let Some(dirent) = sound(decode::<Dirent>(value))? {
                    self.met(parent.max(dirent.ino), 0);
                    self.dirents.insert((parent, name), dirent);
                }
            }
            (Kind::Segments, Key::Two(ino, segment)) => {
                let words = value.split_at_checked(8);
                let words = words.and_then(|(block, count)| {
                    Some((block.try_into().ok()?, count.try_into().ok()?))
                });
                if let Some((block, count)) = words {
                    let run = Extent::load(
                        segment,
                        (u64::from_le_bytes(block), u64::from_le_bytes(count)),
                    );
                    self.segments.insert((ino, segment), run);
                }
                self.met(ino, 0);
            }
            (Kind::Packs, Key::One(pack)) => {
                self.packs.extend(sound(decode::<Pack>(value))?.map(|it| (pack, it)));
                self.met(0, pack);
            }
            (Kind::Xattrs, Key::Named(ino, name)) => {
                self.met(ino, 0);
                self.xattrs.extend(sound(decode(value))?.map(|value| ((ino, name), value)));
            }
            (Kind::Holes, Key::One(block)) => drop(self.holes.insert(block)),
            _ => {}
        }
        Ok(())
    }

    fn met(&mut self, ino: Ino, pack: u64) {
        self.last = (self.last.0.max(ino), self.last.1.max(pack));
    }
}

/// A record, if it makes sense.
fn sound<T>(record: Result<T>) -> Result<Option<T>> {
    match record {
        Ok(record) => Ok(Some(record)),
        Err(error @ Error::Unsupported(_)) => Err(error),
        Err(_) => Ok(None),
    }
}
