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
            Findings::check_inodes,
            Findings::check_names,
            Findings::check_segments,
            Findings::check_xattrs,
            Findings::check_packs,
            Findings::check_links,
        ] {
            let looked = look(&mut found, self);
            self.noted(looked, &mut found)?;
        }
        if found.metadata_lost {
            // They compare the tables, and miss what stood in the lost ones.
            found.problems.clear();
        } else {
            check_paths(&mut found);
            found.check_data(self);
            found.check_allocation(self);
        }
        let (mut lost, mut holes) = (Vec::new(), Vec::new());
        if read_data {
            let blocks = found.check_content(self, progress)?;
            let known: BTreeSet<u64> = blocks.intersection(&self.meta.holes()?).copied().collect();
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
}

impl Findings {
    fn check_inodes(&mut self, state: &State) -> Result<()> {
        for entry in state.meta.open(INODES)?.iter()? {
            let (ino, record) = entry?;
            let ino = ino.value();
            match decode_inode(record.value()) {
                Ok(inode) => {
                    self.inodes.insert(ino, inode);
                }
                Err(error) => self.problem(format!("inode {ino}: {error}")),
            }
            if ino >= state.counters.next_ino {
                self.problem(format!("inode {ino} was never given out"));
            }
        }
        if !self.inodes.get(&ROOT_INO).is_some_and(is_directory) {
            self.problem("there is no root directory".into());
        }
        Ok(())
    }

    fn check_names(&mut self, state: &State) -> Result<()> {
        for entry in state.meta.open(DIRENTS)?.iter()? {
            let (key, record) = entry?;
            let (parent, name) = key.value();
            let what = format!("{:?} in {parent}", String::from_utf8_lossy(name));
            let dirent: Dirent = match decode(record.value()) {
                Ok(dirent) => dirent,
                Err(error) => {
                    self.problem(format!("{what}: {error}"));
                    continue;
                }
            };
            *self.names.entry(dirent.ino).or_default() += 1;
            if !self.inodes.get(&parent).is_some_and(is_directory) {
                self.problem(format!("{what}: {parent} is no directory"));
            }
            let Some(inode) = self.inodes.get(&dirent.ino) else {
                self.problem(format!("{what}: inode {} is missing", dirent.ino));
                continue;
            };
            let right_parent = !is_directory(inode) || inode.parent == parent;
            if inode.kind != dirent.kind || !right_parent {
                self.problem(format!("{what}: does not match inode {}", dirent.ino));
            }
            if dirent.kind == FileKind::Directory {
                *self.subdirectories.entry(parent).or_default() += 1;
            }
        }
        Ok(())
    }

    fn check_segments(&mut self, state: &State) -> Result<()> {
        for entry in state.meta.open(SEGMENTS)?.iter()? {
            let (key, value) = entry?;
            let (ino, segment) = key.value();
            let run = Extent::load(segment, value.value());
            let size = self.inodes.get(&ino).map_or(0, |inode| inode.size);
            if !run.unwritten && run.end() > size.div_ceil(state.block_bytes as u64) {
                self.problem(format!("inode {ino}: {run:?} lies behind its end"));
            }
            let (blocks, end) = self.mapped.entry(ino).or_default();
            *blocks += run.count;
            *end = run.end();
            for id in run.blocks() {
                self.block(id, &format!("inode {ino}"));
            }
            if run.unwritten {
                self.unwritten.extend(run.blocks());
            }
        }
        let unwritten = self.unwritten.len() as u64;
        if unwritten != state.counters.unwritten {
            self.problem(format!("{unwritten} unwritten blocks, against {:?}", state.counters));
        }
        Ok(())
    }

    fn check_xattrs(&mut self, state: &State) -> Result<()> {
        for entry in state.meta.open(XATTRS)?.iter()? {
            let (key, record) = entry?;
            let (ino, name) = key.value();
            *self.xattrs.entry(ino).or_default() += 1;
            if let Err(error) = decode::<Vec<u8>>(record.value()) {
                let name = String::from_utf8_lossy(name);
                self.problem(format!("attribute {name:?} of inode {ino}: {error}"));
            }
        }
        Ok(())
    }

    fn check_packs(&mut self, state: &State) -> Result<()> {
        let mut roomy = HashSet::new();
        for entry in state.meta.open(PACKS)?.iter()? {
            let (id, record) = entry?;
            let id = id.value();
            let pack: Pack = match decode(record.value()) {
                Ok(pack) => pack,
                Err(error) => {
                    self.problem(format!("pack {id}: {error}"));
                    continue;
                }
            };
            self.block(pack.block, &format!("pack {id}"));
            let mut end = 0;
            for piece in &pack.pieces {
                if u64::from(piece.offset) < end {
                    self.problem(format!("pack {id}: pieces overlap"));
                }
                end = u64::from(piece.offset) + u64::from(piece.len);
                let pieces = self.pieces.entry(piece.ino).or_default();
                pieces.push((id, u64::from(piece.len)));
            }
            if end > state.block_bytes as u64 || pack.pieces.is_empty() {
                self.problem(format!("pack {id}: empty, or larger than its block"));
            }
            roomy.extend(roomy_key(&pack, state.block_bytes).map(|free| (free, id)));
        }
        let table = state.meta.open(ROOMY)?;
        let keys = table.iter()?.map(|entry| Ok(entry?.0.value()));
        if keys.collect::<Result<HashSet<_>>>()? != roomy {
            self.problem("the table of roomy packs is wrong".into());
        }
        Ok(())
    }

    fn check_links(&mut self, state: &State) -> Result<()> {
        let table = state.meta.open(ORPHANS)?;
        let inos = table.iter()?.map(|entry| Ok(entry?.0.value()));
        let orphans = inos.collect::<Result<HashSet<Ino>>>()?;
        let mut problems = Vec::new();
        for (&ino, inode) in &self.inodes {
            let names = self.names.get(&ino).copied().unwrap_or(0);
            let below = self.subdirectories.get(&ino).copied().unwrap_or(0);
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
        self.problems.extend(problems);
        Ok(())
    }

    /// Sizes, tails and counters against the inodes.
    fn check_data(&mut self, state: &State) {
        let mut problems = Vec::new();
        let mut bytes = 0;
        for (&ino, inode) in &self.inodes {
            if inode.kind == FileKind::File {
                bytes += inode.size;
            }
            let (mapped, end) = self.mapped.remove(&ino).unwrap_or_default();
            if mapped != inode.blocks {
                problems.push(format!("inode {ino}: {mapped} blocks, not {}", inode.blocks));
            }
            if inode.pack.is_some() && end > inode.size / state.block_bytes as u64 {
                problems.push(format!("inode {ino}: blocks behind a tail that shares one"));
            }
            if self.xattrs.remove(&ino).unwrap_or(0) != inode.xattrs {
                problems.push(format!("inode {ino}: not {} attributes", inode.xattrs));
            }
            let tail = inode.size % state.block_bytes as u64;
            let wanted: Vec<_> = inode.pack.map(|pack| (pack, tail)).into_iter().collect();
            if self.pieces.remove(&ino).unwrap_or_default() != wanted {
                problems.push(format!("inode {ino}: its tail is not where it should be"));
            }
        }
        let lost = self.mapped.keys().chain(self.pieces.keys()).chain(self.xattrs.keys());
        problems.extend(lost.map(|ino| format!("data of inode {ino}, which is missing")));
        let directories = self.inodes.values().filter(|inode| is_directory(inode));
        let directories = directories.count() as u64;
        let files = self.inodes.len() as u64 - directories;
        let counters = &state.counters;
        if (counters.files, counters.directories) != (files, directories)
            || counters.logical_bytes != bytes
        {
            problems.push(format!("the counters are wrong: {counters:?}"));
        }
        self.problems.extend(problems);
    }

    /// Every used block belongs to something, and the other way round.
    fn check_allocation(&mut self, state: &State) {
        let pool = state.pool.lock();
        let mut owned = self.data_blocks.clone();
        for id in pool.metadata.block_ids() {
            if !owned.insert(id) {
                self.problem(format!("metadata block {id} is used twice"));
            }
        }
        let free: Vec<u64> =
            owned.iter().copied().filter(|&id| !pool.allocator.is_used(id)).collect();
        for id in free {
            self.problem(format!("block {id} is in use but counted as free"));
        }
        let used = pool.allocator.used();
        if used != owned.len() as u64 {
            self.problem(format!("{used} blocks counted as used, not {}", owned.len()));
        }
    }

    /// Reads every block of file data and metadata; gives those that are lost.
    fn check_content(
        &mut self,
        state: &mut State,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<BTreeSet<u64>> {
        let dirty = state.cache.dirty();
        state.write_cached(&dirty)?;
        let written = self.data_blocks.iter().filter(|id| !self.unwritten.contains(id));
        let mut ids: Vec<u64> = written.copied().collect();
        let data = ids.len();
        ids.extend(state.pool.lock().metadata_ids()?);
        let total = ids.len() as u64;
        let (mut done, mut lost) = (0_usize, BTreeSet::new());
        progress(done as u64, total);
        for batch in ids.chunks(BATCH) {
            let ops = batch.iter().map(|&id| read_op(id)).collect();
            let outcomes = state.pool.lock().access_each(ops);
            let outcomes = match outcomes {
                Err(Error::Tampered(why)) => {
                    self.problem(format!("blocks {batch:?}: {why}"));
                    done += batch.len();
                    continue;
                }
                outcomes => outcomes?,
            };
            for (&id, outcome) in batch.iter().zip(outcomes) {
                match outcome {
                    Ok(Some(_)) => {}
                    Ok(None) if done >= data => {}
                    Ok(None) => self.problem(format!("data block {id} is missing")),
                    Err(_) if done >= data => self.metadata_lost = true,
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
