//! A model of a rotating disk, for comparisons that a disk without seeks cannot show: a layer below
//! every system alike that waits as long as such a disk would.
//!
//! One head. Data at its position costs the time of its bytes; anything else a seek, or, if less,
//! the time of the bytes skipped. Each object lies in one piece, far from the others. Above the
//! disk is a page cache. A read brings the 64 KiB around it. Writes wait until there are 8 MiB or a
//! sync, and are then written in the order of their places, as systems do. The cache evicts its
//! oldest pages.
//!
//! It is a model: no read-ahead beyond the 64 KiB, no queue in the disk, no file system journal.

use oblivio_store::{Layer, Result, Store, StoreAnswer, StoreCall};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes a second without seeks: about the paper's disk.
pub const RATE: u64 = 100_000_000;
const PAGE: u64 = 4096;
/// Pages that a read brings.
const AROUND: u64 = 16;
/// Limit of the deferred pages.
const WAITING: usize = (8 << 20) / PAGE as usize;
/// The disk's size in multiples of its page cache: the paper's machine had 4 GB for 40.
pub const CACHED: u64 = 10;

/// A page of an object; objects have numbers here.
type Page = (usize, u64);

/// The state of the disk and its cache.
struct Head {
    seek: Duration,
    objects: Vec<String>,
    /// The next page without a seek.
    next: Option<Page>,
    cache: HashSet<Page>,
    order: VecDeque<Page>,
    most: usize,
    waiting: BTreeSet<Page>,
}

fn transfer(pages: u64) -> Duration {
    Duration::from_nanos(pages * PAGE * 1_000_000_000 / RATE)
}

impl Head {
    fn new(seek: Duration, cache_bytes: u64) -> Self {
        let most = (cache_bytes / PAGE) as usize;
        let (objects, cache, order, waiting) = Default::default();
        Self { seek, objects, next: None, cache, order, most, waiting }
    }

    fn object(&mut self, name: &str) -> usize {
        self.objects.iter().position(|known| known == name).unwrap_or_else(|| {
            self.objects.push(name.into());
            self.objects.len() - 1
        })
    }

    fn pages(&mut self, name: &str, offset: u64, len: usize) -> impl Iterator<Item = Page> + use<> {
        let object = self.object(name);
        let pages = offset / PAGE..(offset + len as u64).div_ceil(PAGE);
        pages.map(move |page| (object, page))
    }

    /// The head passes `count` pages from this one on.
    fn pass(&mut self, (object, page): Page, count: u64) -> Duration {
        let way = match self.next {
            Some((at, next)) if at == object && next <= page => transfer(page - next),
            _ => Duration::MAX,
        };
        self.next = Some((object, page + count));
        way.min(self.seek) + transfer(count)
    }

    fn keep(&mut self, page: Page) {
        if self.cache.insert(page) {
            self.order.push_back(page);
        }
        while self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.cache.remove(&oldest);
        }
    }

    fn read<'a>(&mut self, ranges: impl Iterator<Item = (&'a str, u64, usize)>) -> Duration {
        let mut missing = BTreeSet::new();
        for (object, offset, len) in ranges {
            let pages: Vec<Page> = self.pages(object, offset, len).collect();
            let known = |page: &Page| self.cache.contains(page) || self.waiting.contains(page);
            let around = pages.into_iter().filter(|page| !known(page));
            missing.extend(around.map(|(object, page)| (object, page / AROUND)));
        }
        let mut time = Duration::ZERO;
        for (object, group) in missing {
            time += self.pass((object, group * AROUND), AROUND);
            (group * AROUND..(group + 1) * AROUND).for_each(|page| self.keep((object, page)));
        }
        time
    }

    fn write<'a>(&mut self, ranges: impl Iterator<Item = (&'a str, u64, usize)>) -> Duration {
        for (object, offset, len) in ranges {
            for page in self.pages(object, offset, len) {
                self.keep(page);
                self.waiting.insert(page);
            }
        }
        if self.waiting.len() > WAITING { self.flush() } else { Duration::ZERO }
    }

    fn flush(&mut self) -> Duration {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|page| self.pass(page, 1)).sum()
    }
}

/// The layer. It waits for nothing before [`Turning::turn`].
pub struct Turning<S> {
    inner: S,
    head: Mutex<Option<Head>>,
    seek: Duration,
    cache_bytes: u64,
}

impl<S: Store> Turning<S> {
    /// A disk with seeks of this length and this much cache.
    pub fn new(inner: S, seek: Duration, cache_bytes: u64) -> Self {
        Self { inner, head: Mutex::new(None), seek, cache_bytes }
    }

    /// From now on it rotates, and its cache is empty.
    pub fn turn(&self) {
        *self.head() = Some(Head::new(self.seek, self.cache_bytes));
    }

    fn head(&self) -> MutexGuard<'_, Option<Head>> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits as long as it takes; others wait for the head meanwhile.
    fn wait(&self, time: impl FnOnce(&mut Head) -> Duration) {
        let mut head = self.head();
        let time = head.as_mut().map_or(Duration::ZERO, time);
        if !time.is_zero() {
            thread::sleep(time);
        }
    }
}

impl<S: Store> Layer for Turning<S> {
    type Below = S;

    fn below(&self) -> &Self::Below {
        &self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        match call {
            StoreCall::Read(reads) => self.wait(|head| {
                head.read(reads.iter().map(|it| (it.object, it.offset, it.buf.len())))
            }),
            StoreCall::Write(writes) => self.wait(|head| {
                head.write(writes.iter().map(|it| (it.object, it.offset, it.data.len())))
            }),
            StoreCall::WriteDurable(it) => self.wait(|head| {
                head.write([(it.object, it.offset, it.data.len())].into_iter()) + head.flush()
            }),
            StoreCall::Put(object, data, _) => {
                self.wait(|head| head.write([(*object, 0, data.len())].into_iter()) + head.flush())
            }
            StoreCall::Sync(_) => self.wait(Head::flush),
            _ => {}
        }
        call.on(&self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEK: Duration = Duration::from_millis(13);

    #[test]
    fn what_follows_is_not_sought_and_what_was_read_is_not_read_again() {
        let mut head = Head::new(SEEK, 1 << 20);
        let mut read = |object, page: u64| head.read([(object, page * PAGE, 4096)].into_iter());
        let group = transfer(AROUND);
        assert_eq!(read("a", 0), SEEK + group);
        assert_eq!(read("a", AROUND - 1), Duration::ZERO);
        assert_eq!(read("a", AROUND), group);
        // Near enough to pass over, then too far, then back, then elsewhere.
        assert_eq!(read("a", 3 * AROUND), group + group);
        assert_eq!(read("a", 1 << 20), SEEK + group);
        assert_eq!(read("a", 2 * AROUND), SEEK + group);
        assert_eq!(read("b", 3 * AROUND), SEEK + group);
        // By now 1 MiB more was read.
        for at in 100..116 {
            read("c", at * AROUND);
        }
        assert!(read("a", 0) > Duration::ZERO);
    }

    #[test]
    fn writes_wait_and_go_in_order() {
        let mut head = Head::new(SEEK, 1 << 20);
        let wrote = [("a", 8 * PAGE, 4096), ("b", 0, 4096), ("a", 0, 8 * 4096)];
        assert_eq!(head.write(wrote.into_iter()), Duration::ZERO);
        assert_eq!(head.read([("b", 0, 4096)].into_iter()), Duration::ZERO);
        assert_eq!(head.flush(), 2 * SEEK + 10 * transfer(1));
        assert_eq!(head.flush(), Duration::ZERO);
        let much = WAITING * 4096;
        assert_eq!(head.write([("c", 0, much)].into_iter()), Duration::ZERO);
        assert!(head.write([("c", much as u64, 4096)].into_iter()) > SEEK);
    }
}
