//! What the store sees.

use super::{BLOCKS, create, open, read, write};
use oblivio_store::record::{CallKind, StoreEvent};
use oblivio_store::{MemoryStore, RecordStore};
use oblivio_testkit::SplitMix64;
use oblivio_volume::BlockSpace;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

pub(crate) type Shape = Vec<(u64, CallKind, String, u64)>;

/// Each event's kind, the kind of its object, and its length.
pub(crate) fn shape(events: &[StoreEvent]) -> Shape {
    let first = events.first().map_or(0, |event| event.call);
    let kind = |event: &StoreEvent| match event.object.split('-').collect::<Vec<_>>()[..] {
        // Level and window are public, the session is drawn.
        ["b", _, level, window] => format!("b-{level}-{window}"),
        ["p", _, number] => format!("p-{number}"),
        ["e" | "h", _, index] => format!("{}-{index}", &event.object[..1]),
        _ => event.object.to_string(),
    };
    events.iter().map(|event| (event.call - first, event.op, kind(event), event.len)).collect()
}

/// All calls but those that read paths: which buckets are there on a path, and which of them are
/// still in memory, follows from its label. What a window reads, right before it writes, stays.
pub(crate) fn without_paths(events: Shape) -> Shape {
    let is_of_buckets =
        |event: &(u64, CallKind, String, u64), op| event.1 == op && event.2.starts_with("b-");
    let written: HashSet<u64> =
        events.iter().filter(|it| is_of_buckets(it, CallKind::Write)).map(|it| it.0).collect();
    let mut kept: Shape = Vec::new();
    let mut calls: Vec<u64> = Vec::new();
    for (call, op, object, len) in events {
        let event = (call, op, object, len);
        if is_of_buckets(&event, CallKind::Read) && !written.contains(&(event.0 + 1)) {
            continue;
        }
        if calls.last() != Some(&event.0) {
            calls.push(event.0);
        }
        kept.push((calls.len() as u64, event.1, event.2, event.3));
    }
    kept
}

/// The same number of accesses, one block at a time, so that no two paths share a request: for one
/// block again and again, for all by turns, and for blocks that are not there.
#[test]
fn equally_long_runs_look_the_same_but_for_paths() {
    let runs = [|_: u64| 5, |at: u64| at % 150, |at: u64| 150 + at % 50].map(|id| {
        let store = Arc::new(RecordStore::new(MemoryStore::new()));
        let mut volume = create(store.clone(), true, 1);
        volume.defer((0..150).map(|id| write(id, 1)).collect()).expect("memory");
        volume.commit().expect("memory");
        volume.finish().expect("memory");
        drop(volume);
        let mut volume = open(store.clone(), 2).expect("sound");
        store.take();
        for at in 0..400 {
            volume.access(vec![read(id(at))]).expect("sound");
        }
        volume.finish().expect("memory");
        without_paths(shape(&store.take()))
    });
    assert!(runs[0].len() > 800, "{} events", runs[0].len());
    for run in &runs[1..] {
        assert_eq!(run.len(), runs[0].len());
        let differs = run.iter().zip(&runs[0]).find(|(one, other)| one != other);
        assert!(differs.is_none(), "{differs:?}");
    }
}

/// Writes that wait are carried out in one batch, before the window whose commit has them. So none
/// is carried over, and the batch shows how many there were.
#[test]
fn a_window_carries_out_what_waits() {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let mut volume = create(store.clone(), true, 1);
    super::fill(&mut volume, &mut SplitMix64::new(6), 400);
    let commits = |events: &[StoreEvent]| events.iter().any(|event| event.object.starts_with("p-"));
    store.take();
    // At the first one, writes wait and are carried out before the read that meets it.
    for _ in 0..2 {
        while !commits(&store.take()) {
            volume.access(vec![read(7)]).expect("sound");
        }
    }
    // A window has 16 accesses: five writes, eleven reads.
    volume.defer((0..5).map(|id| write(id, 9)).collect()).expect("memory");
    // Twice the same block waits as one write.
    volume.defer(vec![write(4, 8)]).expect("memory");
    for at in 0..11 {
        volume.access(vec![read(at + 20)]).expect("sound");
    }
    assert!(!commits(&store.take()), "not yet");
    volume.access(vec![read(40)]).expect("sound");
    let events = store.take();
    let commit = events.iter().position(|event| event.object.starts_with("p-")).expect("one");
    let batches: HashSet<u64> = events[..commit]
        .iter()
        .filter(|event| event.op == CallKind::Read && event.object.contains("-05-"))
        .map(|event| event.call)
        .collect();
    assert_eq!(batches.len(), 2, "the writes, then the window");
}

/// From init to the recovery after a crash.
#[test]
fn nothing_is_listed_where_objects_are_created_exclusively() {
    for (exclusive, lists) in [(true, false), (false, true)] {
        let store = Arc::new(RecordStore::new(MemoryStore::new()));
        let mut volume = create(store.clone(), exclusive, 1);
        super::fill(&mut volume, &mut SplitMix64::new(1), 200);
        drop(volume);
        let mut volume = open(store.clone(), 2).expect("sound");
        volume.info().expect("memory");
        volume.finish().expect("memory");
        let events = store.take();
        assert_eq!(events.iter().any(|event| event.op == CallKind::List), lists);
        let overs =
            events.iter().filter(|it| matches!(it.op, CallKind::Truncate | CallKind::Allocate));
        assert_eq!(overs.count(), 0, "whole objects only");
        assert!(events.iter().all(|it| it.op != CallKind::Write || it.offset == 0));
    }
}

/// No name is ever stored with two contents, but for the hint: of entries and buckets each is
/// written once.
#[test]
fn every_object_is_stored_once() {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let mut volume = create(store.clone(), true, 1);
    super::fill(&mut volume, &mut SplitMix64::new(2), 300);
    drop(volume);
    let mut volume = open(store.clone(), 2).expect("sound");
    super::fill(&mut volume, &mut SplitMix64::new(3), 100);
    volume.finish().expect("memory");
    let mut stored = HashSet::new();
    for event in store.take() {
        if matches!(event.op, CallKind::Write | CallKind::Put) {
            let first = stored.insert(event.object.clone());
            assert!(first || *event.object == *"n-newest", "{} is stored twice", event.object);
        }
    }
    assert!(stored.len() > 200, "{}", stored.len());
}

/// What each call read of buckets: level, window, and the place there.
pub(crate) fn paths(events: &[StoreEvent]) -> Vec<Vec<(String, u64)>> {
    let mut calls: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
    for event in events.iter().filter(|it| it.op == CallKind::Read && it.object.starts_with("b-")) {
        let name: Vec<&str> = event.object.split('-').collect();
        let place = (format!("{}-{}", name[2], name[3]), event.offset);
        calls.entry(event.call).or_default().push(place);
    }
    calls.into_values().collect()
}

/// A crashed session's batches are shown again by the next one, path for path, and after that
/// no path comes again.
#[test]
fn what_was_shown_is_shown_again_and_nothing_else() {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let mut volume = create(store.clone(), true, 1);
    super::fill(&mut volume, &mut SplitMix64::new(4), 400);
    volume.finish().expect("memory");
    drop(volume);
    let mut volume = open(store.clone(), 2).expect("sound");
    store.take();
    // Fewer than a window's accesses: no commit comes in between.
    for at in 0..12 {
        volume.access(vec![read(at % 3)]).expect("sound");
    }
    volume.idle().expect("acknowledged");
    let shown = paths(&store.take());
    assert_eq!(shown.len(), 12);
    // Killed. The next one asks for something else.
    drop(volume);
    let mut volume = open(store.clone(), 3).expect("sound");
    let again = paths(&store.take());
    assert_eq!(again[..12], shown[..], "the same paths, in the same order");
    assert!(again.len() <= 13, "and at most a window");
    for at in 0..40 {
        volume.access(vec![read((at + 20) % BLOCKS)]).expect("sound");
    }
}
