//! One in a hundred buckets of a tree is lost: which files that costs, by the level of the buckets.

use super::harmed::{Harm, Place};
use super::homes::{HOMES, Home, Rest, Size};
use super::trial::{Bound, look};
use oblivio_store::Held;
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{at_least, scaled, seed};
use oblivio_volume::fuzzing;
use std::collections::BTreeMap;

/// The stored buckets, or objects of buckets, by their level.
fn by_level(rest: &Rest) -> BTreeMap<u32, Vec<Place>> {
    let mut levels: BTreeMap<u32, Vec<Place>> = BTreeMap::new();
    let mut volume = rest.open(std::sync::Arc::new(rest.objects.snapshot())).expect("whole");
    for (part, object, bytes) in fuzzing::places(&mut volume) {
        levels.entry(part.level()).or_default().push(Place { object, bytes });
    }
    // In windows, the name of an object says the level.
    for (object, len) in rest.objects.list_under("b-").expect("memory") {
        let level = object.split('-').nth(2).and_then(|level| u32::from_str_radix(level, 16).ok());
        levels.entry(level.expect("a level")).or_default().push(Place { object, bytes: 0..len });
    }
    levels
}

/// Takes one in a hundred, at least one.
fn some(places: &[Place], dice: &mut Dice) -> Vec<Place> {
    let mut places = places.to_vec();
    dice.shuffle(&mut places);
    places.truncate(places.len().div_ceil(100));
    places
}

/// The sums of one row.
#[derive(Debug, Default)]
struct Row {
    tried: u64,
    lost: u64,
    bytes: u64,
    /// Files with lost bytes, where the names are there.
    touched: u64,
    /// Volumes whose metadata is lost.
    metadata: u64,
}

fn row(rest: &Rest, places: &[Place], tries: u64, dice: &mut Dice) -> Row {
    let (bound, mut row) = (Bound::of(rest), Row::default());
    for _ in 0..tries {
        let places = some(places, dice);
        let harmed = rest.harmed(&Harm::Noise(places.clone()), dice).expect("objects");
        let found = look(rest, &harmed, dice);
        assert_eq!(bound.broken(&places, &found), None, "{places:?}");
        assert_eq!(found.refused, None, "{places:?}");
        row.tried += 1;
        row.lost += places.len() as u64;
        row.metadata += u64::from(found.metadata);
        if !found.metadata {
            row.bytes += found.bytes();
            row.touched += found.lost.len() as u64;
        }
    }
    row
}

fn print(name: &str, there: usize, files: u64, row: &Row) {
    let whole = (row.tried - row.metadata).max(1);
    let touched = row.touched as f64 / whole as f64;
    let Row { tried, lost, bytes, metadata, .. } = row;
    let each = lost / tried;
    let bytes = bytes / whole;
    println!(
        "| {name} | {there} | {each} | {bytes} | {touched:.1} of {files} | {metadata} of {tried} |"
    );
}

/// Of files that no lost bucket carries, how many come back: all, unless both copies of a part of
/// the metadata are lost.
fn one_in_a_hundred(home: &'static Home, size: Size, tries: u64) {
    let rest = home.rest(size, seed(97));
    let levels = by_level(&rest);
    let (mut dice, files) = (Dice::new(seed(97)), rest.files.len() as u64);
    assert!(levels.len() > 4, "{}: {} levels", home.name, levels.len());
    println!("{}: {files} files", home.name);
    println!(
        "| level | places | lost of them | bytes of files lost | files with lost bytes | metadata lost |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    let all: Vec<Place> = levels.values().flatten().cloned().collect();
    let any = row(&rest, &all, 4 * tries, &mut dice);
    for (level, places) in &levels {
        print(&level.to_string(), places.len(), files, &row(&rest, places, tries, &mut dice));
    }
    print("any", all.len(), files, &any);
    let back = any.tried - any.metadata;
    assert!(!at_least(10.0) || back * 100 >= any.tried * 97, "{back} of {} volumes", any.tried);
}

#[test]
fn one_percent_of_buckets_costs_their_blocks() {
    let small = Size { files: 24, longest: 40_000 };
    let large = Size { files: 120, longest: 200_000 };
    for home in &HOMES[..2] {
        one_in_a_hundred(home, if at_least(10.0) { large } else { small }, scaled(1));
    }
}
