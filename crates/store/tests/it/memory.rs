//! The memory store beyond the trait.
use oblivio_store::{
    Held, Log, MemoryStore, Objects, PutMode, ReadAt, Result, Slots, StoreError, WriteAt,
};

const MIB: u64 = 1 << 20;

fn read(store: &MemoryStore, object: &str, offset: u64, len: usize) -> Result<Vec<u8>> {
    let mut buf = vec![0xee; len];
    store.read(&mut [ReadAt { object, offset, buf: &mut buf }]).map(|()| buf)
}

#[test]
fn holes_read_as_zeros_and_cost_nothing() -> Result<()> {
    let store = MemoryStore::new();
    let far = 4 << 40;
    store.write(&[WriteAt::new("a", far, b"end")])?;
    assert_eq!(store.len("a")?, Some(far + 3));
    assert_eq!(read(&store, "a", far - 2, 5)?, b"\0\0end");
    assert_eq!(read(&store, "a", 7 * MIB - 1, 3 << 20)?, vec![0; 3 << 20]);
    Ok(())
}

#[test]
fn discarded_chunks_cost_nothing_and_the_rest_stays() -> Result<()> {
    let store = MemoryStore::new();
    store.write(&[WriteAt::new("a", 0, &vec![7; 13 << 20])])?;
    let before = store.snapshot();
    store.discard(&[("a", 3 * MIB, 6 * MIB), ("a", 12 * MIB, u64::MAX - 12 * MIB)])?;
    assert_eq!(store.len("a")?, Some(13 * MIB));
    assert_eq!(read(&store, "a", 0, 4 << 20)?, vec![7; 4 << 20]);
    assert_eq!(read(&store, "a", 4 * MIB, 4 << 20)?, vec![0; 4 << 20]);
    assert_eq!(read(&store, "a", 8 * MIB, 4 << 20)?, vec![7; 4 << 20]);
    assert_eq!(read(&before, "a", 4 * MIB, 1)?, [7]);
    assert!(matches!(store.discard(&[("b", 0, 1)]), Err(StoreError::Missing { .. })));
    Ok(())
}

#[test]
fn ranges_cross_chunks() -> Result<()> {
    let store = MemoryStore::new();
    let data: Vec<u8> = (0..3 * MIB as u32 + 5).map(|number| (number % 251) as u8).collect();
    store.write(&[WriteAt::new("a", MIB / 2 + 1, &data)])?;
    assert_eq!(read(&store, "a", MIB / 2 + 1, data.len())?, data);
    assert_eq!(read(&store, "a", 0, MIB as usize / 2 + 1)?, vec![0; MIB as usize / 2 + 1]);
    Ok(())
}

#[test]
fn what_was_cut_off_does_not_come_back() -> Result<()> {
    for len in [0, 1, 4096, MIB - 1, MIB, MIB + 1] {
        let store = MemoryStore::new();
        store.write(&[WriteAt::new("a", 0, &vec![7; 3 << 20])])?;
        let before = store.snapshot();
        store.truncate("a", len)?;
        store.truncate("a", 3 * MIB)?;
        let content = read(&store, "a", 0, 3 << 20)?;
        assert!(content[..len as usize].iter().all(|byte| *byte == 7));
        assert!(content[len as usize..].iter().all(|byte| *byte == 0));
        assert_eq!(read(&before, "a", 0, 3 << 20)?, vec![7; 3 << 20]);
    }
    Ok(())
}

#[test]
fn snapshots_are_independent_and_restored() -> Result<()> {
    let store = MemoryStore::new();
    store.put("a", b"first", PutMode::Replace)?;
    let snapshot = store.snapshot();
    store.write(&[WriteAt::new("a", 0, b"F")])?;
    store.put("b", b"", PutMode::Replace)?;
    assert_eq!(read(&snapshot, "a", 0, 5)?, b"first");
    let copy = store.clone();
    store.restore(&snapshot);
    assert_eq!(read(&store, "a", 0, 5)?, b"first");
    assert_eq!(store.len("b")?, None);
    assert_eq!(read(&copy, "a", 0, 5)?, b"First");
    Ok(())
}

#[test]
fn one_byte_is_corrupted() -> Result<()> {
    let store = MemoryStore::new();
    store.put("a", b"abc", PutMode::Replace)?;
    let snapshot = store.snapshot();
    store.corrupt("a", 1, |byte| *byte ^= 0x20)?;
    assert_eq!(read(&store, "a", 0, 3)?, b"aBc");
    assert_eq!(read(&snapshot, "a", 0, 3)?, b"abc");
    let short = store.corrupt("a", 3, |_| {});
    assert!(matches!(short, Err(StoreError::Short { len: 3, wanted: 4, .. })));
    assert!(matches!(store.corrupt("b", 0, |_| {}), Err(StoreError::Missing { .. })));
    Ok(())
}
