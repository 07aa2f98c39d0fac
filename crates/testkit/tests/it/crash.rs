//! The crash store leaves every state that a real disk may leave, and no other.

use oblivio_store::{
    Held, Lease, Log, MemoryStore, Objects, PutMode, ReadAt, Result, Slots, Store, StoreError,
    WriteAt,
};
use oblivio_testkit::CrashStore;
use std::collections::BTreeSet;

const SEEDS: u64 = 300;

fn write(store: &dyn Store, object: &str, offset: u64, data: &[u8]) -> Result<()> {
    store.write(&[WriteAt::new(object, offset, data)])
}

fn content(store: &dyn Store, object: &str) -> Option<Vec<u8>> {
    let len = store.len(object).expect("len")?;
    let mut buf = vec![0; len as usize];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut buf }]).expect("read");
    Some(buf)
}

/// All contents of an object that some seed leaves.
fn chances(store: &CrashStore, object: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..SEEDS).map(|seed| content(&store.survivors(seed), object)).collect()
}

/// All contents of an object that some crash leaves, the extreme ones too.
fn outcomes(store: &CrashStore, object: &str) -> BTreeSet<Option<Vec<u8>>> {
    let extremes = store.extremes().into_iter().map(|(_, state)| content(&state, object));
    chances(store, object).into_iter().chain(extremes).collect()
}

fn some(data: &[u8]) -> Option<Vec<u8>> {
    Some(data.to_vec())
}

fn cut(result: Result<()>) -> bool {
    matches!(result, Err(StoreError::Io { source, .. }) if source.to_string() == "crashed")
}

#[test]
fn a_synced_write_always_survives_and_others_may_not() -> Result<()> {
    let store = CrashStore::new();
    write(&store, "a", 0, b"old")?;
    store.sync(&["a"])?;
    assert_eq!(outcomes(&store, "a"), [some(b"old")].into());
    write(&store, "a", 0, b"new")?;
    assert_eq!(content(&store, "a"), some(b"new"));
    let left = outcomes(&store, "a");
    assert!(left.contains(&some(b"old")) && left.contains(&some(b"new")));
    Ok(())
}

#[test]
fn writes_are_torn_by_bytes_and_by_sectors() -> Result<()> {
    let store = CrashStore::new();
    write(&store, "a", 0, &[0; 4096])?;
    store.sync(&["a"])?;
    write(&store, "a", 256, &[1; 3000])?;
    let left: Vec<Vec<u8>> = outcomes(&store, "a").into_iter().flatten().collect();
    let inside = |data: &Vec<u8>| data[256..3256].to_vec();
    let prefix = |data: &Vec<u8>| inside(data).is_sorted_by(|a, b| a >= b);
    let suffix = |data: &Vec<u8>| inside(data).is_sorted();
    let whole = |data: &Vec<u8>| prefix(data) && suffix(data);
    let sectors = |data: &Vec<u8>| {
        data.chunks(512).skip(1).take(5).all(|sector| sector.iter().all(|byte| *byte == sector[0]))
    };
    assert!(left.iter().any(|data| prefix(data) && !whole(data)), "a prefix");
    assert!(left.iter().any(|data| suffix(data) && !whole(data)), "a suffix");
    assert!(left.iter().any(|data| sectors(data) && !prefix(data) && !suffix(data)), "sectors");
    // Nothing outside the write is touched.
    assert!(left.iter().all(|data| data.len() == 4096));
    assert!(left.iter().all(|data| data[..256] == [0; 256] && data[3256..] == [0; 840]));
    Ok(())
}

#[test]
fn overlapping_writes_are_reordered() -> Result<()> {
    let store = CrashStore::new();
    write(&store, "a", 0, b"....")?;
    store.sync(&["a"])?;
    write(&store, "a", 1, b"1")?;
    write(&store, "a", 0, b"222")?;
    let left = chances(&store, "a");
    // Tearing cannot produce the last one.
    for possible in [b"....", b".1..", b"222.", b"212."] {
        assert!(left.contains(&some(possible)), "{possible:?}");
    }
    Ok(())
}

#[test]
fn an_unsynced_creation_is_lost_or_survives_empty() -> Result<()> {
    let store = CrashStore::new();
    write(&store, "a", 0, b"x")?;
    let left = chances(&store, "a");
    assert!(left.contains(&None) && left.contains(&some(b"")) && left.contains(&some(b"x")));
    write(&store, "empty", 0, b"")?;
    assert_eq!(outcomes(&store, "empty"), [None, some(b"")].into());
    store.sync(&["empty"])?;
    assert_eq!(outcomes(&store, "empty"), [some(b"")].into());
    assert!(outcomes(&store, "a").contains(&None), "a sync is for its object only");
    Ok(())
}

#[test]
fn a_length_survives_without_its_data() -> Result<()> {
    let store = CrashStore::new();
    write(&store, "a", 0, b"head")?;
    store.sync(&["a"])?;
    write(&store, "a", 4, b"tail")?;
    let left = chances(&store, "a");
    assert!(left.contains(&some(b"head\0\0\0\0")) && left.contains(&some(b"head")));
    Ok(())
}

#[test]
fn a_put_in_flight_is_there_or_not() -> Result<()> {
    let store = CrashStore::new();
    store.put("a", b"old", PutMode::Replace)?;
    write(&store, "a", 0, b"OLD")?;
    store.put("a", b"2nd", PutMode::Replace)?;
    assert_eq!(outcomes(&store, "a"), [some(b"2nd")].into());
    store.crash_after(store.operations());
    assert!(cut(store.put("a", b"third", PutMode::Replace)));
    assert_eq!(outcomes(&store, "a"), [some(b"2nd"), some(b"third")].into());
    Ok(())
}

#[test]
fn truncate_and_delete_are_durable_and_atomic() -> Result<()> {
    let store = CrashStore::new();
    for object in ["a", "b", "c"] {
        store.put(object, b"12345678", PutMode::Replace)?;
    }
    write(&store, "a", 6, b"pending")?;
    store.truncate("a", 4)?;
    assert_eq!(outcomes(&store, "a"), [some(b"1234")].into());
    store.truncate("a", 6)?;
    assert_eq!(outcomes(&store, "a"), [some(b"1234\0\0")].into());
    store.delete(&["b"])?;
    assert_eq!(outcomes(&store, "b"), [None].into());
    let start = store.operations();
    let again = CrashStore::holding(&store.survivors(0));
    store.crash_after(start);
    assert!(cut(store.truncate("a", 2)));
    assert_eq!(outcomes(&store, "a"), [some(b"12"), some(b"1234\0\0")].into());
    again.crash_after(0);
    assert!(cut(again.delete(&["a", "c"])));
    let kept = |seed| again.survivors(seed).list().map(|list| list.len());
    let sizes: BTreeSet<usize> = (0..SEEDS).map(|seed| kept(seed).expect("list")).collect();
    assert_eq!(sizes, [0, 1, 2].into(), "each object for itself");
    Ok(())
}

#[test]
fn a_sync_in_flight_promises_nothing() -> Result<()> {
    let store = CrashStore::new();
    write(&store, "a", 0, b"x")?;
    store.crash_after(1);
    assert!(cut(store.sync(&["a"])));
    assert!(outcomes(&store, "a").is_superset(&[None, some(b"x")].into()));
    Ok(())
}

#[test]
fn the_power_fails_at_the_operation_and_stays_off() -> Result<()> {
    let run = |store: &CrashStore| -> Result<()> {
        write(store, "a", 0, b"1")?;
        store.sync(&["a"])?;
        store.put("b", b"2", PutMode::IfAbsent)?;
        store.truncate("b", 0)?;
        store.delete(&["a"])
    };
    let whole = CrashStore::new();
    run(&whole)?;
    assert_eq!(whole.operations(), 5);
    assert!(!whole.crashed());
    for operation in 0..5 {
        let store = CrashStore::new();
        store.crash_after(operation);
        assert!(cut(run(&store)));
        assert!(store.crashed());
        assert_eq!(store.operations(), operation + 1);
        assert!(cut(store.list().map(drop)) && cut(store.len("a").map(drop)));
        assert!(cut(store.read(&mut [])) && cut(run(&store)) && cut(store.lock()));
        assert_eq!(store.operations(), operation + 1);
    }
    Ok(())
}

#[test]
fn the_extremes_are_there() -> Result<()> {
    let store = CrashStore::new();
    store.put("a", b"....", PutMode::Replace)?;
    write(&store, "a", 0, b"111")?;
    write(&store, "a", 1, b"22222")?;
    let states = |store: &CrashStore| -> Vec<_> {
        store.extremes().iter().filter_map(|(_, state)| content(state, "a")).collect()
    };
    let pending: [&[u8]; 6] = [b"....", b"122222", b"....\0\0", b"111222", b".22222", b".22222"];
    assert_eq!(states(&store), pending);
    store.crash_after(store.operations());
    assert!(cut(store.truncate("a", 2)));
    assert_eq!(states(&store)[..6], pending);
    assert_eq!(states(&store)[6..], [b"..", b"12"]);
    Ok(())
}

#[test]
fn a_seed_gives_one_state() -> Result<()> {
    let store = CrashStore::new();
    for number in 0..20_u8 {
        write(&store, "a", u64::from(number) * 300, &[number + 1; 700])?;
        write(&store, "b", 0, &[number; 10])?;
    }
    let state = |seed| {
        let left: MemoryStore = store.survivors(seed);
        (content(&left, "a"), content(&left, "b"))
    };
    let different: BTreeSet<_> = (0..100).map(state).collect();
    assert!(different.len() > 60, "{}", different.len());
    assert!((0..100).all(|seed| state(seed) == state(seed)));
    Ok(())
}

#[test]
fn what_was_discarded_may_be_zero_or_not() -> Result<()> {
    let store = CrashStore::new();
    write(&store, "a", 0, b"old")?;
    store.sync(&["a"])?;
    store.discard(&[("a", 1, 9)])?;
    let left = outcomes(&store, "a");
    assert!(left.contains(&some(b"old")) && left.contains(&some(b"o\0\0")));
    assert!(left.iter().flatten().all(|data| data.len() == 3 && data[0] == b'o'));
    store.sync(&["a"])?;
    assert_eq!(outcomes(&store, "a"), [some(b"o\0\0")].into());
    Ok(())
}
