//! One client of a volume, and the loop around each of its changes.

use crate::attempt::Attempt;
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::inode::{Form, Inode};
use crate::layout::{self, LEAST_BLOCK, ROOT};
use crate::opened::OpenFile;
use crate::transactions::{
    Action, Ask, Change, Changes, Compare, Name, Owner, Session, Space, Transactions,
};
use crate::types::{Attr, Kind, MODE_BITS, NewNode, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A change is given up when it met others this often. Of each meeting one side wins.
const MOST_TRIES: u32 = 2000;
/// Notices beyond this become [`Notice::Everything`].
const MOST_NOTICES: usize = 1 << 14;

/// Time and chance, from outside.
pub struct Environment {
    /// The time of this computer.
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Fresh random bytes that nobody can foresee: a file's number is one.
    pub random: Box<dyn Fn() -> [u8; 16] + Send + Sync>,
}

/// How a client works.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Nothing is answered from memory and no write waits: all operations are linearizable.
    pub strict: bool,
    /// Blocks of metadata that are kept in memory.
    pub cached_blocks: usize,
    /// Pages that a file may have waiting to be written.
    pub waiting_pages: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { strict: false, cached_blocks: 4096, waiting_pages: 64 }
    }
}

/// Something that a client above (the kernel) may have cached, and that another client changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// Attributes, and data or a link's target if they are short.
    Inode(Owner),
    /// A file's data, or a directory's names.
    Blocks(Owner),
    /// Anything.
    Everything,
}

/// A client of a file system.
pub struct PrivateFs {
    pub(crate) transactions: Arc<dyn Transactions>,
    pub(crate) cache: Mutex<Cache>,
    pub(crate) files: Mutex<BTreeMap<Owner, Arc<Mutex<OpenFile>>>>,
    pub(crate) options: Options,
    pub(crate) block_bytes: usize,
    pub(crate) session: Session,
    environment: Environment,
    notices: Mutex<BTreeSet<Notice>>,
}

/// A thread that panicked left no half change: those are transactions.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PrivateFs {
    /// A client. It asks nothing yet.
    ///
    /// # Errors
    /// `Invalid` if blocks are too small for the layout.
    pub fn new(
        transactions: Arc<dyn Transactions>,
        environment: Environment,
        options: Options,
    ) -> Result<Self> {
        let (block_bytes, session) = (transactions.block_bytes(), transactions.session());
        if block_bytes < LEAST_BLOCK {
            return Err(Error::Invalid("blocks are too small"));
        }
        let (files, notices) = Default::default();
        let cache = Mutex::new(Cache::new(options.cached_blocks.max(64)));
        Ok(Self { transactions, cache, files, options, block_bytes, session, environment, notices })
    }

    /// Makes the root directory, if there is none.
    ///
    /// # Errors
    /// Those of the transactions.
    pub fn create_root(&self, node: NewNode) -> Result<()> {
        let mut root = self.new_inode(Kind::Directory, node);
        (root.id, root.parent, root.nlink) = (ROOT, ROOT, 2);
        let action = Action::Write(root.encode(self.block_bytes));
        let ask = Ask::change(layout::inode(ROOT), action, Compare::Absent);
        self.transactions.carry_out(&[ask])?;
        lock(&self.cache).forget(layout::inode(ROOT));
        Ok(())
    }

    /// The attributes of an inode.
    ///
    /// # Errors
    /// `Stale` if it was removed; those of the transactions.
    pub fn attr(&self, id: Owner) -> Result<Attr> {
        let attr = self.look(|attempt| Ok(attempt.inode(id)?.attr()))?;
        Ok(self.with_waiting(attr))
    }

    /// The directory that a directory is in.
    ///
    /// # Errors
    /// `NotADirectory`; as [`Self::attr`].
    pub fn parent(&self, id: Owner) -> Result<Owner> {
        self.look(|attempt| Ok(attempt.directory(id)?.parent))
    }

    /// How full the volume is.
    ///
    /// # Errors
    /// Those of the transactions.
    pub fn space(&self) -> Result<Space> {
        self.transactions.space()
    }

    /// Bytes in a block.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// What others changed since the last call, for caches above. It asks for no blocks.
    pub fn take_notices(&self) -> Vec<Notice> {
        self.notice_changes();
        std::mem::take(&mut *lock(&self.notices)).into_iter().collect()
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.environment.now)()
    }

    pub(crate) fn random(&self) -> [u8; 16] {
        (self.environment.random)()
    }

    pub(crate) fn new_inode(&self, kind: Kind, node: NewNode) -> Inode {
        let now = self.now();
        Inode {
            id: self.random(),
            holders: Vec::new(),
            holders_stamp: [0; 8],
            stamp: self.random(),
            mtime: now,
            ctime: now,
            guard: self.random(),
            nlink: 1,
            kind,
            form: Form::Inline,
            mode: node.mode & MODE_BITS,
            uid: node.uid,
            gid: node.gid,
            rdev: 0,
            size: 0,
            atime: now,
            crtime: now,
            parent: [0; 16],
            buckets: 1,
            xattrs_stamp: [0; 16],
            xattrs_bytes: 0,
            xattrs: Vec::new(),
            inline: Vec::new(),
        }
    }

    /// Drops from the cache what others changed.
    pub(crate) fn notice_changes(&self) {
        let changes = self.transactions.changed();
        let (mut cache, mut notices) = (lock(&self.cache), lock(&self.notices));
        let Changes::Known(changes) = changes else {
            cache.clear();
            notices.clear();
            notices.insert(Notice::Everything);
            return;
        };
        for change in changes {
            let Name { owner, index } = match change {
                Change::Block(name) => {
                    cache.forget(name);
                    name
                }
                Change::Forgotten(from) => {
                    cache.forget_from(from);
                    from
                }
            };
            if index == 0 {
                notices.insert(Notice::Inode(owner));
            }
            if index >= layout::DATA || matches!(change, Change::Forgotten(_)) {
                notices.insert(Notice::Blocks(owner));
            }
        }
        if notices.len() > MOST_NOTICES {
            notices.clear();
            notices.insert(Notice::Everything);
        }
    }

    /// Answers from what is cached or asked for. A strict client asks.
    pub(crate) fn look<R>(&self, plan: impl FnMut(&mut Attempt<'_>) -> Result<R>) -> Result<R> {
        self.notice_changes();
        self.repeat(self.options.strict, true, plan)
    }

    /// As [`Self::look`], never from the cache.
    pub(crate) fn look_again<R>(
        &self,
        plan: impl FnMut(&mut Attempt<'_>) -> Result<R>,
    ) -> Result<R> {
        self.notice_changes();
        self.repeat(true, true, plan)
    }

    /// Carries out the asks that the plan ends with as one transaction; makes the plan again if
    /// others changed what it was made from. A refusal is never made from the cache.
    pub(crate) fn change<R>(&self, plan: impl FnMut(&mut Attempt<'_>) -> Result<R>) -> Result<R> {
        self.notice_changes();
        self.repeat(self.options.strict, false, plan)
    }

    fn repeat<R>(
        &self,
        mut fresh: bool,
        trust: bool,
        mut plan: impl FnMut(&mut Attempt<'_>) -> Result<R>,
    ) -> Result<R> {
        for _ in 0..MOST_TRIES {
            let mut attempt = Attempt::new(self, fresh);
            match plan(&mut attempt) {
                Ok(answer) => {
                    let crowded = attempt.crowded();
                    if attempt.commit()? {
                        self.relieve(crowded);
                        return Ok(answer);
                    }
                }
                Err(Error::Conflict) => match attempt.crowded() {
                    Some(directory) => self.split(directory)?,
                    None => {}
                },
                Err(error) if !trust && error.is_refusal() && attempt.used_cache() => {}
                Err(error) => return Err(error),
            }
            fresh = true;
        }
        Err(Error::Busy)
    }

    /// A bucket needed a further block: the directory gets one bucket more. If that fails, the next
    /// name that meets a full bucket tries again.
    fn relieve(&self, crowded: Option<Owner>) {
        if let Some(directory) = crowded {
            let _ = self.split(directory);
        }
    }
}
