//! A volume: an engine's buckets in a slab, its memory in a sealed state, commits over both.
//!
//! A commit writes, in this order, each durable before the next: buckets (to free slots), the
//! sealed state (a delta on its log, or a new checkpoint), the commit record. Until the record is
//! durable a crash leaves the commit before, whole.

use crate::block::{BlockSpace, ROOT_BYTES};
use crate::commit::{read_commit, write_commit};
use crate::header::{FORMAT_VERSION, HEADER_OBJECT, Header};
use crate::intent::IntentLog;
use crate::options::{CreateOptions, DEFAULT_MEMORY, OpenOptions, Seen, Shown, VolumeInfo};
use crate::slab::{SLAB_OBJECT, Slab, SlotTable};
use crate::state::{Parts, Slots, StateLog, begin};
use crate::{Error, Result};
use oblivio_crypto::{MasterKey, OsEntropy, Passphrase, Sealer, VolumeId};
use oblivio_engine::tree::{
    Eviction, Recursion, STASH_BOUND, TreeConfig, TreeKeys, TreeOram, buckets_in,
};
use oblivio_engine::{BlockAnswer, BlockOp, Engine, EngineError, Step};
use oblivio_store::{PutMode, Store};
use std::sync::Arc;

/// The smallest number of blocks that a tree is made for.
const LEAST_BLOCKS: u64 = 64;
/// The most operations in a batch, and the most bytes that it may read: more would fall out of
/// the processor's caches between being read and being opened.
const MOST_OPS: usize = 256;
const MOST_BATCH: usize = 8 << 20;
/// Written bytes after which a commit is due whatever else happens; beyond it, an eighth of the
/// volume. The rule looks at public numbers only.
const COMMIT_BYTES: u64 = 16 << 20;

/// An open volume.
pub struct Volume {
    store: Arc<dyn Store>,
    volume: VolumeId,
    passphrases: usize,
    engine: TreeOram,
    slab: Slab,
    intents: IntentLog,
    state: StateLog,
    commit_sealer: Sealer,
    root: Vec<u8>,
    memory_bytes: usize,
    replayed: u64,
    options: OpenOptions,
    /// Why this handle is unusable, if it is.
    failed: Option<String>,
}

/// The engine of a new volume.
fn config_of(create: &CreateOptions) -> TreeConfig {
    let block_bytes = create.block_bytes;
    let capacity = create.capacity_bytes.div_ceil(block_bytes as u64).max(LEAST_BLOCKS);
    TreeConfig {
        eviction: Eviction::Scheduled { every: 3 },
        // A map up to this size is all in memory, so that the count of accesses is the same for
        // every request; beyond it the map recurses through the PLB.
        on_chip_bytes: 64 << 20,
        recursion: Recursion::Unified { plb_bytes: (4 << 20).max(64 * block_bytes), plb_ways: 8 },
        ..TreeConfig::new(block_bytes, capacity)
    }
}

/// What the budget leaves for the top of the tree: all but a quarter (batches and the file
/// layer's caches), what is known of each block and bucket, and a checkpoint while it is written.
fn cache_bytes(config: &TreeConfig, memory_bytes: usize, blocks: u64) -> Result<usize> {
    let counts = config.blocks_by_level(blocks);
    let map = config.map_format.bytes_for(counts[counts.len() - 1]);
    let buckets = buckets_in(config.depth(0, blocks)) as usize;
    // Slot table, free list and bits in memory; table and bits again in the checkpoint.
    let known = 2 * map + buckets * (4 + 4 + 4 + config.blocks_per_bucket / 4 + 1);
    let stash = STASH_BOUND * config.block_bytes;
    let needed = known + stash + memory_bytes / 4;
    memory_bytes.checked_sub(needed).ok_or_else(|| {
        let least = ((known + stash) / 3 * 4 / (1 << 20) + 1).next_power_of_two();
        Error::Invalid(format!("this volume needs more memory; give it --memory {least}M or more"))
    })
}

impl Volume {
    /// Creates a volume in an empty store and opens it.
    ///
    /// # Errors
    /// `Exists` when there is a volume already, `Invalid` when there is something else or the
    /// options make no sense.
    pub fn create(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        create: CreateOptions,
        open: OpenOptions,
    ) -> Result<Volume> {
        store.lock()?;
        let objects = store.list()?;
        if objects.iter().any(|(name, _)| name == HEADER_OBJECT) {
            return Err(Error::Exists("a volume".into()));
        }
        if let Some((name, _)) = objects.first() {
            return Err(Error::Invalid(format!("the store is not empty: it holds {name:?}")));
        }
        let (header, master) = Header::create(&config_of(&create), passphrase, create.kdf)?;
        let mut volume = Self::assemble(store, &header, &master, open)?;
        volume.write_commit()?;
        // The header comes last: before it there is no volume.
        header.save(&*volume.store, PutMode::IfAbsent)?;
        volume.announce()?;
        Ok(volume)
    }

    /// Opens a volume; replays what a crashed session had shown.
    ///
    /// # Errors
    /// `WrongPassphrase`, `Unsupported`, `Tampered`, `RolledBack`, `Busy`.
    pub fn open(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        open: OpenOptions,
    ) -> Result<Volume> {
        store.lock()?;
        let header = Header::load(&*store)?;
        let master = header.unlock(passphrase)?;
        let mut volume = Self::assemble(store, &header, &master, open)?;
        volume.load()?;
        volume.refuse_rollback()?;
        volume.slab.trim(&*volume.store)?;
        volume.replay()?;
        volume.announce()?;
        Ok(volume)
    }

    fn assemble(
        store: Arc<dyn Store>,
        header: &Header,
        master: &MasterKey,
        options: OpenOptions,
    ) -> Result<Self> {
        let volume = header.volume();
        let memory_bytes =
            if options.memory_bytes == 0 { DEFAULT_MEMORY } else { options.memory_bytes };
        let config = header.config();
        let blocks = LEAST_BLOCKS.min(config.capacity);
        let cache_bytes = cache_bytes(&config, memory_bytes, blocks)?;
        let config = TreeConfig { cache_bytes, ..config };
        let engine = TreeOram::new(config, blocks, TreeKeys::of_volume(master, volume))
            .map_err(|error| Error::Invalid(error.to_string()))?;
        let sealer = |root| Sealer::new(root, Box::new(OsEntropy));
        Ok(Self {
            slab: Slab::new(engine.bucket_bytes(oblivio_engine::TreeId::DATA)),
            intents: IntentLog::new(volume, sealer(master.intent_root(volume)), 0),
            state: StateLog::new(volume, sealer(master.state_root(volume))),
            commit_sealer: sealer(master.commit_root(volume)),
            store,
            volume,
            passphrases: header.public().passphrases,
            engine,
            root: Vec::new(),
            memory_bytes,
            replayed: 0,
            options,
            failed: None,
        })
    }

    /// Reads the newest commit and the state that it names.
    fn load(&mut self) -> Result<()> {
        let record = read_commit(&*self.store, &mut self.commit_sealer, self.volume)?;
        let mut table = SlotTable::default();
        for (index, plain) in self.state.load(&*self.store, record)?.iter().enumerate() {
            let parts = match index {
                0 => Parts::of_checkpoint(plain)?,
                _ => Parts::of_delta(plain)?,
            };
            self.root = parts.root.to_vec();
            match index {
                0 => self.engine.restore(parts.engine),
                _ => self.engine.apply_delta(parts.engine),
            }
            .map_err(engine_error)?;
            table.apply(&parts.slots, buckets_in(self.engine.depth()))?;
        }
        let bucket_bytes = self.engine.bucket_bytes(oblivio_engine::TreeId::DATA);
        let slab_bytes = self.store.len(SLAB_OBJECT)?.unwrap_or(0);
        self.slab = Slab::restore(bucket_bytes, table, slab_bytes)?;
        self.intents.restart(record.epoch());
        self.fit_cache(self.engine.capacity())
    }

    /// Gives the cache what the budget leaves when `blocks` are addressable.
    fn fit_cache(&mut self, blocks: u64) -> Result<()> {
        let bytes = cache_bytes(self.engine.config(), self.memory_bytes, blocks)?;
        self.engine.set_cache_bytes(bytes).map_err(engine_error)
    }

    /// Compares with what this computer has seen.
    fn refuse_rollback(&self) -> Result<()> {
        let Some(seen) = self.options.last_seen else { return Ok(()) };
        if seen.volume != self.volume || self.options.accept_rollback {
            return Ok(());
        }
        let now = self.seen();
        if now.epoch < seen.epoch {
            return Err(Error::RolledBack(format!(
                "the volume is at commit {}, but this computer saw commit {}",
                now.epoch, seen.epoch
            )));
        }
        if now.epoch == seen.epoch && now.digest != seen.digest {
            return Err(Error::RolledBack(format!(
                "commit {} is another one than the one this computer saw",
                now.epoch
            )));
        }
        Ok(())
    }

    /// Shows again what a crashed session showed since its last commit, and commits.
    fn replay(&mut self) -> Result<()> {
        let intents = self.intents.load(&*self.store)?;
        for intent in &intents {
            self.engine.replay(intent).map_err(engine_error)?;
            self.run()?;
            self.engine.take_answers();
        }
        self.replayed = intents.len() as u64;
        if intents.is_empty() { Ok(()) } else { self.write_commit() }
    }

    /// Carries out what the engine wants.
    fn run(&mut self) -> Result<()> {
        let mut shown = self.options.on_shown.is_some().then(|| Shown {
            leaves: Vec::new(),
            depth: self.engine.depth().0,
            reads: 0,
            writes: 0,
            bytes_read: 0,
            bytes_written: 0,
            places_read: Vec::new(),
            places_written: Vec::new(),
        });
        loop {
            match self.engine.step().map_err(engine_error)? {
                Step::Done => break,
                Step::Read { shown: leaves, buckets, into, .. } => {
                    if let Some(shown) = &mut shown {
                        shown.leaves.extend(leaves.iter().map(|leaf| leaf.0));
                        shown.reads += buckets.len() as u32;
                        shown.bytes_read += into.len() as u64;
                        let places = buckets.iter().filter_map(|bucket| self.slab.place(*bucket));
                        shown.places_read.extend(places);
                    }
                    self.slab.read(&*self.store, buckets, into)?;
                }
                Step::Write { buckets, from, .. } => {
                    self.slab.write(&*self.store, buckets, from)?;
                    if let Some(shown) = &mut shown {
                        shown.writes += buckets.len() as u32;
                        shown.bytes_written += from.len() as u64;
                        let places = buckets.iter().filter_map(|bucket| self.slab.place(*bucket));
                        shown.places_written.extend(places);
                    }
                }
            }
        }
        if let (Some(shown), Some(report)) = (shown, &mut self.options.on_shown)
            && !shown.leaves.is_empty()
        {
            report(&shown);
        }
        Ok(())
    }

    fn serve_batch(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        self.engine.submit(ops).map_err(engine_error)?;
        self.intents.append(&*self.store, self.engine.intent())?;
        self.run()?;
        let answers = self.engine.take_answers();
        if self.slab.uncommitted_bytes() > COMMIT_BYTES.max(self.slab.current_bytes() / 8) {
            self.write_commit()?;
            self.announce()?;
        }
        Ok(answers)
    }

    /// Operations that are served as one batch: as many as fit an eighth of the memory budget.
    fn batch_limit(&self) -> usize {
        let bucket_bytes = self.engine.bucket_bytes(oblivio_engine::TreeId::DATA);
        let cached_levels = self.engine.cached_buckets().checked_ilog2().unwrap_or(0);
        let levels = (self.engine.depth().0 + 1).saturating_sub(cached_levels).max(1);
        // Reads of the access and its share of scheduled paths, and their writes.
        let access_bytes = 2 * levels as usize * bucket_bytes;
        (MOST_BATCH.min(self.memory_bytes / 8) / access_bytes).clamp(1, MOST_OPS)
    }

    /// Flushes the engine, stores the state, and makes both current.
    fn write_commit(&mut self) -> Result<()> {
        self.engine.begin_flush().map_err(engine_error)?;
        self.run()?;
        self.slab.forget(&self.engine.dropped());
        if self.slab.uncommitted_bytes() > 0 {
            self.store.sync(&[SLAB_OBJECT])?;
        }
        let record = if self.state.wants_checkpoint() {
            let mut out = begin(&self.root, &Slots::All(self.slab.table()));
            self.engine.checkpoint(&mut out).map_err(engine_error)?;
            self.state.write_checkpoint(&*self.store, out)?
        } else {
            let mut out = begin(&self.root, &Slots::Changed(self.slab.changes()));
            self.engine.delta(&mut out);
            self.state.write_delta(&*self.store, out)?
        };
        write_commit(&*self.store, &mut self.commit_sealer, self.volume, &record)?;
        self.state.committed(record);
        self.engine.committed();
        self.slab.committed();
        self.intents.restart(record.epoch());
        self.slab.reclaim(&*self.store)
    }

    fn announce(&mut self) -> Result<()> {
        let seen = self.seen();
        match &mut self.options.on_commit {
            Some(report) => report(&seen),
            None => Ok(()),
        }
    }

    /// What this computer has now seen of the volume.
    pub fn seen(&self) -> Seen {
        let record = self.state.record();
        Seen { volume: self.volume, epoch: record.epoch(), digest: record.digest() }
    }

    /// Reads and authenticates every stored bucket; gives their number. The order is that of the
    /// heap, so it tells nothing.
    ///
    /// # Errors
    /// `Tampered` names the first that is not what was written.
    pub fn verify(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        self.commit()?;
        crate::verify::verify(&*self.store, &self.slab, &mut self.engine, progress)
    }

    /// What stands between a stored bucket and its content; for [`crate::fuzzing`].
    pub(crate) fn parts(&mut self) -> (&dyn Store, &Slab, &mut TreeOram) {
        (&*self.store, &self.slab, &mut self.engine)
    }

    /// What can be told about the volume.
    ///
    /// # Errors
    /// Those of the store.
    pub fn info(&self) -> Result<VolumeInfo> {
        let config = self.engine.config();
        Ok(VolumeInfo {
            volume: self.volume,
            format: FORMAT_VERSION,
            engine: "tree",
            block_bytes: config.block_bytes,
            blocks_per_bucket: config.blocks_per_bucket,
            bucket_bytes: self.engine.bucket_bytes(oblivio_engine::TreeId::DATA),
            capacity_blocks: config.capacity,
            addressable_blocks: self.engine.capacity(),
            depth: self.engine.depth().0,
            recursion_levels: config.levels_of_recursion(),
            epoch: self.state.record().epoch(),
            passphrases: self.passphrases,
            bytes_stored: self.store.list()?.iter().map(|(_, len)| len).sum(),
            memory_bytes: self.memory_bytes,
            replayed_batches: self.replayed,
        })
    }

    /// Runs `work` unless an earlier failure closed this handle; a failure closes it.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if let Some(why) = &self.failed {
            return Err(Error::Closed(why.clone()));
        }
        let result = work(self);
        if let Err(error) = &result
            && !matches!(error, Error::Invalid(_))
        {
            self.failed = Some(error.to_string());
        }
        result
    }
}

impl BlockSpace for Volume {
    fn block_bytes(&self) -> usize {
        self.engine.block_bytes()
    }

    fn capacity_blocks(&self) -> u64 {
        self.engine.config().capacity
    }

    fn reserve(&mut self, blocks: u64) -> Result<()> {
        if blocks > self.capacity_blocks() {
            return Err(Error::Full(format!(
                "the volume was declared with {} blocks of {} bytes",
                self.capacity_blocks(),
                self.block_bytes()
            )));
        }
        if blocks <= self.engine.capacity() {
            return Ok(());
        }
        // Size classes are powers of two, so that growth tells no more than the class.
        let class = blocks.next_power_of_two().min(self.capacity_blocks());
        self.guarded(|volume| {
            volume.write_commit()?;
            volume.fit_cache(class)?;
            volume.engine.grow(class).map_err(engine_error)?;
            volume.engine.set_size_class(class).map_err(engine_error)?;
            // Logged batches stand on a commit of the same size.
            volume.write_commit()?;
            volume.announce()
        })
    }

    fn access(&mut self, mut ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        self.guarded(|volume| {
            let limit = volume.batch_limit();
            let mut answers = Vec::with_capacity(ops.len());
            while !ops.is_empty() {
                let rest = ops.split_off(ops.len().min(limit));
                answers.append(&mut volume.serve_batch(std::mem::replace(&mut ops, rest))?);
            }
            Ok(answers)
        })
    }

    fn root(&self) -> &[u8] {
        &self.root
    }

    fn set_root(&mut self, root: &[u8]) {
        debug_assert!(root.len() <= ROOT_BYTES, "the caller keeps to ROOT_BYTES");
        self.root = root.to_vec();
    }

    fn commit(&mut self) -> Result<()> {
        self.guarded(|volume| {
            volume.write_commit()?;
            volume.announce()
        })
    }

    fn cache_budget(&self) -> usize {
        self.memory_bytes / 8
    }
}

fn engine_error(error: EngineError) -> Error {
    match error {
        EngineError::Invalid(why) => Error::Invalid(why),
        EngineError::Closed => Error::Closed("the engine stopped".into()),
        EngineError::Crypto(error) => Error::Closed(error.to_string()),
        tampered => Error::Tampered(tampered.to_string()),
    }
}
