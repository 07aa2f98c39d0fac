//! S1: every slot is read at most once in its table's life, by an ask or by a merge.

use super::record::{ShareTrace, Spot, What};
use super::view::{Broken, Seen};
use oblivio_audit::Finding;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const NAME: &str = "S1 slots once";

/// The slots that were read. A repeat does not count: that it is one is for S8.
#[derive(Default)]
pub(super) struct Once {
    read: BTreeMap<u64, BTreeSet<u32>>,
    broken: Broken,
}

impl Once {
    pub fn see(&mut self, trace: &ShareTrace, seen: &Seen<'_>) {
        match &seen.event.what {
            What::Show(_, asks) if !seen.again => {
                asks.iter().for_each(|shown| self.read(trace, &shown.spots, seen));
            }
            What::Turn(merge) if !seen.again => self.read(trace, &merge.spots, seen),
            What::Switch { replaced, .. } => {
                // The names of tables are not used again: this only keeps the list short.
                self.read.retain(|table, _| !replaced.contains(table));
            }
            _ => {}
        }
    }

    fn read(&mut self, trace: &ShareTrace, spots: &[Spot], seen: &Seen<'_>) {
        for &spot in spots {
            let table = seen.view.tables.get(&spot.table);
            let sizes = table.and_then(|table| trace.sizes.of(table.height));
            let exists = sizes.is_some_and(|sizes| spot.slot < sizes.slots);
            self.broken.must(exists, seen, || format!("{spot:?} is not there"));
            let new = self.read.entry(spot.table).or_default().insert(spot.slot);
            self.broken.must(new, seen, || format!("{spot:?} is read again"));
        }
    }

    pub fn finding(self) -> Finding {
        let Broken { count, first } = self.broken;
        let text = if count == 0 { "each slot is read at most once".into() } else { first };
        Finding::exact(NAME, count, text)
    }
}
