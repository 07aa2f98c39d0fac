//! Second copies of metadata: what is lost of one copy is read from the other, and only then.

use super::*;
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{every, scaled};
use oblivio_volume::fs::repair;
use std::collections::BTreeMap;

type Files = BTreeMap<String, Vec<u8>>;

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// The blocks of the metadata that a root names, each with its twin's, as in docs/format.md.
pub(super) fn copies(root: &[u8]) -> Vec<(u64, Option<u64>)> {
    let runs = root[32..].chunks_exact(16).take(usize::from(root[10]));
    let mut copies = Vec::new();
    for run in runs.filter(|run| word(&run[..8]) != u64::MAX) {
        let (start, chunks) = (word(&run[..8]), word(&run[8..]));
        match chunks >> 63 {
            0 => copies.extend((start..start + chunks).map(|id| (id, None))),
            _ => copies.extend((0..chunks << 1 >> 1).map(|at| {
                let own = start + 2 * at;
                (own, Some(own + 1))
            })),
        }
    }
    copies
}

/// Those that were written.
pub(super) fn written(disk: &MemoryBlocks) -> Vec<(u64, u64)> {
    let copies = copies(disk.boxed().root()).into_iter();
    let copies = copies.map(|(own, twin)| (own, twin.expect("each has one")));
    copies.filter(|(own, _)| disk.holds(*own)).collect()
}

fn read_files(fs: &FileSystem) -> oblivio_volume::Result<Files> {
    let mut files = Files::new();
    for entry in fs.read_dir(ROOT_INO, None, usize::MAX)? {
        let handle = fs.open_file(entry.ino)?;
        let data = fs.read(handle, 0, 1 << 24)?;
        fs.close(handle)?;
        files.insert(String::from_utf8(entry.name).unwrap(), data);
    }
    Ok(files)
}

fn files(fs: &FileSystem) -> Files {
    read_files(fs).unwrap()
}

/// Long names and small files, so that there is much metadata.
fn name(number: u64) -> String {
    format!("{number:04}{}", "-long".repeat(30))
}

/// A file system with files in it, after a clean end. So little fits in memory that metadata is
/// read and evicted all the time.
fn filled(block_bytes: usize) -> MemoryBlocks {
    let disk = MemoryBlocks::new(block_bytes, 40_000, 4 * block_bytes);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    for number in 0..scaled(200) {
        put(&fs, ROOT_INO, &name(number), &vec![number as u8; 900 + number as usize]).unwrap();
    }
    drop(fs.into_blocks().unwrap());
    disk
}

fn end(fs: FileSystem) {
    drop(fs.into_blocks().unwrap());
}

#[test]
fn after_a_clean_end_each_chunk_has_a_second_copy() {
    for block_bytes in [4096, 16 << 10] {
        let disk = filled(block_bytes);
        assert_eq!(word(&disk.boxed().root()[24..32]), 0, "no twin is stale");
        let copies = written(&disk);
        assert!(copies.len() > 4 && copies.iter().all(|&(_, twin)| disk.holds(twin)));
    }
}

/// What programs sync is written once.
#[test]
fn no_commit_writes_a_twin() {
    let (disk, fs) = fresh(20_000);
    for number in 0..50 {
        put(&fs, ROOT_INO, &name(number), &[1; 100]).unwrap();
        fs.commit().unwrap();
    }
    let copies = written(&disk);
    assert!(copies.len() > 4 && copies.iter().all(|&(_, twin)| !disk.holds(twin)));
    while fs.idle().unwrap().is_some() {}
    let copies = written(&disk);
    assert!(copies.iter().all(|&(_, twin)| disk.holds(twin)), "once it is quiet");
    assert_eq!(word(&disk.boxed().root()[24..32]), 0);
}

#[test]
fn any_lost_block_of_metadata_is_read_from_its_twin_and_written_anew() {
    for block_bytes in [4096, 16 << 10] {
        let disk = filled(block_bytes);
        let before = files(&FileSystem::open(disk.boxed()).unwrap());
        let mut met = 0;
        for (own, twin) in written(&disk).into_iter().step_by(every(3)) {
            disk.lose([own]);
            let fs = FileSystem::open(disk.boxed()).unwrap();
            assert!(files(&fs) == before, "without block {own}");
            assert_clean(&fs);
            end(fs);
            // Some hold pages that are free.
            met += usize::from(disk.lost() == 0);
            disk.mend();
            disk.lose([twin]);
            let fs = FileSystem::open(disk.boxed()).unwrap();
            assert!(files(&fs) == before, "without twin {twin}");
            repair(&fs, false, &mut |_, _| {}).unwrap();
            assert_eq!(disk.lost(), 0, "asked for");
            end(fs);
        }
        let tried = written(&disk).len().div_ceil(every(3));
        assert!(met > tried / 2, "{met} of {tried} were met and written anew");
    }
}

/// Changes files, with commits, as dice say.
fn change(fs: &FileSystem, model: &mut Files, dice: &mut Dice) -> oblivio_volume::Result<()> {
    let name = name(dice.below(260));
    match model.contains_key(&name) {
        true if dice.percent(50) => {
            fs.unlink(ROOT_INO, name.as_bytes())?;
            model.remove(&name);
        }
        true => {}
        false => {
            let data = dice.bytes(50);
            put(fs, ROOT_INO, &name, &data)?;
            model.insert(name, data);
        }
    }
    Ok(())
}

/// The block may be read, written whole, or in part, in any order.
#[test]
fn a_block_that_is_lost_before_a_session_changes_much_costs_nothing() {
    for seed in 0..scaled(24) {
        let mut dice = Dice::new(seed);
        let disk = filled(if seed % 2 == 0 { 4096 } else { 16 << 10 });
        let copies = written(&disk);
        let fs = FileSystem::open(disk.boxed()).unwrap();
        let mut model = files(&fs);
        end(fs);
        for _ in 0..3 {
            let (own, twin) = copies[dice.index(copies.len())];
            disk.lose([if dice.percent(70) { own } else { twin }]);
            disk.auto_commit(seed, 3);
            let fs = FileSystem::open(disk.boxed()).unwrap();
            for _ in 0..dice.below(60) {
                change(&fs, &mut model, &mut dice).unwrap();
                if dice.percent(20) {
                    fs.commit().unwrap();
                }
                if dice.percent(5) {
                    while fs.idle().unwrap().is_some() {}
                }
            }
            assert!(files(&fs) == model, "seed {seed}");
            end(fs);
            let fs = FileSystem::open(disk.boxed()).unwrap();
            assert!(files(&fs) == model, "seed {seed}, opened again");
            assert_clean(&fs);
            repair(&fs, false, &mut |_, _| {}).unwrap();
            end(fs);
            assert_eq!(disk.lost(), 0, "seed {seed}");
        }
    }
}

/// A twin that is older than its chunk is never read, wherever a crash falls, and whatever the
/// space committed by itself.
#[test]
fn after_a_crash_no_stale_twin_is_read() {
    let (mut lost, mut read) = (0, 0);
    for seed in 0..scaled(60) {
        let mut dice = Dice::new(seed);
        let disk = filled(if seed % 2 == 0 { 4096 } else { 16 << 10 });
        let fs = FileSystem::open(disk.boxed()).unwrap();
        let (mut model, mut committed) = (files(&fs), files(&fs));
        let mut committing = committed.clone();
        disk.auto_commit(seed + 1, if dice.percent(50) { 2 } else { 0 });
        disk.fail_after(Some(dice.below(400)));
        for _ in 0..60 {
            let mut done = change(&fs, &mut model, &mut dice);
            if done.is_ok() && dice.percent(20) {
                committing.clone_from(&model);
                done = fs.commit();
                if done.is_ok() {
                    committed.clone_from(&model);
                }
            }
            if done.is_ok() && dice.percent(5) {
                done = fs.idle().map(drop);
            }
            if done.is_err() {
                break;
            }
        }
        drop(fs);
        disk.fail_after(None);
        disk.auto_commit(1, 0);
        disk.crash();
        for (own, _) in written(&disk).into_iter().step_by(every(7)) {
            disk.lose([own]);
            let found = FileSystem::open(disk.boxed()).and_then(|fs| read_files(&fs));
            disk.crash();
            match found {
                Ok(found) => {
                    assert!(found == committed || found == committing, "seed {seed}, {own}");
                    read += 1;
                }
                Err(Error::Lost(what)) => {
                    assert_eq!(what.to_string(), "the volume's metadata: lost to damage");
                    lost += 1;
                }
                Err(error) => panic!("seed {seed}, {own}: {error}"),
            }
            disk.mend();
        }
    }
    assert!(lost > 0 && read > 0, "{lost} lost, {read} read");
}

#[test]
fn metadata_without_any_copy_is_said_to_be_lost() {
    let disk = filled(4096);
    let (mut opened, mut refused) = (0, 0);
    for (own, twin) in written(&disk) {
        disk.lose([own]);
        disk.lose([twin]);
        let read = FileSystem::open(disk.boxed()).and_then(|fs| {
            opened += 1;
            let read = read_files(&fs);
            if let Err(error) = &read {
                assert!(matches!(error, Error::Lost(_)), "{error}");
                let later = fs.read_dir(ROOT_INO, None, usize::MAX);
                if let Err(error) = later {
                    assert!(error.to_string().contains("the volume's metadata: lost"), "{error}");
                }
            }
            read
        });
        match read {
            Ok(_) => {}
            Err(Error::Lost(what)) => {
                assert_eq!(what.to_string(), "the volume's metadata: lost to damage");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
        disk.crash();
        disk.mend();
    }
    assert!(opened > 0 && refused > 0, "{opened} opened, {refused} refused");
}

/// What a damaged place carried.
#[derive(Clone, Copy, Debug)]
enum Carried {
    Nothing,
    Data,
    Twin,
    /// Eighths of all metadata that stand before it.
    Metadata(usize),
}

impl Carried {
    /// Such a block; those of `data` hold a file's.
    fn block(self, disk: &MemoryBlocks, data: &[u64]) -> Option<u64> {
        let copies = written(disk);
        match self {
            Carried::Nothing => None,
            Carried::Data => Some(data[2]),
            Carried::Twin => Some(copies[3].1),
            Carried::Metadata(eighths) => Some(copies[eighths * (copies.len() - 1) / 8].0),
        }
    }
}

/// The blocks of a new file of 10 blocks.
fn add_file(disk: &MemoryBlocks) -> Vec<u64> {
    let held = |disk: &MemoryBlocks| (0..disk.end()).filter(|&id| disk.holds(id)).collect();
    let before: Vec<u64> = held(disk);
    let fs = FileSystem::open(disk.boxed()).unwrap();
    put(&fs, ROOT_INO, "file", &[1; 40_960]).unwrap();
    end(fs);
    let metadata: Vec<u64> =
        written(disk).into_iter().flat_map(|(own, twin)| [own, twin]).collect();
    let mut after: Vec<u64> = held(disk);
    after.retain(|id| !before.contains(id) && !metadata.contains(id));
    after
}

/// What an onlooker sees who damaged a place that is met at a certain access.
fn shown(carried: Carried, at: u64) -> Vec<(usize, usize)> {
    let disk = filled(4096);
    let data = add_file(&disk);
    let carried = carried.block(&disk, &data);
    disk.trace();
    disk.damage_in(at, carried);
    for round in 0..3 {
        let fs = FileSystem::open(disk.boxed()).unwrap();
        for number in (0..scaled(200)).step_by(7) {
            let ino = fs.lookup(ROOT_INO, name(number).as_bytes()).unwrap().ino;
            assert_eq!(get(&fs, ino)[0], number as u8);
        }
        let handle = fs.open_file(fs.lookup(ROOT_INO, b"file").unwrap().ino).unwrap();
        // Some of it may be lost.
        drop(fs.read(handle, 0, 1 << 20));
        fs.close(handle).unwrap();
        if round > 0 {
            put(&fs, ROOT_INO, &format!("new {round}"), &[1; 100]).unwrap();
        }
        end(fs);
    }
    disk.trace()
}

#[test]
fn whoever_damages_a_place_does_not_learn_whether_it_carried_metadata() {
    for at in [1, 9, 30] {
        let nothing = shown(Carried::Nothing, at);
        assert!(nothing != shown(Carried::Nothing, 1 << 40), "damage shows");
        let metadata = (0..=8).map(Carried::Metadata);
        for carried in [Carried::Data, Carried::Twin].into_iter().chain(metadata) {
            assert!(nothing == shown(carried, at), "{carried:?}, met at {at}");
        }
    }
}
