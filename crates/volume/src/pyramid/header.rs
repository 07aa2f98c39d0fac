//! The pyramid engine's parameters in the header.

use super::policy::{bytes_per_ask, most_bytes};
use crate::header::{PARAMETER_BYTES, Parameters};
use crate::{Error, Result};
use oblivio_engine::pyramid::PyramidConfig;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

/// The most blocks: each takes memory.
const MOST_LOG_BLOCKS: u32 = 32;

/// A volume to make on the pyramid engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PyramidOptions {
    /// Bytes of user data in a block.
    pub block_bytes: usize,
    /// The most bytes of blocks, for ever.
    pub capacity_bytes: u64,
    /// Bytes of memory for the stash, about.
    pub stash_bytes: usize,
}

impl PyramidOptions {
    /// Of this block size and capacity, for a computer that gives volumes this much memory.
    pub fn new(block_bytes: usize, capacity_bytes: u64, memory_bytes: usize) -> Self {
        Self { block_bytes, capacity_bytes, stash_bytes: memory_bytes / 8 }
    }

    /// The most blocks.
    pub(super) fn blocks(&self) -> u64 {
        self.capacity_bytes.div_ceil(self.block_bytes as u64).max(1)
    }

    /// The engine.
    ///
    /// # Errors
    /// `Invalid` for more blocks than an index may have, or impossible parameters.
    pub(super) fn config(&self) -> Result<PyramidConfig> {
        if self.block_bytes == 0 || self.blocks() > 1 << MOST_LOG_BLOCKS {
            let why = format!("a pyramid has at most 2^{MOST_LOG_BLOCKS} blocks");
            return Err(Error::Invalid(why));
        }
        let config = PyramidConfig::new(self.block_bytes, self.blocks(), self.stash_bytes);
        config.validate().map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(config)
    }

    /// The most bytes in the store, and the bytes that an access reads and writes, on the average.
    ///
    /// # Errors
    /// `Invalid` for impossible parameters.
    pub(crate) fn cost(&self) -> Result<(u64, u64, u64)> {
        let config = self.config()?;
        let (read, written) = bytes_per_ask(&config);
        Ok((most_bytes(&config), read, written))
    }
}

/// As stored.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Own {
    capacity_blocks: U64,
    log_blocks: U32,
    log_stash: U32,
    log_partitions: U32,
    reserved: [u8; 28],
}

const _: () = assert!(size_of::<Own>() == PARAMETER_BYTES);

/// The parameters of a new volume.
pub(super) fn parameters_of(options: &PyramidOptions) -> Result<Parameters> {
    let config = options.config()?;
    let own = Own {
        capacity_blocks: U64::new(options.blocks()),
        log_blocks: U32::new(config.log_blocks),
        log_stash: U32::new(config.log_stash),
        log_partitions: U32::new(config.log_partitions),
        reserved: [0; 28],
    };
    Ok(Parameters { flags: 0, block_bytes: options.block_bytes as u32, own: transmute!(own) })
}

/// Refuses parameters unknown to this version.
pub(super) fn check(parameters: &Parameters) -> Result<()> {
    let own: Own = transmute!(parameters.own);
    if parameters.flags != 0 || own.reserved != [0; 28] {
        return Err(Parameters::unknown());
    }
    let config = config(parameters);
    config.validate().map_err(|error| Error::Unsupported(error.to_string()))?;
    if !(1..=config.blocks()).contains(&capacity_blocks(parameters)) {
        return Err(Error::Unsupported("the capacity is not that of its pyramid".into()));
    }
    Ok(())
}

/// The declared capacity, in blocks.
pub(super) fn capacity_blocks(parameters: &Parameters) -> u64 {
    let own: Own = transmute!(parameters.own);
    own.capacity_blocks.get()
}

/// The engine.
pub(super) fn config(parameters: &Parameters) -> PyramidConfig {
    let own: Own = transmute!(parameters.own);
    PyramidConfig {
        block_bytes: parameters.block_bytes as usize,
        log_blocks: own.log_blocks.get(),
        log_stash: own.log_stash.get(),
        log_partitions: own.log_partitions.get(),
    }
}
