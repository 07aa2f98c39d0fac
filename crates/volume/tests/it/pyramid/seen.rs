//! What the store sees of a session: rounds and merges, read off its trace.

use oblivio_store::record::{Event, Op};
use std::collections::{BTreeMap, BTreeSet};

/// A slot in the store: its object and offset.
pub type Place = (String, u64);

/// One thing that the store saw, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Slots of tables, read in one call.
    Slots(Vec<Place>),
    /// A table: its object, its place and its length.
    Table(String, u64, u64),
    /// Anything else that was written, with its length.
    Other(Op, String, u64, u64),
}

/// The trace of a session, without the questions that only opening asks.
pub fn seen(events: Vec<Event>) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut last_call = None;
    for event in events {
        let tables = event.object.starts_with("tables-");
        match (event.op, tables) {
            (Op::Read, true) => {
                let place = (event.object.to_string(), event.offset);
                match seen.last_mut() {
                    Some(Seen::Slots(slots)) if last_call == Some(event.call) => slots.push(place),
                    _ => seen.push(Seen::Slots(vec![place])),
                }
                last_call = Some(event.call);
            }
            (Op::Write, true) => {
                seen.push(Seen::Table(event.object.to_string(), event.offset, event.len));
            }
            (Op::Write | Op::Put | Op::Truncate | Op::Delete | Op::Discard, false) => {
                let object = event.object.to_string();
                seen.push(Seen::Other(event.op, object, event.offset, event.len));
            }
            _ => {}
        }
    }
    seen
}

/// The most slots that a round of at most seven asks reads: each one of three tables. A merge reads
/// more, or nothing if it only takes blocks of the stash.
pub const MOST_OF_ROUND: usize = 7 * 3;

/// The reads of rounds.
pub fn rounds(seen: &[Seen]) -> Vec<Vec<Place>> {
    let rounds = seen.iter().filter_map(|seen| match seen {
        Seen::Slots(slots) if slots.len() <= MOST_OF_ROUND => Some(slots.clone()),
        _ => None,
    });
    rounds.collect()
}

/// The trace as far as it may not depend on what is asked: all but the slots, and how many of them
/// a round reads (it follows from the partitions that it shows).
pub fn public(seen: &[Seen]) -> Vec<String> {
    let all = seen.iter().filter_map(|it| match it {
        // A round whose partitions have no table yet reads nothing.
        Seen::Slots(slots) if slots.len() <= MOST_OF_ROUND => None,
        Seen::Slots(slots) => Some(format!("merge of {}", slots.len())),
        other => Some(format!("{other:?}")),
    });
    all.collect()
}

/// Slots that were read a second time in the life of their table.
pub fn twice(seen: &[Seen]) -> usize {
    let mut read: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    let mut twice = 0;
    for it in seen {
        match it {
            Seen::Slots(slots) => {
                for (object, offset) in slots {
                    let new = read.entry(object.clone()).or_default().insert(*offset);
                    twice += usize::from(!new);
                }
            }
            Seen::Table(object, offset, len) => {
                let slots = read.entry(object.clone()).or_default();
                slots.retain(|slot| !(*offset..offset + len).contains(slot));
            }
            Seen::Other(..) => {}
        }
    }
    twice
}
