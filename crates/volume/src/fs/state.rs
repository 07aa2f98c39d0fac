//! The file system's state in memory, and its commit.

use super::backend::open_database;
use super::cache::DataCache;
use super::handles::Handles;
use super::inode::Inode;
use super::metadata_file::MetadataFile;
use super::padding_account::Owed;
use super::pool::{Pool, SharedPool};
use super::tables::{ALLOCATION, Counters, Meta, ORPHANS};
use super::tails::Tails;
use super::types::{FileKind, Handle, Ino, NewNode, ROOT_INO, Timestamp};
use crate::latch::Latch;
use crate::{BlockSpace, Error, Result};
use redb::ReadableTable;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// The smallest block that metadata fits in.
const MIN_BLOCK_BYTES: usize = 512;

type Clock = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// What came since the last commit.
#[derive(Default)]
pub(super) struct Progress {
    /// Changing operations.
    pub operations: u64,
    /// Those already answered, which must not be undone.
    pub accepted: u64,
    /// The database committed, but the blocks are not durable yet.
    pub pending: bool,
}

/// What removals left to do.
#[derive(Default)]
pub(super) struct Cleaning {
    /// Operations since metadata last shrank that may have removed something.
    pub removals: u64,
    /// Whether this session had any of them.
    pub removed: bool,
    /// Whether mergeable shared blocks may exist.
    pub mergeable: bool,
    /// Whether removals of this session may have made some.
    pub unmerged: bool,
    /// Since when the metadata stays as it is.
    pub quiet: Quiet,
}

/// Since when the metadata stays as it is.
#[derive(Default)]
pub(super) struct Quiet {
    pub since: Option<Timestamp>,
    pub changes: u64,
}

/// What is known of shared blocks.
#[derive(Default)]
pub(super) struct KnownPacks {
    /// Bytes left in those being filled.
    pub open: BTreeMap<u64, usize>,
    /// Those that were found lost and are not written since.
    pub lost: HashSet<u64>,
}

/// The file system behind its lock.
pub(super) struct State {
    pub(super) pool: SharedPool,
    pub(super) meta: Meta,
    pub(super) counters: Counters,
    pub(super) cache: DataCache,
    pub(super) tails: Tails,
    pub(super) packs: KnownPacks,
    pub(super) block_bytes: usize,
    pub(super) handles: Handles,
    clock: Option<Clock>,
    pub(super) progress: Progress,
    pub(super) cleaning: Cleaning,
    /// Padding that work already done still owes.
    pub(super) owed: Owed,
    pub(super) latch: Latch,
}

impl State {
    /// Makes an empty file system.
    pub(super) fn format(blocks: Box<dyn BlockSpace>) -> Result<State> {
        let block = blocks.block_bytes();
        if block < MIN_BLOCK_BYTES || u32::try_from(block).is_err() {
            return Err(Error::Invalid(format!(
                "a file system needs blocks of {MIN_BLOCK_BYTES} bytes to 4 GiB, not {block}"
            )));
        }
        let file = MetadataFile::new(block, blocks.cache_budget() / 4);
        let mut state = Self::with(blocks, file, 0)?;
        state.counters = Counters { next_ino: ROOT_INO + 1, directories: 1, ..Counters::default() };
        state.begin()?;
        let result = state.format_tables();
        state.settle(result)?;
        Ok(state)
    }

    fn format_tables(&mut self) -> Result<()> {
        if !self.has_room_for_metadata() {
            return Err(self.pool.lock().full());
        }
        self.meta.create_tables()?;
        let node = NewNode { mode: 0o755, ..NewNode::default() };
        let root = Inode {
            parent: ROOT_INO,
            ..Inode::new(FileKind::Directory, node, Timestamp::default())
        };
        self.meta.put_inode(ROOT_INO, &root)?;
        self.progress.operations += 1;
        self.commit()
    }

    /// Opens the last committed state.
    pub(super) fn open(blocks: Box<dyn BlockSpace>, ahead: usize) -> Result<State> {
        let file = MetadataFile::of(&*blocks)?;
        let mut state = Self::with(blocks, file, ahead)?;
        // Earlier sessions may have removed metadata without giving its blocks back.
        state.cleaning.removals = u64::MAX / 2;
        state.begin()?;
        let result = state.load();
        state.settle(result)?;
        Ok(state)
    }

    fn load(&mut self) -> Result<()> {
        self.counters = self.meta.counters()?;
        {
            let table = self.meta.open(ALLOCATION)?;
            for page in table.iter()? {
                let (page, bytes) = page?;
                let (page, bytes) = (page.value(), bytes.value());
                let mut pool = self.pool.lock();
                let ids = pool.ids;
                pool.allocator.load_page(page, bytes, ids)?;
            }
        }
        {
            let mut pool = self.pool.lock();
            let highest = pool.allocator.high_water().checked_sub(1);
            drop(pool.allocator.committed());
            pool.reserve_for(highest)?;
        }
        self.pool.lock().holes = self.meta.holes()?;
        self.allow_what_is_there();
        self.discard_unused()?;
        self.remove_orphans()
    }

    /// Removes all inodes without names.
    pub(super) fn remove_orphans(&mut self) -> Result<()> {
        let orphans: Vec<Ino> = {
            let table = self.meta.open(ORPHANS)?;
            let inos = table.iter()?.map(|entry| Ok(entry?.0.value()));
            inos.collect::<Result<_>>()?
        };
        for ino in orphans {
            self.make_way()?;
            self.remove_inode(ino)?;
        }
        Ok(())
    }

    /// Discards blocks without owner, which a crash may leave.
    fn discard_unused(&self) -> Result<()> {
        let mut pool = self.pool.lock();
        let end = pool.allocator.high_water();
        for first in (0..end).step_by(1 << 16) {
            let ids = first..end.min(first + (1 << 16));
            let mut unused: Vec<u64> = ids.filter(|&id| !pool.allocator.is_used(id)).collect();
            let blocks = pool.blocks()?;
            unused.retain(|&id| blocks.exists(id));
            if !unused.is_empty() {
                pool.blocks()?.discard(&unused)?;
            }
        }
        Ok(())
    }

    fn with(blocks: Box<dyn BlockSpace>, file: MetadataFile, ahead: usize) -> Result<State> {
        let mut pool = Pool::new(blocks, file);
        let highest = pool.metadata.block_ids().max();
        pool.reserve_for(highest)?;
        if ahead > 0 {
            pool.metadata_warm(ahead)?;
        }
        Self::over(pool)
    }

    /// The file system in a pool, before its tables are read or made.
    pub(super) fn over(mut pool: Pool) -> Result<State> {
        let blocks = pool.blocks()?;
        let block_bytes = blocks.block_bytes();
        let budget = blocks.cache_budget();
        let owed = Owed::new(blocks.pads());
        let pool = SharedPool::new(pool);
        let meta = Meta::new(open_database(&pool, budget)?);
        Ok(State {
            pool,
            meta,
            counters: Counters::default(),
            cache: DataCache::new(budget / 8 / block_bytes),
            tails: Tails::new(budget / 8),
            packs: KnownPacks::default(),
            block_bytes,
            handles: Handles::default(),
            clock: None,
            progress: Progress::default(),
            cleaning: Cleaning { mergeable: true, ..Cleaning::default() },
            owed,
            latch: Latch::default(),
        })
    }

    /// Prepares for an operation: finishes an unfinished commit first, because until then the
    /// database must not reuse pages.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.latch.expect_open()?;
        if self.progress.pending {
            self.finish_commit()?;
        }
        let begun = self.meta.begin();
        self.settle(begun)
    }

    /// Checks how an operation ended. An error of the database makes the state useless; the block
    /// space gave the true reason. If that was want of space or lost metadata, and the next commit
    /// holds only this operation, it undoes the operation.
    pub(super) fn settle<T>(&mut self, result: Result<T>) -> Result<T> {
        if !matches!(result, Err(Error::Closed(_))) {
            return result;
        }
        let cause = self.pool.lock().failure.take();
        let alone = self.progress.accepted == 0;
        match cause {
            Some(Error::Full(_)) if alone && self.go_back().is_ok() => Err(self.pool.lock().full()),
            Some(Error::Lost(lost)) if alone && self.go_back().is_ok() => Err(lost.into()),
            cause => self.latch.closed_by(cause.map_or(result, Err)),
        }
    }

    /// Ends an operation. If metadata could run out of blocks, it commits at once: a failure then
    /// undoes this operation alone, and the next one can reuse pages. A failed store undoes
    /// nothing: the next operation, or a commit, meets the failure itself.
    pub(super) fn end<T>(&mut self, result: Result<T>) -> Result<T> {
        let tight = result.is_ok() && self.progress.operations > 0 && !self.has_room(0);
        let result = match if tight { self.commit() } else { Ok(()) } {
            Err(Error::Closed(why)) => Err(Error::Closed(why)),
            _ => result,
        };
        let result = self.settle(result);
        self.progress.accepted = self.progress.operations;
        result
    }

    /// Ends an operation that the block space may pad.
    pub(super) fn end_operation(&mut self) -> Result<()> {
        let mut pool = self.pool.lock();
        pool.bring_up()?;
        pool.blocks()?.end_operation()
    }

    /// Does idle maintenance, and lets the block space do its own. Gives the time to the next call.
    pub(super) fn idle(&mut self) -> Result<Option<Duration>> {
        if self.should_shrink()? {
            self.begin()?;
            let shrunk = self.shrink_metadata();
            self.settle(shrunk)?;
            self.end_operation()?;
        }
        if self.should_merge()? {
            self.merge_when_idle()?;
            self.end_operation()?;
            // A new request waits for the end of one round, no more.
            self.pool.lock().blocks()?.idle()?;
            return Ok(Some(Duration::ZERO));
        }
        let twins = self.tend_twins()?;
        let below = self.pool.lock().blocks()?.idle()?;
        Ok([twins, below].into_iter().flatten().min())
    }

    /// Whether the block space wants a commit.
    pub(super) fn wants_commit(&self) -> bool {
        self.pool.lock().blocks().is_ok_and(|blocks| blocks.wants_commit())
    }

    pub(super) fn set_clock(&mut self, clock: Clock) {
        self.clock = Some(clock);
    }

    pub(super) fn now(&self) -> Option<Timestamp> {
        self.clock.as_ref().map(|clock| clock())
    }

    /// Makes everything durable.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.place_all_tails()?;
        if self.progress.operations == 0 {
            let mut pool = self.pool.lock();
            pool.bring_up()?;
            return pool.blocks()?.commit();
        }
        self.expect_commit();
        self.save_allocation()?;
        self.meta.put_counters(&self.counters)?;
        self.pool.lock().metadata.hold = true;
        self.meta.commit()?;
        self.progress.pending = true;
        self.finish_commit()?;
        self.meta.begin()
    }

    fn save_allocation(&mut self) -> Result<()> {
        let pages = {
            let pool = self.pool.lock();
            pool.allocator.dirty_pages(pool.metadata.block_ids())
        };
        let mut table = self.meta.open(ALLOCATION)?;
        for (page, bytes) in pages {
            table.insert(page, bytes.as_slice())?;
        }
        Ok(())
    }

    fn finish_commit(&mut self) -> Result<()> {
        let mut pool = self.pool.lock();
        pool.metadata_commit()?;
        let unwanted = pool.allocator.committed();
        self.progress.pending = false;
        let operations = std::mem::take(&mut self.progress.operations);
        self.progress.accepted = 0;
        // Not before: until now a crash could restore the metadata that names them.
        if !unwanted.is_empty() {
            pool.blocks()?.discard(&unwanted)?;
        }
        drop(pool);
        self.expect_freed(operations);
        Ok(())
    }

    /// Declares another capacity, in blocks, after a commit of everything accepted.
    pub(super) fn set_capacity(&mut self, blocks: u64) -> Result<()> {
        self.commit()?;
        let least = self.least_capacity();
        if blocks < least {
            return Err(Error::Invalid(format!(
                "the volume needs {least} blocks for what it holds"
            )));
        }
        self.pool.lock().set_capacity(blocks)?;
        self.allow_what_is_there();
        Ok(())
    }

    /// Closes a handle.
    pub(super) fn close(&mut self, handle: Handle) -> Result<()> {
        match self.handles.close(handle)? {
            Some(ino) => self.forget(ino),
            None => Ok(()),
        }
    }

    /// Notes that one reference to an inode is gone; without names and other references, it goes.
    pub(super) fn forget(&mut self, ino: Ino) -> Result<()> {
        let nameless = self.meta.find_inode(ino)?.is_some_and(|inode| inode.nlink == 0);
        if nameless && !self.handles.is_wanted(ino) {
            self.make_way()?;
            self.remove_inode(ino)?;
        }
        Ok(())
    }
}

impl Drop for State {
    /// A dropped database would commit what is left. Without blocks it cannot, so a dropped file
    /// system stays as its last commit left it.
    fn drop(&mut self) {
        self.pool.lock().take_blocks();
        self.meta.close();
    }
}
