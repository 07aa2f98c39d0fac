//! Merges shared blocks that removals left half empty, when room is short.
//!
//! It works in rounds. A round reads some of the emptiest packs together and moves their pieces
//! into the fullest of them that still take them; a commit frees the others. A pack that the last
//! commit names moves to a fresh block when it changes, so a round takes blocks before it frees
//! any. A round is therefore no larger than the reserve allows, and the next one has more.

use super::ops::read_op;
use super::packing::MAX_PIECES;
use super::state::State;
use super::tables::Pack;
use crate::damage::LostBytes;
use crate::{Error, Result};
use std::collections::VecDeque;

/// Packs in a round, and bytes of them.
const ROUND_PACKS: usize = 32;
const ROUND_BYTES: usize = 4 << 20;
/// The most blocks to free beyond the wanted ones.
const MOST_AHEAD: u64 = 256;
/// Moving a piece changes its inode's record, a page of one table. An operation may change this
/// many of those.
const PIECES_PER_OPERATION: u64 = 4;

/// A pack in a round, and the packs that move into it.
struct Target {
    id: u64,
    before: Pack,
    from: Vec<(u64, Pack)>,
    used: usize,
    pieces: usize,
}

impl State {
    /// Whether to merge shared blocks before anybody needs room.
    pub(super) fn should_merge(&self) -> Result<bool> {
        if !self.cleaning.unmerged || !self.cleaning.mergeable || self.latch.is_closed() {
            return Ok(false);
        }
        let usage = self.usage()?;
        Ok(usage.free_blocks < usage.capacity_blocks / 16)
    }

    /// One round when idle. It hides that there was no room for it.
    pub(super) fn merge_when_idle(&mut self) -> Result<()> {
        self.begin()?;
        let merged = self.merge_packs();
        match self.settle(merged) {
            Err(Error::Full(_)) => {
                self.cleaning.unmerged = false;
                Ok(())
            }
            merged => merged.map(drop),
        }
    }

    /// Merges until there is room for `blocks` and some more, so that not every small file starts a
    /// round.
    pub(super) fn merge_for(&mut self, blocks: u64) -> Result<()> {
        let ahead = (self.pool.lock().allocator.capacity() / 64).min(MOST_AHEAD);
        while !self.has_room(blocks.saturating_add(ahead)) && self.merge_packs()? {}
        Ok(())
    }

    /// One round; says whether it freed anything.
    pub(super) fn merge_packs(&mut self) -> Result<bool> {
        if !self.cleaning.mergeable {
            return Ok(false);
        }
        // Frees removed blocks, and leaves no buffered tails to a merge.
        if self.progress.operations > 0 || self.tails.len() > 0 {
            self.commit()?;
        }
        let targets = self.plan_merge()?;
        if targets.is_empty() {
            (self.cleaning.mergeable, self.cleaning.unmerged) = (false, false);
            return Ok(false);
        }
        let targets = self.fetch_round(targets)?;
        targets.into_iter().try_for_each(|target| self.merge_into(target))?;
        self.evict_data()?;
        self.commit()?;
        Ok(true)
    }

    /// Plans the moves. The emptiest packs go first, each into the fullest that takes it.
    fn plan_merge(&self) -> Result<Vec<Target>> {
        let most = (ROUND_BYTES / self.block_bytes).clamp(2, ROUND_PACKS);
        let mut packs = Vec::new();
        for id in self.meta.emptiest_packs(most + self.packs.lost.len())? {
            packs.push((id, self.meta.pack(id)?));
        }
        packs.retain(|(_, pack)| !self.packs.lost.contains(&pack.block));
        packs.truncate(most);
        packs.sort_by_key(|(id, pack)| (pack.used(), *id));
        let mut targets: Vec<Target> = Vec::new();
        let (mut work, mut packs) = (0, VecDeque::from(packs));
        while let Some((id, before)) = packs.pop_back() {
            let (used, pieces) = (before.used(), before.pieces.len());
            let mut target = Target { id, before, from: Vec::new(), used, pieces };
            while let Some((id, pack)) = packs.pop_front() {
                let cost = 1 + (pack.pieces.len() as u64).div_ceil(PIECES_PER_OPERATION);
                let fits = target.used + pack.used() <= self.block_bytes
                    && target.pieces + pack.pieces.len() <= MAX_PIECES;
                let blocks = targets.len() as u64 + 1;
                if !fits || !self.has_room_after(blocks, blocks + work + cost) {
                    packs.push_front((id, pack));
                    break;
                }
                work += cost;
                target.used += pack.used();
                target.pieces += pack.pieces.len();
                target.from.push((id, pack));
            }
            if !target.from.is_empty() {
                targets.push(target);
            }
        }
        Ok(targets)
    }

    /// Reads all packs of a round with one access, cached or not. Gives the moves of which nothing
    /// is lost; later rounds leave lost packs alone.
    fn fetch_round(&mut self, mut targets: Vec<Target>) -> Result<Vec<Target>> {
        let sources = |target: &Target| target.from.iter().map(|(_, pack)| pack.block).collect();
        let blocks: Vec<u64> = targets
            .iter()
            .flat_map(|target| [vec![target.before.block], sources(target)].concat())
            .collect();
        let ops = blocks.iter().map(|&block| read_op(block)).collect();
        let outcomes = self.pool.lock().access_each(ops)?;
        for (block, outcome) in blocks.into_iter().zip(outcomes) {
            match outcome {
                _ if self.cache.contains(block) => {}
                Ok(Some(content)) => self.cache.insert(block, content, false),
                Ok(None) => {}
                Err(_) => {
                    self.cache.insert_lost(block);
                    self.packs.lost.insert(block);
                }
            }
        }
        let lost = |pack: &Pack| self.packs.lost.contains(&pack.block);
        targets.retain(|target| {
            !lost(&target.before) && !target.from.iter().any(|(_, pack)| lost(pack))
        });
        Ok(targets)
    }

    /// A pack that was just read.
    fn whole_pack(&mut self, pack: &Pack) -> Result<Vec<u8>> {
        self.pack_content(pack)?.ok_or_else(|| LostBytes::block(pack.block).into())
    }

    fn merge_into(&mut self, target: Target) -> Result<()> {
        let Target { id, before, from, .. } = target;
        let mut pack = before.clone();
        let mut content = self.whole_pack(&before)?;
        pack.block = self.pack_fresh_block(before.block)?;
        pack.close_holes(&mut content);
        for (source, source_pack) in from {
            let bytes = self.whole_pack(&source_pack)?;
            for piece in &source_pack.pieces {
                let start = piece.offset as usize;
                pack.append(piece.ino, &bytes[start..start + piece.len as usize], &mut content);
                let mut inode = self.meta.inode(piece.ino)?;
                inode.pack = Some(id);
                self.meta.put_inode(piece.ino, &inode)?;
            }
            self.progress.operations +=
                1 + (source_pack.pieces.len() as u64).div_ceil(PIECES_PER_OPERATION);
            self.pack_forget(source, &source_pack)?;
        }
        self.progress.operations += 1;
        self.packs.open.remove(&id);
        self.cache.insert(pack.block, content, true);
        self.meta.put_pack(id, Some(&before), &pack, self.block_bytes)
    }
}
