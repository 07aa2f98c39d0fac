//! The files of a volume of any kind, for one who keeps it open.

use crate::metadata::Usage;
use crate::session::Medium;
#[cfg(feature = "share")]
use oblivio_app::shared::SharedFiles;
use oblivio_app::walk::WriteFiles;
use oblivio_volume::Result;
use oblivio_volume::fs::{Attr, FileSystem, Handle, Ino, NewNode};

/// The files of a volume.
pub(crate) enum Files {
    /// One process at a time has the volume.
    Own(Box<FileSystem>),
    /// Several computers use it at once.
    #[cfg(feature = "share")]
    Shared(Box<SharedFiles>),
}

/// An open file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenId {
    Own(Handle),
    #[cfg(feature = "share")]
    Shared(Ino),
}

impl Files {
    /// Names and attributes, which are the same for both.
    pub(crate) fn names(&self) -> &dyn WriteFiles {
        match self {
            Self::Own(fs) => &**fs,
            #[cfg(feature = "share")]
            Self::Shared(files) => &**files,
        }
    }

    pub(crate) fn open(&self, ino: Ino) -> Result<OpenId> {
        match self {
            Self::Own(fs) => fs.open_file(ino).map(OpenId::Own),
            #[cfg(feature = "share")]
            Self::Shared(files) => files.open_file(ino).map(|()| OpenId::Shared(ino)),
        }
    }

    pub(crate) fn create(&self, parent: Ino, name: &[u8], node: NewNode) -> Result<(Attr, OpenId)> {
        match self {
            Self::Own(fs) => {
                fs.create(parent, name, node).map(|(attr, handle)| (attr, OpenId::Own(handle)))
            }
            #[cfg(feature = "share")]
            Self::Shared(files) => {
                let attr = files.create_file(parent, name, node)?;
                let open = OpenId::Shared(attr.ino);
                Ok((attr, open))
            }
        }
    }

    pub(crate) fn read(&self, file: OpenId, offset: u64, len: usize) -> Result<Vec<u8>> {
        match (self, file) {
            (Self::Own(fs), OpenId::Own(handle)) => fs.read(handle, offset, len),
            #[cfg(feature = "share")]
            (Self::Shared(files), OpenId::Shared(ino)) => files.read(ino, offset, len),
            #[cfg(feature = "share")]
            _ => Err(of_another_volume()),
        }
    }

    pub(crate) fn write(&self, file: OpenId, offset: u64, bytes: &[u8]) -> Result<()> {
        match (self, file) {
            (Self::Own(fs), OpenId::Own(handle)) => fs.write(handle, offset, bytes),
            #[cfg(feature = "share")]
            (Self::Shared(files), OpenId::Shared(ino)) => files.write(ino, offset, bytes),
            #[cfg(feature = "share")]
            _ => Err(of_another_volume()),
        }
    }

    /// Writes to the end of the file with this number. Where nobody else has the volume, the end
    /// stays where it is while a change is under way.
    pub(crate) fn append(&self, (file, ino): (OpenId, Ino), bytes: &[u8]) -> Result<()> {
        match self {
            #[cfg(feature = "share")]
            Self::Shared(files) => files.append(ino, bytes),
            Self::Own(fs) => self.write(file, fs.attr(ino)?.size, bytes),
        }
    }

    pub(crate) fn close(&self, file: OpenId) -> Result<()> {
        match (self, file) {
            (Self::Own(fs), OpenId::Own(handle)) => fs.close(handle),
            #[cfg(feature = "share")]
            (Self::Shared(files), OpenId::Shared(ino)) => files.close_file(ino),
            #[cfg(feature = "share")]
            _ => Err(of_another_volume()),
        }
    }

    pub(crate) fn usage(&self) -> Result<Usage> {
        match self {
            Self::Own(fs) => {
                let usage = fs.usage()?;
                let bytes = |blocks: u64| blocks.saturating_mul(usage.block_bytes);
                Ok(Usage {
                    used: usage.logical_bytes,
                    free: bytes(usage.free_blocks),
                    capacity: bytes(usage.capacity_blocks),
                })
            }
            #[cfg(feature = "share")]
            Self::Shared(files) => {
                let (capacity, free) = files.space()?;
                Ok(Usage { used: capacity.saturating_sub(free), free, capacity })
            }
        }
    }
}

#[cfg(feature = "share")]
fn of_another_volume() -> oblivio_volume::Error {
    oblivio_volume::Error::Invalid("a file of another volume".into())
}

impl Medium for Files {
    fn commit(&self) -> Result<()> {
        self.names().commit()
    }

    fn wants_commit(&self) -> bool {
        match self {
            Self::Own(fs) => fs.wants_commit(),
            #[cfg(feature = "share")]
            Self::Shared(_) => false,
        }
    }

    fn idle(&self) -> Result<()> {
        match self {
            Self::Own(fs) => fs.idle().map(drop),
            // Threads of its own answer others.
            #[cfg(feature = "share")]
            Self::Shared(_) => Ok(()),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::Own(fs) => fs.into_blocks().map(drop),
            #[cfg(feature = "share")]
            Self::Shared(files) => {
                let committed = files.commit();
                // The session ends all the same: others need not wait for this computer.
                let closed = files.close();
                committed.and(closed)
            }
        }
    }
}
