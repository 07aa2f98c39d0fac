//! A volume: an engine's buckets in a slab, its memory in a sealed state, commits over both.
//!
//! A commit writes, in this order, each durable before the next: buckets (to free slots), the
//! sealed state (a delta on its log, or a new checkpoint), the commit record. Until the record is
//! durable, a crash leaves the previous commit, whole.

use crate::error::engine_error;
use crate::header::{EngineKind, FORMAT_VERSION, Header, Limit, expect_empty};
use crate::options::{
    CreateOptions, DEFAULT_MEMORY, EngineInfo, OpenOptions, Shown, ShownKind, TreeInfo, VolumeInfo,
};
use crate::tree::commit::{read_commit, write_commit};
use crate::tree::deferred::{Deferred, Entry, Writes};
use crate::tree::journal::{Journal, Record};
use crate::tree::pacer::Pacer;
use crate::tree::padded::Padding;
use crate::tree::quiet::Quiet;
use crate::tree::slab::{Interval, Slab, SlotTable};
use crate::tree::state::{Parts, Slots, StateLog, begin};
use crate::tree::tuning::{LEAST_BLOCKS, most_kept};
use crate::trust::{Act, Keep, Known, LogMark, MOST_ROWS, Trust};
use crate::{Error, Result};
use oblivio_crypto::{MasterKey, Passphrase, Sealer, VolumeId};
use oblivio_engine::tree::{
    Eviction, Recursion, STASH_BOUND, TreeConfig, TreeKeys, TreeOram, buckets_in,
};
use oblivio_engine::{Engine, Level, Step, TreeId};
use oblivio_store::{Hint, PutMode, Store};
use std::sync::Arc;

/// An open volume.
pub struct TreeVolume {
    pub(crate) store: Arc<dyn Store>,
    volume: VolumeId,
    passphrases: usize,
    pub(crate) engine: TreeOram,
    pub(crate) slab: Slab,
    pub(crate) journal: Journal,
    pub(crate) state: StateLog,
    commit_sealer: Sealer,
    pub(crate) trust: Trust,
    pub(crate) root: Vec<u8>,
    pub(crate) memory_bytes: usize,
    /// Deferred writes: accepted but not yet carried out.
    pub(crate) deferred: Deferred,
    /// The writes since the last sync; `None` if they are too many for the journal.
    pub(crate) unsynced: Option<Writes>,
    pub(crate) root_changed: bool,
    /// The constant rate of accesses, if any.
    pub(crate) pacer: Option<Pacer>,
    /// Accesses of the caller's current operation.
    pub(crate) accesses: u64,
    /// What that operation has shown.
    pub(crate) padding: Padding,
    /// Scheduled paths at the last commit.
    pub(crate) committed_at: u64,
    /// Bytes in the slab then.
    pub(crate) stored_at_commit: u64,
    /// Whether the store had much room then.
    pub(crate) roomy: bool,
    /// Scheduled paths from there to the next commit; a new volume begins with a commit.
    pub(crate) interval: u64,
    pub(crate) quiet: Quiet,
    replayed: u64,
    pub(crate) options: OpenOptions,
    pub(crate) limit: Limit,
    /// The failure that made this handle unusable, if any.
    pub(crate) failed: Option<String>,
}

/// The engine of a new volume.
fn config_of(create: &CreateOptions) -> TreeConfig {
    let block_bytes = create.block_bytes;
    let capacity = create.capacity_bytes.div_ceil(block_bytes as u64).max(LEAST_BLOCKS);
    TreeConfig {
        eviction: Eviction::Scheduled { every: 3 },
        leaf_steps: true,
        // A map up to this size is all in memory, so every request makes the same number of
        // accesses; beyond it the map recurses through the PLB.
        on_chip_bytes: 64 << 20,
        recursion: Recursion::Unified { plb_bytes: (4 << 20).max(64 * block_bytes), plb_ways: 8 },
        ..TreeConfig::new(block_bytes, capacity)
    }
}

/// The budget for the top of the tree: all but a quarter (batches and the file layer's caches), the
/// state of each block and bucket, and a checkpoint while it is written.
pub(crate) fn cache_bytes(
    config: &TreeConfig,
    memory_bytes: usize,
    blocks: u64,
    depth: Level,
) -> Result<usize> {
    let counts = config.blocks_by_level(blocks);
    let map = config.map_format.bytes_for(counts[counts.len() - 1]);
    let buckets = buckets_in(depth) as usize;
    // Slot table, free list and bits in memory; table and bits again in the checkpoint.
    let known = 2 * map + buckets * (4 + 4 + 4 + config.blocks_per_bucket / 4 + 1);
    let stash = STASH_BOUND * config.block_bytes;
    let needed = known + stash + memory_bytes / 4;
    memory_bytes.checked_sub(needed).ok_or_else(|| {
        let least = ((known + stash) / 3 * 4 / (1 << 20) + 1).next_power_of_two();
        Error::Invalid(format!("this volume needs more memory; give it --memory {least}M or more"))
    })
}

impl TreeVolume {
    /// Creates a volume in an empty store and opens it.
    ///
    /// # Errors
    /// `Exists` if there is a volume already, `Invalid` if there is something else or the options
    /// make no sense.
    pub fn create(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        create: CreateOptions,
        open: OpenOptions,
    ) -> Result<TreeVolume> {
        store.lock()?;
        expect_empty(&*store)?;
        let (header, master) = Header::create(
            &config_of(&create),
            passphrase,
            create.kdf,
            &open.environment.randomness,
        )?;
        let mut volume = Self::assemble(store, &header, &master, open)?;
        volume.report_start();
        volume.trust.begin(LogMark::default(), None)?;
        volume.checkpoint()?;
        // The header comes last: before it there is no volume.
        header.save(&*volume.store, PutMode::IfAbsent)?;
        volume.fetch_map()?;
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
    ) -> Result<TreeVolume> {
        let (header, master) = Header::open_as(EngineKind::Tree, &*store, passphrase)?;
        Self::open_with(store, &header, &master, open)
    }

    /// Opens a volume whose header is read and unlocked.
    pub(crate) fn open_with(
        store: Arc<dyn Store>,
        header: &Header,
        master: &MasterKey,
        open: OpenOptions,
    ) -> Result<TreeVolume> {
        let mut volume = Self::assemble(store, header, master, open)?;
        volume.load()?;
        volume.report_start();
        let records = volume.load_journal()?;
        volume.slab.trim(&*volume.store)?;
        volume.replay(records)?;
        volume.fetch_map()?;
        Ok(volume)
    }

    fn assemble(
        store: Arc<dyn Store>,
        header: &Header,
        master: &MasterKey,
        mut options: OpenOptions,
    ) -> Result<Self> {
        let volume = header.volume();
        let trust = Trust::take(volume, &mut options)?;
        let memory_bytes =
            if options.memory_bytes == 0 { DEFAULT_MEMORY } else { options.memory_bytes };
        let config = header.config();
        let blocks = LEAST_BLOCKS.min(config.capacity);
        let cache_bytes = cache_bytes(&config, memory_bytes, blocks, config.depth(0, blocks))?;
        let config = TreeConfig { cache_bytes, ..config };
        let randomness = &options.environment.randomness;
        let keys = TreeKeys::of_volume(master, volume, randomness);
        let engine = TreeOram::new(config, blocks, keys)
            .map_err(|error| Error::Invalid(error.to_string()))?;
        store.hint(Hint::Keep(most_kept(memory_bytes)));
        let slab = Slab::of(&engine, header.slot_align());
        slab.tell_slots(&*store);
        let sealer = |root| Sealer::new(root, Box::new(randomness.clone()));
        Ok(Self {
            slab,
            journal: Journal::new(volume, sealer(master.intent_root(volume))),
            state: StateLog::new(volume, sealer(master.state_root(volume))),
            commit_sealer: sealer(master.commit_root(volume)),
            trust,
            store,
            volume,
            passphrases: header.public().passphrases,
            engine,
            root: Vec::new(),
            memory_bytes,
            deferred: Deferred::new(options.pad && options.pace.is_none()),
            unsynced: Some(Writes::default()),
            root_changed: false,
            pacer: options.pace.map(|pace| Pacer::new(pace, &*options.environment.clock)),
            accesses: 0,
            padding: Padding::default(),
            committed_at: 0,
            stored_at_commit: 0,
            roomy: true,
            interval: 1,
            quiet: Quiet::default(),
            replayed: 0,
            options,
            limit: Limit::of(header, master)?,
            failed: None,
        })
    }

    /// Loads the newest commit and its state.
    fn load(&mut self) -> Result<()> {
        let record = read_commit(&*self.store, &mut self.commit_sealer, self.volume)?;
        let (mut table, mut computers) = (SlotTable::default(), None);
        for (index, plain) in self.state.load(&*self.store, record)?.iter().enumerate() {
            let parts = match index {
                0 => Parts::of_checkpoint(plain)?,
                _ => Parts::of_delta(plain)?,
            };
            self.root = parts.root.to_vec();
            computers = parts.table;
            match index {
                0 => self.engine.restore(parts.engine),
                _ => self.engine.apply_delta(parts.engine),
            }
            .map_err(engine_error)?;
            table.apply(&parts.slots, buckets_in(self.engine.depth()))?;
        }
        self.trust.judge_commit(record.epoch(), record.digest(), computers)?;
        let missing = |bucket| self.engine.missing_slots(bucket);
        self.slab.restore(table, missing, &self.store.list()?)?;
        self.journal.restart(record.epoch(), &record.digest());
        self.begin_interval()
    }

    /// Begins an interval after a commit: everything is flushed, so the cache may change.
    fn begin_interval(&mut self) -> Result<()> {
        self.committed_at = self.engine.evictions();
        self.stored_at_commit = self.slab.current_bytes();
        self.roomy = self.finds_much_room();
        self.interval = self.next_interval();
        self.quiet.committed();
        self.fit_cache()?;
        self.engine.expect_flush_after(self.evictions_between_commits()).map_err(engine_error)
    }

    /// Gives the cache the budget left beside a tree of this size.
    pub(crate) fn fit_cache(&mut self) -> Result<()> {
        let (blocks, depth) = (self.engine.capacity(), self.engine.depth());
        let bytes = cache_bytes(self.engine.config(), self.memory_bytes, blocks, depth)?;
        self.engine.set_cache_bytes(bytes).map_err(engine_error)
    }

    /// Reads the journal, checks it against what this computer knows of it, and begins the session.
    fn load_journal(&mut self) -> Result<Vec<(Option<Act>, Record)>> {
        let mut check = self.trust.log_check();
        let records = self.journal.load(&*self.store, &mut check)?;
        check.finish(0, self.journal.mark().end)?;
        records.iter().filter_map(|(act, _)| *act).for_each(|act| self.trust.absorb(act));
        let newest = records.last().and_then(|(act, _)| *act);
        self.trust.begin(self.journal.mark(), newest)?;
        Ok(records)
    }

    /// Shows again what a crashed session showed since its last commit, rewrites what it had made
    /// durable, and commits.
    fn replay(&mut self, records: Vec<(Option<Act>, Record)>) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        for (_, record) in records {
            match record {
                Record::Intent(intent) => {
                    self.engine.replay(&intent).map_err(engine_error)?;
                    self.run(match intent.ids.is_empty() {
                        true => ShownKind::Maintenance,
                        false => ShownKind::Batch,
                    })?;
                    self.engine.take_answers();
                    self.replayed += 1;
                }
                Record::Resize { blocks, class } => {
                    self.engine.grow(blocks).map_err(engine_error)?;
                    self.engine.set_size_class(class).map_err(engine_error)?;
                    self.report_rule();
                }
                Record::Sync { root, writes } => {
                    let entries = writes.entries(self.engine.capacity(), self.engine.block_bytes());
                    for entry in
                        entries.ok_or_else(|| Error::Tampered("a journal record".into()))?
                    {
                        match entry {
                            Entry::Op(op) => self.deferred.add(op),
                            Entry::Discard(_, 0) => self.deferred.add_empty(),
                            Entry::Discard(first, count) => {
                                self.drop_blocks(first..first + count)?
                            }
                        }
                    }
                    self.root = root;
                }
            }
        }
        // A tree that was to shrink with a commit that failed keeps its blocks.
        self.grow_for(&[])?;
        self.checkpoint()
    }

    /// Carries out the engine's steps.
    pub(crate) fn run(&mut self, kind: ShownKind) -> Result<()> {
        let mut round = self.options.on_shown.is_some().then(|| self.shown(kind));
        let done = self.paths_since_commit();
        let planned = match kind {
            // There are no further paths.
            ShownKind::Commit => done,
            _ => self.evictions_between_commits(),
        };
        self.slab.expect(Interval { done, planned });
        loop {
            match self.engine.step().map_err(engine_error)? {
                Step::Done => break,
                Step::Read { shown, scheduled, buckets, lens, into, .. } => {
                    if let (Some(round), Some(report)) = (&mut round, &mut self.options.on_shown) {
                        round.next_round(report);
                        round.read(shown, scheduled, (buckets, lens), &self.slab);
                    }
                    self.slab.read(&*self.store, buckets, into)?;
                    // A round of the map may have removed the tree's last level.
                    if let Some(round) = &mut round {
                        (round.depth, round.sweep) = (self.engine.depth().0, self.sweeping());
                    }
                }
                Step::Write { buckets, from, .. } => {
                    self.slab.write(&*self.store, buckets, from)?;
                    if let Some(round) = &mut round {
                        round.wrote((buckets, from), &self.slab);
                    }
                }
            }
        }
        if let (Some(round), Some(report)) = (round, &mut self.options.on_shown) {
            report(&Shown { kind, ..round });
        }
        Ok(())
    }

    /// Flushes the engine, stores the state, and makes both current. Nothing may be deferred.
    pub(crate) fn write_commit(&mut self) -> Result<()> {
        self.shrink_if_due()?;
        self.engine.begin_flush().map_err(engine_error)?;
        self.run(ShownKind::Commit)?;
        self.slab.forget(&self.engine.dropped());
        self.slab.sync(&*self.store)?;
        let table = self.trust.commit_act(self.state.record().epoch() + 1)?.to_bytes(MOST_ROWS);
        let record = if self.state.wants_checkpoint() {
            let mut out = begin(&self.root, &table, Slots::All(Box::new(self.slab.table())));
            self.engine.checkpoint(&mut out).map_err(engine_error)?;
            self.state.write_checkpoint(&*self.store, out)?
        } else {
            let mut out = begin(&self.root, &table, Slots::Changed(self.slab.changes()));
            self.engine.delta(&mut out);
            self.state.write_delta(&*self.store, out)?
        };
        self.trust.refuse_overtaken()?;
        write_commit(&*self.store, &mut self.commit_sealer, self.volume, &record)?;
        self.state.committed(record);
        self.engine.committed();
        self.slab.committed();
        self.journal.restart(record.epoch(), &record.digest());
        let (epoch, digest) = (record.epoch(), record.digest());
        self.trust.committed(epoch, digest, LogMark::default(), Keep::Durable)?;
        self.forget_unsynced();
        self.give_back()?;
        self.begin_interval()?;
        self.report_rule();
        Ok(())
    }

    /// What this computer now knows of the volume.
    pub fn known(&self) -> Known {
        self.trust.known()
    }

    /// Reads and authenticates every stored bucket; gives their number. The order is the heap's, so
    /// it reveals nothing.
    ///
    /// # Errors
    /// `Tampered` names the first that differs from its last write.
    pub fn verify(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        self.checkpoint()?;
        crate::tree::verify::verify(&*self.store, &self.slab, &mut self.engine, progress)
    }

    /// Bytes of one path of a volume with these options, once it holds `stored_bytes`.
    pub fn path_bytes(create: &CreateOptions, stored_bytes: u64) -> u64 {
        let config = config_of(create);
        let blocks = stored_bytes.div_ceil(config.block_bytes as u64).clamp(1, config.capacity);
        let levels = u64::from(config.depth(0, blocks).0) + 1;
        levels * (config.blocks_per_bucket * config.block_bytes) as u64
    }

    /// The level of the tree's leaves.
    pub fn depth(&self) -> u32 {
        self.engine.depth().0
    }

    /// The engine's counts since the volume was opened.
    pub fn meters(&self) -> oblivio_engine::tree::Meters {
        self.engine.meters()
    }

    /// The layers between a stored bucket and its content; for [`crate::fuzzing`].
    pub(crate) fn parts(&mut self) -> (&dyn Store, &Slab, &mut TreeOram) {
        (&*self.store, &self.slab, &mut self.engine)
    }

    /// Information about the tree.
    pub fn tree_info(&self) -> TreeInfo {
        let config = self.engine.config();
        TreeInfo {
            blocks_per_bucket: config.blocks_per_bucket,
            bucket_bytes: self.engine.bucket_bytes(TreeId::DATA),
            addressable_blocks: self.engine.capacity(),
            size_class: self.engine.size_class(),
            live_blocks: self.engine.live_blocks(),
            depth: self.engine.depth().0,
            leaf_slots: self.engine.shape().leaf_slots,
            stored_slots: self.slab.stored_slots(config.blocks_per_bucket),
            recursion_levels: config.levels_of_recursion(),
        }
    }

    /// Information about the volume.
    ///
    /// # Errors
    /// Those of the store.
    pub fn info(&self) -> Result<VolumeInfo> {
        let config = self.engine.config();
        Ok(VolumeInfo {
            volume: self.volume,
            format: FORMAT_VERSION,
            block_bytes: config.block_bytes,
            capacity_blocks: self.limit.blocks(),
            epoch: self.state.record().epoch(),
            passphrases: self.passphrases,
            bytes_stored: self.store.list()?.iter().map(|(_, len)| len).sum(),
            memory_bytes: self.memory_bytes,
            replayed: self.replayed,
            engine: EngineInfo::Tree(self.tree_info()),
        })
    }
}
