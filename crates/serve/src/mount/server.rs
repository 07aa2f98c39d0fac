//! The one thread that works on the file system.
//!
//! It takes all waiting requests at once. One oblivious batch serves all reads, one commit serves
//! all syncs, and everything else runs one after the other in order of arrival.

use super::directories::{Directories, Now};
use super::request::{MountQueue, MountRequest};
use super::tells::{Late, ServerTells, Unlearn};
use crate::fuse::{Fail, FileAnswer, FileOp, FileOpKind, NamePlace, Served, Statfs, done, errno};
use crate::lanes::LaneReplies;
use crate::lost::ToldLost;
use crate::queue::AnswerSlot;
use crate::server::{Habits, READ_BYTES, Upkeep};
use fuser::{Errno, FopenFlags};
use oblivio_volume::fs::{FileSystem, Handle, Ino, ROOT_INO, ReadAround, Usage};
use oblivio_volume::{CHANGE_BYTES, Result};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Changes are committed this part of the commit interval after the last one: 0.2 s of 5. Linux
/// does not pass `sync` and `syncfs` to an ordinary FUSE server, but users rely on them.
const SETTLING: u32 = 25;

/// Advice for a failure that the mount cannot recover from.
const ADVICE: &str = "nothing more is read or written until the volume is mounted again; what \
                          was synced is kept, what was not is lost. Put back what is missing, if \
                          anything is; then unmount (`oblivio umount DIR`, with --lazy if somebody \
                          works in it) and mount. If it fails again, `oblivio check VOLUME` says \
                          what is damaged; restore a backup then";

/// Observes each request before it is served: kind, inode, offset, length.
pub type OnRequest = Box<dyn Fn(FileOpKind, Ino, u64, u64) + Send>;

/// The server's parameters.
#[derive(Default)]
pub struct MountSettings {
    pub commit_every: Duration,
    /// Whether the volume works at a pace.
    pub paced: bool,
    pub on_request: Option<OnRequest>,
    /// Grows by the number of files that lost data, at the end.
    pub lost: Arc<AtomicU64>,
    /// Names in the root that no listing has.
    pub hidden: Vec<String>,
}

/// The server and its state between requests.
pub struct MountServer {
    pub(super) fs: FileSystem,
    pub(super) upkeep: Upkeep<FileOp, FileAnswer, Errno>,
    on_request: Option<OnRequest>,
    pub(super) tells: ServerTells,
    lost: Arc<AtomicU64>,
    hidden: Vec<String>,
    /// Of a lane: who answers syncs.
    pub(super) carried: Option<LaneReplies<FileAnswer, Errno>>,
    /// The files of which something is lost to damage.
    damaged: ToldLost<Ino>,
    pub(super) files: HashMap<u64, Handle>,
    directories: Directories,
    next_fh: u64,
    /// The inode that the current request changed, if its answer does not tell the kernel so.
    pub(super) outdated: Option<Ino>,
    /// Counts changes; a listing from before is known to be old.
    changes: u64,
}

impl MountServer {
    pub fn new(
        fs: FileSystem,
        queue: Arc<MountQueue>,
        settings: MountSettings,
        tells: ServerTells,
    ) -> Self {
        let MountSettings { commit_every, paced, on_request, lost, hidden } = settings;
        let settle = (!paced).then_some(commit_every / SETTLING);
        let even = fs.usage().map_or(true, |usage| usage.commits_evenly);
        let habits = Habits { commit_every, settle, even, paced, advice: ADVICE };
        MountServer {
            fs,
            upkeep: Upkeep::new(queue, habits),
            on_request,
            tells,
            lost,
            hidden,
            carried: None,
            damaged: ToldLost::default(),
            files: HashMap::new(),
            directories: Directories::default(),
            next_fh: 1,
            outdated: None,
            changes: 0,
        }
    }

    /// Serves until the queue is closed, then commits and gives the volume back.
    pub fn run(mut self) -> Result<()> {
        self.look();
        while let Some(batch) = self.upkeep.next(&mut self.fs) {
            self.serve(batch);
        }
        if let Some(lane) = &self.carried {
            self.fs.commit()?;
            lane.tally.served();
        }
        self.lost.fetch_add(self.lost_now().0, Ordering::Relaxed);
        self.fs.into_blocks().map(drop)
    }

    fn serve(&mut self, batch: Vec<MountRequest>) {
        let last_sync = batch.iter().rposition(|request| matches!(request.op, FileOp::Sync { .. }));
        let mut batch = batch.into_iter().enumerate().peekable();
        let mut syncs = Vec::new();
        while let Some((at, request)) = batch.next() {
            match request.op {
                FileOp::Sync { .. } => {
                    syncs.push(request);
                    if Some(at) == last_sync {
                        self.sync(std::mem::take(&mut syncs));
                    }
                }
                FileOp::Read { len, .. } => {
                    let (mut reads, mut bytes) = (vec![request], u64::from(len));
                    while let Some((_, next)) = batch.next_if(|(_, next)| {
                        matches!(next.op, FileOp::Read { len, .. }
                            if bytes + u64::from(len) <= READ_BYTES)
                    }) {
                        bytes += next.op.seen().3;
                        reads.push(next);
                    }
                    self.reads(reads);
                }
                _ => self.one(request),
            }
        }
    }

    /// One commit for all waiting syncs.
    fn sync(&mut self, mut waiting: Vec<MountRequest>) {
        waiting.retain(|request| !request.slot.answered());
        if waiting.is_empty() {
            return;
        }
        waiting.iter().for_each(|request| self.tell(&request.op));
        let committed = self.upkeep.commit(&mut self.fs);
        let errno = committed.err().map(|error| errno::of(&error));
        if let (None, Some(carried)) = (errno, &self.carried) {
            return carried.answer(waiting.into_iter().map(|request| request.slot).collect());
        }
        for request in waiting {
            request.slot.answer(errno.map_or(Ok(FileAnswer::Done), Err));
        }
    }

    /// One batch for all waiting reads.
    fn reads(&mut self, mut waiting: Vec<MountRequest>) {
        waiting.retain(|request| !request.slot.answered());
        let mut wanted = Vec::with_capacity(waiting.len());
        let mut slots = Vec::with_capacity(waiting.len());
        for request in waiting {
            self.tell(&request.op);
            let FileOp::Read { ino, fh, offset, len } = request.op else { continue };
            match self.files.get(&fh) {
                Some(&handle) => {
                    wanted.push((handle, offset, len as usize));
                    slots.push((ino, request.slot));
                }
                None => _ = request.slot.answer(Err(Errno::EBADF)),
            }
        }
        if wanted.is_empty() {
            return;
        }
        let answers = self.fs.read_many_around(&wanted).into_iter();
        let answers: Vec<_> = answers.map(|it| it.and_then(ReadAround::whole)).collect();
        self.upkeep.judge(answers.iter().find_map(|answer| answer.as_ref().err()));
        for ((ino, slot), answer) in slots.into_iter().zip(answers) {
            self.damaged.tell_file(ino, answer.as_ref().err());
            slot.answer(answer.map(FileAnswer::Data).map_err(|error| errno::of(&error)));
        }
    }

    fn one(&mut self, request: MountRequest) {
        let MountRequest { op, slot } = request;
        if slot.answered() && !op.must_be_served() {
            if let FileOp::Write { ino, cached: true, .. } = op {
                self.tells.scarce.lost(ino, false);
            }
            return;
        }
        self.tell(&op);
        let size = self.size_before(&op);
        let served = self.apply(&op);
        self.note_room(&op, size, &served);
        if op.changes() {
            self.changes += 1;
            if served.is_ok() {
                match op.seen() {
                    (FileOpKind::Write, _, _, len) => self.upkeep.changed(len),
                    (FileOpKind::MetadataChange, ..) => self.upkeep.changed(CHANGE_BYTES),
                    _ => self.upkeep.may_have_changed(),
                }
            }
        }
        let volume = match &served {
            Err(Fail::Volume(error)) => Some(error),
            _ => None,
        };
        self.upkeep.judge(volume);
        self.damaged.tell_file(op.seen().1, volume);
        let opened = match &served {
            Ok(FileAnswer::Created(_, fh, _) | FileAnswer::Opened(fh, _)) => Some(*fh),
            _ => None,
        };
        let went_well = served.is_ok();
        let answer = served.map_err(|fail| fail.errno());
        let Some(answer) = self.unlearn_first(&slot, answer) else { return };
        let in_time = slot.answer(answer);
        if !in_time && went_well {
            self.came_late(&op, opened);
        }
    }

    /// Takes an answer that must wait until the kernel has forgotten attributes. That needs a
    /// thread of its own: the kernel may make us wait for an inode that waits for the server.
    fn unlearn_first(
        &mut self,
        slot: &AnswerSlot<FileAnswer, Errno>,
        answer: std::result::Result<FileAnswer, Errno>,
    ) -> Option<std::result::Result<FileAnswer, Errno>> {
        match self.outdated.take() {
            Some(ino) if !slot.answered() => {
                let task = Unlearn { ino, slot: slot.clone(), answer };
                self.tells.unlearn.send(task).err().map(|unsent| unsent.0.answer)
            }
            _ => Some(answer),
        }
    }

    /// The kernel got an error for this operation. Nobody will close its handle, and the kernel's
    /// memory of the names may be wrong.
    fn came_late(&mut self, op: &FileOp, opened: Option<u64>) {
        if let Some(fh) = opened {
            let closed = self.close_dir(fh);
            self.upkeep.judge(closed.err().as_ref());
        }
        let name = |at: &NamePlace| Late::Name(at.parent, at.name.clone());
        let forget = match op {
            FileOp::MkNod { at, .. }
            | FileOp::MkDir { at, .. }
            | FileOp::SymLink { at, .. }
            | FileOp::Create { at, .. }
            | FileOp::Unlink(at)
            | FileOp::RmDir(at) => vec![name(at), Late::Inode(at.parent)],
            FileOp::Link { ino, at } => vec![name(at), Late::Inode(at.parent), Late::Inode(*ino)],
            FileOp::Rename { from, to, .. } => {
                vec![name(from), name(to), Late::Inode(from.parent), Late::Inode(to.parent)]
            }
            _ if op.changes() => vec![Late::Inode(op.seen().1)],
            _ => Vec::new(),
        };
        forget.into_iter().for_each(|what| drop(self.tells.late.send(what)));
    }

    fn tell(&self, op: &FileOp) {
        if let Some(hook) = &self.on_request {
            let (kind, ino, offset, len) = op.seen();
            hook(kind, ino, offset, len);
        }
    }

    pub(super) fn new_fh(&mut self) -> u64 {
        let fh = self.next_fh;
        self.next_fh += 1;
        fh
    }

    pub(super) fn handle(&self, fh: u64) -> std::result::Result<Handle, Fail> {
        self.files.get(&fh).copied().ok_or(Fail::Errno(Errno::EBADF))
    }

    pub(super) fn release(&mut self, fh: u64) -> Result<()> {
        match self.files.remove(&fh) {
            Some(handle) => self.fs.close(handle),
            None => Ok(()),
        }
    }

    fn open_dir(&mut self, ino: Ino) -> Served {
        // While open, the directory outlives its name.
        let handle = self.fs.open_directory(ino)?;
        let fh = self.new_fh();
        self.files.insert(fh, handle);
        self.directories.opened(fh);
        Ok(FileAnswer::Opened(fh, FopenFlags::empty()))
    }

    fn close_dir(&mut self, fh: u64) -> Result<()> {
        self.directories.closed(fh);
        self.release(fh)
    }

    fn read_dir(&mut self, ino: Ino, fh: u64, from: u64, plus: bool) -> Served {
        let now = Now { fs: &self.fs, changes: self.changes };
        let mut listed = self.directories.list(&now, ino, fh, from, plus)?;
        if ino == ROOT_INO {
            listed.retain(|entry| self.hidden.iter().all(|name| name.as_bytes() != entry.name));
        }
        Ok(FileAnswer::Listing(listed))
    }

    fn apply(&mut self, op: &FileOp) -> Served {
        match op {
            FileOp::Lookup(at) => self.lookup(at),
            FileOp::GetAttr { ino, .. } => Ok(FileAnswer::Attr(self.fs.attr(*ino)?)),
            FileOp::Ask { ino, fh } => self.ask(*ino, *fh),
            FileOp::SetAttr { ino, change, caller, .. } => self.set_attr(*ino, *change, *caller),
            FileOp::ReadLink { ino } => Ok(FileAnswer::Data(self.fs.read_link(*ino)?)),
            FileOp::MkNod { at, kind, mode, rdev, caller } => {
                self.mknod(at, (*kind, *rdev), *mode, *caller)
            }
            FileOp::MkDir { at, mode, caller } => self.mkdir(at, *mode, *caller),
            FileOp::SymLink { at, target, caller } => self.symlink(at, target, *caller),
            FileOp::Link { ino, at } => self.link(*ino, at),
            FileOp::Unlink(at) => done(self.fs.unlink(at.parent, &at.name)),
            FileOp::RmDir(at) => done(self.fs.rmdir(at.parent, &at.name)),
            FileOp::Rename { from, to, mode, whiteout } => self.rename(from, to, *mode, *whiteout),
            FileOp::Create { at, mode, flags, caller } => self.create(at, *mode, *flags, *caller),
            FileOp::Open { ino, flags, caller } => self.open(*ino, *flags, *caller),
            FileOp::Read { .. } | FileOp::Sync { .. } => Err(Errno::EINVAL.into()),
            FileOp::Write { ino, fh, offset, data, cached, kill, .. } => {
                self.write((*ino, *fh), *offset, data, *cached, *kill)
            }
            FileOp::Release { fh, .. } => done(self.release(*fh)),
            FileOp::OpenDir { ino } => self.open_dir(*ino),
            FileOp::ReadDir { ino, fh, cookie, plus } => self.read_dir(*ino, *fh, *cookie, *plus),
            FileOp::ReleaseDir { fh } => done(self.close_dir(*fh)),
            FileOp::Forget { ino } => done(self.fs.forget(*ino)),
            FileOp::StatFs { .. } => Ok(FileAnswer::Statfs(statfs(&self.fs.usage()?))),
            FileOp::GetXattr { ino, name, size } => self.get_xattr(*ino, name, *size),
            FileOp::SetXattr { ino, name, value, flags } => {
                self.set_xattr(*ino, name, value, *flags)
            }
            FileOp::ListXattr { ino, size, caller } => self.list_xattrs(*ino, *size, *caller),
            FileOp::RemoveXattr { ino, name } => self.remove_xattr(*ino, name),
            FileOp::Allocate { ino, fh, offset, len, how, keep_size, caller } => {
                self.allocate((*ino, *fh), (*offset, *len), (*how, *keep_size), *caller)
            }
            FileOp::Seek { fh, offset, whence, .. } => self.seek(*fh, *offset, *whence),
            // The kernel keeps locks itself, and learns by this that it need not flush.
            FileOp::Flush { .. } | FileOp::GetLock(_) | FileOp::SetLock { .. } => {
                Err(Errno::ENOSYS.into())
            }
        }
    }
}

/// Bytes of metadata for an inode, about.
const INODE_BYTES: u64 = 512;

/// How full a volume is. Blocks that the store has no room for are free but not available: counted
/// as used, they would make an empty volume on a small disk seem full.
fn statfs(usage: &Usage) -> Statfs {
    let files_free = usage.free_blocks.saturating_mul(usage.block_bytes) / INODE_BYTES;
    Statfs {
        blocks: usage.capacity_blocks,
        free: usage.unused_blocks,
        available: usage.free_blocks,
        files: usage.files + usage.directories + files_free,
        files_free,
        block_bytes: u32::try_from(usage.block_bytes).unwrap_or(u32::MAX),
    }
}
