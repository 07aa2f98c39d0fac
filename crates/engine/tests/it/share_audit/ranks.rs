//! S5: which slots of a table asks read: any, equally likely, whether a slot holds the block or
//! not, and none of a merge's set once it is shown.

use super::record::{AskId, ShareTrace, Shown, Spot, Truth, What};
use super::view::{Broken, Seen};
use oblivio_audit::Finding;
use oblivio_audit::checks::{Statistic, contingency, oddest};
use oblivio_audit::special::chi_square_upper;
use std::collections::BTreeMap;

/// Parts of a table, and of its reads.
const PARTS: u64 = 8;
/// The mean number in a part that chi-square needs in its far tail.
const LEAST: u64 = 32 * PARTS;

type Row = [u64; PARTS as usize];

/// Slots read of tables of one height.
#[derive(Clone, Default)]
struct Height {
    /// By the asks before, in parts of the reads that a table is made for.
    over_life: [Row; PARTS as usize],
    /// Of asks that missed, and of those that hit.
    by_truth: [Row; 2],
}

/// What was read.
#[derive(Default)]
pub(super) struct Ranks {
    broken: Broken,
    heights: BTreeMap<u32, Height>,
}

impl Ranks {
    pub fn see(&mut self, trace: &ShareTrace, seen: &Seen<'_>, truth: &Truth) {
        let What::Show(_, asks) = &seen.event.what else { return };
        if seen.again {
            return;
        }
        for Shown { ask, spots } in asks {
            let partition = seen.view.partition_of(spots);
            let open = partition.and_then(|partition| seen.view.open_of(partition));
            for spot in spots {
                let inside = open.is_some_and(|open| open.set.contains(spot));
                self.broken.must(!inside, seen, || format!("{spot:?} is in a merge's set"));
                self.count(trace, ask, *spot, seen, truth);
            }
        }
    }

    fn count(
        &mut self,
        trace: &ShareTrace,
        ask: &AskId,
        spot: Spot,
        seen: &Seen<'_>,
        truth: &Truth,
    ) {
        let Some(table) = seen.view.tables.get(&spot.table) else { return };
        let Some(sizes) = trace.sizes.of(table.height) else { return };
        let part = |at: u32, of: u32| {
            (u64::from(at) * PARTS / u64::from(of.max(1))).min(PARTS - 1) as usize
        };
        let rank = part(spot.slot, sizes.slots);
        let height = self.heights.entry(table.height).or_default();
        height.over_life[part(table.reads, sizes.early_reads)][rank] += 1;
        if let Some(&hit) = truth.get(ask) {
            height.by_truth[usize::from(hit)][rank] += 1;
        }
    }

    /// The exact finding, and those by chance.
    pub fn findings(self) -> (Finding, [Finding; 3]) {
        let Broken { count, first } = self.broken;
        let text = if count == 0 { "no read in a merge's set".into() } else { first };
        let exact = Finding::exact("S5 outside merges", count, text);
        let each = |look: &dyn Fn(&Height) -> Option<(f64, f64)>| -> Vec<Statistic> {
            let looks = self.heights.iter().filter_map(|(height, counts)| {
                let (statistic, df) = look(counts)?;
                let what = format!("tables of height {height}; chi-square should be near {df}");
                // Reads without repeats are more even than chance: only unevenness counts.
                Some(Statistic { what, statistic, p_value: chi_square_upper(statistic, df) })
            });
            looks.collect()
        };
        let even = each(&|height| {
            let sums = (0..PARTS as usize).map(|at| height.over_life.iter().map(|r| r[at]).sum());
            even(&sums.collect::<Vec<u64>>())
        });
        let life = each(&|height| independent(&height.over_life, LEAST * PARTS));
        let truth = each(&|height| independent(&height.by_truth, LEAST));
        let few = "too few slots were read";
        let chance = [
            oddest("S5 slots", even, few),
            oddest("S5 slots over a table's life", life, few),
            oddest(
                "S5 slots of hits and misses",
                truth,
                "too few slots, or the truth is not known",
            ),
        ];
        (exact, chance)
    }
}

fn even(counts: &[u64]) -> Option<(f64, f64)> {
    let all: u64 = counts.iter().sum();
    let expected = all as f64 / counts.len() as f64;
    let off = |&count: &u64| (count as f64 - expected).powi(2) / expected;
    (all >= LEAST).then(|| (counts.iter().map(off).sum(), (counts.len() - 1) as f64))
}

/// Whether rows and columns are independent; none with fewer than `least` in all, or in a row.
fn independent(rows: &[Row], least: u64) -> Option<(f64, f64)> {
    let rows: Vec<Vec<u64>> = rows
        .iter()
        .filter(|row| row.iter().sum::<u64>() >= LEAST)
        .map(|row| row.to_vec())
        .collect();
    let all: u64 = rows.iter().flatten().sum();
    (rows.len() > 1 && all >= least).then(|| contingency(&rows))
}
