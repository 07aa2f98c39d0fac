//! Damaged or older volumes, or ones of another history than was seen, give no wrong data.

use super::model::{Model, content};
use super::{BYTES, created, passphrase, read, tight, write};
use oblivio_store::{Held, Log, MemoryStore, Objects, PutMode, ReadAt};
use oblivio_testkit::campaign::scaled;
use oblivio_volume::{BlockSpace, Error, Known, MemoryKeeper, OpenOptions, Volume};
use std::sync::Arc;

/// The options of a computer with this knowledge.
fn knowing(known: Known) -> OpenOptions {
    OpenOptions { keeper: Some(Box::new(MemoryKeeper::knowing(known))), ..tight() }
}

fn filled() -> (MemoryStore, Model, Known) {
    let store = Arc::new(created());
    let mut volume = Volume::open(store.clone(), &passphrase(), tight()).expect("sound");
    volume.reserve(200).expect("within the capacity");
    let model: Model = (0..200).map(|id| (id, (id % 250) as u8 + 1)).collect();
    volume.access(model.iter().map(|(id, fill)| write(*id, *fill)).collect()).expect("sound");
    volume.finish().expect("sound");
    (store.snapshot(), model, volume.known())
}

/// Opens a damaged volume and reads everything: the right content or an error, nothing else.
fn never_wrong(disk: &MemoryStore, model: &Model, known: Known) -> Option<Error> {
    let opened = Volume::open(Arc::new(disk.snapshot()), &passphrase(), knowing(known));
    let mut volume = match opened {
        Ok(volume) => volume,
        Err(error) => return Some(error),
    };
    if let Err(error) = volume.verify(&mut |_, _| {}) {
        return Some(error);
    }
    match volume.access((0..200).map(read).collect()) {
        Err(error) => Some(error),
        Ok(answers) => {
            for (id, answer) in answers.into_iter().enumerate() {
                let expected = model.get(&(id as u64)).map(|fill| vec![*fill; BYTES]);
                assert_eq!(answer, expected, "wrong data");
            }
            None
        }
    }
}

#[test]
fn damage_is_refused_and_named() {
    let (disk, model, known) = filled();
    assert!(never_wrong(&disk, &model, known).is_none());
    for (object, len) in disk.list().expect("memory") {
        // A sample here; `just damage` changes every byte.
        let sample = scaled(16).min(len);
        for step in 0..sample {
            let damaged = disk.snapshot();
            let at = len * step / sample;
            damaged.corrupt(&object, at, |byte| *byte ^= 1 << (step % 8)).expect("in range");
            never_wrong(&damaged, &model, known);
        }
        let dropped = disk.snapshot();
        dropped.delete(&[&object]).expect("memory");
        let error = never_wrong(&dropped, &model, known);
        // The journal is void after a clean commit. What is small has a second copy.
        let needed = object.starts_with("slab");
        assert_eq!(error.is_some(), needed, "{object} dropped: {error:?}");
        for cut in [0, len / 2, len.saturating_sub(1)] {
            let short = disk.snapshot();
            short.truncate(&object, cut).expect("memory");
            never_wrong(&short, &model, known);
        }
    }
}

#[test]
fn an_older_copy_is_told_from_the_newest() {
    let (older, _, _) = filled();
    let store = Arc::new(older.snapshot());
    let mut volume = Volume::open(store.clone(), &passphrase(), tight()).expect("sound");
    volume.access(vec![write(3, 99)]).expect("sound");
    volume.finish().expect("sound");
    let known = volume.known();
    drop(volume);
    let open = |accept_rollback| OpenOptions { accept_rollback, ..knowing(known) };
    let refused = Volume::open(Arc::new(older.snapshot()), &passphrase(), open(false));
    assert!(matches!(refused, Err(Error::RolledBack(_))));
    Volume::open(Arc::new(older), &passphrase(), open(true)).expect("the user restored a backup");
}

#[test]
fn a_fork_is_told_from_what_was_seen() {
    let (base, _, _) = filled();
    let fork = |fill| {
        let store = Arc::new(base.snapshot());
        let mut volume = Volume::open(store.clone(), &passphrase(), tight()).expect("sound");
        volume.access(vec![write(3, fill)]).expect("sound");
        volume.finish().expect("sound");
        (volume.known(), store.snapshot())
    };
    let (known, _) = fork(1);
    let (_, other) = fork(2);
    let refused = Volume::open(Arc::new(other), &passphrase(), knowing(known));
    assert!(matches!(refused, Err(Error::RolledBack(_))));
}

/// Two sessions on copies of one volume crash with the same records at the same offsets. An
/// adversary who kept both journals cannot splice them.
#[test]
fn journals_of_two_forks_do_not_mix() {
    let (base, model, _) = filled();
    let fork = |fill| {
        let store = Arc::new(base.snapshot());
        let mut volume = Volume::open(store.clone(), &passphrase(), tight()).expect("sound");
        for id in 0..3 {
            volume.defer(vec![write(id, fill)]).expect("sound");
            volume.commit().expect("sound");
            volume.access(vec![read(id)]).expect("sound");
        }
        drop(volume);
        let mut journal = vec![0; store.len("journal").expect("memory").expect("written") as usize];
        let whole = ReadAt { object: "journal", offset: 0, buf: &mut journal };
        store.read(&mut [whole]).expect("memory");
        // Zeros follow the records.
        let end = journal.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        journal.truncate(end.next_multiple_of(4096));
        journal
    };
    let (one, other) = (fork(251), fork(252));
    assert_eq!(one.len(), other.len(), "records of both begin at the same places");
    let (pages, mut refused) = (one.len() / 4096, 0);
    for cut in 0..=pages {
        for (front, back) in [(&one, &other), (&other, &one)] {
            let disk = base.snapshot();
            let mixed = [&front[..4096 * cut], &back[4096 * cut..]].concat();
            disk.put("journal", &mixed, PutMode::Replace).expect("memory");
            let mut volume = match Volume::open(Arc::new(disk), &passphrase(), tight()) {
                Err(Error::Tampered(what)) => {
                    assert!(what.starts_with("journal"), "{what}");
                    refused += 1;
                    continue;
                }
                other => other.expect("one fork's journal"),
            };
            let found = content(&mut volume);
            let fills: Vec<u8> = (0..3).map(|id| found[&id]).collect();
            let before: Vec<u8> = (0..3).map(|id| model[&id]).collect();
            let of_one_fork = |fill: u8| {
                (0..=3).any(|done| {
                    fills[..done] == vec![fill; done] && fills[done..] == before[done..]
                })
            };
            assert!(of_one_fork(251) || of_one_fork(252), "cut at page {cut}: {fills:?}");
        }
    }
    assert_eq!(refused, 2 * (pages - 1), "wherever it is cut");
}

#[test]
fn any_object_replaced_by_an_older_one_gives_no_wrong_data() {
    let (older, model, _) = filled();
    let store = Arc::new(older.snapshot());
    let mut volume = Volume::open(store.clone(), &passphrase(), tight()).expect("sound");
    volume.access((0..200).map(|id| write(id, 251)).collect()).expect("sound");
    volume.finish().expect("sound");
    let now = volume.known();
    drop(volume);
    let newest: Model = model.keys().map(|id| (*id, 251)).collect();
    for (object, len) in older.list().expect("memory") {
        let mixed = store.snapshot();
        let mut bytes = vec![0; len as usize];
        older
            .read(&mut [ReadAt { object: &object, offset: 0, buf: &mut bytes }])
            .expect("it is there");
        mixed.put(&object, &bytes, PutMode::Replace).expect("memory");
        let error = never_wrong(&mixed, &newest, now);
        assert!(error.is_some() || object != "slab", "{object}");
    }
}
