//! What all operations of a client stand on: its line to the blocks, its cache, time and chance.

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::layout;
use crate::transactions::{Answer, Ask, Change, Changes, Name, Owner, Session, Transactions};
use crate::types::Timestamp;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Notices beyond this become [`CacheNotice::Everything`].
const MOST_NOTICES: usize = 1 << 14;

/// Time and chance, from outside.
pub struct ClientEnvironment {
    /// The time of this computer.
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Fresh random bytes that nobody can foresee: a file's number is one.
    pub random: Box<dyn Fn() -> [u8; 16] + Send + Sync>,
}

/// How a client works.
#[derive(Clone, Copy, Debug)]
pub struct FsOptions {
    /// Nothing is answered from memory and no write waits: all operations are linearizable.
    pub strict: bool,
    /// Blocks of metadata that are kept in memory.
    pub cached_blocks: usize,
    /// Pages that a file may have waiting to be written: as many as are in flight together, so that
    /// a long write waits for few round trips.
    pub waiting_pages: usize,
}

impl Default for FsOptions {
    fn default() -> Self {
        Self { strict: false, cached_blocks: 4096, waiting_pages: 512 }
    }
}

/// Something that a client above (the kernel) may have cached, and that another client changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheNotice {
    /// Attributes, and data or a link's target if they are short.
    Inode(Owner),
    /// A file's data, or a directory's names.
    Blocks(Owner),
    /// Anything.
    Everything,
}

/// A client without its open files.
pub struct ClientBase {
    pub transactions: Arc<dyn Transactions>,
    pub cache: Mutex<Cache>,
    pub options: FsOptions,
    pub block_bytes: usize,
    environment: ClientEnvironment,
    notices: Mutex<BTreeSet<CacheNotice>>,
}

/// A thread that panicked left no half change: those are transactions.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClientBase {
    pub fn new(
        transactions: Arc<dyn Transactions>,
        environment: ClientEnvironment,
        options: FsOptions,
    ) -> Self {
        let block_bytes = transactions.block_bytes();
        let cache = Mutex::new(Cache::new(options.cached_blocks.max(64)));
        let notices = Mutex::default();
        Self { transactions, cache, options, block_bytes, environment, notices }
    }

    pub fn now(&self) -> Timestamp {
        (self.environment.now)()
    }

    pub fn random(&self) -> [u8; 16] {
        (self.environment.random)()
    }

    /// This client's session. After a long silence it is another one than before.
    pub fn session(&self) -> Session {
        self.transactions.session()
    }

    /// Carries out a change that names this client's session. If that was over by then, others
    /// take no notice of it: so it is made again in the name of the next one.
    pub fn in_session<R>(&self, mut change: impl FnMut(Session) -> Result<R>) -> Result<R> {
        loop {
            let session = self.session();
            let changed = change(session)?;
            if self.session() == session {
                return Ok(changed);
            }
        }
    }

    /// Carries out transactions that do not depend on each other: in whatever session, or only in
    /// this one.
    ///
    /// # Errors
    /// `LockLost` if that one is over.
    pub fn carry_out(
        &self,
        only: Option<Session>,
        transactions: &[Vec<Ask>],
    ) -> Result<Vec<Vec<Answer>>> {
        match (only, transactions) {
            (Some(session), _) => {
                let done = self.transactions.carry_out_in(session, transactions.to_vec())?;
                done.ok_or(Error::LockLost)
            }
            (None, [alone]) => Ok(vec![self.transactions.carry_out(alone)?]),
            (None, _) => self.transactions.carry_out_many(transactions.to_vec()),
        }
    }

    /// A client above forgets what it knows of a file.
    pub fn notice(&self, id: Owner) {
        lock(&self.notices).extend([CacheNotice::Inode(id), CacheNotice::Blocks(id)]);
    }

    /// Drops from the cache what others changed.
    pub fn notice_changes(&self) {
        let changes = self.transactions.changed();
        let (mut cache, mut notices) = (lock(&self.cache), lock(&self.notices));
        let Changes::Known(changes) = changes else {
            cache.clear();
            notices.clear();
            notices.insert(CacheNotice::Everything);
            return;
        };
        for change in changes {
            let Change { name, and_later, .. } = change;
            match and_later {
                true => cache.forget_from(name),
                false => cache.forget(name),
            }
            let Name { owner, index } = name;
            if index == 0 {
                notices.insert(CacheNotice::Inode(owner));
            }
            if index >= layout::DATA || and_later {
                notices.insert(CacheNotice::Blocks(owner));
            }
        }
        if notices.len() > MOST_NOTICES {
            notices.clear();
            notices.insert(CacheNotice::Everything);
        }
    }

    pub fn take_notices(&self) -> Vec<CacheNotice> {
        self.notice_changes();
        std::mem::take(&mut *lock(&self.notices)).into_iter().collect()
    }

    /// Whether one of the sessions that hold a file goes on.
    pub fn anybody_holds(&self, holders: &[Session]) -> Result<bool> {
        for holder in holders {
            if *holder == self.session() || self.transactions.is_live(holder)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The contents of blocks, asked for one by one and in flight together.
    ///
    /// # Errors
    /// `Lost` if one of them is.
    pub fn contents(&self, names: &[Name]) -> Result<Vec<Option<Vec<u8>>>> {
        let answers = match names {
            [name] => vec![self.transactions.carry_out(&[Ask::read(*name)])?],
            _ => {
                let asks = names.iter().map(|name| vec![Ask::read(*name)]).collect();
                self.transactions.carry_out_many(asks)?
            }
        };
        if answers.len() != names.len() {
            return Err(Error::Damaged("answers are missing"));
        }
        answers.into_iter().map(|answers| self.content(answers)).collect()
    }

    /// As [`Self::contents`]: what is lost, or is no block, is an outcome of its own.
    pub fn contents_each(&self, names: &[Name]) -> Result<Vec<Result<Option<Vec<u8>>>>> {
        let asks = names.iter().map(|name| vec![Ask::read(*name)]).collect();
        let carried = self.transactions.carry_out_each(asks)?;
        if carried.len() != names.len() {
            return Err(Error::Damaged("answers are missing"));
        }
        let lost = || Error::Lost("a block of a file: lost to damage".into());
        let content = |answers: Option<Vec<Answer>>| self.content(answers.ok_or_else(lost)?);
        Ok(carried.into_iter().map(content).collect())
    }

    fn content(&self, answers: Vec<Answer>) -> Result<Option<Vec<u8>>> {
        let answer = answers.into_iter().next().ok_or(Error::Damaged("no answer"))?;
        match answer.content {
            Some(block) if block.len() != self.block_bytes => {
                Err(Error::Damaged("it has not the length of a block"))
            }
            content => Ok(content),
        }
    }
}
