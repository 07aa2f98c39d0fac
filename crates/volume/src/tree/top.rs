//! When the top of the tree is in a log, and how large that is. Public numbers decide.

use crate::Result;
use crate::core::{MOST_OPS, Policy as _};
use crate::options::{Shown, ShownKind, TopLogs};
use crate::tree::room::fits_beside_top;
use crate::tree::slab::TopPlaces;
use crate::tree::tuning::MOST_TOP;
use crate::tree::volume::{TreeVolume, cache_bytes};
use oblivio_engine::Level;
use oblivio_engine::tree::{STASH_BOUND, TopControl, TopRule, TopView, TreeConfig, buckets_in};

/// The fewest levels of a top.
const LEAST_LEVELS: u32 = 2;
/// How many levels of a top must have more buckets than turns between two commits.
const LEAST_SAVED: u32 = 2;

/// The rule of the log that begins now, if one does. A session was busy if it made half of the
/// paths that come between two commits. The log must not take the room that decides whether it goes
/// on.
pub(crate) fn rule(volume: &TreeVolume, busy: bool) -> Option<TopRule> {
    let always = volume.options.top_logs == TopLogs::Always;
    let wanted = always || busy && volume.options.top_logs == TopLogs::Busy;
    if !wanted || volume.options.pad || volume.options.pace.is_some() {
        return None;
    }
    let engine = &volume.ledger.engine;
    let levels = levels(volume, engine.cached_buckets())?;
    let buckets = buckets_in(Level(levels - 1));
    let span = TopRule::span_of(buckets);
    let interval = volume.account.since.interval * 3 * 5 / 4;
    let places = span + 2 * interval.max(most_entries(volume));
    // The end of the log stores the top in other slots than those that hold it.
    let bytes = places * TopPlaces::distance(TopView::of(engine).entry_bytes())
        + buckets * volume.ledger.bucket_bytes();
    let roomy = volume.finds_much_room(volume.account.since.stored, bytes);
    (always || roomy).then_some(TopRule { buckets, span, places })
}

/// The levels of a log's top when this many buckets are in memory; `None` if no log would save
/// writes.
fn levels(volume: &TreeVolume, cached: u64) -> Option<u32> {
    let engine = &volume.ledger.engine;
    let config = engine.config();
    let most = (MOST_TOP / (2 * config.block_bytes)) as u64;
    // Whole levels, without the last two: leaves shrink, and blocks that cannot leave the top would
    // need a longer log.
    let levels = (most.min(cached) + 1).ilog2().min(engine.depth().0.saturating_sub(1));
    // Without a log, levels with fewer buckets than turns between two commits cost a path one
    // bucket together, and each other level one. A log costs a path about one bucket.
    let saves = levels >= volume.account.since.interval.max(1).ilog2() + LEAST_SAVED;
    let can = config.levels_of_recursion() == 1 && !engine.is_shrinking();
    let enough = saves || volume.options.top_logs == TopLogs::Always;
    (can && enough && levels >= LEAST_LEVELS).then_some(levels)
}

/// The most entries of one batch.
fn most_entries(volume: &TreeVolume) -> u64 {
    2 * volume.batch_limit().min(MOST_OPS) as u64 + STASH_BOUND as u64
}

/// Begins a log, right after a commit.
pub(crate) fn begin(volume: &mut TreeVolume, rule: TopRule) -> Result<()> {
    TopControl::of(&mut volume.ledger.engine).begin(rule)?;
    volume.ledger.slab.top = TopPlaces::of(&volume.ledger.engine);
    Ok(())
}

/// Whether the log goes on beyond the next commit. It does not if it holds nothing, if the tree
/// shrinks, if room is short, or if a log that begins now would have another top.
pub(crate) fn goes_on(volume: &TreeVolume) -> bool {
    let engine = &volume.ledger.engine;
    let Some((rule, _)) = TopView::of(engine).rule() else { return false };
    let config = engine.config();
    let bytes = cache_bytes(config, volume.memory_bytes, engine.capacity(), engine.depth());
    let cached = bytes.map_or(0, |cache_bytes| {
        TreeConfig { cache_bytes, ..*config }.cached_buckets(engine.shape(), engine.floor())
    });
    let always = volume.options.top_logs == TopLogs::Always;
    let room = always || volume.account.since.roomy && fits_beside_top(volume);
    let buckets = |levels| buckets_in(Level(levels - 1));
    let same = levels(volume, cached).map(buckets) == Some(rule.buckets);
    room && same && !TopView::of(engine).is_empty()
}

/// Whether the log may have no places for another batch before a commit.
pub(crate) fn is_short(volume: &TreeVolume) -> bool {
    let Some((_, entries)) = TopView::of(&volume.ledger.engine).rule() else { return false };
    volume.ledger.slab.top.is_short(entries.end, most_entries(volume))
}

/// Writes back everything that is only in memory or in the log, which ends.
pub(crate) fn flush_all(volume: &mut TreeVolume) -> Result<()> {
    let mut flush = volume.ledger.engine.begin_flush()?;
    volume.run(&mut flush, ShownKind::Commit)?;
    Ok(TopControl::of(&mut volume.ledger.engine).end()?)
}

/// Reports a commit that writes no bucket.
pub(crate) fn report_commit(volume: &mut TreeVolume) {
    volume.report(Shown { kind: ShownKind::Commit, ..Shown::default() });
}
