//! Blocks sealed at fixed places in one object: the common part of the lab's own disks.
//!
//! The object holds all blocks, one after the other and as long as their plaintext, then the seal
//! of each: the group mark and tag of the crypto crate, 40 bytes. So blocks align with the system's
//! pages, and a write never has to read its surroundings first.

use oblivio_crypto::{
    GROUP_MARK_BYTES, GroupMark, Kind, MasterKey, Opener, OsEntropy, Place, Sealer, TAG_BYTES, Tag,
    VolumeId,
};
use oblivio_store::{ReadAt, Store, WriteAt};
use oblivio_volume::{Error, Result};
use std::sync::Arc;

/// Bytes of a block.
pub const BLOCK: usize = 4096;
const SEAL: usize = GROUP_MARK_BYTES + TAG_BYTES;
/// Limit of the blocks read in one call: more would fall out of the processor's caches before they
/// are opened.
pub const MOST: usize = 256;

/// The sealed blocks.
pub struct Area {
    reader: AreaReader,
    sealer: Sealer,
    scratch: Vec<u8>,
}

/// Reads them, from any thread.
#[derive(Clone)]
pub struct AreaReader {
    store: Arc<dyn Store>,
    object: &'static str,
    slots: u64,
    volume: VolumeId,
    opener: Opener,
}

/// A block's place, and its target in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its number in the buffer, counted in blocks.
    pub at: usize,
    /// Its place in the area.
    pub slot: u64,
}

impl Area {
    /// Room for `slots` blocks in an object, none of them written, under a key that is not kept.
    pub fn new(store: Arc<dyn Store>, object: &'static str, slots: u64) -> Self {
        let volume = VolumeId::generate(&mut OsEntropy);
        let root = MasterKey::generate(&mut OsEntropy).sequential_root(volume);
        let sealer = Sealer::new(root, Box::new(OsEntropy));
        let reader = AreaReader { store, object, slots, volume, opener: sealer.opener() };
        Self { reader, sealer, scratch: Vec::new() }
    }

    /// The reader for other threads.
    pub fn reader(&self) -> &AreaReader {
        &self.reader
    }

    /// Reads blocks that were written.
    ///
    /// # Errors
    /// `Tampered` if one differs from the last write; those of the store.
    pub fn read(&mut self, slots: &[u64]) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::with_capacity(slots.len());
        for slots in slots.chunks(MOST) {
            let wanted = slots.iter().enumerate().map(|(at, &slot)| Wanted { at, slot });
            self.scratch.resize(slots.len() * BLOCK, 0);
            self.reader.read_into(&wanted.collect::<Vec<_>>(), &mut self.scratch)?;
            found.extend(self.scratch.chunks_exact(BLOCK).map(<[u8]>::to_vec));
        }
        Ok(found)
    }

    /// Seals blocks in place and writes them in one call: runs of neighbours, each with its first
    /// slot.
    ///
    /// # Errors
    /// Those of the store.
    pub fn write(&mut self, runs: &mut [(u64, &mut [u8])]) -> Result<()> {
        let mut seals = Vec::with_capacity(runs.len());
        for (first, data) in &mut *runs {
            let mut run = Vec::with_capacity(data.len() / BLOCK * SEAL);
            for (slot, block) in (*first..).zip(data.chunks_exact_mut(BLOCK)) {
                let place = self.reader.place(slot);
                let group = self.sealer.begin_group(1, BLOCK as u64);
                let sealed = group.and_then(|mut it| Ok((it.mark(), it.seal(&place, block)?)));
                let (mark, tag) = sealed.map_err(|error| Error::Invalid(error.to_string()))?;
                run.extend_from_slice(&mark.0);
                run.extend_from_slice(&tag.0);
            }
            seals.push((self.reader.seal_at(*first), run));
        }
        let data = runs.iter().map(|(first, data)| (*first * BLOCK as u64, &**data));
        let seals = seals.iter().map(|(offset, run)| (*offset, &run[..]));
        let AreaReader { store, object, .. } = &self.reader;
        let writes = data.chain(seals);
        let writes = writes.map(|(offset, data)| WriteAt::new(object, offset, data));
        Ok(store.write(&writes.collect::<Vec<_>>())?)
    }

    /// Makes everything written durable.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sync(&self) -> Result<()> {
        let AreaReader { store, object, .. } = &self.reader;
        // Nothing was written yet.
        if store.len(object)?.is_none() {
            return Ok(());
        }
        Ok(store.sync(&[object])?)
    }
}

impl AreaReader {
    fn place(&self, slot: u64) -> Place {
        Place { volume: self.volume, kind: Kind::Slot, index: slot, version: 0 }
    }

    /// Offset of a block's seal, in bytes.
    fn seal_at(&self, slot: u64) -> u64 {
        self.slots * BLOCK as u64 + slot * SEAL as u64
    }

    /// Reads written blocks to their places in `buf`; `wanted` is sorted by those.
    ///
    /// # Errors
    /// As [`Area::read`].
    pub fn read_into(&self, wanted: &[Wanted], buf: &mut [u8]) -> Result<()> {
        let mut seals = vec![0; wanted.len() * SEAL];
        self.load(wanted, buf, &mut seals)?;
        let mut opening = self.opener.begin();
        for (wanted, seal) in wanted.iter().zip(seals.chunks_exact(SEAL)) {
            let (mark, tag) = (seal.first_chunk().copied(), seal.last_chunk().copied());
            let (mark, tag) = (GroupMark(mark.unwrap_or_default()), Tag(tag.unwrap_or_default()));
            let (block, place) = (block_of(buf, wanted.at), self.place(wanted.slot));
            opening.open(&mark, 0, &place, &tag, block).map_err(|error| {
                Error::Tampered(format!("block {} of {:?}: {error}", wanted.slot, self.object))
            })?;
        }
        Ok(())
    }

    /// Loads neighbours in one read, and makes all reads in one call.
    fn load(&self, wanted: &[Wanted], mut buf: &mut [u8], mut seals: &mut [u8]) -> Result<()> {
        let mut reads = Vec::new();
        let mut passed = 0;
        for run in wanted.chunk_by(|a, b| (a.at + 1, a.slot + 1) == (b.at, b.slot)) {
            let Wanted { at, slot } = run[0];
            let (_, from) = buf.split_at_mut((at - passed) * BLOCK);
            let (data, rest) = from.split_at_mut(run.len() * BLOCK);
            let (seal, later) = seals.split_at_mut(run.len() * SEAL);
            (buf, seals, passed) = (rest, later, at + run.len());
            reads.push(ReadAt { object: self.object, offset: slot * BLOCK as u64, buf: data });
            reads.push(ReadAt { object: self.object, offset: self.seal_at(slot), buf: seal });
        }
        Ok(self.store.read(&mut reads)?)
    }
}

/// A block of a buffer.
pub fn block_of(buf: &mut [u8], at: usize) -> &mut [u8] {
    &mut buf[at * BLOCK..(at + 1) * BLOCK]
}
