//! S9 on a recorded trace: what must hold of everything that the server saw.

use oblivio_lab::pyramid_paper::bloom_filter::SEGMENT_BYTES;
use oblivio_lab::pyramid_paper::{
    Deletion, Height, LevelId, OpaqueId, PaperConfig, QueryNumber, Record, SegmentNumber, View,
    Walk, slot_bytes,
};
use std::collections::{BTreeMap, BTreeSet};

const SEAL: usize = oblivio_crypto::SEAL_OVERHEAD;

/// The trips of one query, without repeats.
#[derive(Default)]
pub struct Trips<'t> {
    pub begun: u64,
    pub walks: BTreeMap<u32, &'t Record>,
    pub finish: Option<&'t Record>,
    /// Trips in all, counted once for each client that made them.
    pub order: Vec<u32>,
}

/// Trips of a query in their order: the append, the walks, the result.
const APPEND: u32 = 0;
const FINISH: u32 = u32::MAX;

fn walk_of(record: &Record) -> Option<&Walk> {
    if let View::Walk(walk) = &record.view { Some(walk) } else { None }
}

/// The queries of a trace; complaints about repeats that differ.
pub fn queries<'t>(
    trace: &'t [Record],
    found: &mut Vec<String>,
) -> BTreeMap<QueryNumber, Trips<'t>> {
    let mut queries: BTreeMap<QueryNumber, Trips> = BTreeMap::new();
    for record in trace {
        let Some(query) = record.view.query() else { continue };
        let trips = queries.entry(query).or_default();
        let (first, trip) = match &record.view {
            View::Walk(walk) => (*trips.walks.entry(walk.trip).or_insert(record), walk.trip + 1),
            View::Finish(..) => (*trips.finish.get_or_insert(record), FINISH),
            View::Append(_) => {
                trips.begun += 1;
                (record, APPEND)
            }
            _ => continue,
        };
        // A client that finishes another's query repeats its requests; sizes of replies that only
        // depend on what stands at the server, too.
        if first.view != record.view {
            found.push(format!("query {}: a repeat differs: {:?}", query.0, record.view));
        }
        if !trips.order.contains(&trip) {
            trips.order.push(trip);
        }
    }
    queries
}

/// All that is wrong with a trace of whole queries.
pub fn check(config: &PaperConfig, trace: &[Record]) -> Vec<String> {
    let mut found = Vec::new();
    let queries = queries(trace, &mut found);
    let heights = config.schedule.height_count();
    for (query, trips) in &queries {
        let expected: Vec<u32> = (APPEND..=heights + 1).chain([FINISH]).collect();
        if trips.begun != 1 || trips.order != expected {
            found.push(format!("query {}: trips {:?}", query.0, trips.order));
            continue;
        }
        for record in trips.walks.values() {
            check_walk(config, *query, record, &mut found);
        }
        let deletion = trips.finish.and_then(|record| match record.view {
            View::Finish(_, deletion) => Some(deletion),
            _ => None,
        });
        check_deletion(config, *query, heights - 1, deletion.flatten(), &mut found);
    }
    check_once(&queries, &mut found);
    found
}

fn live_levels(config: &PaperConfig, query: QueryNumber, height: Option<u32>) -> Vec<LevelId> {
    let schedule = &config.schedule;
    let height = height.filter(|&height| height < schedule.height_count()).map(Height);
    let live = height.and_then(|height| schedule.live(height, schedule.period(query)));
    live.iter().flat_map(|live| live.levels()).collect()
}

/// A trip shows what its place in the time table says, no more and no less, in these sizes.
fn check_walk(config: &PaperConfig, query: QueryNumber, record: &Record, found: &mut Vec<String>) {
    let Some(walk) = walk_of(record) else { return };
    let mut wrong =
        |what: &str| found.push(format!("query {} trip {}: {what}", query.0, walk.trip));
    let filters = live_levels(config, query, Some(walk.trip));
    let items = live_levels(config, query, walk.trip.checked_sub(1));
    if !walk.segments.iter().map(|(level, _)| *level).eq(filters.iter().copied()) {
        wrong("filters of other levels");
    }
    if walk.segments.iter().any(|(_, of)| of.len() != config.filter.hashes as usize) {
        wrong("another number of segments");
    }
    if !walk.items.iter().map(|(level, _)| *level).eq(items.iter().copied()) {
        wrong("items of other levels");
    }
    let segments = filters.len() * config.filter.hashes as usize;
    let down = segments * (SEGMENT_BYTES + SEAL) + items.len() * slot_bytes(config) as usize;
    if record.down != down {
        wrong("another length");
    }
    if let Some(height) = walk.trip.checked_sub(2) {
        check_deletion(config, query, height, walk.deletion, found);
    } else if walk.deletion.is_some() {
        wrong("a deletion before its time");
    }
}

fn check_deletion(
    config: &PaperConfig,
    query: QueryNumber,
    height: u32,
    deletion: Option<Deletion>,
    found: &mut Vec<String>,
) {
    let schedule = &config.schedule;
    let live = schedule.live(Height(height), schedule.period(query));
    if deletion.map(|it| it.target) != live.map(|it| it.target) {
        found.push(format!("query {}: not one deletion at height {height}", query.0));
    }
}

/// No name is asked twice in a level's life or deleted twice, and no two queries show the same
/// filter positions.
fn check_once(queries: &BTreeMap<QueryNumber, Trips>, found: &mut Vec<String>) {
    let mut items: BTreeSet<(LevelId, OpaqueId)> = BTreeSet::new();
    let mut deleted: BTreeSet<(LevelId, OpaqueId)> = BTreeSet::new();
    let mut positions: BTreeSet<(LevelId, &[SegmentNumber])> = BTreeSet::new();
    for (query, trips) in queries {
        let mut once = |new: bool, what: &str| {
            if !new {
                found.push(format!("query {}: {what} twice", query.0));
            }
        };
        for walk in trips.walks.values().filter_map(|record| walk_of(record)) {
            for &name in &walk.items {
                once(items.insert(name), "an item");
            }
            for (level, numbers) in &walk.segments {
                once(positions.insert((*level, numbers)), "filter positions");
            }
            if let Some(deletion) = walk.deletion {
                once(deleted.insert((deletion.target, deletion.name)), "a deletion");
            }
        }
        if let Some(View::Finish(_, Some(deletion))) = trips.finish.map(|record| &record.view) {
            once(deleted.insert((deletion.target, deletion.name)), "a deletion");
        }
    }
    // What a level lost while it was made has no name that anyone may ask for.
    found.extend(items.intersection(&deleted).map(|name| format!("deleted and asked: {name:?}")));
}

/// The requests of constructions, by the level that each reads or writes: what, how much, in which
/// sizes.
pub fn constructions(trace: &[Record]) -> BTreeMap<LevelId, Vec<(View, usize, usize)>> {
    let mut made: BTreeMap<LevelId, Vec<(View, usize, usize)>> = BTreeMap::new();
    for record in trace {
        if let View::Build(_, level, ..) = record.view {
            made.entry(level).or_default().push((record.view.clone(), record.up, record.down));
        }
    }
    made
}

/// Bytes of queries and bytes of constructions, numbers of requests and of terms left out.
pub fn bytes(trace: &[Record]) -> (u64, u64) {
    let (mut online, mut construction) = (0, 0);
    for record in trace {
        match record.view {
            View::Build(what, ..) if what.starts_with("read") => construction += record.down,
            View::Build(..) => construction += record.up,
            View::ReadLogs(_) => construction += record.down,
            View::Claim(..) | View::Switch(_) => {}
            _ => online += record.up + record.down,
        }
    }
    (online as u64, construction as u64)
}

/// Buckets of segments in the test of positions.
const BUCKETS: usize = 16;
/// Chi-square of 15 degrees, exceeded by chance once in a million.
const ALARM: f64 = 56.49;

/// How often each part of a filter was asked for, for items and for fakes.
#[derive(Clone, Debug, Default)]
struct Shown([[u64; BUCKETS]; 2]);

impl Shown {
    /// Chi-square of "both come from one distribution".
    fn chi_square(&self) -> f64 {
        let totals = self.0.map(|counts| counts.iter().sum::<u64>() as f64);
        let all = totals[0] + totals[1];
        let cell = |of: usize, at: usize| {
            let both = (self.0[0][at] + self.0[1][at]) as f64;
            let expected = both * totals[of] / all;
            let off = self.0[of][at] as f64 - expected;
            if expected > 0.0 { off * off / expected } else { 0.0 }
        };
        (0..2)
            .flat_map(|of| (0..BUCKETS).map(move |at| (of, at)))
            .map(|(of, at)| cell(of, at))
            .sum()
    }
}

/// Alarms of the test that filter positions of items and of fakes have one distribution, height by
/// height; and how many draws of the rarer kind the best height gave. `is_real` knows the truth.
pub fn positions(
    config: &PaperConfig,
    trace: &[Record],
    is_real: impl Fn(QueryNumber, LevelId, &[SegmentNumber]) -> bool,
) -> (Vec<String>, u64) {
    let mut shown: BTreeMap<Height, Shown> = BTreeMap::new();
    for trips in queries(trace, &mut Vec::new()).values() {
        for walk in trips.walks.values().filter_map(|record| walk_of(record)) {
            for (level, numbers) in &walk.segments {
                let segments = config.filter_of(*level).segments;
                let kind = usize::from(is_real(walk.query, *level, numbers));
                let counts = &mut shown.entry(level.height).or_default().0[kind];
                for number in numbers {
                    counts[(number.0 * BUCKETS as u64 / segments) as usize] += 1;
                }
            }
        }
    }
    let rarer = |shown: &Shown| shown.0.iter().map(|counts| counts.iter().sum()).min().unwrap_or(0);
    let draws = shown.values().map(rarer).max().unwrap_or(0);
    let alarms = shown.iter().filter(|(_, shown)| shown.chi_square() > ALARM);
    (alarms.map(|(height, it)| format!("{height:?}: {}", it.chi_square())).collect(), draws)
}
