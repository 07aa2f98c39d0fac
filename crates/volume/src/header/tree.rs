//! The header's fields of the tree engine.

use super::fields::{EngineKind, Fields, PARAMETER_BYTES, unknown_features};
use crate::tree::slab::{PAGE, SECTOR};
use crate::{Error, Result};
use oblivio_engine::tree::{Eviction, MapFormat, Recursion, TreeConfig};
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
struct Parameters {
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

const _: () = assert!(size_of::<Parameters>() == PARAMETER_BYTES);

fn parameters(fields: &Fields) -> Parameters {
    transmute!(fields.parameters)
}

/// The fields of a new volume.
pub(super) fn fields_of(config: &TreeConfig) -> Result<Fields> {
    config.validate().map_err(|error| Error::Invalid(error.to_string()))?;
    let (
        Eviction::Scheduled { every },
        MapFormat::Compressed { individual_bits },
        Recursion::Unified { plb_bytes, plb_ways },
    ) = (config.eviction, config.map_format, config.recursion)
    else {
        return Err(Error::Invalid("this configuration is for the lab only".into()));
    };
    let page = if config.block_bytes < PAGE_SLOTS_FROM { 0 } else { PAGE_SLOTS };
    let steps = if config.leaf_steps { LEAF_STEPS } else { 0 };
    let parameters = Parameters {
        blocks_per_bucket: U32::new(config.blocks_per_bucket as u32),
        evict_every: U32::new(every),
        fill_percent: U32::new(config.fill_percent),
        individual_bits: U32::new(individual_bits),
        capacity_blocks: U64::new(config.capacity),
        on_chip_bytes: U64::new(config.on_chip_bytes as u64),
        plb_bytes: U64::new(plb_bytes as u64),
        plb_ways: U32::new(plb_ways as u32),
        reserved: U32::new(0),
    };
    let block_bytes = config.block_bytes as u32;
    Ok(Fields::new(EngineKind::Tree, page | steps, block_bytes, transmute!(parameters)))
}

/// Refuses fields unknown to this version.
pub(super) fn refuse_unknown(fields: &Fields) -> Result<()> {
    let reserved = parameters(fields).reserved.get();
    if fields.flags.get() & !(PAGE_SLOTS | LEAF_STEPS | LOWERED) != 0 || reserved != 0 {
        return Err(unknown_features());
    }
    config(fields).validate().map_err(|error| Error::Unsupported(error.to_string()))
}

/// The engine, without memory for its cache.
pub(super) fn config(fields: &Fields) -> TreeConfig {
    let own = parameters(fields);
    TreeConfig {
        blocks_per_bucket: own.blocks_per_bucket.get() as usize,
        eviction: Eviction::Scheduled { every: own.evict_every.get() },
        fill_percent: own.fill_percent.get(),
        leaf_steps: fields.flags.get() & LEAF_STEPS != 0,
        map_format: MapFormat::Compressed { individual_bits: own.individual_bits.get() },
        on_chip_bytes: own.on_chip_bytes.get() as usize,
        recursion: Recursion::Unified {
            plb_bytes: own.plb_bytes.get() as usize,
            plb_ways: own.plb_ways.get() as usize,
        },
        cache_bytes: 0,
        ..TreeConfig::new(fields.block_bytes.get() as usize, own.capacity_blocks.get())
    }
}

/// The fields with another limit, for a volume with `addressable` addressable blocks.
pub(super) fn with_limit(fields: &Fields, blocks: u64, addressable: u64) -> Result<Fields> {
    let config = config(fields).with_capacity(blocks);
    let config = config.map_err(|error| Error::Invalid(error.to_string()))?;
    let own = Parameters {
        capacity_blocks: U64::new(config.capacity),
        on_chip_bytes: U64::new(config.on_chip_bytes as u64),
        ..parameters(fields)
    };
    let lowered = if blocks < addressable { LOWERED } else { 0 };
    let flags = U32::new(fields.flags.get() & !LOWERED | lowered);
    Ok(Fields { flags, parameters: transmute!(own), ..*fields })
}

/// The alignment of slots in the slab, in bytes.
pub(super) fn slot_align(fields: &Fields) -> usize {
    if fields.flags.get() & PAGE_SLOTS == 0 { SECTOR } else { PAGE }
}
