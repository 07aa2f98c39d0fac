//! Levels: when each lives, what it becomes, and what its entries are called (§5.3).
//!
//! The paper uses "generation j/2" and the star inconsistently. The rule that works: at an odd
//! generation only `i.j` lives; while it is queried it is reshuffled into `i.(j+1).*`. At an even
//! generation `i.j` has come from above, `i.j` and `i.j.*` both live, and both are merged into
//! `(i+1).(j/2)`. Neither the paper nor the design says what happens at the bottom, where no next
//! height exists. Here the star takes all in: `i.j` and, if it lives, `i.j.*` are merged into
//! `i.(j+1).*`, at every generation. Two copies live at the bottom then, not 1.5.
//!
//! It follows that a height's levels hold what was asked in one window of queries, and that the
//! windows of all heights lie side by side, newer ones above. So the newest version of an item is
//! the first that a walk from the top finds, and at one height `i.j` precedes `i.j.*` (E4).

use super::error::{PaperError, Result};
use super::ids::{
    FakeNumber, Generation, Height, ITEM_ID_BYTES, ItemId, LEVEL_BYTES, LevelId, OpaqueId, Period,
    QueryNumber,
};
use oblivio_crypto::Prf;

/// PRF purposes; [`super::bloom_filter`] has the others.
const ITEM: u8 = 1;
const FAKE: u8 = 2;

/// Larger pyramids do not exist: 2^40 blocks of 4 KiB are 4 PiB.
const MOST_HEIGHTS: u32 = 40;

/// The heights of a pyramid and the time table of its levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The paper's `c`: queries of a period, and items of the top level.
    log: u64,
    /// `log2(n/c) + 1`.
    heights: u32,
}

/// The levels of one height that live in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// The one that came from above; it has the newer version of everything in both.
    pub fresh: LevelId,
    /// The one that was reshuffled at this height.
    pub star: Option<LevelId>,
    /// The level that is made of them meanwhile.
    pub target: LevelId,
}

impl Live {
    /// Newest first, the order in which a query looks.
    pub fn levels(&self) -> impl Iterator<Item = LevelId> + use<> {
        [Some(self.fresh), self.star].into_iter().flatten()
    }
}

impl Schedule {
    /// A pyramid with `log` queries a period, for `log * 2^(heights - 1)` items.
    ///
    /// # Errors
    /// Unless `log` is a power of two and there are 1 to 40 heights.
    pub fn new(log: u64, heights: u32) -> Result<Self> {
        if !log.is_power_of_two() || log > 1 << 16 {
            return Err(PaperError::Invalid("c must be a power of two, at most 2^16"));
        }
        if !(1..=MOST_HEIGHTS).contains(&heights) {
            return Err(PaperError::Invalid("a pyramid has 1 to 40 heights"));
        }
        Ok(Self { log, heights })
    }

    /// Queries of a period: the paper's `c`.
    pub fn log(&self) -> u64 {
        self.log
    }

    /// All heights, from the top.
    pub fn heights(&self) -> impl DoubleEndedIterator<Item = Height> + use<> {
        (0..self.heights).map(Height)
    }

    /// `log2(n/c) + 1`.
    pub fn height_count(&self) -> u32 {
        self.heights
    }

    /// The lowest height.
    pub fn bottom(&self) -> Height {
        Height(self.heights - 1)
    }

    /// Items of a level at this height, and the queries of its life: `m = c * 2^i`.
    pub fn items(&self, height: Height) -> u64 {
        self.log << height.0
    }

    /// The period of a query.
    pub fn period(&self, query: QueryNumber) -> Period {
        Period(query.0 / self.log)
    }

    /// A query's place in its period's log.
    pub fn place(&self, query: QueryNumber) -> usize {
        (query.0 % self.log) as usize
    }

    /// What lives at a height in a period; nothing until the first queries have come down to it.
    pub fn live(&self, height: Height, period: Period) -> Option<Live> {
        // `i.j` is born `c` before query m * (j + 1): what it holds was complete at query m * j,
        // and then took m/2 queries for each height above.
        let generation =
            Generation(((period.0 + 1) >> height.0).checked_sub(1).filter(|&j| j > 0)?);
        let at = |height, generation, star| LevelId { height, generation, star };
        let even = generation.0.is_multiple_of(2);
        let bottom = height == self.bottom();
        let has_star = even || bottom && generation.0 > 1;
        let target = if even && !bottom {
            at(Height(height.0 + 1), Generation(generation.0 / 2), false)
        } else {
            at(height, Generation(generation.0 + 1), true)
        };
        let star = has_star.then_some(at(height, generation, true));
        Some(Live { fresh: at(height, generation, false), star, target })
    }

    /// The period in which a level begins to live.
    pub fn birth(&self, level: LevelId) -> Period {
        Period(((level.generation.0 + 1) << level.height.0) - 1)
    }

    /// The period in which a level no longer lives.
    pub fn end(&self, level: LevelId) -> Period {
        Period(((level.generation.0 + 2) << level.height.0) - 1)
    }

    /// The number of a query in the life of a level: the fake that it asks for.
    pub fn asked_before(&self, level: LevelId, query: QueryNumber) -> FakeNumber {
        FakeNumber(query.0 - self.birth(level).0 * self.log)
    }

    /// The levels of which this one is made; none for the top, which is made of a query log.
    pub fn sources(&self, target: LevelId) -> Vec<LevelId> {
        let Some(live) = self.source_height(target).and_then(|(height, generation)| {
            let period = Period(((generation.0 + 1) << height.0) - 1);
            self.live(height, period)
        }) else {
            return Vec::new();
        };
        live.levels().collect()
    }

    /// The height that becomes this level, and its generation then.
    fn source_height(&self, target: LevelId) -> Option<(Height, Generation)> {
        let Generation(generation) = target.generation;
        if target.star {
            Some((target.height, Generation(generation - 1)))
        } else {
            let above = target.height.0.checked_sub(1)?;
            Some((Height(above), Generation(generation * 2)))
        }
    }

    /// Queries while a level is made, each of which names one deletion from it; 0 for the top.
    pub fn deletions(&self, target: LevelId) -> u64 {
        self.source_height(target).map_or(0, |(height, _)| self.items(height))
    }

    /// Entries of a level as it is made: room for `m` items, a fake for each query of its life,
    /// and a fake for each deletion (E5). Once the deletions are carried out, `2m` are left.
    pub fn entries(&self, level: LevelId) -> u64 {
        2 * self.items(level.height) + self.deletions(level)
    }

    /// The fake that a deletion names when the query found nothing at that height.
    pub fn deletion_fake(&self, target: LevelId, asked: FakeNumber) -> FakeNumber {
        FakeNumber(self.items(target.height) + asked.0)
    }
}

/// The name of an item in a level.
pub fn item_name(prf: &Prf, level: LevelId, id: ItemId) -> OpaqueId {
    name(prf, ITEM, level, &id.0)
}

/// The name of a fake in a level.
pub fn fake_name(prf: &Prf, level: LevelId, fake: FakeNumber) -> OpaqueId {
    let mut number = [0; ITEM_ID_BYTES];
    number[..8].copy_from_slice(&fake.0.to_le_bytes());
    name(prf, FAKE, level, &number)
}

fn name(prf: &Prf, purpose: u8, level: LevelId, of: &[u8; ITEM_ID_BYTES]) -> OpaqueId {
    let mut input = [0; LEVEL_BYTES + ITEM_ID_BYTES];
    input[..LEVEL_BYTES].copy_from_slice(&level.encode());
    input[LEVEL_BYTES..].copy_from_slice(of);
    let mut out = [0; 16];
    prf.fill(purpose, &input, &mut out);
    OpaqueId(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn id(height: u32, generation: u64, star: bool) -> LevelId {
        LevelId { height: Height(height), generation: Generation(generation), star }
    }

    #[test]
    fn the_first_generations_are_those_of_the_rule() {
        let schedule = Schedule::new(4, 3).expect("valid");
        let live = |height, period| schedule.live(Height(height), Period(period));
        assert_eq!(live(0, 0), None);
        let (fresh, target) = (id(0, 1, false), id(0, 2, true));
        assert_eq!(live(0, 1), Some(Live { fresh, star: None, target }));
        let (fresh, star, target) = (id(0, 2, false), Some(id(0, 2, true)), id(1, 1, false));
        assert_eq!(live(0, 2), Some(Live { fresh, star, target }));
        assert_eq!(live(1, 2), None);
        assert_eq!(live(1, 3).map(|live| live.fresh), Some(id(1, 1, false)));
        assert_eq!(live(2, 7).map(|live| live.target), Some(id(2, 2, true)));
        let (fresh, star, target) = (id(2, 2, false), Some(id(2, 2, true)), id(2, 3, true));
        assert_eq!(live(2, 11), Some(Live { fresh, star, target }), "the bottom takes all in");
    }

    /// Every target is born in the period in which the levels that it is made of end, and no other
    /// level is ever born.
    #[test]
    fn every_level_comes_from_the_targets_of_before() {
        let schedule = Schedule::new(2, 5).expect("valid");
        let mut before: BTreeMap<LevelId, LevelId> = BTreeMap::new();
        for period in (0..400).map(Period) {
            let mut now = BTreeMap::new();
            for live in schedule.heights().filter_map(|height| schedule.live(height, period)) {
                for level in live.levels() {
                    now.insert(level, live.target);
                    assert!(schedule.birth(level) <= period && period < schedule.end(level));
                    let top = level.height == Height(0) && !level.star;
                    let made = before.values().any(|&target| target == level);
                    assert!(before.contains_key(&level) || top || made, "{level:?}");
                }
                assert_eq!(schedule.sources(live.target), live.levels().collect::<Vec<_>>());
                assert_eq!(schedule.birth(live.target), schedule.end(live.fresh));
                let queries = schedule.items(live.fresh.height);
                assert_eq!(schedule.deletions(live.target), queries);
            }
            before = now;
        }
    }

    /// The windows of queries that the heights hold lie side by side.
    #[test]
    fn windows_lie_side_by_side() {
        let schedule = Schedule::new(4, 4).expect("valid");
        for period in (1..300).map(Period) {
            let mut newest = period.0 * schedule.log();
            for height in schedule.heights() {
                let Some(live) = schedule.live(height, period) else {
                    assert_eq!(newest, 0, "nothing below is lost");
                    continue;
                };
                let queries = schedule.items(height);
                assert_eq!(live.fresh.generation.0 * queries, newest);
                newest -= queries;
                if live.star.is_some() {
                    newest = if height == schedule.bottom() { 0 } else { newest - queries };
                }
            }
        }
    }

    #[test]
    fn names_differ_by_level_and_kind() {
        let prf = Prf::from_seed(1);
        let zero = ItemId([0; ITEM_ID_BYTES]);
        let names = [
            item_name(&prf, id(0, 1, false), zero),
            item_name(&prf, id(0, 1, true), zero),
            item_name(&prf, id(1, 1, false), zero),
            item_name(&prf, id(0, 2, false), zero),
            fake_name(&prf, id(0, 1, false), FakeNumber(0)),
            fake_name(&prf, id(0, 1, false), FakeNumber(1)),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name));
        }
    }
}
