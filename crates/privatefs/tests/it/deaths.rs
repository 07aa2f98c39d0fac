//! A client dies after each transaction of each operation.

use super::common::work::{ATOMIC, LONGER, Work, seen, stage};
use super::common::{BLOCK, assert_sound, client};
use oblivio_privatefs::Session;
use oblivio_privatefs::testing::Memory;
use oblivio_privatefs::{Error, Lock, LockKind, LockOwner, Problem, ROOT, SetAttr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether it died.
fn dies(work: Work, after: u64, atomic: bool) -> bool {
    let memory = Memory::new(BLOCK);
    let at = stage(&memory);
    let before = seen(&client(&memory, 50, false).fs);
    let dying = client(&memory, 1, false);
    dying.line.take_log();
    dying.line.die_after(after);
    let died = matches!(work(&dying.fs, at), Err(Error::Below(_)));
    memory.end(Session(1));

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
    memory.end(Session(1));
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
    memory.end(Session(1));
    silent.line.goes_on_as(Session(9));
    // The lock of before is given up.
    other.fs.lock(at.x, owner, lock).unwrap();
    other.fs.unlock_all(at.x, None).unwrap();
    // The first lock fails with an error; then the locks and holders of the new session count.
    assert!(matches!(silent.fs.lock(at.x, owner, lock), Err(Error::LockLost)));
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

/// What was written under a lock that was lost: before it is written, between its pages, before its
/// inode, and when it was known before.
#[test]
fn what_was_written_under_a_lost_lock_never_lands() {
    for strict in [false, true] {
        for pages in [1, 4] {
            for after in 0..12 {
                let memory = Memory::new(BLOCK);
                let at = stage(&memory);
                let (silent, other) = (client(&memory, 1, strict), client(&memory, 2, false));
                let owner = LockOwner { number: 7, whole_file: true };
                let lock = Lock { kind: LockKind::Exclusive, start: 0, end: u64::MAX, pid: 1 };
                let written = vec![1; pages * BLOCK];
                silent.fs.open(at.x).unwrap();
                let handle = silent.fs.handle();
                silent.fs.lock(at.x, owner, lock).unwrap();
                silent.fs.write(at.x, 0, &[3; 10]).unwrap();
                silent.fs.flush(at.x).unwrap();
                silent.line.goes_on_as(Session(9));
                // Its session ends before one of its transactions, and the other one takes its
                // turn.
                let turn = Arc::new(AtomicUsize::new(after));
                let (counted, ends) = (Arc::clone(&turn), Arc::clone(&memory));
                silent.line.before_each(Box::new(move || {
                    if counted.fetch_sub(1, Ordering::SeqCst) == 0 {
                        ends.end(Session(1));
                        other.fs.open(at.x).unwrap();
                        other.fs.lock(at.x, owner, lock).unwrap();
                        let new = SetAttr { size: Some(0), ..SetAttr::default() };
                        other.fs.set_attr(at.x, new).unwrap();
                        other.fs.write(at.x, 0, &[2; 20]).unwrap();
                        other.fs.fsync(at.x).unwrap();
                    }
                }));
                let done = silent.fs.write(at.x, 0, &written).and_then(|()| silent.fs.fsync(at.x));
                if turn.load(Ordering::SeqCst) < usize::MAX / 2 {
                    // It was written in fewer transactions.
                    done.unwrap();
                    continue;
                }
                let found = client(&memory, 3, false).fs.read(at.x, 0, 5 * BLOCK).unwrap();
                if done.is_ok() {
                    // All of it was written before the other one's turn.
                    assert_eq!(found, [2; 20]);
                    continue;
                }
                assert!(matches!(done, Err(Error::LockLost)), "{done:?}");
                assert_eq!(found, [2; 20], "strict {strict}, {pages} pages, after {after}");
                // The handle is of no use any more; one that is opened now is.
                assert!(matches!(silent.fs.check_handle(at.x, handle), Err(Error::LockLost)));
                silent.fs.open(at.x).unwrap();
                silent.fs.check_handle(at.x, silent.fs.handle()).unwrap();
                assert!(matches!(silent.fs.check_handle(at.x, handle), Err(Error::LockLost)));
                silent.fs.write(at.x, 20, b"more").unwrap();
                silent.fs.fsync(at.x).unwrap();
                assert_eq!(silent.fs.read(at.x, 18, 9).unwrap(), b"\x02\x02more");
                silent.fs.close(at.x).unwrap();
                silent.fs.close(at.x).unwrap();
            }
        }
    }
}

/// No lock, no fence: what waits is written in the next session, as if nothing had been.
#[test]
fn what_waits_without_a_lock_outlives_the_session() {
    let memory = Memory::new(BLOCK);
    let at = stage(&memory);
    let silent = client(&memory, 1, false);
    let owner = LockOwner { number: 7, whole_file: false };
    let lock = |start, end| Lock { kind: LockKind::Exclusive, start, end, pid: 1 };
    silent.fs.open(at.x).unwrap();
    let handle = silent.fs.handle();
    silent.fs.lock(at.x, owner, lock(0, 9)).unwrap();
    silent.fs.lock(at.x, owner, lock(20, 29)).unwrap();
    silent.fs.unlock(at.x, owner, (0, 9)).unwrap();
    silent.fs.unlock_all(at.x, Some(owner)).unwrap();
    silent.fs.write(at.x, 0, b"waits").unwrap();
    memory.end(Session(1));
    silent.line.goes_on_as(Session(9));
    silent.fs.fsync(at.x).unwrap();
    silent.fs.check_handle(at.x, handle).unwrap();
    silent.fs.close(at.x).unwrap();
    assert_eq!(&client(&memory, 3, false).fs.read(at.x, 0, 5).unwrap(), b"waits");
}

/// What did not fit is dropped with the lock, with an error: later it would land behind the next
/// holder's.
#[test]
fn what_could_not_be_written_goes_with_the_lock() {
    let memory = Memory::new(BLOCK);
    let at = stage(&memory);
    let one = client(&memory, 1, false);
    let owner = LockOwner { number: 7, whole_file: false };
    let lock = Lock { kind: LockKind::Exclusive, start: 0, end: 9, pid: 1 };
    one.fs.open(at.x).unwrap();
    let handle = one.fs.handle();
    one.fs.lock(at.x, owner, lock).unwrap();
    one.fs.write(at.x, 0, &[1; 5 * BLOCK]).unwrap();
    memory.fill(true);
    assert!(matches!(one.fs.unlock(at.x, owner, (0, 9)), Err(Error::Full(_))));
    memory.fill(false);
    assert!(matches!(one.fs.check_handle(at.x, handle), Err(Error::LockLost)));
    one.fs.flush_all().unwrap();
    assert_ne!(client(&memory, 3, false).fs.attr(at.x).unwrap().size, 5 * BLOCK as u64);
}
