//! Opening what was read is most of what takes the processor's time; several threads may do it.

use super::{Backend, place};
use crate::{BucketId, TreeId};
use oblivio_crypto::{Opener, VolumeId};

/// Some of the buckets that were read, to be opened. Those that are given out together may be opened
/// at once.
pub struct Opening<'a> {
    opener: Opener,
    volume: VolumeId,
    tree: TreeId,
    buckets: &'a [BucketId],
    lens: &'a [u32],
    stride: usize,
    bytes: &'a mut [u8],
    opened: &'a mut [bool],
}

impl Opening<'_> {
    /// Opens them, as far as they are what they should be; of the others the engine's next step tells.
    pub fn run(self) {
        let mut row = self.opener.begin();
        let parts = self.bytes.chunks_mut(self.stride).zip(self.lens);
        for ((bucket, (bytes, &len)), opened) in self.buckets.iter().zip(parts).zip(self.opened) {
            let place = place(self.volume, self.tree, *bucket);
            *opened = row.open_sealed(&place, &mut bytes[..len as usize]).is_ok();
        }
    }
}

impl Backend {
    /// The work of opening what was read, in so many parts at most. What is not done of it,
    /// [`Backend::absorb`] does.
    pub fn openings(&mut self, count: usize) -> Vec<Opening<'_>> {
        let round = &mut self.round;
        if !round.opened.is_empty() || round.read_list.is_empty() {
            return Vec::new();
        }
        round.opened.resize(round.read_list.len(), false);
        let each = round.read_list.len().div_ceil(count.max(1));
        let (volume, tree, stride) = (self.volume, self.tree, self.geometry.bucket_bytes());
        let buckets = round.read_list.chunks(each).zip(round.read_lens.chunks(each));
        let bytes = round.read_buf.chunks_mut(each * stride);
        let opened = round.opened.chunks_mut(each);
        let parts = buckets.zip(bytes).zip(opened);
        let part = |(((buckets, lens), bytes), opened)| {
            let opener = self.sealer.opener();
            Opening { opener, volume, tree, buckets, lens, stride, bytes, opened }
        };
        parts.map(part).collect()
    }
}
