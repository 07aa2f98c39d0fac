//! S4: the partitions that asks show are independent of the turns.
//!
//! A block in the stash that shows a partition drawn anew, in place of its label's, looks uniform.
//! But its label's partition had no turn since its last ask. So a block that is asked every d asks
//! shows partitions that had a turn in the last d asks more often than others.

use super::record::{ShareTrace, What};
use super::view::Seen;
use oblivio_audit::Finding;
use oblivio_audit::checks::{EValue, Statistic, oddest};
use std::collections::{BTreeMap, BTreeSet};

/// Bets on "its partition had a turn in the last d asks", for some d.
pub(super) struct Recent {
    bets: Vec<(u64, EValue)>,
    /// The asks before each partition's last turn.
    last: BTreeMap<u32, u64>,
    /// The same, by time.
    order: BTreeSet<(u64, u32)>,
}

impl Recent {
    pub fn new(trace: &ShareTrace) -> Self {
        // From 8 asks to q, where each partition had its turn, by half octaves.
        let q = u64::from(trace.sizes.turn_asks) << trace.sizes.log_partitions;
        let steps = (3..63).flat_map(|log: u32| [1 << log, 3 << (log - 1)]);
        let distances = steps.take_while(|&distance| distance < q);
        let bets = distances.map(|distance| (distance, EValue::new())).collect();
        Self { bets, last: BTreeMap::new(), order: BTreeSet::new() }
    }

    pub fn see(&mut self, trace: &ShareTrace, seen: &Seen<'_>) {
        match &seen.event.what {
            What::Turn(merge) if !seen.again => {
                let before = self.last.insert(merge.partition, seen.view.asks);
                before.map(|before| self.order.remove(&(before, merge.partition)));
                self.order.insert((seen.view.asks, merge.partition));
            }
            What::Show(_, asks) if !seen.again => {
                // Before that, an ask may show no partition.
                if seen.view.with_tables.len() < trace.sizes.partitions() as usize {
                    return;
                }
                for (place, shown) in (0..).zip(asks) {
                    if let Some(partition) = seen.view.partition_of(&shown.spots) {
                        self.ask(trace, partition, seen.view.asks + place);
                    }
                }
            }
            _ => {}
        }
    }

    fn ask(&mut self, trace: &ShareTrace, partition: u32, now: u64) {
        for (distance, bet) in &mut self.bets {
            let since = (now + 1).saturating_sub(*distance);
            let recent = self.order.range((since, 0)..).count();
            let chance = recent as f64 / f64::from(trace.sizes.partitions());
            // Certain things are no bets.
            if recent > 0 && chance < 1.0 {
                bet.see(self.last[&partition] >= since, chance);
            }
        }
    }

    pub fn finding(self) -> Finding {
        let looks = self.bets.into_iter().map(|(distance, mut bet)| {
            let p_value = bet.p_value();
            let (hits, expected) = (bet.hits, bet.expected);
            let what = format!("{hits} with a turn in the last {distance} asks, not {expected:.0}");
            Statistic { what, statistic: hits as f64, p_value }
        });
        oddest("S4 recent turns", looks.collect(), "a turn is shorter than eight asks")
    }
}
