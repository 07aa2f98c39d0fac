//! The one file system of a volume that one process has open.

use super::files::{ReadFile, ReadFiles, WriteFile, WriteFiles};
use oblivio_volume::Result;
use oblivio_volume::fs::{
    Attr, DirEntry, FileKind, FileSystem, Handle, Ino, NewNode, RenameMode, SetAttr,
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

    fn open(&self, ino: Ino) -> Result<Box<dyn ReadFile + '_>> {
        Ok(Box::new(Opened { fs: self, handle: self.open_file(ino)? }))
    }
}

struct Opened<'f> {
    fs: &'f FileSystem,
    handle: Handle,
}

impl ReadFile for Opened<'_> {
    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.fs.read(self.handle, offset, len)
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // What is only read leaves nothing to do; a volume that failed said so before.
        let _ = self.fs.close(self.handle);
    }
}

impl WriteFiles for FileSystem {
    fn set_attr(&self, ino: Ino, set: SetAttr) -> Result<Attr> {
        self.set_attr(ino, set)
    }

    fn create(
        &self,
        parent: Ino,
        name: &[u8],
        node: NewNode,
    ) -> Result<(Attr, Box<dyn WriteFile + '_>)> {
        let (attr, handle) = self.create(parent, name, node)?;
        Ok((attr, Box::new(Opened { fs: self, handle })))
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

impl WriteFile for Opened<'_> {
    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.fs.write(self.handle, offset, data)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let (fs, handle) = (self.fs, self.handle);
        std::mem::forget(*self);
        fs.close(handle)
    }
}
