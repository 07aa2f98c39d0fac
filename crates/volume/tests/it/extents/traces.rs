//! What the folder shows is a function of public numbers: of writes, syncs and ends of epochs.

use super::common::{BLOCKS, BYTES, options, passphrase};
use super::{Computer, write};
use oblivio_crypto::KdfParams;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::CallKind;
use oblivio_store::{MemoryStore, RecordStore};
use oblivio_testkit::SplitMix64;
use oblivio_volume::sequential::SequentialVolume;
use oblivio_volume::{BlockSpace, Environment, OpenOptions, Volume};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The public part of a workload.
#[derive(Clone, Copy, Debug)]
enum Step {
    Writes(u64),
    Sync,
    Epoch,
}

fn any_steps(dice: &mut SplitMix64) -> Vec<Step> {
    let mut steps: Vec<Step> = (0..10)
        .map(|_| match dice.below(4) {
            0 => Step::Sync,
            1 => Step::Epoch,
            _ => Step::Writes(1 + dice.below(25)),
        })
        .collect();
    steps.push(Step::Epoch);
    steps
}

/// One write: of the same block again and again, in order, anywhere, or a removal.
fn any_write(kind: u64, at: u64, dice: &mut SplitMix64) -> BlockOp {
    match kind {
        0 => write(3, at as u8),
        1 => write(at % BLOCKS, at as u8),
        2 => write(dice.below(BLOCKS), dice.below(256) as u8),
        _ => BlockOp { id: BlockId(dice.below(BLOCKS)), action: Action::Remove },
    }
}

/// What the folder is shown: calls, names without the random parts, lengths.
type Seen = Vec<(CallKind, String, u64)>;

fn seen(folder: &RecordStore<MemoryStore>) -> Seen {
    let mut randoms: Vec<String> = Vec::new();
    let changes = |op: CallKind| matches!(op, CallKind::Write | CallKind::Put | CallKind::Delete);
    let events = folder.take().into_iter().filter(|event| changes(event.op));
    let named = events.map(|event| {
        let name = event.object.to_string();
        let Some((kind, rest)) = name.split_once('-') else { return (event.op, name, event.len) };
        let (random, rest) = rest.split_once('-').unwrap_or((rest, ""));
        let at = randoms.iter().position(|it| it == random).unwrap_or_else(|| {
            randoms.push(random.to_owned());
            randoms.len() - 1
        });
        (event.op, format!("{kind}-{at}-{rest}"), event.len)
    });
    named.collect()
}

fn trace(steps: &[Step], kind: u64, seed: u64) -> Seen {
    let folder = Arc::new(RecordStore::new(MemoryStore::new()));
    let mut computer = Computer::new(seed);
    let mut volume = Volume::from(computer.create(folder.clone()));
    let (mut dice, mut at) = (SplitMix64::new(seed), 0);
    for step in steps {
        match step {
            Step::Writes(count) => {
                for _ in 0..*count {
                    at += 1;
                    volume.access(vec![any_write(kind, at, &mut dice)]).unwrap();
                }
            }
            Step::Sync => volume.commit().unwrap(),
            Step::Epoch => volume.extents().unwrap().end_epoch().unwrap(),
        }
    }
    volume.finish().unwrap();
    seen(&folder)
}

#[test]
fn equal_numbers_leave_equal_folders() {
    for pair in 0..12 {
        let mut dice = SplitMix64::new(pair);
        let steps = any_steps(&mut dice);
        let kinds = [dice.below(4), dice.below(4)];
        let one = trace(&steps, kinds[0], 100 * pair + 1);
        let other = trace(&steps, kinds[1], 100 * pair + 50);
        assert!(one.len() > 8, "something is stored in any case");
        assert_eq!(one, other, "pair {pair}, {steps:?}");
    }
}

/// The test above can fail: how much was written is seen.
#[test]
fn other_numbers_leave_other_folders() {
    let of = |count| trace(&[Step::Writes(count), Step::Epoch], 2, 1);
    assert_ne!(of(10), of(60));
}

/// The extents of an epoch, in their order, are computed from the places that a plain volume of the
/// same engine writes in another workload of the same length: from counters alone.
#[test]
fn the_extents_of_an_epoch_follow_from_the_counters() {
    for counts in [[7, 30], [60, 1], [25, 100]] {
        let steps = counts.map(|count| [Step::Writes(count), Step::Epoch]).concat();
        let expected = epochs_of_a_plain_volume(&counts);
        let mut found: Vec<Vec<u64>> = vec![Vec::new()];
        for (op, name, len) in trace(&steps, 2, 9) {
            let parts: Vec<&str> = name.split('-').collect();
            match (op, parts[0]) {
                (CallKind::Put, "x") => {
                    let last = found.len() - 1;
                    found[last].push(u64::from_str_radix(parts[2], 16).unwrap());
                    assert!(len <= options().extent_bytes);
                }
                (CallKind::Put, "e") => found.push(Vec::new()),
                _ => {}
            }
        }
        // The first epoch is the empty volume, the last the end of the session.
        assert_eq!(found[1..=counts.len()], expected, "{counts:?}");
        assert!(found.iter().all(|it| it.is_sorted()), "in their order");
    }
}

/// The extents that hold what a plain volume wrote between two ends of epochs, and their parities.
fn epochs_of_a_plain_volume(counts: &[u64]) -> Vec<Vec<u64>> {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let open = OpenOptions { environment: Environment::from_seed(4), ..OpenOptions::default() };
    let (create, quiet) = (options().sequential, &mut |_, _| {});
    let mut volume = SequentialVolume::create(
        store.clone(),
        &passphrase(),
        KdfParams::TEST,
        create,
        open,
        quiet,
    )
    .unwrap();
    store.take();
    let bytes = options().extent_bytes;
    let mut first = std::collections::BTreeMap::new();
    let (mut next, mut log) = (0, 0..0);
    for (object, len) in create.objects().unwrap() {
        if object != "times" {
            first.insert(object, next);
            if object == "log" {
                log = next..next + len.div_ceil(bytes);
            }
            next += len.div_ceil(bytes);
        }
    }
    let epoch = |count: &u64| {
        for _ in 0..*count {
            let op = BlockOp { id: BlockId(0), action: Action::Write(vec![0; BYTES]) };
            volume.access(vec![op]).unwrap();
        }
        volume.commit().unwrap();
        let mut extents = BTreeSet::new();
        for event in store.take().into_iter().filter(|it| it.op == CallKind::Write && it.len > 0) {
            let Some(first) = first.get(&*event.object) else { continue };
            extents.extend(
                (event.offset / bytes..=(event.offset + event.len - 1) / bytes)
                    .map(|at| first + at),
            );
        }
        // The parities of the log and of all else, where something of their extents changed.
        let parity = |extent: &u64| next + u64::from(!log.contains(extent));
        let parities: BTreeSet<u64> = extents.iter().map(parity).collect();
        extents.into_iter().chain(parities).collect()
    };
    counts.iter().map(epoch).collect()
}
