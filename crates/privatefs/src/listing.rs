//! Listings of directories.

use crate::attempt::Attempted;
use crate::bucket::{self, cookie};
use crate::client::PrivateFs;
use crate::directory::ChangedBucket;
use crate::error::Result;
use crate::inode::Inode;
use crate::layout;
use crate::node::{ListedNode, NodeAttr};
use crate::transactions::{Name, Owner};

/// Buckets that are asked for together.
const TOGETHER: usize = 16;

impl PrivateFs {
    /// Names after a place in a directory, at least this many if there are, in the order of their
    /// cookies. The first place is 0. A name that stays while others come and go is listed once.
    ///
    /// # Errors
    /// `NotADirectory`; as [`Self::attr`].
    pub fn list(&self, directory: Owner, after: u64, least: usize) -> Result<Vec<ListedNode>> {
        self.look(|attempt| {
            let inode = attempt.directory(directory)?;
            // Cookies have 63 bits, and the smallest stand for two hashes or more.
            let mut begin = if after <= 3 { 0 } else { after };
            let mut found = Vec::new();
            let mut ahead = 0;
            loop {
                let (number, level) = at(begin, &inode);
                if ahead == 0 {
                    ahead = prefetch(attempt, &inode, begin)?;
                }
                ahead -= 1;
                let bucket = ChangedBucket::numbered(attempt, &inode, number)?;
                found.extend(sorted(&inode, &bucket, after));
                match next(begin, level) {
                    Some(next) if found.len() < least => begin = next,
                    _ => return Ok(found),
                }
            }
        })
    }

    /// The attributes of inodes, asked for together. None for those that were removed.
    ///
    /// # Errors
    /// Those of the transactions.
    pub fn attrs(&self, ids: &[Owner]) -> Result<Vec<Option<NodeAttr>>> {
        let found: Vec<Option<NodeAttr>> = self.look(|attempt| {
            let names: Vec<Name> = ids.iter().map(|id| layout::inode(*id)).collect();
            attempt.read_many(&names)?;
            let attr = |id: &Owner| Ok(attempt.find_inode(*id)?.map(|inode| inode.attr()));
            ids.iter().map(attr).collect()
        })?;
        Ok(found.into_iter().map(|attr| attr.map(|attr| self.with_waiting(attr))).collect())
    }
}

/// The bucket that has the hashes at a place, and its level.
fn at(place: u64, directory: &Inode) -> (u32, u8) {
    bucket::place((place << 1).reverse_bits(), directory.buckets)
}

/// The place after a bucket's.
fn next(place: u64, level: u8) -> Option<u64> {
    let width = 63 - u32::from(level);
    let next = ((place >> width) + 1).checked_shl(width)?;
    (next < 1 << 63).then_some(next)
}

/// Asks for the next buckets together; their number.
fn prefetch(attempt: &mut Attempted<'_>, directory: &Inode, begin: u64) -> Result<usize> {
    let mut names = Vec::new();
    let mut place = Some(begin);
    while let Some(here) = place.filter(|_| names.len() < TOGETHER) {
        let (number, level) = at(here, directory);
        names.push(layout::bucket(directory.id, number, 0));
        place = next(here, level);
    }
    attempt.read_many(&names)?;
    Ok(names.len())
}

fn sorted(directory: &Inode, bucket: &ChangedBucket, after: u64) -> Vec<ListedNode> {
    let mut entries: Vec<ListedNode> = bucket
        .entries()
        .map(|entry| ListedNode {
            cookie: cookie(bucket::hash(directory.id, &entry.name)),
            name: entry.name.clone(),
            id: entry.id,
            kind: entry.kind,
        })
        .filter(|entry| entry.cookie > after)
        .collect();
    entries.sort_by(|a, b| (a.cookie, &a.name).cmp(&(b.cookie, &b.name)));
    entries
}
