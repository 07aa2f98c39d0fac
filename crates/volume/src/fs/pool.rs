//! Shared by the metadata file and the file data: the block space and the allocator.

use super::allocator::Allocator;
use super::metadata_file::MetadataFile;
use super::ops::read_op;
use crate::damage::LostBytes;
use crate::{BlockSpace, Error, Least, Result};
use oblivio_engine::{BlockAnswer, BlockOp, BlockOutcome, Lost};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The block space with its allocator and the metadata file in it.
pub(super) struct Pool {
    /// `None` only once the file system gave the block space back.
    pub(super) blocks: Option<Box<dyn BlockSpace>>,
    pub(super) allocator: Allocator,
    pub(super) metadata: MetadataFile,
    pub(super) block_bytes: usize,
    /// Ids below this one are reserved in the block space.
    reserved: u64,
    /// Ids below this one may be in use.
    pub(super) ids: u64,
    /// Whether a higher limit can help a full volume.
    resizable: bool,
    /// Free blocks that are promised: twins do not take them.
    pub(super) kept: u64,
    /// Blocks that a repair found lost. One that does not exist is lost until it is written whole.
    pub(super) holes: BTreeSet<u64>,
    /// The least to show, if the space pads.
    pub(super) least: Least,
    /// The true reason for a failure that the database knows only as an I/O error.
    pub(super) failure: Option<Error>,
}

/// The pool, shared by the database's backend and the file system. The database calls back into it,
/// so never keep it locked over a call to the database.
#[derive(Clone)]
pub(super) struct SharedPool(Arc<Mutex<Pool>>);

impl SharedPool {
    pub(super) fn new(pool: Pool) -> Self {
        SharedPool(Arc::new(Mutex::new(pool)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Pool> {
        // A panic while the pool was locked also poisons the lock around the whole state, which
        // refuses all further calls. Only the shutdown still comes here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    pub(super) fn new(blocks: Box<dyn BlockSpace>, metadata: MetadataFile) -> Self {
        let mut allocator = Allocator::new(blocks.capacity_blocks());
        let resizable = blocks.can_resize();
        // Until somebody says what is promised.
        let kept = match metadata.map.runs() {
            0 => blocks.capacity_blocks() / 2,
            _ => u64::MAX / 2,
        };
        metadata.block_ids().for_each(|id| allocator.claim(id));
        Pool {
            block_bytes: blocks.block_bytes(),
            ids: blocks.addressable_blocks(),
            blocks: Some(blocks),
            allocator,
            metadata,
            reserved: 0,
            resizable,
            kept,
            holes: BTreeSet::new(),
            least: Least::default(),
            failure: None,
        }
    }

    pub(super) fn blocks(&mut self) -> Result<&mut (dyn BlockSpace + 'static)> {
        self.blocks.as_deref_mut().ok_or_else(|| Error::Closed("the file system was closed".into()))
    }

    pub(super) fn take_blocks(&mut self) -> Option<Box<dyn BlockSpace>> {
        self.blocks.take()
    }

    /// One call to the block space, none for an empty list. Writes alone may be deferred.
    ///
    /// # Errors
    /// `Lost` names a lost block.
    pub(super) fn access(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockAnswer>> {
        if !ops.is_empty() && ops.iter().all(|op| op.action.changes()) {
            for op in &ops {
                if self.is_void(op)? {
                    return Err(LostBytes::block(op.id.0).into());
                }
            }
            let count = ops.len();
            self.blocks()?.defer(ops)?;
            return Ok(vec![None; count]);
        }
        let ids: Vec<u64> = ops.iter().map(|op| op.id.0).collect();
        let outcomes = self.access_each(ops)?.into_iter().zip(ids);
        outcomes.map(|(outcome, id)| outcome.map_err(|_| LostBytes::block(id).into())).collect()
    }

    /// The same for operations that can be lost one by one; none is deferred. Once damage was met,
    /// as many reads follow.
    pub(super) fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        if ops.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<u64> = ops.iter().map(|op| op.id.0).collect();
        let mut outcomes = self.access_once(ops)?;
        self.follow(&ids, &mut outcomes)?;
        Ok(outcomes)
    }

    /// The same, and nothing follows.
    pub(super) fn access_once(&mut self, mut ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        let count = ops.len();
        let mut voids = Vec::new();
        for (at, op) in ops.iter_mut().enumerate() {
            if self.is_void(op)? {
                // The store sees one access more, as it would of any other block.
                *op = read_op(self.metadata.map.block_of(0).unwrap_or(0));
                voids.push(at);
            }
        }
        let mut outcomes = self.blocks()?.access_each(ops)?;
        for at in voids {
            if let Some(outcome) = outcomes.get_mut(at) {
                *outcome = Err(Lost);
            }
        }
        if outcomes.len() != count {
            return Err(Error::Tampered(format!(
                "{count} operations got {} answers",
                outcomes.len()
            )));
        }
        Ok(outcomes)
    }

    /// Whether an operation wants content of a block that stands for a lost one: of one that is
    /// not there for certain, or a write of a part of it would make up the rest.
    fn is_void(&self, op: &BlockOp) -> Result<bool> {
        let id = op.id.0;
        let wants = self.holes.contains(&id)
            && !op.action.replaces(self.block_bytes)
            && !self.metadata.owns(id);
        match self.blocks.as_deref().filter(|_| wants) {
            Some(blocks) => Ok(blocks.present(id..id + 1)? == [false]),
            None => Ok(false),
        }
    }

    /// Takes `count` blocks, or none.
    pub(super) fn take_many(&mut self, count: usize) -> Result<Vec<u64>> {
        if (count as u64) > self.allocator.free() {
            return Err(self.full());
        }
        let ids: Vec<u64> = (0..count).map_while(|_| self.allocator.take()).collect();
        if let Err(error) = self.reserve_for(ids.iter().copied().max()) {
            self.release_all(&ids);
            return Err(error);
        }
        Ok(ids)
    }

    pub(super) fn release_all(&mut self, ids: &[u64]) {
        ids.iter().for_each(|&id| self.allocator.release(id));
    }

    /// Makes the ids up to the highest one handed out addressable.
    pub(super) fn reserve_for(&mut self, highest: Option<u64>) -> Result<()> {
        let wanted = highest.map_or(0, |id| id + 1);
        if wanted > self.reserved {
            self.blocks()?.reserve(wanted)?;
            self.reserved = wanted;
        }
        Ok(())
    }

    /// Blocks that the space below has room for, at most `most`. Removed ones count already, though
    /// the space keeps them until the next commit, which short room brings on.
    pub(super) fn room_with_unwanted(&mut self, most: u64) -> Result<u64> {
        let Some(room) = self.blocks()?.room()?.filter(|room| *room < most) else {
            return Ok(most);
        };
        let unwanted = self.allocator.unwanted();
        let blocks = self.blocks()?;
        let coming = unwanted.into_iter().filter(|&id| blocks.exists(id)).count() as u64;
        Ok(most.min(room + coming))
    }

    /// Goes back to the last root and the last commit.
    pub(super) fn go_back(&mut self) -> Result<()> {
        let changed = self.metadata.changed;
        self.metadata = MetadataFile::of(self.blocks()?)?;
        self.metadata.changed = changed;
        self.failure = None;
        self.allocator.go_back();
        self.metadata.block_ids().for_each(|id| self.allocator.claim(id));
        Ok(())
    }

    /// Blocks of file data.
    pub(super) fn data_blocks(&self) -> u64 {
        self.allocator.used() - self.metadata.mapped_blocks()
    }

    /// Declares another capacity.
    pub(super) fn set_capacity(&mut self, blocks: u64) -> Result<()> {
        self.blocks()?.set_capacity(blocks)?;
        let space = self.blocks()?;
        let (ids, blocks) = (space.addressable_blocks(), space.capacity_blocks());
        self.ids = ids;
        self.allocator.set_capacity(blocks);
        Ok(())
    }

    /// The error of a volume without free blocks.
    pub(super) fn full(&self) -> Error {
        Error::Full(match self.resizable {
            true => "the volume's limit is used up; delete something, or raise it: oblivio resize \
                     VOLUME SIZE"
                .into(),
            false => "the volume's size is used up, which was fixed when it was made; delete \
                      something, or move to a larger one"
                .into(),
        })
    }
}
