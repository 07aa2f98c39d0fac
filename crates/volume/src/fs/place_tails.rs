//! Placing the buffered tails of files in shared blocks.

use super::ops::write_op;
use super::state::State;
use super::types::Ino;
use crate::Result;

impl State {
    /// Places all buffered tails.
    pub(super) fn flush_all_tails(&mut self) -> Result<()> {
        let inos = self.tails.all();
        self.flush_tails(&inos)
    }

    /// Places all buffered tails and writes the blocks they share.
    pub(super) fn place_all_tails(&mut self) -> Result<()> {
        self.flush_all_tails()?;
        let dirty = self.cache.dirty();
        self.write_cached(&dirty)?;
        self.expect_tails();
        Ok(())
    }

    /// Places the older ones of too many tails, and keeps the block cache in its budget. A space
    /// that pads places all of them, after a fixed number of operations that may have left one.
    pub(super) fn flush_surplus(&mut self) -> Result<()> {
        let due = self.left_a_tail();
        if self.owed.pads {
            if due {
                self.place_all_tails()?;
            }
        } else {
            let inos = self.tails.surplus();
            self.flush_tails(&inos)?;
        }
        self.evict_data()
    }

    fn flush_tails(&mut self, inos: &[Ino]) -> Result<()> {
        let limit = self.tail_limit();
        let (small, large): (Vec<Ino>, Vec<Ino>) = inos
            .iter()
            .partition(|&&ino| self.tails.get(ino).is_some_and(|tail| tail.len() <= limit));
        self.flush_large(&large)?;
        self.load_old_packs(&small)?;
        for ino in small {
            self.flush_small(ino)?;
        }
        self.evict_data()
    }

    /// Fetches together the shared blocks with older states of these tails.
    fn load_old_packs(&mut self, inos: &[Ino]) -> Result<()> {
        let mut blocks = Vec::new();
        for &ino in inos {
            if let Some(pack) = self.meta.inode(ino)?.pack {
                let pack = self.meta.pack(pack)?;
                if pack.pieces.len() > 1 {
                    blocks.push(pack.block);
                }
            }
        }
        self.load_blocks(&blocks)
    }

    fn flush_small(&mut self, ino: Ino) -> Result<()> {
        let Some(data) = self.tails.get(ino).map(<[u8]>::to_vec) else {
            return Ok(());
        };
        let mut inode = self.meta.inode(ino)?;
        inode.pack = Some(self.pack_put(ino, inode.pack, &data)?);
        self.meta.put_inode(ino, &inode)?;
        self.tails.remove(ino);
        Ok(())
    }

    /// Writes together the tails that are too long to share a block.
    fn flush_large(&mut self, inos: &[Ino]) -> Result<()> {
        let mut placed = Vec::new();
        let mut missing = Vec::new();
        for &ino in inos {
            let inode = self.meta.inode(ino)?;
            let segment = inode.size / self.block_bytes as u64;
            let own = self.meta.extents(ino, segment, segment + 1)?;
            match own.first() {
                Some(run) => placed.push((ino, segment, run.block)),
                None => missing.push((ino, segment)),
            }
        }
        let fresh = self.pool.lock().take_many(missing.len())?;
        let fresh_placed = missing.iter().zip(&fresh);
        placed.extend(fresh_placed.map(|(&(ino, segment), &block)| (ino, segment, block)));
        let content = |ino| self.tails.get(ino).unwrap_or_default().to_vec();
        let ops = placed.iter();
        let ops = ops.map(|&(ino, _, block)| write_op(block, content(ino))).collect();
        let written = self.pool.lock().access(ops);
        if let Err(error) = written {
            self.pool.lock().release_all(&fresh);
            return Err(error);
        }
        for ((ino, segment), block) in missing.into_iter().zip(fresh) {
            self.meta.map_segments(ino, &[(segment, block)], false)?;
            let mut inode = self.meta.inode(ino)?;
            inode.blocks += 1;
            self.meta.put_inode(ino, &inode)?;
        }
        for (ino, _, block) in placed {
            self.cache.remove(block);
            self.tails.remove(ino);
            let mut inode = self.meta.inode(ino)?;
            if let Some(pack) = inode.pack.take() {
                self.pack_remove(ino, pack)?;
                self.meta.put_inode(ino, &inode)?;
            }
        }
        Ok(())
    }

    /// Gives data blocks back.
    pub(super) fn release(&mut self, blocks: &[u64]) {
        for &block in blocks {
            self.cache.remove(block);
        }
        self.pool.lock().release_all(blocks);
    }
}
