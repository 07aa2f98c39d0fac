//! Header, key slots, commit record, journal.

use crate::input::Input;
use oblivio_crypto::{KeySlots, Passphrase, SlotIndex, VolumeId};
use oblivio_engine::BlockId;
use oblivio_engine::tree::{Intent, TreeKeys, TreeOram};
use oblivio_volume::fuzzing::{self, Key, Record, WriteEntry, Writes};
use std::sync::Arc;

/// For objects entirely from the fuzzer; the seeds are sealed with it.
const RAW: Key = Key(1);
/// For objects that a target seals.
const SEALED: Key = Key(4);

/// A stored header: refused, or re-encoded exactly. It describes an engine that can be made or is
/// refused.
pub fn header(data: &[u8]) {
    let Ok(bytes) = fuzzing::header(data) else { return };
    assert_eq!(bytes, data, "a header is written as it was read");
    let config = fuzzing::header_config(data).expect("it was parsed before");
    // A refusal is fine; a panic or an absurd allocation is not.
    let _ = TreeOram::new(config, config.capacity.min(64), TreeKeys::from_seed(1));
}

/// Key slots: refused, or re-encoded exactly. Cheap ones are tried.
pub fn key_slots(data: &[u8]) {
    let Ok(mut slots) = KeySlots::from_bytes(data) else { return };
    assert_eq!(&slots.to_bytes()[..], data, "slots are written as they were read");
    let used: Vec<SlotIndex> = slots.used().collect();
    let work = |slot: &SlotIndex| {
        slots.params(*slot).map_or(0, |kdf| u64::from(kdf.memory_kib) * u64::from(kdf.passes))
    };
    if used.iter().map(work).sum::<u64>() > 512 {
        return;
    }
    let (volume, seed) = (VolumeId([7; 16]), Passphrase::new("seed"));
    if let Ok((_, opened)) = slots.unlock(volume, &seed) {
        let all = opened.len() == used.len();
        assert_eq!(slots.remove(volume, &seed).is_err(), all, "only the last one stays");
        assert_eq!(slots.unlock(volume, &seed).is_ok(), all, "and is gone from every slot");
    }
}

/// A commit record, a commit object of any bytes, and one of properly sealed records.
pub fn commit(data: &[u8]) {
    let mut input = Input(data);
    match input.byte() {
        0 => drop(fuzzing::commit_record(input.0)),
        1 => drop(fuzzing::read_commits(RAW, input.0)),
        _ => sealed_commits(&mut input),
    }
}

fn sealed_commits(input: &mut Input<'_>) {
    let len = fuzzing::commit_plain(0).len();
    let plains = [input.take(len), input.take(len)];
    let mut object = fuzzing::commit_object(SEALED, plains);
    let changed = input.patch(&mut object);
    let epochs = plains.map(fuzzing::commit_record);
    let of_slot = |slot: usize| epochs[slot].filter(|epoch| *epoch % 2 == slot as u64);
    match fuzzing::read_commits(SEALED, &object) {
        Ok(found) => {
            let known = [of_slot(0), of_slot(1)];
            assert!(known.contains(&Some(found)), "an epoch that nobody sealed");
            assert!(changed || known.iter().flatten().all(|epoch| *epoch <= found), "not newest");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A journal in five forms: a record; any bytes; a properly sealed record; a damaged journal; and
/// mixed pages of two forks. The last two give a prefix of the writes (of one of the forks), or an
/// error.
pub fn journal(data: &[u8]) {
    let mut input = Input(data);
    match input.byte() {
        0 => {
            if let Some(Record::Sync { writes, .. }) = fuzzing::journal_record(input.0) {
                writes.entries(1 << 20, 1 << 16);
            }
        }
        1 => drop(fuzzing::load_journal(RAW, input.0)),
        2 => {
            let loaded = fuzzing::load_journal(SEALED, &fuzzing::journal_of(SEALED, input.0));
            assert_eq!(
                loaded.ok().map(|mut records| records.remove(0)),
                fuzzing::journal_record(input.0)
            );
        }
        4 => mixed_journal(&mut input),
        _ => damaged_journal(&mut input),
    }
}

fn journal_records(input: &mut Input<'_>) -> Vec<Record> {
    (0..input.byte() % 6)
        .map(|_| {
            let seed = input.u64();
            let count = u64::from(input.u16() % 1200);
            if !seed.is_multiple_of(3) {
                return Record::Intent(Intent {
                    seed,
                    ids: (0..count).map(|id| BlockId(id ^ seed)).collect(),
                });
            }
            let mut writes = Writes::default();
            for id in 0..count % 5 {
                let bytes = Arc::new(vec![seed as u8; count as usize]);
                writes.push(WriteEntry::Part(id, id as usize, bytes));
            }
            Record::Sync { root: vec![7; seed as usize % 100], writes }
        })
        .collect()
}

fn mixed_journal(input: &mut Input<'_>) {
    let forks = [journal_records(input), journal_records(input)];
    let [Ok(one), Ok(other)] =
        [0, 1].map(|fork| fuzzing::journal(SEALED, 2 + fork, &forks[fork as usize]))
    else {
        return;
    };
    let mut mixed = Vec::new();
    for at in (0..one.len().max(other.len())).step_by(4096) {
        let from = if input.byte().is_multiple_of(2) { &one } else { &other };
        mixed.extend_from_slice(from.get(at..at + 4096).unwrap_or(&[0; 4096]));
    }
    if let Ok(loaded) = fuzzing::load_journal(SEALED, &mixed) {
        assert!(forks.iter().any(|fork| fork.starts_with(&loaded)), "a mixture of two forks");
    }
}

fn damaged_journal(input: &mut Input<'_>) {
    let written = journal_records(input);
    let Ok(mut journal) = fuzzing::journal(SEALED, 2, &written) else { return };
    let changed = input.patch(&mut journal);
    match fuzzing::load_journal(SEALED, &journal) {
        Ok(loaded) => {
            assert!(written.starts_with(&loaded), "a journal tells only what was written");
            assert!(changed || loaded == written, "a sound journal tells all");
        }
        Err(error) => assert!(changed, "a sound journal is refused: {error}"),
    }
}
