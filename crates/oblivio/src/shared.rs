//! Opening and making volumes that computers share, at a server: `share://HOST:PORT/NAME`.

use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::options::{CreateOptions, Knowledge, OpenOptions};
use crate::passphrase::Passphrase;
use crate::volume::Volume;
use oblivio_app::shared::{self, ShareLine, SharedFiles, TIMEOUT};
use oblivio_app::state_folder;
use oblivio_client::disk::{Claim, SharedDisk, capacity_for, make};
use oblivio_client::{
    Client, ClientOptions, HeadKeeper, Keyed, NewShared, Unremembered, create, unlock,
};
use oblivio_crypto::{Entropy, OsEntropy};
use oblivio_share::ShareAddress;
use oblivio_volume::disk::SECTOR;
use oblivio_volume::{SeenBy, Which};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The most that a volume may hold, unless the caller says otherwise: its tables grow with use.
const SIZE: u64 = 16 << 30;

/// The address of a shared volume, if the place is one.
pub(crate) fn address(place: &Path) -> Option<Result<ShareAddress>> {
    shared::address(place).map(|address| Ok(address?))
}

/// The way to a volume, for one session or two.
struct Way<'o> {
    address: &'o ShareAddress,
    open: &'o OpenOptions,
    state: Option<PathBuf>,
}

impl<'o> Way<'o> {
    fn to(address: &'o ShareAddress, open: &'o OpenOptions) -> Result<Self> {
        let fits = !open.pad && open.cache.is_none() && matches!(open.history, Which::Newest);
        if !fits {
            return Err(Error::Invalid(
                "a shared volume has no padding, disk cache or histories".into(),
            ));
        }
        let state = match &open.knowledge {
            Knowledge::OfUser => Some(state_folder()?),
            Knowledge::In(folder) => Some(folder.clone()),
            Knowledge::Nowhere => None,
        };
        Ok(Self { address, open, state })
    }

    fn line(&self) -> Result<ShareLine> {
        Ok(shared::line(self.address, self.open.token_file.as_deref(), self.state.as_deref())?)
    }

    /// What is known of the volume, and this computer's name for itself.
    fn known(&self, keyed: &Keyed, any_volume: bool) -> Result<(Box<dyn HeadKeeper>, [u8; 16])> {
        let any_volume = any_volume || self.open.accept_other_volume;
        let accept = self.open.accept_rollback;
        match &self.state {
            Some(state) => {
                let known = shared::known(state, self.address, keyed, any_volume, accept)?;
                let computer = known.computer()?;
                Ok((Box::new(known), computer))
            }
            None => {
                let mut computer = [0; 16];
                OsEntropy.fill(&mut computer);
                Ok((Box::new(Unremembered::default()), computer))
            }
        }
    }

    /// Begins a session, in which the file system hears what others change.
    fn files(&self, line: ShareLine, keyed: Keyed, any_volume: bool) -> Result<Client> {
        let (known, _) = self.known(&keyed, any_volume)?;
        let options = ClientOptions { timeout: TIMEOUT, notices: true, ..ClientOptions::default() };
        Ok(Client::open(Box::new(line), keyed, known, options)?)
    }

    /// The disk of a volume that has one.
    fn disk(&self, line: ShareLine, keyed: Keyed, any_volume: bool) -> Result<Disk> {
        let (known, computer) = self.known(&keyed, any_volume)?;
        let options = ClientOptions { timeout: TIMEOUT, ..ClientOptions::default() };
        let client = Client::open(Box::new(line), keyed, known, options)?;
        let claim = Claim { computer, take_over: self.open.wait == Some(Duration::ZERO) };
        let shared = SharedDisk::open(client, claim, Arc::default())?;
        match shared.disk() {
            Ok(disk) => Ok(Disk::shared(disk, shared)),
            Err(error) => {
                // The error says more than a failure to part.
                let _ = shared.close();
                Err(error.into())
            }
        }
    }
}

/// Opens the files of a shared volume.
pub(crate) fn open(
    open: &OpenOptions,
    address: &ShareAddress,
    passphrase: &Passphrase,
) -> Result<Volume> {
    let way = Way::to(address, open)?;
    let line = way.line()?;
    let keyed = unlock(&line, passphrase.secret())?;
    let files = SharedFiles::open(way.files(line, keyed, false)?)?;
    Ok(Volume::shared(Box::new(files)))
}

/// Opens the disk of a shared volume.
pub(crate) fn open_disk(
    open: &OpenOptions,
    address: &ShareAddress,
    passphrase: &Passphrase,
) -> Result<Disk> {
    let way = Way::to(address, open)?;
    let line = way.line()?;
    let keyed = unlock(&line, passphrase.secret())?;
    way.disk(line, keyed, false)
}

impl CreateOptions {
    /// Makes a shared volume for files.
    pub(crate) fn create_shared(
        &self,
        address: &ShareAddress,
        passphrase: &Passphrase,
    ) -> Result<Volume> {
        let (way, new) = (Way::to(address, &self.open)?, self.new_shared(None)?);
        let line = way.line()?;
        let keyed = create(&line, &new, passphrase.secret())?;
        let files = SharedFiles::create(way.files(line, keyed, true)?)?;
        Ok(Volume::shared(Box::new(files)))
    }

    /// Makes a shared volume that holds a disk, for one computer at a time.
    pub(crate) fn create_shared_disk(
        &self,
        address: &ShareAddress,
        passphrase: &Passphrase,
        size: u64,
    ) -> Result<Disk> {
        let (way, new) = (Way::to(address, &self.open)?, self.new_shared(Some(size))?);
        let line = way.line()?;
        let keyed = create(&line, &new, passphrase.secret())?;
        make(way.files(line, keyed.clone(), true)?, size)?;
        way.disk(way.line()?, keyed, true)
    }

    /// All is looked at before anything is made: a volume of a server is made once.
    fn new_shared(&self, disk: Option<u64>) -> Result<NewShared> {
        if self.one_file || self.sync_folder || self.seen_by == SeenBy::Snapshots {
            let why = "a shared volume is at a server, which sees every access";
            return Err(Error::Invalid(why.into()));
        }
        if disk.is_some_and(|size| size == 0 || !size.is_multiple_of(SECTOR)) {
            let why = format!("a disk's size is a multiple of {SECTOR} bytes");
            return Err(Error::Invalid(why));
        }
        let mut new = NewShared::of(self.size.unwrap_or(SIZE));
        new.kdf = self.guessing;
        new.block_bytes = self.block_size.unwrap_or(new.block_bytes);
        if let Some(size) = disk {
            new.capacity_bytes = capacity_for(size, new.block_bytes);
        }
        new.config()?;
        Ok(new)
    }
}
