//! A plain map of bytes, and random places in it.

use crate::Dice;
use oblivio_store::{Held, ReadAt, Result, StoreError};
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// The objects that the suites use.
pub const NAMES: [&str; 4] = ["slab", "a.b", "C-3", "x_"];

/// No object grows beyond this many bytes.
pub const ROOM: u64 = 2 << 20;

/// Random calls in a run.
pub(super) const CALLS: usize = 25;

/// Names that no store takes.
pub(super) const BAD_NAMES: [&str; 4] = ["../evil", "", ".lock", "a/b"];

/// What a store must hold.
pub(super) struct Model {
    seed: u64,
    pub(super) objects: BTreeMap<&'static str, Vec<u8>>,
}

impl Model {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, objects: BTreeMap::new() }
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.objects.keys().copied().collect()
    }

    pub(super) fn write(&mut self, name: &'static str, offset: u64, data: &[u8]) {
        let held = self.objects.entry(name).or_default();
        let (from, end) = (offset as usize, offset as usize + data.len());
        if !data.is_empty() {
            held.resize(held.len().max(end), 0);
            held[from..end].copy_from_slice(data);
        }
    }

    /// Reads random ranges.
    pub(super) fn read(&self, store: &(impl Held + ?Sized), dice: &mut Dice) {
        let ranges: Vec<(&'static str, u64, usize)> =
            (0..dice.below(4)).map(|_| (name(dice), place(dice), dice.index(200))).collect();
        let mut buffers: Vec<Vec<u8>> = ranges.iter().map(|range| vec![0xee; range.2]).collect();
        let reads = ranges.iter().zip(&mut buffers);
        let mut reads: Vec<_> =
            reads.map(|(&(object, offset, _), buf)| ReadAt { object, offset, buf }).collect();
        let result = store.read(&mut reads);
        let held = |&(name, offset, len): &(&str, u64, usize)| {
            let object = self.objects.get(name);
            object.map(|data| data.get(offset as usize..offset as usize + len))
        };
        match ranges.iter().map(held).find(|held| !matches!(held, Some(Some(_)))) {
            Some(None) => assert!(is_missing(&result), "{}: {result:?}", self.seed),
            Some(_) => assert!(is_short(&result), "{}: {result:?}", self.seed),
            None => {
                assert!(result.is_ok(), "{}: {result:?}", self.seed);
                let expected: Vec<_> = ranges.iter().filter_map(held).flatten().collect();
                assert!(buffers == expected, "seed {}: {ranges:?}", self.seed);
            }
        }
    }

    /// Compares everything.
    pub(super) fn compare(&self, store: &(impl Held + ?Sized)) {
        let lengths =
            self.objects.iter().map(|(name, held)| ((*name).to_owned(), held.len() as u64));
        assert_eq!(
            store.list().expect("a list"),
            lengths.collect::<Vec<_>>(),
            "seed {}",
            self.seed
        );
        for name in NAMES {
            let held = self.objects.get(name);
            let len = held.map(|held| held.len() as u64);
            assert_eq!(store.len(name).expect("a length"), len, "seed {}: {name}", self.seed);
            let Some(held) = held else { continue };
            let mut buf = vec![0xee; held.len()];
            let read = store.read(&mut [ReadAt { object: name, offset: 0, buf: &mut buf }]);
            assert!(read.is_ok() && &buf == held, "seed {}: {name}", self.seed);
        }
    }
}

pub(super) fn name(dice: &mut Dice) -> &'static str {
    NAMES[dice.index(NAMES.len())]
}

pub(super) fn names(dice: &mut Dice) -> Vec<&'static str> {
    (0..dice.below(4)).map(|_| name(dice)).collect()
}

/// Mostly small, so that ranges collide; sometimes across the edge of a chunk or page.
pub(super) fn place(dice: &mut Dice) -> u64 {
    match dice.below(10) {
        0 => (1 << 20) - 100 + dice.below(200),
        1 => 4000 + dice.below(5000),
        _ => dice.below(200),
    }
}

pub(super) fn bytes(dice: &mut Dice) -> Vec<u8> {
    let len = if dice.percent(80) { dice.index(120) } else { dice.index(6000) };
    dice.bytes(len)
}

pub(super) fn is_missing<T>(result: &Result<T>) -> bool {
    matches!(result, Err(StoreError::Missing { .. }))
}

pub(super) fn is_short<T>(result: &Result<T>) -> bool {
    matches!(result, Err(StoreError::Short { .. }))
}

pub(super) fn is_exists<T>(result: &Result<T>) -> bool {
    matches!(result, Err(StoreError::Exists { .. }))
}

pub(super) fn is_invalid<T>(result: &Result<T>) -> bool {
    matches!(result, Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::InvalidInput)
}

/// What holds for every port: bad names and ranges are refused.
pub(super) fn refuses(store: &(impl Held + ?Sized)) {
    let read =
        |object, offset, len| store.read(&mut [ReadAt { object, offset, buf: &mut vec![0; len] }]);
    for name in BAD_NAMES {
        assert!(is_invalid(&read(name, 0, 1)), "{name}");
        assert!(is_invalid(&store.len(name)), "{name}");
    }
    assert!(is_missing(&read("x_", 0, 1)));
    assert_eq!(store.len("x_").expect("a length"), None);
}
