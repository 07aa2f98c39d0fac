//! S7: answers leave batch by batch, in order, none before all earlier reads are back, and no
//! later than that.

use super::record::{ShareTrace, What};
use super::view::{Broken, Seen};
use oblivio_audit::Finding;

/// The batches that were answered.
#[derive(Default)]
pub(super) struct Delivery {
    broken: Broken,
    next: Option<u64>,
    /// When the last of what the answers so far waited for left the server.
    ready: u64,
}

impl Delivery {
    pub fn see(&mut self, trace: &ShareTrace, seen: &Seen<'_>) {
        let What::Tell(number, answers) = &seen.event.what else { return };
        let broken = &mut self.broken;
        // Answered again, as a whole: nothing new is said.
        let again = seen.again && seen.view.claims > 0;
        let next = self.next.map_or(*number, |next| next);
        broken.must(again || *number == next, seen, || format!("batch {number} before {next}"));
        self.next = Some(next.max(number + 1));
        let Some(batch) = seen.view.batches.get(number) else {
            broken.must(false, seen, || format!("batch {number} was not shown"));
            return;
        };
        let whole = batch.asks.iter().map(|shown| shown.ask).eq(answers.iter().map(|told| told.0));
        broken.must(whole, seen, || format!("not all answers of batch {number} in its order"));
        if again {
            return;
        }
        for (earlier, batch) in seen.view.batches.range(..=number) {
            if batch.answered {
                continue;
            }
            let why = || format!("batch {number} is answered, batch {earlier} was not read");
            broken.must(batch.read, seen, why);
            let why = || {
                let open = seen.view.open.iter().find(|open| batch.waits.contains(&open.id));
                let partition = open.map_or(0, |open| open.merge.partition);
                format!("batch {number} does not wait for the merge of partition {partition}")
            };
            broken.must(batch.waits.is_empty(), seen, why);
            self.ready = self.ready.max(batch.ready);
        }
        // A wait that does not follow from what was read would say something.
        let (now, prompt) = (seen.event.at, trace.delay.map(|delay| self.ready + delay));
        let why = || format!("batch {number} is answered at {now}, not at {prompt:?}");
        broken.must(prompt.is_none_or(|prompt| prompt == now), seen, why);
    }

    pub fn finding(self) -> Finding {
        let Broken { count, first } = self.broken;
        let text = if count == 0 { "answers in order, after all reads".into() } else { first };
        Finding::exact("S7 delivery", count, text)
    }
}
