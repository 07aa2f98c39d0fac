//! The open merges of a state. What they read follows from the tables.

use super::{MOST_COUNT, height_to_word, read_name, write_name, wrong};
use crate::pyramid::history::MOST_LEFT;
use crate::pyramid::ids::{Height, Name, Partition};
use crate::pyramid::open::{Blocks, Merge, Progress};
use crate::pyramid::oram::{PyramidOram, Whereabouts};
use crate::pyramid::schedule::PartitionTurn;
use crate::pyramid::table::Holds;
use crate::wire::{Reader, Writer};
use crate::{EngineError, Result};
use std::collections::HashSet;

impl PyramidOram {
    pub(super) fn write_merges(&self, out: &mut Writer<'_>) -> Result<()> {
        out.u64(self.merges.iter().count() as u64);
        for merge in self.merges.iter() {
            let Blocks { names, left, of_turn, .. } = &merge.blocks;
            if left.len() > MOST_LEFT {
                return Err(EngineError::State("a base has too many blocks"));
            }
            out.words(&[u64::from(merge.partition.0), height_to_word(merge.height)]);
            out.words(&[u64::from(merge.home.0), merge.place, u64::from(*of_turn)]);
            out.words(&[names.len() as u64, left.len() as u64]);
            names.iter().chain(left).for_each(|name| write_name(out, *name));
            let room = self.most_names(merge.height) - names.len() - left.len();
            out.zeros(room * 24);
            if *of_turn {
                let of_stash = self.of_stash(merge.partition, names, left);
                self.write_contents(out, &of_stash, self.config.taken() as usize);
            }
        }
        Ok(())
    }

    fn most_names(&self, height: Height) -> usize {
        self.config.capacity(height) as usize + MOST_LEFT
    }

    /// The blocks of a partition's merge that it took from the stash, and that were not asked for
    /// since. One that was may be with another merge by now, which is one of another partition.
    fn of_stash(&self, partition: Partition, names: &[Name], left: &[Name]) -> Vec<Name> {
        let is_it = |name: &&Name| {
            let entry = self.index.get(name);
            entry.is_some_and(|entry| {
                let here = self.partition_of(entry.label) == partition;
                here && entry.at == Whereabouts::Merge(None)
            })
        };
        names.iter().chain(left).filter(is_it).copied().collect()
    }

    pub(super) fn read_merges(&mut self, input: &mut Reader<'_>) -> Result<()> {
        for _ in 0..input.u64()? {
            self.read_merge(input)?;
        }
        // A block that is with no merge would be lost.
        let lost = self.index.values().any(|entry| {
            let with_merge = matches!(entry.at, Whereabouts::Merge(_));
            with_merge && self.merges.of_partition(self.partition_of(entry.label)).is_none()
        });
        if lost { Err(wrong("a block is with no merge")) } else { Ok(()) }
    }

    fn read_merge(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let partition = u32::try_from(input.u64()?).ok().map(Partition);
        let partition = partition.filter(|partition| partition.0 < self.config.partitions());
        let partition = partition.ok_or(wrong("no such partition"))?;
        let (height, home) = (self.read_height(input)?, self.read_home(input)?);
        let (place, of_turn) = (input.u64()?, input.u64()? == 1);
        if place > self.asks.min(MOST_COUNT) || self.merges.of_partition(partition).is_some() {
            return Err(wrong("a merge is out of order"));
        }
        let (count, left, most) = (input.u64()?, input.u64()?, self.most_names(height));
        if count > u64::from(self.config.capacity(height)) || left > MOST_LEFT as u64 {
            return Err(wrong("too many blocks in a merge"));
        }
        let mut names = Vec::new();
        for _ in 0..count + left {
            names.push(read_name(input)?);
        }
        input.bytes((most - names.len()) * 24)?;
        let left = names.split_off(count as usize);
        if of_turn {
            let of_stash = self.of_stash(partition, &names, &left);
            let room = self.config.taken() as usize;
            if of_stash.len() > room {
                return Err(wrong("too many blocks of the stash in a merge"));
            }
            self.read_contents(input, &of_stash, room)?;
        }
        let sets = self.merge_sets(PartitionTurn { partition, height });
        let mut coming = HashSet::new();
        for (_, holds) in sets.iter().flat_map(|(_, set)| set) {
            if let Holds::Block(name) = holds {
                coming.insert(*name);
            }
        }
        self.merges.push(Merge {
            number: self.merges.next(),
            partition,
            height,
            home,
            place,
            rounds: 0,
            sets,
            blocks: Blocks { names, left, coming, of_turn },
            progress: Progress::Open,
            again: false,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid::config::PyramidConfig;
    use crate::pyramid::ids::Stamp;
    use crate::pyramid::oram::{Entry, PyramidKeys};
    use crate::{BlockId, Label};

    /// A block that was asked for while one merge has it, and that another one took since, is the
    /// other one's alone: a state has room for what a turn takes.
    #[test]
    fn a_block_is_of_the_merge_that_took_it_last() {
        let config = PyramidConfig::new(64, 1 << 12, 64 << 6);
        let mut oram = PyramidOram::new(config, PyramidKeys::from_seed(1)).expect("sound");
        let names = [1, 2].map(|id| Name::from(BlockId(id)));
        let labels = [Label(0), Label(u64::MAX)];
        for (name, label) in names.into_iter().zip(labels) {
            let at = Whereabouts::Merge(None);
            oram.index.insert(name, Entry { label, stamp: Stamp(1), at });
        }
        let partitions = labels.map(|label| oram.partition_of(label));
        assert_ne!(partitions[0], partitions[1]);
        for (partition, name) in partitions.into_iter().zip(names) {
            assert_eq!(oram.of_stash(partition, &names, &[]), [name]);
        }
    }
}
