//! Reading everything, whatever is damaged, in the order of the blocks' addresses.

use super::DISK_OBJECT;
use super::lanes::Lanes;
use super::rest::heal;
use super::state_places::STATE_OBJECTS;
use super::volume::SequentialVolume;
use crate::Result;
use crate::damage::{DamagedPlace, Inspected, push};
use crate::scrub::{Inspection, Reached, SMALL};
use oblivio_engine::BlockId;
use oblivio_engine::sequential::DamagedExtent;
use std::collections::BTreeSet;

impl SequentialVolume {
    /// Reads blocks, whatever is damaged; the places are their numbers. What has a second copy is
    /// made whole before the first. Amid requests what is small is a part of its own.
    pub(super) fn read_all(&mut self, inspection: Inspection<'_>) -> Result<Inspected> {
        let Inspection { from, at_once, amid_requests, reached, damaged } = inspection;
        if from == 0 {
            self.guarded(heal)?;
        }
        let (total, block_bytes) = (self.header.engine.blocks, self.header.engine.block_bytes);
        let together = (at_once / block_bytes).clamp(1, self.shared.together()) as u64;
        let mut inspected = Inspected::default();
        // A node of a map is met as often as a block below it is read.
        let mut met = BTreeSet::new();
        let mut done = from.min(total);
        loop {
            let end = total.min(done + together);
            let small = (amid_requests && done < end).then_some(SMALL);
            let ids: Vec<BlockId> = (done..end).map(BlockId).collect();
            let (there, lost, places) = self.guarded(|volume| volume.shared.inspect(&ids))?;
            lost.iter().for_each(|block| push(&mut inspected.lost, block.0));
            for place in places.into_iter().filter(|(extent, _)| met.insert(*extent)) {
                inspected.damaged += 1;
                damaged(on_disk(place));
            }
            // The others were looked for in the map only.
            inspected.count += there;
            inspected.bytes += there * block_bytes as u64;
            done = end;
            let next = (done < total).then_some(done).or(small);
            let all = total + u64::from(amid_requests);
            let at = if next.is_some() { done } else { all };
            let goes_on = reached(Reached { done: at, total: all, next }).is_continue();
            match next {
                None => break,
                Some(_) if goes_on => {}
                Some(_) => return Ok(inspected),
            }
        }
        if !amid_requests {
            // No read of a block meets damage there before its merge ends, which loses the block.
            // It takes too long amid requests.
            let unfinished = self.guarded(|volume| volume.shared.unfinished())?;
            let places = unfinished.damage().iter().copied();
            for place in places.filter(|(extent, _)| met.insert(*extent)) {
                inspected.damaged += 1;
                damaged(on_disk(place));
            }
        }
        let (store, newest) = (&*self.shared.store, self.newest.current.0);
        let reads = &self.shared.reads;
        let inspect = || self.states.inspect(store, reads, newest);
        let states = reads.inspect(store, STATE_OBJECTS[0], inspect)?;
        let log = self.log.inspect(&*self.shared.store, self.newest.turns[0])?;
        let (quanta, (_, quantum)) = (self.log.since(self.newest.turns[0]), self.log.place_of(0));
        let named = (newest, self.newest.lanes);
        let lanes =
            self.lanes.as_ref().map(|lanes| lanes.damaged(&*self.shared.store, reads, named));
        let lanes = lanes.transpose()?.unwrap_or_default();
        inspected.bytes += self.states.all_bytes() + quanta * quantum as u64;
        inspected.bytes += self.lanes.as_ref().map_or(0, Lanes::state_bytes);
        for place in states.into_iter().chain(log).chain(lanes) {
            inspected.damaged += 1;
            damaged(place);
        }
        Ok(inspected)
    }
}

fn on_disk((extent, why): DamagedExtent) -> DamagedPlace {
    let (object, bytes) = (DISK_OBJECT.into(), extent.offset..extent.end());
    DamagedPlace { object, bytes, why: why.into() }
}
