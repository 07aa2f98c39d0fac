//! A store that does not answer.

use super::*;
use std::time::Instant;

const SHORT: Duration = Duration::from_millis(500);

#[test]
fn a_stalled_store_is_answered_for_and_comes_back() {
    let rig = Rig::new(SHORT);
    let file = rig.create("a");
    rig.ask(write(file, 0, b"hello")).expect("written");
    rig.gate.shut(true);
    let begun = Instant::now();
    let sync = rig.send(Op::Sync { ino: 1 });
    let others = [rig.send(Op::StatFs), rig.send(read(file, 0, 5)), rig.send(create("b"))];
    assert_eq!(sync.recv().expect("an answer").expect_err("too late").code(), EIO);
    for other in others {
        assert_eq!(other.recv().expect("an answer").expect_err("too late").code(), EIO);
    }
    assert!(begun.elapsed() >= SHORT && begun.elapsed() < 20 * SHORT);
    assert_eq!(rig.stalls.load(Ordering::Relaxed), 1, "the stall is told of once");

    rig.gate.shut(false);
    match rig.ask(read(file, 0, 5)) {
        Ok(Answer::Data(data)) => assert_eq!(data, b"hello"),
        other => panic!("{other:?}"),
    }
    // The server skips requests whose callers have given up.
    assert!(matches!(rig.ask(Op::Lookup(place("b"))), Ok(Answer::Entry(None))));
    rig.ask(Op::Sync { ino: 1 }).expect("the store is back");
    rig.end();
}

#[test]
fn what_was_opened_too_late_is_closed_and_forgotten() {
    let rig = Rig::new(SHORT);
    rig.create("open");
    rig.gate.shut(true);
    // The first request is under way when the gate shuts; it must not need the store before.
    let sync = rig.send(Op::Sync { ino: 1 });
    assert!(sync.recv().expect("an answer").is_err());
    let release = rig.send(Op::Release { fh: 1 });
    let opened = rig.send(Op::Unlink(place("open")));
    assert!(opened.recv().expect("an answer").is_err());
    assert!(release.recv().expect("an answer").is_err());
    rig.gate.shut(false);
    // The release was served all the same, the unlink was not.
    assert!(matches!(rig.ask(Op::Lookup(place("open"))), Ok(Answer::Entry(Some(_)))));
    assert_eq!(rig.ask(read((2, 1), 0, 1)).expect_err("closed"), 9);
    rig.end();
}

#[test]
fn a_slow_store_that_is_at_work_is_waited_for() {
    let pulse = Pulse::default();
    let rig = Rig::with(SHORT, None, Arc::clone(&pulse));
    rig.create("a");
    rig.gate.shut(true);
    let sync = rig.send(Op::Sync { ino: 1 });
    for _ in 0..20 {
        thread::sleep(SHORT / 5);
        pulse.fetch_add(1, Ordering::Relaxed);
    }
    rig.gate.shut(false);
    assert!(sync.recv().expect("an answer").is_ok());
    rig.end();
}

#[test]
fn a_killed_queue_answers_everybody_at_once() {
    let rig = Rig::new(Duration::from_secs(60));
    rig.create("a");
    rig.gate.shut(true);
    let waiting = [rig.send(Op::Sync { ino: 1 }), rig.send(Op::StatFs)];
    rig.queue.kill();
    for one in waiting {
        let answer = one.recv_timeout(Duration::from_secs(5)).expect("an answer");
        assert_eq!(answer.expect_err("killed").code(), EIO);
    }
    assert_eq!(rig.ask(Op::StatFs).expect_err("killed"), EIO);
    rig.gate.shut(false);
    rig.end();
}

#[test]
fn an_operation_that_finishes_late_makes_the_kernel_forget() {
    let rig = Rig::new(SHORT);
    let file = rig.create("a");
    // Writing a whole block needs the store.
    rig.gate.shut(true);
    let written = rig.send(write(file, 0, &vec![7; 1 << 20]));
    assert_eq!(written.recv().expect("an answer").expect_err("too late").code(), EIO);
    rig.gate.shut(false);
    assert_eq!(rig.late.recv().expect("a notice"), Late::Inode(file.0));
    rig.end();
}

#[test]
fn a_file_that_is_created_too_late_is_closed() {
    // The hook delays the second creation beyond the time limit.
    let counter = AtomicU64::new(0);
    let slow: OnRequest = Box::new(move |_, _, _, _| {
        if counter.fetch_add(1, Ordering::Relaxed) == 1 {
            thread::sleep(4 * SHORT);
        }
    });
    let rig = Rig::with(SHORT, Some(slow), Pulse::default());
    rig.create("a");
    assert_eq!(rig.ask(create("late")).expect_err("too late"), EIO);
    assert_eq!(rig.late.recv().expect("a notice"), Late::Name(ROOT_INO, b"late".to_vec()));
    assert_eq!(rig.late.recv().expect("a notice"), Late::Inode(ROOT_INO));
    // The file exists, and its handle, the second one, does not.
    let Ok(Answer::Entry(Some(attr))) = rig.ask(Op::Lookup(place("late"))) else { panic!("none") };
    assert_eq!(rig.ask(read((attr.ino, 2), 0, 1)).expect_err("closed"), 9);
    rig.end();
}
