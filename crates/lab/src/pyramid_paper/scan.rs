//! The first pass of a construction: it reads the sources and makes what the sorts take.
//!
//! For a level of m items it makes m + m + d slots, where d queries name a deletion meanwhile, and
//! the filter positions of m item slots. Items wait in buffers; when no item waits, a fake comes or
//! positions that set nothing. The design counts 3 entries for each query and height; the d fakes
//! that E5 needs make it 4.
//!
//! Positions of item slots only, not of all entries, is what makes the filter's list `8m` long and
//! not `32m`. For that, the slots must come out at an even pace with hardly one to spare, which the
//! sources' random order allows: how the items among the slots read so far deviate from their share
//! is bounded as in a merge. At the bottom the scan also reads 4n slots and makes only 3n of them.

use super::bloom_filter::FilterShape;
use super::config::PaperConfig;
use super::ids::{FakeNumber, ItemId, LevelId, OpaqueId};
use super::level::{Schedule, fake_name, item_name};
use super::merge_sort::Element;
use super::messages::Span;
use super::pace::{Pace, deviation};
use super::segment_sort;
use super::slot::{Block, Slot};
use oblivio_crypto::Prf;
use std::collections::VecDeque;

/// The key of a slot in a level: slots are sorted by name.
pub fn name_key(name: OpaqueId) -> u128 {
    u128::from_be_bytes(name.0)
}

/// The name of a slot with this key.
pub fn key_name(key: u128) -> OpaqueId {
    OpaqueId(key.to_be_bytes())
}

/// The element for a slot of a level.
pub fn slot_element(prf: &Prf, level: LevelId, slot: &Slot, block_bytes: usize) -> Element {
    let name = match slot {
        Slot::Item(id, _) => item_name(prf, level, *id),
        Slot::Fake(number) => fake_name(prf, level, *number),
    };
    let mut payload = Vec::new();
    slot.encode(block_bytes, &mut payload);
    Element { key: name_key(name), payload }
}

/// Why a scan stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// More items than the level has room for.
    Full,
    /// More items wait than can still come out at this pace.
    Uneven,
}

/// What a scan made of a slot that it read.
#[derive(Debug, Default)]
pub struct Made {
    /// Slots of the new level.
    pub slots: Vec<Element>,
    /// Elements of the filter's list.
    pub positions: Vec<Element>,
}

/// A scan.
#[derive(Debug)]
pub struct Scan {
    target: LevelId,
    block_bytes: usize,
    filter: FilterShape,
    /// Sources, the entries of each, and how many were asked for.
    sources: Vec<(LevelId, u64, u64)>,
    requested: u64,
    chunk: u64,
    /// Whether absent items end here.
    drops_absent: bool,
    room: u64,
    read: u64,
    items: u64,
    fakes: u64,
    slots: Stream<(ItemId, Block)>,
    ids: Stream<ItemId>,
}

/// What waits to come out at its pace.
#[derive(Debug)]
struct Stream<T> {
    pace: Pace,
    written: u64,
    waiting: VecDeque<T>,
}

impl<T> Stream<T> {
    fn new(pace: Pace) -> Self {
        Self { pace, written: 0, waiting: VecDeque::new() }
    }

    /// What is due after `read` slots; none for each that no item fills.
    fn due(&mut self, read: u64) -> impl Iterator<Item = Option<T>> {
        let count = self.pace.due(read) - self.written;
        self.written += count;
        (0..count).map(|_| self.waiting.pop_front())
    }
}

/// Entries that a scan reads.
pub fn input(schedule: &Schedule, target: LevelId) -> u64 {
    let sources = schedule.sources(target).into_iter();
    sources.map(|level| 2 * schedule.items(level.height)).sum()
}

impl Scan {
    /// The scan for a target.
    pub fn new(config: &PaperConfig, target: LevelId) -> Self {
        let schedule = &config.schedule;
        let entries = |level: LevelId| (level, 2 * schedule.items(level.height), 0);
        let (input, room) = (input(schedule, target), schedule.items(target.height));
        // Two sources deviate apart, and a request reads a chunk of one of them.
        let chunk = config.sorting.chunk as u64;
        let deviation = deviation(config.sorting.lambda_squared, input.div_ceil(2));
        let lag = (deviation + chunk) * input.div_ceil(room);
        let pace = |output| Pace { input, output, lag };
        Self {
            target,
            block_bytes: config.block_bytes,
            filter: config.filter_of(target),
            sources: schedule.sources(target).into_iter().map(entries).collect(),
            requested: 0,
            chunk,
            drops_absent: target.star && target.height == schedule.bottom(),
            room,
            read: 0,
            items: 0,
            fakes: 0,
            slots: Stream::new(pace(schedule.entries(target))),
            ids: Stream::new(pace(room)),
        }
    }

    /// The next slots to read, from each source in turn.
    pub fn next_read(&mut self) -> Option<(LevelId, Span)> {
        let turn = self.requested as usize % self.sources.len().max(1);
        let (level, entries, from) = self.sources.get_mut(turn)?;
        let count = self.chunk.min(*entries - *from);
        let span = Span { from: *from, count };
        *from += count;
        self.requested += 1;
        (count > 0).then_some((*level, span))
    }

    /// Takes a slot; what comes out.
    ///
    /// # Errors
    /// At the last slot, if not all items found room.
    pub fn take(&mut self, prf: &Prf, slot: Slot) -> Result<Made, Stop> {
        match slot {
            Slot::Item(_, None) if self.drops_absent => {}
            Slot::Item(id, block) => {
                self.items += 1;
                self.slots.waiting.push_back((id, block));
                self.ids.waiting.push_back(id);
            }
            Slot::Fake(_) => {}
        }
        self.read += 1;
        let (target, block_bytes) = (self.target, self.block_bytes);
        let mut made = Made::default();
        for item in self.slots.due(self.read) {
            let slot = item.map_or(Slot::Fake(FakeNumber(self.fakes)), |(id, b)| Slot::Item(id, b));
            self.fakes += u64::from(matches!(slot, Slot::Fake(_)));
            made.slots.push(slot_element(prf, target, &slot, block_bytes));
        }
        for (number, id) in (self.ids.written..).zip(self.ids.due(self.read)) {
            made.positions.extend(positions(prf, target, &self.filter, number, id));
        }
        if self.is_over() {
            self.check_end()?;
        }
        Ok(made)
    }

    /// Whether it read all slots.
    pub fn is_over(&self) -> bool {
        self.read == self.slots.pace.input
    }

    fn check_end(&self) -> Result<(), Stop> {
        if self.items > self.room {
            return Err(Stop::Full);
        }
        let none_waits = self.slots.waiting.is_empty() && self.ids.waiting.is_empty();
        if none_waits { Ok(()) } else { Err(Stop::Uneven) }
    }
}

/// The list elements of an item slot, with or without an item.
fn positions(
    prf: &Prf,
    level: LevelId,
    filter: &FilterShape,
    number: u64,
    id: Option<ItemId>,
) -> Vec<Element> {
    let at = match id {
        Some(id) => filter.of_item(prf, level, id),
        None => filter.of_fake(prf, level, FakeNumber(number)),
    };
    at.into_iter().map(|at| segment_sort::position(at, id.is_some())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid_paper::bloom_filter::FilterRule;
    use crate::pyramid_paper::ids::{Generation, Height, ITEM_ID_BYTES};
    use oblivio_crypto::VolumeId;
    use std::collections::BTreeSet;

    /// Large enough that the lag is a small part of the scan.
    fn config(chunk: usize) -> PaperConfig {
        let mut config = PaperConfig::new(VolumeId([0; 16]), 1 << 9, 5, 0).expect("valid");
        config.sorting.chunk = chunk;
        config.filter = FilterRule { hashes: 1, bits_per_item: 8 };
        config
    }

    fn target(height: u32, generation: u64, star: bool) -> LevelId {
        LevelId { height: Height(height), generation: Generation(generation), star }
    }

    /// Scans sources that hold `items` in all, `first` of them in the first; items and fakes are
    /// mixed by their names. Returns the slots made, the positions that set something, and the most
    /// items that ever waited.
    fn run(target: LevelId, items: u64, first: u64) -> Result<(u64, u64, usize), Stop> {
        let (config, prf) = (config(16), Prf::from_seed(1));
        let mut scan = Scan::new(&config, target);
        let sources = config.schedule.sources(target);
        let mut levels = Vec::new();
        for (at, source) in sources.iter().enumerate() {
            let entries = 2 * config.schedule.items(source.height);
            let here = if at == 0 { 0..first } else { first..items };
            let mut slots: Vec<_> = here
                .map(|number| {
                    let mut id = [0; ITEM_ID_BYTES];
                    id[..8].copy_from_slice(&number.to_le_bytes());
                    Slot::Item(ItemId(id), Some(Vec::new()))
                })
                .collect();
            let fakes = 0..entries - slots.len() as u64;
            slots.extend(fakes.map(|number| Slot::Fake(FakeNumber(number))));
            slots.sort_by_key(|slot| slot_element(&prf, *source, slot, 0).key);
            levels.push((*source, slots));
        }
        let (mut names, mut sets, mut waited) = (BTreeSet::new(), 0, 0);
        while let Some((level, span)) = scan.next_read() {
            let slots = levels.iter().find(|(of, _)| *of == level).map(|(_, slots)| slots);
            let slots = &slots.expect("a source")[span.from as usize..][..span.count as usize];
            for slot in slots {
                let made = scan.take(&prf, slot.clone())?;
                names.extend(made.slots.iter().map(|element| element.key));
                sets += made.positions.iter().filter(|it| it.payload[2] == 1).count() as u64;
                waited = waited.max(scan.ids.waiting.len()).max(scan.slots.waiting.len());
            }
        }
        assert!(scan.is_over());
        assert_eq!(names.len() as u64, config.schedule.entries(target));
        Ok((names.len() as u64, sets, waited))
    }

    /// Full levels leave no slot to spare, at every height and in the bottom, which reads 4n slots
    /// and makes 3n; and whatever the shares of the two sources are.
    #[test]
    fn full_levels_come_out_at_the_pace() {
        let room = |target: LevelId| config(16).schedule.items(target.height);
        let (star, below, sink) = (target(3, 4, true), target(4, 1, false), target(4, 3, true));
        // The share of all items that the first source has, in quarters.
        for (target, quarters) in
            [(star, 4), (below, 2), (target(4, 2, true), 4), (sink, 1), (sink, 2), (sink, 4)]
        {
            let all = room(target);
            let (_, sets, waited) = run(target, all, all * quarters / 4).expect("even enough");
            assert_eq!(sets, all, "every item has its position");
            assert!(waited as u64 <= all / 4, "{waited} of {all} waited");
        }
    }

    #[test]
    fn one_item_too_many_is_refused() {
        let target = target(4, 3, true);
        let all = config(16).schedule.items(target.height);
        assert_eq!(run(target, all + 1, all).map(|_| ()), Err(Stop::Full));
    }
}
