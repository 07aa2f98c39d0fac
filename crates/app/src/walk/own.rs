//! The one file system of a volume that one process has open.

use super::files::{OpenId, ReadFiles, WriteFiles};
use oblivio_volume::Result;
use oblivio_volume::fs::{
    Attr, DirEntry, FileKind, FileSystem, Ino, NewNode, ReadAround, RenameMode, SetAttr,
};

impl ReadFiles for FileSystem {
    fn attr(&self, ino: Ino) -> Result<Attr> {
        self.attr(ino)
    }

    fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr> {
        self.lookup(parent, name)
    }

    fn read_dir(&self, ino: Ino, after: Option<&[u8]>, most: usize) -> Result<Vec<DirEntry>> {
        self.read_dir(ino, after, most)
    }

    fn read_link(&self, ino: Ino) -> Result<Vec<u8>> {
        self.read_link(ino)
    }

    fn open(&self, ino: Ino) -> Result<OpenId> {
        Ok(OpenId { ino, handle: Some(self.open_file(ino)?) })
    }

    fn read(&self, file: OpenId, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.read(file.handle()?, offset, len)
    }

    fn read_around(&self, file: OpenId, offset: u64, len: usize) -> Result<ReadAround> {
        self.read_around(file.handle()?, offset, len)
    }

    fn close(&self, file: OpenId) -> Result<()> {
        self.close(file.handle()?)
    }
}

impl WriteFiles for FileSystem {
    fn set_attr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        self.set_attr(ino, set)
    }

    fn create(&self, parent: Ino, name: &[u8], node: NewNode) -> Result<(Attr, OpenId)> {
        let (attr, handle) = self.create(parent, name, node)?;
        let id = OpenId { ino: attr.ino, handle: Some(handle) };
        Ok((attr, id))
    }

    fn write(&self, file: OpenId, offset: u64, data: &[u8]) -> Result<()> {
        self.write(file.handle()?, offset, data)
    }

    fn append(&self, file: OpenId, data: &[u8]) -> Result<()> {
        // Nobody else has the volume; who uses it from several threads lets them take turns.
        self.write(file.handle()?, self.attr(file.ino)?.size, data)
    }

    fn mkdir(&self, parent: Ino, name: &[u8], node: NewNode) -> Result<Attr> {
        self.mkdir(parent, name, node)
    }

    fn mknod(
        &self,
        parent: Ino,
        name: &[u8],
        kind: FileKind,
        rdev: u32,
        node: NewNode,
    ) -> Result<Attr> {
        self.mknod(parent, name, kind, rdev, node)
    }

    fn symlink(&self, parent: Ino, name: &[u8], target: &[u8], node: NewNode) -> Result<Attr> {
        self.symlink(parent, name, target, node)
    }

    fn link(&self, ino: Ino, parent: Ino, name: &[u8]) -> Result<Attr> {
        self.link(ino, parent, name)
    }

    fn unlink(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.unlink(parent, name)
    }

    fn rmdir(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.rmdir(parent, name)
    }

    fn rename(
        &self,
        parent: Ino,
        name: &[u8],
        to: Ino,
        to_name: &[u8],
        mode: RenameMode,
    ) -> Result<()> {
        self.rename(parent, name, to, to_name, mode)
    }

    fn commit(&self) -> Result<()> {
        self.commit()
    }

    fn free_bytes(&self) -> Result<u64> {
        let usage = self.usage()?;
        Ok(usage.free_blocks.saturating_mul(usage.block_bytes))
    }

    fn among_others(&self) -> Option<&str> {
        None
    }
}
