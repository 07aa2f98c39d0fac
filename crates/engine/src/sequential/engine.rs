//! The engine: placement, disk and memory combined.

use super::keys::SequentialKeys;
use super::layout::Layout;
use super::map_node::SealedAt;
use super::page_cache::PageCache;
use super::placement::Placement;
use super::vault::Vault;
use super::{AccessTimeMap, Flush, SequentialConfig, Turn};
use crate::{BlockId, EngineError, Result};

/// A SqORAM engine.
pub struct Sequential {
    pub(super) config: SequentialConfig,
    pub(super) placement: Placement<SealedAt, Vec<u8>>,
    pub(super) vault: Vault,
    pub(super) flushing: FlushState,
    /// The read and write buffers of the previous flush. New buffers would have to be cleared.
    pub(super) spare: Vec<u8>,
    pub(super) sealed: Vec<u8>,
    /// Numbers of the writes to replay after a restart.
    pub(super) again: Option<std::ops::Range<u64>>,
    /// Whether the access times must be rebuilt.
    pub(super) times_lost: bool,
    /// Pages of access times that were in the queue before a restart, as they are on the disk.
    pub(super) lost_pages: Vec<(BlockId, Turn, Vec<u8>)>,
    /// Recently read pages.
    pub(super) page_cache: PageCache,
    /// Whether damage was ever carried on: a block that its generation does not list is lost then.
    pub(super) met_damage: bool,
}

/// The engine's record of flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FlushState {
    #[default]
    Idle,
    UnderWay,
    /// An error ended one.
    Closed,
}

impl Sequential {
    /// An engine whose blocks were never written.
    ///
    /// # Errors
    /// `Invalid` when the parameters make no sense.
    pub fn new(config: SequentialConfig, keys: SequentialKeys) -> Result<Self> {
        Ok(Self::on(config, Layout::new(&config)?, keys))
    }

    /// The same on this disk.
    pub(super) fn on(config: SequentialConfig, layout: Layout, keys: SequentialKeys) -> Self {
        let placement = Placement::new(layout.schedule().clone());
        let vault = Vault::new(&config, layout, keys.volume, keys.sealer);
        Self::assemble(config, placement, vault)
    }

    pub(super) fn assemble(
        config: SequentialConfig,
        placement: Placement<SealedAt, Vec<u8>>,
        vault: Vault,
    ) -> Self {
        Self {
            config,
            placement,
            vault,
            flushing: FlushState::Idle,
            spare: Vec::new(),
            sealed: Vec::new(),
            again: None,
            times_lost: false,
            lost_pages: Vec::new(),
            page_cache: PageCache::default(),
            met_damage: false,
        }
    }

    /// The parameters.
    pub fn config(&self) -> &SequentialConfig {
        &self.config
    }

    /// The place of everything on the disk, and the schedule of writes.
    pub fn layout(&self) -> &Layout {
        &self.vault.layout
    }

    /// Flushes so far.
    pub fn flushes(&self) -> Flush {
        self.placement.flush()
    }

    /// The turn of the queue.
    pub fn turn(&self) -> Turn {
        self.placement.now()
    }

    /// Writes so far, padding included.
    pub fn writes(&self) -> u64 {
        self.flushes().0 * self.placement.schedule().writes_per_flush() + self.placement.writes()
    }

    /// The access times, to save at a clean shutdown ([`AccessTimeMap::to_bytes`]); none when they
    /// are in the ORAM.
    pub fn access_times(&self) -> Option<&AccessTimeMap> {
        (self.config.time_pages == 0).then(|| self.placement.times().map())
    }

    /// Whether lost blocks may be listed on the disk, or missing from where they were: versions
    /// before that cannot go on from here.
    pub fn met_damage(&self) -> bool {
        self.met_damage
    }

    /// Whether a flush must come before the next write.
    pub fn flush_due(&self) -> bool {
        self.placement.flush_due()
    }

    /// Puts a block into the queue.
    ///
    /// # Errors
    /// `Invalid` when there is no such block, the content has another length, or a flush is due.
    pub fn write(&mut self, block: BlockId, content: Vec<u8>) -> Result<()> {
        self.expect_idle()?;
        self.expect_block(block)?;
        if content.len() != self.config.block_bytes {
            return Err(EngineError::Invalid("a block is written whole".into()));
        }
        self.placement.write(block, Some(content))
    }

    /// Makes a block absent, at the cost of a write.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn discard(&mut self, block: BlockId) -> Result<()> {
        self.expect_idle()?;
        self.expect_block(block)?;
        self.placement.write(block, None)
    }

    /// Counts an empty write, to bring the next flush nearer.
    ///
    /// # Errors
    /// `Invalid` when a flush is due or under way.
    pub fn pad(&mut self) -> Result<()> {
        self.expect_idle()?;
        self.placement.pad()
    }

    pub(super) fn expect_block(&self, block: BlockId) -> Result<()> {
        if block.0 >= self.config.blocks {
            return Err(EngineError::Invalid(format!("there is no block {}", block.0)));
        }
        Ok(())
    }

    pub(super) fn expect_whole(&self) -> Result<()> {
        if self.again.is_some() || self.times_lost {
            return Err(EngineError::Invalid("the restored engine is not yet complete".into()));
        }
        Ok(())
    }

    pub(super) fn expect_idle(&self) -> Result<()> {
        self.expect_whole()?;
        match self.flushing {
            FlushState::Idle => Ok(()),
            FlushState::Closed => Err(EngineError::Closed),
            FlushState::UnderWay => Err(EngineError::Invalid("a flush is under way".into())),
        }
    }
}
