//! A client dies after each transaction of each operation.

use super::common::work::{ATOMIC, LONGER, Work, seen, stage};
use super::common::{BLOCK, assert_sound, client};
use oblivio_privatefs::testing::Memory;
use oblivio_privatefs::{Error, Lock, LockKind, LockOwner, Problem, ROOT};

/// Whether it died.
fn dies(work: Work, after: u64, atomic: bool) -> bool {
    let memory = Memory::new(BLOCK);
    let at = stage(&memory);
    let before = seen(&client(&memory, 50, false).fs);
    let dying = client(&memory, 1, false);
    dying.line.take_log();
    dying.line.die_after(after);
    let died = matches!(work(&dying.fs, at), Err(Error::Below(_)));
    memory.end([1; 16]);

    let next = client(&memory, 2, false);
    let found = next.fs.check().unwrap();
    let sound = found.problems.iter().all(Problem::is_left_over);
    assert!(sound, "{:?}", found.problems);
    if died && atomic {
        assert_eq!(seen(&next.fs), before);
    }
    next.fs.repair(&found).unwrap();
    assert_sound(&memory, 3);
    died
}

#[test]
fn a_death_at_any_ask_leaves_a_sound_file_system() {
    for (list, atomic) in [(ATOMIC, true), (LONGER, false)] {
        for (name, work) in list {
            let mut after = 0;
            while dies(*work, after, atomic && *name != "create f") {
                after += 1;
                assert!(after < 500, "{name} never ends");
            }
            assert!(after > 0, "{name} asks nothing");
        }
    }
}

#[test]
fn a_session_that_ends_without_repair_is_cleaned_up_by_the_next() {
    let memory = Memory::new(BLOCK);
    let at = stage(&memory);
    let dying = client(&memory, 1, false);
    dying.fs.open(at.x).unwrap();
    dying.fs.unlink(ROOT, b"x").unwrap();
    let found = client(&memory, 2, false).fs.check().unwrap();
    assert_eq!((found.held, found.problems), (1, vec![]));
    memory.end([1; 16]);
    assert_eq!(client(&memory, 2, false).fs.clean_up().unwrap(), 1);
    assert_sound(&memory, 3);
}

#[test]
fn a_client_that_was_silent_for_long_holds_and_locks_in_its_next_session() {
    let memory = Memory::new(BLOCK);
    let at = stage(&memory);
    let (silent, other) = (client(&memory, 1, false), client(&memory, 2, false));
    let owner = LockOwner { number: 7, whole_file: false };
    let lock = Lock { kind: LockKind::Exclusive, start: 0, end: 9, pid: 1 };
    silent.fs.open(at.x).unwrap();
    silent.fs.lock(at.x, owner, lock).unwrap();
    memory.end([1; 16]);
    silent.line.goes_on_as([9; 16]);
    // The lock of before is given up.
    other.fs.lock(at.x, owner, lock).unwrap();
    other.fs.unlock_all(at.x, None).unwrap();
    // The locks and holders of now count.
    silent.fs.lock(at.x, owner, lock).unwrap();
    assert!(matches!(other.fs.lock(at.x, owner, lock), Err(Error::Locked)));
    silent.fs.open(at.x).unwrap();
    other.fs.unlink(ROOT, b"x").unwrap();
    assert_eq!(silent.fs.attr(at.x).unwrap().nlink, 0);
    for _ in 0..2 {
        silent.fs.close(at.x).unwrap();
    }
    assert_sound(&memory, 3);
}
