//! The byte file that holds the metadata database, made of oblivious blocks.
//!
//! Chunk `n` of the file is one block. A map ([`ChunkMap`]) in the block space's root says which.
//! The first write to a chunk takes its block, so the generous lengths that the database asks for
//! cost nothing.
//!
//! # Order, and why a crash is harmless
//!
//! The block space may commit on its own at any access. The database never overwrites a page that
//! its last durable state needs, and its header, in chunk 0, names that state. So chunk 0 is never
//! evicted, and a commit writes all other chunks, then the root (which only ever maps more), then
//! chunk 0. A crash anywhere in between leaves a whole state. For the same reason nothing is
//! evicted while the database commits: it may already reuse pages of the previous state, before the
//! header that retires them is stored.

use super::chunk_map::{ChunkMap, MOST_RUNS, MapForm, ROOT_HEADER};
use super::ops::{patches_op, write_op};
use super::twins::Twins;
use crate::ranges::Ranges;
use crate::{BlockSpace, Error, Result};
use oblivio_engine::BlockOp;
use std::collections::{BTreeMap, HashMap};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 8] = *b"OblivFS\0";
const VERSION: u16 = 1;
/// With gaps in the map; older builds would take them for damage.
const VERSION_WITH_GAPS: u16 = 2;
/// With twins, and gaps.
const VERSION_WITH_TWINS: u16 = 3;

/// In the flags: damage was met since all metadata was last written anew.
const SUSPECT: u8 = 1;

/// The database extends its file in steps of up to 4 GiB before it writes. A length further beyond
/// the volume's capacity is not its own.
const LENGTH_AHEAD: u64 = 8 << 30;

/// Where the database's header has its flags, and the one that says that the database is in use, or
/// was when its process ended.
const FLAGS_AT: usize = 9;
const IN_USE: u8 = 2;

/// The root before its list of runs, as stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RootHeader {
    magic: [u8; 8],
    version: U16,
    runs: u8,
    flags: u8,
    block_bytes: U32,
    len: U64,
    /// The groups of chunks whose twins may be stale.
    stale: U64,
}

const _: () = assert!(size_of::<RootHeader>() == ROOT_HEADER && MOST_RUNS <= u8::MAX as usize);

/// A block of the file in memory.
pub(super) struct Chunk {
    pub(super) data: Vec<u8>,
    /// The known parts of `data`: all of it, unless pages were written without a read before.
    pub(super) valid: Ranges,
    pub(super) dirty: bool,
    pub(super) stamp: u64,
}

/// The file: where its blocks are, and a write-back cache of them.
pub(super) struct MetadataFile {
    block_bytes: usize,
    pub(super) map: ChunkMap,
    pub(super) twins: Twins,
    /// Whether new chunks take twins. Those of a volume without any wait for its clean end.
    pub(super) pairs: bool,
    pub(super) len: u64,
    /// The length in the root; it never shrinks before the shorter header is durable.
    pub(super) root_len: u64,
    pub(super) cache: HashMap<u64, Chunk>,
    pub(super) recent: BTreeMap<u64, u64>,
    clock: u64,
    pub(super) budget: usize,
    /// Forbids eviction.
    pub(super) hold: bool,
    /// The database commits on its own: what it calls durable must be.
    pub(super) in_steps: bool,
    /// Whether the root of the space is this file's: not of a new one before its first commit.
    pub(super) named: bool,
    /// Whether this session wrote more than the mark that the database is in use. If not, what is
    /// stored is as good as before, and nothing needs to be closed.
    pub(super) changed: bool,
}

impl MetadataFile {
    /// An empty file with a cache of `budget` bytes.
    pub(super) fn new(block_bytes: usize, budget: usize) -> Self {
        MetadataFile {
            block_bytes,
            map: ChunkMap::default(),
            twins: Twins::default(),
            pairs: true,
            len: 0,
            root_len: 0,
            cache: HashMap::new(),
            recent: BTreeMap::new(),
            clock: 0,
            budget: (budget / block_bytes).max(8),
            hold: false,
            in_steps: false,
            named: false,
            changed: false,
        }
    }

    /// The one that the root of this space names.
    ///
    /// # Errors
    /// `Unsupported` if that names none, or one of a newer format; `HoldsDisk`; `Tampered`.
    pub(super) fn of(blocks: &dyn BlockSpace) -> Result<Self> {
        let (bytes, ids) = (blocks.block_bytes(), blocks.addressable_blocks());
        Self::from_root(blocks.root(), bytes, ids, blocks.cache_budget() / 4)
    }

    /// The file that a root describes.
    fn from_root(root: &[u8], block_bytes: usize, capacity: u64, budget: usize) -> Result<Self> {
        let mut file = MetadataFile::new(block_bytes, budget);
        if crate::disk::size_in(root)?.is_some() {
            return Err(Error::HoldsDisk);
        }
        let (header, list) = RootHeader::ref_from_prefix(root)
            .ok()
            .filter(|(header, _)| header.magic == MAGIC)
            .ok_or_else(|| {
                Error::Unsupported(
                    "the volume holds no file system: a program's blocks, or nothing, if its \
                     `init` was cut off"
                        .to_owned(),
                )
            })?;
        let version = header.version.get();
        if !(VERSION..=VERSION_WITH_TWINS).contains(&version) {
            return Err(Error::Unsupported(format!(
                "the file system has format {version}, this program knows {VERSION_WITH_TWINS}; \
                 use a newer one"
            )));
        }
        file.len = header.len.get();
        let most = capacity.saturating_mul(block_bytes as u64).saturating_add(LENGTH_AHEAD);
        if header.block_bytes.get() as usize != block_bytes || file.len > most {
            return Err(damaged_root());
        }
        (file.root_len, file.named) = (file.len, true);
        file.pairs = version == VERSION_WITH_TWINS;
        let form = MapForm { gaps: version >= VERSION_WITH_GAPS, twins: file.pairs };
        let map = ChunkMap::load(list, capacity, file.length_blocks(), form);
        let runs = usize::from(header.runs);
        file.map = map.filter(|map| map.runs() == runs).ok_or_else(damaged_root)?;
        let suspect = header.flags & SUSPECT != 0;
        file.twins = Twins::load(header.stale.get(), suspect, &file.map);
        Ok(file)
    }

    pub(super) fn root(&self, len: u64) -> Vec<u8> {
        let version = match (self.map.has_twins(), self.map.has_gaps()) {
            (true, _) => VERSION_WITH_TWINS,
            (false, true) => VERSION_WITH_GAPS,
            (false, false) => VERSION,
        };
        let mut header = RootHeader {
            magic: MAGIC,
            version: U16::new(version),
            runs: self.map.runs() as u8,
            flags: 0,
            block_bytes: U32::new(self.block_bytes as u32),
            len: U64::new(len),
            stale: U64::new(0),
        };
        self.mark(&mut header);
        [header.as_bytes(), &self.map.list()].concat()
    }

    /// The same root, with what is known of the twins now, if that is news.
    pub(super) fn marked(&self, root: &[u8]) -> Option<Vec<u8>> {
        self.named.then_some(())?;
        let mut marked = root.to_vec();
        let (header, _) = RootHeader::mut_from_prefix(&mut marked).ok()?;
        self.mark(header);
        (marked != root).then_some(marked)
    }

    fn mark(&self, header: &mut RootHeader) {
        if header.version.get() == VERSION_WITH_TWINS {
            header.flags = if self.twins.is_suspect() { SUSPECT } else { 0 };
            header.stale = U64::new(self.twins.groups());
        }
    }

    /// The twin of a chunk whose own block this is, if it may be read.
    pub(super) fn readable_twin(&self, block: u64) -> Option<u64> {
        let chunk = self.map.chunk_of(block)?;
        let readable = !self.twins.is_stale(chunk) && !self.map.is_blank(chunk);
        self.map.blocks_of(chunk)?.twin.filter(|_| readable)
    }

    /// Whether a block is one of the file's.
    pub(super) fn owns(&self, block: u64) -> bool {
        self.map.has_block(block)
    }

    /// All blocks of the file.
    pub(super) fn block_ids(&self) -> impl Iterator<Item = u64> + use<> {
        self.map.block_ids()
    }

    /// The number of blocks that the file takes.
    pub(super) fn mapped_blocks(&self) -> u64 {
        self.map.mapped_blocks()
    }

    /// The number of blocks up to the file's length.
    pub(super) fn length_blocks(&self) -> u64 {
        self.len.div_ceil(self.block_bytes as u64)
    }

    pub(super) fn touch(&mut self, chunk: u64) {
        self.clock += 1;
        if let Some(entry) = self.cache.get_mut(&chunk) {
            self.recent.remove(&entry.stamp);
            entry.stamp = self.clock;
            self.recent.insert(self.clock, chunk);
        }
    }

    pub(super) fn insert(&mut self, chunk: u64, data: Vec<u8>, valid: Ranges, dirty: bool) {
        let entry = Chunk { data, valid, dirty, stamp: 0 };
        self.cache.insert(chunk, entry);
        self.touch(chunk);
    }

    /// Whether a write leaves everything as it is but the mark that the database is in use.
    pub(super) fn only_marks(&self, offset: u64, data: &[u8]) -> bool {
        let Some(header) = self.cache.get(&0).filter(|_| offset == 0) else { return false };
        header.valid.covers(0, data.len())
            && data.iter().zip(&header.data).enumerate().all(|(at, (new, old))| match at {
                FLAGS_AT => new | IN_USE == old | IN_USE,
                _ => new == old,
            })
    }

    /// Forgets all chunks from `end` on; gives their blocks.
    pub(super) fn cut(&mut self, end: u64) -> Vec<u64> {
        for (_, entry) in self.cache.extract_if(|&chunk, _| chunk >= end) {
            self.recent.remove(&entry.stamp);
        }
        self.twins.cut(end);
        self.map.cut(end)
    }

    /// The part of the file range `offset..offset + len` in each chunk, as
    /// `(chunk, offset in it, bytes)`.
    pub(super) fn parts(&self, offset: u64, len: usize) -> Vec<(u64, usize, usize)> {
        let block = self.block_bytes as u64;
        let (mut at, end) = (offset, offset + len as u64);
        let mut parts = Vec::new();
        while at < end {
            let take = (block - at % block).min(end - at);
            parts.push((at / block, (at % block) as usize, take as usize));
            at += take;
        }
        parts
    }

    /// Whether all of a chunk is known.
    pub(super) fn is_whole(&self, entry: &Chunk) -> bool {
        entry.valid.covers(0, self.block_bytes)
    }

    /// One operation for each chunk: a count of known parts would reveal something of its content.
    pub(super) fn store_op(&self, chunk: u64) -> Option<BlockOp> {
        let (entry, id) = (self.cache.get(&chunk)?, self.map.block_of(chunk)?);
        if self.is_whole(entry) {
            return Some(write_op(id, entry.data.clone()));
        }
        let part = |(start, end): (usize, usize)| (start, entry.data[start..end].to_vec());
        Some(patches_op(id, entry.valid.iter().map(part).collect()))
    }
}

/// Whether a root is a file system's, of any version.
pub(crate) fn is_root(root: &[u8]) -> bool {
    root.starts_with(&MAGIC)
}

fn damaged_root() -> Error {
    Error::Tampered("the file system's root makes no sense".into())
}
