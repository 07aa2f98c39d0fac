//! The disk cache: buckets of the levels next to the pool, on this computer's own disk.
//!
//! It keeps every bucket of these levels that was ever read or written here, and forgets one only
//! when a window replaces it. So what the store is asked for follows from what it saw before, never
//! from which blocks were wanted. Buckets stay as they are: sealed.
//!
//! A cached object has the name and the bytes of the stored one, with gaps, and the digest of each
//! bucket behind them; zeros for one that is not there. What does not match its digest is not
//! there: a crash or a bad disk costs a read, no more. Nothing is ever synced. Any failure of the
//! disk turns the cache off.

use crate::options::CacheOptions;
use oblivio_crypto::digest;
use oblivio_engine::Level;
use oblivio_store::{ReadAt, Store, StoreError, WriteAt};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes of a bucket's digest: enough to tell damage from what was written.
const DIGEST: usize = 16;

/// The cache of an open volume.
pub(super) struct DiskCache {
    store: Arc<dyn Store>,
    /// The first level that is not cached.
    end: Level,
    /// Objects that have a file, as far as this session knows.
    held: BTreeSet<String>,
    off: bool,
}

impl DiskCache {
    /// A cache of the levels from `first` on that fit, of buckets of `bucket_bytes` each.
    pub fn new(options: &CacheOptions, first: Level, bucket_bytes: usize) -> Self {
        let end = end(first, bucket_bytes, options.bytes);
        let store = Arc::clone(&options.store);
        Self { store, end, held: BTreeSet::new(), off: false }
    }

    /// Whether the objects of a level are kept.
    pub fn keeps(&self, level: Level) -> bool {
        !self.off && level < self.end
    }

    /// Drops files of objects that are not current: another computer wrote meanwhile.
    pub fn keep_only(&mut self, current: &BTreeSet<String>) {
        let listed = self.store.list();
        let Some(listed) = self.or_off(listed) else { return };
        let (held, gone): (Vec<_>, Vec<_>) =
            listed.into_iter().map(|it| it.0).partition(|name| current.contains(name));
        let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
        let deleted = self.store.delete(&gone);
        self.or_off(deleted);
        self.held = held.into_iter().collect();
    }

    /// Fills the buckets of an object that are there, of `turns` in all; the numbers of the others.
    pub fn read(
        &mut self,
        object: &str,
        turns: u64,
        buckets: &mut [(u64, &mut [u8])],
    ) -> BTreeSet<u64> {
        let all = || buckets.iter().map(|(index, _)| *index).collect();
        if self.off || !self.held.contains(object) {
            return all();
        }
        let mut absent: BTreeSet<u64> = all();
        let mut digests = vec![[0; DIGEST]; buckets.len()];
        let mut reads = Vec::new();
        for ((index, buf), sum) in buckets.iter_mut().zip(&mut digests) {
            let bytes = buf.len() as u64;
            reads.push(ReadAt { object, offset: *index * bytes, buf });
            let offset = turns * bytes + *index * DIGEST as u64;
            reads.push(ReadAt { object, offset, buf: sum });
        }
        let read = match self.store.read(&mut reads) {
            Err(StoreError::Missing { .. } | StoreError::Short { .. }) => Ok(false),
            read => read.map(|()| true),
        };
        if self.or_off(read) != Some(true) {
            return absent;
        }
        for ((index, buf), sum) in buckets.iter().zip(&digests) {
            if digest(buf)[..DIGEST] == *sum {
                absent.remove(index);
            }
        }
        absent
    }

    /// A bucket of an object of `turns`, if it is there: its number and its length.
    pub fn bucket(&mut self, object: &str, turns: u64, of: (u64, usize)) -> Option<Vec<u8>> {
        let mut buf = vec![0; of.1];
        let absent = self.read(object, turns, &mut [(of.0, &mut buf)]);
        absent.is_empty().then_some(buf)
    }

    /// Forgets a bucket of an object of `turns`: its number and its length. The others stay, as the
    /// store may have lost them.
    pub fn forget_bucket(&mut self, object: &str, turns: u64, of: (u64, usize)) {
        if self.off || !self.held.contains(object) {
            return;
        }
        let offset = turns * of.1 as u64 + of.0 * DIGEST as u64;
        let written = self.store.write(&[WriteAt::new(object, offset, &[0; DIGEST])]);
        self.or_off(written);
    }

    /// Keeps some buckets of an object of `turns`.
    pub fn add(&mut self, object: &str, turns: u64, buckets: &[(u64, &[u8])]) {
        let Some(bytes) = buckets.first().map(|(_, bucket)| bucket.len() as u64) else { return };
        if self.off {
            return;
        }
        let mut writes = Vec::new();
        let end = turns * (bytes + DIGEST as u64);
        if self.held.insert(object.to_owned()) {
            // Gaps are zeros, up to the last digest.
            writes.push(WriteAt::new(object, end - 1, &[0]));
        }
        let sums: Vec<[u8; 32]> = buckets.iter().map(|(_, bucket)| digest(bucket)).collect();
        for ((index, bucket), sum) in buckets.iter().zip(&sums) {
            let offset = turns * bytes + index * DIGEST as u64;
            writes.push(WriteAt::new(object, offset, &sum[..DIGEST]));
            writes.push(WriteAt::new(object, index * bytes, bucket));
        }
        let written = self.store.write(&writes);
        self.or_off(written);
    }

    /// Keeps a whole object of `turns` buckets.
    pub fn put(&mut self, object: &str, turns: u64, data: &[u8]) {
        if self.off {
            return;
        }
        let mut bytes = data.to_vec();
        for bucket in data.chunks(data.len() / turns as usize) {
            bytes.extend_from_slice(&digest(bucket)[..DIGEST]);
        }
        // A write, not a put: that would wait for the disk.
        let written = self.store.write(&[WriteAt::new(object, 0, &bytes)]);
        if self.or_off(written).is_some() {
            self.held.insert(object.to_owned());
        }
    }

    /// Forgets objects.
    pub fn forget<'a>(&mut self, objects: impl Iterator<Item = &'a String>) {
        let gone: Vec<&str> =
            objects.filter(|object| self.held.remove(*object)).map(String::as_str).collect();
        let deleted = if gone.is_empty() { Ok(()) } else { self.store.delete(&gone) };
        self.or_off(deleted);
    }

    fn or_off<T>(&mut self, done: oblivio_store::Result<T>) -> Option<T> {
        self.off |= done.is_err();
        done.ok()
    }
}

/// The first level that does not fit into `bytes` with all those from `first` on.
pub(super) fn end(first: Level, bucket_bytes: usize, bytes: u64) -> Level {
    let of = |level: u32| (bucket_bytes + DIGEST) as u64 * (1 << level);
    let (mut end, mut all) = (first.0, 0u64);
    while end < 40 && all + of(end) <= bytes {
        all += of(end);
        end += 1;
    }
    Level(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::{Held, MemoryStore, Objects};

    const BYTES: usize = 100;

    fn cache(store: &Arc<MemoryStore>, bytes: u64) -> DiskCache {
        let options = CacheOptions { store: store.clone(), bytes };
        DiskCache::new(&options, Level(3), BYTES)
    }

    fn bucket(byte: u8) -> Vec<u8> {
        vec![byte; BYTES]
    }

    fn absent(cache: &mut DiskCache, object: &str) -> (BTreeSet<u64>, Vec<Vec<u8>>) {
        let mut bufs = vec![bucket(0); 4];
        let mut wanted: Vec<(u64, &mut [u8])> =
            (0..).zip(&mut bufs).map(|(index, buf)| (index, buf.as_mut_slice())).collect();
        let absent = cache.read(object, 4, &mut wanted);
        (absent, bufs)
    }

    #[test]
    fn it_has_what_it_was_given_until_that_is_replaced() {
        let store = Arc::new(MemoryStore::new());
        let mut cache = cache(&store, 1 << 20);
        assert_eq!(absent(&mut cache, "a").0, (0..4).collect());
        cache.add("a", 4, &[(2, &bucket(7))]);
        cache.put("b", 4, &[bucket(1), bucket(2), bucket(3), bucket(4)].concat());
        cache.forget_bucket("b", 4, (1, BYTES));
        assert_eq!(absent(&mut cache, "b").0, [1].into());
        assert_eq!(cache.bucket("b", 4, (2, BYTES)), Some(bucket(3)));
        assert_eq!(cache.bucket("b", 4, (1, BYTES)), None);
        cache.add("b", 4, &[(1, &bucket(2))]);
        let (gone, bufs) = absent(&mut cache, "a");
        assert_eq!((gone, &bufs[2]), ([0, 1, 3].into(), &bucket(7)));
        assert!(absent(&mut cache, "b").0.is_empty());
        // Another session finds them again, but not what is no longer current.
        let mut next = self::cache(&store, 1 << 20);
        next.keep_only(&["b".to_owned()].into());
        assert!(absent(&mut next, "b").0.is_empty());
        assert_eq!(absent(&mut next, "a").0.len(), 4);
        next.forget(["b".to_owned()].iter());
        assert_eq!(absent(&mut next, "b").0.len(), 4);
        assert!(store.list().expect("memory").is_empty());
    }

    /// Every byte: the bucket that it belongs to is not there, or still right.
    #[test]
    fn damage_costs_a_read() {
        let store = Arc::new(MemoryStore::new());
        let mut cache = cache(&store, 1 << 20);
        let data = [bucket(1), bucket(2), bucket(3), bucket(4)].concat();
        cache.put("b", 4, &data);
        for at in 0..4 * (BYTES + DIGEST) as u64 {
            store.corrupt("b", at, |byte| *byte ^= 1).expect("in the object");
            let (gone, bufs) = absent(&mut cache, "b");
            let expected = if at < 400 { at / 100 } else { (at - 400) / DIGEST as u64 };
            assert_eq!(gone, [expected].into(), "byte {at}");
            let right = (1..5).zip(&bufs).filter(|(byte, buf)| **buf == bucket(*byte)).count();
            assert!(right >= 3);
            store.corrupt("b", at, |byte| *byte ^= 1).expect("in the object");
        }
        store.delete(&["b"]).expect("memory");
        assert_eq!(absent(&mut cache, "b").0.len(), 4);
    }

    #[test]
    fn it_keeps_whole_levels_only() {
        let store = Arc::new(MemoryStore::new());
        let level = |level: u32| ((BYTES + DIGEST) as u64) << level;
        assert!(!cache(&store, level(3) - 1).keeps(Level(3)));
        let two = cache(&store, level(3) + level(4));
        assert!(two.keeps(Level(3)) && two.keeps(Level(4)) && !two.keeps(Level(5)));
    }
}
