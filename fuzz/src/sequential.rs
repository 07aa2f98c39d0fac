//! The sequential engine: quanta and their log, map nodes, states and access times.

use crate::input::Input;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::sequential::{
    AccessTimeMap, Accessed, SequentialConfig, Turn, fuzzing as engine,
};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::MemoryStore;
use oblivio_volume::fuzzing::Key;
use oblivio_volume::fuzzing::sequential::{self, BLOCK_BYTES, EditedPart, QUANTA, Said};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{BlockSpace, OpenOptions};
use std::sync::{Arc, OnceLock};

const SEALED: Key = Key(6);

/// A quantum's plaintext: refused, or equal after re-encoding. And a log of the product's own,
/// damaged or mixed from two sessions. It gives a prefix of one session's writes, all of them if
/// nothing was damaged, or an error.
pub fn quantum(data: &[u8]) {
    let mut input = Input(data);
    match input.byte() {
        0 => plain_quantum(input.0.to_vec()),
        1 => {
            let entries = entries(&mut input);
            let all = sequential::All { entries, ..Default::default() };
            let mut plain = sequential::quantum_of(&all);
            assert_eq!(sequential::quantum(&plain), Some(all), "it says what was put into it");
            input.patch(&mut plain);
            plain_quantum(plain);
        }
        2 => mixed_log(&mut input),
        _ => damaged_log(&mut input),
    }
}

fn plain_quantum(mut plain: Vec<u8>) {
    plain.resize(sequential::quantum_bytes(), 0);
    let Some(all) = sequential::quantum(&plain) else { return };
    let again = sequential::quantum(&sequential::quantum_of(&all));
    assert_eq!(again, Some(all), "it is written as it was read");
}

fn entries(input: &mut Input<'_>) -> Vec<Said> {
    let said = |choice: u8, value: u64| match choice % 4 {
        0 => Said::Write(value, vec![choice; BLOCK_BYTES]),
        1 => Said::Discard(value),
        2 => Said::Session([choice; 16]),
        _ => Said::Padding(value),
    };
    (0..input.byte() % 6).map(|_| said(input.byte(), input.u64())).collect()
}

fn quanta(input: &mut Input<'_>) -> Vec<Vec<Said>> {
    // At most as many as one state has: half of the log.
    (0..u64::from(input.byte()) % (QUANTA / 2 + 1)).map(|_| entries(input)).collect()
}

fn damaged_log(input: &mut Input<'_>) {
    let quanta = quanta(input);
    let (mut bytes, written) = sequential::log(SEALED, 2, &quanta).expect("memory");
    let changed = input.patch(&mut bytes);
    match sequential::read_log(SEALED, &bytes) {
        Ok(read) => {
            assert!(written.starts_with(&read), "a log tells only what was written");
            assert!(changed || read == written, "a sound log tells all");
        }
        Err(error) => assert!(changed, "a sound log is refused: {error}"),
    }
}

fn mixed_log(input: &mut Input<'_>) {
    let forks = [quanta(input), quanta(input)];
    let [one, other] = [0, 1]
        .map(|fork| sequential::log(SEALED, 2 + fork, &forks[fork as usize]).expect("memory"));
    let mut mixed = Vec::new();
    for at in (0..one.0.len()).step_by(4096) {
        let from = if input.byte().is_multiple_of(2) { &one.0 } else { &other.0 };
        mixed.extend_from_slice(&from[at..at + 4096]);
    }
    if let Ok(read) = sequential::read_log(SEALED, &mixed) {
        assert!([one.1, other.1].iter().any(|fork| fork.starts_with(&read)), "of two sessions");
    }
}

/// A node of a buffer map: refused, or re-encoded exactly. Its description of a block agrees with
/// its lines.
pub fn map_node(data: &[u8]) {
    let mut input = Input(data);
    let (choice, block) = (input.byte(), input.u64());
    let (leaf, lines) = (choice & 1 == 1, usize::from(choice >> 1));
    let plain = input.0;
    let Some(node) = engine::map_node(plain, leaf, lines, block) else { return };
    assert_eq!(node.addresses.len(), lines, "as many lines as were asked for");
    let used = if leaf { 24 } else { 0 } + lines * 24;
    assert_eq!(node.again[..used], plain[..used], "a node is written as it was read");
    assert!(node.again[used..].iter().all(|byte| *byte == 0), "and nothing else");
    for (address, present) in node.addresses.iter().zip(&node.present) {
        assert_eq!(present.is_some(), leaf && address.is_some(), "a leaf knows of its blocks");
    }
    let line = node.line.map(|line| node.addresses[line]);
    let sorted = node.addresses.iter().map(|it| it.unwrap_or(u64::MAX)).is_sorted();
    if sorted {
        // Then fakes are last, and nothing between two lines is in another.
        assert!(line.is_none_or(|address| address.is_some_and(|lowest| lowest <= block)));
        let inside = |address: &Option<u64>| *address == Some(block);
        assert!(!node.addresses.iter().any(inside) || node.spans, "what it lists it spans");
    }
}

/// The access times of some blocks: only their length can be refused, and none is later than now.
pub fn sequential_times(data: &[u8]) {
    let mut input = Input(data);
    let (choice, now) = (input.byte(), Turn(input.u64()));
    let oldest = if choice & 1 == 0 { 1000 } else { 1 << 20 };
    let bytes = input.0;
    let code = AccessTimeMap::code_bytes(oldest) as usize;
    let mut map = AccessTimeMap::new((bytes.len() / code) as u64, oldest);
    let sound = bytes.len().is_multiple_of(code);
    assert_eq!(map.load(bytes).is_ok(), sound);
    if !sound {
        return;
    }
    assert_eq!(map.to_bytes(), bytes, "they are written as they were read");
    for block in 0..(bytes.len() / code) as u64 {
        if let Accessed::At(turn) = map.get(BlockId(block), now) {
            assert!(turn <= now, "a block was written in the future");
        }
    }
}

const BLOCKS: u64 = 40;

fn passphrase() -> Passphrase {
    Passphrase::new("fuzz")
}

/// Cleanly closed volumes with some content, shared by the whole process. The second keeps the map
/// on the disk.
fn base(which: u8) -> &'static MemoryStore {
    static BASE: [OnceLock<MemoryStore>; 2] = [const { OnceLock::new() }; 2];
    BASE[usize::from(which)].get_or_init(|| {
        let store = Arc::new(MemoryStore::new());
        let engine = SequentialConfig {
            bucket_blocks: 4,
            queue_buckets: 2,
            sector_bytes: 256,
            ..SequentialConfig::new(BLOCK_BYTES, BLOCKS)
        };
        let engine = if which == 0 { engine } else { engine.map_on_disk(1) };
        let options = SequentialOptions {
            engine,
            quantum_writes: 4,
            log_quanta: 16,
            fill: false,
            lanes: None,
        };
        let (kdf, open) = (KdfParams::TEST, OpenOptions::default());
        let made = SequentialVolume::create(
            store.clone(),
            &passphrase(),
            kdf,
            options,
            open,
            &mut |_, _| {},
        );
        let mut volume = made.expect("an empty store");
        volume.set_root(b"a root");
        for round in 0..3 {
            let write =
                |id| BlockOp { id: BlockId(id), action: Action::Write(vec![round; BLOCK_BYTES]) };
            volume.access((0..BLOCKS).map(write).collect()).expect("sound");
        }
        volume.finish().expect("sound");
        store.snapshot()
    })
}

/// A volume whose state or access times were changed and sealed again: refused, or it works.
pub fn sequential_state(data: &[u8]) {
    let mut input = Input(data);
    let choice = input.byte();
    // With the map on the disk, no times are beside the state.
    let part = if choice & 3 == 1 { EditedPart::Times } else { EditedPart::State };
    let store = base(u8::from(choice & 3 == 2)).snapshot();
    let mut changed = false;
    let edit = |plain: &mut Vec<u8>| changed = input.patch(plain);
    sequential::edit(&store, &passphrase(), part, edit).expect("sound");
    let opened = SequentialVolume::open(Arc::new(store), &passphrase(), OpenOptions::default());
    let mut volume = match opened {
        Ok(volume) => volume,
        Err(error) => return assert!(changed, "a sound volume is refused: {error}"),
    };
    for id in 0..u64::from(choice >> 2).min(BLOCKS) {
        let read = BlockOp { id: BlockId(id), action: Action::Read };
        let write =
            BlockOp { id: BlockId(BLOCKS - 1 - id), action: Action::Write(vec![1; BLOCK_BYTES]) };
        if volume.access(vec![read, write]).is_err() {
            assert!(changed, "a sound volume cannot be read");
            break;
        }
    }
    let ended = volume.finish();
    assert!(changed || ended.is_ok(), "a sound volume does not end");
}
