//! The parameters in the header, and the options of a new volume.

use crate::core::LEAST_BLOCKS;
use crate::creation::{Cost, NewOptions};
use crate::header::{PARAMETER_BYTES, Parameters};
use crate::session::ClaimMode;
use crate::{Error, Result};
use oblivio_engine::tree::{Eviction, MapFormat, TreeConfig, Windows};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

/// Slots in a bucket (Z), and accesses for each turn (A). With these the stash is empty after
/// nearly every window, and no cheaper pair has that (docs/decisions/0029-windows.md).
const SLOTS: usize = 4;
const EVERY: u32 = 4;
/// The most bytes of position map: all of it is in memory.
const MOST_MAP: usize = 1 << 30;
/// How sessions begin, as stored.
const CREATE: u32 = 1;
const ALONE: u32 = 2;

/// A volume to make on a store of whole objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowOptions {
    /// Bytes of user data in a block.
    pub block_bytes: usize,
    /// The most bytes that the volume may ever hold; it takes space as it fills.
    pub capacity_bytes: u64,
    /// Bytes of an object, about.
    pub object_bytes: usize,
    /// Bytes of the top of the tree, which is in memory and in a log.
    pub pool_bytes: usize,
    /// Whether the store creates objects exclusively. If not, sessions begin by a put and a list.
    pub exclusive: bool,
}

impl WindowOptions {
    /// The defaults, for this block size and capacity.
    pub fn new(block_bytes: usize, capacity_bytes: u64, exclusive: bool) -> Self {
        let (object_bytes, pool_bytes) = (2 << 20, 64 << 20);
        Self { block_bytes, capacity_bytes, object_bytes, pool_bytes, exclusive }
    }

    pub(super) fn windows(&self) -> Windows {
        let bucket = SLOTS * self.block_bytes.max(1);
        // At least 16 accesses: what waits for a window goes into one batch.
        let log_turns = (self.object_bytes / bucket).max(4).ilog2().min(10);
        let pool_levels = (self.pool_bytes / bucket + 1).max(2).ilog2();
        Windows { every: EVERY, log_turns, pool_levels: pool_levels.clamp(log_turns.max(1), 20) }
    }

    /// What a volume costs that holds `stored` bytes, or as many as it may.
    pub(super) fn cost_of(&self, stored: u64) -> Cost {
        let stored = stored.min(self.capacity_bytes);
        Cost::Growing { stored, path: self.path_bytes(stored) }
    }

    /// Bytes of a path outside of memory, once the volume holds `stored` bytes.
    fn path_bytes(&self, stored: u64) -> u64 {
        let config = self.config();
        let blocks = stored.div_ceil(self.block_bytes.max(1) as u64).clamp(1, config.capacity);
        let shape = config.shape_for_live(blocks, blocks);
        config.uncached_path_bytes(shape, config.cached_buckets(shape, shape)) as u64
    }

    pub(super) fn config(&self) -> TreeConfig {
        let capacity = self.capacity_bytes.div_ceil(self.block_bytes.max(1) as u64);
        TreeConfig {
            blocks_per_bucket: SLOTS,
            eviction: Eviction::Windows(self.windows()),
            leaf_steps: true,
            on_chip_bytes: MOST_MAP,
            cache_bytes: 0,
            ..TreeConfig::new(self.block_bytes, capacity.max(LEAST_BLOCKS))
        }
    }
}

impl From<&NewOptions> for WindowOptions {
    fn from(new: &NewOptions) -> Self {
        let usual = Self::new(new.block_bytes, new.capacity_bytes, new.exclusive);
        Self { object_bytes: new.object_bytes.unwrap_or(usual.object_bytes), ..usual }
    }
}

/// As stored.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Own {
    blocks_per_bucket: U32,
    evict_every: U32,
    fill_percent: U32,
    individual_bits: U32,
    capacity_blocks: U64,
    log_turns: U32,
    pool_levels: U32,
    way: U32,
    reserved: [u8; 12],
}

const _: () = assert!(size_of::<Own>() == PARAMETER_BYTES);

/// The parameters of a new volume.
pub(super) fn parameters_of(options: &WindowOptions) -> Result<Parameters> {
    let config = options.config();
    config.validate().map_err(|error| Error::Invalid(error.to_string()))?;
    let (windows, MapFormat::Compressed { individual_bits }) =
        (options.windows(), config.map_format)
    else {
        return Err(Error::Invalid("this configuration is for the lab only".into()));
    };
    let own = Own {
        blocks_per_bucket: U32::new(config.blocks_per_bucket as u32),
        evict_every: U32::new(windows.every),
        fill_percent: U32::new(config.fill_percent),
        individual_bits: U32::new(individual_bits),
        capacity_blocks: U64::new(config.capacity),
        log_turns: U32::new(windows.log_turns),
        pool_levels: U32::new(windows.pool_levels),
        way: U32::new(if options.exclusive { CREATE } else { ALONE }),
        reserved: [0; 12],
    };
    Ok(Parameters { flags: 0, block_bytes: options.block_bytes as u32, own: transmute!(own) })
}

/// Refuses parameters unknown to this version.
pub(super) fn check(parameters: &Parameters) -> Result<()> {
    let own: Own = transmute!(parameters.own);
    if parameters.flags != 0 || own.reserved != [0; 12] || !(1..=2).contains(&own.way.get()) {
        return Err(Parameters::unknown());
    }
    config(parameters).validate().map_err(|error| Error::Unsupported(error.to_string()))
}

/// The engine.
pub(super) fn config(parameters: &Parameters) -> TreeConfig {
    let own: Own = transmute!(parameters.own);
    let windows = Windows {
        every: own.evict_every.get(),
        log_turns: own.log_turns.get(),
        pool_levels: own.pool_levels.get(),
    };
    TreeConfig {
        blocks_per_bucket: own.blocks_per_bucket.get() as usize,
        eviction: Eviction::Windows(windows),
        fill_percent: own.fill_percent.get(),
        leaf_steps: true,
        map_format: MapFormat::Compressed { individual_bits: own.individual_bits.get() },
        on_chip_bytes: MOST_MAP,
        cache_bytes: 0,
        ..TreeConfig::new(parameters.block_bytes as usize, own.capacity_blocks.get())
    }
}

/// How sessions begin.
pub(super) fn way(parameters: &Parameters) -> ClaimMode {
    let own: Own = transmute!(parameters.own);
    if own.way.get() == CREATE { ClaimMode::Create } else { ClaimMode::Alone }
}

/// The parameters with another limit.
pub(super) fn with_limit(parameters: &Parameters, blocks: u64) -> Result<Parameters> {
    let config = config(parameters).with_capacity(blocks);
    config.map_err(|error| Error::Invalid(error.to_string()))?;
    let own: Own = transmute!(parameters.own);
    let own = Own { capacity_blocks: U64::new(blocks), ..own };
    Ok(Parameters { own: transmute!(own), ..*parameters })
}
