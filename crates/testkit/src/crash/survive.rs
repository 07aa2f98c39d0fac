//! The states after a crash.

use super::cached::{Disk, InFlight, Pending, create};
use crate::dice::Dice;
use oblivio_store::{Held, Log, MemoryStore, Objects, PutMode, Result, Slots, WriteAt};

/// The unit that a disk writes whole or not at all.
const SECTOR: u64 = 512;

/// One of all possible states, chosen by `seed`.
pub(super) fn by_chance(disk: &Disk, seed: u64) -> MemoryStore {
    let mut dice = Dice::new(seed);
    let left = disk.durable.snapshot();
    for (object, pending) in &disk.pending {
        expect(leave(&left, object, pending, &mut dice));
    }
    if let Some(operation) = &disk.in_flight {
        expect(operation.apply(&left, |_| dice.percent(50)));
    }
    left
}

/// The extremes among the possible states.
pub(super) fn extremes(disk: &Disk) -> Vec<(&'static str, MemoryStore)> {
    let all = |left: &MemoryStore, object: &str, pending: &[Pending]| {
        pending.iter().try_for_each(|write| write.apply(left, object))
    };
    let mut states = vec![
        ("nothing pending survived", disk.durable.snapshot()),
        ("everything pending survived", each(disk, all)),
        ("lengths survived without data", each(disk, lengths)),
        ("the oldest write came last", each(disk, backwards)),
        ("only the newest write survived", each(disk, newest)),
        ("all but the oldest write survived", each(disk, all_but_oldest)),
    ];
    if let Some(operation) = &disk.in_flight {
        let (bare, full) = (disk.durable.snapshot(), each(disk, all));
        expect(operation.apply(&bare, |_| true));
        expect(operation.apply(&full, |_| true));
        states.push(("only the operation in flight survived", bare));
        states.push(("everything survived, the operation in flight too", full));
    }
    states
}

/// Every object's creation survived, and of its writes those that `keep` applies.
fn each(disk: &Disk, keep: fn(&MemoryStore, &str, &[Pending]) -> Result<()>) -> MemoryStore {
    let left = disk.durable.snapshot();
    for (object, pending) in &disk.pending {
        expect(create(&left, object).and_then(|()| keep(&left, object, pending)));
    }
    left
}

fn lengths(left: &MemoryStore, object: &str, pending: &[Pending]) -> Result<()> {
    let len = pending.iter().map(Pending::end).max().unwrap_or(0);
    extend(left, object, len)
}

fn backwards(left: &MemoryStore, object: &str, pending: &[Pending]) -> Result<()> {
    pending.iter().rev().try_for_each(|write| write.apply(left, object))
}

fn newest(left: &MemoryStore, object: &str, pending: &[Pending]) -> Result<()> {
    pending.last().map_or(Ok(()), |write| write.apply(left, object))
}

fn all_but_oldest(left: &MemoryStore, object: &str, pending: &[Pending]) -> Result<()> {
    pending.iter().skip(1).try_for_each(|write| write.apply(left, object))
}

/// Applies a random part of one object's pending writes.
fn leave(left: &MemoryStore, object: &str, pending: &[Pending], dice: &mut Dice) -> Result<()> {
    if left.len(object)?.is_none() && dice.percent(25) {
        return Ok(());
    }
    create(left, object)?;
    // Each object has its own chance: states with many surviving writes and states with few must
    // both be common, however many writes are pending.
    let kept = [0, 10, 50, 90, 100][dice.index(5)];
    let mut order: Vec<&Pending> = pending.iter().collect();
    if dice.percent(50) {
        dice.shuffle(&mut order);
    }
    for write in order {
        if dice.percent(kept) {
            write.apply(left, object)?;
        } else if dice.percent(40) {
            tear(left, object, write, dice)?;
        }
    }
    if !pending.is_empty() && dice.percent(50) {
        // The file system recorded a length whose data it never wrote.
        extend(left, object, pending[dice.index(pending.len())].end())?;
    }
    Ok(())
}

/// Applies a part of a write.
fn tear(left: &MemoryStore, object: &str, write: &Pending, dice: &mut Dice) -> Result<()> {
    let len = write.data.len();
    let cut = dice.index(len.max(1));
    match dice.index(3) {
        0 => part(left, object, write, 0, cut),
        1 => part(left, object, write, cut, len),
        _ => sectors(left, object, write, dice),
    }
}

fn sectors(left: &MemoryStore, object: &str, write: &Pending, dice: &mut Dice) -> Result<()> {
    let mut from = 0;
    while from < write.data.len() {
        let ahead = SECTOR - (write.offset + from as u64) % SECTOR;
        let to = write.data.len().min(from + ahead as usize);
        if dice.percent(50) {
            part(left, object, write, from, to)?;
        }
        from = to;
    }
    Ok(())
}

fn part(left: &MemoryStore, object: &str, write: &Pending, from: usize, to: usize) -> Result<()> {
    let offset = write.offset + from as u64;
    left.write(&[WriteAt::new(object, offset, &write.data[from..to])])
}

fn extend(left: &MemoryStore, object: &str, len: u64) -> Result<()> {
    match left.len(object)? {
        Some(now) if now < len => left.truncate(object, len),
        _ => Ok(()),
    }
}

impl InFlight {
    /// Applies the parts of it that `happened`.
    fn apply(&self, left: &MemoryStore, mut happened: impl FnMut(&str) -> bool) -> Result<()> {
        match self {
            Self::Put(object, data) if happened(object) => left.put(object, data, PutMode::Replace),
            Self::Truncate(object, len) if happened(object) => {
                create(left, object)?;
                left.truncate(object, *len)
            }
            Self::Delete(objects) => {
                let gone: Vec<&str> =
                    objects.iter().map(String::as_str).filter(|object| happened(object)).collect();
                left.delete(&gone)
            }
            Self::Put(..) | Self::Truncate(..) => Ok(()),
        }
    }
}

/// The view accepted everything that is applied here.
fn expect(result: Result<()>) {
    debug_assert!(result.is_ok(), "the view took what the survivor refused: {result:?}");
}
