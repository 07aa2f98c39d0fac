//! The disk that a volume holds.

use crate::error::Result;
use crate::options::OpenOptions;
use crate::passphrase::Passphrase;
use crate::session::{Medium, Session};
use oblivio_app::others::Wanted;
#[cfg(feature = "share")]
use oblivio_client::disk::SharedDisk;
use oblivio_volume::disk::Disk as Inner;
use oblivio_volume::{LaneStatus, LaneSync};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An open volume that holds a disk: bytes by their offset, all zero at first.
///
/// [`CreateOptions::create_disk`](crate::CreateOptions::create_disk) makes one. Any thread may
/// call; calls are served one at a time. A write is durable once [`sync`](Self::sync) or
/// [`close`](Self::close) returns; a crash before leaves old or new bytes in each block.
#[derive(Debug)]
pub struct Disk {
    /// The lanes end before the disk.
    lanes: Vec<Option<Disk>>,
    session: Session<Locked>,
    size: u64,
}

/// The disk of the volume needs exclusive access for all that it does.
struct Locked {
    disk: Mutex<Inner>,
    /// Where computers share the volume: what is given back at the end.
    #[cfg(feature = "share")]
    shared: Option<SharedDisk>,
}

impl Locked {
    fn disk(&self) -> MutexGuard<'_, Inner> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Medium for Locked {
    fn commit(&self) -> oblivio_volume::Result<()> {
        let mut disk = self.disk();
        disk.flush()?;
        disk.end_operation()
    }

    fn wants_commit(&self) -> bool {
        self.disk().wants_commit()
    }

    fn idle(&self) -> oblivio_volume::Result<()> {
        self.disk().idle().map(drop)
    }

    fn finish(self) -> oblivio_volume::Result<()> {
        let disk = self.disk.into_inner().unwrap_or_else(PoisonError::into_inner);
        let finished = disk.into_blocks().map(drop);
        #[cfg(feature = "share")]
        if let Some(shared) = self.shared {
            // Whatever happened, the next one who wants the disk should not have to wait for it.
            let closed = shared.close();
            return finished.and(closed);
        }
        finished
    }
}

impl Disk {
    /// Opens a disk with the default [`OpenOptions`].
    ///
    /// # Errors
    /// As for [`OpenOptions::open_disk`].
    pub fn open(place: impl AsRef<Path>, passphrase: impl Into<Passphrase>) -> Result<Self> {
        OpenOptions::new().open_disk(place, passphrase)
    }

    pub(crate) fn over(disk: Inner, lanes: Vec<Option<Self>>, wanted: Arc<Wanted>) -> Self {
        let size = disk.size();
        let locked = Locked {
            disk: Mutex::new(disk),
            #[cfg(feature = "share")]
            shared: None,
        };
        Self { lanes, session: Session::of(locked).wanted_by(wanted), size }
    }

    /// The disk of a lane.
    pub(crate) fn lane_over(disk: Inner, sync: LaneSync) -> Self {
        let mut disk = Self::over(disk, Vec::new(), Arc::default());
        disk.session = disk.session.carried_by(sync);
        disk
    }

    /// The disk of a lane, counted from 1, if the passphrase opened it. What holds for
    /// [`Volume::lane`](crate::Volume::lane) holds for it.
    pub fn lane(&self, number: usize) -> Option<&Self> {
        self.lanes.get(number.checked_sub(1)?)?.as_ref()
    }

    /// What is to be said of this lane; nothing of a disk that is none.
    pub fn lane_status(&self) -> Option<LaneStatus> {
        self.session.lane_status()
    }

    /// The same of a volume that computers share.
    #[cfg(feature = "share")]
    pub(crate) fn shared(disk: Inner, shared: SharedDisk) -> Self {
        let size = disk.size();
        let locked = Locked { disk: Mutex::new(disk), shared: Some(shared) };
        Self { lanes: Vec::new(), session: Session::of(locked), size }
    }

    /// The same, in which nothing may be changed.
    pub(crate) fn looked_at(mut self) -> Self {
        self.session = self.session.read_only();
        self
    }

    /// Its size in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a disk is never empty")]
    pub fn len(&self) -> u64 {
        self.size
    }

    /// Reads `len` bytes from `offset` on.
    ///
    /// # Errors
    /// `Invalid` beyond the end, and those of a read.
    pub fn read_at(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.session.run(|locked| {
            let mut disk = locked.disk();
            let read = disk.read_many(&[(offset, len)])?;
            disk.end_operation()?;
            Ok(read.into_iter().next().unwrap_or_default())
        })
    }

    /// Writes at `offset`.
    ///
    /// # Errors
    /// `Invalid` beyond the end, `Full`, and those of a write.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.session.change(bytes.len() as u64, |locked| {
            let mut disk = locked.disk();
            disk.write(offset, bytes)?;
            disk.end_operation()
        })
    }

    /// Gives a range back: it reads as zeros, and its whole blocks take no space.
    ///
    /// # Errors
    /// As for [`write_at`](Self::write_at).
    pub fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.session.change(0, |locked| {
            let mut disk = locked.disk();
            disk.write_zeroes(offset, len, false)?;
            disk.end_operation()
        })
    }

    /// Makes everything written so far durable. What was written into its lanes goes along, as far
    /// as there is room.
    ///
    /// # Errors
    /// Those of the store. It may be called again. In a lane `Full` after a minute.
    pub fn sync(&self) -> Result<()> {
        self.begin_sync()?()
    }

    /// The first step of [`sync`](Self::sync). What it gives waits for the rest, and borrows
    /// nothing: one thread can begin the sync of a lane, write to the disk that carries it, and
    /// then wait.
    ///
    /// # Errors
    /// Those of [`sync`](Self::sync); `Full` of what it gives.
    pub fn begin_sync(&self) -> Result<impl FnOnce() -> Result<()> + Send + use<>> {
        self.lanes.iter().flatten().try_for_each(|lane| lane.session.commit())?;
        self.session.begin_sync()
    }

    /// Does a little of what is due while nothing else is done. For a volume in an online store,
    /// call it every few seconds: it answers other computers. Gives the name of one that wants the
    /// volume: then [`close`](Self::close) it if you can. Without that, a computer that waits takes
    /// the volume over after 90 seconds without any access.
    ///
    /// # Errors
    /// Those of an access; `Overtaken`.
    pub fn idle(&self) -> Result<Option<String>> {
        self.session.idle()
    }

    /// Makes everything durable and lets go of the volume. Dropping does the same, and hides the
    /// error.
    ///
    /// # Errors
    /// Those of the store: what was written since the last [`sync`](Self::sync) may then be lost.
    /// `Full` if a lane had more to write than this disk carried: that is lost.
    pub fn close(self) -> Result<()> {
        self.session.close_with(self.lanes.iter().flatten().map(|lane| &lane.session))
    }
}
