//! The engine's memory with windows: what each commit stores.
//!
//! A commit stores a *part*. The last [`Windows::kept`] parts together are the whole memory, and
//! each has the same size, whatever happened. A part holds (docs/format.md §"Parts"):
//! - the counters, the shapes at the windows, the tags of the buckets right below the pool;
//! - what changed since the part before: counters of the map, removed blocks, liveness;
//! - a share of the map and of the bits, by turns;
//! - the list of the blocks in memory, each with the part that has its content;
//! - contents: of the blocks accessed since the part before, and of those whose content is in the
//!   oldest parts.

use super::bitset::SlotId;
use super::bounds::{EMPTY, padded};
use super::bucket_cache::Resident;
use super::delta::distinct;
use super::frontend::{TreeJob, TreeOram};
use super::geometry::{Shape, SlotHeader, buckets_in};
use super::window_records::Record;
use super::windows::{Shapes, Windows};
use crate::wire::{Reader, Writer};
use crate::{BucketId, EngineError, Label, Level, Result};
use oblivio_crypto::TAG_BYTES;
use std::collections::BTreeMap;

/// The room for blocks that are in no bucket when a commit comes, in blocks, beside those of the
/// open window.
const STASH_ROOM: usize = 64;
/// The most shapes of a state: more than any tree has levels and leaf slots.
const MOST_SHAPES: u64 = 1 << 10;

impl Windows {
    /// The most blocks that the pool is expected to hold, with this many slots in a bucket. It is
    /// never nearly full: a schedule keeps half of the slots empty (Ring ORAM §4).
    fn pool_blocks(self, slots: usize) -> usize {
        self.pool_buckets() as usize * slots * 3 / 4
    }

    /// The number of parts that hold the whole memory.
    pub fn kept(self, slots: usize) -> u64 {
        (self.pool_blocks(slots) as u64).div_ceil(self.accesses()).max(1)
    }

    /// The number of contents in a part, by the accesses since the part before: one for each, in
    /// whole windows, and those of one window besides. Only a replay has more than one window.
    fn contents(self, accesses: u64) -> usize {
        let windows = accesses.div_ceil(self.accesses()).max(1);
        (windows + 1) as usize * self.accesses() as usize
    }
}

impl TreeOram {
    /// The rule of the windows, if the schedule has them.
    pub fn windows(&self) -> Option<Windows> {
        self.config.eviction.windows()
    }

    /// The windows so far: the number of the next one.
    pub fn windows_done(&self) -> u64 {
        self.windows().map_or(0, |rule| self.schedule.turns >> rule.log_turns)
    }

    /// The shapes of the tree at its windows.
    pub fn shapes(&self) -> &Shapes {
        &self.windows.shapes
    }

    /// Accesses until a window is due; 0 if one is.
    pub fn accesses_to_window(&self) -> Option<u64> {
        let rule = self.windows()?;
        let done = (self.schedule.turns - self.schedule.ahead) * u64::from(rule.every);
        Some((done + rule.accesses()).saturating_sub(self.schedule.accesses))
    }

    /// Begins a window that is due. It needs no intent: its paths follow from the counters.
    ///
    /// # Errors
    /// `Invalid` without windows and while a job is under way.
    pub fn begin_window(&mut self) -> Result<TreeJob> {
        let Some(rule) = self.windows() else {
            return Err(EngineError::Invalid("this tree has no windows".into()));
        };
        let job = self.begin_maintenance(rule.turns())?;
        self.schedule.ahead -= rule.turns();
        Ok(job)
    }

    /// Notes a window that begins now, ahead of its turn unless [`Self::begin_window`] says else.
    pub(super) fn note_window(&mut self, turns: u64) -> Result<()> {
        match self.windows() {
            Some(rule) if rule.turns() != turns => {
                Err(EngineError::Invalid("a window has another number of turns".into()))
            }
            Some(_) => {
                self.schedule.ahead += turns;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Notes the shape of the window whose round begins.
    pub(super) fn note_shape(&mut self) {
        let window = self.windows_done();
        let leaves = &self.tree.leaves;
        let shape = Shape { depth: leaves.depth, leaf_slots: leaves.leaf_room };
        self.windows.shapes.note(window, shape);
    }

    /// All blocks in memory, each with its bucket; in none, 0.
    fn residents(&self) -> Vec<(u64, Resident)> {
        let cache = &self.tree.cache;
        let buckets = cache.limit().min(buckets_in(self.tree.leaves.depth));
        let pool = (1..=buckets).flat_map(|bucket| {
            cache.blocks_if_touched(BucketId(bucket)).iter().map(move |block| (bucket, *block))
        });
        let stash = self.tree.stash.iter().map(|block| (0, *block));
        pool.chain(stash).filter(|(_, block)| !self.tree.is_dead(block.header.id)).collect()
    }

    /// Appends the part of commit `number`, from 1 on, right after a window or within one. Call
    /// [`Self::committed`] once it is durable.
    pub fn part(&mut self, number: u64, out: &mut Vec<u8>) {
        let Some(rule) = self.windows() else { return };
        let (residents, contents) = self.choose_contents(rule, number);
        let mut out = Writer(out);
        self.write_scalars(&mut out);
        out.u64(self.schedule.ahead);
        out.u64(self.windows.shapes.all().len() as u64);
        for (window, shape) in self.windows.shapes.all() {
            out.words(&[*window, u64::from(shape.depth.0), shape.leaf_slots as u64]);
        }
        for bucket in 1 << (rule.pool_levels - 1)..1u64 << rule.pool_levels {
            let tags = self.tree.cache.tags_if_touched(BucketId(bucket));
            tags.iter().for_each(|tag| out.bytes(&tag.0));
        }
        self.write_backlog(&mut out);
        self.write_changes(&mut out);
        self.write_share(rule, number, &mut out);
        let slots = self.config.blocks_per_bucket;
        let room = rule.pool_blocks(slots) + rule.accesses() as usize + STASH_ROOM;
        let listed = padded(residents.len(), room);
        out.u64(listed as u64);
        for (bucket, block) in &residents {
            let (header, record) = (block.header, self.windows.records[&block.header.id]);
            let (id, label) = (header.stored_id(), header.label.0);
            out.words(&[id, label, *bucket, record.commit, record.slot]);
        }
        for _ in residents.len()..listed {
            out.words(&[EMPTY, 0, 0, 0, 0]);
        }
        let places = padded(contents.len(), rule.contents(self.accesses_since_part()));
        out.u64(places as u64);
        for block in &contents {
            out.bytes(self.tree.pool.get(block.payload));
        }
        out.zeros((places - contents.len()) * self.config.block_bytes);
        self.windows.accesses = self.schedule.accesses;
    }

    fn accesses_since_part(&self) -> u64 {
        self.schedule.accesses - self.windows.accesses
    }

    /// The blocks in memory, and those whose content goes into this part: all that have no current
    /// record, all whose record leaves the kept parts, and further ones with the oldest records.
    fn choose_contents(
        &mut self,
        rule: Windows,
        number: u64,
    ) -> (Vec<(u64, Resident)>, Vec<Resident>) {
        let residents = self.residents();
        let before = std::mem::take(&mut self.windows.records);
        let mut by_age = Vec::with_capacity(residents.len());
        for (_, block) in &residents {
            let record = before.get(&block.header.id);
            let current = record.filter(|record| record.label == block.header.label);
            if let Some(record) = current {
                self.windows.records.insert(block.header.id, *record);
            }
            by_age.push((current.map_or(0, |record| record.commit), *block));
        }
        by_age.sort_by_key(|(commit, _)| *commit);
        let kept = rule.kept(self.config.blocks_per_bucket);
        let must = by_age.partition_point(|(commit, _)| commit + kept <= number);
        by_age.truncate(padded(must, rule.contents(self.accesses_since_part())));
        for (slot, (_, block)) in by_age.iter().enumerate() {
            let (id, label) = (block.header.id, block.header.label);
            let record = Record { label, commit: number, slot: slot as u64 };
            self.windows.records.insert(id, record);
        }
        (residents, by_age.into_iter().map(|(_, block)| block).collect())
    }

    /// The changes since the last part.
    fn write_changes(&self, out: &mut Writer<'_>) {
        let (tree, changes) = (&self.tree, &self.tree.changes);
        let entries = distinct(&changes.entries);
        out.words(&[changes.requests, changes.paths]);
        for &index in &entries {
            out.words(&[index, self.config.map_format.get(&self.on_chip, index as usize)]);
        }
        for _ in entries.len() as u64..changes.requests {
            out.words(&[EMPTY, 0]);
        }
        let mut removed = distinct(&changes.removed);
        removed.retain(|&slot| tree.marks.removed.get(slot));
        removed.iter().for_each(|slot| out.u64(slot.0));
        for _ in removed.len() as u64..changes.paths {
            out.u64(EMPTY);
        }
        self.write_live_words(out);
    }

    fn read_changes(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let (requests, paths) = (input.u64()?, input.u64()?);
        let entries = self.config.blocks_by_level(self.size.blocks)[self.levels - 1];
        for _ in 0..requests {
            let (index, count) = (input.u64()?, input.u64()?);
            if index != EMPTY {
                if index >= entries {
                    return Err(EngineError::State("a map entry is out of range"));
                }
                self.config.map_format.set(&mut self.on_chip, index as usize, count);
            }
        }
        for _ in 0..paths {
            let slot = input.u64()?;
            if slot != EMPTY {
                if slot >= self.slot_count() {
                    return Err(EngineError::State("a slot is out of range"));
                }
                self.tree.marks.removed.set(SlotId(slot), true);
            }
        }
        self.read_live_words(input)
    }

    /// Slots of all buckets, with the one that is not there.
    pub(super) fn slot_count(&self) -> u64 {
        (buckets_in(self.tree.leaves.depth) + 1) * self.config.blocks_per_bucket as u64
    }

    /// Loads the memory from the last [`Windows::kept`] parts, or all if there are fewer, ascending
    /// by their commits. The engine must be new.
    ///
    /// # Errors
    /// `State` when the bytes are no such parts.
    pub fn restore_parts(&mut self, parts: &[(u64, &[u8])]) -> Result<()> {
        let Some(rule) = self.windows() else {
            return Err(EngineError::State("this tree has no windows"));
        };
        let mut turns = None;
        let mut rests = BTreeMap::new();
        for (at, &(number, part)) in parts.iter().enumerate() {
            let mut input = Reader(part);
            self.read_scalars(&mut input)?;
            self.schedule.ahead = input.u64()?;
            let aligned = |turns: u64| turns.is_multiple_of(rule.turns());
            if !aligned(self.schedule.turns)
                || !aligned(self.schedule.ahead)
                || self.schedule.ahead > self.schedule.turns
            {
                return Err(EngineError::State("a window is cut"));
            }
            // Only the first commit of all knows what came before it.
            let before = turns.unwrap_or(if number == 1 { 0 } else { self.schedule.turns });
            self.read_shapes(&mut input)?;
            let tags = input.bytes(TAG_BYTES << rule.pool_levels)?;
            self.pending.clear();
            self.read_backlog(&mut input)?;
            self.forget_removed(rule, before)?;
            self.read_changes(&mut input)?;
            self.read_share(rule, number, &mut input)?;
            turns = Some(self.schedule.turns);
            let list = read_list(&mut input)?;
            let places = input.u64()?;
            rests.insert(number, (places, input.0));
            if at + 1 == parts.len() {
                self.take_tags(rule, tags)?;
                self.take_residents(rule, &list, &rests)?;
            }
        }
        self.size.live = self.tree.marks.live.count();
        self.windows.accesses = self.schedule.accesses;
        self.find_stored(rule);
        Ok(())
    }

    fn read_shapes(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let broken = EngineError::State("the shapes do not parse");
        let count = input.u64()?;
        let mut shapes = Vec::new();
        for _ in 0..count.min(MOST_SHAPES) {
            let [window, depth, leaf_slots] = [input.u64()?, input.u64()?, input.u64()?];
            if depth > 62 || leaf_slots > self.config.blocks_per_bucket as u64 {
                return Err(broken);
            }
            let shape = Shape { depth: Level(depth as u32), leaf_slots: leaf_slots as usize };
            shapes.push((window, shape));
        }
        let shapes = Shapes::of(shapes).filter(|shapes| shapes.all().len() as u64 == count);
        self.windows.shapes = shapes.ok_or(broken)?;
        Ok(())
    }

    /// Forgets the removed blocks of the buckets that windows rewrote since turn `before`.
    fn forget_removed(&mut self, rule: Windows, before: u64) -> Result<()> {
        let (first, done) = (before >> rule.log_turns, self.windows_done());
        let deepest = self.tree.leaves.depth.0;
        // Further back, every bucket had its turn more than once.
        let round = 1 << deepest.saturating_sub(rule.log_turns);
        for window in first.max(done.saturating_sub(round))..done {
            for level in (rule.pool_levels..=deepest).map(Level) {
                for index in 0..rule.turns() {
                    let bucket = rule.bucket(super::BucketSpot { level, window, index });
                    self.tree.clear_removed(bucket);
                }
            }
        }
        match first <= done {
            true => Ok(()),
            false => Err(EngineError::State("its windows run backwards")),
        }
    }

    fn take_tags(&mut self, rule: Windows, tags: &[u8]) -> Result<()> {
        for bucket in 1..1u64 << rule.pool_levels {
            let meta = self.tree.cache.meta_mut(BucketId(bucket));
            (meta.loaded, meta.dirty) = (true, true);
        }
        let mut tags = Reader(tags);
        for bucket in 1 << (rule.pool_levels - 1)..1u64 << rule.pool_levels {
            self.tree.cache.meta_mut(BucketId(bucket)).child_tags = [tags.tag()?, tags.tag()?];
        }
        Ok(())
    }

    /// Puts the listed blocks where they were, with the contents in these parts.
    fn take_residents(
        &mut self,
        rule: Windows,
        list: &[Listed],
        parts: &BTreeMap<u64, (u64, &[u8])>,
    ) -> Result<()> {
        let bytes = self.config.block_bytes;
        for it in list {
            let (header, record) = (it.header, it.record);
            let content = parts.get(&record.commit).and_then(|(places, rest)| {
                let at = (record.slot < *places).then(|| record.slot as usize * bytes)?;
                rest.get(at..at + bytes)
            });
            let content = content.ok_or(EngineError::State("a block's content is missing"))?;
            let payload = self.tree.pool.store(content);
            let block = Resident { header, payload, slot: 0, home: 0 };
            self.windows.records.insert(header.id, record);
            let bucket = BucketId(it.bucket);
            if it.bucket == 0 {
                self.tree.stash.push(block);
                continue;
            }
            let fits = bucket.0 <= rule.pool_buckets()
                && header.label.bucket_at(bucket.level()) == bucket
                && self.tree.cache.blocks(bucket).len() < self.config.blocks_per_bucket;
            if !fits {
                return Err(EngineError::State("a block is where it cannot be"));
            }
            self.tree.cache.push(bucket, block);
        }
        Ok(())
    }

    /// Finds out which buckets are stored, and with how many slots.
    fn find_stored(&mut self, rule: Windows) {
        let (done, full) = (self.windows_done(), self.config.blocks_per_bucket);
        for bucket in rule.first_stored().0..=buckets_in(self.tree.leaves.depth) {
            let bucket = BucketId(bucket);
            let slots = rule
                .spot(bucket, done)
                .map_or(0, |spot| self.windows.shapes.slots(spot.level, spot.window, full));
            self.tree.marks.present.set(bucket, slots > 0);
            self.tree.marks.missing.set(bucket, if slots > 0 { full - slots } else { 0 });
        }
    }
}

/// A block in memory, as a part lists it.
struct Listed {
    header: SlotHeader,
    /// 0 for none.
    bucket: u64,
    record: Record,
}

fn read_list(input: &mut Reader<'_>) -> Result<Vec<Listed>> {
    let mut list = Vec::new();
    for _ in 0..input.u64()? {
        let [id, label] = [input.u64()?, input.u64()?];
        let [bucket, commit, slot] = [input.u64()?, input.u64()?, input.u64()?];
        if id != EMPTY {
            let header = SlotHeader::of(id, Label(label), SlotHeader::VACANT.mac);
            let record = Record { label: header.label, commit, slot };
            list.push(Listed { header, bucket, record });
        }
    }
    Ok(list)
}
