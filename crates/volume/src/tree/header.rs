//! The tree engine's parameters in the header.

use crate::header::{PARAMETER_BYTES, Parameters};
use crate::tree::slab::{PAGE, SECTOR};
use crate::{Error, Result};
use oblivio_engine::tree::{Eviction, MapFormat, TreeConfig};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

/// A flag: the slots of the slab begin at multiples of 4,096 bytes, not of 512.
const PAGE_SLOTS: u32 = 1;
/// A flag: leaf buckets may have fewer slots than others. They are then in `slab-1` and so on, and
/// the size class goes by eighths of a power of two.
const LEAF_STEPS: u32 = 2;
/// A flag: the limit is below the addressable blocks, which older builds take for damage.
const LOWERED: u32 = 8;
/// Block sizes from which slots begin at pages: with a tree's five blocks a bucket, a page more in
/// each is a sixteenth of it at most.
const PAGE_SLOTS_FROM: usize = 16 << 10;

/// As stored.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Own {
    blocks_per_bucket: U32,
    evict_every: U32,
    fill_percent: U32,
    individual_bits: U32,
    capacity_blocks: U64,
    on_chip_bytes: U64,
    plb_bytes: U64,
    plb_ways: U32,
    reserved: U32,
}

const _: () = assert!(size_of::<Own>() == PARAMETER_BYTES);

fn own(parameters: &Parameters) -> Own {
    transmute!(parameters.own)
}

/// The parameters of a new volume.
pub(super) fn parameters_of(config: &TreeConfig) -> Result<Parameters> {
    config.validate().map_err(|error| Error::Invalid(error.to_string()))?;
    let (Eviction::Scheduled { every }, MapFormat::Compressed { individual_bits }) =
        (config.eviction, config.map_format)
    else {
        return Err(Error::Invalid("this configuration is for the lab only".into()));
    };
    let page = if config.block_bytes < PAGE_SLOTS_FROM { 0 } else { PAGE_SLOTS };
    let steps = if config.leaf_steps { LEAF_STEPS } else { 0 };
    let own = Own {
        blocks_per_bucket: U32::new(config.blocks_per_bucket as u32),
        evict_every: U32::new(every),
        fill_percent: U32::new(config.fill_percent),
        individual_bits: U32::new(individual_bits),
        capacity_blocks: U64::new(config.capacity),
        on_chip_bytes: U64::new(config.on_chip_bytes as u64),
        plb_bytes: U64::new(config.plb_bytes as u64),
        plb_ways: U32::new(config.plb_ways as u32),
        reserved: U32::new(0),
    };
    let block_bytes = config.block_bytes as u32;
    Ok(Parameters { flags: page | steps, block_bytes, own: transmute!(own) })
}

/// Refuses parameters unknown to this version.
pub(super) fn check(parameters: &Parameters) -> Result<()> {
    let reserved = own(parameters).reserved.get();
    if parameters.flags & !(PAGE_SLOTS | LEAF_STEPS | LOWERED) != 0 || reserved != 0 {
        return Err(Parameters::unknown());
    }
    config(parameters).validate().map_err(|error| Error::Unsupported(error.to_string()))
}

/// The engine, without memory for its cache.
pub(crate) fn config(parameters: &Parameters) -> TreeConfig {
    let own = own(parameters);
    TreeConfig {
        blocks_per_bucket: own.blocks_per_bucket.get() as usize,
        eviction: Eviction::Scheduled { every: own.evict_every.get() },
        fill_percent: own.fill_percent.get(),
        leaf_steps: parameters.flags & LEAF_STEPS != 0,
        map_format: MapFormat::Compressed { individual_bits: own.individual_bits.get() },
        on_chip_bytes: own.on_chip_bytes.get() as usize,
        plb_bytes: own.plb_bytes.get() as usize,
        plb_ways: own.plb_ways.get() as usize,
        cache_bytes: 0,
        ..TreeConfig::new(parameters.block_bytes as usize, own.capacity_blocks.get())
    }
}

/// The parameters with another limit, for a volume with `addressable` addressable blocks.
pub(super) fn with_limit(
    parameters: &Parameters,
    blocks: u64,
    addressable: u64,
) -> Result<Parameters> {
    let config = config(parameters).with_capacity(blocks);
    let config = config.map_err(|error| Error::Invalid(error.to_string()))?;
    let own = Own {
        capacity_blocks: U64::new(config.capacity),
        on_chip_bytes: U64::new(config.on_chip_bytes as u64),
        ..own(parameters)
    };
    let lowered = if blocks < addressable { LOWERED } else { 0 };
    let flags = parameters.flags & !LOWERED | lowered;
    Ok(Parameters { flags, own: transmute!(own), ..*parameters })
}

/// The alignment of slots in the slab, in bytes.
pub(super) fn slot_align(parameters: &Parameters) -> usize {
    if parameters.flags & PAGE_SLOTS == 0 { SECTOR } else { PAGE }
}
