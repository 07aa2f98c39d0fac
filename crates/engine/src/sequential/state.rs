//! The engine's stored state, from which a volume opens it again.
//!
//! The state holds the flush counter, the progress of each merge, the roots of all buffer maps, and
//! the incomplete map nodes. Its size follows from the parameters alone. Two things are not in it.
//! The access times are saved beside it at a clean shutdown, or rebuilt
//! ([`Sequential::begin_rebuild`]). The queue is in the volume's log: [`Sequential::lost_writes`]
//! names the writes to replay.

use super::engine::Sequential;
use super::keys::SequentialKeys;
use super::layout::Layout;
use super::placement::Placement;
use super::schedule::Schedule;
use super::vault::{Vault, maps_of};
use super::{AccessTimeMap, Flush, SequentialConfig};
use crate::wire::{Reader, Writer};
use crate::{BlockId, EngineError, Level, Result};
use std::ops::Range;

const VERSION: u64 = 1;
/// After damage: map leaves may list lost blocks, and a merge may be in a gap.
const AFTER_DAMAGE: u64 = 2;

/// No volume lives this long. A greater count would overflow the write numbers.
const MOST_WRITES: u64 = 1 << 56;

/// The parameters that must not change when the engine is opened again.
fn parameters(config: &SequentialConfig) -> [u64; 8] {
    [
        config.block_bytes as u64,
        config.blocks,
        config.bucket_blocks,
        config.queue_buckets,
        config.fan_out,
        config.last_ratio,
        config.time_pages,
        config.sector_bytes as u64,
    ]
}

impl Sequential {
    /// The state, between two flushes.
    ///
    /// # Errors
    /// `Invalid` while a flush is under way.
    pub fn state(&self) -> Result<Vec<u8>> {
        self.expect_idle()?;
        let mut bytes = Vec::new();
        let mut out = Writer(&mut bytes);
        out.u64(if self.met_damage { AFTER_DAMAGE } else { VERSION });
        out.words(&parameters(&self.config));
        out.words(&[self.flushes().0, self.placement.writes()]);
        for (merge, sources) in
            self.placement.merges().iter().zip(sources(self.layout().schedule()))
        {
            let before = out.0.len();
            merge.taken().for_each(|taken| out.u64(taken));
            // A merge that has not begun has no sources yet.
            out.zeros(sources * 8 - (out.0.len() - before));
        }
        self.vault.maps.iter().for_each(|maps| maps.save(&mut out));
        Ok(bytes)
    }

    /// The engine of this state, with the access times saved beside it
    /// ([`AccessTimeMap::to_bytes`]). Without them, [`Self::begin_rebuild`] must follow. In any
    /// case, [`Self::write_again`] must follow for all of [`Self::lost_writes`].
    ///
    /// # Errors
    /// `State` when the bytes are not the state of an engine with these parameters.
    pub fn restore(
        config: SequentialConfig,
        keys: SequentialKeys,
        state: &[u8],
        times: Option<&[u8]>,
    ) -> Result<Self> {
        restored((config, Layout::new(&config)?), keys, state, times)
    }

    /// The numbers of the writes that a restart would lose now, or that one has lost: those of this
    /// turn and the one before. The volume's log must hold them, padding included.
    pub fn lost_writes(&self) -> Range<u64> {
        self.again.clone().unwrap_or_else(|| {
            let schedule = self.placement.schedule();
            Placement::<(), ()>::lost_writes(self.flushes(), self.placement.writes(), schedule)
        })
    }

    /// Whether the access times must be rebuilt before anything else.
    pub fn times_are_lost(&self) -> bool {
        self.times_lost
    }

    /// The number of the next lost write to replay; none when all were.
    pub fn next_again(&self) -> Option<u64> {
        self.again.as_ref().map(|again| again.start)
    }

    /// Replays the next lost write: a block and its content, no content for a discard, or `None`
    /// for padding. No flush follows: the state already counts them.
    ///
    /// # Errors
    /// `Invalid` when none is left, or the access times must be rebuilt first.
    pub fn write_again(&mut self, write: Option<(BlockId, Option<Vec<u8>>)>) -> Result<()> {
        let Some(again) = self.again.as_mut().filter(|_| !self.times_lost) else {
            return Err(EngineError::Invalid("there is no write to make again now".into()));
        };
        let number = again.start;
        if let Some((block, content)) = &write {
            let whole = content.as_ref().is_none_or(|it| it.len() == self.config.block_bytes);
            if block.0 >= self.config.blocks || !whole {
                return Err(EngineError::State("a write of another engine is made again"));
            }
        }
        self.placement.write_again(number, write);
        again.start += 1;
        if again.is_empty() {
            self.again = None;
            for (page, turn, content) in std::mem::take(&mut self.lost_pages) {
                self.placement.push_page_again(page, turn, content);
            }
            self.placement.written_again();
        }
        Ok(())
    }
}

/// The engine of a state on this disk ([`Sequential::restore`]).
pub(super) fn restored(
    (config, layout): (SequentialConfig, Layout),
    keys: SequentialKeys,
    state: &[u8],
    times: Option<&[u8]>,
) -> Result<Sequential> {
    let mut input = Reader(state);
    let version = input.u64()?;
    if ![VERSION, AFTER_DAMAGE].contains(&version) {
        return Err(EngineError::State("it has an unknown version"));
    }
    for parameter in parameters(&config) {
        if input.u64()? != parameter {
            return Err(EngineError::State("it is of an engine with other parameters"));
        }
    }
    let (flush, writes) = (Flush(input.u64()?), input.u64()?);
    let per_flush = layout.schedule().writes_per_flush();
    if flush.0 > MOST_WRITES / per_flush || writes > per_flush {
        return Err(EngineError::State("a counter is out of range"));
    }
    let taken: Vec<Vec<u64>> = sources(layout.schedule())
        .map(|sources| (0..sources).map(|_| input.u64()).collect())
        .collect::<Result<_>>()?;
    let schedule = layout.schedule().clone();
    let again = Placement::<(), ()>::lost_writes(flush, writes, &schedule);
    if times.is_some() && config.time_pages > 0 {
        return Err(EngineError::Invalid("the access times are in the ORAM".into()));
    }
    let times_lost = times.is_none() && flush > Flush(0);
    let mut map = match schedule.swept(0, flush) {
        Some(_) if times_lost => {
            AccessTimeMap::settled(schedule.timed_in_memory(), schedule.oldest())
        }
        _ => AccessTimeMap::new(schedule.timed_in_memory(), schedule.oldest()),
    };
    times.map_or(Ok(()), |times| map.load(times))?;
    let mut vault = Vault::new(&config, layout, keys.volume, keys.sealer);
    for level in schedule.levels() {
        vault.maps(level).load(&mut input, schedule.bucket(level, flush))?;
    }
    let placement = Placement::resume(schedule, flush, map, &taken);
    if !input.0.is_empty() {
        return Err(EngineError::State("too long"));
    }
    let again = Some(again).filter(|again| !again.is_empty());
    let met_damage = version == AFTER_DAMAGE;
    Ok(Sequential {
        again,
        times_lost,
        met_damage,
        ..Sequential::assemble(config, placement, vault)
    })
}

impl Layout {
    /// Bytes of the state of an engine with this layout. They never change.
    pub fn state_bytes(&self) -> usize {
        let counters = size_of_val(&parameters(&SequentialConfig::new(1, 1))) + 3 * 8;
        let taken: usize = sources(self.schedule()).map(|sources| sources * 8).sum();
        let mut saved = Vec::new();
        let levels = self.schedule().levels();
        levels.for_each(|level| maps_of(self, level).save(&mut Writer(&mut saved)));
        counters + taken + saved.len()
    }
}

/// The number of generations merged into each level below the top.
fn sources(schedule: &Schedule) -> impl Iterator<Item = usize> + use<> {
    let sources = |level: u32| (schedule.ring(Level(level)) / 2) as usize;
    (0..schedule.last().0).map(sources).collect::<Vec<_>>().into_iter()
}
