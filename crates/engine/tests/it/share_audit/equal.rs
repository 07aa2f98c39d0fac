//! S3 and S6: two runs with the same arrivals show the same records, at the same times, but for the
//! partitions of asks and what follows from them.

use super::record::{AskId, Event, ShareTrace, What};
use oblivio_audit::Finding;

/// What must be the same of an event: kind, numbers, and whose.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    at: u64,
    bytes: u64,
    kind: &'static str,
    numbers: Vec<u64>,
    asks: Vec<AskId>,
}

fn shape(event: &Event) -> Shape {
    let (kind, numbers, asks) = match &event.what {
        What::Ask(ask) => ("ask", Vec::new(), vec![*ask]),
        What::Claim => ("claim", Vec::new(), Vec::new()),
        What::Show(batch, asks) => {
            ("show", vec![*batch], asks.iter().map(|shown| shown.ask).collect())
        }
        What::Sums(batch) => ("sums", vec![*batch], Vec::new()),
        What::Tell(batch, answers) => {
            let lengths = answers.iter().map(|answer| answer.1);
            let numbers = [*batch].into_iter().chain(lengths).collect();
            ("tell", numbers, answers.iter().map(|answer| answer.0).collect())
        }
        What::Turn(merge) => {
            let numbers = [merge.partition.into(), merge.height.into(), merge.spots.len() as u64];
            ("turn", numbers.to_vec(), Vec::new())
        }
        What::Slots(partition) => ("slots", vec![u64::from(*partition)], Vec::new()),
        What::Build { partition, .. } => ("build", vec![u64::from(*partition)], Vec::new()),
        What::Switch { replaced, .. } => ("switch", vec![replaced.len() as u64], Vec::new()),
        What::Refuse(answers) => {
            let lengths = answers.iter().map(|answer| answer.1).collect();
            ("refuse", lengths, answers.iter().map(|answer| answer.0).collect())
        }
        What::Save(piece) => ("save", vec![u64::from(*piece)], Vec::new()),
    };
    // A merge's record has room for each ask that shows its partition and waits for an answer.
    let bytes = if kind == "switch" { 0 } else { event.bytes };
    Shape { at: event.at, bytes, kind, numbers, asks }
}

/// The events before the first merge that comes early. That one follows from the partitions shown,
/// and so does what comes after it. It may be of the very table whose turn is next.
fn before_early(trace: &ShareTrace) -> &[Event] {
    let (mut turns, mut asks, mut scribes) = (0, 0, 0);
    let early = |event: &Event| {
        let merge = match &event.what {
            What::Turn(merge) => merge,
            What::Show(_, shown) => {
                asks += shown.len() as u64;
                return false;
            }
            What::Claim => {
                scribes += 1;
                return false;
            }
            _ => return false,
        };
        let due = trace.sizes.turn(turns) == (merge.partition, merge.height)
            && asks >= (turns + 1) * u64::from(trace.sizes.turn_asks);
        // Repeats of an earlier turn are no early merges either. A new scribe makes them.
        let repeat = scribes > 1
            && (turns.saturating_sub(trace.sizes.open_turns + 1)..turns)
                .any(|turn| trace.sizes.turn(turn) == (merge.partition, merge.height));
        turns += u64::from(due);
        !due && !repeat
    };
    let end = trace.events.iter().position(early).unwrap_or(trace.events.len());
    &trace.events[..end]
}

/// Compares two runs.
pub(super) fn judge(a: &ShareTrace, b: &ShareTrace) -> Finding {
    const NAME: &str = "S3 and S6 equal records";
    let (left, right) = (before_early(a), before_early(b));
    let whole = left.len() == a.events.len() && right.len() == b.events.len();
    let mut pairs = left.iter().zip(right).enumerate();
    let differs = pairs.find_map(|(at, (a, b))| {
        let (a, b) = (shape(a), shape(b));
        (a != b).then(|| format!("event {at}: {a:?} against {b:?}"))
    });
    let compared = left.len().min(right.len());
    let longer = whole && left.len() != right.len();
    let length = longer.then(|| format!("{} events against {}", left.len(), right.len()));
    match differs.or(length) {
        Some(difference) => Finding::exact(NAME, 1, difference),
        None if compared * 4 < a.events.len() => {
            Finding::unjudged(NAME, "a merge came early, by the partitions shown")
        }
        None => Finding::exact(NAME, 0, format!("{compared} events are the same")),
    }
}
