//! One client of a volume.

use crate::base::{CacheNotice, ClientBase, ClientEnvironment, FsOptions};
use crate::error::{Error, Result};
use crate::file::ClientFile;
use crate::inode::{DataForm, Inode};
use crate::layout::{self, LEAST_BLOCK, ROOT};
use crate::node::NodeAttr;
use crate::transactions::{Action, Ask, Compare, Name, Owner, Space, Transactions};
use crate::types::{FileKind, MODE_BITS, NewNode};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// A client of a file system.
pub struct PrivateFs {
    base: ClientBase,
    pub(crate) files: Mutex<BTreeMap<Owner, Arc<Mutex<ClientFile>>>>,
    pub(crate) handles: AtomicU64,
}

// Operations reach the line and the cache as if they were the client's own.
impl Deref for PrivateFs {
    type Target = ClientBase;

    fn deref(&self) -> &ClientBase {
        &self.base
    }
}

impl PrivateFs {
    /// A client. It asks nothing yet.
    ///
    /// # Errors
    /// `Invalid` if blocks are too small for the layout.
    pub fn new(
        transactions: Arc<dyn Transactions>,
        environment: ClientEnvironment,
        options: FsOptions,
    ) -> Result<Self> {
        if transactions.block_bytes() < LEAST_BLOCK {
            return Err(Error::Invalid("blocks are too small"));
        }
        let base = ClientBase::new(transactions, environment, options);
        Ok(Self { base, files: Mutex::default(), handles: AtomicU64::default() })
    }

    /// Makes the root directory, if there is none.
    ///
    /// # Errors
    /// Those of the transactions.
    pub fn create_root(&self, node: NewNode) -> Result<()> {
        let ask = self.new_root(node);
        self.transactions.carry_out(&[ask])?;
        crate::base::lock(&self.cache).forget(layout::inode(ROOT));
        Ok(())
    }

    /// The same in a volume that may hold something else: then it has the block `other`. Whether it
    /// holds files.
    ///
    /// # Errors
    /// Those of the transactions.
    pub fn create_root_unless(&self, other: Name, node: NewNode) -> Result<bool> {
        let root = self.new_root(node).and_read();
        let other = Ask::read(other).only_if(Compare::Absent);
        let answers = self.transactions.carry_out(&[root, other])?;
        crate::base::lock(&self.cache).forget(layout::inode(ROOT));
        Ok(answers.first().is_some_and(|root| root.done || root.content.is_some()))
    }

    fn new_root(&self, node: NewNode) -> Ask {
        let mut root = self.new_inode(FileKind::Directory, node);
        (root.id, root.parent, root.nlink) = (ROOT, ROOT, 2);
        let action = Action::Write(root.encode(self.block_bytes));
        Ask::change(layout::inode(ROOT), action, Compare::Absent)
    }

    /// The attributes of an inode.
    ///
    /// # Errors
    /// `Stale` if it was removed; those of the transactions.
    pub fn attr(&self, id: Owner) -> Result<NodeAttr> {
        let attr = self.look(|attempt| Ok(attempt.inode(id)?.attr()))?;
        Ok(self.with_waiting(attr))
    }

    /// The attributes as they are now, never from the cache. For whoever has just got a lock: what
    /// the one before wrote is seen from here on.
    ///
    /// # Errors
    /// As [`Self::attr`].
    pub fn attr_now(&self, id: Owner) -> Result<NodeAttr> {
        let attr = self.look_again(|attempt| Ok(attempt.inode(id)?.attr()))?;
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
    pub fn take_notices(&self) -> Vec<CacheNotice> {
        self.base.take_notices()
    }

    pub(crate) fn new_inode(&self, kind: FileKind, node: NewNode) -> Inode {
        let now = self.now();
        Inode {
            id: self.random(),
            holders: Vec::new(),
            holders_stamp: [0; 8],
            stamp: self.random(),
            mtime: node.mtime,
            ctime: now,
            guard: self.random(),
            nlink: 1,
            kind,
            form: DataForm::Inline,
            mode: node.mode & MODE_BITS,
            uid: node.uid,
            gid: node.gid,
            rdev: 0,
            size: 0,
            atime: node.mtime,
            crtime: now,
            parent: [0; 16],
            buckets: 1,
            xattrs_stamp: [0; 16],
            xattrs_bytes: 0,
            xattrs: Vec::new(),
            inline: Vec::new(),
        }
    }
}
