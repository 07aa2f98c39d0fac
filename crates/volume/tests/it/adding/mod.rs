//! The examples of docs/adding.md, and what everything that is added must do.

mod engines;
mod linear;
mod slow_map;

use engines::{holds_files, passphrase};
use oblivio_crypto::KdfParams;
use oblivio_store::{Held, Objects};
use oblivio_testkit::conformance::{self, Connector};
use oblivio_volume::{Error, NewVolume, OpenOptions, SeenBy, Volume};
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
    let fresh = || -> Connector {
        let map = SlowMap::default();
        Box::new(move || Box::new(map.clone()))
    };
    conformance::objects(&fresh, 0..3);
}

#[test]
fn a_map_20_ms_away_holds_files() {
    let store = Arc::new(SlowMap::default()) as Arc<dyn Objects>;
    let options = || OpenOptions { memory_bytes: 8 << 20, ..OpenOptions::default() };
    let new = NewVolume::on_windows(4096, 4 << 20, true, KdfParams::TEST);
    let made = new.create(store.clone(), &passphrase(), options(), &mut |_, _| {}).unwrap();
    // The volume is dropped; the map has all that is left of it.
    holds_files(made, || Volume::open(store, &passphrase(), options()).unwrap());
}

#[test]
fn an_engine_that_writes_over_refuses_a_store_of_whole_objects() {
    let store = Arc::new(SlowMap::default()) as Arc<dyn Objects>;
    let new = NewVolume::new(SeenBy::Storage, 4096, 4 << 20, KdfParams::TEST);
    let made = new.create(store.clone(), &passphrase(), OpenOptions::default(), &mut |_, _| {});
    assert!(matches!(made, Err(Error::Store(_))));
    assert!(store.list().unwrap().is_empty());
}
