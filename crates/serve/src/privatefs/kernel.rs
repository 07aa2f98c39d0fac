//! The connection to the kernel: each request is carried out on the thread that brought it.

use super::ids::Ids;
use super::locking::{self, F_UNLCK};
use super::notify::Pages;
use super::options::SharedMountOptions;
use crate::fuse::convert::now;
use crate::fuse::{
    Caller, Fail, FileAnswer, FileOp, KernelFiles, KernelReply, LockRequest, Manner, MountPart,
    O_APPEND, Served, Statfs, done, xattr,
};
use fuser::{Errno, FopenFlags, InitFlags};
use oblivio_privatefs::{Ino, NewNode, Owner, PrivateFs, Space, XattrMode};
use std::sync::Arc;
use std::time::Duration;

const RELAXED_TTL: Duration = Duration::from_secs(1);

/// The connection to the kernel.
pub struct SharedKernel {
    pub fs: Arc<PrivateFs>,
    pub ids: Arc<Ids>,
    pages: Arc<Pages>,
    manner: Manner,
    pub strict: bool,
    local_locks: bool,
}

impl SharedKernel {
    pub fn new(fs: Arc<PrivateFs>, pages: Arc<Pages>, options: &SharedMountOptions) -> Self {
        let ids = Arc::clone(&pages.ids);
        let block_bytes = u32::try_from(fs.block_bytes()).unwrap_or(u32::MAX);
        let ttl = if options.strict { Duration::ZERO } else { RELAXED_TTL };
        let (strict, local_locks) = (options.strict, options.local_locks);
        Self {
            fs,
            ids,
            pages,
            manner: Manner { ttl, block_bytes, part: MountPart::OWN },
            strict,
            local_locks,
        }
    }

    pub fn id(&self, ino: Ino) -> Result<Owner, Errno> {
        self.ids.id(ino)
    }
}

impl KernelFiles for SharedKernel {
    type Data<'r> = &'r [u8];

    /// Not that the kernel keeps written data for itself: then lengths and times of files would be
    /// its own, whatever other clients do.
    fn capabilities(&self) -> InitFlags {
        let always = InitFlags::FUSE_ASYNC_READ
            | InitFlags::FUSE_BIG_WRITES
            | InitFlags::FUSE_PARALLEL_DIROPS;
        match self.local_locks {
            true => always,
            false => always | InitFlags::FUSE_POSIX_LOCKS | InitFlags::FUSE_FLOCK_LOCKS,
        }
    }

    fn carry_out(&self, op: FileOp<&[u8]>, reply: KernelReply) {
        match op {
            FileOp::SetLock { lock, waits } => self.set_lock(lock, waits, reply),
            op => reply.answer(self.served(op).map_err(|fail| fail.errno()), self.manner),
        }
    }

    fn forget(&self, ino: Ino, lookups: u64) {
        self.ids.forgotten(ino, lookups);
    }
}

impl SharedKernel {
    fn served(&self, op: FileOp<&[u8]>) -> Served {
        let fs = &self.fs;
        match op {
            FileOp::Lookup(at) => self.entry(&at, |parent, name| fs.lookup(parent, name)),
            FileOp::MkNod { at, kind, mode, rdev, caller } => {
                let node = node(mode, caller);
                self.entry(&at, |parent, name| fs.mknod(parent, name, kind, rdev, node))
            }
            FileOp::MkDir { at, mode, caller } => {
                self.entry(&at, |parent, name| fs.mkdir(parent, name, node(mode, caller)))
            }
            FileOp::SymLink { at, target, caller } => {
                let node = node(0o777, caller);
                self.entry(&at, |parent, name| fs.symlink(parent, name, &target, node))
            }
            FileOp::Create { at, mode, flags, caller } => {
                self.create(&at, node(mode, caller), flags)
            }
            FileOp::Link { ino, at } => {
                let id = self.id(ino)?;
                self.entry(&at, |parent, name| fs.link(id, parent, name))
            }
            FileOp::Unlink(at) => done(fs.unlink(self.id(at.parent)?, &at.name)),
            FileOp::RmDir(at) => done(fs.rmdir(self.id(at.parent)?, &at.name)),
            FileOp::Rename { whiteout: Some(_), .. } => Err(Errno::EINVAL.into()),
            FileOp::Rename { from, to, mode, .. } => {
                let to = (self.id(to.parent)?, &to.name[..]);
                done(fs.rename((self.id(from.parent)?, &from.name), to, mode))
            }
            FileOp::ReadDir { ino, cookie, .. } => self.list(ino, cookie),
            FileOp::ReadLink { ino } => Ok(FileAnswer::Data(fs.read_link(self.id(ino)?)?)),
            // A listing goes by cookies alone.
            FileOp::OpenDir { .. } => Ok(FileAnswer::Opened(0, FopenFlags::empty())),
            FileOp::ReleaseDir { .. } | FileOp::Forget { .. } => Ok(FileAnswer::Done),
            FileOp::StatFs { .. } => {
                Ok(FileAnswer::Statfs(statfs(fs.space()?, self.manner.block_bytes)))
            }
            FileOp::GetXattr { ino, name, size } => self.get_xattr(ino, &name, size),
            FileOp::ListXattr { ino, size, .. } => {
                let names = fs.xattr_names(self.id(ino)?)?;
                Ok(xattr::sized(xattr::names(names), size)?)
            }
            FileOp::SetXattr { ino, name, value, flags } => {
                let (id, mode) = (self.id(ino)?, xattr::mode(flags).unwrap_or(XattrMode::Set));
                done(fs.set_xattr(id, known(&name)?, &value, mode))
            }
            FileOp::RemoveXattr { ino, name } => {
                let id = self.id(ino)?;
                done(fs.remove_xattr(id, known(&name)?))
            }
            op => self.served_on_file(op),
        }
    }

    fn served_on_file(&self, op: FileOp<&[u8]>) -> Served {
        let fs = &self.fs;
        match op {
            FileOp::GetAttr { ino, .. } => self.attr(ino, |id| fs.attr(id)),
            FileOp::SetAttr { ino, fh, change, .. } => self.attr(ino, |id| {
                if let Some(fh) = fh.filter(|_| change.size.is_some()) {
                    fs.check_handle(id, fh)?;
                }
                fs.set_attr(id, change)
            }),
            FileOp::Open { ino, flags, .. } => self.open(ino, flags),
            FileOp::Read { ino, fh, offset, len } => {
                let id = self.held(ino, fh)?;
                Ok(FileAnswer::Data(fs.read(id, offset, len as usize)?))
            }
            FileOp::Write { ino, fh, offset, data, cached, flags, .. } => {
                let id = self.held(ino, fh)?;
                // What comes from the kernel's pages has a place of its own.
                match flags & O_APPEND != 0 && !cached {
                    true => fs.append(id, data).map(drop)?,
                    false => fs.write(id, offset, data)?,
                }
                Ok(FileAnswer::Written(data.len() as u32))
            }
            FileOp::Allocate { ino, fh, offset, len, how, keep_size, .. } => {
                self.allocate(self.held(ino, fh)?, (offset, len), how, keep_size)
            }
            FileOp::Flush { ino, fh, owner } => self.flush(ino, fh, owner),
            FileOp::Release { ino, owner, .. } => self.release(ino, owner),
            FileOp::Sync { ino, fh: Some(fh) } => done(fs.fsync(self.held(ino, fh)?)),
            FileOp::Sync { ino, .. } => done(fs.fsync(self.id(ino)?)),
            FileOp::GetLock(lock) => locking::get(fs, self.id(lock.ino)?, &lock),
            // A search for holes is the kernel's own affair: it takes the file for one piece.
            _ => Err(Errno::ENOSYS.into()),
        }
    }

    /// The file of an open handle, whose locks still stand.
    pub fn held(&self, ino: Ino, fh: u64) -> Result<Owner, Fail> {
        let id = self.id(ino)?;
        self.fs.check_handle(id, fh)?;
        Ok(id)
    }

    fn get_xattr(&self, ino: Ino, name: &[u8], size: u32) -> Served {
        let value = match xattr::server(ino, name) {
            Some(server) => server,
            None => {
                let id = self.id(ino)?;
                self.fs.xattr(id, known(name)?)?
            }
        };
        Ok(xattr::sized(value, size)?)
    }

    fn set_lock(&self, lock: LockRequest, waits: bool, reply: KernelReply) {
        // Who has lost its locks may give them back.
        let id = match lock.kind {
            F_UNLCK => self.id(lock.ino).map_err(Fail::from),
            _ => self.held(lock.ino, lock.fh),
        };
        let reply = locking::LockReply { reply, manner: self.manner };
        match id {
            Ok(id) => locking::set(&self.fs, &self.pages, (id, lock), waits, reply),
            Err(fail) => reply.outcome(Err(fail)),
        }
    }
}

fn node(mode: u32, caller: Caller) -> NewNode {
    NewNode { mode, uid: caller.uid, gid: caller.gid, mtime: now() }
}

/// Access lists would be kept, and not heeded.
fn known(name: &[u8]) -> Result<&[u8], Errno> {
    match name.starts_with(b"system.") {
        true => Err(Errno::EOPNOTSUPP),
        false => Ok(name),
    }
}

/// How full a volume is. Each file takes a block at least.
fn statfs(space: Space, block_bytes: u32) -> Statfs {
    let Space { total, free } = space;
    let (blocks, available, files, files_free) = (total, free, total, free);
    Statfs { blocks, free, available, files, files_free, block_bytes }
}
