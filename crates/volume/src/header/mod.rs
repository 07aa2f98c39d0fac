//! The volume header: the only stored bytes read before a passphrase is known.
//!
//! Layout in docs/format.md §"Header". A MAC under the master key covers everything but the
//! passphrase slots, which are sealed one by one.

mod fields;
mod limit;
mod sequential;
mod tree;

pub(crate) use limit::Limit;

pub use fields::{EngineKind, FORMAT_VERSION};
pub use sequential::SequentialHeader;

use crate::{Error, Result};
use fields::{Fields, MAGIC};
use oblivio_crypto::{
    CryptoError, KEY_SLOTS_BYTES, KdfParams, KeySlots, MasterKey, OsEntropy, Passphrase,
    Randomness, VolumeId,
};
use oblivio_engine::tree::TreeConfig;
use oblivio_store::{Blobs, Held, PutMode, Store};
use zerocopy::{FromBytes, IntoBytes};

/// The object that holds the header.
pub const HEADER_OBJECT: &str = "header";
/// Its length.
pub const HEADER_BYTES: usize = size_of::<Fields>() + KEY_SLOTS_BYTES + MAC_BYTES;
const MAC_BYTES: usize = 32;

/// What is readable without a passphrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicHeader {
    /// Its identity.
    pub volume: VolumeId,
    /// The format's version.
    pub format: u32,
    /// Its engine.
    pub engine: EngineKind,
    /// Bytes of user data in a block.
    pub block_bytes: usize,
    /// The declared capacity in bytes.
    pub capacity_bytes: u64,
    /// Passphrases that open the volume.
    pub passphrases: usize,
}

/// A parsed header.
pub struct Header {
    fields: Fields,
    engine: EngineKind,
    slots: KeySlots,
    mac: [u8; MAC_BYTES],
}

impl Header {
    /// The header of a new volume on the tree engine that opens with `passphrase`.
    ///
    /// # Errors
    /// `Invalid` for an engine configuration that cannot work.
    pub fn create(
        config: &TreeConfig,
        passphrase: &Passphrase,
        kdf: KdfParams,
        randomness: &Randomness,
    ) -> Result<(Self, MasterKey)> {
        Self::with(EngineKind::Tree, tree::fields_of(config)?, passphrase, kdf, randomness)
    }

    /// The header of a new volume on the sequential engine.
    ///
    /// # Errors
    /// `Invalid` for parameters that cannot work.
    pub fn create_sequential(
        layout: &SequentialHeader,
        passphrase: &Passphrase,
        kdf: KdfParams,
        randomness: &Randomness,
    ) -> Result<(Self, MasterKey)> {
        Self::with(
            EngineKind::Sequential,
            sequential::fields_of(layout)?,
            passphrase,
            kdf,
            randomness,
        )
    }

    fn with(
        engine: EngineKind,
        fields: Fields,
        passphrase: &Passphrase,
        kdf: KdfParams,
        randomness: &Randomness,
    ) -> Result<(Self, MasterKey)> {
        let mut randomness = randomness.clone();
        let volume = VolumeId::generate(&mut randomness);
        let master = MasterKey::generate(&mut randomness);
        let fields = Fields { volume: volume.0, ..fields };
        let mut slots = KeySlots::new();
        slots.add(&master, volume, passphrase, kdf, &mut randomness).map_err(unlock_error)?;
        let mac = master.header_mac(volume).bytes(&[fields.as_bytes()]);
        Ok((Self { fields, engine, slots, mac }, master))
    }

    /// Parses a stored header; refuses an unknown version, engine or flag.
    ///
    /// # Errors
    /// `Unsupported` if this version knows no such header.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let refuse = |why: String| Err(Error::Unsupported(why));
        let Ok((fields, rest)) = Fields::read_from_prefix(bytes) else {
            return refuse("not an Oblivio volume: the header is too short".into());
        };
        if fields.magic != MAGIC {
            return refuse("not an Oblivio volume: the header does not begin as one".into());
        }
        if fields.format.get() != FORMAT_VERSION {
            let found = fields.format.get();
            return refuse(format!(
                "format {found} is not known to this version (it knows {FORMAT_VERSION})"
            ));
        }
        let number = fields.engine.get();
        let Some(engine) = EngineKind::of(number) else {
            return refuse(format!("engine {number} is not known"));
        };
        match engine {
            EngineKind::Tree => tree::refuse_unknown(&fields)?,
            EngineKind::Sequential => sequential::refuse_unknown(&fields)?,
        }
        if rest.len() != KEY_SLOTS_BYTES + MAC_BYTES {
            return refuse("the header has the wrong length".into());
        }
        let (slots, stored_mac) = rest.split_at(KEY_SLOTS_BYTES);
        let slots = KeySlots::from_bytes(slots)
            .map_err(|error| Error::Unsupported(format!("passphrase slots: {error}")))?;
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(stored_mac);
        Ok(Self { fields, engine, slots, mac })
    }

    /// The header as stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.fields.as_bytes(), &self.slots.to_bytes(), &self.mac].concat()
    }

    /// Reads the header of a volume.
    ///
    /// # Errors
    /// `Unsupported` when there is none.
    pub fn load(store: &dyn Blobs) -> Result<Self> {
        let Some(len) = store.len(HEADER_OBJECT)? else {
            return Err(Error::Unsupported("no volume here: there is no header".into()));
        };
        if len > 1 << 16 {
            return Err(Error::Unsupported("not an Oblivio volume: the header is too long".into()));
        }
        let mut bytes = vec![0; len as usize];
        let object = HEADER_OBJECT;
        store.read(&mut [oblivio_store::ReadAt { object, offset: 0, buf: &mut bytes }])?;
        Self::parse(&bytes)
    }

    /// Replaces the stored header atomically.
    ///
    /// # Errors
    /// Those of the store.
    pub fn save(&self, store: &dyn Blobs, mode: PutMode) -> Result<()> {
        Ok(store.put(HEADER_OBJECT, &self.to_bytes(), mode)?)
    }

    /// Opens the master key and checks the fixed fields with it.
    ///
    /// # Errors
    /// `WrongPassphrase`; `Tampered` if the passphrase is right and the header is not.
    pub fn unlock(&self, passphrase: &Passphrase) -> Result<MasterKey> {
        let (master, _) = self.slots.unlock(self.volume(), passphrase).map_err(unlock_error)?;
        self.check(&master)?;
        Ok(master)
    }

    /// Checks the fixed fields.
    fn check(&self, master: &MasterKey) -> Result<()> {
        let mac = master.header_mac(self.volume());
        mac.verify_bytes(&[self.fields.as_bytes()], &self.mac)
            .map_err(|_| Error::Tampered("the header's fields were changed".into()))
    }

    /// Locks the store of a volume on this engine, reads its header and opens its master key.
    ///
    /// # Errors
    /// `Busy`, `Unsupported` (also for a volume on another engine), `WrongPassphrase`, `Tampered`.
    pub fn open_as(
        engine: EngineKind,
        store: &dyn Store,
        passphrase: &Passphrase,
    ) -> Result<(Self, MasterKey)> {
        store.lock()?;
        let header = Self::load(store)?;
        let master = header.unlock(passphrase)?;
        if header.engine() != engine {
            return Err(Error::Unsupported("the volume is on another engine".into()));
        }
        Ok((header, master))
    }

    /// The volume's identity.
    pub fn volume(&self) -> VolumeId {
        VolumeId(self.fields.volume)
    }

    /// Its engine.
    pub fn engine(&self) -> EngineKind {
        self.engine
    }

    /// The tree engine that the header describes (without memory for its cache).
    pub fn config(&self) -> TreeConfig {
        tree::config(&self.fields)
    }

    /// The alignment of slots in a tree's slab, in bytes.
    pub fn slot_align(&self) -> usize {
        tree::slot_align(&self.fields)
    }

    /// The sequential engine and the log that the header describes.
    pub fn sequential(&self) -> SequentialHeader {
        sequential::layout(&self.fields)
    }

    /// What is readable without a passphrase.
    pub fn public(&self) -> PublicHeader {
        let block_bytes = self.fields.block_bytes.get() as usize;
        PublicHeader {
            volume: self.volume(),
            format: self.fields.format.get(),
            engine: self.engine(),
            block_bytes,
            capacity_bytes: self.capacity_blocks().saturating_mul(block_bytes as u64),
            passphrases: self.slots.used().count(),
        }
    }
}

impl Header {
    fn capacity_blocks(&self) -> u64 {
        match self.engine() {
            EngineKind::Tree => self.config().capacity,
            EngineKind::Sequential => self.sequential().engine.blocks,
        }
    }
}

fn unlock_error(error: CryptoError) -> Error {
    match error {
        CryptoError::WrongPassphrase => Error::WrongPassphrase,
        CryptoError::NoFreeSlot => Error::Invalid("all passphrase slots are in use".into()),
        CryptoError::LastSlot => {
            Error::Invalid("the last passphrase cannot be removed; add another one first".into())
        }
        CryptoError::AlreadyOpens => {
            Error::Invalid("this passphrase opens the volume already; choose another one".into())
        }
        CryptoError::Forged => Error::Tampered("a passphrase slot of the header".into()),
        other => Error::Invalid(other.to_string()),
    }
}

/// Reads what is readable without a passphrase.
///
/// # Errors
/// `Unsupported` if this version knows no such volume.
pub fn read_header(store: &dyn Blobs) -> Result<PublicHeader> {
    Ok(Header::load(store)?.public())
}

/// Adds a passphrase; gives the number of its slot.
///
/// # Errors
/// `WrongPassphrase` when `known` opens nothing, `Invalid` when all slots are in use, or when `new`
/// opens the volume already.
pub fn add_passphrase(
    store: &dyn Blobs,
    known: &Passphrase,
    new: &Passphrase,
    kdf: KdfParams,
) -> Result<usize> {
    let mut header = Header::load(store)?;
    let master = header.unlock(known)?;
    let volume = header.volume();
    let slot = header.slots.add(&master, volume, new, kdf, &mut OsEntropy).map_err(unlock_error)?;
    header.save(store, PutMode::Replace)?;
    Ok(slot.get())
}

/// Removes a passphrase, from every slot that it opens.
///
/// # Errors
/// `WrongPassphrase` when it opens nothing, `Invalid` when it is the last one.
pub fn remove_passphrase(store: &dyn Blobs, victim: &Passphrase) -> Result<()> {
    let mut header = Header::load(store)?;
    let master = header.slots.remove(header.volume(), victim).map_err(unlock_error)?;
    header.check(&master)?;
    header.save(store, PutMode::Replace)
}

/// Replaces a passphrase by another, in every slot that it opens; nothing else is encrypted again.
///
/// # Errors
/// `WrongPassphrase` when `old` opens nothing, `Invalid` when `new` opens the volume already.
pub fn change_passphrase(
    store: &dyn Blobs,
    old: &Passphrase,
    new: &Passphrase,
    kdf: KdfParams,
) -> Result<()> {
    let mut header = Header::load(store)?;
    let volume = header.volume();
    let changed = header.slots.change(volume, old, new, kdf, &mut OsEntropy);
    let (master, _) = changed.map_err(unlock_error)?;
    header.check(&master)?;
    header.save(store, PutMode::Replace)
}

/// Refuses a store in which no new volume can be made.
pub(crate) fn expect_empty(store: &dyn Held) -> Result<()> {
    let objects = store.list()?;
    if objects.iter().any(|(name, _)| name == HEADER_OBJECT) {
        return Err(Error::Exists("a volume".into()));
    }
    match objects.iter().find(|(_, len)| *len > 0) {
        Some((name, _)) => {
            Err(Error::Invalid(format!("the store is not empty: it holds {name:?}")))
        }
        None => Ok(()),
    }
}
