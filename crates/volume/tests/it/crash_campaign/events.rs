//! Events of a session, and the content that a volume must have afterwards.

use oblivio_testkit::Dice;
use std::collections::BTreeMap;

/// Blocks in use.
pub const BLOCKS: u64 = 200;
/// The id of a model's root.
pub const ROOT: u64 = u64::MAX;

/// The content of blocks, by the byte that fills them; the root under [`ROOT`].
pub type Model = BTreeMap<u64, u8>;

#[derive(Clone, Debug)]
pub enum Event {
    /// Reads (`None`), writes, and with 0 removals.
    Access(Vec<(u64, Option<u8>)>),
    /// Deferred writes.
    Defer(Vec<(u64, u8)>),
    /// The same to all blocks: more than may be deferred.
    Pour(u8),
    Root(u8),
    /// Writes half of all blocks, from the first on: the tree grows, and a discard makes it shrink.
    Fill(u64, u8),
    /// Blocks from the first to before the second.
    Discard(u64, u64),
    /// This many idle steps, in which the volume may commit by itself.
    Idle(u64),
    Reserve(u64),
    Commit,
    Finish,
    Verify,
}

pub fn any_event(dice: &mut Dice) -> Event {
    match dice.below(30) {
        28 | 29 => Event::Pour(dice.next_u64() as u8),
        22 | 23 => {
            let first = dice.below(BLOCKS);
            Event::Discard(first, first + dice.below(BLOCKS))
        }
        24 | 25 => Event::Fill(dice.below(BLOCKS / 2), 1 + dice.below(255) as u8),
        26 | 27 => Event::Idle(1 + dice.below(8)),
        20 => {
            let count = 1 + dice.below(9);
            let write = |dice: &mut Dice| (dice.below(BLOCKS), dice.below(256) as u8);
            Event::Defer((0..count).map(|_| write(dice)).collect())
        }
        21 => Event::Finish,
        0..12 => {
            let op = |dice: &mut Dice| {
                let fill = (dice.below(3) > 0).then(|| dice.below(256) as u8);
                (dice.below(BLOCKS), fill)
            };
            let count = 1 + dice.below(12);
            Event::Access((0..count).map(|_| op(dice)).collect())
        }
        12 => Event::Root(dice.next_u64() as u8),
        13 => Event::Reserve(1 + dice.below(BLOCKS)),
        14 => Event::Verify,
        _ => Event::Commit,
    }
}

pub fn put(model: &mut Model, id: u64, fill: u8, removed: bool) {
    match removed {
        true => drop(model.remove(&id)),
        false => drop(model.insert(id, fill)),
    }
}

/// The writes of [`Event::Fill`].
pub fn fill(first: u64, fill: u8) -> Vec<(u64, Option<u8>)> {
    (first..first + BLOCKS / 2).map(|id| (id, Some(fill))).collect()
}

/// The writes of [`Event::Pour`].
pub fn pour(fill: u8) -> Vec<(u64, u8)> {
    (0..BLOCKS).map(|id| (id, fill.wrapping_add(id as u8))).collect()
}

/// The event cut short after each of its operations, then whole.
pub fn beginnings(event: &Event) -> Vec<Event> {
    match event {
        Event::Access(ops) => (1..=ops.len()).map(|n| Event::Access(ops[..n].to_vec())).collect(),
        Event::Defer(ops) => (1..=ops.len()).map(|n| Event::Defer(ops[..n].to_vec())).collect(),
        &Event::Fill(first, byte) => beginnings(&Event::Access(fill(first, byte))),
        &Event::Pour(byte) => beginnings(&Event::Defer(pour(byte))),
        whole => vec![whole.clone()],
    }
}

/// The content of a volume with this many addressable blocks after an event.
pub fn after(model: &Model, event: &Event, addressable: u64) -> Model {
    let mut model = model.clone();
    match event {
        Event::Access(ops) => {
            let writes = ops.iter().filter_map(|&(id, fill)| Some((id, fill?)));
            for (id, fill) in writes.filter(|(id, _)| *id < addressable) {
                put(&mut model, id, fill, fill == 0);
            }
        }
        Event::Defer(writes) => {
            for &(id, fill) in writes.iter().filter(|(id, _)| *id < addressable) {
                put(&mut model, id, fill, fill % 3 == 0);
            }
        }
        Event::Fill(first, byte) => {
            return after(&model, &Event::Access(fill(*first, *byte)), BLOCKS);
        }
        Event::Pour(byte) => return after(&model, &Event::Defer(pour(*byte)), BLOCKS),
        Event::Root(fill) => put(&mut model, ROOT, *fill, false),
        Event::Discard(first, end) => model.retain(|id, _| id < first || id >= end),
        Event::Reserve(_) | Event::Commit | Event::Finish | Event::Verify | Event::Idle(_) => {}
    }
    model
}
