//! The model: the disk's content, derived only from events, and the true place of every block.

use oblivio_engine::BlockId;
use oblivio_engine::sequential::{
    BlockHome, Candidates, Generation, GenerationBucket, GenerationSlot, Layout, LeafEntry,
    LeafRead, Origin, Placement, Planned, SequentialConfig,
};

/// Bytes of a block. Everything on the disk is a multiple of it, so that an offset is an index.
pub const UNIT: usize = 64;

/// The content of a slot of the model's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    pub block: u64,
    pub version: u32,
    pub present: bool,
    pub generation: Generation,
}

/// The true place of a block; on the disk, the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Nowhere,
    Front,
    Back,
    Disk(usize),
}

#[derive(Clone, Copy, Debug)]
pub struct Truth {
    pub version: u32,
    pub present: bool,
    pub place: Place,
}

pub struct Model {
    pub layout: Layout,
    pub placement: Placement<u32, u32>,
    pub disk: Vec<Option<Copied>>,
    pub truth: Vec<Truth>,
    pub front: Vec<u64>,
    pub back: Vec<u64>,
    /// Sweeps whose merge buffer is not yet released.
    pub sweeping: Option<Generation>,
    pub versions: u32,
}

impl Model {
    pub fn new(config: SequentialConfig) -> Self {
        let config = SequentialConfig { block_bytes: UNIT, sector_bytes: 2 * UNIT, ..config };
        let layout = Layout::new(&config).expect("sound parameters");
        let truth = Truth { version: 0, present: false, place: Place::Nowhere };
        Self {
            placement: Placement::new(layout.schedule().clone()),
            disk: vec![None; layout.bytes() as usize / UNIT],
            truth: vec![truth; config.blocks as usize],
            front: Vec::new(),
            back: Vec::new(),
            sweeping: None,
            versions: 0,
            layout,
        }
    }

    pub fn offset(&self, slot: GenerationSlot) -> usize {
        self.layout.slot(slot).offset as usize / UNIT
    }

    /// The slots of a bucket.
    pub fn slots(&self, bucket: GenerationBucket) -> impl Iterator<Item = GenerationSlot> + use<> {
        let count = self.layout.schedule().bucket_blocks(bucket.generation.level);
        let generation = bucket.generation;
        (bucket.index * count..)
            .take(count as usize)
            .map(move |index| GenerationSlot { generation, index })
    }

    pub fn write(&mut self, block: u64, present: bool) {
        self.versions += 1;
        let version = self.versions;
        let content = present.then_some(version);
        self.placement.write(BlockId(block), content).expect("no flush is due");
        self.truth[block as usize] = Truth { version, present, place: Place::Front };
        self.front.push(block);
        self.flush_if_due();
    }

    pub fn pad(&mut self) {
        self.placement.pad().expect("no flush is due");
        self.flush_if_due();
    }

    pub fn flush_if_due(&mut self) {
        if self.placement.flush_due() {
            self.flush();
        }
    }

    pub fn flush(&mut self) {
        for bucket in self.placement.wanted() {
            let entries: Vec<_> = self.slots(bucket).map(|slot| self.entry(slot)).collect();
            self.placement.supply(bucket, LeafRead::whole(entries));
        }
        for planned in self.placement.plan() {
            self.carry_out(&planned);
        }
        let flush = self.placement.flush();
        let before = self.placement.now();
        self.placement.done();
        if self.placement.now() != before {
            let schedule = self.layout.schedule().clone();
            for level in schedule.levels() {
                // The generation that this flush completed.
                if let Some(whole) = schedule.generation_at(level, flush)
                    && schedule.generation_at(level, self.placement.flush()) != Some(whole)
                {
                    assert_eq!(schedule.complete(whole), self.placement.now());
                    self.complete(whole);
                }
            }
            self.turn();
        }
    }

    pub fn entry(&self, slot: GenerationSlot) -> Option<LeafEntry<u32>> {
        let copy = self.disk[self.offset(slot)]?;
        assert_eq!(copy.generation, slot.generation, "a leaf of a generation that is gone");
        let (block, present) = (BlockId(copy.block), copy.present);
        Some(LeafEntry { block, present, lost: false, sealed: copy.version })
    }

    pub fn carry_out(&mut self, planned: &Planned<u32>) {
        let bucket = planned.bucket;
        let last = bucket.generation.level == self.layout.schedule().last();
        if last {
            self.sweeping = Some(bucket.generation);
        }
        for (slot, pick) in self.slots(bucket).zip(&planned.slots) {
            let at = self.offset(slot);
            if let Some(old) = self.disk[at] {
                let place = self.truth[old.block as usize].place;
                assert_ne!(place, Place::Disk(at), "{old:?} is current and written over");
            }
            self.disk[at] = pick.as_ref().map(|pick| {
                let block = pick.block.0;
                assert!(!last || block == slot.index, "block {block} out of its place");
                let truth = self.truth[block as usize];
                let version = match pick.origin {
                    Origin::Lost => panic!("nothing is damaged"),
                    Origin::Queue => {
                        let queued = self.placement.queue().back(pick.block).expect("queued");
                        // A discarded block has no content in the queue that could name it.
                        queued.unwrap_or_else(|| self.back_version(block))
                    }
                    Origin::Slot(from, version) => {
                        let from = self.offset(from);
                        let copy = self.disk[from].expect("a block is there");
                        assert_eq!((copy.block, copy.version), (block, version));
                        assert_eq!(copy.present, pick.present);
                        if last
                            && truth.place == Place::Disk(from)
                            && copy.generation.level == slot.generation.level
                        {
                            // Copied within the last level: current at once.
                            self.truth[block as usize].place = Place::Disk(at);
                        }
                        version
                    }
                };
                let present = pick.present;
                Copied { block, version, present, generation: bucket.generation }
            });
        }
    }

    /// The version of a discarded block on its way to level 0.
    pub fn back_version(&self, block: u64) -> u32 {
        let truth = self.truth[block as usize];
        // Rewritten since: it is no longer current, and any older version will do.
        if truth.place == Place::Back { truth.version } else { 0 }
    }

    /// A generation is complete: its newest versions are now there.
    pub fn complete(&mut self, generation: Generation) {
        let schedule = self.layout.schedule().clone();
        let last = generation.level == schedule.last();
        let mut previous: Option<u64> = None;
        let mut fakes = false;
        for index in 0..schedule.generation_buckets(generation.level) {
            for slot in self.slots(GenerationBucket { generation, index }) {
                let at = self.offset(slot);
                let Some(copy) = self.disk[at] else {
                    fakes = true;
                    continue;
                };
                assert_eq!(copy.generation, generation);
                assert!(last || !fakes, "a block behind a fake");
                assert!(previous < Some(copy.block), "not ascending, or twice");
                previous = Some(copy.block);
                let truth = &mut self.truth[copy.block as usize];
                if truth.version == copy.version {
                    truth.place = Place::Disk(at);
                }
            }
        }
        for source in schedule.sources(generation) {
            for index in 0..schedule.generation_buckets(source.level) {
                for slot in self.slots(GenerationBucket { generation: source, index }) {
                    let at = self.offset(slot);
                    let Some(copy) = self.disk[at] else { continue };
                    let truth = self.truth[copy.block as usize];
                    assert_ne!(truth.place, Place::Disk(at), "block {} left behind", copy.block);
                }
            }
        }
    }

    pub fn turn(&mut self) {
        for block in std::mem::take(&mut self.back) {
            let place = self.truth[block as usize].place;
            assert_ne!(place, Place::Back, "block {block} left in the queue");
        }
        self.back = std::mem::take(&mut self.front);
        for &block in &self.back {
            self.truth[block as usize].place = Place::Back;
        }
    }

    /// The engine finds the newest version of the block at its true place.
    pub fn check(&self, block: u64) {
        let truth = self.truth[block as usize];
        let id = BlockId(block);
        match self.placement.find(id) {
            Candidates::Nowhere => assert_eq!(truth.place, Place::Nowhere, "block {block}"),
            Candidates::Queued(content) => {
                let queued = matches!(truth.place, Place::Front | Place::Back);
                assert!(queued, "block {block} is at {:?}, not queued", truth.place);
                assert_eq!(content.copied(), truth.present.then_some(truth.version));
            }
            Candidates::Stored(BlockHome::Stored(generation)) => {
                let Place::Disk(at) = truth.place else {
                    panic!("block {block} is at {:?}, not in {generation:?}", truth.place)
                };
                let copy = self.disk[at].expect("a block is there");
                assert_eq!((copy.block, copy.version), (block, truth.version));
                assert_eq!(copy.present, truth.present);
                if generation.level == self.layout.schedule().last() {
                    let slot = self.placement.settled_slot(id).expect("swept");
                    assert_eq!(self.offset(slot), at, "block {block} in the last level");
                    assert_eq!(copy.generation, slot.generation);
                } else {
                    assert_eq!(copy.generation, generation, "block {block}");
                }
            }
            other => panic!("block {block}: {other:?}"),
        }
    }

    /// The search invariant (§5): a search from the newest to the oldest finds first the copy that
    /// the formula names.
    pub fn check_search(&self, block: u64) {
        let schedule = self.layout.schedule();
        let truth = self.truth[block as usize];
        if !matches!(truth.place, Place::Disk(_)) {
            return;
        }
        for level in schedule.levels().take(schedule.last().0 as usize) {
            for generation in schedule.live(level, self.placement.flush()).into_iter().rev() {
                if let Some(at) = self.search(generation, block) {
                    assert_eq!(truth.place, Place::Disk(at), "block {block} in {generation:?}");
                    return;
                }
            }
        }
        let slot = self.placement.settled_slot(BlockId(block)).expect("swept");
        assert_eq!(truth.place, Place::Disk(self.offset(slot)));
    }

    pub fn search(&self, generation: Generation, block: u64) -> Option<usize> {
        let schedule = self.layout.schedule();
        let count = schedule.generation_buckets(generation.level)
            * schedule.bucket_blocks(generation.level);
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            let at = self.offset(GenerationSlot { generation, index: middle });
            match self.disk[at] {
                Some(copy) if copy.block == block => return Some(at),
                Some(copy) if copy.block < block => low = middle + 1,
                _ => high = middle,
            }
        }
        None
    }
}
