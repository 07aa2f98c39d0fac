//! A directory's buckets: linear hashing, and the names in a block.
//!
//! ```text
//! stamp 16 | level 1 | further blocks 1 | entries 2 | { kind 1 | bytes 1 | id 16 | name } ...
//! ```
//!
//! All names of bucket `b` at level `l` have hashes whose lowest `l` bits are `b`. A reader with an
//! outdated number of buckets finds it by the level.

use crate::error::{Error, Result};
use crate::layout::BlockCursor;
use crate::transactions::{Action, Compare, Owner};
use crate::types::{FileKind, NAME_BYTES};

const HEADER: usize = 20;
const ENTRY: usize = 18;
/// The most blocks of a bucket. A split rewrites those of two buckets in one transaction.
pub const MOST_LINKS: u8 = 3;

/// A name and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirent {
    pub name: Vec<u8>,
    pub id: Owner,
    pub kind: FileKind,
}

/// One block of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketBlock {
    /// None: the block was never written.
    pub stamp: Option<[u8; 16]>,
    pub level: u8,
    /// Of the first block: how many follow it.
    pub links: u8,
    pub entries: Vec<Dirent>,
}

impl BucketBlock {
    /// The first bucket of a directory is not written before its first name.
    pub fn decode(block: Option<&[u8]>) -> Result<Self> {
        let Some(block) = block else {
            return Ok(Self { stamp: None, level: 0, links: 0, entries: Vec::new() });
        };
        let mut at = BlockCursor(block);
        let stamp = Some(at.array()?);
        let (level, links, count) = (at.u8()?, at.u8()?, at.u16()?);
        if level > 32 || links >= MOST_LINKS {
            return Err(Error::Damaged("it is no bucket"));
        }
        let mut entries = Vec::new();
        for _ in 0..count {
            let kind = FileKind::from_stored(at.u8()?).ok_or(Error::Damaged("an unknown kind"))?;
            let len = at.u8()?;
            let id = at.array()?;
            let name = at.bytes(len.into())?.to_vec();
            if check_name(&name).is_err() {
                return Err(Error::Damaged("a name that is none"));
            }
            entries.push(Dirent { name, id, kind });
        }
        Ok(Self { stamp, level, links, entries })
    }

    pub fn encode(&self, stamp: [u8; 16]) -> Vec<u8> {
        let mut block = stamp.to_vec();
        block.extend([self.level, self.links]);
        block.extend((self.entries.len() as u16).to_le_bytes());
        for entry in &self.entries {
            block.extend([entry.kind as u8, entry.name.len() as u8]);
            block.extend(entry.id);
            block.extend(&entry.name);
        }
        block
    }

    pub fn write(&self, stamp: [u8; 16]) -> Action {
        Action::Write(self.encode(stamp))
    }

    /// What holds while nobody changed it.
    pub fn unchanged(&self) -> Compare {
        match self.stamp {
            Some(stamp) => Compare::Bytes(0, stamp.to_vec()),
            None => Compare::Absent,
        }
    }

    pub fn has_room(&self, name: &[u8], block_bytes: usize) -> bool {
        let used: usize = self.entries.iter().map(|entry| ENTRY + entry.name.len()).sum();
        HEADER + used + ENTRY + name.len() <= block_bytes
    }
}

/// Where the names of a directory are.
pub fn hash(directory: Owner, name: &[u8]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&directory).update(name);
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}

/// The bucket of a hash and its level, by the number of buckets.
pub fn place(hash: u64, buckets: u32) -> (u32, u8) {
    let level = buckets.ilog2();
    let low = |bits: u32| (hash & ((1 << bits) - 1)) as u32;
    let mut bucket = low(level + 1);
    if bucket >= buckets {
        bucket = low(level);
    }
    (bucket, level_of(bucket, buckets))
}

/// The level of a bucket, by the number of buckets.
pub fn level_of(bucket: u32, buckets: u32) -> u8 {
    let level = buckets.ilog2();
    let begun = 1 << level;
    let split = bucket < buckets - begun || bucket >= begun;
    (level + u32::from(split)) as u8
}

/// The bucket that is split next.
pub fn next_split(buckets: u32) -> u32 {
    buckets - (1 << buckets.ilog2())
}

/// The place of a hash in a listing. Buckets are stretches of it, whatever is split: it is the hash
/// with its bits turned round. The smallest are for `.` and `..`.
pub fn cookie(hash: u64) -> u64 {
    (hash.reverse_bits() >> 1).max(3)
}

/// # Errors
/// `NameTooLong`; `Invalid` for a name that no directory entry may have.
pub fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > NAME_BYTES {
        return Err(Error::NameTooLong);
    }
    let reserved = matches!(name, b"" | b"." | b"..");
    match reserved || name.contains(&b'/') || name.contains(&0) {
        true => Err(Error::Invalid("a name")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_moves_names_of_one_bucket_only() {
        for buckets in 1..200 {
            let split = next_split(buckets);
            for hash in (0..2000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
                let ((before, level), (after, _)) =
                    (place(hash, buckets), place(hash, buckets + 1));
                assert_eq!(hash & ((1 << level) - 1), u64::from(before));
                assert!(before == after || (before == split && after == buckets));
            }
        }
    }

    #[test]
    fn a_leaf_is_what_was_written_and_damage_is_found() {
        let entry = Dirent { name: b"name".to_vec(), id: [7; 16], kind: FileKind::Fifo };
        let leaf = BucketBlock { stamp: Some([9; 16]), level: 3, links: 1, entries: vec![entry] };
        let block = leaf.encode([9; 16]);
        assert_eq!(BucketBlock::decode(Some(&block)).unwrap(), leaf);
        for end in 0..block.len() {
            assert!(BucketBlock::decode(Some(&block[..end])).is_err());
        }
    }
}
