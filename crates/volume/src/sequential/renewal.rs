//! A repair: everything is written anew, and what is lost is listed as such.

use super::serving::Serves;
use super::volume::SequentialVolume;
use crate::Result;
use oblivio_engine::BlockId;
use std::collections::VecDeque;

/// Blocks whose next copy is already damaged. They must be written again before the present one is
/// given up.
struct Endangered {
    waiting: VecDeque<BlockId>,
    /// Those that were read, and wait for a write only: a turn may end too soon for all of them.
    /// A discarded block has no content.
    read: VecDeque<(BlockId, Option<Vec<u8>>)>,
    /// How many may be read ahead.
    most: usize,
}

impl Endangered {
    /// What a volume's engine finds to be in danger now.
    fn of(volume: &SequentialVolume) -> Result<Self> {
        let waiting = volume.shared.unfinished()?.endangered().into();
        let most = (volume.memory_bytes() / volume.header.engine.block_bytes).max(1);
        Ok(Self { waiting, read: VecDeque::new(), most })
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.read.is_empty()
    }

    /// Fills the volume's turn with writes.
    fn write_turn(&mut self, volume: &mut SequentialVolume) -> Result<()> {
        self.read_ahead(volume)?;
        let turn = volume.engine().turn();
        while volume.engine().turn() == turn {
            if self.read.is_empty() {
                self.read_ahead(volume)?;
            }
            match self.read.pop_front() {
                Some((block, content)) => volume.write_block(block, content)?,
                None => volume.write_nothing()?,
            }
        }
        Ok(())
    }

    /// Reads as many as there is room for.
    fn read_ahead(&mut self, volume: &SequentialVolume) -> Result<()> {
        while self.read.len() < self.most && !self.waiting.is_empty() {
            let room = self.most - self.read.len();
            let count = room.min(volume.shared.together()).min(self.waiting.len());
            let blocks: Vec<BlockId> = self.waiting.drain(..count).collect();
            // What is lost by now stays lost.
            let found = blocks.iter().zip(volume.read_blocks(&blocks)?);
            self.read.extend(found.filter_map(|(block, it)| Some((*block, it.ok()?))));
        }
        Ok(())
    }
}

impl SequentialVolume {
    /// Makes writes until the schedule has written everything anew: what can be read goes on, and
    /// what is lost is listed as such. Most are empty; the first are of the endangered blocks, and
    /// look the same. How many follows from the schedule, unless more blocks are endangered than
    /// fit. Each turn leaves a state, so a crash leaves a volume as any other does.
    pub(super) fn renew(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let turns = self.engine().layout().schedule().turns_of_renewal();
        let (mut endangered, mut done) = (Endangered::of(self)?, 0);
        while done < turns || !endangered.is_empty() {
            endangered.write_turn(self)?;
            done += 1;
            progress(done.min(turns), turns);
        }
        Ok(())
    }
}
