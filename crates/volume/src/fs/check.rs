//! The check of a whole file system: walks all tables and compares them with each other.

use super::inode::{Inode, decode_inode};
use super::ops::read_op;
use super::packing::roomy_key;
use super::segments::Extent;
use super::state::State;
use super::tables::{
    DIRENTS, Dirent, INODES, ORPHANS, PACKS, Pack, ROOMY, SEGMENTS, XATTRS, decode,
};
use super::types::{CheckReport, FileKind, Ino, ROOT_INO};
use crate::{Error, LostBytes, Result};
use redb::ReadableTable;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Blocks read with one access.
const BATCH: usize = 64;

/// What was found so far.
#[derive(Default)]
pub(super) struct Findings {
    pub inodes: BTreeMap<Ino, Inode>,
    /// Names per inode.
    names: HashMap<Ino, u32>,
    /// Subdirectories per directory.
    subdirectories: HashMap<Ino, u32>,
    /// Blocks per file, and the segment behind its last mapped one.
    mapped: HashMap<Ino, (u64, u64)>,
    /// Extended attributes per inode.
    xattrs: HashMap<Ino, u32>,
    /// Pieces per file, as `(pack, length)`.
    pieces: HashMap<Ino, Vec<(u64, u64)>>,
    data_blocks: BTreeSet<u64>,
    /// Those among them without content yet.
    unwritten: HashSet<u64>,
    problems: Vec<String>,
    /// Whether some of the metadata is lost: what the tables say is not all then.
    pub metadata_lost: bool,
    /// Blocks of data that are lost.
    pub lost_blocks: BTreeSet<u64>,
}

impl Findings {
    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    fn block(&mut self, id: u64, owner: &str) {
        if !self.data_blocks.insert(id) {
            self.problem(format!("{owner}: block {id} is used twice"));
        }
    }
}

impl State {
    pub(super) fn check(
        &mut self,
        read_data: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<CheckReport> {
        Ok(self.examine(read_data, progress)?.1)
    }

    /// What was found, and the report of it.
    pub(super) fn examine(
        &mut self,
        read_data: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Findings, CheckReport)> {
        // A check of what is stored changes nothing; what waits is stored first.
        if self.tails.len() > 0 || self.owed.pads {
            self.make_way()?;
            self.flush_all_tails()?;
        }
        let mut found = Findings::default();
        for look in [
            Self::check_inodes,
            Self::check_names,
            Self::check_segments,
            Self::check_xattrs,
            Self::check_packs,
            Self::check_links,
        ] {
            let looked = look(self, &mut found);
            self.noted(looked, &mut found)?;
        }
        if found.metadata_lost {
            // They compare the tables, and miss what stood in the lost ones.
            found.problems.clear();
        } else {
            check_paths(&mut found);
            self.check_data(&mut found);
            self.check_allocation(&mut found);
        }
        let (mut lost, mut holes) = (Vec::new(), Vec::new());
        if read_data {
            let blocks = self.check_content(&mut found, progress)?;
            let known = self.known_holes(&blocks)?;
            holes = self.name_lost(&known, &mut found)?;
            lost = self.name_lost(&(&blocks - &known), &mut found)?;
            found.lost_blocks = blocks;
        } else {
            progress(1, 1);
        }
        if found.metadata_lost {
            lost.insert(0, LostBytes::metadata());
        }
        let directories = found.inodes.values().filter(|inode| is_directory(inode));
        let directories = directories.count() as u64;
        let report = CheckReport {
            files: found.inodes.len() as u64 - directories,
            directories,
            blocks: self.pool.lock().allocator.used(),
            problems: std::mem::take(&mut found.problems),
            lost,
            holes,
        };
        Ok((found, report))
    }

    fn check_inodes(&self, found: &mut Findings) -> Result<()> {
        for entry in self.meta.open(INODES)?.iter()? {
            let (ino, record) = entry?;
            let ino = ino.value();
            match decode_inode(record.value()) {
                Ok(inode) => {
                    found.inodes.insert(ino, inode);
                }
                Err(error) => found.problem(format!("inode {ino}: {error}")),
            }
            if ino >= self.counters.next_ino {
                found.problem(format!("inode {ino} was never given out"));
            }
        }
        if !found.inodes.get(&ROOT_INO).is_some_and(is_directory) {
            found.problem("there is no root directory".into());
        }
        Ok(())
    }

    fn check_names(&self, found: &mut Findings) -> Result<()> {
        for entry in self.meta.open(DIRENTS)?.iter()? {
            let (key, record) = entry?;
            let (parent, name) = key.value();
            let what = format!("{:?} in {parent}", String::from_utf8_lossy(name));
            let dirent: Dirent = match decode(record.value()) {
                Ok(dirent) => dirent,
                Err(error) => {
                    found.problem(format!("{what}: {error}"));
                    continue;
                }
            };
            *found.names.entry(dirent.ino).or_default() += 1;
            if !found.inodes.get(&parent).is_some_and(is_directory) {
                found.problem(format!("{what}: {parent} is no directory"));
            }
            let Some(inode) = found.inodes.get(&dirent.ino) else {
                found.problem(format!("{what}: inode {} is missing", dirent.ino));
                continue;
            };
            let right_parent = !is_directory(inode) || inode.parent == parent;
            if inode.kind != dirent.kind || !right_parent {
                found.problem(format!("{what}: does not match inode {}", dirent.ino));
            }
            if dirent.kind == FileKind::Directory {
                *found.subdirectories.entry(parent).or_default() += 1;
            }
        }
        Ok(())
    }

    fn check_segments(&self, found: &mut Findings) -> Result<()> {
        for entry in self.meta.open(SEGMENTS)?.iter()? {
            let (key, value) = entry?;
            let (ino, segment) = key.value();
            let run = Extent::load(segment, value.value());
            let size = found.inodes.get(&ino).map_or(0, |inode| inode.size);
            if !run.unwritten && run.end() > size.div_ceil(self.block_bytes as u64) {
                found.problem(format!("inode {ino}: {run:?} lies behind its end"));
            }
            let (blocks, end) = found.mapped.entry(ino).or_default();
            *blocks += run.count;
            *end = run.end();
            for id in run.blocks() {
                found.block(id, &format!("inode {ino}"));
            }
            if run.unwritten {
                found.unwritten.extend(run.blocks());
            }
        }
        let unwritten = found.unwritten.len() as u64;
        if unwritten != self.counters.unwritten {
            found.problem(format!("{unwritten} unwritten blocks, against {:?}", self.counters));
        }
        Ok(())
    }

    fn check_xattrs(&self, found: &mut Findings) -> Result<()> {
        for entry in self.meta.open(XATTRS)?.iter()? {
            let (key, record) = entry?;
            let (ino, name) = key.value();
            *found.xattrs.entry(ino).or_default() += 1;
            if let Err(error) = decode::<Vec<u8>>(record.value()) {
                let name = String::from_utf8_lossy(name);
                found.problem(format!("attribute {name:?} of inode {ino}: {error}"));
            }
        }
        Ok(())
    }

    fn check_packs(&self, found: &mut Findings) -> Result<()> {
        let mut roomy = HashSet::new();
        for entry in self.meta.open(PACKS)?.iter()? {
            let (id, record) = entry?;
            let id = id.value();
            let pack: Pack = match decode(record.value()) {
                Ok(pack) => pack,
                Err(error) => {
                    found.problem(format!("pack {id}: {error}"));
                    continue;
                }
            };
            found.block(pack.block, &format!("pack {id}"));
            let mut end = 0;
            for piece in &pack.pieces {
                if u64::from(piece.offset) < end {
                    found.problem(format!("pack {id}: pieces overlap"));
                }
                end = u64::from(piece.offset) + u64::from(piece.len);
                let pieces = found.pieces.entry(piece.ino).or_default();
                pieces.push((id, u64::from(piece.len)));
            }
            if end > self.block_bytes as u64 || pack.pieces.is_empty() {
                found.problem(format!("pack {id}: empty, or larger than its block"));
            }
            roomy.extend(roomy_key(&pack, self.block_bytes).map(|free| (free, id)));
        }
        let table = self.meta.open(ROOMY)?;
        let keys = table.iter()?.map(|entry| Ok(entry?.0.value()));
        if keys.collect::<Result<HashSet<_>>>()? != roomy {
            found.problem("the table of roomy packs is wrong".into());
        }
        Ok(())
    }

    fn check_links(&self, found: &mut Findings) -> Result<()> {
        let table = self.meta.open(ORPHANS)?;
        let inos = table.iter()?.map(|entry| Ok(entry?.0.value()));
        let orphans = inos.collect::<Result<HashSet<Ino>>>()?;
        let mut problems = Vec::new();
        for (&ino, inode) in &found.inodes {
            let names = found.names.get(&ino).copied().unwrap_or(0);
            let below = found.subdirectories.get(&ino).copied().unwrap_or(0);
            let removed = is_directory(inode) && orphans.contains(&ino);
            let wanted = match is_directory(inode) {
                true if removed => 0,
                true => 2 + below,
                false => names,
            };
            if inode.nlink != wanted {
                problems.push(format!("inode {ino}: {} links, not {wanted}", inode.nlink));
            }
            if is_directory(inode) && names != u32::from(ino != ROOT_INO && !removed) {
                problems.push(format!("directory {ino} has {names} names"));
            }
            if orphans.contains(&ino) != (inode.nlink == 0) {
                problems.push(format!("inode {ino} is lost"));
            }
        }
        found.problems.extend(problems);
        Ok(())
    }

    /// Sizes, tails and counters against the inodes.
    fn check_data(&self, found: &mut Findings) {
        let mut problems = Vec::new();
        let mut bytes = 0;
        for (&ino, inode) in &found.inodes {
            if inode.kind == FileKind::File {
                bytes += inode.size;
            }
            let (mapped, end) = found.mapped.remove(&ino).unwrap_or_default();
            if mapped != inode.blocks {
                problems.push(format!("inode {ino}: {mapped} blocks, not {}", inode.blocks));
            }
            if inode.pack.is_some() && end > inode.size / self.block_bytes as u64 {
                problems.push(format!("inode {ino}: blocks behind a tail that shares one"));
            }
            if found.xattrs.remove(&ino).unwrap_or(0) != inode.xattrs {
                problems.push(format!("inode {ino}: not {} attributes", inode.xattrs));
            }
            let tail = inode.size % self.block_bytes as u64;
            let wanted: Vec<_> = inode.pack.map(|pack| (pack, tail)).into_iter().collect();
            if found.pieces.remove(&ino).unwrap_or_default() != wanted {
                problems.push(format!("inode {ino}: its tail is not where it should be"));
            }
        }
        let lost = found.mapped.keys().chain(found.pieces.keys()).chain(found.xattrs.keys());
        problems.extend(lost.map(|ino| format!("data of inode {ino}, which is missing")));
        let directories = found.inodes.values().filter(|inode| is_directory(inode));
        let directories = directories.count() as u64;
        let files = found.inodes.len() as u64 - directories;
        let counters = &self.counters;
        if (counters.files, counters.directories) != (files, directories)
            || counters.logical_bytes != bytes
        {
            problems.push(format!("the counters are wrong: {counters:?}"));
        }
        found.problems.extend(problems);
    }

    /// Every used block belongs to something, and the other way round.
    fn check_allocation(&self, found: &mut Findings) {
        let pool = self.pool.lock();
        let mut owned = found.data_blocks.clone();
        for id in pool.metadata.block_ids() {
            if !owned.insert(id) {
                found.problem(format!("metadata block {id} is used twice"));
            }
        }
        let free: Vec<u64> =
            owned.iter().copied().filter(|&id| !pool.allocator.is_used(id)).collect();
        for id in free {
            found.problem(format!("block {id} is in use but counted as free"));
        }
        let used = pool.allocator.used();
        if used != owned.len() as u64 {
            found.problem(format!("{used} blocks counted as used, not {}", owned.len()));
        }
    }

    /// Reads every block of file data and metadata; gives those that are lost.
    fn check_content(
        &mut self,
        found: &mut Findings,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<BTreeSet<u64>> {
        let dirty = self.cache.dirty();
        self.write_cached(&dirty)?;
        let written = found.data_blocks.iter().filter(|id| !found.unwritten.contains(id));
        let mut ids: Vec<u64> = written.copied().collect();
        let data = ids.len();
        ids.extend(self.pool.lock().metadata_ids()?);
        let total = ids.len() as u64;
        let (mut done, mut lost) = (0_usize, BTreeSet::new());
        progress(done as u64, total);
        for batch in ids.chunks(BATCH) {
            let ops = batch.iter().map(|&id| read_op(id)).collect();
            let outcomes = self.pool.lock().access_each(ops);
            let outcomes = match outcomes {
                Err(Error::Tampered(why)) => {
                    found.problem(format!("blocks {batch:?}: {why}"));
                    done += batch.len();
                    continue;
                }
                outcomes => outcomes?,
            };
            for (&id, outcome) in batch.iter().zip(outcomes) {
                match outcome {
                    Ok(Some(_)) => {}
                    Ok(None) if done >= data => {}
                    Ok(None) => found.problem(format!("data block {id} is missing")),
                    Err(_) if done >= data => found.metadata_lost = true,
                    Err(_) => drop(lost.insert(id)),
                }
                done += 1;
            }
            progress(done as u64, total);
        }
        Ok(lost)
    }
}

pub(super) fn is_directory(inode: &Inode) -> bool {
    inode.kind == FileKind::Directory
}

/// Every directory must lead up to the root.
fn check_paths(found: &mut Findings) {
    let mut good: HashSet<Ino> = HashSet::from([ROOT_INO]);
    let mut problems = Vec::new();
    // A directory removed while open leads nowhere any more.
    let named = |inode: &Inode| is_directory(inode) && inode.nlink > 0;
    for (&ino, _) in found.inodes.iter().filter(|(_, inode)| named(inode)) {
        let mut path = Vec::new();
        let mut at = ino;
        while !good.contains(&at) && !path.contains(&at) {
            path.push(at);
            match found.inodes.get(&at) {
                Some(inode) => at = inode.parent,
                None => break,
            }
        }
        match good.contains(&at) {
            true => good.extend(path),
            false => problems.push(format!("directory {ino} does not lead up to the root")),
        }
    }
    found.problems.extend(problems);
}
