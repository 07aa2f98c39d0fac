//! The examples of docs/adding.md, and what everything that is added must do.

mod engines;
mod linear;
mod slow_map;

use engines::{holds_files, passphrase};
use oblivio_crypto::KdfParams;
use oblivio_store::{OnObjects, Store};
use oblivio_testkit::conformance;
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use slow_map::SlowMap;
use std::sync::Arc;

/// An addition is small: docs/adding.md says so.
#[test]
fn the_examples_are_under_150_lines() {
    for example in [include_str!("linear.rs"), include_str!("slow_map.rs")] {
        assert!(example.lines().count() < 150);
    }
}

#[test]
fn a_map_20_ms_away_has_the_port_objects() {
    conformance::objects(&|| Box::new(SlowMap::default()), 0..3);
}

#[test]
fn a_map_20_ms_away_holds_files() {
    let objects = Arc::new(SlowMap::default());
    let store = || Arc::new(OnObjects::open(Arc::clone(&objects)).unwrap()) as Arc<dyn Store>;
    let options = || OpenOptions { memory_bytes: 8 << 20, ..OpenOptions::default() };
    let create = CreateOptions { block_bytes: 4096, capacity_bytes: 4 << 20, kdf: KdfParams::TEST };
    let volume = Volume::create(store(), &passphrase(), create, options()).unwrap();
    // The first store ends with its volume, and gives its lease back.
    holds_files(volume, || Volume::open(store(), &passphrase(), options()).unwrap());
}
