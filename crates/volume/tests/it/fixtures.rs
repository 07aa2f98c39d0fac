//! One tiny volume of each kind stays for ever and must open for ever: with each flag of the tree's
//! header, in windows, and on the sequential engine files and disks, clean and not, in a folder and
//! in one file.
//!
//! `just fixtures DIR` makes new ones. docs/format.md describes each.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::sequential::SequentialConfig;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::partition::{Existing, PartitionPlace};
use oblivio_store::{LocalStore, PartitionStore, Store};
use oblivio_volume::disk::Disk;
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::windows::{WindowOptions, WindowVolume};
use oblivio_volume::{
    BlockSpace, CreateOptions, HEADER_BYTES, HEADER_OBJECT, LaneParameters, LaneWait, OpenLane,
    OpenOptions, Volume,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BLOCK: usize = 1024;
const DISK: u64 = 32 << 10;
/// The offset of the flags in a header.
const FLAGS: usize = 12;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name)
}

/// A copy, because opening a volume writes to it.
fn copied(name: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (from, to) = (fixture(name), dir.path().join("v"));
    if from.is_file() {
        fs::copy(&from, &to).expect("copied");
        return (dir, to);
    }
    copy_all(&from, &to);
    (dir, to)
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in from.read_dir().expect("a folder") {
        let from = entry.expect("an entry").path();
        fs::copy(&from, to.join(from.file_name().expect("a name"))).expect("copied");
    }
}

fn passphrase() -> Passphrase {
    Passphrase::new("secret")
}

fn open(path: &Path) -> Volume {
    open_by(path, &passphrase())
}

fn open_by(path: &Path, passphrase: &Passphrase) -> Volume {
    let store: Arc<dyn Store> = match path.is_file() {
        true => Arc::new(PartitionStore::open(path).expect("a file")),
        false => Arc::new(LocalStore::open(path).expect("a folder")),
    };
    Volume::open(store, passphrase, OpenOptions::default()).expect("it opens")
}

/// Bytes that distinguish every place.
fn pattern(offset: u64, len: usize) -> Vec<u8> {
    let word = |at: u64| (at / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (offset..offset + len as u64).map(|at| word(at)[at as usize % 8]).collect()
}

/// Writes the content of every fixture with a disk: all of it, then zeros and others over parts.
fn fill_disk(disk: &mut Disk) {
    for offset in (0..DISK).step_by(8 << 10) {
        disk.write(offset, &pattern(offset, 8 << 10)).expect("written");
        disk.flush().expect("flushed");
    }
    disk.trim(8 << 10, 5000).expect("trimmed");
    disk.write(20_470, b"across a border of blocks").expect("written");
    disk.flush().expect("flushed");
}

fn expect_disk(disk: &mut Disk) {
    let mut expected = pattern(0, DISK as usize);
    // The whole blocks of the trimmed range.
    expected[8 << 10..12 << 10].fill(0);
    expected[20_470..20_495].copy_from_slice(b"across a border of blocks");
    assert_eq!(disk.size(), DISK);
    let found = disk.read_many(&[(0, DISK as usize)]).expect("it reads");
    assert!(found[0] == expected, "the disk holds something else");
}

fn fill_files(fs: &FileSystem) {
    let folder = fs.mkdir(ROOT_INO, b"folder", NewNode::default()).expect("a directory");
    let files =
        [(ROOT_INO, "small.txt", b"a small file\n".to_vec()), (folder.ino, "large", large())];
    for (parent, name, content) in files {
        let made = fs.create(parent, name.as_bytes(), NewNode::default());
        let (_, handle) = made.expect("a file");
        fs.write(handle, 0, &content).expect("written");
        fs.close(handle).expect("closed");
    }
    fs.symlink(ROOT_INO, b"link", b"folder/large", NewNode::default()).expect("a link");
}

fn large() -> Vec<u8> {
    pattern(7, 10_000)
}

fn expect_files(fs: &FileSystem) {
    let report = fs.check_with(true, &mut |_, _| {}).expect("it can be checked");
    assert_eq!(report.problems, Vec::<String>::new());
    for (path, content) in [("/small.txt", b"a small file\n".to_vec()), ("/folder/large", large())]
    {
        let attr = fs.resolve(path).expect("it is there");
        let handle = fs.open_file(attr.ino).expect("it opens");
        assert!(fs.read(handle, 0, 1 << 20).expect("it reads") == content, "{path}");
        fs.close(handle).expect("closed");
    }
    let link = fs.resolve("/link").expect("it is there");
    assert_eq!(fs.read_link(link.ino).expect("a link"), b"folder/large");
}

/// A fixture with a disk opens, has the written content, and accepts more.
fn disk_opens(name: &str, flags: u32) {
    let (_dir, path) = copied(name);
    if path.is_dir() {
        let header = fs::read(path.join(HEADER_OBJECT)).expect("the header");
        assert_eq!(header[FLAGS..FLAGS + 4], flags.to_le_bytes(), "another header");
    }
    let mut volume = open(&path);
    volume.verify(&mut |_, _| {}).expect("all is as it was written");
    let mut disk = Disk::open(Box::new(volume)).expect("a disk");
    expect_disk(&mut disk);
    disk.write(25_000, b"new").expect("written");
    drop(disk.into_blocks().expect("a clean end"));
    let mut disk = Disk::open(Box::new(open(&path))).expect("a disk");
    assert_eq!(disk.read_many(&[(25_000, 3)]).expect("it reads"), [b"new"]);
}

#[test]
fn trees_with_each_flag() {
    disk_opens("flags-1", 1);
    disk_opens("flags-2", 2);
    disk_opens("flags-3", 3);
}

#[test]
fn sequential_disks() {
    disk_opens("sequential-disk", 0);
    disk_opens("sequential-map-on-disk", 0);
    disk_opens("sequential-one-file", 0);
}

/// Left in the middle of a turn: synced data is in the log only, access times are lost.
#[test]
fn sequential_disks_without_a_clean_end() {
    for name in ["sequential-interrupted", "sequential-map-on-disk-interrupted"] {
        let (_dir, path) = copied(name);
        let replayed = open(&path).info().expect("it can be told").replayed;
        assert!(replayed > 0, "{name}: nothing was to be made again");
        disk_opens(name, 0);
    }
}

/// Commits with tables of computers, and a log that names the author of each act.
#[test]
fn volumes_with_tables() {
    disk_opens("tables", 2);
    disk_opens("sequential-tables", 1);
    for (name, flags) in [("tables-interrupted", 2), ("sequential-tables-interrupted", 1)] {
        let (_dir, path) = copied(name);
        let journal = fs::metadata(path.join("journal")).map_or(0, |found| found.len());
        let volume = open(&path);
        // Syncs in the journal of a tree are no batches.
        let replayed = volume.info().expect("it can be told").replayed;
        assert!(replayed > 0 || journal > 0, "{name}: nothing to replay");
        assert!(volume.known().newest.is_some(), "{name}: a table leads on from it");
        disk_opens(name, flags);
    }
}

/// Two objects have the states; then, each quantum of the log has parity.
#[test]
fn sequential_volumes_with_two_of_what_is_small() {
    for (name, flags) in [("sequential-two-states", 3), ("sequential-parity", 7)] {
        disk_opens(name, flags);
        let interrupted = format!("{name}-interrupted");
        let (_dir, path) = copied(&interrupted);
        assert!(open(&path).info().expect("it can be told").replayed > 0, "nothing to replay");
        disk_opens(&interrupted, flags);
    }
}

/// A lane is written beside the volume.
#[test]
fn a_sequential_volume_with_a_lane() {
    disk_opens("sequential-lanes", 15);
    let (_dir, path) = copied("sequential-lanes");
    let volume = open(&path);
    assert_eq!(volume.damaged(), [], "the lane's state is the one that the volume names");
    drop(volume);
    let mut volume = open_by(&path, &hidden());
    let OpenLane { mut space, .. } = volume.lane(0, LaneWait::default()).expect("it is open");
    let read = |id| BlockOp { id: BlockId(id), action: Action::Read };
    let answers = space.access((0..HIDDEN).map(read).collect()).expect("they were carried");
    for (id, block) in answers.into_iter().enumerate() {
        assert_eq!(block.expect("it was written")[..64], [id as u8; 64]);
    }
}

/// An older volume has parity in its log with its next write: then any one page of it may be
/// damaged.
#[test]
fn older_volumes_take_parity() {
    for name in ["sequential-disk", "sequential-map-on-disk-interrupted", "sequential-two-states"] {
        let (_dir, path) = copied(name);
        let mut disk = Disk::open(Box::new(open(&path))).expect("a disk");
        for offset in (0..DISK).step_by(4 << 10) {
            disk.write(offset, &pattern(offset, 4 << 10)).expect("written");
            disk.flush().expect("flushed");
        }
        // No clean end: the newest writes are in the log only.
        drop(disk);
        let log = fs::read(path.join("log")).expect("the log");
        let mut met = 0;
        for page in (0..log.len()).step_by(4096) {
            let damaged = path.with_extension(page.to_string());
            copy_all(&path, &damaged);
            let mut bytes = log.clone();
            bytes[page + page / 99 % 4096] ^= 4;
            fs::write(damaged.join("log"), bytes).expect("written");
            let volume = open(&damaged);
            met += usize::from(!volume.damaged().is_empty());
            let mut disk = Disk::open(Box::new(volume)).expect("a disk");
            let found = disk.read_many(&[(0, DISK as usize)]).expect("it reads");
            assert!(found[0] == pattern(0, DISK as usize), "{name}, page at {page}");
        }
        assert!(met > 3, "{name}: {met} pages are in use");
    }
}

/// The first state that says so is lost, and the one before does not: the log is read nevertheless.
#[test]
fn quanta_with_parity_are_read_whatever_the_state_says() {
    for name in ["sequential-disk", "sequential-two-states"] {
        let (_dir, path) = copied(name);
        let before = open(&path).info().expect("it can be told").epoch;
        let mut disk = Disk::open(Box::new(open(&path))).expect("a disk");
        disk.write(3_000, b"the newest").expect("written");
        disk.flush().expect("flushed");
        // No clean end: what was written is in the log only.
        drop(disk);
        for state in ["state", "state-2"].map(|name| path.join(name)) {
            let Ok(mut bytes) = fs::read(&state) else { continue };
            let at = (before as usize + 1) % 2 * bytes.len() / 2;
            bytes[at + 99] ^= 4;
            fs::write(state, bytes).expect("written");
        }
        let volume = open(&path);
        assert_eq!(volume.info().expect("it can be told").epoch, before, "{name}");
        let mut disk = Disk::open(Box::new(volume)).expect("a disk");
        assert_eq!(disk.read_many(&[(3_000, 10)]).expect("it reads"), [b"the newest"], "{name}");
    }
}

/// An older volume has second copies of what is small after its next commit, and says of none that
/// it is missing.
#[test]
fn older_volumes_take_second_copies() {
    let trees = ["flags-1", "flags-2", "flags-3", "tables", "tables-interrupted"];
    let others = ["sequential-disk", "sequential-tables-interrupted", "windows"];
    for name in trees.into_iter().chain(others) {
        let (_dir, path) = copied(name);
        let mut volume = open(&path);
        assert_eq!(volume.damaged(), [], "{name}");
        volume.finish().expect("a commit");
        assert_eq!(volume.damaged(), [], "{name}");
        drop(volume);
        let mut small = vec!["header", "header-2"];
        if trees.contains(&name) {
            small.extend(["commit", "commit-2", "state-0", "state-1"]);
        }
        for object in small {
            let whole = path.join(object);
            let kept = fs::read(&whole).unwrap_or_else(|error| panic!("{name}, {object}: {error}"));
            fs::remove_file(&whole).expect("removed");
            let mut volume = open(&path);
            volume.finish().expect("a commit");
            let said = volume.damaged();
            assert!(said.iter().any(|place| place.object == object), "{name}, {object}: {said:?}");
            drop(volume);
            let now = fs::metadata(&whole).expect("it is there again").len();
            assert!(now > 0 && !kept.is_empty(), "{name}, {object}");
        }
    }
    // There is no place for a second header in a file that was made without.
    let (_dir, path) = copied("sequential-one-file");
    for _ in 0..2 {
        let mut volume = open(&path);
        volume.finish().expect("a clean end");
        assert_eq!(volume.damaged(), []);
    }
}

/// An older volume takes a table with its next commit, if its state has room for one.
#[test]
fn older_volumes_take_a_table() {
    let with_room = ["flags-1", "flags-2", "flags-3", "sequential-disk", "sequential-one-file"];
    for name in with_room {
        let (_dir, path) = copied(name);
        let volume = open(&path);
        assert_eq!(volume.known().newest, None, "{name}");
        let mut disk = Disk::open(Box::new(volume)).expect("a disk");
        disk.write(25_000, b"new").expect("written");
        drop(disk.into_blocks().expect("a clean end"));
        assert!(open(&path).known().newest.is_some(), "{name}: it has one now");
    }
}

#[test]
fn sequential_files() {
    let (_dir, path) = copied("sequential-files");
    let mut volume = open(&path);
    volume.verify(&mut |_, _| {}).expect("all is as it was written");
    let fs = FileSystem::open(Box::new(volume)).expect("files");
    expect_files(&fs);
    fs.mkdir(ROOT_INO, b"new", NewNode::default()).expect("a directory");
    drop(fs.into_blocks().expect("a clean end"));
    let fs = FileSystem::open(Box::new(open(&path))).expect("files");
    fs.resolve("/new").expect("it is there");
    expect_files(&fs);
}

/// Each chunk of the metadata has a second copy: version 3 of the root.
#[test]
fn files_with_metadata_twins() {
    let (_dir, path) = copied("metadata-twins");
    let mut volume = open(&path);
    volume.verify(&mut |_, _| {}).expect("all is as it was written");
    assert!(volume.root().starts_with(b"OblivFS\0\x03\0"), "another root");
    let twins = volume.root()[32..].chunks_exact(16).any(|run| run[15] >> 7 == 1);
    assert!(twins, "no run has twins");
    let fs = FileSystem::open(Box::new(volume)).expect("files");
    expect_files(&fs);
    fs.mkdir(ROOT_INO, b"new", NewNode::default()).expect("a directory");
    drop(fs.into_blocks().expect("a clean end"));
    let fs = FileSystem::open(Box::new(open(&path))).expect("files");
    fs.resolve("/new").expect("it is there");
    expect_files(&fs);
}

/// Left without a clean end, after a commit and a sync.
#[test]
fn trees_in_windows() {
    disk_opens("windows", 0);
}

// ---- how they are made

/// Small levels: four, some of whose generations are in use.
fn small(blocks: u64) -> SequentialOptions {
    let engine = SequentialConfig {
        bucket_blocks: 8,
        queue_buckets: 1,
        fan_out: 3,
        sector_bytes: 512,
        ..SequentialConfig::new(BLOCK, blocks)
    };
    SequentialOptions { quantum_writes: 6, log_quanta: 12, ..SequentialOptions::of(engine) }
}

/// With the map on the disk, a bucket has room for a page of it.
fn with_map_on_disk(mut options: SequentialOptions) -> SequentialOptions {
    options.engine.time_pages = 1;
    options
}

fn create(store: Arc<dyn Store>, options: SequentialOptions) -> Volume {
    let (kdf, open) = (KdfParams::TEST, OpenOptions::default());
    let quiet = &mut |_, _| {};
    let made = SequentialVolume::create(store, &passphrase(), kdf, options, open, quiet);
    made.expect("a volume").into()
}

/// Formats a disk and fills it, with or without a clean end.
fn make_disk(volume: Volume, clean: bool) {
    let mut disk = Disk::format(Box::new(volume), DISK).expect("a disk");
    fill_disk(&mut disk);
    if clean {
        drop(disk.into_blocks().expect("a clean end"));
    }
}

/// What opens the lane of the fixture that has one.
fn hidden() -> Passphrase {
    Passphrase::new("battery staple")
}

/// Blocks in that lane.
const HIDDEN: u64 = 3;

#[test]
#[ignore = "long: makes new fixtures"]
fn long_new_fixtures() {
    let dir = PathBuf::from(std::env::var("OBLIVIO_WRITE_FIXTURES").expect("a folder to make"));
    let folder = |name: &str| -> Arc<dyn Store> {
        Arc::new(LocalStore::create(dir.join(name)).expect("a new folder"))
    };
    let blocks = DISK / BLOCK as u64;
    let tree = CreateOptions { block_bytes: BLOCK, capacity_bytes: DISK, kdf: KdfParams::TEST };
    let tree = Volume::create(folder("flags-2"), &passphrase(), tree, OpenOptions::default());
    make_disk(tree.expect("a volume"), true);
    make_disk(create(folder("sequential-disk"), small(blocks)), true);
    make_disk(create(folder("sequential-interrupted"), small(blocks)), false);
    let mapped = with_map_on_disk(small(blocks));
    make_disk(create(folder("sequential-map-on-disk"), mapped), true);
    make_disk(create(folder("sequential-map-on-disk-interrupted"), mapped), false);

    let windows = WindowOptions {
        object_bytes: 16 * BLOCK,
        pool_bytes: 28 * BLOCK,
        ..WindowOptions::new(BLOCK, DISK, true)
    };
    let (kdf, opening, to) = (KdfParams::TEST, OpenOptions::default(), folder("windows"));
    let made = WindowVolume::create(to, &passphrase(), kdf, windows, opening);
    make_disk(made.expect("a volume").into(), false);

    let objects = small(blocks).objects().expect("sound parameters");
    let fixed = objects.iter().map(|(name, bytes)| PartitionPlace::fixed(name, *bytes));
    let header = PartitionPlace::new(HEADER_OBJECT, HEADER_BYTES as u64);
    let places: Vec<_> = [header].into_iter().chain(fixed).collect();
    let one = dir.join("sequential-one-file");
    let one = PartitionStore::create(&one, &places, Existing::Refuse).expect("a new file");
    make_disk(create(Arc::new(one), small(blocks)), true);

    for (name, clean) in [("tables", true), ("tables-interrupted", false)] {
        let tree = CreateOptions { block_bytes: BLOCK, capacity_bytes: DISK, kdf: KdfParams::TEST };
        let tree = Volume::create(folder(name), &passphrase(), tree, OpenOptions::default());
        make_disk(tree.expect("a volume"), clean);
        let sequential = name.replace("tables", "sequential-parity");
        make_disk(create(folder(&sequential), small(blocks)), clean);
    }

    let lanes = Some(LaneParameters { guess: 3, ..LaneParameters::default() });
    let beside = SequentialOptions { lanes, ..small(blocks) };
    let mut volume = create(folder("sequential-lanes"), beside);
    volume.give_lane(0, &hidden()).expect("it has a lane");
    let OpenLane { mut space, .. } = volume.lane(0, LaneWait::default()).expect("it is open");
    let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; 64]) };
    space.access((0..HIDDEN).map(write).collect()).expect("they wait");
    make_disk(volume, true);

    // So large that metadata takes second copies.
    let tree = CreateOptions { block_bytes: BLOCK, capacity_bytes: 8 << 20, kdf: KdfParams::TEST };
    let to = folder("metadata-twins");
    let tree = Volume::create(to, &passphrase(), tree, OpenOptions::default());
    let files = FileSystem::format(Box::new(tree.expect("a volume"))).expect("files");
    fill_files(&files);
    drop(files.into_blocks().expect("a clean end"));

    let files = FileSystem::format(Box::new(create(folder("sequential-files"), small(1024))));
    let files = files.expect("files");
    fill_files(&files);
    drop(files.into_blocks().expect("a clean end"));
}
