//! Makes whole tables of what is left of them.
//!
//! Nothing is guessed. A name whose inode is lost goes, and an inode without a name gets one in
//! `lost+found`. A directory whose inode is lost stays, since its names are there; it has lost its
//! attributes. Bytes whose blocks are not known any more are lost, as those in lost blocks. Each
//! of their segments gets a block that does not exist. A file with too many of them goes.

use super::kinds::{Gap, Key, Limits};
use super::records::{Name, Records};
use super::report::{FoundFile, Salvaged};
use crate::damage::joined;
use crate::fs::check::is_directory;
use crate::fs::check_lost::path_of;
use crate::fs::inode::Inode;
use crate::fs::segments::Extent;
use crate::fs::tables::{Counters, Dirent};
use crate::fs::types::{FileKind, Ino, NewNode, ROOT_INO, Timestamp};
use crate::{LostBytes, Result};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

const LOST_AND_FOUND: &str = "lost+found";
/// The mode of a directory that lost its own: its owner alone may look.
const BARE_MODE: u32 = 0o700;

/// Whole tables.
pub(super) struct Mended {
    pub(super) records: Records,
    /// Segments of files whose blocks are not known any more.
    pub(super) voids: BTreeMap<Ino, Vec<Range<u64>>>,
    pub(super) counters: Counters,
    pub(super) report: Salvaged,
}

/// Makes whole tables. `spare` gives how many segments may stay without their blocks, beside these
/// records; its second argument is the number that is wanted.
pub(super) fn mend(
    records: Records,
    limits: Limits,
    now: Timestamp,
    spare: &mut dyn FnMut(&Records, u64) -> Result<u64>,
) -> Result<Mended> {
    let counted = records.counters.map(|counters| counters.files + counters.directories);
    let all = records.all_inodes;
    let mut mend = Mend { block: limits.block_bytes as u64, now, ..Mend::of(records) };
    mend.directories();
    let mut removed = mend.names();
    let named: BTreeSet<Ino> = removed.iter().map(|(_, ino)| *ino).collect();
    let known = (mend.records.inodes.len() + named.len()) as u64;
    mend.report.unnamed = if all { Some(0) } else { counted.map(|all| all.saturating_sub(known)) };
    mend.nameless();
    mend.links();
    mend.packs();
    mend.maps();
    let wanted = mend.voids.values().map(|lost| count(lost)).fold(0, u64::saturating_add);
    let spare = spare(&mend.records, wanted)?;
    removed.extend(mend.fit(spare));
    mend.attributes();
    mend.tell(&removed);
    let counters = mend.counters();
    Ok(Mended { records: mend.records, voids: mend.voids, counters, report: mend.report })
}

#[derive(Default)]
struct Mend {
    records: Records,
    voids: BTreeMap<Ino, Vec<Range<u64>>>,
    report: Salvaged,
    block: u64,
    now: Timestamp,
    next_ino: Ino,
    /// Inodes that lost their attributes.
    bare: BTreeSet<Ino>,
    /// Inodes with a new name.
    found: Vec<Ino>,
    /// Those that have lost a name and kept another one.
    unlinked: BTreeSet<Ino>,
}

impl Mend {
    fn of(records: Records) -> Self {
        let next = records.counters.map_or(0, |counters| counters.next_ino);
        Self {
            next_ino: next.max(records.last.0.saturating_add(1)).max(ROOT_INO + 1),
            records,
            ..Self::default()
        }
    }

    /// Makes directories of which only names are left, their own or those in them.
    fn directories(&mut self) {
        let mut lost: BTreeMap<Ino, Ino> = BTreeMap::new();
        for ((parent, _), dirent) in &self.records.dirents {
            if dirent.kind == FileKind::Directory && !self.records.inodes.contains_key(&dirent.ino)
            {
                lost.insert(dirent.ino, *parent);
            }
        }
        for (parent, _) in self.records.dirents.keys() {
            if !self.records.inodes.contains_key(parent) {
                lost.entry(*parent).or_insert(0);
            }
        }
        if !self.records.inodes.get(&ROOT_INO).is_some_and(is_directory) {
            lost.insert(ROOT_INO, ROOT_INO);
        }
        for (&ino, &parent) in &lost {
            let owner = self.owner_above(parent, &lost);
            let node = NewNode { mode: BARE_MODE, ..owner };
            let inode = Inode::new(FileKind::Directory, node, self.now);
            self.records.inodes.insert(ino, Inode { parent, ..inode });
            self.bare.insert(ino);
        }
    }

    /// The owner of the nearest directory above that is known.
    fn owner_above(&self, from: Ino, lost: &BTreeMap<Ino, Ino>) -> NewNode {
        let mut at = from;
        for _ in 0..lost.len() {
            match lost.get(&at) {
                Some(&parent) if parent != at => at = parent,
                _ => break,
            }
        }
        let known = self.records.inodes.get(&at).or_else(|| self.records.inodes.get(&ROOT_INO));
        let (uid, gid) = known.map_or((0, 0), |inode| (inode.uid, inode.gid));
        NewNode { uid, gid, mtime: self.now, ..NewNode::default() }
    }

    /// Takes names out whose inodes are lost; gives them.
    fn names(&mut self) -> Vec<(Name, Ino)> {
        let inodes = &self.records.inodes;
        let stands = |parent: Ino, dirent: &Dirent| {
            let above = inodes.get(&parent).is_some_and(is_directory);
            let below = inodes.get(&dirent.ino);
            let below = below.is_some_and(|inode| {
                inode.kind == dirent.kind && (!is_directory(inode) || inode.parent == parent)
            });
            above && below
        };
        let gone =
            self.records.dirents.extract_if(.., |(parent, _), dirent| !stands(*parent, dirent));
        gone.map(|(name, dirent)| (name, dirent.ino)).collect()
    }

    /// Gives names to inodes that have none, but for those that were removed while open.
    fn nameless(&mut self) {
        let named: BTreeSet<Ino> = self.records.dirents.values().map(|dirent| dirent.ino).collect();
        let lost =
            self.records.inodes.iter().filter(|(ino, inode)| {
                **ino != ROOT_INO && inode.nlink > 0 && !named.contains(ino)
            });
        let lost: Vec<(Ino, FileKind)> = lost.map(|(ino, inode)| (*ino, inode.kind)).collect();
        if lost.is_empty() {
            return;
        }
        let folder = self.lost_and_found();
        for (ino, kind) in lost {
            let name = self.free_name(folder, &format!("#{ino}"));
            self.records.dirents.insert((folder, name), Dirent { ino, kind });
            if let Some(inode) = self.records.inodes.get_mut(&ino).filter(|it| is_directory(it)) {
                inode.parent = folder;
            }
            self.found.push(ino);
        }
    }

    /// The directory for them, which is made if there is none.
    fn lost_and_found(&mut self) -> Ino {
        let name = (ROOT_INO, LOST_AND_FOUND.as_bytes().to_vec());
        if let Some(dirent) = self.records.dirents.get(&name)
            && dirent.kind == FileKind::Directory
        {
            return dirent.ino;
        }
        let name = self.free_name(ROOT_INO, LOST_AND_FOUND);
        let ino = self.next_ino;
        self.next_ino += 1;
        let node = NewNode { mode: BARE_MODE, ..self.owner_above(ROOT_INO, &BTreeMap::new()) };
        let inode = Inode::new(FileKind::Directory, node, self.now);
        self.records.inodes.insert(ino, Inode { parent: ROOT_INO, ..inode });
        let dirent = Dirent { ino, kind: FileKind::Directory };
        self.records.dirents.insert((ROOT_INO, name), dirent);
        ino
    }

    fn free_name(&self, parent: Ino, wanted: &str) -> Vec<u8> {
        let mut name = wanted.as_bytes().to_vec();
        let mut number = 1_u64;
        while self.records.dirents.contains_key(&(parent, name.clone())) {
            number += 1;
            name = format!("{wanted}.{number}").into_bytes();
        }
        name
    }

    /// Counts links anew.
    fn links(&mut self) {
        let mut names: HashMap<Ino, u32> = HashMap::new();
        let mut below: HashMap<Ino, u32> = HashMap::new();
        for ((parent, _), dirent) in &self.records.dirents {
            *names.entry(dirent.ino).or_default() += 1;
            if dirent.kind == FileKind::Directory {
                *below.entry(*parent).or_default() += 1;
            }
        }
        for (ino, inode) in &mut self.records.inodes {
            let left = names.get(ino).copied().unwrap_or(0);
            if !is_directory(inode) && left < inode.nlink && !self.found.contains(ino) {
                self.unlinked.insert(*ino);
            }
            inode.nlink = match is_directory(inode) {
                true if *ino == ROOT_INO || names.contains_key(ino) => {
                    2 + below.get(ino).copied().unwrap_or(0)
                }
                true => 0,
                false => left,
            };
        }
    }

    /// Keeps the pieces that inodes name, and the tails that pieces hold.
    fn packs(&mut self) {
        let block = self.block;
        let inodes = &self.records.inodes;
        let mut held = BTreeSet::new();
        for (id, pack) in &mut self.records.packs {
            pack.pieces.retain(|piece| {
                let wanted = inodes.get(&piece.ino).filter(|inode| inode.pack == Some(*id));
                let fits = wanted.is_some_and(|inode| inode.size % block == u64::from(piece.len));
                fits && held.insert(piece.ino)
            });
        }
        self.records.packs.retain(|_, pack| !pack.pieces.is_empty());
        let tails = self.records.inodes.iter_mut();
        for (ino, inode) in tails.filter(|(ino, inode)| inode.pack.is_some() && !held.contains(ino))
        {
            inode.pack = None;
            let segment = inode.size / block;
            self.voids.entry(*ino).or_default().push(segment..segment + 1);
        }
    }

    /// Keeps the runs of files that are there, and finds what is lost of their maps.
    fn maps(&mut self) {
        let inodes = &self.records.inodes;
        let files = |ino: &Ino| inodes.get(ino).is_some_and(|inode| inode.kind == FileKind::File);
        self.records.segments.retain(|(ino, _), _| files(ino));
        let mut runs: HashMap<Ino, Vec<Extent>> = HashMap::new();
        for ((ino, _), run) in &self.records.segments {
            runs.entry(*ino).or_default().push(*run);
        }
        for (ino, inode) in &mut self.records.inodes {
            let runs = runs.remove(ino).unwrap_or_default();
            let mapped: u64 = runs.iter().map(|run| run.count).sum();
            let mut lost = self.voids.remove(ino).unwrap_or_default();
            if mapped < inode.blocks {
                let end = match inode.pack.is_some() || !lost.is_empty() {
                    true => inode.size / self.block,
                    false => inode.size.div_ceil(self.block),
                };
                lost.extend(unknown(*ino, &runs, end, &self.records.unmapped));
            }
            let lost = joined(lost);
            inode.blocks = mapped + count(&lost);
            if !lost.is_empty() {
                self.voids.insert(*ino, lost);
            }
        }
    }

    /// Keeps as many files as possible whose lost segments number `spare` at most together, and
    /// removes the others: those segments would read as zeros. Gives the names that go.
    fn fit(&mut self, mut spare: u64) -> Vec<(Name, Ino)> {
        let mut files: Vec<(u64, Ino)> =
            self.voids.iter().map(|(ino, lost)| (count(lost), *ino)).collect();
        files.sort_unstable();
        let mut gone = BTreeSet::new();
        for (wanted, ino) in files {
            match spare.checked_sub(wanted) {
                Some(rest) => spare = rest,
                None => drop(gone.insert(ino)),
            }
        }
        if gone.is_empty() {
            return Vec::new();
        }
        self.voids.retain(|ino, _| !gone.contains(ino));
        self.found.retain(|ino| !gone.contains(ino));
        self.unlinked.retain(|ino| !gone.contains(ino));
        let records = &mut self.records;
        records.inodes.retain(|ino, _| !gone.contains(ino));
        records.segments.retain(|(ino, _), _| !gone.contains(ino));
        for pack in records.packs.values_mut() {
            pack.pieces.retain(|piece| !gone.contains(&piece.ino));
        }
        records.packs.retain(|_, pack| !pack.pieces.is_empty());
        let names = records.dirents.extract_if(.., |_, dirent| gone.contains(&dirent.ino));
        names.map(|(name, dirent)| (name, dirent.ino)).collect()
    }

    /// Keeps the attributes of inodes that are there.
    fn attributes(&mut self) {
        let inodes = &self.records.inodes;
        self.records.xattrs.retain(|(ino, _), _| inodes.contains_key(ino));
        let mut counts: HashMap<Ino, u32> = HashMap::new();
        for (ino, _) in self.records.xattrs.keys() {
            *counts.entry(*ino).or_default() += 1;
        }
        for (ino, inode) in &mut self.records.inodes {
            let there = counts.get(ino).copied().unwrap_or(0);
            if there < inode.xattrs {
                self.bare.insert(*ino);
            }
            inode.xattrs = there;
        }
    }

    /// Says what was lost, by paths.
    fn tell(&mut self, removed: &[(Name, Ino)]) {
        let names = self.records.dirents.iter();
        let places: HashMap<Ino, Name> =
            names.map(|(name, dirent)| (dirent.ino, name.clone())).collect();
        let path = |ino: Ino| match ino {
            ROOT_INO => "/".to_owned(),
            ino => path_of(ino, &places),
        };
        let report = &mut self.report;
        for ((parent, name), _) in removed {
            let above = path_of(*parent, &places);
            report.removed.push(format!("{above}/{}", String::from_utf8_lossy(name)));
        }
        report.found = self.found.iter().map(|&ino| FoundFile { ino, path: path(ino) }).collect();
        report.unlinked = self.unlinked.iter().map(|ino| path(*ino)).collect();
        report.bare = self.bare.iter().map(|ino| path(*ino)).collect();
        for (ino, segments) in &self.voids {
            let size = self.records.inodes.get(ino).map_or(0, |inode| inode.size);
            let bytes = segments
                .iter()
                .map(|range| range.start * self.block..size.min(range.end * self.block));
            report.lost.push(LostBytes { what: path(*ino), ranges: joined(bytes.collect()) });
        }
        report.lost.sort_by(|a, b| a.what.cmp(&b.what));
    }

    fn counters(&self) -> Counters {
        let inodes = self.records.inodes.values();
        let directories = inodes.clone().filter(|inode| is_directory(inode)).count() as u64;
        let files = inodes.filter(|inode| inode.kind == FileKind::File);
        let runs = self.records.segments.values().filter(|run| run.unwritten);
        let before = self.records.counters.map_or(0, |counters| counters.next_pack);
        Counters {
            next_ino: self.next_ino,
            next_pack: before.max(self.records.last.1.saturating_add(1)),
            files: self.records.inodes.len() as u64 - directories,
            directories,
            logical_bytes: files.map(|inode| inode.size).sum(),
            unwritten: runs.map(|run| run.count).sum(),
        }
    }
}

/// How many segments these are.
fn count(segments: &[Range<u64>]) -> u64 {
    segments.iter().map(|range| range.end - range.start).sum()
}

/// The segments of a file before `end` that have no run, and may have had one that is lost.
fn unknown(ino: Ino, runs: &[Extent], end: u64, gaps: &[Gap]) -> Vec<Range<u64>> {
    let mut lost = Vec::new();
    let mut at = 0;
    let stops = runs.iter().map(|run| (run.segment, run.end())).chain([(end, end)]);
    for (stop, next) in stops {
        let free = at..stop.min(end);
        at = next.max(at);
        // A lost run began in a gap, and went on until the next one at most.
        let first = gaps.iter().filter_map(|gap| first_in(gap, ino, &free)).min();
        lost.extend(first.map(|first| first..free.end));
    }
    lost
}

/// The first of these segments of a file that may begin a run in a gap.
fn first_in(gap: &Gap, ino: Ino, free: &Range<u64>) -> Option<u64> {
    let after = match &gap.after {
        Some(Key::Two(of, segment)) if *of == ino => segment + 1,
        Some(Key::Two(of, _)) if *of > ino => return None,
        _ => 0,
    };
    let last = match &gap.to {
        Some(Key::Two(of, segment)) if *of == ino => *segment,
        Some(Key::Two(of, _)) if *of < ino => return None,
        _ => u64::MAX,
    };
    let first = free.start.max(after);
    (first < free.end && first <= last).then_some(first)
}
