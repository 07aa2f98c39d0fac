//! The volume header: the only stored bytes read before a passphrase is known.
//!
//! Layout in docs/format.md §"Header". It is stored twice. A MAC under the master key covers the
//! fields, and another one everything. A checksum tells damage from a wrong passphrase.

mod copies;
mod fields;
mod keeper;
mod objects;

pub(crate) use copies::HeaderCopies;
pub use fields::{FORMAT_VERSION, PARAMETER_BYTES, Parameters};
pub(crate) use keeper::HeaderKeeper;
pub(crate) use objects::expect_empty;
pub use objects::{HEADER_OBJECT, HEADER_OBJECTS, has_header, is_header};

use crate::{Error, Result};
use fields::{FIRST_FORMAT, Fields, MAGIC};
use objects::put_second;
use oblivio_crypto::{
    CryptoError, KEY_SLOTS_BYTES, KdfParams, KeySlots, Mac, MasterKey, Passphrase, Randomness,
    VolumeId, digest,
};
use oblivio_store::{Objects, PutMode};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a header.
pub const HEADER_BYTES: usize = FIRST_BYTES + size_of::<Trailer>() + SUM_BYTES;
/// Bytes of one of the first format.
const FIRST_BYTES: usize = size_of::<Fields>() + KEY_SLOTS_BYTES + MAC_BYTES;
const MAC_BYTES: usize = 32;
const SUM_BYTES: usize = 32;

/// A parsed header.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    fields: Fields,
    pub(crate) slots: KeySlots,
    /// Of the fields.
    mac: [u8; MAC_BYTES],
    /// Zeros in the first format.
    trailer: Trailer,
}

/// What the first format does not have.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
struct Trailer {
    /// Grows with each change: of two copies, the one with the higher number counts.
    sequence: U64,
    /// Of everything before it.
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
        let (mac, trailer) = ([0; MAC_BYTES], Trailer::default());
        let header = Self { fields, slots, mac, trailer };
        Ok((header.changed(&master.header_mac(volume)), master))
    }

    /// The header after a change, in the newest format, with its codes.
    pub(crate) fn changed(mut self, mac: &Mac) -> Self {
        self.fields.format = FORMAT_VERSION.into();
        self.mac = mac.bytes(&[self.fields.as_bytes()]);
        self.trailer.sequence += 1;
        self.trailer.mac = self.code(mac);
        self
    }

    /// The code of everything.
    fn code(&self, mac: &Mac) -> [u8; MAC_BYTES] {
        let (fields, sequence) = (self.fields.as_bytes(), self.trailer.sequence.as_bytes());
        mac.bytes(&[fields, &self.slots.to_bytes(), &self.mac, sequence])
    }

    /// Parses a stored header; refuses an unknown version.
    ///
    /// # Errors
    /// `Unsupported` if this version knows no such header, `Tampered` for a wrong checksum.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let (header, whole) = Self::parse_parts(bytes)?;
        match whole {
            true => Ok(header),
            false => Err(Error::Tampered("the header is damaged: its checksum is wrong".into())),
        }
    }

    /// The same, also with a wrong checksum; says whether it is right.
    fn parse_parts(bytes: &[u8]) -> Result<(Self, bool)> {
        let refuse = |why: String| Err(Error::Unsupported(why));
        let Ok((fields, rest)) = Fields::read_from_prefix(bytes) else {
            return refuse("not an Oblivio volume: the header is too short".into());
        };
        if fields.magic != MAGIC {
            return refuse("not an Oblivio volume: the header does not begin as one".into());
        }
        let found = fields.format.get();
        let length = match found {
            FIRST_FORMAT => FIRST_BYTES,
            FORMAT_VERSION => HEADER_BYTES,
            _ => {
                return refuse(format!(
                    "format {found} is not known to this version (it knows {FORMAT_VERSION})"
                ));
            }
        };
        if bytes.len() != length {
            return refuse("the header has the wrong length".into());
        }
        let (slots, rest) = rest.split_at(KEY_SLOTS_BYTES);
        let slots = KeySlots::from_bytes(slots)
            .map_err(|error| Error::Unsupported(format!("passphrase slots: {error}")))?;
        let (stored_mac, rest) = rest.split_at(MAC_BYTES);
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(stored_mac);
        let (trailer, whole) = match Trailer::read_from_prefix(rest) {
            Ok((trailer, sum)) => (trailer, *sum == digest(&bytes[..length - SUM_BYTES])),
            Err(_) => (Trailer::default(), true),
        };
        Ok((Self { fields, slots, mac, trailer }, whole))
    }

    /// The header as stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [self.fields.as_bytes(), &self.slots.to_bytes(), &self.mac].concat();
        if self.format() != FIRST_FORMAT {
            bytes.extend_from_slice(self.trailer.as_bytes());
            bytes.extend_from_slice(&digest(&bytes));
        }
        bytes
    }

    /// Stores both copies, each atomically; a store that was made without a place for the second
    /// one has one.
    ///
    /// # Errors
    /// Those of the store. Then the old header or the new one is stored, or one of each: the new
    /// one counts.
    pub fn save(&self, store: &dyn Objects, mode: PutMode) -> Result<()> {
        let bytes = self.to_bytes();
        store.put(HEADER_OBJECTS[0], &bytes, mode)?;
        put_second(store, &bytes)?;
        Ok(())
    }

    /// Opens the master key and checks everything with it.
    ///
    /// # Errors
    /// `WrongPassphrase`; `Tampered` if the passphrase is right and the header is not.
    pub fn unlock(&self, passphrase: &Passphrase) -> Result<MasterKey> {
        let master = self.open(passphrase)?;
        self.check(&master)?;
        Ok(master)
    }

    /// The same, but of the slots only the one that the passphrase opens must be right.
    fn open(&self, passphrase: &Passphrase) -> Result<MasterKey> {
        let (master, _) = self.slots.unlock(self.volume(), passphrase).map_err(unlock_error)?;
        self.open_with(&master)
    }

    /// The same with the master key.
    fn open_with(&self, master: &MasterKey) -> Result<MasterKey> {
        match self.has_right_fields(&master.header_mac(self.volume())) {
            true => Ok(master.duplicate()),
            false => Err(Error::Tampered("the header's fields were changed".into())),
        }
    }

    /// Refuses a header that is not as it was written.
    pub(crate) fn check(&self, master: &MasterKey) -> Result<()> {
        match self.is_authentic(&master.header_mac(self.volume())) {
            true => Ok(()),
            false => Err(Error::Tampered("the header's fields or slots were changed".into())),
        }
    }

    fn has_right_fields(&self, mac: &Mac) -> bool {
        mac.verify_bytes(&[self.fields.as_bytes()], &self.mac).is_ok()
    }

    /// Whether all of it is as it was written with this key. Of the first format that are the
    /// fields only.
    pub(crate) fn is_authentic(&self, mac: &Mac) -> bool {
        // Nothing of either code is secret.
        let rest = || self.format() == FIRST_FORMAT || self.code(mac) == self.trailer.mac;
        self.has_right_fields(mac) && rest()
    }

    /// How often it was changed; 0 in the first format.
    fn sequence(&self) -> u64 {
        self.trailer.sequence.get()
    }

    /// Whether it was changed as often as another one of its volume, or more.
    pub(crate) fn is_not_before(&self, other: &Self) -> bool {
        self.sequence() >= other.sequence()
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
        Self { fields, ..self.clone() }.changed(mac)
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
