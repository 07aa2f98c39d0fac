//! Files of a shared volume, as those of any other volume.

use super::failure::error;
use super::session::{environment, make_root};
use crate::walk::{OpenId, ReadFiles, WriteFiles};
use oblivio_client::files::ClientFiles;
use oblivio_client::{Client, disk};
use oblivio_privatefs::{FsOptions, NodeAttr, Owner, PrivateFs, ROOT, Result as FsResult, number};
use oblivio_volume::fs::{Attr, DirEntry, FileKind, Ino, NewNode, ROOT_INO, RenameMode, SetAttr};
use oblivio_volume::{Error, Result as VolumeResult};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Names that are asked for at once.
const LISTED: usize = 256;

/// The files of a client, with a number for each owner that was met.
pub struct SharedFiles {
    files: Arc<ClientFiles>,
    fs: PrivateFs,
    /// Drawn for each of them.
    session: String,
    owners: Mutex<HashMap<Ino, Owner>>,
    /// The directory that is being listed, whole and sorted.
    listed: Mutex<(Ino, Vec<DirEntry>)>,
}

impl SharedFiles {
    /// The files of a volume that has some. The client ends if this fails.
    ///
    /// # Errors
    /// `HoldsDisk`; those of the line.
    pub fn open(client: Client) -> VolumeResult<Self> {
        let files = Arc::new(ClientFiles::new(client)?);
        let opened = Self::over(Arc::clone(&files));
        if opened.is_err() {
            // The error says more than a failure to part.
            let _ = files.close();
        }
        opened
    }

    /// The same in a new volume, which has a root directory from then on.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn create(client: Client) -> VolumeResult<Self> {
        let files = Arc::new(ClientFiles::new(client)?);
        make_root(&files)?;
        Self::over(files)
    }

    fn over(files: Arc<ClientFiles>) -> VolumeResult<Self> {
        if disk::is_in(files.client())? {
            return Err(Error::HoldsDisk);
        }
        let environment = environment();
        let session = format!("{:032x}", u128::from_le_bytes((environment.random)()));
        let fs = PrivateFs::new(Arc::clone(&files) as _, environment, FsOptions::default());
        let fs = fs.map_err(|why| error(why, b""))?;
        let (owners, listed) = Default::default();
        Ok(Self { files, fs, session, owners, listed })
    }

    /// The most bytes that it may ever hold, and how many of them are free.
    ///
    /// # Errors
    /// Those of a read.
    pub fn space(&self) -> VolumeResult<(u64, u64)> {
        let space = self.fs.space().map_err(|why| error(why, b""))?;
        let bytes = |blocks: u64| blocks.saturating_mul(self.fs.block_bytes() as u64);
        Ok((bytes(space.total), bytes(space.free)))
    }

    /// Ends the session. What was not committed may be lost.
    ///
    /// # Errors
    /// Those of the line.
    pub fn end(&self) -> VolumeResult<()> {
        self.files.close()
    }

    fn owner(&self, ino: Ino) -> VolumeResult<Owner> {
        if ino == ROOT_INO {
            return Ok(ROOT);
        }
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(&ino).copied().ok_or_else(|| Error::NotFound(format!("inode {ino}")))
    }

    /// All names of a directory, sorted.
    fn list(&self, ino: Ino) -> VolumeResult<Vec<DirEntry>> {
        let (owner, mut all, mut cookie) = (self.owner(ino)?, Vec::new(), 0);
        loop {
            let some = self.fs.list(owner, cookie, LISTED);
            let some = some.map_err(|why| error(why, b""))?;
            let Some(last) = some.last() else { break };
            cookie = last.cookie;
            all.extend(some.into_iter().map(|it| DirEntry {
                ino: self.number(it.id),
                kind: it.kind,
                name: it.name,
            }));
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all.dedup_by(|one, other| one.name == other.name);
        Ok(all)
    }

    /// The number of a file, which stands for it from now on.
    fn number(&self, owner: Owner) -> Ino {
        let ino = number(owner);
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).insert(ino, owner);
        ino
    }

    fn attr_of(&self, node: FsResult<NodeAttr>, name: &[u8]) -> VolumeResult<Attr> {
        let node = node.map_err(|why| error(why, name))?;
        self.number(node.id);
        Ok(node.attr)
    }
}

impl ReadFiles for SharedFiles {
    fn attr(&self, ino: Ino) -> VolumeResult<Attr> {
        let attr = self.fs.attr(self.owner(ino)?);
        self.attr_of(attr, b"")
    }

    fn lookup(&self, parent: Ino, name: &[u8]) -> VolumeResult<Attr> {
        let found = self.fs.lookup(self.owner(parent)?, name);
        self.attr_of(found, name)
    }

    fn read_dir(&self, ino: Ino, after: Option<&[u8]>, most: usize) -> VolumeResult<Vec<DirEntry>> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if after.is_none() || listed.0 != ino {
            *listed = (ino, self.list(ino)?);
        }
        let rest = listed.1.iter().filter(|it| after.is_none_or(|after| &*it.name > after));
        Ok(rest.take(most).cloned().collect())
    }

    fn read_link(&self, ino: Ino) -> VolumeResult<Vec<u8>> {
        self.fs.read_link(self.owner(ino)?).map_err(|why| error(why, b""))
    }

    fn open(&self, ino: Ino) -> VolumeResult<OpenId> {
        let opened = self.fs.open(self.owner(ino)?);
        opened.map(|_| OpenId::shared(ino)).map_err(|why| error(why, b""))
    }

    fn read(&self, file: OpenId, offset: u64, len: usize) -> VolumeResult<Vec<u8>> {
        let read = self.fs.read(self.owner(file.ino)?, offset, len);
        read.map_err(|why| error(why, b""))
    }

    fn close(&self, file: OpenId) -> VolumeResult<()> {
        self.fs.close(self.owner(file.ino)?).map_err(|why| error(why, b""))
    }
}

impl WriteFiles for SharedFiles {
    fn set_attr(&self, ino: Ino, set: SetAttr) -> VolumeResult<Attr> {
        let attr = self.fs.set_attr(self.owner(ino)?, set);
        self.attr_of(attr, b"")
    }

    fn create(&self, parent: Ino, name: &[u8], node: NewNode) -> VolumeResult<(Attr, OpenId)> {
        let made = self.fs.create(self.owner(parent)?, name, node);
        let attr = self.attr_of(made, name)?;
        let id = OpenId::shared(attr.ino);
        Ok((attr, id))
    }

    fn write(&self, file: OpenId, offset: u64, data: &[u8]) -> VolumeResult<()> {
        let written = self.fs.write(self.owner(file.ino)?, offset, data);
        written.map_err(|why| error(why, b""))
    }

    fn append(&self, file: OpenId, data: &[u8]) -> VolumeResult<()> {
        let appended = self.fs.append(self.owner(file.ino)?, data);
        appended.map(drop).map_err(|why| error(why, b""))
    }

    fn mkdir(&self, parent: Ino, name: &[u8], node: NewNode) -> VolumeResult<Attr> {
        let made = self.fs.mkdir(self.owner(parent)?, name, node);
        self.attr_of(made, name)
    }

    fn mknod(
        &self,
        parent: Ino,
        name: &[u8],
        kind: FileKind,
        rdev: u32,
        node: NewNode,
    ) -> VolumeResult<Attr> {
        let made = self.fs.mknod(self.owner(parent)?, name, kind, rdev, node);
        self.attr_of(made, name)
    }

    fn symlink(
        &self,
        parent: Ino,
        name: &[u8],
        target: &[u8],
        node: NewNode,
    ) -> VolumeResult<Attr> {
        let made = self.fs.symlink(self.owner(parent)?, name, target, node);
        self.attr_of(made, name)
    }

    fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> VolumeResult<Attr> {
        let made = self.fs.link(self.owner(ino)?, self.owner(parent)?, name);
        self.attr_of(made, name)
    }

    fn unlink(&self, parent: Ino, name: &[u8]) -> VolumeResult<()> {
        let done = self.fs.unlink(self.owner(parent)?, name);
        done.map_err(|why| error(why, name))
    }

    fn rmdir(&self, parent: Ino, name: &[u8]) -> VolumeResult<()> {
        let done = self.fs.rmdir(self.owner(parent)?, name);
        done.map_err(|why| error(why, name))
    }

    fn rename(
        &self,
        parent: Ino,
        name: &[u8],
        to: Ino,
        to_name: &[u8],
        mode: RenameMode,
    ) -> VolumeResult<()> {
        let (from, to) = (self.owner(parent)?, self.owner(to)?);
        let done = self.fs.rename((from, name), (to, to_name), mode);
        done.map_err(|why| error(why, to_name))
    }

    fn commit(&self) -> VolumeResult<()> {
        self.fs.flush_all().map_err(|why| error(why, b""))
    }

    fn free_bytes(&self) -> VolumeResult<u64> {
        Ok(self.space()?.1)
    }

    fn among_others(&self) -> Option<&str> {
        Some(&self.session)
    }
}
