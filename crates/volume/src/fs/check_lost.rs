//! What lost blocks mean in files: their paths, and which of their bytes.

use super::check::{Findings, is_directory};
use super::state::State;
use super::tables::{DIRENTS, Meta, PACKS, Pack, SEGMENTS, decode};
use super::types::{Ino, ROOT_INO};
use crate::damage::{LostBytes, joined};
use crate::fs::segments::Extent;
use crate::{Error, Result};
use redb::ReadableTable;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// Lost bytes by file.
pub(super) type LostFiles = BTreeMap<Ino, Vec<Range<u64>>>;

/// A name and the directory that has it.
type Place = (Ino, Vec<u8>);

impl State {
    /// Goes on after a part of the check. Where the metadata is lost, the part is as it was before
    /// the loss, and the next one begins.
    pub(super) fn noted(&mut self, part: Result<()>, found: &mut Findings) -> Result<()> {
        match self.settle(part) {
            Err(Error::Lost(_)) => {
                found.metadata_lost = true;
                self.begin()
            }
            other => other,
        }
    }

    /// Names the files of these lost blocks.
    pub(super) fn name_lost(
        &mut self,
        blocks: &BTreeSet<u64>,
        found: &mut Findings,
    ) -> Result<Vec<LostBytes>> {
        let files = self.lost_files(blocks, found)?;
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let mut places = HashMap::new();
        let wanted = files.keys().copied().collect();
        let part = places_of(&self.meta, &wanted, &mut places);
        self.noted(part, found)?;
        let part = places_of(&self.meta, &above(&places, found), &mut places);
        self.noted(part, found)?;
        let named = files
            .into_iter()
            .map(|(ino, ranges)| LostBytes { what: path_of(ino, &places), ranges: joined(ranges) });
        let mut named: Vec<LostBytes> = named.collect();
        named.sort_by(|a, b| a.what.cmp(&b.what));
        Ok(named)
    }

    /// The files of these lost blocks.
    pub(super) fn lost_files(
        &mut self,
        blocks: &BTreeSet<u64>,
        found: &mut Findings,
    ) -> Result<LostFiles> {
        let mut files = LostFiles::new();
        let part = found.lost_segments(self, blocks, &mut files);
        self.noted(part, found)?;
        let part = found.lost_pieces(self, blocks, &mut files);
        self.noted(part, found)?;
        Ok(files)
    }
}

impl Findings {
    fn lost_segments(
        &self,
        state: &State,
        lost: &BTreeSet<u64>,
        files: &mut LostFiles,
    ) -> Result<()> {
        let size = state.block_bytes as u64;
        for entry in state.meta.open(SEGMENTS)?.iter()? {
            let (key, value) = entry?;
            let (ino, segment) = key.value();
            let run = Extent::load(segment, value.value());
            if run.unwritten {
                continue;
            }
            let end = self.inodes.get(&ino).map_or(u64::MAX, |inode| inode.size);
            for block in lost.range(run.blocks()) {
                let start = (segment + block - run.block) * size;
                let ranges = files.entry(ino).or_default();
                ranges.extend((start < end).then(|| start..end.min(start + size)));
            }
        }
        Ok(())
    }

    fn lost_pieces(
        &self,
        state: &State,
        lost: &BTreeSet<u64>,
        files: &mut LostFiles,
    ) -> Result<()> {
        for entry in state.meta.open(PACKS)?.iter()? {
            let (_, record) = entry?;
            // The check has said so if it makes no sense.
            let Ok(pack) = decode::<Pack>(record.value()) else { continue };
            for piece in pack.pieces.iter().filter(|_| lost.contains(&pack.block)) {
                let size = self.inodes.get(&piece.ino).map_or(0, |inode| inode.size);
                let start = size - size % state.block_bytes as u64;
                files.entry(piece.ino).or_default().extend((start < size).then_some(start..size));
            }
        }
        Ok(())
    }
}

/// Finds a name of each of these.
fn places_of(meta: &Meta, wanted: &HashSet<Ino>, places: &mut HashMap<Ino, Place>) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    for entry in meta.open(DIRENTS)?.iter()? {
        let (key, record) = entry?;
        let Ok(dirent) = decode::<super::tables::Dirent>(record.value()) else { continue };
        if wanted.contains(&dirent.ino) {
            let (parent, name) = key.value();
            places.entry(dirent.ino).or_insert_with(|| (parent, name.to_vec()));
        }
    }
    Ok(())
}

/// The directories above these places, but for the root.
fn above(places: &HashMap<Ino, Place>, found: &Findings) -> HashSet<Ino> {
    let mut all = HashSet::new();
    for &(parent, _) in places.values() {
        let mut at = parent;
        while at != ROOT_INO && all.insert(at) {
            match found.inodes.get(&at).filter(|inode| is_directory(inode)) {
                Some(inode) => at = inode.parent,
                None => break,
            }
        }
    }
    all
}

/// A path; what is not known of it is an inode's number.
pub(super) fn path_of(ino: Ino, places: &HashMap<Ino, Place>) -> String {
    let (mut names, mut at) = (Vec::new(), ino);
    while at != ROOT_INO {
        match places.get(&at) {
            Some((parent, name)) if names.len() <= places.len() => {
                names.push(String::from_utf8_lossy(name).into_owned());
                at = *parent;
            }
            _ => {
                names.push(format!("inode {at}"));
                return names.iter().rev().map(String::as_str).collect::<Vec<_>>().join("/");
            }
        }
    }
    names.iter().rev().fold(String::new(), |path, name| path + "/" + name)
}
