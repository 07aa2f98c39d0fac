//! Names in the buckets of a directory.

use crate::attempt::Attempted;
use crate::base::ClientBase;
use crate::bucket::{self, BucketBlock, Dirent, MOST_LINKS};
use crate::error::{Error, Result};
use crate::inode::Inode;
use crate::layout;
use crate::transactions::{Action, Ask, Compare, Name, Owner, TOGETHER};

/// More buckets have no use: a directory with that number of them has 10^11 names.
const MOST_BUCKETS: u32 = 1 << 31;

/// A bucket with changes that are not asked for yet.
#[derive(Clone)]
pub struct ChangedBucket {
    directory: Owner,
    number: u32,
    leaves: Vec<BucketBlock>,
    changed: Vec<bool>,
}

impl ChangedBucket {
    /// The bucket for a hash. The directory's inode may be outdated; then it is a conflict.
    pub fn read(attempt: &mut Attempted<'_>, directory: &Inode, hash: u64) -> Result<Self> {
        let (number, _) = bucket::place(hash, directory.buckets);
        Self::numbered(attempt, directory, number)
    }

    pub fn numbered(attempt: &mut Attempted<'_>, directory: &Inode, number: u32) -> Result<Self> {
        let level = bucket::level_of(number, directory.buckets);
        let block = attempt.read(layout::bucket(directory.id, number, 0))?;
        let first = BucketBlock::decode(block.as_deref())?;
        if first.level != level || (first.stamp.is_none() && number != 0) {
            return Err(Error::Conflict);
        }
        let further: Vec<Name> =
            (1..=first.links).map(|link| layout::bucket(directory.id, number, link)).collect();
        attempt.read_many(&further)?;
        let mut leaves = vec![first];
        for name in further {
            let leaf = BucketBlock::decode(attempt.read(name)?.as_deref())?;
            if leaf.stamp.is_none() || leaf.level != level {
                return Err(Error::Conflict);
            }
            leaves.push(leaf);
        }
        let changed = vec![false; leaves.len()];
        Ok(Self { directory: directory.id, number, leaves, changed })
    }

    pub fn is(&self, other: &Self) -> bool {
        (self.directory, self.number) == (other.directory, other.number)
    }

    pub fn entries(&self) -> impl Iterator<Item = &Dirent> {
        self.leaves.iter().flat_map(|leaf| &leaf.entries)
    }

    pub fn find(&self, name: &[u8]) -> Option<&Dirent> {
        self.entries().find(|entry| entry.name == name)
    }

    pub fn remove(&mut self, name: &[u8]) {
        for (leaf, changed) in self.leaves.iter_mut().zip(&mut self.changed) {
            let before = leaf.entries.len();
            leaf.entries.retain(|entry| entry.name != name);
            *changed |= leaf.entries.len() != before;
        }
    }

    /// Lets a name stand for something else.
    pub fn replace(&mut self, with: Dirent) {
        for (leaf, changed) in self.leaves.iter_mut().zip(&mut self.changed) {
            for entry in leaf.entries.iter_mut().filter(|entry| entry.name == with.name) {
                *entry = with.clone();
                *changed = true;
            }
        }
    }

    /// Adds a name that is not there. The first block changes in any case: two clients that add the
    /// same name meet there.
    pub fn insert(&mut self, attempt: &mut Attempted<'_>, entry: Dirent) -> Result<()> {
        let block_bytes = attempt.fs.block_bytes;
        let room = self.leaves.iter().position(|leaf| leaf.has_room(&entry.name, block_bytes));
        let at = match room {
            Some(at) => at,
            None => {
                if self.leaves.len() >= usize::from(MOST_LINKS) {
                    attempt.crowd(self.directory);
                    return Err(Error::Conflict);
                }
                let level = self.leaves[0].level;
                self.leaves.push(BucketBlock { stamp: None, level, links: 0, entries: Vec::new() });
                self.changed.push(true);
                self.leaves[0].links += 1;
                self.leaves.len() - 1
            }
        };
        if at > 0 {
            attempt.crowd(self.directory);
        }
        self.leaves[at].entries.push(entry);
        (self.changed[at], self.changed[0]) = (true, true);
        Ok(())
    }

    /// Asks for the changes.
    pub fn write(&self, attempt: &mut Attempted<'_>) {
        for (link, (leaf, _)) in
            self.leaves.iter().zip(&self.changed).enumerate().filter(|(_, (_, changed))| **changed)
        {
            let name = layout::bucket(self.directory, self.number, link as u8);
            let action = leaf.write(attempt.fs.random());
            attempt.ask(Ask::change(name, action, leaf.unchanged()));
        }
    }
}

impl ClientBase {
    /// Gives a directory one bucket more: the names of the bucket whose turn it is are parted
    /// between the two.
    pub fn split(&self, directory: Owner) -> Result<()> {
        self.change(|attempt| {
            let mut inode = attempt.directory(directory)?;
            if inode.buckets >= MOST_BUCKETS {
                return Err(Error::Full("names in this directory"));
            }
            let (old, new) = (bucket::next_split(inode.buckets), inode.buckets);
            let from = ChangedBucket::numbered(attempt, &inode, old)?;
            let level = bucket::level_of(old, inode.buckets) + 1;
            let stays = |entry: &Dirent| {
                let (number, _) = bucket::place(bucket::hash(directory, &entry.name), new + 1);
                number == old
            };
            let (stay, go): (Vec<Dirent>, Vec<Dirent>) = from.entries().cloned().partition(stays);
            let before: Vec<Compare> = from.leaves.iter().map(BucketBlock::unchanged).collect();
            put(attempt, directory, old, level, stay, &before);
            put(attempt, directory, new, level, go, &[]);
            let stamp = inode.stamp;
            inode.buckets += 1;
            (inode.stamp, inode.guard) = (self.random(), self.random());
            attempt.ask(inode.replace(stamp, self.block_bytes));
            Ok(())
        })
    }
}

/// Writes a bucket anew, and removes the blocks that it no longer has.
fn put(
    attempt: &mut Attempted<'_>,
    directory: Owner,
    number: u32,
    level: u8,
    entries: Vec<Dirent>,
    before: &[Compare],
) {
    let fs = attempt.fs;
    let mut leaves = vec![BucketBlock { stamp: None, level, links: 0, entries: Vec::new() }];
    for entry in entries {
        let full = !leaves.last().is_some_and(|leaf| leaf.has_room(&entry.name, fs.block_bytes));
        if full {
            leaves.push(BucketBlock { stamp: None, level, links: 0, entries: Vec::new() });
        }
        if let Some(last) = leaves.last_mut() {
            last.entries.push(entry);
        }
    }
    leaves[0].links = (leaves.len() - 1) as u8;
    for link in 0..leaves.len().max(before.len()) {
        let name = layout::bucket(directory, number, link as u8);
        let compare = before.get(link).cloned().unwrap_or(Compare::Absent);
        let action = match leaves.get(link) {
            Some(leaf) => leaf.write(fs.random()),
            None => Action::Remove,
        };
        attempt.ask(Ask::change(name, action, compare));
    }
}

/// Fails with `NotEmpty` if a directory has names. It asks, even for what is cached: a name that
/// came after the inode was read changes the inode, which the caller compares.
pub fn check_empty(attempt: &mut Attempted<'_>, directory: &Inode) -> Result<()> {
    attempt.ask_afresh();
    for first in (0..directory.buckets).step_by(TOGETHER) {
        let numbers = first..directory.buckets.min(first.saturating_add(TOGETHER as u32));
        let name = |number| layout::bucket(directory.id, number, 0);
        attempt.read_many(&numbers.clone().map(name).collect::<Vec<Name>>())?;
        for number in numbers {
            if ChangedBucket::numbered(attempt, directory, number)?.entries().next().is_some() {
                return Err(Error::NotEmpty);
            }
        }
    }
    Ok(())
}
