//! Salvage of metadata of which no copy is left.
//!
//! `pages` reads the database's pages around lost ones, `trees` and `strays` find all that are
//! left, `records` says what is in them. `mend` makes whole tables of that, and `rebuild` stores
//! those beside the old ones.
//!
//! The store sees that all metadata is read, block by block, and that about as much is written.

mod kinds;
mod mend;
mod pages;
mod places;
mod rebuild;
mod records;
mod report;
mod strays;
mod trees;

pub use report::{FoundFile, Salvaged};

use super::metadata_file::MetadataFile;
use super::ops::read_op;
use super::pool::Pool;
use super::types::Timestamp;
use crate::damage::LostBytes;
use crate::{BlockSpace, Error, Result};
use kinds::{KINDS, Limits};
use mend::Mended;
use pages::Image;
use places::Spare;
use records::Records;
use std::collections::{HashMap, HashSet};
use trees::{Tables, Tree, Walk};

/// Blocks read with one access.
const BATCH: usize = 64;
/// Blocks that new metadata may take beyond twice those of the old.
const MARGIN: u64 = 256;

/// A look at all metadata of a volume of files.
pub struct Salvage {
    pool: Pool,
    image: Image,
    lost: u64,
}

impl std::fmt::Debug for Salvage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Salvage").field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl Salvage {
    /// Reads all metadata.
    ///
    /// # Errors
    /// Those of [`FileSystem::open`](super::FileSystem::open), but for lost metadata.
    pub fn of(blocks: Box<dyn BlockSpace>) -> Result<Self> {
        let file = MetadataFile::of(&*blocks)?;
        let mut pool = Pool::new(blocks, file);
        pool.reserve_for(pool.metadata.block_ids().max())?;
        let mut image = Image { block_bytes: pool.block_bytes, chunks: HashMap::new() };
        let mut chunks: Vec<(u64, u64)> =
            pool.metadata.map.chunks().map(|(chunk, at)| (chunk, at.own)).collect();
        let blocks = pool.blocks()?;
        chunks.retain(|&(_, own)| blocks.exists(own));
        for batch in chunks.chunks(BATCH) {
            let read = pool.access_each(batch.iter().map(|&(_, own)| read_op(own)).collect())?;
            for (&(chunk, _), outcome) in batch.iter().zip(read) {
                match outcome {
                    Ok(None) => None,
                    Ok(Some(content)) => image.chunks.insert(chunk, Some(content)),
                    Err(_) => image.chunks.insert(chunk, None),
                };
            }
        }
        let lost = image.chunks.values().filter(|content| content.is_none()).count() as u64;
        Ok(Self { pool, image, lost })
    }

    /// Whether no copy is left of some of it.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        self.lost > 0
    }

    /// The volume, as it was.
    ///
    /// # Errors
    /// `Closed` after a failure.
    pub fn into_blocks(mut self) -> Result<Box<dyn BlockSpace>> {
        self.pool.take_blocks().ok_or_else(|| Error::Closed("the volume was closed".into()))
    }

    /// What becomes of it. `/lost+found` gets this time, if something lost its name.
    ///
    /// # Errors
    /// `Lost` if nothing says any more where files begin; those of the space.
    pub fn plan(&mut self, now: Timestamp) -> Result<SalvagePlan> {
        let limits = Limits { block_bytes: self.pool.block_bytes, ids: self.pool.ids };
        let tables = read_tables(&self.image, limits).ok_or_else(LostBytes::metadata)?;
        let records = Records::load(tables)?;
        let all_holes = records.all_holes;
        let metadata = places::ranges(self.pool.metadata.block_ids());
        let (pool, mut spare) = (&mut self.pool, Spare::default());
        let mut mended = mend::mend(records, limits, now, &mut |records, wanted| {
            let owned = places::owned(records, &metadata, limits.ids)?;
            let taken = [owned, metadata.clone()].concat();
            // The new metadata is stored beside the old.
            let kept = places::length(&taken) + 2 * places::length(&metadata) + MARGIN;
            let most = limits.ids.saturating_sub(kept);
            spare = Spare::find(pool, &taken, wanted.min(most))?;
            Ok(spare.count().min(most))
        })?;
        if !all_holes {
            places::find_holes(pool, &mut mended.records)?;
        }
        mended.report.blocks = self.lost;
        Ok(SalvagePlan { mended, spare })
    }

    /// Stores anew what is left of the metadata, and ends the session.
    ///
    /// # Errors
    /// `Full` if there is no room for a second copy of the metadata, which the first one stays
    /// beside until the end; those of the space.
    pub fn carry_out(self, plan: SalvagePlan) -> Result<Box<dyn BlockSpace>> {
        rebuild::rebuild(self.pool, plan.mended, plan.spare)
    }
}

/// What a salvage stores, of the volume that it was made for.
pub struct SalvagePlan {
    mended: Mended,
    spare: Spare,
}

impl SalvagePlan {
    /// What is lost then.
    #[must_use]
    pub fn report(&self) -> &Salvaged {
        &self.mended.report
    }
}

impl std::fmt::Debug for SalvagePlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SalvagePlan").field("report", self.report()).finish_non_exhaustive()
    }
}

/// Reads all tables; `None` where not even the header is there.
fn read_tables(image: &Image, limits: Limits) -> Option<Tables> {
    let header = image.header()?;
    let mut walk = Walk { image, geometry: header.geometry, reached: HashSet::new() };
    let (named, whole) = walk.tables(header.tables);
    let mut tables = Tables::new();
    for kind in KINDS {
        let tree = match named.get(kind.name()) {
            Some(table) if table.widths == kind.widths() => {
                walk.tree(table.root, kind.widths(), &|key| kind.key(key))
            }
            None if whole => Tree::default(),
            _ => Tree::lost(),
        };
        tables.insert(kind, tree);
    }
    if tables.values().any(|tree| !tree.is_whole()) {
        strays::add(&mut walk, &header, &mut tables, limits);
    }
    Some(tables)
}
