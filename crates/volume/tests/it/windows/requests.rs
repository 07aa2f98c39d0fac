//! What the `cat` of a small file asks of a store far away: how many requests, and how many of
//! these wait for one another.

use super::passphrase;
use oblivio_crypto::KdfParams;
use oblivio_store::record::{CallKind, StoreEvent};
use oblivio_store::{
    AnyStore, Capabilities, Held, Layer, MemoryStore, Objects, PutMode, ReadAt, RecordStore,
    Result, StoreAnswer, StoreCall,
};
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::windows::{WindowOptions, WindowVolume};
use oblivio_volume::{CacheOptions, ClosedVolume, Environment, MemoryKeeper, OpenOptions, Volume};
use std::collections::HashMap;
use std::sync::Arc;

/// Where a search begins that knows nothing.
const HINT: &str = "n-newest";
/// Bytes of the file.
const FILE: usize = 200 << 10;

/// A memory that is far away: it has whole objects, as a service has.
struct Far(MemoryStore);

impl Layer for Far {
    type Below = MemoryStore;

    fn below(&self) -> &MemoryStore {
        &self.0
    }

    fn can(&self) -> Capabilities {
        Capabilities { creates_exclusively: true, writes_over: false }
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        match call {
            StoreCall::Begin(objects) => {
                let mut put = objects.iter();
                put.try_for_each(|(name, bytes)| self.0.put(name, bytes, PutMode::Replace))?;
                Ok(StoreAnswer::Done)
            }
            StoreCall::Settle(_) => Ok(StoreAnswer::Done),
            call => call.on(&self.0),
        }
    }
}

/// A computer: what it knows, and its disk cache.
struct Computer {
    keeper: MemoryKeeper,
    cache: Arc<MemoryStore>,
    seed: u64,
}

impl Computer {
    fn new(seed: u64) -> Self {
        Self { keeper: MemoryKeeper::default(), cache: Arc::default(), seed }
    }

    fn options(&mut self) -> OpenOptions {
        self.seed += 1;
        OpenOptions {
            keeper: Some(Box::new(self.keeper.clone())),
            cache: Some(CacheOptions { store: self.cache.clone(), bytes: 1 << 30 }),
            environment: Environment::from_seed(self.seed),
            on_wait: Some(Box::new(|_| true)),
            ..OpenOptions::default()
        }
    }
}

type Store = Arc<RecordStore<Far>>;

/// A store with a volume that holds one file.
fn made(computer: &mut Computer) -> Store {
    let store = Arc::new(RecordStore::new(Far(MemoryStore::new())));
    let options = WindowOptions::new(32 << 10, 64 << 30, true);
    let (kdf, open) = (KdfParams::TEST, computer.options());
    let volume = WindowVolume::create(store.clone(), &passphrase(), kdf, options, open);
    let fs = FileSystem::format(Box::new(Volume::from(volume.expect("an empty store"))));
    let fs = fs.expect("room");
    let node = NewNode { mode: 0o600, ..NewNode::default() };
    let (_, handle) = fs.create(ROOT_INO, b"file", node).expect("room");
    fs.write(handle, 0, &vec![7; FILE]).expect("room");
    fs.close(handle).expect("room");
    fs.into_blocks().expect("memory");
    store
}

fn opened(store: &Store, computer: &mut Computer) -> FileSystem {
    let store: Arc<dyn Objects> = store.clone();
    let closed = ClosedVolume::read(AnyStore::from(store)).expect("a volume");
    let volume = closed.open(&passphrase(), computer.options()).expect("sound");
    FileSystem::open_ahead(Box::new(volume), 0).expect("sound")
}

fn read(fs: &FileSystem) {
    let attr = fs.lookup(ROOT_INO, b"file").expect("there");
    let handle = fs.open_file(attr.ino).expect("there");
    assert_eq!(fs.read(handle, 0, 4 << 20).expect("sound"), vec![7; FILE]);
    fs.close(handle).expect("sound");
}

/// A `cat`; what it asked for.
fn cat(store: &Store, computer: &mut Computer) -> Asked {
    store.take();
    let fs = opened(store, computer);
    read(&fs);
    fs.into_blocks().expect("memory");
    Asked::of(&store.take())
}

/// The requests, and the longest chain of those that wait for one another.
#[derive(Debug, Default)]
struct Asked {
    requests: u64,
    trips: u64,
    parts: u64,
    lines: String,
}

impl Asked {
    fn of(events: &[StoreEvent]) -> Self {
        let (mut asked, mut last) = (Self::default(), None);
        let mut begun: HashMap<&str, u64> = HashMap::new();
        for event in events {
            let new = last.replace(event.call) != Some(event.call);
            let (requests, trips) = match event.op {
                CallKind::Write => {
                    begun.insert(&event.object, asked.trips + 1);
                    (1, 0)
                }
                CallKind::Sync => {
                    let stored = begun.get(&*event.object).copied().unwrap_or(0);
                    (0, stored.saturating_sub(asked.trips))
                }
                // One of many objects is one request.
                CallKind::Delete => (u64::from(new), u64::from(new)),
                _ => (1, u64::from(new)),
            };
            asked.requests += requests;
            asked.trips += trips;
            asked.parts += u64::from(event.op == CallKind::Read && event.object.starts_with("p-"));
            if event.op != CallKind::Sync {
                let StoreEvent { op, object, len, .. } = event;
                asked.lines += &format!("{} {op:?} {object} {len}\n", asked.trips);
            }
        }
        asked
    }

    fn is_within(&self, what: &str, requests: u64, trips: u64) {
        let Self { requests: asked, trips: waited, lines, .. } = self;
        eprintln!("{what}: {asked} requests, {waited} round trips");
        assert!(*asked <= requests && *waited <= trips, "{what}: {asked}, {waited}\n{lines}");
    }
}

/// Whatever the number of sessions before, and however these ended.
#[test]
fn a_cat_asks_little() {
    let mut here = Computer::new(100);
    let store = made(&mut here);
    let mut sessions = 1;
    for most in [1, 10, 40] {
        let began = sessions;
        while sessions < most {
            if sessions % 5 == 1 {
                // Killed: nothing of it ends. The next one has something to replay.
                let fs = opened(&store, &mut here);
                read(&fs);
                std::mem::forget(fs);
                here.keeper = here.keeper.twin();
            } else {
                let asked = cat(&store, &mut here);
                // One in a few has a window, and a checkpoint more. Not after a kill, nor after
                // another computer.
                if sessions % 5 > 2 && sessions > began {
                    asked.is_within(&format!("session {sessions}"), 29, 11);
                }
            }
            sessions += 1;
        }
        cat(&store, &mut here);
        let knows = cat(&store, &mut here);
        knows.is_within(&format!("after {sessions}, known"), 29, 11);
        let unknown = cat(&store, &mut Computer::new(100_000 * most));
        let what = format!("after {sessions}, unknown, {} parts", unknown.parts);
        unknown.is_within(&what, 45 + unknown.parts, 16);
        sessions += 3;
    }
}

/// A hint that is gone, torn, old or made up costs requests, and shows nothing else.
#[test]
fn a_hint_that_lies_costs_requests_only() {
    let mut here = Computer::new(300);
    let store = made(&mut here);
    let hint = |store: &Store| {
        let mut bytes = [0; 40];
        store.read(&mut [ReadAt { object: HINT, offset: 0, buf: &mut bytes }]).expect("a hint");
        bytes
    };
    let old = hint(&store);
    for _ in 0..20 {
        cat(&store, &mut here);
    }
    let mut too_high = hint(&store);
    too_high[0] += 40;
    let right = cat(&store, &mut Computer::new(400)).requests;
    for (seed, lie) in [None, Some(&old[..]), Some(&too_high), Some(b"garbage")].iter().enumerate()
    {
        store.delete(&[HINT]).expect("memory");
        lie.iter().for_each(|lie| store.put(HINT, lie, PutMode::Replace).expect("memory"));
        let fs = opened(&store, &mut Computer::new(500 + 10 * seed as u64));
        read(&fs);
        fs.into_blocks().expect("memory");
        store.take();
        // It is right again.
        let again = cat(&store, &mut Computer::new(700 + 10 * seed as u64)).requests;
        assert!(again <= right + 10, "{again}, and with a right hint {right}");
    }
}
