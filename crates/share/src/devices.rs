//! The devices that a server admits: a name, a volume, and the hash of a secret for each.

use crate::error::{Error, Result};
use crate::volume::{Healed, PairedDatabase};
use oblivio_store::StoreError;
use redb::{DatabaseError, ReadableTable, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

const DEVICES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("devices");

/// BLAKE3 of a device's secret. The secret is 256 random bits, so nobody can guess it from this.
pub type SecretHash = [u8; 32];

/// What the server keeps of a device's secret.
#[must_use]
pub fn secret_hash(secret: &[u8; 32]) -> SecretHash {
    *blake3::hash(secret).as_bytes()
}

/// The number of a device, with which its sessions begin. No other device of its volume has it.
#[must_use]
pub fn number(hash: &SecretHash) -> u16 {
    u16::from_le_bytes([hash[0], hash[1]])
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownDevice {
    /// The volume that it may use.
    pub volume: String,
    /// What its owner calls it.
    pub name: String,
}

/// All devices. One process has them at a time.
pub struct Devices {
    file: PairedDatabase,
    known: Mutex<BTreeMap<SecretHash, KnownDevice>>,
}

fn failed(error: impl Into<redb::Error>) -> Error {
    let source = match error.into() {
        redb::Error::Io(source) => source,
        other => io::Error::other(other.to_string()),
    };
    StoreError::io("devices", source).into()
}

impl Devices {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// Those of storage; a store's `Busy` if another process has it.
    pub fn open(path: &Path) -> Result<Self> {
        let file = PairedDatabase::open(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::Busy.into(),
            other => failed(other),
        })?;
        file.change(|write| write.open_table(DEVICES).map(drop).map_err(Into::into))
            .map_err(failed)?;
        let mut known = BTreeMap::new();
        let read = file.read().map_err(failed)?;
        for entry in read.open_table(DEVICES).map_err(failed)?.iter().map_err(failed)? {
            let (hash, device) = entry.map_err(failed)?;
            let hash = SecretHash::try_from(hash.value()).ok();
            let device = postcard::from_bytes(device.value()).ok();
            let (hash, device) = hash.zip(device).ok_or_else(|| {
                let what = "a device cannot be read";
                Error::from(StoreError::io("devices", io::Error::other(what)))
            })?;
            known.insert(hash, device);
        }
        Ok(Self { file, known: Mutex::new(known) })
    }

    /// The files that were damaged or lost, or cannot be written.
    pub fn healed(&self) -> Vec<Healed> {
        self.file.healed()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<SecretHash, KnownDevice>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one, durably.
    ///
    /// # Errors
    /// `Taken`; `SameNumber` if it needs another secret; those of storage.
    pub fn add(&self, hash: SecretHash, device: KnownDevice) -> Result<()> {
        let mut known = self.known();
        if known.values().any(|it| *it == device) {
            return Err(Error::Taken(device.name));
        }
        let same = |(other, it): (&SecretHash, &KnownDevice)| {
            number(other) == number(&hash) && it.volume == device.volume
        };
        if known.iter().any(same) {
            return Err(Error::SameNumber);
        }
        let bytes = postcard::to_stdvec(&device).unwrap_or_default();
        let add = |write: &WriteTransaction| {
            write.open_table(DEVICES)?.insert(&hash[..], &*bytes)?;
            Ok(())
        };
        self.file.change(add).map_err(failed)?;
        known.insert(hash, device);
        Ok(())
    }

    /// Removes one, durably, and returns its hash.
    ///
    /// # Errors
    /// `NoDevice`; those of storage.
    pub fn remove(&self, device: &KnownDevice) -> Result<SecretHash> {
        let mut known = self.known();
        let found = known.iter().find(|(_, it)| *it == device).map(|(hash, _)| *hash);
        let hash = found.ok_or_else(|| Error::NoDevice(device.name.clone()))?;
        let remove = |write: &WriteTransaction| {
            write.open_table(DEVICES)?.remove(&hash[..])?;
            Ok(())
        };
        self.file.change(remove).map_err(failed)?;
        known.remove(&hash);
        Ok(hash)
    }

    /// The device with this secret.
    #[must_use]
    pub fn find(&self, hash: &SecretHash) -> Option<KnownDevice> {
        self.known().get(hash).cloned()
    }

    /// What is known by the numbers of a volume's devices, by their names.
    #[must_use]
    pub fn named<T>(&self, volume: &str, of: Vec<(u16, T)>) -> Vec<(String, T)> {
        let known = self.known();
        let name = |wanted: u16| {
            let found =
                known.iter().find(|(hash, it)| it.volume == volume && number(hash) == wanted);
            found.map_or_else(|| "a device that was revoked".into(), |(_, it)| it.name.clone())
        };
        of.into_iter().map(|(number, it)| (name(number), it)).collect()
    }

    /// All of them, by volume and name.
    #[must_use]
    pub fn all(&self) -> Vec<KnownDevice> {
        let mut all: Vec<KnownDevice> = self.known().values().cloned().collect();
        all.sort_by(|a, b| (&a.volume, &a.name).cmp(&(&b.volume, &b.name)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_stay_until_they_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("devices");
        let device = |name: &str| KnownDevice { volume: "team".into(), name: name.into() };
        {
            let devices = Devices::open(&path).unwrap();
            devices.add([1; 32], device("b")).unwrap();
            devices.add([2; 32], device("a")).unwrap();
            assert!(matches!(devices.add([3; 32], device("a")), Err(Error::Taken(_))));
            assert!(Devices::open(&path).is_err(), "one process has it");
        }
        let devices = Devices::open(&path).unwrap();
        assert_eq!(devices.all(), [device("a"), device("b")]);
        assert_eq!(devices.find(&[1; 32]), Some(device("b")));
        assert_eq!(devices.remove(&device("b")).unwrap(), [1; 32]);
        assert!(matches!(devices.remove(&device("b")), Err(Error::NoDevice(_))));
        assert_eq!(devices.find(&[1; 32]), None);
    }
}
