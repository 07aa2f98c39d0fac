//! A shared volume's header, which the server keeps: what is read before a passphrase is known.

use crate::error::of_share;
use oblivio_crypto::{KdfParams, MasterKey, OsEntropy, Passphrase, Randomness, Sealer, VolumeId};
use oblivio_engine::pyramid::{PyramidConfig, PyramidKeys, PyramidOram};
use oblivio_store::share::{Share, ShareError, ShareParameters as StoredHeader};
use oblivio_volume::{Error, Header, PARAMETER_BYTES, Parameters, Result};
use std::sync::Arc;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

/// The number of shared volumes in a header.
pub const SHARED_ENGINE: u32 = 4;
/// The most blocks, as a logarithm: each takes memory at the scribe.
const MOST_LOG_BLOCKS: u32 = 28;
/// The stash that the size of a volume justifies, in blocks at most.
const MOST_STASH: usize = 1 << 14;

/// A shared volume to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewShared {
    /// Bytes of a block.
    pub block_bytes: usize,
    /// The most bytes of blocks, for ever.
    pub capacity_bytes: u64,
    /// The cost of its passphrase.
    pub kdf: KdfParams,
}

impl NewShared {
    /// Of this capacity in bytes, with blocks of 4 KiB.
    #[must_use]
    pub fn of(capacity_bytes: u64) -> Self {
        Self { block_bytes: 4096, capacity_bytes, kdf: KdfParams::default() }
    }

    /// The engine.
    ///
    /// # Errors
    /// `Invalid` for too many blocks, or blocks of a size that cannot be.
    pub fn config(&self) -> Result<PyramidConfig> {
        let blocks = self.capacity_bytes.div_ceil(self.block_bytes.max(1) as u64);
        if self.block_bytes == 0 || blocks > 1 << MOST_LOG_BLOCKS {
            let why = format!("a shared volume has at most 2^{MOST_LOG_BLOCKS} blocks");
            return Err(Error::Invalid(why));
        }
        let stash = MOST_STASH * self.block_bytes;
        let config = PyramidConfig::new(self.block_bytes, blocks, stash);
        config.validate()?;
        Ok(config)
    }
}

/// The engine's parameters, as stored.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Own {
    log_blocks: U32,
    log_stash: U32,
    log_partitions: U32,
    reserved: [u8; 36],
}

const _: () = assert!(size_of::<Own>() == PARAMETER_BYTES);

/// A shared volume with its key.
#[derive(Clone)]
pub struct Keyed {
    master: Arc<MasterKey>,
    volume: VolumeId,
    config: PyramidConfig,
}

/// Makes the volume, unless there is one.
///
/// # Errors
/// `Exists` if there is one; `Invalid` for impossible parameters; those of the line.
pub fn create(share: &dyn Share, new: &NewShared, passphrase: &Passphrase) -> Result<Keyed> {
    let config = new.config()?;
    let own = Own {
        log_blocks: U32::new(config.log_blocks),
        log_stash: U32::new(config.log_stash),
        log_partitions: U32::new(config.log_partitions),
        reserved: [0; 36],
    };
    let block_bytes = new.block_bytes as u32;
    let parameters = Parameters { flags: 0, block_bytes, own: transmute!(own) };
    let randomness = Randomness::default();
    let made = Header::create(SHARED_ENGINE, &parameters, passphrase, new.kdf, &randomness);
    let (header, master) = made?;
    match share.put_parameters(0, config.slot_bytes() as u32, &header.to_bytes()) {
        Ok(_) => Ok(Keyed { master: Arc::new(master), volume: header.volume(), config }),
        Err(ShareError::Version(_)) => Err(Error::Exists("a volume".into())),
        Err(error) => Err(of_share(error)),
    }
}

/// The header of the volume.
///
/// # Errors
/// `Unsupported` if there is none, or one that this version does not know; those of the line.
pub fn header(share: &dyn Share) -> Result<Header> {
    read_header(share).map(|(header, _)| header)
}

/// The header, and how the server keeps it.
pub(crate) fn read_header(share: &dyn Share) -> Result<(Header, StoredHeader)> {
    let parameters = share.parameters().map_err(of_share)?;
    let parameters = parameters.ok_or_else(|| of_share(ShareError::NotMade))?;
    let header = Header::parse(&parameters.header)?;
    let config = config_of(&header)?;
    if config.slot_bytes() != parameters.slot_bytes as usize {
        return Err(Error::Tampered("the server's slots have another length".into()));
    }
    Ok((header, parameters))
}

/// What the header says of the engine.
///
/// # Errors
/// `Unsupported` for what this version does not know.
pub fn config_of(header: &Header) -> Result<PyramidConfig> {
    let parameters = header.parameters();
    let own: Own = transmute!(parameters.own);
    if header.engine() != SHARED_ENGINE {
        return Err(Error::Unsupported("the volume is not one of those that are shared".into()));
    }
    let config = PyramidConfig {
        block_bytes: parameters.block_bytes as usize,
        log_blocks: own.log_blocks.get(),
        log_stash: own.log_stash.get(),
        log_partitions: own.log_partitions.get(),
    };
    if parameters.flags != 0 || own.reserved != [0; 36] || config.log_blocks > MOST_LOG_BLOCKS {
        let why = "the volume uses features that this version does not know";
        return Err(Error::Unsupported(why.into()));
    }
    config.validate().map_err(|error| Error::Unsupported(error.to_string()))?;
    Ok(config)
}

/// Opens the volume with a passphrase.
///
/// # Errors
/// `WrongPassphrase`; `Tampered` if the header was changed; as [`header`].
pub fn unlock(share: &dyn Share, passphrase: &Passphrase) -> Result<Keyed> {
    let header = header(share)?;
    let master = header.unlock(passphrase)?;
    Ok(Keyed { master: Arc::new(master), volume: header.volume(), config: config_of(&header)? })
}

impl Keyed {
    /// The volume's identity.
    #[must_use]
    pub fn volume(&self) -> VolumeId {
        self.volume
    }

    /// The engine's parameters.
    #[must_use]
    pub fn config(&self) -> PyramidConfig {
        self.config
    }

    /// Seals and opens records.
    pub(crate) fn sealer(&self) -> Sealer {
        Sealer::new(self.master.record_root(self.volume), Box::new(OsEntropy))
    }

    /// An engine without content.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn oram(&self) -> oblivio_engine::Result<PyramidOram> {
        let keys = PyramidKeys::of_volume(&self.master, self.volume, &Randomness::default());
        PyramidOram::new(self.config, keys)
    }
}
