//! What the file system stands on: transactions on named blocks.

use crate::error::Result;

/// The owner of blocks: the file, directory or table that they belong to.
pub type Owner = [u8; 16];

/// A client's time with a volume, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(pub u64);

impl Session {
    /// As it stands in blocks.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        u128::from(self.0).to_le_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes) as u64)
    }
}

/// The most asks of a transaction.
pub const MOST_ASKS: usize = 8;

/// The most bytes of a comparison.
pub const MOST_COMPARED: usize = 64;

/// The name of a block. No store sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// What it belongs to: all blocks of an owner can be forgotten at once.
    pub owner: Owner,
    /// Which of its owner's blocks it is.
    pub index: u64,
}

/// An action on a block. No store can tell them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Return the block's content.
    Read,
    /// Replace the whole content. Zeros pad shorter data to a block.
    Write(Vec<u8>),
    /// Replace a part of the content. An absent block counts as zeros.
    Patch {
        /// Offset in the block.
        offset: usize,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Replace several parts, in order.
    Patches(Vec<(usize, Vec<u8>)>),
    /// Make the block absent. Later reads find it absent.
    Remove,
}

impl Action {
    /// Whether it may change its block.
    pub fn changes(&self) -> bool {
        !matches!(self, Action::Read)
    }

    /// Whether nothing is left of what a block of this length held before.
    pub fn replaces(&self, block_bytes: usize) -> bool {
        match self {
            Action::Write(_) | Action::Remove => true,
            Action::Patch { offset: 0, bytes } => bytes.len() >= block_bytes,
            Action::Read | Action::Patch { .. } | Action::Patches(_) => false,
        }
    }

    /// End of the furthest byte written, as an offset in the block.
    pub fn end(&self) -> usize {
        let end = |offset: usize, bytes: &[u8]| offset.saturating_add(bytes.len());
        match self {
            Action::Read | Action::Remove => 0,
            Action::Write(bytes) => bytes.len(),
            Action::Patch { offset, bytes } => end(*offset, bytes),
            Action::Patches(patches) => {
                patches.iter().map(|(offset, bytes)| end(*offset, bytes)).max().unwrap_or(0)
            }
        }
    }

    /// Applies a write or patch to a block; other actions leave the block alone. The block must
    /// reach to [`Self::end`].
    pub fn write_to(&self, block: &mut [u8]) {
        let mut patch = |offset: usize, bytes: &[u8]| {
            block[offset..offset + bytes.len()].copy_from_slice(bytes);
        };
        match self {
            Action::Read | Action::Remove => {}
            Action::Write(bytes) => {
                patch(0, bytes);
                block[bytes.len()..].fill(0);
            }
            Action::Patch { offset, bytes } => patch(*offset, bytes),
            Action::Patches(patches) => {
                patches.iter().for_each(|(offset, bytes)| patch(*offset, bytes));
            }
        }
    }
}

/// What to do with a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The change, if any.
    pub action: Action,
    /// Whether the answer is the content before the change: with a write, the test-and-set of
    /// PrivateFS.
    pub and_read: bool,
}

/// What an ask does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    /// Something with its block.
    Block(Operation),
    /// It removes its block and all later ones of its owner. They read as absent from then on.
    Forget,
    /// It ends a session, its own or a silent one. Later asks of that session are refused.
    End(Session),
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
    /// What to do.
    pub does: Does,
    /// What must hold of its block before.
    pub compare: Compare,
}

impl Ask {
    /// An operation on a block.
    pub fn new(name: Name, operation: Operation) -> Self {
        Self { name, does: Does::Block(operation), compare: Compare::Always }
    }

    /// Reads a block.
    pub fn read(name: Name) -> Self {
        Self::new(name, Operation { action: Action::Read, and_read: true })
    }

    /// A change, if the comparison holds.
    pub fn change(name: Name, action: Action, compare: Compare) -> Self {
        Self::new(name, Operation { action, and_read: false }).only_if(compare)
    }

    /// Removes a block and all later ones of its owner.
    pub fn forget(first: Name) -> Self {
        Self { name: first, does: Does::Forget, compare: Compare::Always }
    }

    /// Ends a session. It is no part of a transaction. It shows a slot as any other.
    pub fn end_of(session: Session) -> Self {
        let name = Name { owner: [0xff; 16], index: session.0 };
        Self { name, does: Does::End(session), compare: Compare::Always }
    }

    /// With something that must hold of its block before.
    #[must_use]
    pub fn only_if(self, compare: Compare) -> Self {
        Self { compare, ..self }
    }

    /// The answer has the content before the change.
    #[must_use]
    pub fn and_read(mut self) -> Self {
        if let Does::Block(operation) = &mut self.does {
            operation.and_read = true;
        }
        self
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

/// A block that a client changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Whose ask it was.
    pub session: Session,
    /// The block.
    pub name: Name,
    /// Whether all later blocks of its owner are gone too.
    pub and_later: bool,
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

    /// As [`Self::carry_out_many`]. None for each transaction that was not carried out because it
    /// needs a block whose content is lost.
    ///
    /// # Errors
    /// As [`Self::carry_out`], but for `Lost`.
    fn carry_out_each(&self, transactions: Vec<Vec<Ask>>) -> Result<Vec<Option<Vec<Answer>>>> {
        Ok(self.carry_out_many(transactions)?.into_iter().map(Some).collect())
    }

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

    /// Damaged places that this client met at the server so far. What they held is lost, if they
    /// held anything. It asks nobody.
    fn damaged(&self) -> u64 {
        0
    }

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
