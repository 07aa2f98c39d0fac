//! A stored volume with known content, and its earlier stores.

use super::outcome::{Outcome, judge};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{AnyStore, Held, MemoryStore, Objects, PutMode, ReadAt};
use oblivio_testkit::Dice;
use oblivio_volume::{
    BlockSpace, CreateOptions, Error, Known, LostBytes, MemoryKeeper, OpenOptions, Volume, fuzzing,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub const SEED: u64 = 2026;

/// How much to try.
pub struct Scale {
    pub block_bytes: usize,
    pub blocks: u64,
    pub memory_bytes: usize,
    /// Commits after the first filling; enough of them begin a second pair of state objects.
    pub commits: u64,
    /// The step between changed bytes that the current commit needs.
    pub step: u64,
    /// The step between changed bytes of the slab before an opening.
    pub slab_step: u64,
    /// The step between changed bytes of objects that it does not need; all of them at once, too.
    pub void_step: u64,
    /// Approximate number of truncated lengths of each object.
    pub cuts: u64,
    /// The step between earlier commits that are mixed with the last one.
    pub rollbacks: usize,
}

pub const SAMPLE: Scale = Scale {
    block_bytes: 256,
    blocks: 200,
    memory_bytes: 64 << 10,
    commits: 4,
    step: 211,
    slab_step: 4999,
    void_step: 4999,
    cuts: 16,
    rollbacks: 2,
};
pub const FULL: Scale = Scale {
    block_bytes: 1024,
    // Not just below a power of two, so leaves lack slots.
    blocks: 880,
    memory_bytes: 1 << 20,
    commits: 50,
    step: 1,
    slab_step: 64,
    void_step: 256,
    cuts: 1024,
    rollbacks: 1,
};

/// A block's content after its write number `version`.
pub fn content(id: u64, version: u64, bytes: usize) -> Vec<u8> {
    Dice::new(id << 32 ^ version).bytes(bytes)
}

pub fn passphrase() -> Passphrase {
    Passphrase::new("correct horse")
}

pub fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

fn create(scale: &Scale, store: Arc<MemoryStore>) -> Result<Volume, Error> {
    let options = OpenOptions { memory_bytes: scale.memory_bytes, ..OpenOptions::default() };
    let (block_bytes, kdf) = (scale.block_bytes, KdfParams::TEST);
    let capacity_bytes = scale.blocks * block_bytes as u64;
    let create = CreateOptions { block_bytes, capacity_bytes: 4 * capacity_bytes, kdf };
    Volume::create(store, &passphrase(), create, options)
}

/// The last things that a crashed session did; no content follows from them: it shows the paths of
/// writes that were not synced.
fn crash(volume: &mut Volume) -> Result<(), Error> {
    let lost = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![7; 9]) };
    volume.access((0..12).map(lost).collect()).map(drop)
}

/// A stored volume, its content, and its store after each earlier commit.
pub struct World {
    pub scale: Scale,
    pub disk: MemoryStore,
    pub known: Known,
    pub versions: BTreeMap<u64, u64>,
    pub earlier: Vec<MemoryStore>,
    /// The store of a session that crashed after a few more batches.
    pub crashed: MemoryStore,
    pub dice: Dice,
}

impl World {
    pub fn make(scale: Scale) -> World {
        let store = Arc::new(MemoryStore::new());
        let mut volume = create(&scale, store.clone()).expect("an empty store");
        let (mut dice, mut versions, mut earlier) = (Dice::new(SEED), BTreeMap::new(), Vec::new());
        volume.reserve(scale.blocks).expect("within the capacity");
        for round in 0..=scale.commits {
            let ids: Vec<u64> = match round {
                0 => (0..scale.blocks).collect(),
                _ => (0..8).map(|_| dice.below(scale.blocks)).collect(),
            };
            let write = |id: &u64| {
                let bytes = content(*id, round, scale.block_bytes);
                BlockOp { id: BlockId(*id), action: Action::Write(bytes) }
            };
            volume.access(ids.iter().map(write).collect()).expect("sound");
            volume.finish().expect("sound");
            versions.extend(ids.iter().map(|id| (*id, round)));
            earlier.push(store.snapshot());
        }
        earlier.pop();
        let (known, disk) = (volume.known(), store.snapshot());
        crash(&mut volume).expect("sound");
        let crashed = store.snapshot();
        World { scale, disk, known, versions, earlier, crashed, dice }
    }

    pub fn open(&self, store: impl Into<AnyStore>) -> Result<Volume, Error> {
        let options = OpenOptions {
            memory_bytes: self.scale.memory_bytes,
            keeper: Some(Box::new(MemoryKeeper::knowing(self.known))),
            ..OpenOptions::default()
        };
        Volume::open(store, &passphrase(), options)
    }

    /// Reads blocks and compares those that are not lost with the writes.
    pub fn compare(&self, volume: &mut Volume, ids: Vec<u64>) -> Result<(), Error> {
        let outcomes = volume.access_each(ids.iter().map(|id| read(*id)).collect())?;
        for (id, outcome) in ids.iter().zip(&outcomes) {
            let expected = content(*id, self.versions[id], self.scale.block_bytes);
            let right = outcome.as_ref().is_ok_and(|answer| *answer == Some(expected));
            assert!(right || outcome.is_err(), "wrong data in block {id}");
        }
        let lost = ids.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_err());
        let ranges = lost.map(|(id, _)| *id..*id + 1).collect::<Vec<_>>();
        match ranges.is_empty() {
            true => Ok(()),
            false => Err(LostBytes { what: "the blocks".into(), ranges }.into()),
        }
    }

    /// Opens a store, verifies it and reads all of it.
    pub fn whole(&self, disk: MemoryStore) -> Outcome {
        judge(|| {
            let mut volume = self.open(Arc::new(disk))?;
            volume.verify(&mut |_, _| {})?;
            self.compare(&mut volume, (0..self.scale.blocks).collect())
        })
    }

    /// Opens a store and verifies it. After that the content follows from the tags, so it reads
    /// only a few blocks.
    pub fn quick(&self, disk: MemoryStore, at: u64) -> Outcome {
        judge(|| {
            let mut volume = self.open(Arc::new(disk))?;
            volume.verify(&mut |_, _| {})?;
            self.compare(&mut volume, vec![at % self.scale.blocks])
        })
    }

    /// Opens a store. If it reports exactly the expected commit, the state is the undamaged one,
    /// and it checks one bucket and one block.
    pub fn opened(&self, disk: MemoryStore, at: u64) -> Outcome {
        judge(|| {
            let mut volume = self.open(Arc::new(disk))?;
            let (now, then) = (volume.known(), self.known);
            assert_eq!((now.epoch, now.digest), (then.epoch, then.digest), "another commit");
            let first = fuzzing::places(&mut volume).first().map(|(part, ..)| *part);
            fuzzing::check_part(&mut volume, first.expect("it holds something"))?;
            self.compare(&mut volume, vec![at % self.scale.blocks])
        })
    }

    pub fn objects(&self) -> Vec<(String, u64)> {
        self.disk.list().expect("memory")
    }

    pub fn bytes(&self, disk: &MemoryStore, object: &str) -> Vec<u8> {
        let mut bytes = vec![0; disk.len(object).expect("memory").unwrap_or(0) as usize];
        disk.read(&mut [ReadAt { object, offset: 0, buf: &mut bytes }]).expect("it is there");
        bytes
    }

    pub fn with(&self, object: &str, bytes: &[u8]) -> MemoryStore {
        let disk = self.disk.snapshot();
        disk.put(object, bytes, PutMode::Replace).expect("memory");
        disk
    }

    pub fn without(&self, object: &str) -> MemoryStore {
        let disk = self.disk.snapshot();
        disk.delete(&[object]).expect("memory");
        disk
    }

    /// Whether an object has buckets or tables, and the alignment of those.
    pub fn is_slab(object: &str) -> Option<u64> {
        let tables = object.starts_with("tables-").then_some(4096);
        tables.or(object.starts_with("slab").then_some(512))
    }

    /// The records of the crashed session's journal.
    pub fn records(&self) -> Vec<Range<u64>> {
        let bytes = self.bytes(&self.crashed, "journal");
        let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("a number"));
        let (mut records, mut at) = (Vec::new(), 0);
        while at + 16 <= bytes.len() && number(at + 8) == self.known.epoch {
            let end = at + 16 + number(at) as usize;
            records.push(at as u64..end as u64);
            at = end;
        }
        records
    }

    /// Whether the current commit does not need an object, nor its copy: after a clean end.
    pub fn is_void(&self, object: &str) -> bool {
        let void = object == "journal";
        assert!(!void || self.whole(self.without(object)) == Outcome::NoEffect);
        void
    }
}
