//! Reading everything, whatever is damaged.

use super::DISK_OBJECT;
use super::rest::heal;
use super::volume::SequentialVolume;
use crate::Result;
use crate::damage::{DamagedPlace, Inspected, push};
use oblivio_engine::BlockId;
use std::collections::BTreeSet;

impl SequentialVolume {
    /// Reads all blocks, whatever is damaged. What has a second copy is made whole first.
    pub(super) fn read_all(
        &mut self,
        progress: &mut dyn FnMut(u64, u64),
        damaged: &mut dyn FnMut(DamagedPlace),
    ) -> Result<Inspected> {
        self.guarded(heal)?;
        let (blocks, together) = (self.header.engine.blocks, self.shared.together());
        let mut inspected = Inspected { count: blocks, ..Inspected::default() };
        // A node of a map is met as often as a block below it is read.
        let mut met = BTreeSet::new();
        for first in (0..blocks).step_by(together) {
            let end = blocks.min(first + together as u64);
            let ids: Vec<BlockId> = (first..end).map(BlockId).collect();
            let (lost, places) = self.guarded(|volume| volume.shared.inspect(&ids))?;
            lost.iter().for_each(|block| push(&mut inspected.lost, block.0));
            for (extent, why) in places.into_iter().filter(|(extent, _)| met.insert(*extent)) {
                inspected.damaged += 1;
                let (object, bytes) = (DISK_OBJECT.into(), extent.offset..extent.end());
                damaged(DamagedPlace { object, bytes, why: why.into() });
            }
            progress(end, blocks);
        }
        let (store, newest) = (&*self.store, self.newest.current.0);
        let states = self.shared.reads.of_copies(|| self.states.inspect(store, newest))?;
        let log = self.log.inspect(&*self.store, self.newest.turns[0])?;
        for place in states.into_iter().chain(log) {
            inspected.damaged += 1;
            damaged(place);
        }
        Ok(inspected)
    }
}
