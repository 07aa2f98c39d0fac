//! The volume header: the only stored bytes read before a passphrase is known.
//!
//! Layout in docs/format.md §"Header". A MAC under the master key covers everything but the
//! passphrase slots, which are sealed one by one.

mod fields;

pub use fields::{FORMAT_VERSION, PARAMETER_BYTES, Parameters};

use crate::{Error, Result};
use fields::{Fields, MAGIC};
use oblivio_crypto::{
    CryptoError, KEY_SLOTS_BYTES, KdfParams, KeySlots, Mac, MasterKey, Passphrase, Randomness,
    VolumeId,
};
use oblivio_store::{Held, Objects, PutMode};
use zerocopy::{FromBytes, IntoBytes};

/// The object that holds the header.
pub const HEADER_OBJECT: &str = "header";
/// Its length.
pub const HEADER_BYTES: usize = size_of::<Fields>() + KEY_SLOTS_BYTES + MAC_BYTES;
const MAC_BYTES: usize = 32;

/// A parsed header.
#[derive(Clone)]
pub struct Header {
    fields: Fields,
    pub(crate) slots: KeySlots,
    mac: [u8; MAC_BYTES],
}

impl Header {
    /// The header of a new volume that opens with `passphrase`, on the engine of this number.
    ///
    /// # Errors
    /// `Invalid` for a key-derivation cost that makes no sense.
    pub fn create(
        engine: u32,
        parameters: &Parameters,
        passphrase: &Passphrase,
        kdf: KdfParams,
        randomness: &Randomness,
    ) -> Result<(Self, MasterKey)> {
        let mut randomness = randomness.clone();
        let volume = VolumeId::generate(&mut randomness);
        let master = MasterKey::generate(&mut randomness);
        let fields = Fields::new(engine, volume, parameters);
        let mut slots = KeySlots::new();
        slots.add(&master, volume, passphrase, kdf, &mut randomness).map_err(unlock_error)?;
        let mac = master.header_mac(volume).bytes(&[fields.as_bytes()]);
        Ok((Self { fields, slots, mac }, master))
    }

    /// Parses a stored header; refuses an unknown version.
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
        if rest.len() != KEY_SLOTS_BYTES + MAC_BYTES {
            return refuse("the header has the wrong length".into());
        }
        let (slots, stored_mac) = rest.split_at(KEY_SLOTS_BYTES);
        let slots = KeySlots::from_bytes(slots)
            .map_err(|error| Error::Unsupported(format!("passphrase slots: {error}")))?;
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(stored_mac);
        Ok(Self { fields, slots, mac })
    }

    /// The header as stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        [self.fields.as_bytes(), &self.slots.to_bytes(), &self.mac].concat()
    }

    /// Reads the header of a volume.
    ///
    /// # Errors
    /// `Unsupported` when there is none.
    pub fn load(store: &dyn Objects) -> Result<Self> {
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
    pub fn save(&self, store: &dyn Objects, mode: PutMode) -> Result<()> {
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
    pub(crate) fn check(&self, master: &MasterKey) -> Result<()> {
        let mac = master.header_mac(self.volume());
        mac.verify_bytes(&[self.fields.as_bytes()], &self.mac)
            .map_err(|_| Error::Tampered("the header's fields were changed".into()))
    }

    /// The volume's identity.
    pub fn volume(&self) -> VolumeId {
        VolumeId(self.fields.volume)
    }

    /// The number of its engine.
    pub fn engine(&self) -> u32 {
        self.fields.engine.get()
    }

    /// What its engine keeps here.
    pub fn parameters(&self) -> Parameters {
        Parameters {
            flags: self.fields.flags.get(),
            block_bytes: self.fields.block_bytes.get(),
            own: self.fields.parameters,
        }
    }

    /// The same header with other parameters; `mac` is the volume's key for them.
    pub(crate) fn with_parameters(&self, parameters: &Parameters, mac: &Mac) -> Self {
        let fields = Fields::new(self.engine(), self.volume(), parameters);
        Self { fields, slots: self.slots.clone(), mac: mac.bytes(&[fields.as_bytes()]) }
    }

    /// The format's version.
    pub fn format(&self) -> u32 {
        self.fields.format.get()
    }

    /// Passphrases that open the volume.
    pub fn passphrases(&self) -> usize {
        self.slots.used().count()
    }
}

pub(crate) fn unlock_error(error: CryptoError) -> Error {
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
