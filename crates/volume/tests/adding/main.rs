//! What `docs/adding.md` says about adding a part to Oblivio, with toys that are as short as it
//! promises.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod slow_map;

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{OnObjects, Store};
use oblivio_testkit::conformance;
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, Volume};
use slow_map::SlowMap;
use std::sync::Arc;

#[test]
fn the_toy_is_as_short_as_promised() {
    assert!(include_str!("slow_map.rs").lines().count() < 150);
}

#[test]
fn a_map_20_ms_away_has_the_port_objects() {
    conformance::objects(&|| Box::new(SlowMap::default()), 0..3);
}

#[test]
fn a_map_20_ms_away_holds_files() {
    let objects = Arc::new(SlowMap::default());
    let store = || Arc::new(OnObjects::open(Arc::clone(&objects)).unwrap()) as Arc<dyn Store>;
    let passphrase = Passphrase::new("adding");
    let options = || OpenOptions { memory_bytes: 8 << 20, ..OpenOptions::default() };
    let create = CreateOptions { block_bytes: 4096, capacity_bytes: 4 << 20, kdf: KdfParams::TEST };
    let files = [("a", b"one".repeat(5)), ("b", b"another".repeat(3000))];

    let volume = Volume::create(store(), &passphrase, create, options()).unwrap();
    let fs = FileSystem::format(Box::new(volume) as Box<dyn BlockSpace>).unwrap();
    for (name, data) in &files {
        let (_, handle) = fs.create(ROOT_INO, name.as_bytes(), NewNode::default()).unwrap();
        fs.write(handle, 0, data).unwrap();
        fs.close(handle).unwrap();
    }
    fs.commit().unwrap();
    // The store ends here, and gives its lease back.
    drop(fs);

    let volume = Volume::open(store(), &passphrase, options()).unwrap();
    let fs = FileSystem::open(Box::new(volume) as Box<dyn BlockSpace>).unwrap();
    for (name, data) in &files {
        let found = fs.lookup(ROOT_INO, name.as_bytes()).unwrap();
        let handle = fs.open_file(found.ino).unwrap();
        assert_eq!(&fs.read(handle, 0, 30_000).unwrap(), data, "{name}");
        fs.close(handle).unwrap();
    }
}
