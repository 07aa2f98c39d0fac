//! A volume: a ledger, what waits for it, and when that is carried out.

use crate::around::Repeats;
use crate::core::{Core, LEAST_BLOCKS};
use crate::creation::Cost;
use crate::damage::{DamagedPlace, Inspected};
use crate::engine::{
    Creation, EngineEntry, EngineVolume, Making, Opening, VolumeInfo, make, open_as,
};
use crate::options::{CreateOptions, DEFAULT_MEMORY, OpenOptions, Records, ShownKind};
use crate::pacer::Pacer;
use crate::scrub::Inspection;
use crate::tree::account::TreeAccount;
use crate::tree::buckets::Buckets;
use crate::tree::header::{check, config, parameters_of};
use crate::tree::info::TreeInfo;
use crate::tree::ledger::TreeLedger;
use crate::tree::older_copy::{OlderCopy, found_in};
use crate::tree::policy::Flush;
use crate::tree::record_sync::AHEAD;
use crate::tree::slab::{Interval, Slab};
use crate::tree::tuning::most_kept;
use crate::tree::verify::verify;
use crate::trust::{Known, LogMark, Trust};
use crate::volume::Volume;
use crate::{Error, Result};
use oblivio_crypto::Passphrase;
use oblivio_engine::tree::{
    Eviction, STASH_BOUND, TreeConfig, TreeJob, TreeKeys, TreeOram, buckets_in,
};
use oblivio_engine::{Level, advance};
use oblivio_store::{Hint, Store};
use std::any::Any;
use std::sync::Arc;

/// The entry of the tree engine.
pub static ENGINE: EngineEntry = EngineEntry {
    number: 1,
    name: "tree",
    hides_reads: true,
    resizes: true,
    repairs: true,
    check,
    capacity_blocks: |parameters| config(parameters).capacity,
    lanes: None,
    open: |opening| Ok(Box::new(TreeVolume::of(opening.over()?)?)),
    making: Some(Making {
        fixed_objects: |_| Ok(None),
        cost: |new, stored| {
            let stored = stored.min(new.capacity_bytes);
            Ok(Cost::Growing { stored, path: TreeVolume::path_bytes(&new.into(), stored) })
        },
        create: |new, Creation { store, passphrase, open, .. }| {
            Ok(Box::new(TreeVolume::create(store.over()?, passphrase, new.into(), open)?))
        },
    }),
};

/// An open volume.
pub type TreeVolume = Core<TreeLedger>;

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
        plb_bytes: (4 << 20).max(64 * block_bytes),
        plb_ways: 8,
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

/// Whether records may run ahead of syncs.
fn may_run_ahead(options: &OpenOptions) -> bool {
    options.records == Records::Ahead && !options.pad && options.pace.is_none()
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
        let parameters = parameters_of(&config_of(&create))?;
        make(&ENGINE, store, passphrase, (&parameters, create.kdf), open, |opening| {
            let mut volume = Self::assemble(opening.over()?)?;
            volume.ledger.trust.begin(LogMark::default(), None)?;
            let ahead = may_run_ahead(&volume.options);
            volume.ledger.records_run_ahead(ahead);
            volume.report_start();
            volume.checkpoint(Flush::Due)?;
            Ok(volume)
        })
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
        open_as(&ENGINE, store, passphrase, open, |opening| Self::of(opening.over()?))
    }

    /// Opens a volume whose header is read and unlocked.
    pub(crate) fn of(opening: Opening<'_, Arc<dyn Store>>) -> Result<TreeVolume> {
        let mut volume = Self::assemble(opening)?;
        volume.ledger.load()?;
        volume.waiting.root_synced(&volume.ledger.root);
        volume.begin_interval(false)?;
        let records = volume.ledger.load_journal()?;
        // Who can cut the power again and again makes it forget a few accesses once.
        let nothing_lost = records.is_empty() && volume.ledger.trust.left_it_well();
        let ahead = nothing_lost && may_run_ahead(&volume.options);
        volume.ledger.records_run_ahead(ahead);
        volume.report_start();
        volume.ledger.slab.trim(&*volume.ledger.store)?;
        if !records.is_empty() {
            volume.replay(records.into_iter().map(|(_, record)| record))?;
        }
        volume.fetch_map()?;
        Ok(volume)
    }

    fn assemble(mut opening: Opening<'_, Arc<dyn Store>>) -> Result<Self> {
        let trust = Trust::take(opening.header.volume(), &mut opening.options)?;
        let options = &opening.options;
        let memory_bytes =
            if options.memory_bytes == 0 { DEFAULT_MEMORY } else { options.memory_bytes };
        let config = config(&opening.header.parameters());
        let blocks = LEAST_BLOCKS.min(config.capacity);
        let cache_bytes = cache_bytes(&config, memory_bytes, blocks, config.depth(blocks))?;
        let config = TreeConfig { cache_bytes, ..config };
        let (volume, randomness) = (opening.header.volume(), &options.environment.randomness);
        let keys = TreeKeys::of_volume(opening.master, volume, randomness);
        let engine = TreeOram::new(config, blocks, keys)
            .map_err(|error| Error::Invalid(error.to_string()))?;
        opening.store.hint(Hint::Keep(most_kept(memory_bytes)));
        let ledger = TreeLedger::new(&opening, engine, trust);
        ledger.slab.tell_slots(&*opening.store);
        ledger.slab.repeats().tell(&*opening.store);
        let options = opening.options;
        let pacer = options.pace.map(|pace| Pacer::new(pace, &*options.environment.clock));
        Ok(Self::over(ledger, TreeAccount::new(pacer), (memory_bytes, options)))
    }

    /// Gives the cache the budget left beside a tree of this size.
    pub(crate) fn fit_cache(&mut self) -> Result<()> {
        let (blocks, depth) = (self.ledger.engine.capacity(), self.ledger.engine.depth());
        let bytes = cache_bytes(self.ledger.engine.config(), self.memory_bytes, blocks, depth)?;
        Ok(self.ledger.engine.set_cache_bytes(bytes)?)
    }

    /// Carries out a job of the engine.
    pub(crate) fn run(&mut self, job: &mut TreeJob, kind: ShownKind) -> Result<()> {
        let shown = self.shown(kind);
        let done = self.progress().paths;
        let planned = match kind {
            // There are no further paths.
            ShownKind::Commit => done,
            _ => self.account.since.interval,
        };
        self.ledger.slab.expect(Interval { done, planned });
        let report = self.options.on_shown.as_mut().map(|report| (shown, report));
        let mut buckets = Buckets::new(&*self.ledger.store, &mut self.ledger.slab, report);
        while advance(job, &mut self.ledger.engine, &mut buckets)? {
            buckets.is_deep(self.ledger.engine.depth().0, self.ledger.engine.is_shrinking());
        }
        buckets.report(kind);
        Ok(())
    }

    /// Bytes of one path of a volume with these options, once it holds `stored_bytes`.
    pub fn path_bytes(create: &CreateOptions, stored_bytes: u64) -> u64 {
        let config = config_of(create);
        let blocks = stored_bytes.div_ceil(config.block_bytes as u64).clamp(1, config.capacity);
        let levels = u64::from(config.depth(blocks).0) + 1;
        levels * (config.blocks_per_bucket * config.block_bytes) as u64
    }

    /// The level of the tree's leaves.
    pub fn depth(&self) -> u32 {
        self.ledger.engine.depth().0
    }

    /// The engine's counts since the volume was opened.
    pub fn meters(&self) -> oblivio_engine::tree::Meters {
        self.ledger.engine.meters()
    }

    /// The layers between a stored bucket and its content; for [`crate::fuzzing`].
    pub(crate) fn parts(&mut self) -> (&dyn Store, &Slab, &mut TreeOram) {
        (&*self.ledger.store, &self.ledger.slab, &mut self.ledger.engine)
    }

    /// Information about the tree.
    pub fn tree_info(&self) -> TreeInfo {
        let config = self.ledger.engine.config();
        let runs_ahead = self.ledger.records.ahead_of().is_some();
        TreeInfo {
            most_ahead: if runs_ahead { AHEAD } else { 0 },
            blocks_per_bucket: config.blocks_per_bucket,
            bucket_bytes: self.ledger.engine.bucket_bytes(),
            addressable_blocks: self.ledger.engine.capacity(),
            size_class: self.ledger.engine.size_class(),
            live_blocks: self.ledger.engine.live_blocks(),
            depth: self.ledger.engine.depth().0,
            leaf_slots: self.ledger.engine.shape().leaf_slots,
            stored_slots: self.ledger.slab.stored_slots(config.blocks_per_bucket),
            recursion_levels: config.levels_of_recursion(),
        }
    }
}

impl EngineVolume for TreeVolume {
    fn known(&self) -> Known {
        self.ledger.trust.known()
    }

    /// In the order of the heap.
    fn inspect(&mut self, inspection: Inspection<'_>) -> Result<Inspected> {
        let Inspection { from, at_once, amid_requests, reached, damaged } = inspection;
        match amid_requests {
            true => self.guarded(|_| Ok(()))?,
            false => self.checkpoint(Flush::All)?,
        }
        let buckets = Inspection { from, at_once, amid_requests, reached, damaged: &mut *damaged };
        let TreeLedger { store, slab, engine, .. } = &mut self.ledger;
        let (mut found, versions) = verify(&**store, slab, engine, buckets)?;
        if versions.is_some() {
            found.bytes += self.ledger.small_bytes();
            for place in self.ledger.inspect()? {
                found.damaged += 1;
                damaged(place);
            }
        }
        Ok(found)
    }

    fn has_quiet_scrubs(&self) -> bool {
        true
    }

    fn repeats(&self) -> Repeats {
        self.ledger.slab.repeats().clone()
    }

    /// Each bucket has its turn in a whole period of the schedule.
    fn repair(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.guarded(|volume| volume.evict_all(&mut |_, _| Ok(Vec::new()), progress))
    }

    fn found_in(
        &mut self,
        copy: &mut dyn EngineVolume,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<u64>> {
        let copy: &mut dyn Any = copy;
        let copy = copy.downcast_ref::<Self>().filter(|copy| copy.replayed == 0);
        self.checkpoint(Flush::All)?;
        self.guarded(|volume| found_in(&mut volume.ledger, copy.map(|copy| &copy.ledger), progress))
    }

    fn restore_from(
        &mut self,
        copy: &mut dyn EngineVolume,
        ids: &[u64],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<u64>> {
        let copy: &mut dyn Any = copy;
        let mut older = copy.downcast_mut::<Self>().map(|copy| OlderCopy::new(copy, ids));
        let mut back = |engine: &TreeOram, paths| match &mut older {
            Some(older) => older.blocks(engine, paths),
            None => Ok(Vec::new()),
        };
        self.guarded(|volume| volume.evict_all(&mut back, progress))?;
        Ok(older.map(OlderCopy::into_given).unwrap_or_default())
    }

    fn damaged(&self) -> Vec<DamagedPlace> {
        self.ledger.damaged.clone()
    }

    fn made(&mut self) -> Result<()> {
        self.fetch_map()
    }

    fn info(&self) -> Result<VolumeInfo> {
        let info = VolumeInfo {
            live_blocks: Some(self.ledger.engine.live_blocks()),
            epoch: self.ledger.state.record().epoch(),
            memory_bytes: self.memory_bytes,
            replayed: self.replayed,
            verified: "bucket",
            ..VolumeInfo::of(self.ledger.limit.header(), &ENGINE, &*self.ledger.store)?
        };
        Ok(info.reporting(|info| self.tree_info().report(info)))
    }
}

impl Volume {
    /// The volume, if it is on the tree engine.
    pub fn tree(&mut self) -> Option<&mut TreeVolume> {
        self.on()
    }
}
