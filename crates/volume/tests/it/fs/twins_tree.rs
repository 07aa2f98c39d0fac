//! Second copies of metadata on a tree: a damaged bucket costs blocks of any kind.

use super::*;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{Held, MemoryStore, Store};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::scaled;
use oblivio_volume::{CreateOptions, OnShown, OpenOptions, Shown, ShownKind, Volume};
use std::sync::{Arc, Mutex};

const FILES: u64 = 120;

/// The map's groups are owed a path for as many requests (Freecursive §5.2.2).
const REQUESTS_FOR_A_PATH: u64 = 256;

/// What the store saw before the end of a session, as public numbers: the kind of each event, and
/// how many requests it served. The end goes on until it meets no damage any more, and the maker of
/// the damage sees that.
type Events = Vec<(ShownKind, u64)>;

fn passphrase() -> Passphrase {
    Passphrase::new("twins")
}

fn options(shown: &Arc<Mutex<Vec<Shown>>>) -> OpenOptions {
    let shown = Arc::clone(shown);
    let on_shown: OnShown = Box::new(move |event| shown.lock().expect("alone").push(event.clone()));
    OpenOptions { memory_bytes: 8 << 20, on_shown: Some(on_shown), ..OpenOptions::default() }
}

fn name(number: u64) -> String {
    format!("{number:04}{}", "-long".repeat(30))
}

fn filled() -> MemoryStore {
    let store = Arc::new(MemoryStore::new());
    let create =
        CreateOptions { block_bytes: 4096, capacity_bytes: 64 << 20, kdf: KdfParams::TEST };
    let shown = Arc::default();
    let volume = Volume::create(store.clone(), &passphrase(), create, options(&shown)).unwrap();
    let fs = FileSystem::format(Box::new(volume)).unwrap();
    for number in 0..FILES {
        put(&fs, ROOT_INO, &name(number), &vec![number as u8; 8192]).unwrap();
    }
    drop(fs.into_blocks().unwrap());
    store.snapshot()
}

/// A session that looks at everything. Gives what the store saw of it, and how many files' data
/// could be read; nothing if the metadata is lost.
fn session(store: &Arc<MemoryStore>) -> (Events, Option<u64>) {
    let shown: Arc<Mutex<Vec<Shown>>> = Arc::default();
    let opened: Arc<dyn Store> = store.clone();
    let Ok(mut volume) = Volume::open(opened, &passphrase(), options(&shown)) else {
        return (Events::new(), None);
    };
    let begun = volume.tree().expect("a tree").meters().requests;
    let mut before_end = 0;
    let look = || {
        let fs = FileSystem::open(Box::new(volume))?;
        let mut whole = 0;
        for number in 0..FILES {
            let ino = fs.lookup(ROOT_INO, name(number).as_bytes())?.ino;
            let handle = fs.open_file(ino)?;
            match fs.read(handle, 0, 8192) {
                Ok(data) => {
                    assert!(data == vec![number as u8; 8192], "file {number}");
                    whole += 1;
                }
                Err(error) => assert!(matches!(error, Error::Lost(_)), "{error}"),
            }
            fs.close(handle)?;
        }
        before_end = shown.lock().expect("alone").len();
        fs.into_blocks()?;
        Ok::<_, Error>(whole)
    };
    let whole = look();
    assert!(matches!(whole, Ok(_) | Err(Error::Lost(_))), "{whole:?}");
    let shown = shown.lock().expect("alone");
    let mut so_far = begun;
    let served = |event: &Shown| {
        // Beside the schedule's paths and those that the groups are owed.
        let paths = (event.leaves.len() - event.scheduled) as u64;
        let owed = |served| (so_far + served) / REQUESTS_FOR_A_PATH - so_far / REQUESTS_FOR_A_PATH;
        let requests = (0..=paths).find(|served| served + owed(*served) == paths);
        so_far += requests.expect("as many paths as the rule says");
        (event.kind, requests.unwrap_or(0))
    };
    let events = shown.iter().take(before_end).map(served).collect();
    (events, whole.ok())
}

/// These events, if damage is met at one of them: from then on as many reads follow each batch,
/// whatever was in the damaged bucket.
fn after_damage(usual: &Events, met: usize) -> Events {
    let times = |at, kind| if at >= met && kind == ShownKind::Batch { 2 } else { 1 };
    let events = usual.iter().enumerate();
    events.flat_map(|(at, event)| std::iter::repeat_n(*event, times(at, event.0))).collect()
}

/// All names are there as long as one bucket does not carry both copies. What the store sees of
/// reads follows from where damage was met, and from nothing else.
#[test]
fn a_damaged_bucket_hides_no_name_and_tells_nothing() {
    let whole = filled();
    let (usual, read) = session(&Arc::new(whole.snapshot()));
    assert_eq!(read, Some(FILES));
    let slabs: Vec<(String, u64)> = whole.list().expect("memory");
    let slabs = slabs.into_iter().filter(|(object, len)| object.starts_with("slab") && *len > 0);
    let slabs: Vec<(String, u64)> = slabs.collect();
    let (mut without, mut met, mut damaged) = (0, 0, 0);
    let trials = scaled(60);
    for seed in 0..trials {
        let mut dice = Dice::new(seed);
        let store = Arc::new(whole.snapshot());
        let (object, len) = &slabs[dice.index(slabs.len())];
        store.corrupt(object, dice.below(*len), |byte| *byte ^= 1).expect("in range");
        let (events, read) = session(&store);
        let Some(read) = read else {
            without += 1;
            continue;
        };
        damaged += u64::from(read < FILES);
        if events == usual {
            continue;
        }
        met += 1;
        let follows = (0..usual.len()).any(|at| events == after_damage(&usual, at));
        assert!(follows, "seed {seed}: {events:?} is not {usual:?} with damage met somewhere");
        // The end of the session wrote the metadata anew.
        let (_, read) = session(&store);
        assert!(read.is_some(), "seed {seed}: the next session");
    }
    println!("{trials}: {met} met, {damaged} with lost files, {without} without names");
    assert!(met > trials / 4 && without * 10 < trials, "{met} met, {without} without names");
}
