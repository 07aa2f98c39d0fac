//! Checks stored buckets without an access: every tag from the root down.

use super::backend::Backend;
use crate::{BucketId, Result};
use oblivio_crypto::{Tag, tag_of};
use std::collections::BTreeMap;

/// Checks buckets, each before its children.
pub struct Verifier<'a> {
    tree: &'a mut Backend,
    /// The children's tags from the buckets so far.
    expected: BTreeMap<BucketId, Tag>,
}

impl<'a> Verifier<'a> {
    pub(super) fn new(tree: &'a mut Backend) -> Self {
        let expected = match tree.has_pool {
            false => BTreeMap::from([(BucketId::ROOT, tree.root_tag)]),
            true => pool_tags(tree).collect(),
        };
        Self { tree, expected }
    }

    /// Checks one stored bucket.
    ///
    /// # Errors
    /// `Tampered` when it differs from the last one written.
    pub fn check(&mut self, bucket: BucketId, sealed: &mut [u8]) -> Result<()> {
        let expected = self.expected.remove(&bucket).unwrap_or_default();
        if sealed.len() != self.tree.stored_bytes(bucket) {
            return Err(self.tree.tampered(bucket, "it has another length"));
        }
        if self.tree.geometry.tag_tree && tag_of(sealed) != Some(expected) {
            return Err(self.tree.tampered(bucket, "it is not the version written last"));
        }
        let tags = self.tree.open_bucket(bucket, sealed)?;
        for (side, tag) in tags.into_iter().enumerate() {
            if tag != Tag::default() {
                self.expected.insert(bucket.child(side), tag);
            }
        }
        Ok(())
    }

    /// Checks that no bucket is missing.
    ///
    /// # Errors
    /// `Tampered` names a missing one.
    pub fn finish(mut self) -> Result<()> {
        self.expected.retain(|_, tag| *tag != Tag::default());
        match self.expected.pop_first() {
            None => Ok(()),
            Some((bucket, _)) => Err(self.tree.tampered(bucket, "it is missing")),
        }
    }
}

/// The tags of the buckets right below the pool.
fn pool_tags(tree: &Backend) -> impl Iterator<Item = (BucketId, Tag)> {
    let parents = (tree.cache.limit() / 2 + 1..=tree.cache.limit()).map(BucketId);
    parents.flat_map(|parent| {
        let tags = tree.cache.tags_if_touched(parent);
        [0, 1].map(|side| (parent.child(side), tags[side]))
    })
}
