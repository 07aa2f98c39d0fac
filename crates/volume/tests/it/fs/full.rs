//! What works on a full volume, and what makes room on it again.

use super::*;
use oblivio_testkit::campaign::{every, scaled};
use oblivio_volume::BlockSpace;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A volume of `blocks` blocks, filled with small files; gives their number.
fn filled(block: usize, blocks: u64, len: usize) -> (MemoryBlocks, FileSystem, usize) {
    let disk = MemoryBlocks::new(block, blocks, 4 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let count = fill(&fs, "f", len);
    (disk, fs, count)
}

/// Small files until no more fit; gives their number.
fn fill(fs: &FileSystem, prefix: &str, len: usize) -> usize {
    for count in 0.. {
        let name = format!("{prefix}{count}");
        match put(fs, ROOT_INO, &name, &content(&name, len)) {
            Ok(_) => {}
            Err(Error::Full(why)) => {
                assert!(why.contains("oblivio resize"), "{why}");
                // There may be room for a name, and not for its content.
                match fs.unlink(ROOT_INO, name.as_bytes()) {
                    Ok(()) | Err(Error::NotFound(_)) => return count,
                    Err(error) => panic!("{error}"),
                }
            }
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("a volume is not endless")
}

fn content(name: &str, len: usize) -> Vec<u8> {
    name.bytes().cycle().take(len).collect()
}

fn ino_of(fs: &FileSystem, name: &str) -> Ino {
    fs.lookup(ROOT_INO, name.as_bytes()).unwrap().ino
}

#[test]
fn what_is_there_can_be_written_anew() {
    for (block, blocks, len) in [(16_384, 500, 4096), (4096, 1_000, 1000), (16_384, 500, 100_000)] {
        let (disk, fs, count) = filled(block, blocks, len);
        assert!(count * len * 3 > blocks as usize * block, "early: {count} files of {len}");
        let mut handles = Vec::new();
        for number in 0..count {
            let handle = fs.open_file(ino_of(&fs, &format!("f{number}"))).unwrap();
            let at = (number * 7 % len) as u64;
            let rewritten = fs.write(handle, at, b"x");
            assert!(
                rewritten.is_ok(),
                "blocks of {block}, file {number} of {count}: {rewritten:?}"
            );
            handles.push((handle, at as usize));
        }
        for (number, (handle, at)) in handles.into_iter().enumerate() {
            // A hole, and as the kernel does: all of it once more.
            fs.punch(handle, at as u64, 1).unwrap();
            let mut expected = content(&format!("f{number}"), len);
            expected[at] = 0;
            assert!(fs.read(handle, 0, len).unwrap() == expected, "file {number}");
            expected[len - 1] = b'y';
            fs.write(handle, 0, &expected).unwrap();
            fs.close(handle).unwrap();
        }
        fs.commit().unwrap();
        let fs = crashed(&disk, fs);
        for number in 0..count {
            let name = format!("f{number}");
            let mut expected = content(&name, len);
            expected[number * 7 % len] = 0;
            expected[len - 1] = b'y';
            assert!(get(&fs, ino_of(&fs, &name)) == expected, "{name}");
        }
        assert_clean(&fs);
    }
}

#[test]
fn what_is_offered_can_be_set_aside() {
    for (block, blocks, held) in [(4096, 3_000, 0), (16_384, 8_192, 0), (16_384, 8_192, 40 << 20)] {
        let disk = MemoryBlocks::new(block, blocks, 4 << 20);
        let fs = FileSystem::format(disk.boxed()).unwrap();
        put(&fs, ROOT_INO, "held", &vec![1; held]).unwrap();
        fs.commit().unwrap();
        let (_, handle) = open_new(&fs, "f");
        let offered = fs.usage().unwrap().free_blocks * block as u64;
        assert!(offered + held as u64 > blocks * block as u64 / 10 * 9, "{offered}");
        fs.allocate(handle, 0, offered, true).unwrap();
        // It can also be written, in scattered blocks.
        for at in (0..offered / block as u64).step_by(2) {
            fs.write(handle, at * block as u64, b"x").unwrap();
        }
        assert_clean(&fs);
    }
}

#[test]
fn small_files_that_were_removed_make_room() {
    let (disk, fs, count) = filled(16_384, 1_024, 4096);
    fs.commit().unwrap();
    for number in (0..count).step_by(2) {
        fs.unlink(ROOT_INO, format!("f{number}").as_bytes()).unwrap();
    }
    fs.commit().unwrap();
    let before = disk.counts();
    let more = fill(&fs, "g", 4096);
    assert!(more * 10 > count / 2 * 9, "{more} instead of {} that were removed", count / 2);
    let operations = disk.counts().1 - before.1;
    assert!(operations < 40 * more as u64, "{operations} operations for {more} files");
    assert_clean(&fs);
    let fs = crashed(&disk, fs);
    for number in (1..count).step_by(2) {
        let name = format!("f{number}");
        assert!(get(&fs, ino_of(&fs, &name)) == content(&name, 4096), "{name}");
    }
}

#[test]
fn what_small_files_left_is_told_as_free_after_quiet_moments() {
    let (disk, fs, count) = filled(16_384, 2_048, 4096);
    fs.commit().unwrap();
    while fs.idle().unwrap().is_some() {}
    let full = fs.usage().unwrap().free_blocks;
    for number in (0..count).step_by(2) {
        fs.unlink(ROOT_INO, format!("f{number}").as_bytes()).unwrap();
    }
    fs.commit().unwrap();
    let mut moments = 0;
    let mut most = 0;
    loop {
        let before = disk.counts().1;
        let more = fs.idle().unwrap().is_some();
        most = most.max(disk.counts().1 - before);
        if !more {
            break;
        }
        moments += 1;
    }
    let free = fs.usage().unwrap().free_blocks - full;
    assert!(free >= 2_048 / 16 && moments > 1, "{free} blocks after {moments} moments");
    // Writes in pages of metadata, and 32 shared blocks read and 16 written.
    assert!(most < 200, "{most} operations in one moment");
    let quiet = disk.counts();
    assert_eq!((fs.idle().unwrap(), disk.counts()), (None, quiet));
    assert_clean(&fs);
}

#[test]
fn crashes_while_shared_blocks_are_merged_lose_nothing() {
    for cut in (0..).step_by(every(8)) {
        let (disk, fs, count) = filled(4096, 700, 900);
        for number in (0..count).step_by(2) {
            fs.unlink(ROOT_INO, format!("f{number}").as_bytes()).unwrap();
        }
        fs.commit().unwrap();
        disk.auto_commit(cut + 1, 3);
        disk.fail_after(Some(cut));
        let done = put(&fs, ROOT_INO, "g", &vec![7; 60_000]);
        disk.fail_after(None);
        disk.auto_commit(1, 0);
        let fs = crashed(&disk, fs);
        assert_clean(&fs);
        for number in (1..count).step_by(2) {
            let name = format!("f{number}");
            assert!(get(&fs, ino_of(&fs, &name)) == content(&name, 900), "{name}, cut at {cut}");
        }
        if done.is_ok() {
            assert!(cut > 20, "nothing was merged in {cut} accesses");
            return;
        }
    }
}

#[test]
fn a_limit_can_be_lowered_to_what_is_there_and_raised_again() {
    let disk = MemoryBlocks::new(4096, 4_000, 4 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    put(&fs, ROOT_INO, "gone", &vec![1; 6 << 20]).unwrap();
    put(&fs, ROOT_INO, "kept", &vec![2; 2 << 20]).unwrap();
    fs.unlink(ROOT_INO, b"gone").unwrap();
    fs.commit().unwrap();
    let least = fs.least_capacity().unwrap();
    assert!((512..800).contains(&least), "{least}");
    assert!(disk.end() > 2_000, "what is kept lies far out");
    assert!(matches!(fs.set_capacity(least - 1), Err(Error::Invalid(_))));
    fs.set_capacity(least).unwrap();
    let fs = crashed(&disk, fs);
    let usage = fs.usage().unwrap();
    assert_eq!((usage.capacity_blocks, usage.free_blocks), (least, 0));
    assert!(matches!(put(&fs, ROOT_INO, "more", &vec![3; 40_000]), Err(Error::Full(_))));
    let kept = ino_of(&fs, "kept");
    let handle = fs.open_file(kept).unwrap();
    fs.write(handle, 5, b"in place").unwrap();
    fs.close(handle).unwrap();
    assert_clean(&fs);
    fs.set_capacity(4_000).unwrap();
    put(&fs, ROOT_INO, "new", &vec![3; 6 << 20]).unwrap();
    fs.set_capacity(fs.least_capacity().unwrap() + 100).unwrap();
    fs.unlink(ROOT_INO, b"kept").unwrap();
    put(&fs, ROOT_INO, "other", &vec![4; 1 << 20]).unwrap();
    assert_clean(&fs);
    let fs = FileSystem::open(fs.into_blocks().unwrap()).unwrap();
    assert_eq!(get(&fs, ino_of(&fs, "new")), vec![3; 6 << 20]);
    assert_clean(&fs);
}

/// A store may restore an old header, with an old limit.
#[test]
fn a_volume_that_holds_more_than_its_limit_is_full_and_no_more() {
    let (disk, fs, count) = filled(4096, 2_000, 3000);
    fs.commit().unwrap();
    drop(fs);
    disk.crash();
    let mut first = 0;
    for limit in [1_000, 64, 1] {
        disk.set_limit(limit);
        let fs = FileSystem::open(disk.boxed()).unwrap();
        for number in first..count {
            let name = format!("f{number}");
            assert!(get(&fs, ino_of(&fs, &name)) == content(&name, 3000), "{name}");
        }
        assert_eq!(fs.usage().unwrap().free_blocks, 0);
        let new = format!("new{limit}");
        assert!(matches!(put(&fs, ROOT_INO, &new, &vec![1; 1 << 20]), Err(Error::Full(_))));
        for number in first..first + 100 {
            let removed = fs.unlink(ROOT_INO, format!("f{number}").as_bytes());
            assert!(removed.is_ok(), "file {number}, limit {limit}: {removed:?}");
        }
        first += 100;
        fs.commit().unwrap();
        assert_clean(&fs);
        drop(fs);
        disk.crash();
    }
    disk.set_limit(2_100);
    let fs = FileSystem::open(disk.boxed()).unwrap();
    put(&fs, ROOT_INO, "new", &vec![1; 40_000]).unwrap();
    assert_clean(&fs);
}

#[test]
fn a_volume_of_a_fixed_size_gives_other_advice() {
    let disk = SequentialDisk::new(4096, 1_000, 1);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let why = (0..2_000)
        .find_map(|number| put(&fs, ROOT_INO, &format!("f{number}"), &vec![1; 20_000]).err());
    let why = why.expect("it is full").to_string();
    assert!(why.contains("fixed") && !why.contains("resize"), "{why}");
    assert!(matches!(fs.set_capacity(2_000), Err(Error::Invalid(_))));
    let mut blocks: Box<dyn BlockSpace> = fs.into_blocks().unwrap();
    assert!(!blocks.can_resize() && blocks.set_capacity(2_000).is_err());
}

#[derive(Clone, Debug)]
enum Op {
    Put(u8, u16),
    Rewrite(u8, u16, u8),
    Remove(u8),
    Idle,
    Commit,
    Crash,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (any::<u8>(), 1u16..3000).prop_map(|(name, len)| Op::Put(name, len)),
        6 => any::<(u8, u16, u8)>().prop_map(|(name, at, byte)| Op::Rewrite(name, at, byte)),
        4 => any::<u8>().prop_map(Op::Remove),
        1 => Just(Op::Idle),
        1 => Just(Op::Commit),
        1 => Just(Op::Crash),
    ]
}

/// A name's versions since the last requested commit; the last one is the present one.
type Versions = Vec<Option<Vec<u8>>>;

/// A small volume that is always nearly full, and its expected content.
struct Nearly {
    disk: MemoryBlocks,
    fs: Option<FileSystem>,
    names: BTreeMap<String, Versions>,
}

impl Nearly {
    fn new(seed: u64) -> Self {
        let disk = MemoryBlocks::new(4096, 260, 64 << 10);
        let fs = FileSystem::format(disk.boxed()).unwrap();
        let count = fill(&fs, "f", 700);
        fs.commit().unwrap();
        let name = |number| format!("f{number}");
        let names = (0..count).map(|at| (name(at), vec![Some(content(&name(at), 700))])).collect();
        disk.auto_commit(seed, 5);
        Self { disk, fs: Some(fs), names }
    }

    fn fs(&self) -> &FileSystem {
        self.fs.as_ref().unwrap()
    }

    fn now(&self, name: &str) -> Option<Vec<u8>> {
        self.names.get(name).and_then(|versions| versions.last().cloned().flatten())
    }

    fn note(&mut self, name: &str, now: Option<Vec<u8>>) {
        let versions = self.names.entry(name.to_owned()).or_insert_with(|| vec![None]);
        versions.push(now);
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Put(name, len) => self.put(&format!("f{name}"), usize::from(*len)),
            Op::Rewrite(name, at, byte) => self.rewrite(&format!("f{name}"), *at, *byte),
            Op::Remove(name) => {
                let name = format!("f{name}");
                let there = self.now(&name).is_some();
                assert_eq!(self.fs().unlink(ROOT_INO, name.as_bytes()).is_ok(), there);
                self.note(&name, None);
            }
            Op::Idle => drop(self.fs().idle().unwrap()),
            Op::Commit => {
                self.fs().commit().unwrap();
                self.names
                    .values_mut()
                    .for_each(|versions| drop(versions.drain(..versions.len() - 1)));
            }
            Op::Crash => self.crash(),
        }
    }

    fn put(&mut self, name: &str, len: usize) {
        if self.now(name).is_some() {
            return;
        }
        let data = content(name, len);
        match put(self.fs(), ROOT_INO, name, &data) {
            Ok(_) => {
                self.note(name, Some(Vec::new()));
                self.note(name, Some(data));
            }
            Err(Error::Full(_)) if self.fs().lookup(ROOT_INO, name.as_bytes()).is_ok() => {
                self.note(name, Some(Vec::new()));
            }
            Err(Error::Full(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn rewrite(&mut self, name: &str, at: u16, byte: u8) {
        let Some(mut data) = self.now(name).filter(|data| !data.is_empty()) else { return };
        let at = usize::from(at) % data.len();
        let end = (at + 40).min(data.len());
        data[at..end].fill(byte);
        let handle = self.fs().open_file(ino_of(self.fs(), name)).unwrap();
        self.fs().write(handle, at as u64, &data[at..end]).expect("no room is needed");
        self.fs().close(handle).unwrap();
        self.note(name, Some(data));
    }

    /// The file system commits on its own too, when room is short.
    fn crash(&mut self) {
        drop(self.fs.take());
        self.disk.crash();
        let fs = FileSystem::open(self.disk.boxed()).unwrap();
        for (name, versions) in &mut self.names {
            let found = fs.lookup(ROOT_INO, name.as_bytes()).ok().map(|attr| get(&fs, attr.ino));
            assert!(versions.contains(&found), "{name} is none of {} versions", versions.len());
            *versions = vec![found];
        }
        assert_clean(&fs);
        self.fs = Some(fs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(12) as u32))]

    #[test]
    fn a_volume_that_is_always_nearly_full_behaves_like_the_model(
        ops in prop::collection::vec(op(), 20..120),
        seed in any::<u64>(),
    ) {
        let mut nearly = Nearly::new(seed);
        ops.iter().for_each(|op| nearly.apply(op));
        for (name, versions) in &nearly.names {
            let found = nearly.fs().lookup(ROOT_INO, name.as_bytes()).ok();
            let found = found.map(|attr| get(nearly.fs(), attr.ino));
            prop_assert_eq!(Some(&found), versions.last());
        }
        nearly.crash();
    }
}
