//! A server with two histories: what comes of the first ask, or answer, that crosses from one to
//! the other.

use super::hostile::copy;
use super::{Client, ClientOptions, Line, World, add_one, eventually, get, read, started, write};
use oblivio_store::share::{Share, ShareCall, ShareReply};
use oblivio_volume::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A volume with some history, at two servers.
struct Fork {
    world: World,
    sides: [Arc<dyn Share>; 2],
    _dir: tempfile::TempDir,
}

impl Fork {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| dir.path().join(name));
        std::fs::create_dir_all(&one).unwrap();
        let first = started(&one);
        let world = World::over(Arc::new(first));
        let (client, _) = world.client();
        (0..20).for_each(|index| add_one(&client, index).unwrap());
        client.close().unwrap();
        copy(&one, &two);
        // The first one's server holds its folder.
        let second: Arc<dyn Share> = Arc::new(started(&two));
        let sides = [Arc::clone(&world.line) as Arc<dyn Share>, second];
        Self { world, sides, _dir: dir }
    }

    /// A client of a side, and its line.
    fn client(&self, side: usize, scribe: bool) -> (Client, Arc<Line>) {
        let line = Line::to(Arc::clone(&self.sides[side]));
        let options = ClientOptions { scribe, ..World::options() };
        (self.world.client_over(&line, options), line)
    }
}

fn rolled_back<T: std::fmt::Debug>(done: oblivio_volume::Result<T>) {
    assert!(matches!(done, Err(Error::RolledBack(_))), "{done:?}");
}

#[test]
fn the_first_ask_across_a_fork_is_refused_and_both_sides_go_on() {
    let fork = Fork::new();
    let (left, _) = fork.client(0, true);
    add_one(&left, 1).unwrap();
    let (right, _) = fork.client(1, true);
    let (crossing, line) = fork.client(1, false);
    add_one(&right, 1).unwrap();
    let asks = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asks);
    line.lie(move |call, _| {
        if let ShareCall::Ask(asks) = call {
            let newest = asks.iter().map(|ask| ask.id.seq.0 + 1).max().unwrap_or(0);
            counted.fetch_max(newest, Ordering::SeqCst);
        }
    });
    eventually("it is of this side", || crossing.carry_out(&[write(2, 1)]).ok());
    let before = asks.load(Ordering::SeqCst);
    line.lead(Some(Arc::clone(&fork.sides[0])));
    rolled_back(crossing.carry_out(&[read(1)]));
    assert!(asks.load(Ordering::SeqCst) <= before + 1, "it asked once");
    rolled_back(crossing.carry_out(&[read(1)]));
    assert_eq!((get(&left, 1), get(&right, 1)), (2, 2), "both sides go on");
    left.close().unwrap();
    right.close().unwrap();
}

/// The server was set back to a backup. A computer that has the newer state mounted, and was
/// forgotten, asks and asks. Another one accepts the older state, and works with it; so does the
/// next scribe, which accepts nothing.
#[test]
fn a_forgotten_mount_does_not_keep_a_restored_volume_shut() {
    let fork = Fork::new();
    let (forgotten, line) = fork.client(0, false);
    let (newest, _) = fork.client(0, true);
    (0..3).for_each(|_| add_one(&newest, 1).unwrap());
    assert_eq!(get(&forgotten, 1), 4);
    newest.close().unwrap();
    line.lead(Some(Arc::clone(&fork.sides[1])));
    let asking = std::thread::spawn(move || {
        let done = forgotten.carry_out(&[read(1)]);
        (forgotten, done)
    });
    let pending = || (fork.sides[1].status().unwrap().pending > 0).then_some(());
    eventually("the forgotten one asks", pending);
    let (accepting, _) = fork.client(1, true);
    add_one(&accepting, 1).unwrap();
    let (forgotten, done) = asking.join().unwrap();
    rolled_back(done);
    rolled_back(forgotten.carry_out(&[read(1)]));
    accepting.close().unwrap();
    let (next, _) = fork.client(1, true);
    assert_eq!(get(&next, 1), 2);
    next.close().unwrap();
}

/// It knows its side, so it does not take over the other one.
#[test]
fn a_scribe_that_is_led_across_a_fork_shows_nothing_there() {
    let fork = Fork::new();
    let (left, _) = fork.client(0, true);
    add_one(&left, 1).unwrap();
    left.close().unwrap();
    let (right, line) = fork.client(1, true);
    (0..3).for_each(|_| add_one(&right, 1).unwrap());
    let before = fork.sides[0].status().unwrap().next;
    line.lead(Some(Arc::clone(&fork.sides[0])));
    rolled_back(right.carry_out(&[read(1)]));
    assert_eq!(fork.sides[0].status().unwrap().next, before, "no batch was shown");
}

/// A client has two asks under way. It gets the first answer from one side, and the second one from
/// the other side, which did the same asks.
#[test]
fn the_first_answer_across_a_fork_is_not_taken() {
    let fork = Fork::new();
    // Before the sides differ, so that both know its head.
    let (crossing, line) = fork.client(0, false);
    let (left, _) = fork.client(0, true);
    let (right, _) = fork.client(1, true);
    add_one(&left, 1).unwrap();
    (0..6).for_each(|_| add_one(&right, 1).unwrap());
    let there = Arc::clone(&fork.sides[1]);
    line.lie(move |call, reply| match (call, reply) {
        (ShareCall::Ask(asks), _) => there.ask(asks).unwrap(),
        (ShareCall::Answers { from, .. }, ShareReply::Answers(answers)) if from.0 == 0 => {
            answers.truncate(1);
        }
        (ShareCall::Answers { session, from, wait }, ShareReply::Answers(answers)) => {
            *answers = there.answers(*session, *from, *wait).unwrap();
        }
        _ => {}
    });
    let crossed = crossing.carry_out_many(&[vec![read(1)], vec![read(1)]]);
    rolled_back(crossed);
    rolled_back(crossing.carry_out(&[read(1)]));
    assert_eq!((get(&left, 1), get(&right, 1)), (2, 7), "both sides go on");
    left.close().unwrap();
    right.close().unwrap();
}
