//! What the file system stands on: transactions on named blocks.

use crate::error::Result;

/// The owner of blocks: the file, directory or table that they belong to.
pub type Owner = [u8; 16];

/// A client's stay, from its start to its end.
pub type Session = [u8; 16];

/// The most asks of a transaction.
pub const MOST_ASKS: usize = 8;

/// The most bytes of a comparison.
pub const MOST_COMPARED: usize = 64;

/// The name of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// What it belongs to.
    pub owner: Owner,
    /// Which of its owner's blocks it is.
    pub index: u64,
}

/// What an ask does to its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Read,
    /// Replaces the content. Zeros pad it to a block.
    Write(Vec<u8>),
    /// Replaces a part. An absent block counts as zeros.
    Patch {
        /// Offset in the block.
        at: usize,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Makes the block absent.
    Remove,
    /// Makes all blocks of the owner absent whose index is not smaller. The comparison is with
    /// the named block itself.
    Forget,
}

/// What must hold of a block before a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Nothing.
    Always,
    /// It does not exist.
    Absent,
    /// It exists.
    Exists,
    /// It exists, and has these bytes at this offset; at most [`MOST_COMPARED`].
    Bytes(usize, Vec<u8>),
}

/// A part of a transaction. No two of a transaction name the same block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its block.
    pub name: Name,
    /// The change.
    pub action: Action,
    /// Whether the answer has the content before the change. That of a read always has.
    pub and_read: bool,
    /// What must hold.
    pub compare: Compare,
}

impl Ask {
    /// Reads a block.
    pub fn read(name: Name) -> Self {
        Self { name, action: Action::Read, and_read: true, compare: Compare::Always }
    }

    /// A change, if the comparison holds.
    pub fn change(name: Name, action: Action, compare: Compare) -> Self {
        Self { name, action, and_read: false, compare }
    }
}

/// The answer to an ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the transaction was carried out: all its comparisons held.
    pub done: bool,
    /// What the block held before, if asked for, whether carried out or not. None: it was absent.
    pub content: Option<Vec<u8>>,
}

/// A change by another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Of one block.
    Block(Name),
    /// Of all blocks of this owner from this index on.
    Forgotten(Name),
}

/// Transactions that are in flight together, if they do not depend on each other: blocks of 4 KiB
/// in the longest read of a kernel.
pub(crate) const TOGETHER: usize = 256;

/// What others changed since the last call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Anything may have changed.
    Unknown,
    /// These, and nothing else.
    Known(Vec<Change>),
}

/// How full the volume is, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// The most blocks that it may ever hold.
    pub total: u64,
    /// How many more blocks it has room for.
    pub free: u64,
}

/// Carries out transactions on blocks, atomically, in one order for all clients.
///
/// What it answers may come from an adversary only as far as its own protection lets it: the file
/// system checks each block's form, and never trusts a length in it.
pub trait Transactions: Send + Sync {
    /// Carries out up to [`MOST_ASKS`] asks, all or none. All comparisons see the state before.
    ///
    /// # Errors
    /// Those of the line and of the store. Whether it was carried out is open then.
    fn carry_out(&self, asks: &[Ask]) -> Result<Vec<Answer>>;

    /// Carries out transactions that do not depend on each other, in flight together.
    ///
    /// # Errors
    /// As [`Self::carry_out`]; any of them may have been carried out.
    fn carry_out_many(&self, transactions: Vec<Vec<Ask>>) -> Result<Vec<Vec<Answer>>>;

    /// As [`Self::carry_out_many`], in this session alone. None: it is over, and what was not
    /// carried out before its end never will be.
    ///
    /// # Errors
    /// As [`Self::carry_out`].
    fn carry_out_in(
        &self,
        session: Session,
        transactions: Vec<Vec<Ask>>,
    ) -> Result<Option<Vec<Vec<Answer>>>>;

    /// What others changed since the last call, for caches. It asks nobody.
    fn changed(&self) -> Changes;

    /// Bytes in a block.
    fn block_bytes(&self) -> usize;

    /// How full the volume is.
    ///
    /// # Errors
    /// Those of the line.
    fn space(&self) -> Result<Space>;

    /// Returns when all that was answered is durable.
    ///
    /// # Errors
    /// Those of the line and of the store.
    fn sync(&self) -> Result<()>;

    /// This client's session, which others find alive. After a long silence it is another one: then
    /// others take for ended what the one before it held.
    fn session(&self) -> Session;

    /// Whether an ask of that session may still be carried out.
    ///
    /// # Errors
    /// Those of the line.
    fn is_live(&self, session: &Session) -> Result<bool>;

    /// The owners of all blocks, if that can be said without asking for blocks. For `check`.
    ///
    /// # Errors
    /// Those of the line.
    fn owners(&self) -> Result<Option<Vec<Owner>>> {
        Ok(None)
    }
}
