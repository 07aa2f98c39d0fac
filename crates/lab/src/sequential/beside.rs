//! Reads of a lab disk from other threads beside the writing one. So it is served like ours: no
//! read waits for writes under way, unless they go where its block is.

use super::area::{AreaReader, BLOCK, MOST, Wanted, block_of};
use super::writes::Writes;
use oblivio_engine::BlockId;
use oblivio_volume::{BlockReader, Error, Result, TakeBlock};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Attempts overtaken by writes before writes wait for the read.
const PATIENCE: usize = 8;
/// Buffers kept for later reads.
const BUFFERS: usize = 4;

/// The places of blocks, for any thread.
pub trait Places: Send + Sync {
    /// The place of a block in its area; `None` for an absent one.
    fn slot(&self, id: u64) -> Option<u64>;
}

/// The state that the writer and the readers of a disk share.
#[derive(Default)]
pub struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Deferred writes, and those under way.
#[derive(Default)]
pub struct State {
    pub waiting: Writes,
    underway: Option<Arc<Writes>>,
    /// Places that change meanwhile.
    affected: Vec<Range<u64>>,
    /// Number of rounds of writes begun.
    rounds: u64,
    /// A write failed, so the stored state is unknown.
    failed: bool,
}

impl State {
    /// The newest content of a block, if that is not stored yet.
    pub fn newest(&self, id: u64) -> Option<&Option<Vec<u8>>> {
        let underway = || self.underway.as_ref().and_then(|writes| writes.newest(id));
        self.waiting.newest(id).or_else(underway)
    }

    fn expect_whole(&self) -> Result<()> {
        if self.failed { Err(Error::Closed("a write failed".into())) } else { Ok(()) }
    }
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the deferred writes to carry them out; they change these places.
    pub fn begin(
        &self,
        affects: impl FnOnce(u64) -> Vec<Range<u64>>,
    ) -> Result<Option<Arc<Writes>>> {
        let mut state = self.state();
        state.expect_whole()?;
        let count = state.waiting.all().len() as u64;
        if count == 0 {
            return Ok(None);
        }
        let writes = Arc::new(std::mem::take(&mut state.waiting));
        state.underway = Some(Arc::clone(&writes));
        state.affected = affects(count);
        state.rounds += 1;
        Ok(Some(writes))
    }

    /// Notes that they were carried out, or failed.
    pub fn end(&self, failed: bool) {
        let mut state = self.state();
        if failed {
            state.failed = true;
        } else {
            state.underway = None;
            state.affected.clear();
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// A reader of the disk.
pub struct Beside {
    shared: Arc<Shared>,
    places: Arc<dyn Places>,
    area: AreaReader,
    blocks: u64,
    buffers: Mutex<Vec<Vec<u8>>>,
}

/// The part of a read that must be fetched from the store.
struct Rest {
    wanted: Vec<Wanted>,
    there: Vec<bool>,
}

impl Beside {
    pub fn new(shared: Arc<Shared>, found: (Arc<dyn Places>, AreaReader), blocks: u64) -> Self {
        let (places, area) = found;
        Self { shared, places, area, blocks, buffers: Mutex::default() }
    }

    fn buffers(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies deferred blocks, and returns where the rest is; `None` if that is about to change.
    fn look(&self, state: &State, ids: &[BlockId], bytes: &mut [u8]) -> Result<Option<Rest>> {
        state.expect_whole()?;
        let (mut wanted, mut there) = (Vec::with_capacity(ids.len()), Vec::new());
        for (at, id) in ids.iter().enumerate() {
            let found = match state.newest(id.0) {
                Some(block) => {
                    if let Some(block) = block {
                        block_of(bytes, at).copy_from_slice(block);
                    }
                    block.is_some()
                }
                None => {
                    let slot = self.places.slot(id.0);
                    wanted.extend(slot.map(|slot| Wanted { at, slot }));
                    slot.is_some()
                }
            };
            there.push(found);
        }
        let changes = |wanted: &Wanted| state.affected.iter().any(|it| it.contains(&wanted.slot));
        Ok(if wanted.iter().any(changes) { None } else { Some(Rest { wanted, there }) })
    }

    /// The same, once nothing changes.
    fn find<'s>(
        &self,
        mut state: MutexGuard<'s, State>,
        ids: &[BlockId],
        bytes: &mut [u8],
    ) -> Result<(MutexGuard<'s, State>, Rest)> {
        loop {
            match self.look(&state, ids, bytes)? {
                Some(rest) => return Ok((state, rest)),
                None => {
                    let woken = self.shared.changed.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Puts blocks into `bytes`; returns which of them exist.
    fn fetch(&self, ids: &[BlockId], bytes: &mut [u8]) -> Result<Vec<bool>> {
        for _ in 0..PATIENCE {
            let (state, rest) = self.find(self.shared.state(), ids, bytes)?;
            let round = state.rounds;
            drop(state);
            let result = self.area.read_into(&rest.wanted, bytes);
            // Writes that began later may have changed what it read, whatever the result.
            if self.shared.state().rounds == round {
                return result.map(|()| rest.there);
            }
        }
        // Now none begins.
        let (_state, rest) = self.find(self.shared.state(), ids, bytes)?;
        self.area.read_into(&rest.wanted, bytes).map(|()| rest.there)
    }
}

impl BlockReader for Beside {
    fn read(&self, blocks: &[BlockId], take: &mut TakeBlock<'_>) -> Result<()> {
        if let Some(block) = blocks.iter().find(|block| block.0 >= self.blocks) {
            return Err(Error::Invalid(format!("block {} of {}", block.0, self.blocks)));
        }
        let mut bytes = self.buffers().pop().unwrap_or_default();
        for (chunk, ids) in blocks.chunks(MOST).enumerate() {
            bytes.resize(ids.len() * BLOCK, 0);
            let there = self.fetch(ids, &mut bytes)?;
            for (at, (block, there)) in bytes.chunks_exact(BLOCK).zip(there).enumerate() {
                take(chunk * MOST + at, Ok(there.then_some(block)));
            }
        }
        let mut buffers = self.buffers();
        if buffers.len() < BUFFERS {
            buffers.push(bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::sequential::area::BLOCK;
    use crate::sequential::detwo::{Areas, DetWo, Reads};
    use crate::sequential::plain::Plain;
    use oblivio_engine::{Action, BlockId, BlockOp, Lost};
    use oblivio_store::{Layer, MemoryStore, Result, StoreAnswer, StoreCall};
    use oblivio_testkit::fault::{Fault, FaultPlan, Repeat};
    use oblivio_testkit::{FaultStore, SplitMix64};
    use oblivio_volume::{BlockReader, BlockSpace};
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::sync::{Arc, Barrier};
    use std::thread;

    const BLOCKS: u64 = 600;

    /// A block that names its number and its version.
    fn block(id: u64, version: u64) -> Vec<u8> {
        [id.to_le_bytes(), version.to_le_bytes()].concat()
    }

    fn write(disk: &mut dyn BlockSpace, id: u64, version: u64) {
        let op = BlockOp { id: BlockId(id), action: Action::Write(block(id, version)) };
        disk.access(vec![op]).expect("memory");
    }

    fn read(reader: &dyn BlockReader, sure: &[AtomicU64], rng: &mut SplitMix64) {
        let ids: Vec<BlockId> = (0..1 + rng.below(9)).map(|_| BlockId(rng.below(BLOCKS))).collect();
        let before: Vec<u64> =
            ids.iter().map(|id| sure[id.0 as usize].load(Ordering::SeqCst)).collect();
        let check = &mut |at: usize, found: std::result::Result<Option<&[u8]>, Lost>| {
            let found = found.expect("nothing is lost");
            let Some(found) = found else { return assert_eq!(before[at], 0) };
            let word =
                |n: usize| found[8 * n..].first_chunk().copied().map_or(0, u64::from_le_bytes);
            assert_eq!((found.len(), word(0)), (BLOCK, ids[at].0));
            assert!(word(1) >= before[at], "version {} after {}", word(1), before[at]);
        };
        reader.read(&ids, check).expect("nothing was tampered with");
    }

    fn stress(mut disk: Box<dyn BlockSpace>) {
        let (sure, ended): (Vec<_>, _) =
            ((0..BLOCKS).map(|_| AtomicU64::new(0)).collect(), AtomicBool::new(false));
        let reader = disk.reader().expect("others may read");
        thread::scope(|scope| {
            for seed in 1..4 {
                let (reader, sure, ended) = (&*reader, &sure, &ended);
                scope.spawn(move || {
                    let mut rng = SplitMix64::new(seed);
                    while !ended.load(Ordering::SeqCst) {
                        read(reader, sure, &mut rng);
                    }
                });
            }
            let mut rng = SplitMix64::new(0);
            for version in 1..30_000 {
                let id = rng.below(BLOCKS);
                write(&mut *disk, id, version);
                sure[id as usize].store(version, Ordering::SeqCst);
            }
            ended.store(true, Ordering::SeqCst);
        });
        let past = reader.read(&[BlockId(BLOCKS)], &mut |_, _| {});
        assert!(past.is_err());
    }

    #[test]
    fn what_was_written_before_a_read_is_read() {
        let store = || Arc::new(MemoryStore::new());
        stress(Box::new(Plain::create(store(), BLOCKS)));
        for every in [1, 3] {
            let areas = Areas { blocks: BLOCKS, every, reads: Reads::Known };
            stress(Box::new(DetWo::create(store(), areas).expect("a disk")));
        }
    }

    #[test]
    fn after_a_write_that_failed_nobody_waits_for_ever() {
        let plan = FaultPlan::new();
        let store = Arc::new(FaultStore::new(MemoryStore::new(), plan.clone()));
        let areas = Areas { blocks: BLOCKS, every: 3, reads: Reads::Known };
        let mut disk = DetWo::create(store, areas).expect("a disk");
        (0..BLOCKS).for_each(|id| write(&mut disk, id, 1));
        disk.commit().expect("memory");
        let reader = disk.reader().expect("others may read");
        plan.fail_in(0, Fault { repeat: Repeat::FromThenOn, ..Fault::once() });
        let again = |disk: &mut DetWo| {
            let op = |id| BlockOp { id: BlockId(id), action: Action::Write(block(id, 2)) };
            disk.access((0..BLOCKS).map(op).collect()).and_then(|_| disk.commit())
        };
        assert!(again(&mut disk).is_err());
        plan.clear();
        assert!(again(&mut disk).is_err(), "nobody knows what is stored");
        for id in 0..BLOCKS {
            assert!(reader.read(&[BlockId(id)], &mut |_, _| {}).is_err());
        }
    }

    /// A store in which the first read of a thread with this name waits at both barriers.
    struct Gate(MemoryStore, [Barrier; 2], AtomicBool);
    const LATE: &str = "late";

    impl Layer for Gate {
        type Below = MemoryStore;

        fn below(&self) -> &MemoryStore {
            &self.0
        }

        fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
            let late = matches!(call, StoreCall::Read(_)) && thread::current().name() == Some(LATE);
            if late && !self.2.swap(true, Ordering::SeqCst) {
                for barrier in &self.1 {
                    barrier.wait();
                }
            }
            call.on(&self.0)
        }
    }

    /// Between the lookup and the read of a block, its place became another block's.
    #[test]
    fn a_read_that_writes_overtook_is_made_again() {
        let barriers = [Barrier::new(2), Barrier::new(2)];
        let gate = Arc::new(Gate(MemoryStore::new(), barriers, AtomicBool::new(false)));
        let areas = Areas { blocks: BLOCKS, every: 3, reads: Reads::Known };
        let mut disk = DetWo::create(gate.clone(), areas).expect("a disk");
        (0..BLOCKS).for_each(|id| write(&mut disk, id, 1));
        // Stored, and in the holding area only.
        let id = BLOCKS / 2;
        let reader = disk.reader().expect("others may read");
        let late = thread::Builder::new().name(LATE.into()).spawn(move || {
            let mut found = Vec::new();
            let take = &mut |_, block: std::result::Result<Option<&[u8]>, Lost>| {
                found.extend(block.ok().flatten().map(<[u8]>::to_vec));
            };
            reader.read(&[BlockId(id)], take).expect("nothing was tampered with");
            found
        });
        gate.1[0].wait();
        (0..5 * BLOCKS).for_each(|at| write(&mut disk, at % id, 2));
        gate.1[1].wait();
        let found = late.expect("a thread").join().expect("no panic");
        assert_eq!(found[0][..16], block(id, 1));
    }
}
