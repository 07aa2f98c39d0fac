//! Hides how much is done, and when: dummy accesses up to a size class, and at a constant rate.
//!
//! A dummy reads a random block, so it is an access like any other. Padded operations show a power
//! of two of batches of one size, in whatever parts they ask for blocks; syncs show a power of two
//! of bytes. With a pace, everything the store sees happens in ticks. At fixed times each shows one
//! batch of a fixed number of operations, one record of intents and one of synced bytes, both of
//! fixed sizes. Commits follow from the number of ticks.
//!
//! With a recursive position map, a batch also shows how many map blocks it fetches first. So a
//! padded session begins by fetching all that were never fetched, and fetches new ones as the
//! volume grows, as long as the PLB holds them. Later it fetches none, whatever it does.

use crate::Result;
use crate::core::{LEAST_SYNC, Policy};
use crate::tree::tuning::{PAD_BATCH, TICK_BYTES, TICKS_BEFORE_COMMIT};
use crate::tree::volume::TreeVolume;
use oblivio_crypto::Entropy;
use oblivio_engine::{Action, BlockId, BlockOp};
use std::time::Duration;

impl TreeVolume {
    /// Fills a batch to its public size and waits for its time.
    pub(crate) fn fill_batch(&mut self, ops: &mut Vec<BlockOp>) {
        let missing = self.fixed_batch().unwrap_or(0).saturating_sub(ops.len());
        if let Some(pacer) = &mut self.account.pacer {
            pacer.wait(&*self.options.environment.clock);
        }
        ops.extend(self.dummies(missing));
    }

    /// The size of every batch, if it is fixed.
    pub(crate) fn fixed_batch(&self) -> Option<usize> {
        let padded = self.options.pad.then_some(PAD_BATCH);
        self.account.pacer.as_ref().map(|pacer| pacer.pace.batch).or(padded)
    }

    /// The least bytes of a sync's padded record.
    pub(crate) fn least_sync(&self, bytes: usize) -> usize {
        let bytes = if self.options.pad { bytes.next_power_of_two() } else { 0 };
        bytes.max(LEAST_SYNC)
    }

    fn dummies(&self, count: usize) -> Vec<BlockOp> {
        let blocks = self.ledger.engine.capacity().max(1);
        let mut randomness = self.options.environment.randomness.clone();
        let dummy =
            |_| BlockOp { id: BlockId(randomness.next_u64() % blocks), action: Action::Read };
        (0..count).map(dummy).collect()
    }

    /// With a pace, makes durable what fits into a tick's record.
    pub(crate) fn sync_tick(&mut self) -> Result<()> {
        if self.account.pacer.is_none() {
            return Ok(());
        }
        let bytes = self.tick_bytes();
        let unsynced = self.waiting.unsynced.as_mut();
        let writes = unsynced.map(|unsynced| unsynced.take_front(bytes)).unwrap_or_default();
        self.record_sync(&writes, bytes)?;
        self.waiting.root_synced(&self.ledger.root);
        Ok(())
    }

    /// The bytes that a tick's batch can carry out, so that batches keep up with syncs.
    fn tick_bytes(&self) -> usize {
        let batch = self.fixed_batch().unwrap_or(0);
        TICK_BYTES.max(batch.max(2) * self.ledger.engine.block_bytes())
    }

    /// With a pace: ticks until at most `left` bytes are not durable.
    pub(crate) fn tick_until_synced(&mut self, left: usize) -> Result<()> {
        let waits = |volume: &Self| {
            let root_waits = volume.waiting.synced_root() != volume.ledger.root;
            volume.waiting.unsynced_bytes() > left || (left == 0 && root_waits)
        };
        while waits(self) {
            self.tick()?;
        }
        Ok(())
    }

    /// One tick, for no particular caller.
    pub(crate) fn tick(&mut self) -> Result<()> {
        let ops = self.waiting.deferred.drain(self.batch_limit());
        self.serve_batch(ops)?;
        self.commit_if_due().map(drop)
    }

    /// The fixed number of ticks before a commit that carry out deferred writes.
    pub(crate) fn ticks_before_commit(&mut self) -> Result<()> {
        for _ in 0..TICKS_BEFORE_COMMIT {
            let ops = self.waiting.deferred.drain(self.batch_limit());
            self.serve_batch(ops)?;
        }
        Ok(())
    }

    /// Serves a due tick; gives the time until the next one, if there is a pace.
    pub(crate) fn serve_pace(&mut self) -> Result<Option<Duration>> {
        if self.until_tick() == Some(Duration::ZERO) {
            self.tick()?;
        }
        Ok(self.until_tick())
    }

    fn until_tick(&self) -> Option<Duration> {
        let clock = &*self.options.environment.clock;
        self.account.pacer.as_ref().map(|pacer| pacer.until(clock))
    }

    /// With batches of one size: fetches the map blocks of all existing blocks that were never
    /// fetched, if there is room. To be done when blocks are added: the store sees that moment
    /// anyway.
    pub(crate) fn fetch_map(&mut self) -> Result<()> {
        let Some(batch) = self.fixed_batch() else { return Ok(()) };
        loop {
            let read = |id| BlockOp { id, action: Action::Read };
            let ops: Vec<BlockOp> = self.ledger.engine.beyond_plb().take(batch).map(read).collect();
            if ops.is_empty() {
                return Ok(());
            }
            self.serve_batch(ops)?;
            self.commit_if_due()?;
        }
    }

    /// The most deferred operations that a commit's fixed number of ticks carries out.
    pub(crate) fn most_deferred_ops(&self) -> usize {
        match &self.account.pacer {
            Some(pacer) => TICKS_BEFORE_COMMIT * pacer.pace.batch,
            None => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{Environment, SimulatedClock};
    use crate::options::Pace;
    use crate::{BlockSpace, CreateOptions, OpenOptions};
    use oblivio_crypto::{KdfParams, Passphrase};
    use oblivio_store::record::{CallKind, StoreEvent};
    use oblivio_store::{MemoryStore, RecordStore, Store};
    use std::sync::Arc;

    fn volume(options: OpenOptions) -> (TreeVolume, Arc<RecordStore<MemoryStore>>) {
        let store = Arc::new(RecordStore::new(MemoryStore::new()));
        let create =
            CreateOptions { block_bytes: 512, capacity_bytes: 1 << 20, kdf: KdfParams::TEST };
        let passphrase = Passphrase::new("pace");
        let clock = Arc::new(SimulatedClock::default());
        let environment = Environment { clock, ..options.environment };
        let options = OpenOptions { environment, ..options };
        let shared: Arc<dyn Store> = store.clone();
        let mut volume = TreeVolume::create(shared, &passphrase, create, options).expect("memory");
        volume.reserve(256).expect("room");
        (volume, store)
    }

    fn write(id: u64) -> BlockOp {
        BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; 512]) }
    }

    /// The store's view without buckets, whose number follows from random paths, and without the
    /// sizes of a commit's writes, which follow from it.
    fn shape(store: &RecordStore<MemoryStore>) -> Vec<String> {
        let mut events = store.take();
        events.retain(|event| !event.object.starts_with("slab"));
        let len = |event: &StoreEvent| if &*event.object == "journal" { event.len } else { 0 };
        let line = |event: &StoreEvent| format!("{:?} {} {}", event.op, event.object, len(event));
        events.iter().map(line).collect()
    }

    #[test]
    fn at_a_pace_work_and_idleness_look_the_same() {
        let pace = Pace { interval: Duration::from_micros(20), batch: 4 };
        let shapes = [0u64, 1, 7].map(|work| {
            let (mut volume, store) =
                volume(OpenOptions { pace: Some(pace), ..Default::default() });
            store.take();
            for round in 0..60u64 {
                match round % 3 {
                    0 if work > 0 => {
                        volume.defer((0..work).map(write).collect()).expect("memory");
                        volume.commit().expect("memory");
                    }
                    1 if work > 1 => drop(volume.access(vec![write(3)]).expect("memory")),
                    2 if work > 0 => volume.commit().expect("memory"),
                    _ => volume.tick().expect("memory"),
                }
            }
            for _ in 0..600 {
                volume.tick().expect("memory");
            }
            shape(&store)
        });
        let least = shapes.iter().map(Vec::len).min().expect("three");
        assert!(least > 2000, "{least}");
        for (at, idle) in shapes[0][..least].iter().enumerate() {
            assert_eq!((idle, idle), (&shapes[1][at], &shapes[2][at]), "event {at}");
        }
    }

    /// Syncs wait for ticks, whatever their number and content.
    #[test]
    fn at_a_pace_a_storm_of_syncs_shows_ticks_only() {
        let pace = Pace { interval: Duration::from_micros(20), batch: 4 };
        let (mut volume, store) = volume(OpenOptions { pace: Some(pace), ..Default::default() });
        store.take();
        for round in 0..200 {
            volume.defer((0..round % 9).map(write).collect()).expect("memory");
            volume.commit().expect("memory");
        }
        let events: Vec<_> = store.take();
        let journal = events.iter().filter(|event| &*event.object == "journal");
        let ops: Vec<_> = journal.clone().map(|event| event.op).collect();
        assert!(
            ops.chunks_exact(2).all(|ops| ops == [CallKind::Write, CallKind::Sync]),
            "each is durable"
        );
        // Offsets, not lengths: zeros behind a record that extends the journal depend on its place.
        let offsets: Vec<_> = journal.step_by(2).map(|event| event.offset).collect();
        let len = |at: usize| offsets[at + 1].checked_sub(offsets[at]);
        let (intent, sync) = (len(0), len(1));
        for tick in (0..offsets.len() - 2).step_by(2) {
            assert_eq!(len(tick), intent);
            // The last sync before a commit: the journal begins again.
            assert!(len(tick + 1).is_none() || len(tick + 1) == sync);
        }
        assert!(intent.is_some() && sync.is_some());
    }

    /// With a recursive map: what a padded session shows of it follows from the volume's size.
    #[test]
    fn a_padded_session_fetches_the_map_before_anything_else() {
        let map_paths = |pad: bool, before: u64, ids: &[u64]| {
            let paths = Arc::new(std::sync::Mutex::new(Vec::new()));
            let seen = Arc::clone(&paths);
            let on_shown: crate::OnShown = Box::new(move |shown| {
                if shown.kind == crate::ShownKind::Map {
                    seen.lock().expect("alone").push(shown.leaves.len());
                }
            });
            // For 2^27 blocks the map does not fit; for 2,000 nearly 8 of its blocks are in use.
            let create =
                CreateOptions { block_bytes: 512, capacity_bytes: 1 << 36, kdf: KdfParams::TEST };
            let (store, passphrase) = (Arc::new(MemoryStore::new()), Passphrase::new("pace"));
            let open = OpenOptions::default();
            let mut volume =
                TreeVolume::create(store.clone(), &passphrase, create, open).expect("memory");
            assert_eq!(volume.tree_info().recursion_levels, 2);
            volume.reserve(before).expect("room");
            volume.finish().expect("memory");
            drop(volume);
            let open = OpenOptions { pad, on_shown: Some(on_shown), ..Default::default() };
            let mut volume = TreeVolume::open(store, &passphrase, open).expect("memory");
            volume.reserve(2000).expect("room");
            volume.pad_operation().expect("memory");
            let at_first = std::mem::take(&mut *paths.lock().expect("alone"));
            for &id in ids {
                volume.access(vec![write(id)]).expect("memory");
                volume.pad_operation().expect("memory");
            }
            let later = paths.lock().expect("alone").clone();
            (at_first, later)
        };
        let (few, many) = ([1999, 3, 7], [0, 500, 1000, 1500, 1999, 2, 502]);
        // All blocks exist at the start, or half appear during the session.
        for before in [2000, 1000] {
            let (at_first, later) = map_paths(true, before, &few);
            assert!(at_first.len() >= 2 && later.is_empty(), "{at_first:?}, {later:?}");
            assert_eq!(map_paths(true, before, &many), (at_first, later));
        }
        // Without padding, the session that used more of the map shows it.
        assert_ne!(map_paths(false, 2000, &few), map_paths(false, 2000, &many));
    }

    #[test]
    fn padded_operations_come_in_powers_of_two() {
        let batches = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = Arc::clone(&batches);
        let on_shown: crate::OnShown = Box::new(move |shown| {
            if shown.kind == crate::ShownKind::Batch {
                seen.lock().expect("alone").push(shown.leaves.len() - shown.scheduled);
            }
        });
        let open = OpenOptions { pad: true, on_shown: Some(on_shown), ..Default::default() };
        let (mut volume, _) = volume(open);
        // The parts in which an operation asks for its blocks must not show either.
        for parts in [&[1u64][..], &[3], &[4], &[1, 1, 1], &[5], &[2, 1], &[9], &[1, 7, 3]] {
            batches.lock().expect("alone").clear();
            for &count in parts {
                let ops = (0..count).map(|id| BlockOp { id: BlockId(id), action: Action::Read });
                volume.access(ops.collect()).expect("memory");
            }
            volume.pad_operation().expect("memory");
            let batches = batches.lock().expect("alone");
            let needed: u64 = parts.iter().map(|part| part.div_ceil(PAD_BATCH as u64)).sum();
            // Now and then one more access moves a block whose group rolled over.
            assert!(batches.iter().all(|&paths| (4..=5).contains(&paths)), "{batches:?}");
            assert_eq!(batches.len() as u64, needed.next_power_of_two(), "{parts:?}");
        }
    }
}
