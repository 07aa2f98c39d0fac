//! A client dies after each transaction of each operation.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "common/work.rs"]
mod work;

use common::{BLOCK, assert_sound, client};
use oblivio_privatefs::testing::Memory;
use oblivio_privatefs::{Error, Problem};
use work::{ATOMIC, LONGER, Work, seen, stage};

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
    dying.fs.unlink(oblivio_privatefs::ROOT, b"x").unwrap();
    memory.end([1; 16]);
    assert_eq!(client(&memory, 2, false).fs.clean_up().unwrap(), 1);
    assert_sound(&memory, 3);
}
