//! What every engine must do, run through each: it is a map of blocks, a crash leaves a commit or
//! later, damage is found, and files live on it.

use super::linear::{LINEAR, LinearVolume};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::sequential::SequentialConfig;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{Held, MemoryStore, ReadAt, Slots, Store, WriteAt};
use oblivio_testkit::campaign::every;
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::extents::{ExtentOptions, ExtentVolume};
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::windows::{WindowOptions, WindowVolume};
use oblivio_volume::{
    BlockSpace, ClosedVolume, CreateOptions, ENGINES, EngineEntry, OpenOptions, PARAMETER_BYTES,
    Parameters, Result, Volume,
};
use std::sync::Arc;

const BYTES: usize = 4096;
/// Blocks that the workloads use.
const BLOCKS: u64 = 40;

pub fn passphrase() -> Passphrase {
    Passphrase::new("every engine")
}

/// The product's engines, and the one added here.
fn engines() -> Vec<&'static EngineEntry> {
    ENGINES.iter().copied().chain([&LINEAR]).collect()
}

fn options() -> OpenOptions {
    OpenOptions { memory_bytes: 8 << 20, ..OpenOptions::default() }
}

fn create(engine: &EngineEntry, store: Arc<dyn Store>) -> Volume {
    let capacity_bytes = 255 * BYTES as u64;
    let kdf = KdfParams::TEST;
    let made = match engine.number {
        1 => {
            let create = CreateOptions { block_bytes: BYTES, capacity_bytes, kdf };
            Volume::create(store, &passphrase(), create, options())
        }
        2 => {
            let config = SequentialConfig {
                bucket_blocks: 4,
                queue_buckets: 2,
                sector_bytes: 512,
                ..SequentialConfig::new(BYTES, 255)
            };
            let (create, quiet) = (SequentialOptions::of(config), &mut |_, _| {});
            SequentialVolume::create(store, &passphrase(), kdf, create, options(), quiet)
                .map(Volume::from)
        }
        4 => {
            // Windows of four turns, and three levels in the pool.
            let create = WindowOptions {
                object_bytes: 16 * BYTES,
                pool_bytes: 28 * BYTES,
                ..WindowOptions::new(BYTES, capacity_bytes, true)
            };
            WindowVolume::create(store, &passphrase(), kdf, create, options()).map(Volume::from)
        }
        5 => {
            let config = SequentialConfig {
                bucket_blocks: 4,
                queue_buckets: 2,
                sector_bytes: 512,
                ..SequentialConfig::new(BYTES, 255)
            };
            let sequential = SequentialOptions::of(config);
            let (create, quiet) =
                (ExtentOptions { sequential, extent_bytes: 64 << 10 }, &mut |_, _| {});
            ExtentVolume::create(store, &passphrase(), kdf, create, options(), quiet)
                .map(Volume::from)
        }
        _ => {
            let mut own = [0; PARAMETER_BYTES];
            own[0] = 255;
            let parameters = Parameters { flags: 0, block_bytes: BYTES as u32, own };
            LinearVolume::create(store, &passphrase(), (&parameters, kdf), options())
        }
    };
    made.expect("an empty store")
}

fn open(store: Arc<dyn Store>) -> Result<Volume> {
    ClosedVolume::read_on(store, &engines())?.open(&passphrase(), options())
}

type Model = Vec<Option<Vec<u8>>>;

fn read_all(volume: &mut Volume) -> Result<Model> {
    let read = |id| BlockOp { id: BlockId(id), action: Action::Read };
    volume.access((0..BLOCKS).map(read).collect())
}

fn any_op(dice: &mut Dice) -> BlockOp {
    let action = match dice.below(4) {
        0 => Action::Write(dice.bytes(BYTES)),
        1 => Action::Patch { offset: dice.index(BYTES - 8), bytes: dice.bytes(8) },
        2 => Action::Remove,
        _ => Action::Read,
    };
    BlockOp { id: BlockId(dice.below(BLOCKS)), action }
}

fn serve(model: &mut Model, op: &BlockOp) -> Option<Vec<u8>> {
    let block = &mut model[op.id.0 as usize];
    match &op.action {
        Action::Read => return block.clone(),
        Action::Remove => *block = None,
        writes => writes.write_to(block.get_or_insert_with(|| vec![0; BYTES])),
    }
    None
}

#[test]
fn an_engine_is_a_map_of_blocks() {
    for engine in engines() {
        let (store, mut dice) = (Arc::new(MemoryStore::new()), Dice::new(1));
        let mut volume = create(engine, store.clone());
        volume.reserve(BLOCKS).expect("room");
        let mut model = vec![None; BLOCKS as usize];
        for step in 0..60 {
            let ops: Vec<_> = (0..1 + dice.below(8)).map(|_| any_op(&mut dice)).collect();
            let expected: Vec<_> = ops.iter().map(|op| serve(&mut model, op)).collect();
            assert_eq!(volume.access(ops).expect("memory"), expected, "{engine:?}");
            volume.set_root(&[step]);
            if step % 9 == 8 {
                volume.commit().expect("memory");
                drop(volume);
                volume = open(store.clone()).expect("sound");
                assert_eq!(volume.root(), [step], "{engine:?}");
            }
        }
        assert_eq!(read_all(&mut volume).expect("sound"), model, "{engine:?}");
        volume.verify(&mut |_, _| {}).expect("sound");
        assert_eq!(volume.info().expect("memory").engine, engine);
    }
}

/// Some batches and commits; the contents after each operation, and how many were committed.
fn work(volume: &mut Volume, contents: &mut Vec<Model>, committed: &mut usize) -> Result<()> {
    let mut dice = Dice::new(2);
    for batch in 0..6 {
        let ops: Vec<_> = (0..4).map(|_| any_op(&mut dice)).collect();
        // They may be there although the call failed, or only the first ones.
        for op in &ops {
            let mut model = contents[contents.len() - 1].clone();
            serve(&mut model, op);
            contents.push(model);
        }
        volume.access(ops)?;
        if batch % 2 == 1 {
            volume.commit()?;
            *committed = contents.len() - 1;
        }
    }
    Ok(())
}

#[test]
fn a_crash_leaves_the_last_commit_or_later() {
    for engine in engines() {
        let disk = Arc::new(MemoryStore::new());
        let mut volume = create(engine, disk.clone());
        volume.reserve(BLOCKS).expect("room");
        volume.finish().expect("memory");
        drop(volume);
        for cut in (0..).step_by(every(3)) {
            let store = Arc::new(CrashStore::holding(&disk));
            let (mut contents, mut committed) = (vec![vec![None; BLOCKS as usize]], 0);
            store.crash_after(cut);
            let done = open(store.clone())
                .and_then(|mut volume| work(&mut volume, &mut contents, &mut committed));
            store.crash();
            for seed in 0..3 {
                let left = Arc::new(store.survivors(seed));
                let mut volume = open(left).unwrap_or_else(|error| panic!("{engine:?}: {error}"));
                let found = read_all(&mut volume).expect("sound");
                assert!(contents[committed..].contains(&found), "{engine:?}, cut {cut}");
            }
            if done.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn a_changed_byte_is_found_or_does_no_harm() {
    for engine in engines() {
        let disk = Arc::new(MemoryStore::new());
        let mut volume = create(engine, disk.clone());
        volume.reserve(BLOCKS).expect("room");
        let (mut contents, mut committed) = (vec![vec![None; BLOCKS as usize]], 0);
        work(&mut volume, &mut contents, &mut committed).expect("memory");
        volume.finish().expect("memory");
        drop(volume);
        let (mut dice, mut found) = (Dice::new(3), 0);
        for (object, len) in disk.list().expect("memory").into_iter().filter(|it| it.1 > 0) {
            for _ in 0..12 {
                let (left, offset) = (disk.snapshot(), dice.below(len));
                let mut byte = [0];
                left.read(&mut [ReadAt { object: &object, offset, buf: &mut byte }])
                    .expect("in it");
                left.write(&[WriteAt::new(&object, offset, &[byte[0] ^ 1])]).expect("memory");
                let read = open(Arc::new(left)).and_then(|mut volume| {
                    let healed = !volume.damaged().is_empty();
                    volume.finish()?;
                    volume.verify(&mut |_, _| {})?;
                    Ok((read_all(&mut volume)?, healed))
                });
                match read {
                    Err(_) => found += 1,
                    Ok((read, healed)) => {
                        assert_eq!(Some(&read), contents.last(), "{engine:?} {object}");
                        found += u32::from(healed);
                    }
                }
            }
        }
        assert!(found >= 10, "{engine:?}: {found}");
    }
}

/// Writes files, ends the session, and finds them again.
pub fn holds_files(volume: Volume, open: impl FnOnce() -> Volume) {
    let fs = FileSystem::format(Box::new(volume)).expect("room");
    let content = |file: u8| vec![file; 700 * usize::from(file)];
    for file in 0..12 {
        let name = [b'a' + file];
        let node = NewNode { mode: 0o600, ..NewNode::default() };
        let (_, handle) = fs.create(ROOT_INO, &name, node).expect("room");
        fs.write(handle, 0, &content(file)).expect("room");
        fs.close(handle).expect("open");
    }
    fs.unlink(ROOT_INO, b"c").expect("there");
    fs.commit().expect("a store");
    drop(fs.into_blocks().expect("a store"));
    let fs = FileSystem::open(Box::new(open())).expect("sound");
    for file in (0..12).filter(|&file| file != 2) {
        let attr = fs.lookup(ROOT_INO, &[b'a' + file]).expect("there");
        let handle = fs.open_file(attr.ino).expect("there");
        assert_eq!(fs.read(handle, 0, 10_000).expect("sound"), content(file));
    }
    assert!(fs.lookup(ROOT_INO, b"c").is_err());
    assert!(fs.check().expect("sound").problems.is_empty());
}

#[test]
fn an_engine_holds_files() {
    for engine in engines() {
        let store = Arc::new(MemoryStore::new());
        let volume = create(engine, store.clone());
        holds_files(volume, || open(store).expect("sound"));
    }
}

/// A registry that does not name an engine refuses its volumes.
#[test]
fn an_engine_that_nobody_registered_is_refused() {
    let store = Arc::new(MemoryStore::new());
    drop(create(&LINEAR, store.clone()));
    let error = Volume::open(store, &passphrase(), options()).map(drop).expect_err("unknown");
    assert!(error.to_string().contains("engine 65535 is not known"), "{error}");
}
