//! Salvage: what becomes of a volume that lost both copies of metadata.

use super::lost::joined;
use super::twins::written;
use super::*;
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_volume::fs::{Attr, Salvage, Salvaged};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

/// A thing in a volume.
#[derive(Debug, PartialEq)]
pub(super) struct Thing {
    attr: Attr,
    /// A file's bytes, a link's target.
    content: Vec<u8>,
    pub(super) lost: Vec<Range<u64>>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// All of a volume: things by number, and names by directory.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Tree {
    pub(super) things: BTreeMap<Ino, Thing>,
    names: BTreeMap<(Ino, Vec<u8>), Ino>,
}

pub(super) fn look(fs: &FileSystem) -> Tree {
    let mut tree = Tree::default();
    let mut wait = vec![ROOT_INO];
    while let Some(ino) = wait.pop() {
        let attr = fs.attr(ino).unwrap();
        let (mut content, mut lost) = (Vec::new(), Vec::new());
        match attr.kind {
            FileKind::File => {
                let handle = fs.open_file(ino).unwrap();
                let read = fs.read_around(handle, 0, 1 << 24).unwrap();
                (content, lost) = (read.bytes, read.lost);
                fs.close(handle).unwrap();
            }
            FileKind::Symlink => content = fs.read_link(ino).unwrap(),
            FileKind::Directory => {
                for entry in fs.read_dir(ino, None, usize::MAX).unwrap() {
                    assert_eq!(fs.attr(entry.ino).unwrap().kind, entry.kind);
                    tree.names.insert((ino, entry.name), entry.ino);
                    wait.push(entry.ino);
                }
            }
            _ => {}
        }
        let names = fs.list_xattrs(ino).unwrap().into_iter();
        let xattrs = names.map(|name| (name.clone(), fs.get_xattr(ino, &name).unwrap().unwrap()));
        let xattrs = xattrs.collect();
        tree.things.insert(ino, Thing { attr, content, lost, xattrs });
    }
    tree
}

impl Tree {
    /// The paths of a thing.
    fn paths(&self, ino: Ino) -> Vec<String> {
        if ino == ROOT_INO {
            return vec!["/".to_owned()];
        }
        let mut paths = Vec::new();
        for ((parent, name), _) in self.names.iter().filter(|(_, named)| **named == ino) {
            let above = if *parent == ROOT_INO { "" } else { &self.paths(*parent)[0] };
            paths.push(format!("{above}/{}", String::from_utf8_lossy(name)));
        }
        assert!(!paths.is_empty(), "{ino} has no name");
        paths
    }
}

/// What the volume had, and what the report says, against what it has now.
fn judge(before: &Tree, report: &Salvaged, now: &Tree) {
    let mut gone = 0;
    for (ino, was) in &before.things {
        let Some(is) = now.things.get(ino) else {
            let names = before.names.iter().filter(|(_, named)| *named == ino);
            let said = |name: &[u8]| {
                let name = format!("/{}", String::from_utf8_lossy(name));
                report.removed.iter().any(|path| path.ends_with(&name))
            };
            gone += u64::from(!names.into_iter().any(|((_, name), _)| said(name)));
            continue;
        };
        assert_eq!(is.attr.kind, was.attr.kind);
        let paths = now.paths(*ino);
        let path = &paths[0];
        let lost = report.lost.iter().find(|lost| paths.contains(&lost.what));
        let mut ranges = lost.map_or(Vec::new(), |lost| lost.ranges.clone());
        // What was lost before stays lost.
        ranges.extend(was.lost.iter().cloned());
        let ranges = joined(ranges);
        assert_eq!(is.lost, ranges, "{path}");
        assert_eq!(is.content.len(), was.content.len(), "{path}");
        for (at, (is, was)) in is.content.iter().zip(&was.content).enumerate() {
            let lost = ranges.iter().any(|range| range.contains(&(at as u64)));
            assert!(lost || is == was, "{path}: byte {at}");
        }
        let bare = report.bare.iter().any(|bare| paths.contains(bare));
        assert!(is.xattrs == was.xattrs || bare, "{path}");
        assert!(is.xattrs.iter().all(|(name, value)| was.xattrs[name] == *value), "{path}");
        if !bare && was.attr.kind == FileKind::File {
            let times = |attr: &Attr| (attr.mode, attr.uid, attr.mtime, attr.size);
            assert_eq!(times(&is.attr), times(&was.attr), "{path}");
        }
    }
    let said = report.unnamed;
    assert!(said.is_none_or(|said| gone <= said), "{gone} are gone, and {said:?} said to be");
    for found in &report.found {
        assert!(now.paths(found.ino).contains(&found.path), "{found:?}");
    }
    let is_found = |path: &String| report.found.iter().any(|found| found.path == *path);
    for ((parent, name), ino) in &now.names {
        let known = before.names.get(&(*parent, name.clone())) == Some(ino);
        let shown = String::from_utf8_lossy(name);
        let said = now.paths(*ino).iter().any(&is_found);
        let found = shown.starts_with(&format!("#{ino}")) && said;
        assert!(known || found || shown.starts_with("lost+found"), "{shown} came up");
    }
    for (name, ino) in &before.names {
        if now.names.get(name) != Some(ino) && now.things.contains_key(ino) {
            let paths = now.paths(*ino);
            let said = paths.iter().any(|path| is_found(path) || report.unlinked.contains(path));
            assert!(said, "a name of {paths:?} went without a word");
        }
    }
}

fn long(number: u64) -> String {
    format!("{number:04}{}", "-long".repeat(30))
}

/// A volume with a bit of everything, after a clean end.
pub(super) fn filled(block_bytes: usize, files: u64, seed: u64) -> MemoryBlocks {
    let disk = MemoryBlocks::new(block_bytes, 40_000, 64 * block_bytes);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let mut dice = Dice::new(seed);
    let mut folders = vec![ROOT_INO];
    for number in 0..files {
        let parent = folders[dice.index(folders.len())];
        let mtime = Timestamp { seconds: 1_000_000 + number as i64, nanos: 7 };
        let node = NewNode { mode: 0o640, uid: 7, gid: 8, mtime };
        let name = if dice.percent(70) { long(number) } else { format!("f{number}") };
        let ino = match dice.below(10) {
            0 => {
                let ino = fs.mkdir(parent, name.as_bytes(), node).unwrap().ino;
                folders.push(ino);
                ino
            }
            1 => {
                let target = "target".repeat(if dice.percent(30) { 600 } else { 3 });
                fs.symlink(parent, name.as_bytes(), target.as_bytes(), node).unwrap().ino
            }
            kind => {
                let (attr, handle) = fs.create(parent, name.as_bytes(), node).unwrap();
                let len = [40, 900, 3 * block_bytes + 5, 20 * block_bytes][dice.index(4)];
                let bytes = dice.bytes(len + 1);
                // In pieces with holes between, so that the map is long.
                let step = if kind < 4 { 2 * block_bytes } else { 1 << 30 };
                for (n, piece) in bytes.chunks(block_bytes).enumerate().filter(|_| step < 1 << 30) {
                    fs.write(handle, (n * step) as u64, piece).unwrap();
                }
                if step == 1 << 30 {
                    fs.write(handle, 0, &bytes).unwrap();
                }
                if dice.percent(10) {
                    fs.allocate(handle, 0, 8 * block_bytes as u64, true).unwrap();
                }
                fs.close(handle).unwrap();
                if dice.percent(10) {
                    let folder = folders[dice.index(folders.len())];
                    fs.link(attr.ino, folder, format!("link{number}").as_bytes()).unwrap();
                }
                attr.ino
            }
        };
        if dice.percent(15) {
            let len = if dice.percent(20) { 9000 } else { 60 };
            let value = dice.bytes(len);
            fs.set_xattr(ino, b"user.one", &value, XattrMode::Set).unwrap();
            fs.set_xattr(ino, b"user.two", b"2", XattrMode::Set).unwrap();
        }
        if dice.percent(5) {
            fs.commit().unwrap();
        }
        if dice.percent(8) {
            // Frees pages and packs.
            let names = fs.read_dir(parent, None, usize::MAX).unwrap();
            let gone = names.into_iter().find(|entry| entry.kind == FileKind::File);
            gone.into_iter().for_each(|entry| fs.unlink(parent, &entry.name).unwrap());
        }
    }
    drop(fs.into_blocks().unwrap());
    disk
}

pub(super) fn salvage(disk: &MemoryBlocks) -> Result<Salvaged, Error> {
    let mut salvage = Salvage::of(disk.boxed())?;
    assert!(salvage.is_needed());
    let plan = salvage.plan(Timestamp { seconds: 5, nanos: 0 })?;
    let report = plan.report().clone();
    salvage.carry_out(plan)?;
    Ok(report)
}

/// What a salvage would say.
pub(super) fn planned(disk: &MemoryBlocks) -> Result<Salvaged, Error> {
    let mut salvage = Salvage::of(disk.boxed())?;
    let plan = salvage.plan(Timestamp::default())?;
    Ok(plan.report().clone())
}

/// Salvages, and looks at what that left.
pub(super) fn salvaged(disk: &MemoryBlocks, before: &Tree) -> Salvaged {
    let report = salvage(disk).unwrap();
    let fs = FileSystem::open(disk.boxed()).unwrap();
    assert_clean(&fs);
    judge(before, &report, &look(&fs));
    drop(fs.into_blocks().unwrap());
    assert!(!Salvage::of(disk.boxed()).unwrap().is_needed());
    report
}

/// The volume without both copies of these blocks.
pub(super) fn without(disk: &MemoryBlocks, lost: &[(u64, u64)]) -> MemoryBlocks {
    let disk = disk.copy();
    for (own, twin) in lost {
        disk.lose([*own, *twin]);
    }
    disk
}

#[test]
fn a_lost_page_costs_what_stood_on_it() {
    let (files, seed) = (80, 3);
    let disk = filled(4096, files, seed);
    let before = look(&FileSystem::open(disk.boxed()).unwrap());
    let copies = written(&disk);
    let (mut sums, mut unlinked) = ([0; 4], 0);
    let mut refused = 0;
    for copy in &copies {
        let disk = without(&disk, &[*copy]);
        if copies[0] == *copy {
            refused += u64::from(matches!(salvage(&disk), Err(Error::Lost(_))));
            continue;
        }
        let report = salvaged(&disk, &before);
        let found = [report.removed.len(), report.found.len(), report.bare.len()];
        sums.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
        sums[3] += report.unnamed.unwrap_or(0) as usize;
        unlinked += report.unlinked.len();
    }
    assert_eq!(refused, 1);
    // Each record stands on one page, so each is lost once.
    let of = |kind: FileKind| before.things.values().filter(move |it| it.attr.kind == kind).count();
    let names =
        before.names.iter().filter(|(_, ino)| before.things[ino].attr.kind != FileKind::Directory);
    assert_eq!(sums[0], names.count(), "names whose inodes are lost");
    let with_xattrs = before.things.values().filter(|it| !it.xattrs.is_empty()).count();
    let bare = of(FileKind::Directory)..=of(FileKind::Directory) + 2 * with_xattrs;
    assert!(bare.contains(&sums[2]), "{} bare ones, of {bare:?}", sums[2]);
    assert!(sums[1] < before.things.len(), "{} without names", sums[1]);
    assert!(unlinked > 0, "some have more than one name");
    assert_eq!(sums[3], 0, "no page has both a name and its inode");
}

/// Removes all that a directory has.
fn clear(fs: &FileSystem, folder: Ino) {
    for entry in fs.read_dir(folder, None, usize::MAX).unwrap() {
        if entry.kind == FileKind::Directory {
            clear(fs, entry.ino);
            fs.rmdir(folder, &entry.name).unwrap();
        } else {
            fs.unlink(folder, &entry.name).unwrap();
        }
    }
}

/// The volume without the first of its blocks, from `from` on, whose loss takes names away, and
/// what a salvage says of it.
fn without_names(disk: &MemoryBlocks, from: usize) -> (MemoryBlocks, Salvaged) {
    for copy in written(disk).into_iter().skip(from.max(1)) {
        let damaged = without(disk, &[copy]);
        let report = planned(&damaged).unwrap();
        if report.found.len() > 3 {
            return (damaged, report);
        }
    }
    panic!("no block has names");
}

/// A volume that was salvaged and has no files any more; which blocks were lost says `from`.
pub fn emptied_after_salvage(block_bytes: usize, from: u64) -> MemoryBlocks {
    static WHOLE: OnceLock<MemoryBlocks> = OnceLock::new();
    let whole = WHOLE.get_or_init(|| filled(block_bytes, 60, 11));
    let (disk, _) = without_names(whole, from as usize);
    salvage(&disk).unwrap();
    let fs = FileSystem::open(disk.boxed()).unwrap();
    clear(&fs, ROOT_INO);
    drop(fs.into_blocks().unwrap());
    disk
}

#[test]
fn lost_and_found_is_emptied_and_filled_again() {
    let disk = filled(4096, 160, 3);
    let before = look(&FileSystem::open(disk.boxed()).unwrap());
    let (disk, report) = without_names(&disk, 1);
    assert_eq!(salvaged(&disk, &before), report);
    let fs = FileSystem::open(disk.boxed()).unwrap();
    let folder = fs.resolve("/lost+found").unwrap().ino;
    let first = fs.read_dir(folder, None, usize::MAX).unwrap();
    assert_eq!(first.len(), report.found.len());
    // One of them has a home again.
    fs.rename(folder, &first[0].name, ROOT_INO, b"home", RenameMode::NoReplace).unwrap();
    clear(&fs, folder);
    drop(fs.into_blocks().unwrap());
    let fs = FileSystem::open(disk.boxed()).unwrap();
    assert_clean(&fs);
    let before = look(&fs);
    drop(fs);
    let (disk, again) = without_names(&disk, 1);
    assert_eq!(salvaged(&disk, &before), again);
    let fs = FileSystem::open(disk.boxed()).unwrap();
    assert_eq!(fs.resolve("/lost+found").unwrap().ino, folder, "the same one");
    clear(&fs, folder);
    fs.rmdir(ROOT_INO, b"lost+found").unwrap();
    assert_clean(&fs);
}

/// Before its end a salvage leaves the volume as it was, wherever it stops, and at its end it is
/// done.
#[test]
fn a_salvage_that_is_cut_off_can_be_done_again() {
    let mut done = 0;
    let whole = filled(4096, 60, 5);
    let before = look(&FileSystem::open(whole.boxed()).unwrap());
    let (damaged, _) = without_names(&whole, 1);
    for round in 0..scaled(12) {
        let disk = damaged.copy();
        disk.auto_commit(round + 1, 3);
        disk.fail_after(Some(2 + round * 4));
        let ended = salvage(&disk).is_ok();
        disk.fail_after(None);
        disk.auto_commit(1, 0);
        disk.crash();
        match Salvage::of(disk.boxed()).unwrap().is_needed() {
            true => drop(salvaged(&disk, &before)),
            false => done += 1,
        }
        assert!(!ended || !Salvage::of(disk.boxed()).unwrap().is_needed());
        let fs = FileSystem::open(disk.boxed()).unwrap();
        assert_clean(&fs);
    }
    assert!(done > 0, "some ran to the end");
}

#[test]
fn whatever_is_lost_the_rest_is_whole() {
    let from = seed(1);
    for seed in from..from + scaled(8) {
        let mut dice = Dice::new(seed);
        let block_bytes = [1024, 4096, 16 << 10][dice.index(3)];
        let files = 20 + dice.below(120);
        let disk = filled(block_bytes, files, seed);
        let before = look(&FileSystem::open(disk.boxed()).unwrap());
        let copies = written(&disk);
        let most = 1 + dice.index(4);
        let lost: BTreeSet<usize> = (0..most).map(|_| 1 + dice.index(copies.len() - 1)).collect();
        let lost: Vec<(u64, u64)> = lost.into_iter().map(|at| copies[at]).collect();
        println!("seed {seed}: {block_bytes} bytes, {} of {} blocks", lost.len(), copies.len());
        let disk = without(&disk, &lost);
        salvaged(&disk, &before);
    }
}
