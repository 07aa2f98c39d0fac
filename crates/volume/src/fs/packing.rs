//! Tails and small files share blocks (block packing, Path ORAM for the cloud, section IV-B).
//!
//! The paper's two dictionaries are here the pack records (which piece lies where) and the space
//! left: exactly for the few packs being filled, and in the table `ROOMY` for those at least half
//! empty. A pack has a number of its own, so moving its pieces or its block changes one record.
//!
//! Other files' pieces must survive a crash that brings back older metadata. So a pack whose block
//! the last commit names never changes in place. Its first change moves it to a fresh block, which
//! costs no further access: the whole block is written anyway. Deleting a piece changes only the
//! record and costs no access; the block's next write closes the hole by shifting the data behind
//! it.
//!
//! A pack whose block is lost takes no more pieces: those in it would have to move. They stay, so
//! that reads say that they are lost, until their files are written anew or removed.

use super::around::of_file;
use super::inode::Inode;
use super::ops::{read_op, write_op};
use super::state::State;
use super::tables::{Meta, PACKS, Pack, Piece, ROOMY, encode};
use super::types::Ino;
use crate::{Error, Result};
use redb::ReadableTable;
use std::collections::HashSet;

/// More pieces than this make the record of a pack too long.
pub(super) const MAX_PIECES: usize = 256;
/// The most packs filled at a time.
const MAX_OPEN: usize = 32;

impl Pack {
    pub(super) fn used(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len as usize).sum()
    }

    /// Bytes that one more piece could take.
    pub(super) fn free(&self, block_bytes: usize) -> usize {
        if self.pieces.len() >= MAX_PIECES {
            return 0;
        }
        block_bytes.saturating_sub(self.used())
    }

    pub(super) fn piece(&self, ino: Ino) -> Option<Piece> {
        self.pieces.iter().copied().find(|piece| piece.ino == ino)
    }

    /// Shifts all pieces down to close the holes between them, in the content too.
    pub(super) fn close_holes(&mut self, content: &mut [u8]) {
        let mut at = 0;
        for piece in &mut self.pieces {
            let start = piece.offset as usize;
            content.copy_within(start..start + piece.len as usize, at);
            piece.offset = at as u32;
            at += piece.len as usize;
        }
        content[at..].fill(0);
    }

    /// Puts a piece behind all others; there must be room.
    pub(super) fn append(&mut self, ino: Ino, data: &[u8], content: &mut [u8]) {
        let at = self.used();
        content[at..at + data.len()].copy_from_slice(data);
        self.pieces.push(Piece { ino, offset: at as u32, len: data.len() as u32 });
    }
}

impl Meta {
    /// Stores a pack and updates the table of roomy packs.
    pub(super) fn put_pack(
        &self,
        id: u64,
        before: Option<&Pack>,
        after: &Pack,
        block: usize,
    ) -> Result<()> {
        let record = encode(after)?;
        self.open(PACKS)?.insert(id, record.as_slice())?;
        self.note_room(id, before, Some(after), block)
    }

    fn note_room(
        &self,
        id: u64,
        before: Option<&Pack>,
        after: Option<&Pack>,
        block: usize,
    ) -> Result<()> {
        let roomy = |pack: Option<&Pack>| pack.and_then(|pack| roomy_key(pack, block));
        let (before, after) = (roomy(before), roomy(after));
        if before != after {
            let mut table = self.open(ROOMY)?;
            if let Some(free) = before {
                table.remove((free, id))?;
            }
            if let Some(free) = after {
                table.insert((free, id), ())?;
            }
        }
        Ok(())
    }

    /// Up to `most` packs that are half empty, the emptiest first.
    pub(super) fn emptiest_packs(&self, most: usize) -> Result<Vec<u64>> {
        let table = self.open(ROOMY)?;
        let ids = table.iter()?.rev().take(most).map(|entry| Ok(entry?.0.value().1));
        ids.collect()
    }

    /// The fullest of the roomy packs that still take `len` bytes and are not among the lost ones.
    fn roomy_pack(&self, len: usize, lost: &HashSet<u64>) -> Result<Option<u64>> {
        let table = self.open(ROOMY)?;
        for entry in table.range((len as u64, 0)..)? {
            let id = entry?.0.value().1;
            if lost.is_empty() || !lost.contains(&self.pack(id)?.block) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}

/// A pack's free bytes, its key in the table of roomy packs, if it belongs there.
pub(super) fn roomy_key(pack: &Pack, block_bytes: usize) -> Option<u64> {
    let free = pack.free(block_bytes);
    (free >= block_bytes / 2).then_some(free as u64)
}

impl State {
    /// The longest tail that shares a block; a longer one wastes less than a quarter alone.
    pub(super) fn tail_limit(&self) -> usize {
        self.block_bytes / 4 * 3
    }

    /// Puts a tail into a shared block, replacing the file's piece in `old`; gives the pack that
    /// holds it now.
    pub(super) fn pack_put(&mut self, ino: Ino, old: Option<u64>, data: &[u8]) -> Result<u64> {
        if let Some(id) = old {
            let mut without = self.meta.pack(id)?;
            without.pieces.retain(|piece| piece.ino != ino);
            if without.free(self.block_bytes) >= data.len() && self.pack_change(id, ino, data)? {
                return Ok(id);
            }
        }
        let id = loop {
            match self.pack_with_room(data.len())? {
                Some(id) if self.pack_change(id, ino, data)? => break id,
                // It is lost, as is known now.
                Some(_) => {}
                None => break self.pack_create(ino, data)?,
            }
        };
        if let Some(old) = old {
            self.pack_remove(ino, old)?;
        }
        Ok(id)
    }

    /// Best fit among the packs being filled, then among those that deletions left roomy.
    fn pack_with_room(&mut self, len: usize) -> Result<Option<u64>> {
        if self.owed.pads {
            return self.pack_in_memory(len);
        }
        let open = self.packs.open.iter();
        let best = open
            .filter(|&(_, &free)| free >= len)
            .min_by_key(|&(id, free)| (*free, *id))
            .map(|(id, _)| *id);
        match best {
            Some(id) => Ok(Some(id)),
            None => self.meta.roomy_pack(len, &self.packs.lost),
        }
    }

    /// As [`Self::pack_with_room`] without a read: reads must not depend on the packing.
    fn pack_in_memory(&self, len: usize) -> Result<Option<u64>> {
        let open = self.packs.open.iter().filter(|&(_, &free)| free >= len);
        let mut open: Vec<(usize, u64)> = open.map(|(&id, &free)| (free, id)).collect();
        open.sort_unstable();
        for (_, id) in open {
            if self.cache.contains(self.meta.pack(id)?.block) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn pack_create(&mut self, ino: Ino, data: &[u8]) -> Result<u64> {
        let block = self.pool.lock().take_many(1)?[0];
        let mut content = vec![0; self.block_bytes];
        let mut pack = Pack { block, pieces: Vec::new() };
        pack.append(ino, data, &mut content);
        let id = self.counters.next_pack;
        self.counters.next_pack += 1;
        self.cache.insert(block, content, true);
        self.meta.put_pack(id, None, &pack, self.block_bytes)?;
        self.pack_note_open(id, &pack);
        Ok(id)
    }

    /// Replaces or adds a file's piece in a pack with room for it. Says whether it did: not if the
    /// other pieces are lost.
    fn pack_change(&mut self, id: u64, ino: Ino, data: &[u8]) -> Result<bool> {
        let before = self.meta.pack(id)?;
        let mut pack = before.clone();
        pack.pieces.retain(|piece| piece.ino != ino);
        let content = match pack.pieces.is_empty() {
            true => Some(vec![0; self.block_bytes]),
            false => self.pack_content(&before)?,
        };
        let Some(mut content) = content else {
            self.packs.open.remove(&id);
            return Ok(false);
        };
        pack.block = self.pack_fresh_block(before.block)?;
        pack.close_holes(&mut content);
        pack.append(ino, data, &mut content);
        self.cache.insert(pack.block, content, true);
        self.meta.put_pack(id, Some(&before), &pack, self.block_bytes)?;
        self.pack_note_open(id, &pack);
        Ok(true)
    }

    /// The block for a changed pack: the same, unless the last commit names it.
    pub(super) fn pack_fresh_block(&mut self, block: u64) -> Result<u64> {
        let mut pool = self.pool.lock();
        if !pool.allocator.is_committed(block) {
            return Ok(block);
        }
        let fresh = pool.take_many(1)?[0];
        pool.allocator.release(block);
        drop(pool);
        self.cache.remove(block);
        Ok(fresh)
    }

    /// A copy of a pack's block, from the cache or the volume; `None` if it is lost.
    pub(super) fn pack_content(&mut self, pack: &Pack) -> Result<Option<Vec<u8>>> {
        if !self.packs.lost.contains(&pack.block) {
            self.load_blocks(&[pack.block])?;
        }
        match self.cache.get(pack.block) {
            Some(Some(content)) => return Ok(Some(content.to_vec())),
            // A reader met it.
            Some(None) => drop(self.packs.lost.insert(pack.block)),
            None => {}
        }
        match self.packs.lost.contains(&pack.block) {
            true => Ok(None),
            false => Err(Error::Tampered(format!("block {} is missing", pack.block))),
        }
    }

    /// Fetches blocks of packs into the cache with one access, and notes which are lost.
    pub(super) fn load_blocks(&mut self, blocks: &[u64]) -> Result<()> {
        let mut missing: Vec<u64> = blocks.to_vec();
        missing.sort_unstable();
        missing.dedup();
        missing.retain(|&block| !self.cache.contains(block));
        let ops = missing.iter().map(|&block| read_op(block)).collect();
        let outcomes = self.pool.lock().access_each(ops)?;
        for (block, outcome) in missing.into_iter().zip(outcomes) {
            let Ok(answer) = outcome else {
                self.cache.insert_lost(block);
                self.packs.lost.insert(block);
                continue;
            };
            let content = answer
                .filter(|content| content.len() == self.block_bytes)
                .ok_or_else(|| Error::Tampered(format!("data block {block} is missing")))?;
            self.cache.insert(block, content, false);
        }
        Ok(())
    }

    /// The bytes of a file's piece.
    ///
    /// # Errors
    /// `Lost` names its bytes in the file.
    pub(super) fn pack_read(&mut self, ino: Ino, inode: &Inode, id: u64) -> Result<Vec<u8>> {
        let pack = self.meta.pack(id)?;
        let piece = pack.piece(ino).ok_or_else(|| no_piece(ino, id))?;
        let Some(content) = self.pack_content(&pack)? else {
            let start = inode.size - inode.size % self.block_bytes as u64;
            return Err(of_file(std::iter::once(start..inode.size).collect()));
        };
        let start = piece.offset as usize;
        let bytes = content.get(start..start + piece.len as usize);
        bytes.map(<[u8]>::to_vec).ok_or_else(|| no_piece(ino, id))
    }

    /// Takes a file's piece out. The last one frees the block.
    pub(super) fn pack_remove(&mut self, ino: Ino, id: u64) -> Result<()> {
        let before = self.meta.pack(id)?;
        let mut pack = before.clone();
        pack.pieces.retain(|piece| piece.ino != ino);
        if pack.pieces.is_empty() {
            return self.pack_forget(id, &before);
        }
        self.pack_record(id, &before, &pack)
    }

    /// Removes a pack without pieces.
    pub(super) fn pack_forget(&mut self, id: u64, pack: &Pack) -> Result<()> {
        self.meta.open(PACKS)?.remove(id)?;
        self.meta.note_room(id, Some(pack), None, self.block_bytes)?;
        self.packs.open.remove(&id);
        self.cache.remove(pack.block);
        self.pool.lock().allocator.release(pack.block);
        Ok(())
    }

    /// Cuts a file's piece short.
    pub(super) fn pack_shorten(&mut self, ino: Ino, id: u64, len: usize) -> Result<()> {
        let before = self.meta.pack(id)?;
        let mut pack = before.clone();
        for piece in pack.pieces.iter_mut().filter(|piece| piece.ino == ino) {
            piece.len = piece.len.min(len as u32);
        }
        self.pack_record(id, &before, &pack)
    }

    fn pack_record(&mut self, id: u64, before: &Pack, after: &Pack) -> Result<()> {
        self.meta.put_pack(id, Some(before), after, self.block_bytes)?;
        if let Some(free) = self.packs.open.get_mut(&id) {
            *free = after.free(self.block_bytes);
        }
        Ok(())
    }

    /// Notes the space left in a pack being filled; of too many, the fullest goes.
    fn pack_note_open(&mut self, id: u64, pack: &Pack) {
        let free = pack.free(self.block_bytes);
        self.packs.open.insert(id, free);
        if free == 0 {
            self.packs.open.remove(&id);
        } else if self.packs.open.len() > MAX_OPEN {
            let fullest = self.packs.open.iter().min_by_key(|&(_, free)| *free);
            if let Some(fullest) = fullest.map(|(id, _)| *id) {
                self.packs.open.remove(&fullest);
            }
        }
    }

    /// Writes and drops blocks when the cache is over its budget.
    pub(super) fn evict_data(&mut self) -> Result<()> {
        let victims = self.cache.victims();
        self.write_cached(&victims)?;
        for block in victims {
            self.cache.remove(block);
        }
        Ok(())
    }

    /// Writes the dirty blocks among these with one access.
    pub(super) fn write_cached(&mut self, blocks: &[u64]) -> Result<()> {
        let written = self.cache.to_write(blocks);
        written.iter().for_each(|(block, _)| {
            self.packs.lost.remove(block);
        });
        let ops = written.into_iter().map(|(block, data)| write_op(block, data)).collect();
        self.pool.lock().access(ops)?;
        self.cache.written(blocks);
        Ok(())
    }
}

fn no_piece(ino: Ino, pack: u64) -> Error {
    Error::Tampered(format!("pack {pack} has no piece of inode {ino}"))
}
