//! Two levels of cache: what misses in both, and what is written back, goes to memory.
//!
//! Neither level includes the other: a line may leave the second and stay in the first. So a line
//! that the first writes back may have to go straight on to memory.

/// Why memory was asked. Numbers are those of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A load missed.
    Load = 0,
    /// A store missed. The line is read; it is written when it is evicted.
    Store = 1,
    /// A dirty line was evicted, and is written.
    Eviction = 2,
    /// A fetch of instructions missed.
    Fetch = 3,
}

/// The size of one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// All of it.
    pub bytes: u32,
    /// Lines of a set.
    pub ways: u32,
}

/// The sizes of all caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a line, everywhere.
    pub line: u32,
    /// Instructions, first level.
    pub l1i: Size,
    /// Data, first level.
    pub l1d: Size,
    /// Both, second level.
    pub l2: Size,
}

impl Geometry {
    /// Table 1 of the Freecursive paper, with this many bytes in a line.
    pub const fn paper(line: u32) -> Self {
        let l1 = Size { bytes: 32 << 10, ways: 4 };
        Self { line, l1i: l1, l1d: l1, l2: Size { bytes: 1 << 20, ways: 16 } }
    }

    /// Whether every cache has a power of two of sets, and a line is one too.
    pub fn is_valid(&self) -> bool {
        let whole = |size: Size| {
            let set = u64::from(size.ways) * u64::from(self.line);
            set > 0
                && u64::from(size.bytes).is_multiple_of(set)
                && (u64::from(size.bytes) / set).is_power_of_two()
        };
        self.line.is_power_of_two()
            && self.line >= 16
            && [self.l1i, self.l1d, self.l2].into_iter().all(whole)
    }
}

/// What an access to one cache did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Hit,
    /// The line was put in; this dirty one had to go.
    Miss(Option<u64>),
}

/// A set-associative cache that throws out the line that was used longest ago.
#[derive(Clone, Debug)]
struct Cache<const WAYS: usize> {
    /// Each set's lines from the last used on; see [`entry`]. None is 0.
    sets: Vec<[u64; WAYS]>,
}

const VALID: u64 = 1;
const DIRTY: u64 = 2;

/// A line as it is kept. A line has at least 16 bytes, so its number leaves bits free.
fn entry(line: u64) -> u64 {
    line << 2 | VALID
}

impl<const WAYS: usize> Cache<WAYS> {
    fn new(size: Size, line: u32) -> Self {
        assert_eq!(size.ways as usize, WAYS, "as many ways as the type has");
        Self { sets: vec![[0; WAYS]; (size.bytes / line) as usize / WAYS] }
    }

    #[inline]
    fn set(&mut self, line: u64) -> &mut [u64; WAYS] {
        let mask = self.sets.len() - 1;
        &mut self.sets[line as usize & mask]
    }

    #[inline]
    fn access(&mut self, line: u64, writes: bool) -> Outcome {
        let set = self.set(line);
        let (wanted, dirty) = (entry(line), u64::from(writes) * DIRTY);
        if set[0] & !DIRTY == wanted {
            set[0] |= dirty;
            return Outcome::Hit;
        }
        let mut held = wanted | dirty;
        for at in 0..WAYS {
            // Those before it move down by one.
            let other = std::mem::replace(&mut set[at], held);
            if other & !DIRTY == wanted {
                set[0] |= other;
                return Outcome::Hit;
            }
            held = other;
        }
        Outcome::Miss((held & DIRTY != 0).then_some(held >> 2))
    }

    /// Marks a line as dirty where it is, if it is here.
    fn write_back(&mut self, line: u64) -> bool {
        let found = self.set(line).iter_mut().find(|it| **it & !DIRTY == entry(line));
        found.map(|it| *it |= DIRTY).is_some()
    }
}

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Fetches that the first level did not have.
    pub l1i_misses: u64,
    /// Loads and stores that the first level did not have.
    pub l1d_misses: u64,
    /// Of both, those that the second level did not have either.
    pub l2_misses: u64,
    /// Dirty lines that went to memory.
    pub evictions: u64,
}

/// What answers when neither level can.
pub trait Memory {
    /// A line is read or written. `cycle` is what the access was given.
    fn line(&mut self, cycle: u64, kind: Kind, line: u64);
}

/// The caches of a core, with this many ways in the first level and in the second.
#[derive(Clone, Debug)]
pub struct Caches<const FIRST: usize = 4, const SECOND: usize = 16> {
    shift: u32,
    l1i: Cache<FIRST>,
    l1d: Cache<FIRST>,
    l2: Cache<SECOND>,
    /// The line of the last fetch, which is a hit without a look.
    fetched: u64,
    /// Counted so far.
    pub counts: Counts,
}

impl<const FIRST: usize, const SECOND: usize> Caches<FIRST, SECOND> {
    /// Empty caches. The geometry must be valid, and have these ways.
    pub fn new(geometry: &Geometry) -> Self {
        assert!(geometry.is_valid(), "sets and lines are powers of two");
        Self {
            shift: geometry.line.trailing_zeros(),
            l1i: Cache::new(geometry.l1i, geometry.line),
            l1d: Cache::new(geometry.l1d, geometry.line),
            l2: Cache::new(geometry.l2, geometry.line),
            fetched: u64::MAX,
            counts: Counts::default(),
        }
    }

    /// The line of an address.
    pub fn line_of(&self, address: u64) -> u64 {
        address >> self.shift
    }

    /// Bytes from an address to the end of its line.
    #[inline]
    pub fn rest_of_line(&self, address: u64) -> u64 {
        let line = 1 << self.shift;
        line - (address & (line - 1))
    }

    /// Fetches a line of instructions. Returns whether the first level had it.
    #[inline]
    pub fn fetch(&mut self, cycle: u64, line: u64, memory: &mut impl Memory) -> bool {
        if line == self.fetched {
            return true;
        }
        self.fetched = line;
        match self.l1i.access(line, false) {
            Outcome::Hit => true,
            Outcome::Miss(_) => {
                self.counts.l1i_misses += 1;
                self.second(cycle, Kind::Fetch, line, memory);
                false
            }
        }
    }

    /// Loads or stores inside of one line. Returns whether the first level had it.
    #[inline]
    pub fn data(&mut self, cycle: u64, line: u64, writes: bool, memory: &mut impl Memory) -> bool {
        let Outcome::Miss(evicted) = self.l1d.access(line, writes) else { return true };
        self.counts.l1d_misses += 1;
        // A store brings the line in like a load; it is dirty in the first level only, so far.
        self.second(cycle, if writes { Kind::Store } else { Kind::Load }, line, memory);
        if let Some(old) = evicted
            && !self.l2.write_back(old)
        {
            self.evict(cycle, old, memory);
        }
        false
    }

    #[cold]
    fn second(&mut self, cycle: u64, kind: Kind, line: u64, memory: &mut impl Memory) {
        let Outcome::Miss(evicted) = self.l2.access(line, false) else { return };
        self.counts.l2_misses += 1;
        memory.line(cycle, kind, line);
        if let Some(old) = evicted {
            self.evict(cycle, old, memory);
        }
    }

    fn evict(&mut self, cycle: u64, line: u64, memory: &mut impl Memory) {
        self.counts.evictions += 1;
        memory.line(cycle, Kind::Eviction, line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What went to memory.
    #[derive(Debug, Default, PartialEq)]
    struct Log(Vec<(Kind, u64)>);

    impl Memory for Log {
        fn line(&mut self, _: u64, kind: Kind, line: u64) {
            self.0.push((kind, line));
        }
    }

    /// A cache as one would draw it: each line with the time of its last use.
    struct Naive {
        size: Size,
        sets: u64,
        lines: Vec<(u64, u64, bool)>,
        time: u64,
    }

    impl Naive {
        fn new(size: Size, line: u32) -> Self {
            let sets = u64::from(size.bytes / line / size.ways);
            Self { size, sets, lines: Vec::new(), time: 0 }
        }

        /// None for a hit.
        fn access(&mut self, line: u64, writes: bool) -> Option<Option<u64>> {
            self.time += 1;
            if let Some(found) = self.lines.iter_mut().find(|it| it.0 == line) {
                *found = (line, self.time, found.2 || writes);
                return None;
            }
            let same_set = |it: &&(u64, u64, bool)| it.0 % self.sets == line % self.sets;
            let mut gone = None;
            if self.lines.iter().filter(same_set).count() == self.size.ways as usize {
                let oldest = *self.lines.iter().filter(same_set).min_by_key(|it| it.1).unwrap();
                self.lines.retain(|it| it.0 != oldest.0);
                gone = oldest.2.then_some(oldest.0);
            }
            self.lines.push((line, self.time, writes));
            Some(gone)
        }

        fn write_back(&mut self, line: u64) -> bool {
            let found = self.lines.iter_mut().find(|it| it.0 == line);
            found.map(|it| it.2 = true).is_some()
        }
    }

    fn small() -> Geometry {
        Geometry {
            line: 16,
            l1i: Size { bytes: 64, ways: 2 },
            l1d: Size { bytes: 64, ways: 2 },
            l2: Size { bytes: 256, ways: 4 },
        }
    }

    proptest! {
        #[test]
        fn caches_are_as_drawn(asks in prop::collection::vec((0_u64..40, 0_u8..3), 1..400)) {
            let geometry = small();
            let mut caches = Caches::<2, 4>::new(&geometry);
            let [mut l1i, mut l1d, mut l2] = [geometry.l1i, geometry.l1d, geometry.l2]
                .map(|size| Naive::new(size, geometry.line));
            let (mut log, mut drawn) = (Log::default(), Vec::new());
            for (line, what) in asks {
                let (kind, first) = match what {
                    0 => (Kind::Fetch, l1i.access(line, false)),
                    1 => (Kind::Load, l1d.access(line, false)),
                    _ => (Kind::Store, l1d.access(line, true)),
                };
                let hit = match kind {
                    Kind::Fetch => caches.fetch(0, line, &mut log),
                    _ => caches.data(0, line, kind == Kind::Store, &mut log),
                };
                prop_assert_eq!(hit, first.is_none());
                let Some(evicted) = first else { continue };
                if let Some(gone) = l2.access(line, false) {
                    drawn.push((kind, line));
                    drawn.extend(gone.map(|gone| (Kind::Eviction, gone)));
                }
                if let Some(old) = evicted && !l2.write_back(old) {
                    drawn.push((Kind::Eviction, old));
                }
            }
            prop_assert_eq!(log.0, drawn);
        }

        /// What is stored and leaves the caches is written back, and nothing else is.
        #[test]
        fn no_store_is_lost(stores in prop::collection::vec(0_u64..200, 1..200)) {
            let mut caches = Caches::<2, 4>::new(&small());
            let mut log = Log::default();
            for &line in &stores {
                caches.data(0, line, true, &mut log);
            }
            // Everything that was stored is thrown out by what is only loaded.
            for line in 1000..1200 {
                caches.data(0, line, false, &mut log);
            }
            let evicted = |line| log.0.contains(&(Kind::Eviction, line));
            for line in 0..200 {
                prop_assert_eq!(evicted(line), stores.contains(&line));
            }
            prop_assert!(!(1000..1200).any(evicted));
        }
    }

    #[test]
    fn the_paper_s_sizes_are_valid_and_odd_ones_are_not() {
        assert!(Geometry::paper(64).is_valid() && Geometry::paper(128).is_valid());
        assert!(!Geometry::paper(96).is_valid());
        assert!(
            !Geometry { l2: Size { bytes: 3 << 20, ways: 16 }, ..Geometry::paper(64) }.is_valid()
        );
        assert!(!Geometry { l2: Size { bytes: 0, ways: 0 }, ..Geometry::paper(64) }.is_valid());
    }
}
