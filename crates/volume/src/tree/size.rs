//! A tree that shrinks does so path by path, and gives its space back.

use crate::Result;
use crate::core::Policy;
use crate::options::ShownKind;
use crate::tree::policy::Flush;
use crate::tree::tuning::{FEW_HOLES, MOST_HOLES, SWEEP_IDLE, SWEEP_LAST};
use crate::tree::volume::TreeVolume;
use oblivio_engine::BlockId;
use oblivio_engine::tree::TreeOram;

/// A block with its content.
type Block = (BlockId, Vec<u8>);

impl TreeVolume {
    /// Removes the tree's old leaves, or slots of theirs, along `paths` paths at most.
    pub(crate) fn sweep(&mut self, paths: u64) -> Result<()> {
        let paths = paths.min(self.ledger.engine.shrink_left());
        if paths == 0 { Ok(()) } else { self.maintain(paths, ShownKind::Maintenance, Vec::new()) }
    }

    /// A round of scheduled paths ahead of their turn, which puts lost blocks back.
    fn maintain(&mut self, paths: u64, kind: ShownKind, back: Vec<Block>) -> Result<()> {
        let mut round = self.ledger.engine.begin_maintenance(paths)?.putting_back(back);
        self.ledger.record_intent(round.intent())?;
        self.run(&mut round, kind)
    }

    /// Evicts as many scheduled paths as there are leaves: each bucket is written anew. `back`
    /// gives lost blocks that belong on the next paths.
    pub(crate) fn evict_all(
        &mut self,
        back: &mut dyn FnMut(&TreeOram, u64) -> Result<Vec<Block>>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        self.checkpoint(Flush::All)?;
        let all = 1 << self.ledger.engine.depth().0;
        let (mut done, some) = (0, self.batch_limit() as u64);
        while done < all {
            let paths = some.min(all - done);
            let back = back(&self.ledger.engine, paths)?;
            self.maintain(paths, ShownKind::Repair, back)?;
            self.commit_if_due()?;
            done += paths;
            progress(done, all);
        }
        self.checkpoint(Flush::All)
    }

    /// Gives some unneeded space back; says whether there is more.
    pub(crate) fn reclaim(&mut self) -> Result<bool> {
        let most = if self.options.short_pauses { FEW_HOLES } else { MOST_HOLES };
        self.ledger.slab.reclaim(&*self.ledger.store, most)
    }

    /// As [`Self::reclaim`], but if the store has much room, only cuts free space off the end. Most
    /// space that is free during work is soon used again, or cut off with all behind it.
    pub(crate) fn reclaim_end(&mut self) -> Result<bool> {
        if self.account.since.roomy {
            self.ledger.slab.reclaim(&*self.ledger.store, 0)
        } else {
            self.reclaim()
        }
    }

    /// Gives space back after a commit: a little, because a caller may wait. Buckets of another
    /// length cannot use it, so when the store's space is short, it keeps at most the writes
    /// between two commits.
    pub(crate) fn give_back(&mut self) -> Result<()> {
        let most = self.ledger.slab.most_bytes(self.account.since.interval);
        while self.reclaim_end()? && self.ledger.slab.idle_bytes() > most {
            let free = self.ledger.store.free_bytes().ok().flatten();
            if !self.ledger.slab.has_short() || free.is_none_or(|free| free > 8 * most) {
                break;
            }
        }
        // If space is short, it must be available to the next write.
        if self.account.since.roomy { Ok(()) } else { self.ledger.slab.settle(&*self.ledger.store) }
    }

    /// Gives unneeded space back at the end of a session, in as few trips as possible: nobody
    /// waits.
    pub(crate) fn reclaim_at_end(&mut self) -> Result<()> {
        let mut any = false;
        while self.ledger.slab.reclaim(&*self.ledger.store, MOST_HOLES)? {
            any = true;
        }
        if any { self.ledger.slab.settle(&*self.ledger.store) } else { Ok(()) }
    }

    /// Sweeps at the end of a session, by an amount that depends on the size class alone.
    pub(crate) fn sweep_at_end(&mut self) -> Result<()> {
        let mut left = SWEEP_LAST;
        while left > 0 && self.ledger.engine.shrink_left() > 0 {
            self.sweep(SWEEP_IDLE)?;
            self.commit_if_due()?;
            left -= SWEEP_IDLE;
        }
        Ok(())
    }
}
