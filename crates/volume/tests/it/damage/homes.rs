//! Every home of a volume that needs no server: how a volume with files is made there, what damage
//! may cost, and what is known to cost more.

use super::harmed::{copy, places};
use super::outcome::Outcome;
use crate::extents::common::{Computer, passphrase};
use oblivio_crypto::KdfParams;
use oblivio_engine::sequential::SequentialConfig;
use oblivio_store::partition::{Existing, PartitionPlace};
use oblivio_store::{AnyStore, MemoryStore, PartitionStore, Store};
use oblivio_testkit::Dice;
use oblivio_volume::extents::{ExtentOptions, ExtentVolume};
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::windows::{WindowOptions, WindowVolume};
use oblivio_volume::{
    CreateOptions, Error, HEADER_BYTES, HEADER_OBJECTS, OpenOptions, Result, Volume, Which,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub const BLOCK: usize = 1024;
/// Blocks of a volume: from 4096 on, metadata has second copies.
const BLOCKS: u64 = 4096;
const MEMORY: usize = 2 << 20;

/// How a volume works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tree,
    Windows { exclusive: bool },
    Sequential { map_on_disk: bool, in_one_file: bool },
    Synced,
}

/// What damaged places may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    Nothing,
    /// Of objects that have blocks: four for each damaged place.
    Buckets,
    /// What a file's own reads do not touch, it does not need.
    WhatIsRead,
}

/// Something that is known to cost more than it should. The trial fails once it does not.
#[derive(Debug)]
#[expect(dead_code, reason = "printed")]
pub struct Short {
    /// The harm: "flips" for more than one, or how it is called.
    pub harms: &'static [&'static str],
    /// How the names of the objects begin.
    pub objects: &'static str,
    /// What is said then, one of these among others.
    pub says: &'static [&'static str],
    pub why: &'static str,
}

#[derive(Debug)]
pub struct Home {
    pub name: &'static str,
    kind: Kind,
    /// Whether the computer that opens it has nothing but what is stored.
    newcomer: bool,
    pub cost: Cost,
    /// Whether the campaign of repairs has it. Sequential volumes have their own: a crash of a
    /// repair may cost more there (`sequential/repair.rs`).
    pub repairs: bool,
    pub short: &'static [Short],
}

const SLAB_GONE: Short = Short {
    harms: &["lost"],
    objects: "slab",
    says: &["is missing, or empty"],
    why: "it may be somewhere else, and a session would write the loss into the volume",
};

const DISK_GONE: Short = Short {
    harms: &["lost"],
    objects: "disk",
    says: &["has 0 bytes"],
    why: "it may be somewhere else, and a session would write the loss into the volume",
};

const LOG_BEYOND_PARITY: Short = Short {
    harms: &["flips", "lost", "cut", "replaced"],
    objects: "log",
    says: &["log"],
    why: "parity makes one page of each part of it again, not all",
};

pub const HOMES: &[Home] = &[
    Home {
        name: "tree in a folder",
        kind: Kind::Tree,
        newcomer: false,
        cost: Cost::Buckets,
        repairs: true,
        short: &[SLAB_GONE],
    },
    Home {
        name: "tree in an online store",
        kind: Kind::Windows { exclusive: true },
        newcomer: false,
        cost: Cost::Buckets,
        repairs: true,
        short: &[],
    },
    Home {
        name: "tree in an online store that replaces objects",
        kind: Kind::Windows { exclusive: false },
        newcomer: false,
        cost: Cost::Buckets,
        repairs: true,
        short: &[],
    },
    Home {
        name: "sequential in a folder",
        kind: Kind::Sequential { map_on_disk: false, in_one_file: false },
        newcomer: false,
        cost: Cost::WhatIsRead,
        repairs: false,
        short: &[DISK_GONE, LOG_BEYOND_PARITY],
    },
    Home {
        name: "sequential in a folder, its map on the disk",
        kind: Kind::Sequential { map_on_disk: true, in_one_file: false },
        newcomer: false,
        cost: Cost::WhatIsRead,
        repairs: false,
        short: &[DISK_GONE, LOG_BEYOND_PARITY],
    },
    Home {
        name: "sequential in one file",
        kind: Kind::Sequential { map_on_disk: false, in_one_file: true },
        newcomer: false,
        cost: Cost::WhatIsRead,
        repairs: false,
        short: &[LOG_BEYOND_PARITY],
    },
    Home {
        name: "synced folder, the computer that wrote it",
        kind: Kind::Synced,
        newcomer: false,
        cost: Cost::Nothing,
        repairs: false,
        short: &[],
    },
    Home {
        name: "synced folder, a new computer",
        kind: Kind::Synced,
        newcomer: true,
        cost: Cost::WhatIsRead,
        repairs: false,
        short: &[
            Short {
                harms: &["flips"],
                objects: "x-",
                says: &["without which nothing opens", "what was written last, in"],
                why: "a parity makes one file of the log again, not two",
            },
            Short {
                harms: &["flips"],
                objects: "e-",
                says: &["still to come: the first epoch of the volume"],
                why: "there are two copies of the newest entry, and no older epoch is left",
            },
        ],
    },
];

/// The files of a volume, by their paths.
pub type Files = BTreeMap<String, Vec<u8>>;

/// How many files, and of how many bytes at most.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub files: u64,
    pub longest: u64,
}

impl Size {
    fn capacity(self) -> u64 {
        (2 * self.files * self.longest).max(BLOCKS * BLOCK as u64)
    }
}

/// A volume at rest.
pub struct Rest {
    pub home: &'static Home,
    pub files: Files,
    /// Its objects; of one file, the places in it have their names.
    pub objects: MemoryStore,
    /// Of one file: its bytes, and where the places begin.
    pub file: Option<(Vec<u8>, BTreeMap<String, u64>)>,
    computer: Computer,
    beside: MemoryStore,
}

impl Home {
    fn create(&self, size: Size, store: Arc<dyn Store>, open: OpenOptions) -> Result<Volume> {
        let (kdf, capacity_bytes, quiet) = (KdfParams::TEST, size.capacity(), &mut |_, _| {});
        let word = &passphrase();
        let sequential = self.sequential(size);
        match self.kind {
            Kind::Tree => {
                let create = CreateOptions { block_bytes: BLOCK, capacity_bytes, kdf };
                Volume::create(store, word, create, open)
            }
            Kind::Windows { exclusive } => {
                // Windows of four turns, and three levels in the pool.
                let create = WindowOptions {
                    object_bytes: 16 * BLOCK,
                    pool_bytes: 28 * BLOCK,
                    ..WindowOptions::new(BLOCK, capacity_bytes, exclusive)
                };
                WindowVolume::create(store, word, kdf, create, open).map(Volume::from)
            }
            Kind::Sequential { .. } => {
                SequentialVolume::create(store, word, kdf, sequential, open, quiet)
                    .map(Volume::from)
            }
            Kind::Synced => {
                let create = ExtentOptions { sequential, extent_bytes: 16 << 10 };
                ExtentVolume::create(store, word, kdf, create, open, quiet).map(Volume::from)
            }
        }
    }

    fn sequential(&self, size: Size) -> SequentialOptions {
        // Levels of which each has something.
        let engine = SequentialConfig {
            bucket_blocks: 4,
            queue_buckets: 2,
            sector_bytes: 512,
            ..SequentialConfig::new(BLOCK, size.capacity() / BLOCK as u64)
        };
        let on_disk = matches!(self.kind, Kind::Sequential { map_on_disk: true, .. });
        SequentialOptions::of(if on_disk { engine.map_on_disk(1) } else { engine })
    }

    fn is_one_file(&self) -> bool {
        matches!(self.kind, Kind::Sequential { in_one_file: true, .. })
    }

    /// Whether an object has blocks.
    pub fn has_blocks(&self, object: &str) -> bool {
        let name = match self.kind {
            Kind::Tree => "slab",
            Kind::Windows { .. } => "b-",
            Kind::Sequential { .. } => "disk",
            Kind::Synced => "x-",
        };
        object.starts_with(name)
    }

    /// A volume with files, after two sessions that ended well.
    pub fn rest(&'static self, size: Size, seed: u64) -> Rest {
        let (objects, beside) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("volume");
        let place = || -> Arc<dyn Store> {
            match self.is_one_file() {
                true => Arc::new(PartitionStore::open(&path).expect("a file")),
                false => objects.clone(),
            }
        };
        if self.is_one_file() {
            one_file(&path, &self.sequential(size));
        }
        let mut computer = Computer::with(beside.clone(), seed);
        let open = options(&mut computer);
        let volume = self.create(size, place(), open).expect("an empty store");
        let fs = FileSystem::format(Box::new(volume)).expect("room");
        let (mut files, mut dice) = (Files::new(), Dice::new(seed));
        put(&fs, &mut files, &mut dice, (size, 1));
        drop(fs.into_blocks().expect("it ends"));
        let volume = Volume::open(place(), &passphrase(), options(&mut computer)).expect("whole");
        let fs = FileSystem::open(Box::new(volume)).expect("whole");
        put(&fs, &mut files, &mut dice, (size, 3));
        drop(fs.into_blocks().expect("it ends"));
        let file = self.is_one_file().then(|| {
            let (bytes, store) = (std::fs::read(&path).expect("a file"), place());
            copy(&*store, &objects);
            let places = places(&bytes, &objects);
            (bytes, places)
        });
        let (objects, beside) = (objects.snapshot(), beside.snapshot());
        Rest { home: self, files, objects, file, computer, beside }
    }
}

/// Writes every `step`th file, whole.
fn put(fs: &FileSystem, files: &mut Files, dice: &mut Dice, (size, step): (Size, usize)) {
    let folder = match fs.resolve("/folder") {
        Ok(attr) => attr.ino,
        Err(_) => fs.mkdir(ROOT_INO, b"folder", NewNode::default()).expect("room").ino,
    };
    for number in (0..size.files).step_by(step) {
        let longest = [size.longest / 40, size.longest / 6, size.longest][number as usize % 3];
        let len = 1 + dice.index(longest.max(1) as usize);
        let bytes = dice.bytes(len);
        let (parent, before) = [(ROOT_INO, ""), (folder, "folder/")][number as usize % 2];
        let name = format!("f{number:03}");
        if fs.lookup(parent, name.as_bytes()).is_ok() {
            fs.unlink(parent, name.as_bytes()).expect("there");
        }
        let (_, handle) = fs.create(parent, name.as_bytes(), NewNode::default()).expect("room");
        fs.write(handle, 0, &bytes).expect("room");
        fs.close(handle).expect("open");
        files.insert(format!("/{before}{name}"), bytes);
    }
    fs.commit().expect("memory");
}

fn options(computer: &mut Computer) -> OpenOptions {
    OpenOptions { memory_bytes: MEMORY, ..computer.session(Which::Newest) }
}

/// An empty store in one file.
fn one_file(path: &Path, sequential: &SequentialOptions) {
    let objects = sequential.objects().expect("sound");
    let fixed = objects.iter().map(|(name, bytes)| PartitionPlace::fixed(name, *bytes));
    let header = |object| PartitionPlace::new(object, HEADER_BYTES as u64);
    let places: Vec<_> = HEADER_OBJECTS.map(header).into_iter().chain(fixed).collect();
    PartitionStore::create(path, &places, Existing::Refuse).expect("a new file");
}

impl Rest {
    /// Opens what is stored as the computer that it is about, or looks at what there is of it.
    pub fn open(&self, store: impl Into<AnyStore>) -> Result<Volume> {
        let store = store.into();
        match self.open_by(store.clone(), &mut self.computer()) {
            Err(Error::StillToCome(_)) if self.home.newcomer => self.look(store),
            opened => opened,
        }
    }

    /// Opens it as this computer, which may have used it since.
    pub fn open_by(&self, store: impl Into<AnyStore>, by: &mut Computer) -> Result<Volume> {
        Volume::open(store, &passphrase(), options(by))
    }

    /// Opens it to look at: of a folder, only what is asked for is read.
    pub fn look(&self, store: impl Into<AnyStore>) -> Result<Volume> {
        let open = OpenOptions { incomplete: true, ..options(&mut self.computer()) };
        Volume::open(store, &passphrase(), open)
    }

    /// What it knows is what the last session left it.
    pub fn computer(&self) -> Computer {
        match self.home.newcomer {
            true => Computer::new(9000),
            false => {
                let (beside, keeper) =
                    (Arc::new(self.beside.snapshot()), self.computer.keeper.twin());
                Computer { beside, keeper, ..self.computer.clone() }
            }
        }
    }
}

/// Errors that say what is wrong.
pub fn is_named(error: &Error) -> bool {
    let waits = matches!(error, Error::StillToCome(_));
    waits || matches!(super::outcome::named(error), Outcome::Refused(_))
}
