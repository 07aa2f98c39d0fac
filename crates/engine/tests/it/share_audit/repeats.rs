//! S8: after a scribe is gone, the next one repeats what was shown and not answered, slot for
//! slot, and goes on. Nothing else is ever repeated.

use super::record::{Merge, Shown, What};
use super::view::{Broken, Seen};
use oblivio_audit::Finding;
use std::collections::BTreeSet;

/// The repeats.
#[derive(Default)]
pub(super) struct Repeats {
    broken: Broken,
    count: u64,
    /// Batches shown and not answered, and merges under way, that this scribe must repeat.
    batches: BTreeSet<u64>,
    merges: BTreeSet<u32>,
}

impl Repeats {
    pub fn see(&mut self, seen: &Seen<'_>) {
        match &seen.event.what {
            What::Claim => {
                let view = seen.view;
                let open = view.batches.iter().filter(|(_, batch)| !batch.answered);
                self.batches = open.map(|(number, _)| *number).collect();
                self.merges = view.open.iter().map(|open| open.merge.partition).collect();
            }
            What::Show(number, asks) if seen.again => self.batch(*number, asks, seen),
            What::Show(number, _) => {
                let rest = self.batches.is_empty();
                self.broken.must(rest, seen, || format!("new batch {number} before old ones"));
                let next = seen.view.next_batch;
                let follows = *number == next || seen.view.batches.is_empty();
                self.broken.must(follows, seen, || format!("batch {number} is not {next}"));
            }
            What::Turn(merge) if seen.again => self.merge(merge, seen),
            What::Tell(number, _) if seen.again => {
                let why = || format!("batch {number} is answered again");
                self.broken.must(seen.view.claims > 0, seen, why);
            }
            _ => {}
        }
    }

    fn batch(&mut self, number: u64, asks: &[Shown], seen: &Seen<'_>) {
        self.count += 1;
        let due = self.batches.first() == Some(&number);
        self.batches.remove(&number);
        self.broken.must(due, seen, || format!("batch {number} is shown again out of order"));
        let same = seen.view.batches.get(&number).is_some_and(|batch| {
            batch.asks == asks && batch.seal == seen.event.seal && batch.bytes == seen.event.bytes
        });
        self.broken.must(same, seen, || format!("batch {number} is shown again and differs"));
    }

    fn merge(&mut self, merge: &Merge, seen: &Seen<'_>) {
        self.count += 1;
        let partition = merge.partition;
        let due = self.merges.remove(&partition);
        self.broken.must(due, seen, || format!("the merge of partition {partition} begins twice"));
        let same = seen.view.open_of(partition).is_some_and(|open| open.merge == *merge);
        let why = || format!("the merge of partition {partition} reads other slots");
        self.broken.must(same, seen, why);
    }

    pub fn finding(self) -> Finding {
        let Broken { count, first } = self.broken;
        let text = format!("{} repeats, all the same", self.count);
        Finding::exact("S8 repeats", count, if count == 0 { text } else { first })
    }
}
