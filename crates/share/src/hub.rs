//! What a server has: volumes by their names, devices, and the connections that are open.

use crate::address::check_name;
use crate::devices::{Device, Devices, SecretHash};
use crate::error::{Doing, Error, Result};
use crate::identity::random;
use crate::line::Writer;
use oblivio_store::Store;
use oblivio_store::share::{AskId, Call, Clock, Session, Share, ShareError, StoredShare, Tables};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The most sessions whose devices a server remembers, for each volume.
const MOST_SESSIONS: usize = 65_536;

/// Opens the store somewhere else that has the tables of the volume of this name.
pub type TablesOf = Box<dyn Fn(&str) -> oblivio_store::Result<Arc<dyn Store>> + Send + Sync>;

/// A volume, and which device began which session.
pub struct Volume {
    /// Its content.
    pub share: StoredShare,
    sessions: Mutex<BTreeMap<Session, SecretHash>>,
    /// Bytes that came from clients, and went to them.
    pub traffic: [AtomicU64; 2],
}

/// A connection of a device.
struct Connected {
    hash: SecretHash,
    device: Device,
    line: Writer,
}

/// The folder of a server, opened.
pub struct Hub {
    dir: PathBuf,
    clock: Clock,
    tables: Option<TablesOf>,
    devices: Devices,
    volumes: Mutex<BTreeMap<String, Arc<Volume>>>,
    connected: Mutex<BTreeMap<u64, Connected>>,
    next: AtomicU64,
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
    /// Bytes that came from clients since the server started.
    pub received_bytes: u64,
    /// Bytes that went to them.
    pub sent_bytes: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// Opens a folder with all volumes in it, or makes it. Their tables are in it, or where the
    /// caller says.
    ///
    /// # Errors
    /// Those of storage; a store's `Busy` if a server runs there.
    pub fn open(dir: &Path, tables: Option<TablesOf>) -> Result<Self> {
        let begin = Instant::now();
        Self::with_clock(dir, Arc::new(move || begin.elapsed()), tables)
    }

    /// As [`Self::open`]; leases follow this clock.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn with_clock(dir: &Path, clock: Clock, tables: Option<TablesOf>) -> Result<Self> {
        let volumes = dir.join("volumes");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&volumes);
        made.doing(volumes.display())?;
        let devices = Devices::open(&dir.join("devices"))?;
        let hub = Self {
            dir: dir.into(),
            clock,
            tables,
            devices,
            volumes: Mutex::default(),
            connected: Mutex::default(),
            next: AtomicU64::new(0),
        };
        for entry in fs::read_dir(&volumes).doing(volumes.display())? {
            let entry = entry.doing(volumes.display())?;
            if let Some(name) = entry.file_name().to_str().filter(|name| check_name(name).is_ok()) {
                hub.open_volume(name)?;
            }
        }
        Ok(hub)
    }

    /// Opens a volume, or makes an empty one.
    ///
    /// # Errors
    /// `BadName`; those of storage.
    pub fn open_volume(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let mut volumes = lock(&self.volumes);
        if !volumes.contains_key(name) {
            let dir = self.dir.join("volumes").join(name);
            let clock = Arc::clone(&self.clock);
            let share = match &self.tables {
                Some(tables) => {
                    let mut owner = [0; 16];
                    owner.copy_from_slice(&random()?[..16]);
                    StoredShare::with_tables(&dir, clock, Tables::new(tables(name)?, owner))?
                }
                None => StoredShare::open(&dir, clock)?,
            };
            let volume = Volume { share, sessions: Mutex::default(), traffic: Default::default() };
            volumes.insert(name.into(), Arc::new(volume));
        }
        Ok(())
    }

    /// All volumes with their names.
    pub fn volumes(&self) -> Vec<(String, Arc<Volume>)> {
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
    /// `NoVolume`.
    pub fn volume(&self, name: &str) -> Result<Arc<Volume>> {
        let found = lock(&self.volumes).get(name).cloned();
        found.ok_or_else(|| Error::NoVolume(name.chars().take(80).collect()))
    }

    /// Adds a device, whose secret has this hash.
    ///
    /// # Errors
    /// `NoVolume`, `BadName`, `Taken`; those of storage.
    pub fn add_device(&self, hash: SecretHash, device: Device) -> Result<()> {
        check_name(&device.name)?;
        self.volume(&device.volume)?;
        self.devices.add(hash, device)
    }

    /// Removes a device, and cuts its connections.
    ///
    /// # Errors
    /// `NoDevice`; those of storage.
    pub fn remove_device(&self, device: &Device) -> Result<()> {
        let hash = self.devices.remove(device)?;
        let gone = |it: &&Connected| it.hash == hash;
        lock(&self.connected).values().filter(gone).for_each(|it| it.line.cut());
        Ok(())
    }

    /// All devices.
    pub fn devices(&self) -> Vec<Device> {
        self.devices.all()
    }

    /// Takes note of a connection, unless its device is not known (any more) for this volume.
    /// It counts until [`Hub::leave`] of the number.
    pub fn enter(&self, hash: SecretHash, volume: &str, line: &Writer) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Under this lock, so that a device that is removed meanwhile is cut off.
        let mut connected = lock(&self.connected);
        let device = self.devices.find(&hash).filter(|device| device.volume == volume)?;
        connected.insert(number, Connected { hash, device, line: line.clone() });
        Some(number)
    }

    /// A connection ended.
    pub fn leave(&self, number: u64) {
        lock(&self.connected).remove(&number);
    }

    /// Cuts all connections.
    pub fn cut_all(&self) {
        lock(&self.connected).values().for_each(|it| it.line.cut());
    }

    /// What the server knows.
    ///
    /// # Errors
    /// Those of storage.
    pub fn status(&self) -> Result<Vec<VolumeStatus>> {
        let mut found = Vec::new();
        for (name, volume) in self.volumes() {
            let of = |it: &&Connected| it.device.volume == name;
            let connected = lock(&self.connected);
            let devices = connected.values().filter(of).map(|it| it.device.name.clone());
            let [received, sent] = &volume.traffic;
            found.push(VolumeStatus {
                connected: devices.collect(),
                status: volume.share.status()?,
                received_bytes: received.load(Ordering::Relaxed),
                sent_bytes: sent.load(Ordering::Relaxed),
                volume: name,
            });
        }
        Ok(found)
    }
}

impl Volume {
    /// Refuses a call about a session that another device began.
    pub fn check_sessions(
        &self,
        hash: &SecretHash,
        call: &Call<'_>,
    ) -> oblivio_store::share::Result<()> {
        match call {
            Call::Ask(asks) => asks
                .iter()
                .map(|ask| ask.id)
                .try_for_each(|AskId { session, .. }| self.check_session(hash, session)),
            Call::Answers { session, .. } => self.check_session(hash, *session),
            _ => Ok(()),
        }
    }

    fn check_session(
        &self,
        hash: &SecretHash,
        session: Session,
    ) -> oblivio_store::share::Result<()> {
        let mut sessions = lock(&self.sessions);
        if let Some(of) = sessions.get(&session) {
            let why = || ShareError::Denied("the session is another device's".into());
            return if of == hash { Ok(()) } else { Err(why()) };
        }
        if sessions.len() >= MOST_SESSIONS {
            // Which one goes is of no matter: a session that goes on is noted again.
            sessions.pop_first();
        }
        sessions.insert(session, *hash);
        Ok(())
    }
}
