//! Open files: who holds them, and what waits to be written.

use crate::attempt::Attempted;
use crate::base::lock;
use crate::client::PrivateFs;
use crate::dirty::Dirty;
use crate::error::{Error, Result};
use crate::file::ClientFile;
use crate::inode::{HOLDERS, Inode};
use crate::layout;
use crate::node::NodeAttr;
use crate::orphans::reap;
use crate::transactions::{Owner, Session};
use crate::types::FileKind;
use std::sync::{Arc, Mutex, MutexGuard};

impl PrivateFs {
    /// Opens a file: it asks for the inode in any case, and names this session as a holder, so
    /// that the file outlives its names. Each call needs a [`Self::close`].
    ///
    /// # Errors
    /// `Stale` if it was removed; those of the transactions.
    pub fn open(&self, id: Owner) -> Result<NodeAttr> {
        self.with_file(id, |file| {
            // As a holder of a session that is over it is none.
            let attr = match file.held == Some(self.session()) {
                true => self.look_again(|attempt| Ok(attempt.inode(id)?.attr()))?,
                false => self.hold(id, file)?,
            };
            file.opens += 1;
            Ok(attr)
        })
        .map(|attr| self.with_waiting(attr))
    }

    fn hold(&self, id: Owner, file: &mut ClientFile) -> Result<NodeAttr> {
        let before = file.held;
        file.held = self.in_session(|session| {
            self.change(|attempt| self.name_holder(attempt, id, (before, session)))
        })?;
        if file.held.is_none() {
            return self.look_again(|attempt| Ok(attempt.inode(id)?.attr()));
        }
        // The answer had the inode; mostly it is in the cache now.
        let inode = self.repeat_cached(id)?;
        if inode.nlink == 0 {
            self.let_go(id, file)?;
            return Err(Error::Stale);
        }
        Ok(inode.attr())
    }

    /// Names a session as a holder, in the place of the one `before` it. None if it cannot be one.
    fn name_holder(
        &self,
        attempt: &mut Attempted<'_>,
        id: Owner,
        (before, session): (Option<Session>, Session),
    ) -> Result<Option<Session>> {
        let mut inode = attempt.inode(id)?;
        if inode.nlink == 0 {
            return Err(Error::Stale);
        }
        if inode.kind != FileKind::File {
            return Ok(None);
        }
        inode.holders.retain(|holder| Some(*holder) != before && *holder != session);
        if inode.holders.len() >= HOLDERS {
            self.drop_ended(&mut inode)?;
        }
        // With all places taken, it opens all the same: as with NFS, it may become stale.
        if inode.holders.len() >= HOLDERS {
            return Ok(None);
        }
        inode.holders.push(session);
        let old = inode.holders_stamp;
        inode.holders_stamp = self.holders_stamp();
        attempt.ask(inode.replace_holders(old));
        Ok(Some(session))
    }

    /// From the cache even if strict: the block came with the last transaction.
    fn repeat_cached(&self, id: Owner) -> Result<Inode> {
        let cached = lock(&self.cache).get(layout::inode(id));
        match cached {
            Some(Some(block)) => Inode::decode(id, &block),
            _ => self.look_again(|attempt| attempt.inode(id)),
        }
    }

    fn drop_ended(&self, inode: &mut Inode) -> Result<()> {
        let mut live = Vec::new();
        for holder in &inode.holders {
            if self.transactions.is_live(holder)? {
                live.push(*holder);
            }
        }
        inode.holders = live;
        Ok(())
    }

    fn holders_stamp(&self) -> [u8; 8] {
        let mut stamp = [0; 8];
        stamp.copy_from_slice(&self.random()[..8]);
        stamp
    }

    /// A file that was just made, with a session as its holder.
    pub(crate) fn opened_new(&self, id: Owner, session: Session) {
        let _ = self.with_file(id, |file| {
            (file.opens, file.held) = (file.opens + 1, Some(session));
            Ok(())
        });
    }

    /// Closes a file. With the last one, what waits is written, and the file goes if it has no
    /// name and no other holder.
    ///
    /// # Errors
    /// Those of the flush and of the transactions; it is closed all the same.
    pub fn close(&self, id: Owner) -> Result<()> {
        self.with_file(id, |file| {
            file.opens = file.opens.saturating_sub(1);
            if file.opens > 0 {
                return Ok(());
            }
            let flushed = self.flush_file(id, file);
            file.dirty = Dirty::default();
            let unlocked = self.release_all(id, file, None);
            file.locks = None;
            let let_go = if file.held.is_some() { self.let_go(id, file) } else { Ok(()) };
            flushed.and(unlocked).and(let_go)
        })
    }

    fn let_go(&self, id: Owner, file: &mut ClientFile) -> Result<()> {
        let held = file.held.take();
        self.change(|attempt| {
            let Some(mut inode) = attempt.find_inode(id)? else { return Ok(()) };
            inode.holders.retain(|holder| Some(*holder) != held);
            if inode.nlink == 0 && !self.anybody_holds(&inode.holders)? {
                return reap(attempt, &inode);
            }
            let old = inode.holders_stamp;
            inode.holders_stamp = self.holders_stamp();
            attempt.ask(inode.release(old));
            Ok(())
        })
    }

    /// Works with an open file, or one that is not open for so long.
    pub(crate) fn with_file<R>(
        &self,
        id: Owner,
        work: impl FnOnce(&mut ClientFile) -> Result<R>,
    ) -> Result<R> {
        loop {
            let file = Arc::clone(lock(&self.files).entry(id).or_default());
            let mut file: MutexGuard<'_, ClientFile> = lock(&file);
            if file.gone {
                continue;
            }
            let result = work(&mut file);
            if file.opens == 0 && !file.dirty.any && file.locks.is_none() {
                file.gone = true;
                lock(&self.files).remove(&id);
            }
            return result;
        }
    }

    /// The open file, if it is open.
    pub(crate) fn open_file(&self, id: Owner) -> Option<Arc<Mutex<ClientFile>>> {
        lock(&self.files).get(&id).cloned()
    }

    /// Attributes as they will be when what waits is written.
    pub(crate) fn with_waiting(&self, mut node: NodeAttr) -> NodeAttr {
        if let Some(file) = self.open_file(node.id) {
            let file = lock(&file);
            if file.dirty.any {
                node.resize(node.size.max(file.dirty.end));
                (node.attr.mtime, node.attr.ctime) = (file.written, file.written);
            }
        }
        node
    }
}
