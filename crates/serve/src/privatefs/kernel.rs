//! The connection to the kernel: each request is carried out on the thread that brought it.

use super::errno::Fail;
use super::ids::Ids;
use super::locking::{self, F_UNLCK};
use super::notify::Pages;
use super::options::Options;
use crate::fuse::{Answer, Files, KernelReply, LockRequest, Manner, Op, Statfs, xattr};
use fuser::{Errno, InitFlags};
use oblivio_privatefs::{Ino, Owner, PrivateFs, Space, XattrMode};
use std::sync::Arc;
use std::time::Duration;

const RELAXED_TTL: Duration = Duration::from_secs(1);

/// The outcome of a request.
pub type Served = Result<Answer, Fail>;

/// The connection to the kernel.
pub struct Kernel {
    pub fs: Arc<PrivateFs>,
    pub ids: Arc<Ids>,
    pages: Arc<Pages>,
    manner: Manner,
    pub strict: bool,
    local_locks: bool,
}

impl Kernel {
    pub fn new(fs: Arc<PrivateFs>, pages: Arc<Pages>, options: &Options) -> Self {
        let ids = Arc::clone(&pages.ids);
        let block_bytes = u32::try_from(fs.block_bytes()).unwrap_or(u32::MAX);
        let ttl = if options.strict { Duration::ZERO } else { RELAXED_TTL };
        let (strict, local_locks) = (options.strict, options.local_locks);
        Self { fs, ids, pages, manner: Manner { ttl, block_bytes }, strict, local_locks }
    }

    pub fn id(&self, ino: Ino) -> Result<Owner, Errno> {
        self.ids.id(ino)
    }
}

impl Files for Kernel {
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

    fn carry_out(&self, op: Op<&[u8]>, reply: KernelReply) {
        match op {
            Op::SetLock { lock, waits } => self.set_lock(lock, waits, reply),
            op => reply.answer(self.served(op).map_err(|fail| fail.errno()), self.manner),
        }
    }

    fn forget(&self, ino: Ino, lookups: u64) {
        self.ids.forgotten(ino, lookups);
    }
}

impl Kernel {
    fn served(&self, op: Op<&[u8]>) -> Served {
        let fs = &self.fs;
        match op {
            Op::Lookup(at) => self.entry(&at, |parent, name| fs.lookup(parent, name)),
            Op::GetAttr { ino, .. } => self.attr(ino, |id| fs.attr(id)),
            Op::SetAttr { ino, fh, change, .. } => self.attr(ino, |id| {
                if let Some(fh) = fh.filter(|_| change.size.is_some()) {
                    fs.check_handle(id, fh)?;
                }
                fs.set_attr(id, change)
            }),
            Op::ReadLink { ino } => Ok(Answer::Data(fs.read_link(self.id(ino)?)?)),
            Op::MkNod { .. } | Op::MkDir { .. } | Op::SymLink { .. } | Op::Create { .. } => {
                self.make(op)
            }
            Op::Link { .. } | Op::Unlink(_) | Op::RmDir(_) | Op::Rename { .. } => self.rename(op),
            Op::Open { ino, flags, .. } => self.open(ino, flags),
            Op::Read { ino, fh, offset, len } => {
                let id = self.held(ino, fh)?;
                Ok(Answer::Data(fs.read(id, offset, len as usize)?))
            }
            Op::Write { .. } | Op::Allocate { .. } => self.write(op),
            Op::Flush { ino, fh, owner } => self.flush(ino, fh, owner),
            Op::Release { ino, owner, .. } => self.release(ino, owner),
            Op::Sync { ino, fh } => {
                let id = fh.map_or_else(|| Ok(self.id(ino)?), |fh| self.held(ino, fh))?;
                Ok(fs.fsync(id).map(|()| Answer::Done)?)
            }
            // A listing goes by cookies alone.
            Op::OpenDir { .. } => Ok(Answer::Opened(0, fuser::FopenFlags::empty())),
            Op::ReadDir { ino, cookie, .. } => self.list(ino, cookie),
            Op::ReleaseDir { .. } | Op::Forget { .. } => Ok(Answer::Done),
            Op::StatFs => Ok(Answer::Statfs(statfs(fs.space()?, self.manner.block_bytes))),
            Op::GetXattr { .. }
            | Op::SetXattr { .. }
            | Op::ListXattr { .. }
            | Op::RemoveXattr { .. } => self.xattr(op),
            Op::GetLock(lock) => locking::get(fs, self.id(lock.ino)?, &lock),
            Op::Ask { .. } | Op::Seek { .. } | Op::SetLock { .. } => Err(Errno::ENOSYS.into()),
        }
    }

    /// The file of an open handle, whose locks still stand.
    pub fn held(&self, ino: Ino, fh: u64) -> Result<Owner, Fail> {
        let id = self.id(ino)?;
        self.fs.check_handle(id, fh)?;
        Ok(id)
    }

    fn xattr(&self, op: Op<&[u8]>) -> Served {
        let fs = &self.fs;
        match op {
            Op::GetXattr { ino, name, size } => {
                let value = match xattr::server(ino, &name) {
                    Some(server) => server,
                    None => {
                        let id = self.id(ino)?;
                        fs.xattr(id, known(&name)?)?
                    }
                };
                Ok(xattr::sized(value, size)?)
            }
            Op::ListXattr { ino, size, .. } => {
                let names = fs.xattr_names(self.id(ino)?)?;
                Ok(xattr::sized(xattr::names(names), size)?)
            }
            Op::SetXattr { ino, name, value, flags } => {
                let (id, mode) = (self.id(ino)?, xattr::mode(flags).unwrap_or(XattrMode::Set));
                Ok(fs.set_xattr(id, known(&name)?, &value, mode).map(|()| Answer::Done)?)
            }
            Op::RemoveXattr { ino, name } => {
                let id = self.id(ino)?;
                Ok(fs.remove_xattr(id, known(&name)?).map(|()| Answer::Done)?)
            }
            _ => Err(Errno::ENOSYS.into()),
        }
    }

    fn set_lock(&self, lock: LockRequest, waits: bool, reply: KernelReply) {
        // Who has lost its locks may give them back.
        let id = match lock.kind {
            F_UNLCK => self.id(lock.ino).map_err(Fail::from),
            _ => self.held(lock.ino, lock.fh),
        };
        let reply = locking::Reply { reply, manner: self.manner };
        match id {
            Ok(id) => locking::set(&self.fs, &self.pages, (id, lock), waits, reply),
            Err(fail) => reply.outcome(Err(fail)),
        }
    }
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
