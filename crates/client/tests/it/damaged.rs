//! Tables of a server in a folder are damaged: what no damaged slot carries is read, also by a new
//! client that becomes the scribe, and what is lost is named until it is written anew.

use super::files::{environment, node};
use super::{Line, World, read, started, value, write};
use oblivio_client::disk::{Claim, SharedDisk, make};
use oblivio_client::files::ClientFiles;
use oblivio_client::{Client, NewShared, create};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_privatefs::{FsOptions, PrivateFs, ROOT};
use oblivio_share::{MissingParts, StoredShare};
use oblivio_splitmix::SplitMix64;
use oblivio_store::share::{LEASE, Share};
use oblivio_testkit::share::TestClock;
use oblivio_volume::Error;
use oblivio_volume::disk::Disk;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Blocks or files in a volume.
const USED: u64 = 100;

fn tables(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("tables")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|it| it.file_name().unwrap().to_str().unwrap().starts_with("t-")).collect();
    found.sort();
    found
}

/// Flips bits of the tables in a folder, where a generator says.
fn flip(dir: &Path, flips: u64, rng: &mut SplitMix64) {
    let mut all: Vec<(PathBuf, Vec<u8>)> =
        tables(dir).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    let bytes: usize = all.iter().map(|it| it.1.len()).sum();
    for _ in 0..flips {
        let mut at = rng.below(bytes as u64) as usize;
        for (_, table) in &mut all {
            match table.get_mut(at) {
                Some(byte) => {
                    *byte ^= 1 << rng.below(8);
                    break;
                }
                None => at -= table.len(),
            }
        }
    }
    all.into_iter().for_each(|(path, table)| fs::write(path, table).unwrap());
}

/// A volume whose blocks hold their numbers, and are in tables.
fn filled(dir: &Path) -> World {
    let world = World::over(Arc::new(started(dir)));
    let (client, _) = world.client();
    for round in 0..3 {
        let all: Vec<_> = (0..USED).map(|index| vec![write(index, index + round)]).collect();
        client.carry_out_many(&all).unwrap();
    }
    client.close().unwrap();
    world.line.lead(None);
    world
}

/// Reads all blocks: those that are lost.
fn lost(client: &Client, expected: impl Fn(u64) -> u64) -> BTreeSet<u64> {
    let reads: Vec<_> = (0..USED).map(|index| vec![read(index)]).collect();
    let found = client.carry_out_each(&reads).unwrap();
    let mut lost = BTreeSet::new();
    for (index, answers) in (0..).zip(found) {
        match answers {
            Ok(answers) => assert_eq!(value(&answers[0]), expected(index), "block {index}"),
            Err(_) => drop(lost.insert(index)),
        }
    }
    lost
}

#[test]
fn flipped_bits_of_tables_cost_the_blocks_of_their_slots() {
    let (mut all, mut rng) = (0, SplitMix64::new(4));
    for flips in [3, 10, 120] {
        let dir = tempfile::tempdir().unwrap();
        let world = filled(dir.path());
        flip(dir.path(), flips, &mut rng);
        world.line.lead(Some(Arc::new(started(dir.path()))));
        let (client, _) = world.client();
        let gone = lost(&client, |index| index + 2);
        assert!(gone.len() as u64 <= flips, "{} by {flips}", gone.len());
        all += gone.len();
        client.close().unwrap();
        // A new client, which is the scribe, after the server was started anew.
        world.line.lead(None);
        world.line.lead(Some(Arc::new(started(dir.path()))));
        let (client, _) = world.client();
        assert_eq!(lost(&client, |index| index + 2), gone);
        // Merges go over what is damaged.
        (0..600).for_each(|at| drop(client.carry_out(&[write(USED + at % 50, at)]).unwrap()));
        assert_eq!(lost(&client, |index| index + 2), gone);
        let heal: Vec<_> = gone.iter().map(|index| vec![write(*index, index + 2)]).collect();
        client.carry_out_many(&heal).unwrap();
        assert_eq!(lost(&client, |index| index + 2), BTreeSet::new());
        client.close().unwrap();
    }
    assert!(all > 0, "some slot had a block");
}

/// Of a server that lost all of its tables, what waits in the scribe's stash is read.
#[test]
fn tables_that_are_missing_cost_their_blocks_and_others_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let world = filled(dir.path());
    let tables = tables(dir.path());
    tables.iter().for_each(|table| fs::remove_file(table).unwrap());
    let clock = TestClock::default();
    let refused = StoredShare::open(dir.path(), clock.clock()).map(drop).unwrap_err().to_string();
    // Nobody misses one whose merge had not ended.
    let is_named =
        |table: &&PathBuf| refused.contains(table.file_name().unwrap().to_str().unwrap());
    let named = tables.iter().filter(is_named).count();
    assert!(named > 0, "{refused}");
    let share =
        StoredShare::opened(dir.path(), clock.clock(), None, MissingParts::Accepted).unwrap();
    clock.pass(LEASE);
    assert_eq!(share.lacks().len(), named);
    world.line.lead(Some(Arc::new(share)));
    let (client, _) = world.client();
    let gone = lost(&client, |index| index + 2);
    assert!((1..USED as usize).contains(&gone.len()), "{}", gone.len());
    (0..600).for_each(|at| drop(client.carry_out(&[write(USED + at % 50, at)]).unwrap()));
    assert_eq!(lost(&client, |index| index + 2), gone);
    client.close().unwrap();
}

/// A file is read, or it is named; and `check` names those that are lost, and goes on.
#[test]
fn damaged_files_are_named_and_the_others_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let new = NewShared { block_bytes: 1024, capacity_bytes: 1 << 20, kdf: KdfParams::TEST };
    let share: Arc<dyn Share> = Arc::new(started(dir.path()));
    let keyed = create(&*share, &new, &Passphrase::new("correct horse")).unwrap();
    let world = World { line: Line::to(share), keyed };
    let mounted = || {
        let files = Arc::new(ClientFiles::new(world.client().0).unwrap());
        let options = FsOptions { strict: true, ..FsOptions::default() };
        let fs = PrivateFs::new(Arc::clone(&files) as _, environment(), options).unwrap();
        (files, fs)
    };
    let content = |number: u64| vec![number as u8; 3000];
    let (files, fs) = mounted();
    fs.create_root(node(0o755)).unwrap();
    for number in 0..USED {
        let file = fs.create(ROOT, format!("file-{number}").as_bytes(), node(0o644)).unwrap();
        fs.open(file.id).unwrap();
        fs.write(file.id, 0, &content(number)).unwrap();
        fs.close(file.id).unwrap();
    }
    drop(fs);
    files.close().unwrap();
    // Bits that hit no block of a file, only empty slots and old copies, are followed by more.
    let mut rng = SplitMix64::new(9);
    let (files, fs, whole, named) = (0..10)
        .map(|_| {
            world.line.lead(None);
            flip(dir.path(), 30, &mut rng);
            world.line.lead(Some(Arc::new(started(dir.path()))));
            let (files, fs) = mounted();
            let (whole, named) = read_files(&fs, &content);
            (files, fs, whole, named)
        })
        .find(|it| it.3 > 0)
        .expect("300 bits hit a file");
    println!("{whole} files are whole, {named} are lost or damaged");
    assert!(whole >= 60, "{whole} {named}");
    let found = fs.check_data().unwrap();
    assert!(found.problems.len() >= named / 2, "{named} files: {:?}", found.problems);
    assert!(found.files as usize + named >= USED as usize, "it goes on");
    drop(fs);
    files.close().unwrap();
}

/// How many files are whole, and how many are named as lost.
fn read_files(fs: &PrivateFs, content: &dyn Fn(u64) -> Vec<u8>) -> (usize, usize) {
    let (mut whole, mut named) = (0, 0);
    for number in 0..USED {
        let read = fs
            .lookup(ROOT, format!("file-{number}").as_bytes())
            .and_then(|file| fs.read(file.id, 0, 4000));
        match read {
            Ok(bytes) => {
                assert_eq!(bytes, content(number), "file {number}");
                whole += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains("lost to damage"), "{error}");
                named += 1;
            }
        }
    }
    (whole, named)
}

/// A sector of a disk that is lost fails, and the others are read. A part that is written into it
/// is refused once, and whatever else waits is written.
#[test]
fn lost_blocks_of_a_disk_fail_alone_and_are_healed_by_a_write() {
    assert!((0..10).any(|_| damaged_disk().is_some()), "no try hit what it was to hit");
}

/// `None` if the bits that are flipped hit the block of the claim, or none that was written.
fn damaged_disk() -> Option<()> {
    let dir = tempfile::tempdir().unwrap();
    let world = World::over(Arc::new(started(dir.path())));
    make(world.client().0, USED * 256).unwrap();
    let open = || {
        let claim = Claim { computer: [1; 16], take_over: true };
        SharedDisk::open(world.client().0, claim, Arc::default())
    };
    let shared = open().unwrap();
    let mut disk = shared.disk().unwrap();
    for round in 0..3 {
        for block in 0..USED {
            disk.write(block * 256, &[block as u8 + round; 256]).unwrap();
        }
        disk.flush().unwrap();
    }
    drop(disk);
    shared.close().unwrap();
    world.line.lead(None);
    flip(dir.path(), 30, &mut SplitMix64::new(5));
    world.line.lead(Some(Arc::new(started(dir.path()))));
    let shared = match open() {
        Err(Error::Lost(_)) => return None,
        shared => shared.unwrap(),
    };
    let mut disk = shared.disk().unwrap();
    let is_lost = |disk: &mut Disk, block: u64| match disk.read_many(&[(block * 256, 256)]) {
        Ok(read) => {
            assert_eq!(read[0], [block as u8 + 2; 256], "block {block}");
            false
        }
        Err(error) => {
            assert!(matches!(error, Error::Lost(_)), "{error}");
            true
        }
    };
    let lost: Vec<u64> = (0..USED).filter(|block| is_lost(&mut disk, *block)).collect();
    if lost.is_empty() {
        return None;
    }
    assert!(lost.len() <= 30, "{lost:?}");
    let whole = (0..USED).find(|block| !lost.contains(block)).unwrap();
    disk.write(lost[0] * 256 + 10, &[1; 20]).unwrap();
    disk.write(whole * 256, &[9; 256]).unwrap();
    let flushed = disk.flush();
    assert!(matches!(flushed, Err(Error::Lost(_))), "{flushed:?}");
    disk.flush().unwrap();
    assert_eq!(disk.read_many(&[(whole * 256, 256)]).unwrap()[0], [9; 256]);
    for block in lost {
        disk.write(block * 256, &[block as u8 + 2; 256]).unwrap();
        disk.flush().unwrap();
        assert!(!is_lost(&mut disk, block), "block {block}");
    }
    drop(disk);
    shared.close().unwrap();
    Some(())
}
