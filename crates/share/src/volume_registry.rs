//! What a server has: volumes by their names, devices, and the connections that are open.

use crate::address::check_name;
use crate::connections::{Connections, Entered};
use crate::devices::{Devices, KnownDevice, SecretHash, number};
use crate::error::{Doing, Error, Result};
use crate::identity::random;
use crate::line::LineWriter;
use crate::volume::{Healed, MissingParts, StoredShare, Tables};
use oblivio_store::share::{Share, ShareClock, ShareError};
use oblivio_store::{Objects, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Opens the store somewhere else that has the tables of the volume of this name.
pub type TablesOf = Box<dyn Fn(&str) -> oblivio_store::Result<Arc<dyn Objects>> + Send + Sync>;

/// Where volumes are, beside the server's folder, and which of them are served with a loss.
#[derive(Default)]
pub struct Home {
    /// The store of the tables of each volume; none if they are in the folder.
    pub tables: Option<TablesOf>,
    /// Volumes that are served though something of them is missing: clients lose what it held.
    pub damaged: BTreeSet<String>,
}

/// A volume.
pub struct ServedVolume {
    /// Its content.
    pub share: StoredShare,
    /// Bytes that came from clients, and went to them.
    pub traffic: [AtomicU64; 2],
}

/// The folder of a server, opened.
pub struct VolumeRegistry {
    dir: PathBuf,
    clock: ShareClock,
    home: Home,
    devices: Devices,
    volumes: Mutex<BTreeMap<String, Arc<ServedVolume>>>,
    /// Volumes that could not be opened, and why: the others are served.
    damaged: BTreeMap<String, String>,
    connections: Connections,
}

/// What a server knows of a volume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VolumeStatus {
    /// Its name.
    pub volume: String,
    /// The devices that are connected, once for each connection.
    pub connected: Vec<String>,
    /// The volume's own.
    pub status: oblivio_store::share::Status,
    /// The devices whose asks wait, and how many of each.
    pub waiting: Vec<(String, u64)>,
    /// Bytes that came from clients since the server started.
    pub received_bytes: u64,
    /// Bytes that went to them.
    pub sent_bytes: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What to say of a file that was damaged or lost.
fn healed(folder: &str, healed: &Healed) -> String {
    let file = &healed.file;
    match &healed.failed {
        None => format!(
            "{folder}{file} was damaged or lost, and is whole again from its second copy. Look at \
             the disk, and make a backup"
        ),
        Some(why) => format!(
            "{folder}{file} is damaged or lost, and cannot be made again: {why}. Its other copy \
             alone is in use. Make a backup, and look at the disk"
        ),
    }
}

impl VolumeRegistry {
    /// Opens a folder with all volumes in it, or makes it. Their tables are in it, or where the
    /// caller says.
    ///
    /// # Errors
    /// Those of storage; a store's `Busy` if a server runs there.
    pub fn open(dir: &Path, home: Home) -> Result<Self> {
        let begin = Instant::now();
        Self::with_clock(dir, Arc::new(move || begin.elapsed()), home)
    }

    /// As [`Self::open`]; leases follow this clock.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn with_clock(dir: &Path, clock: ShareClock, home: Home) -> Result<Self> {
        let volumes = dir.join("volumes");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&volumes);
        made.doing(volumes.display())?;
        let devices = Devices::open(&dir.join("devices"))?;
        let mut registry = Self {
            dir: dir.into(),
            clock,
            home,
            devices,
            volumes: Mutex::default(),
            damaged: BTreeMap::new(),
            connections: Connections::default(),
        };
        for entry in fs::read_dir(&volumes).doing(volumes.display())? {
            let entry = entry.doing(volumes.display())?;
            if let Some(name) = entry.file_name().to_str().filter(|name| check_name(name).is_ok()) {
                match registry.open_volume(name) {
                    busy @ Err(Error::Share(ShareError::Store(StoreError::Busy))) => busy?,
                    Err(Error::Share(error)) => {
                        registry.damaged.insert(name.into(), error.to_string());
                    }
                    opened => opened?,
                }
            }
        }
        Ok(registry)
    }

    /// Opens a volume, or makes an empty one.
    ///
    /// # Errors
    /// `BadName`; those of storage.
    pub fn open_volume(&self, name: &str) -> Result<()> {
        check_name(name)?;
        if let Some(why) = self.damaged.get(name) {
            return Err(Error::Damaged { name: name.into(), why: why.clone() });
        }
        let mut volumes = lock(&self.volumes);
        if !volumes.contains_key(name) {
            let dir = self.dir.join("volumes").join(name);
            let clock = Arc::clone(&self.clock);
            let tables = match &self.home.tables {
                Some(tables) => {
                    let mut owner = [0; 16];
                    owner.copy_from_slice(&random()?[..16]);
                    Some(Tables::new(tables(name)?, owner))
                }
                None => None,
            };
            let lacking = match self.home.damaged.contains(name) {
                true => MissingParts::Accepted,
                false => MissingParts::Refused,
            };
            let share = StoredShare::opened(&dir, clock, tables, lacking)?;
            let volume = ServedVolume { share, traffic: Default::default() };
            volumes.insert(name.into(), Arc::new(volume));
        }
        Ok(())
    }

    /// What an administrator should know: volumes that are not served, and what a crash tore.
    pub fn findings(&self) -> Vec<String> {
        let not_served = |(name, why): (&String, &String)| {
            format!(
                "{name} is not served, and nothing of it was deleted: {why}. Put back what is \
                 missing, from a backup of volumes/{name}. If it is a table, the volume is served \
                 without it with --damaged {name}: then what it held is lost"
            )
        };
        let mut found: Vec<String> = self.damaged.iter().map(not_served).collect();
        found.extend(self.devices.healed().iter().map(|it| healed("", it)));
        for (name, volume) in self.volumes() {
            let lacks = volume.share.lacks().iter();
            found.extend(lacks.map(|what| format!("{name} is served without this: {what}")));
            let mended = volume.share.mended().iter();
            found.extend(mended.map(|it| healed(&format!("volumes/{name}/"), it)));
            found.extend(volume.share.set_aside().map(|path| {
                let path = path.display();
                format!(
                    "{name}: the newest bytes of its history were no whole record, as after a crash. \
                     They are in {path}. If clients say that the volume was set back, keep them"
                )
            }));
        }
        found
    }

    /// All volumes with their names.
    pub fn volumes(&self) -> Vec<(String, Arc<ServedVolume>)> {
        lock(&self.volumes).iter().map(|(name, it)| (name.clone(), Arc::clone(it))).collect()
    }

    /// Refuses to serve volumes whose tables are nobody knows where.
    ///
    /// # Errors
    /// `LacksTables`.
    pub fn expect_tables(&self) -> Result<()> {
        match self.volumes().into_iter().find(|(_, volume)| volume.share.lacks_tables()) {
            Some((name, _)) => Err(Error::LacksTables(name)),
            None => Ok(()),
        }
    }

    /// A volume.
    ///
    /// # Errors
    /// `NoVolume`; `Damaged`.
    pub fn volume(&self, name: &str) -> Result<Arc<ServedVolume>> {
        if let Some(why) = self.damaged.get(name) {
            return Err(Error::Damaged { name: name.into(), why: why.clone() });
        }
        let found = lock(&self.volumes).get(name).cloned();
        found.ok_or_else(|| Error::NoVolume(name.chars().take(80).collect()))
    }

    /// Adds a device, whose secret has this hash.
    ///
    /// # Errors
    /// `NoVolume`, `BadName`, `Taken`; those of storage.
    pub fn add_device(&self, hash: SecretHash, device: KnownDevice) -> Result<()> {
        check_name(&device.name)?;
        self.volume(&device.volume)?;
        self.devices.add(hash, device)
    }

    /// Removes a device, and cuts its connections.
    ///
    /// # Errors
    /// `NoDevice`; those of storage.
    pub fn remove_device(&self, device: &KnownDevice) -> Result<()> {
        let hash = self.devices.remove(device)?;
        self.connections.cut(hash);
        Ok(())
    }

    /// All devices.
    pub fn devices(&self) -> Vec<KnownDevice> {
        self.devices.all()
    }

    /// Takes note of a connection, unless its device is not known (any more) for this volume.
    /// It counts until [`VolumeRegistry::leave`] of the number.
    pub fn enter(&self, hash: SecretHash, volume: &str, line: &LineWriter) -> Option<Entered> {
        self.connections.enter(&self.devices, hash, volume, line)
    }

    /// A connection ended.
    pub fn leave(&self, number: u64) {
        self.connections.leave(number, (self.clock)());
    }

    /// Cuts all connections.
    pub fn cut_all(&self) {
        self.connections.cut_all();
    }

    /// Does what is due now and then: answers become durable for which nobody waits, and asks of
    /// devices that are gone go.
    pub fn settle(&self) {
        for (hash, device) in self.connections.gone((self.clock)()) {
            if let Ok(volume) = self.volume(&device.volume) {
                volume.share.forget_device(number(&hash));
            }
        }
        for (_, volume) in self.volumes() {
            // The next call that waits for a record gets the error.
            let _ = volume.share.settle();
        }
    }

    /// What the server knows.
    ///
    /// # Errors
    /// Those of storage.
    pub fn status(&self) -> Result<Vec<VolumeStatus>> {
        let mut found = Vec::new();
        for (name, volume) in self.volumes() {
            let [received, sent] = &volume.traffic;
            found.push(VolumeStatus {
                connected: self.connections.names(&name),
                waiting: self.devices.named(&name, volume.share.waiting()),
                status: volume.share.status()?,
                received_bytes: received.load(Ordering::Relaxed),
                sent_bytes: sent.load(Ordering::Relaxed),
                volume: name,
            });
        }
        Ok(found)
    }
}
