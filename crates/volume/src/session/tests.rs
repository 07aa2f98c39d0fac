//! Sessions over a store in memory: what each starts from, and what damage does.

use super::claim;
use super::entry::{Draft, Mark, SessionEntry};
use super::planted::Planted;
use super::pointer::{self, POINTER_BYTES};
use super::*;
use crate::environment::Environment;
use crate::trust::ComputerId;
use crate::{Error, Result};
use oblivio_crypto::{Kind, SealRoot, Sealer, SeededEntropy, Tag, VolumeId};
use oblivio_store::{Held, MemoryStore, Objects, PutMode, ReadAt};
use oblivio_testkit::fault::{Fault, FaultPlan, FaultStore, When};
use std::sync::Arc;

const VOLUME: VolumeId = VolumeId([7; 16]);
pub(super) const NOTE: u64 = FIRST_KIND;
const BOTH: [ClaimMode; 2] = [ClaimMode::Create, ClaimMode::Alone];

fn vault(seed: u64) -> Vault {
    let sealer = Sealer::new(SealRoot::from_seed(1), Box::new(SeededEntropy::new(seed)));
    Vault::new(VOLUME, sealer)
}

fn who() -> Who {
    Who { computer: ComputerId([3; 16]), host: "laptop".into() }
}

/// Computers before one store. Each session draws from a seed of its own.
pub(super) struct World {
    pub store: Arc<MemoryStore>,
    pub way: ClaimMode,
    pub seed: u64,
}

impl World {
    pub fn new(way: ClaimMode) -> Self {
        Self { store: Arc::default(), way, seed: 0 }
    }

    pub fn opening(&mut self) -> SessionOpening {
        self.seed += 1;
        SessionOpening {
            store: self.store.clone(),
            way: self.way,
            vault: vault(self.seed),
            environment: Environment::from_seed(self.seed),
            who: who(),
            was: ComputerId([0; 16]),
            start: SearchStart::default(),
            cache: None,
            accept_gaps: false,
            stands: |_, _, _| Ok(true),
            on_wait: None,
            planted: Planted::default(),
        }
    }

    pub fn begin(&mut self) -> Result<(OwnSession, History)> {
        self.opening().begin()
    }

    /// A session that has started.
    pub fn start(&mut self) -> (OwnSession, History) {
        let (mut session, history) = self.begin().unwrap();
        session.start(b"").unwrap();
        (session, history)
    }

    fn spoil(&self, name: &str) {
        self.store.corrupt(name, 60, |byte| *byte ^= 1).unwrap();
    }
}

/// What a history holds: the newest commit and the notes after it.
pub(super) fn told(history: &History) -> (Option<String>, Vec<String>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let notes = history.records.iter().filter(|(_, kind, _)| *kind == NOTE);
    let commit = history.commit.as_ref().map(|(_, payload)| text(payload));
    (commit, notes.map(|(_, _, payload)| text(payload)).collect())
}

fn notes(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn a_session_starts_from_what_was_acknowledged() {
    for way in BOTH {
        let mut world = World::new(way);
        let (mut one, history) = world.start();
        assert_eq!((one.id().number, history.parent), (1, None));
        one.append(NOTE, b"a", 0).unwrap();
        one.send(NOTE, b"b", 0).unwrap();
        let last = one.append(NOTE, b"c", 9000).unwrap();
        assert_eq!((last.index, one.settled()), (4, 4));

        let (mut two, history) = world.start();
        assert_eq!(told(&history), (None, notes(&["a", "b", "c"])));
        assert_eq!((two.id().number, history.parent), (2, Some(last)));
        assert!(matches!(one.append(NOTE, b"late", 0), Err(Error::Overtaken)));
        assert!(matches!(one.look(), Err(Error::Overtaken)), "for ever");
        assert!(matches!(one.delete(&[]), Err(Error::Overtaken)));
        two.append(NOTE, b"d", 0).unwrap();

        // The late entry of the first is not part of what the second stands on.
        let (mut three, history) = world.start();
        assert_eq!(told(&history), (None, notes(&["a", "b", "c", "d"])));
        three.commit(b"abcd", false).unwrap();
        three.append(NOTE, b"e", 0).unwrap();
        three.release(b"").unwrap();

        let (_, history) = world.begin().unwrap();
        assert_eq!(told(&history), (Some("abcd".into()), notes(&["e"])));
        assert!(history.released);
    }
}

#[test]
fn sessions_that_crashed_before_their_first_entry_are_passed_over() {
    for way in BOTH {
        let mut world = World::new(way);
        let (mut one, _) = world.start();
        one.append(NOTE, b"a", 0).unwrap();
        for _ in 0..20 {
            world.begin().unwrap();
        }
        let (session, history) = world.begin().unwrap();
        assert_eq!((session.id().number, told(&history)), (22, (None, notes(&["a"]))));
    }
}

#[test]
fn what_a_commit_replaced_is_not_needed() {
    for way in BOTH {
        let mut world = World::new(way);
        let (mut one, _) = world.start();
        for turn in 0..40u8 {
            one.append(NOTE, &[b'a' + turn % 26], 0).unwrap();
            let mark = one.commit(format!("commit {turn}").as_bytes(), false).unwrap();
            let old: Vec<String> = (1..mark.index).map(|index| one.id().entry(index)).collect();
            one.delete(&old.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        }
        one.append(NOTE, b"z", 0).unwrap();
        let first = one.id();
        let (mut two, history) = world.start();
        assert_eq!(told(&history), (Some("commit 39".into()), notes(&["z"])));
        // A session without a commit stands on the commit before it.
        two.append(NOTE, b"y", 0).unwrap();
        let (mut three, history) = world.start();
        assert_eq!(told(&history), (Some("commit 39".into()), notes(&["z", "y"])));
        three.commit(b"own", false).unwrap();
        let all: Vec<String> = world.store.list().unwrap().into_iter().map(|it| it.0).collect();
        let of_first = format!("{:016x}", first.random);
        let old = all
            .iter()
            .map(String::as_str)
            .filter(|name| name.contains(&of_first) && !name.starts_with("s-"));
        three.delete(&old.collect::<Vec<_>>()).unwrap();
        assert_eq!(told(&world.begin().unwrap().1), (Some("own".into()), notes(&[])));
    }
}

#[test]
fn a_store_that_fails_once_loses_nothing() {
    for way in BOTH {
        for when in [When::Before, When::After] {
            for at in 0..60 {
                let mut world = World::new(way);
                world.start().0.append(NOTE, b"a", 0).unwrap();
                let plan = FaultPlan::new();
                let mut opening = world.opening();
                opening.store = Arc::new(FaultStore::new(world.store.clone(), plan.clone()));
                plan.fail_at(at, Fault { when, ..Fault::once() });
                let Ok((mut session, history)) = opening.begin() else { continue };
                assert_eq!(told(&history), (None, notes(&["a"])));
                let failed = [
                    session.start(b"").is_err(),
                    session.send(NOTE, b"b", 0).is_err(),
                    session.append(NOTE, b"c", 0).is_err(),
                    session.commit(b"abc", false).is_err(),
                    session.append(NOTE, b"d", 0).is_err(),
                ];
                assert!(failed.iter().filter(|failed| **failed).count() <= 1);
                session.settle().unwrap();
                // Without an answer it is not confirmed, and what is before it may be needed.
                if !failed[3] {
                    session.delete(&[&session.id().entry(1), &session.id().entry(2)]).ok();
                }
                let (_, history) = world.begin().unwrap();
                assert_eq!(told(&history), (Some("abc".into()), notes(&["d"])), "fault {at}");
            }
        }
    }
}

#[test]
fn a_claim_that_was_stored_without_an_answer_is_known_again() {
    for way in BOTH {
        let mut world = World::new(way);
        let plan = FaultPlan::new();
        let mut opening = world.opening();
        opening.store = Arc::new(FaultStore::new(world.store.clone(), plan.clone()));
        // The hint and the largest number are asked for, or two lists; then the claim is stored.
        plan.fail_at(2, Fault { when: When::After, ..Fault::once() });
        assert_eq!(opening.begin().unwrap().0.id().number, 1);
        assert_eq!(plan.fired(), 1);
        assert_eq!(world.begin().unwrap().0.id().number, 2);
    }
}

#[test]
fn two_claims_to_one_number_begin_no_session() {
    let mut world = World::new(ClaimMode::Alone);
    let other = SessionId { number: 1, random: 5 };
    world.store.put(&other.claim(), b"torn", PutMode::Replace).unwrap();
    let (session, history) = world.begin().unwrap();
    assert_eq!((session.id().number, history.parent), (2, None));
    // It came between: who then sees two, goes on to the next number.
    let claims = claim::Claims { store: &*world.store, way: ClaimMode::Alone };
    let third = SessionId { number: 2, random: 9 };
    assert!(!claims.claim(&mut vault(9), third, &who()).unwrap());
}

#[test]
fn a_damaged_claim_is_a_taken_number_and_hides_nothing_silently() {
    let mut world = World::new(ClaimMode::Create);
    world.start().0.append(NOTE, b"a", 0).unwrap();
    let (mut two, _) = world.start();
    two.append(NOTE, b"b", 0).unwrap();
    // It has a second copy.
    world.spoil(&names::claim(2));
    let (session, history) = world.begin().unwrap();
    assert_eq!((session.id().number, told(&history)), (3, (None, notes(&["a", "b"]))));
    world.spoil(&names::claim_copy(2));
    assert!(matches!(world.begin(), Err(Error::Tampered(_))));
    assert!(matches!(two.look(), Err(Error::Overtaken)), "its number was taken all the same");
    let mut opening = world.opening();
    opening.accept_gaps = true;
    let (mut session, history) = opening.begin().unwrap();
    assert_eq!((session.id().number, told(&history)), (5, (None, notes(&["a"]))));
    // Claims before the newest session with entries are not needed.
    session.start(b"").unwrap();
    assert_eq!(told(&world.begin().unwrap().1), (None, notes(&["a"])));
}

#[test]
fn damaged_entries_end_a_history_or_are_found() {
    for way in BOTH {
        // The number of the damaged entry, and the notes that are left: none if it is found.
        for (damaged, left) in [(4, Some(&["a", "b"][..])), (3, None), (2, None), (1, None)] {
            let mut world = World::new(way);
            let (mut one, _) = world.start();
            for note in [b"a", b"b", b"c"] {
                one.append(NOTE, note, 0).unwrap();
            }
            world.spoil(&one.id().entry(damaged));
            match (world.begin(), left) {
                (Ok((_, history)), Some(left)) => assert_eq!(told(&history).1, notes(left)),
                (Err(Error::Tampered(_)), None) => {}
                (other, _) => panic!("entry {damaged}: {:?}", other.map(|it| told(&it.1))),
            }
            // Who accepts an older state gets what was before it, and goes on from there.
            let mut opening = world.opening();
            opening.accept_gaps = true;
            let (mut session, history) = opening.begin().unwrap();
            let before = &["a", "b"][..(damaged as usize).saturating_sub(2)];
            assert_eq!(told(&history).1, notes(before), "entry {damaged}");
            session.start(b"").unwrap();
            session.append(NOTE, b"d", 0).unwrap();
            let after: Vec<&str> = before.iter().copied().chain(["d"]).collect();
            assert_eq!(told(&world.begin().unwrap().1).1, notes(&after), "entry {damaged}");
        }
    }
}

#[test]
fn a_hole_of_entries_sent_side_by_side_ends_a_history() {
    let mut world = World::new(ClaimMode::Create);
    let (mut one, _) = world.start();
    for note in [b"a", b"b", b"c"] {
        one.send(NOTE, note, 0).unwrap();
    }
    world.store.delete(&[&one.id().entry(3)]).unwrap();
    assert_eq!(told(&world.begin().unwrap().1).1, notes(&["a"]));
}

#[test]
fn entries_open_in_their_place_only() {
    for way in BOTH {
        let mut world = World::new(way);
        let (mut one, _) = world.start();
        let (mut two, _) = world.start();
        two.append(NOTE, b"a", 0).unwrap();
        let _ = one.append(NOTE, b"b", 0);
        let copy = |from: &str, to: &str| {
            let mut bytes = vec![0; 4096];
            world.store.read(&mut [ReadAt { object: from, offset: 0, buf: &mut bytes }]).unwrap();
            world.store.put(to, &bytes, PutMode::Replace).unwrap();
        };
        copy(&one.id().entry(2), &two.id().entry(3));
        copy(&two.id().entry(2), &two.id().entry(4));
        assert_eq!(told(&world.begin().unwrap().1).1, notes(&["a"]));
    }
}

#[test]
fn a_damaged_pointer_shows_no_older_state() {
    for way in BOTH {
        let mut world = World::new(way);
        let (mut one, _) = world.start();
        one.commit(b"first", false).unwrap();
        one.append(NOTE, b"a", 0).unwrap();
        one.commit(b"second", false).unwrap();
        one.append(NOTE, b"b", 0).unwrap();
        world.spoil(&one.id().pointer(2));
        assert_eq!(told(&world.begin().unwrap().1), (Some("second".into()), notes(&["b"])));
        // With what the commit replaced, nothing is left to find it by.
        world.store.delete(&[&one.id().entry(2)]).unwrap();
        assert!(matches!(world.begin(), Err(Error::Tampered(_))));
    }
}

#[test]
fn entries_have_size_classes_and_exact_payloads() {
    let mut vault = vault(1);
    let session = SessionId { number: 3, random: 4 };
    let before = Mark { session, index: 0, tag: Tag([9; 16]) };
    for (len, least, stored) in
        [(0, 0, 4096), (3000, 0, 4096), (4096, 0, 8192), (0, 9000, 12288), (70_000, 0, 81_920)]
    {
        let payload = vec![0; len];
        let draft = Draft { before, settled: 0, kind: NOTE, payload: &payload, least };
        let (mark, bytes) = draft.seal(&mut vault).unwrap();
        assert_eq!((bytes.len(), SessionEntry::has_length(bytes.len() as u64)), (stored, true));
        let entry = SessionEntry::open(&mut vault, session, 1, bytes).unwrap();
        assert_eq!((entry.mark, entry.before), (mark, before.tag));
        assert_eq!((entry.kind, entry.payload.len()), (NOTE, len));
    }
    let payload = vec![0; 17 << 20];
    let draft = Draft { before, settled: 0, kind: NOTE, payload: &payload, least: 0 };
    assert!(matches!(draft.seal(&mut vault), Err(Error::TooLarge(_))));
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let (mut vault, mut seeded) = (vault(1), oblivio_testkit::Dice::new(5));
    let session = SessionId { number: 3, random: 4 };
    for len in (0..200).chain([1023, 1024, 1025, 4096, 8192]) {
        let mut bytes = seeded.bytes(len);
        assert!(SessionEntry::open(&mut vault, session, 1, bytes.clone()).is_none());
        assert!(pointer::open(&mut vault, session, 1, &mut bytes.clone()).is_none());
        assert!(claim::open(&mut vault, Kind::Claim, 3, &mut bytes).is_none());
    }
}

#[test]
fn hosts_are_cut_at_a_character() {
    let mut vault = vault(1);
    let id = SessionId { number: 3, random: 4 };
    for (host, kept) in
        [("", 0), ("laptop", 6), (&"a".repeat(300), 255), (&"\u{e9}".repeat(200), 254)]
    {
        let who = Who { host: host.into(), ..who() };
        let mut bytes = claim::seal(&mut vault, Kind::Claim, id, &who).unwrap();
        assert_eq!(bytes.len(), claim::CLAIM_BYTES);
        let (opened, named) = claim::open(&mut vault, Kind::Claim, 3, &mut bytes.clone()).unwrap();
        assert_eq!((opened, named.host.as_str()), (id, &host[..kept]));
        assert!(claim::open(&mut vault, Kind::Claim, 4, &mut bytes).is_none());
    }
}

#[test]
fn pointers_open_in_their_place_only() {
    let mut vault = vault(1);
    let session = SessionId { number: 3, random: 4 };
    let mark = Mark { session, index: 7, tag: Tag([5; 16]) };
    let bytes = pointer::seal(&mut vault, 2, mark).unwrap();
    assert_eq!(bytes.len(), POINTER_BYTES);
    assert_eq!(pointer::open(&mut vault, session, 2, &mut bytes.clone()), Some(mark));
    assert_eq!(pointer::open(&mut vault, session, 1, &mut bytes.clone()), None);
    let other = SessionId { random: 5, ..session };
    assert_eq!(pointer::open(&mut vault, other, 2, &mut bytes.clone()), None);
}
