//! Files on a space that lost some of its blocks.

use super::*;
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_volume::LostBytes;
use std::ops::Range;

const BLOCK: u64 = 4096;
const FILES: u64 = 12;

/// A file as it should be, and what of it is lost.
struct Model {
    ino: Ino,
    path: String,
    bytes: Vec<u8>,
    lost: Vec<Range<u64>>,
}

impl Model {
    /// What is lost of a range.
    fn lost_in(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let cut = |lost: &Range<u64>| lost.start.max(range.start)..lost.end.min(range.end);
        self.lost.iter().map(cut).filter(|cut| !cut.is_empty()).collect()
    }

    fn is_lost(&self, at: u64) -> bool {
        self.lost.iter().any(|lost| lost.contains(&at))
    }

    /// Checks an answer to a read of this range.
    fn judge(&self, range: &Range<u64>, answer: Result<Vec<u8>, Error>) {
        let wanted = &self.bytes[range.start as usize..range.end as usize];
        match (answer, self.lost_in(range)) {
            (Ok(bytes), lost) if lost.is_empty() => assert!(bytes == wanted, "{}", self.path),
            (Err(Error::Lost(LostBytes { what, ranges })), lost) => {
                assert_eq!((what.as_str(), ranges), ("the file", lost), "{}", self.path);
            }
            (other, lost) => panic!("{}: {other:?}, against {lost:?}", self.path),
        }
    }
}

/// Blocks in a row are one range.
pub fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        last.end = if joins { last.end.max(next.end) } else { last.end };
        joins
    });
    ranges
}

fn open_again(fs: FileSystem) -> FileSystem {
    FileSystem::open(fs.into_blocks().unwrap()).unwrap()
}

/// Files of all sizes, stored, and nothing of them in memory.
fn files(dice: &mut Dice, disk: &MemoryBlocks) -> (FileSystem, Vec<Model>) {
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let folder = fs.mkdir(ROOT_INO, b"a folder", NewNode::default()).unwrap().ino;
    let make = |number| {
        let longest = [3_000, 9_000, 60_000][dice.index(3)];
        let len = 64 + dice.index(longest);
        // A tail of a few bytes is not in one place only.
        let bytes = dice.bytes(if len % BLOCK as usize <= 32 { len + 33 } else { len });
        let (parent, before) =
            if number % 2 == 0 { (ROOT_INO, "/") } else { (folder, "/a folder/") };
        let ino = put(&fs, parent, &format!("f{number:02}"), &bytes).unwrap();
        Model { ino, path: format!("{before}f{number:02}"), bytes, lost: Vec::new() }
    };
    let models = (0..FILES).map(make).collect();
    (open_again(fs), models)
}

/// Every segment of the files, with the blocks that have it.
fn places(disk: &MemoryBlocks, models: &[Model]) -> Vec<(usize, Range<u64>, u64)> {
    let mut places = Vec::new();
    for (number, model) in models.iter().enumerate() {
        for (index, part) in model.bytes.chunks(BLOCK as usize).enumerate() {
            let start = index as u64 * BLOCK;
            let blocks = disk.blocks_with(part, part.len() == BLOCK as usize);
            assert_eq!(blocks.len(), 1, "random bytes are in one place");
            places.push((number, start..start + part.len() as u64, blocks[0]));
        }
    }
    places
}

/// Loses some blocks, and notes what that means.
fn lose(dice: &mut Dice, disk: &MemoryBlocks, models: &mut [Model]) {
    let places = places(disk, models);
    let lost: Vec<u64> =
        (0..1 + dice.below(6)).map(|_| places[dice.index(places.len())].2).collect();
    disk.lose(lost.iter().copied());
    for (number, range, _) in places.into_iter().filter(|place| lost.contains(&place.2)) {
        models[number].lost.push(range);
    }
    for model in models {
        model.lost = joined(std::mem::take(&mut model.lost));
        for lost in &model.lost {
            model.bytes[lost.start as usize..lost.end as usize].fill(0);
        }
    }
}

fn any_range(dice: &mut Dice, model: &Model) -> Range<u64> {
    let len = model.bytes.len() as u64;
    let start = dice.below(len);
    start..start + 1 + dice.below(len - start)
}

fn read(fs: &FileSystem, ino: Ino) -> ReadAround {
    let handle = fs.open_file(ino).unwrap();
    let read = fs.read_around(handle, 0, 1 << 24).unwrap();
    fs.close(handle).unwrap();
    read
}

fn assert_names(fs: &FileSystem, models: &[Model]) {
    let report = fs.check_with(true, &mut |_, _| {}).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    let mut wanted: Vec<LostBytes> = (models.iter().filter(|model| !model.lost.is_empty()))
        .map(|model| LostBytes { what: model.path.clone(), ranges: model.lost.clone() })
        .collect();
    wanted.sort_by(|a, b| a.what.cmp(&b.what));
    assert_eq!(report.lost, wanted);
}

/// Writes somewhere, and takes from what is there afterwards what the model cannot know: how much
/// of a write that failed took place.
fn write(dice: &mut Dice, fs: &FileSystem, model: &mut Model) {
    let range = any_range(dice, model);
    let data = dice.bytes((range.end - range.start) as usize);
    let handle = fs.open_file(model.ino).unwrap();
    let written = fs.write(handle, range.start, &data);
    fs.close(handle).unwrap();
    let after = read(fs, model.ino);
    let of = |at: u64| data[(at - range.start) as usize];
    for at in 0..model.bytes.len() as u64 {
        let (is_lost, now) = (after.lost.iter().any(|lost| lost.contains(&at)), at as usize);
        let (before, now) = (model.bytes[now], after.bytes[now]);
        match (&written, range.contains(&at)) {
            (Ok(()), true) => assert!(!is_lost && now == of(at), "{at} was acknowledged"),
            (Err(_), true) if !is_lost => assert!(now == of(at) || now == before),
            (_, false) if !is_lost => assert!(!model.is_lost(at) && now == before),
            _ => assert!(model.is_lost(at), "{at} of {} is lost by a write", model.path),
        }
    }
    match written {
        Ok(()) | Err(Error::Lost(_)) => {}
        Err(other) => panic!("{other}"),
    }
    (model.bytes, model.lost) = (after.bytes, after.lost);
}

#[test]
fn every_read_gives_what_is_whole_and_names_what_is_not() {
    for seed in seed(0)..seed(0) + scaled(60) {
        let mut dice = Dice::new(seed);
        let disk = MemoryBlocks::new(4096, 4_000, 1 << 20);
        let (fs, mut models) = files(&mut dice, &disk);
        lose(&mut dice, &disk, &mut models);
        for _ in 0..40 {
            let model = &models[dice.index(models.len())];
            let range = any_range(&mut dice, model);
            let handle = fs.open_file(model.ino).unwrap();
            let len = (range.end - range.start) as usize;
            model.judge(&range, fs.read(handle, range.start, len));
            let front = fs.read_around(handle, range.start, len).unwrap().front();
            match (front, model.lost_in(&range).first()) {
                (Ok(front), lost) => {
                    let end = lost.map_or(range.end, |lost| lost.start);
                    assert!(front == model.bytes[range.start as usize..end as usize]);
                }
                (Err(_), lost) => assert_eq!(lost.map(|lost| lost.start), Some(range.start)),
            }
            fs.close(handle).unwrap();
        }
        let whole = |model: &Model| 0..model.bytes.len() as u64;
        let handles: Vec<_> = models.iter().map(|m| fs.open_file(m.ino).unwrap()).collect();
        let asked: Vec<_> = handles.iter().map(|&handle| (handle, 0, 1 << 20)).collect();
        for (model, answer) in models.iter().zip(read_many(&fs, &asked)) {
            model.judge(&whole(model), answer);
        }
        handles.into_iter().for_each(|handle| fs.close(handle).unwrap());
        assert_names(&fs, &models);
    }
}

#[test]
fn what_is_written_over_holes_is_whole_and_all_else_stays() {
    for seed in seed(0)..seed(0) + scaled(60) {
        let mut dice = Dice::new(seed);
        let disk = MemoryBlocks::new(4096, 4_000, 1 << 20);
        let (mut fs, mut models) = files(&mut dice, &disk);
        lose(&mut dice, &disk, &mut models);
        for step in 0..40 {
            let at = dice.index(models.len());
            write(&mut dice, &fs, &mut models[at]);
            if step % 8 == 0 {
                let bytes = dice.bytes(64 + dice.clone().index(2_500));
                let path = format!("/new{step}");
                let ino = put(&fs, ROOT_INO, &path[1..], &bytes).unwrap();
                models.push(Model { ino, path, bytes, lost: Vec::new() });
                fs.commit().unwrap();
            }
        }
        fs = open_again(fs);
        for model in &models {
            let read = read(&fs, model.ino);
            assert_eq!(read.lost, model.lost, "{}", model.path);
            assert!(read.bytes == model.bytes, "{} of seed {seed}", model.path);
        }
        assert_names(&fs, &models);
        heal(&mut dice, &disk, &fs, &mut models);
        assert_names(&open_again(fs), &models);
    }
}

/// Removes some files, empties others, and writes the rest anew: no block is lost any more.
fn heal(dice: &mut Dice, disk: &MemoryBlocks, fs: &FileSystem, models: &mut Vec<Model>) {
    models.retain_mut(|model| {
        let (parent, name) = match model.path.strip_prefix("/a folder/") {
            Some(name) => (fs.lookup(ROOT_INO, b"a folder").unwrap().ino, name),
            None => (ROOT_INO, &model.path[1..]),
        };
        model.lost.clear();
        if dice.percent(30) {
            fs.unlink(parent, name.as_bytes()).unwrap();
            return false;
        }
        let handle = fs.open_file(model.ino).unwrap();
        if dice.percent(30) {
            fs.set_attr(model.ino, SetAttr { size: Some(0), ..SetAttr::default() }).unwrap();
        }
        fs.write(handle, 0, &model.bytes).unwrap();
        fs.close(handle).unwrap();
        true
    });
    fs.commit().unwrap();
    for model in &*models {
        assert!(get(fs, model.ino) == model.bytes);
    }
    assert_eq!(disk.lost(), 0);
}

#[test]
fn the_store_sees_the_same_reads_whatever_is_lost() {
    let run = |damaged: bool| {
        let mut dice = Dice::new(7);
        let disk = MemoryBlocks::new(4096, 4_000, 1 << 20);
        let (fs, mut models) = files(&mut dice, &disk);
        if damaged {
            lose(&mut dice.clone(), &disk, &mut models);
        }
        // Once damage was met, the store sees more of everything.
        disk.damage_in(0, None);
        let mut lost = 0;
        for model in &models {
            let handle = fs.open_file(model.ino).unwrap();
            lost += u64::from(fs.read(handle, 0, 1 << 20).is_err());
            fs.close(handle).unwrap();
        }
        (disk.counts(), lost > 0)
    };
    let (damaged, whole) = (run(true), run(false));
    assert_eq!((damaged.1, whole.1), (true, false));
    assert_eq!(damaged.0, whole.0);
}

/// Many names, of which memory holds few, and the blocks that have one of them, old ones included,
/// each with its second copy.
fn names() -> (MemoryBlocks, FileSystem, Vec<(u64, u64)>) {
    let disk = MemoryBlocks::new(4096, 40_000, 32 << 10);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    for number in 0..NAMES {
        put(&fs, ROOT_INO, &format!("file number {number:04}"), b"content").unwrap();
    }
    fs.into_blocks().unwrap();
    let with_names: Vec<u64> = (5..NAMES)
        .step_by(500)
        .flat_map(|number| disk.blocks_with(format!("file number {number:04}").as_bytes(), false))
        .collect();
    let mut blocks = twins::written(&disk);
    blocks.retain(|(own, _)| with_names.contains(own));
    let fs = FileSystem::open(disk.boxed()).unwrap();
    (disk, fs, blocks)
}

const NAMES: u64 = 3_000;

#[test]
fn lost_metadata_is_said_at_the_opening_or_by_what_needs_it() {
    for candidate in 0..names().2.len() {
        let (disk, fs, blocks) = names();
        drop(fs);
        let (own, twin) = blocks[candidate];
        disk.lose([own, twin]);
        let metadata = LostBytes::all("the volume's metadata");
        let fs = match FileSystem::open(disk.boxed()) {
            Ok(fs) => fs,
            // It is a block that everything needs.
            Err(Error::Lost(what)) => {
                assert_eq!(what, metadata);
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        let (mut lost, mut read) = (0, 0);
        for number in 0..NAMES {
            match fs.lookup(ROOT_INO, format!("file number {number:04}").as_bytes()) {
                Ok(attr) => {
                    assert_eq!(get(&fs, attr.ino), b"content");
                    read += 1;
                }
                Err(Error::Lost(what)) => {
                    assert_eq!(what, metadata);
                    lost += 1;
                }
                Err(other) => panic!("{number}: {other}"),
            }
        }
        assert_eq!(lost + read, NAMES);
        assert!(lost < NAMES / 20, "{lost} of {NAMES} for one block");
        let report = fs.check_with(true, &mut |_, _| {}).unwrap();
        assert_eq!(report.lost, [metadata]);
        assert!(!report.is_clean());
    }
}
