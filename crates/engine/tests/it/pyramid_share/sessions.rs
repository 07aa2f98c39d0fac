//! Sessions that end, and asks that are refused.

use super::*;
use oblivio_engine::pyramid::share::{AskRefusal, MOST_SESSIONS};

fn write(id: u64) -> Ask {
    ask(id, Action::Write(vec![id as u8; BYTES]), false)
}

fn read(id: u64) -> Ask {
    ask(id, Action::Read, true)
}

impl World {
    /// The refusal of a client's last answer.
    fn last(&self, client: u64) -> &Outcome {
        &self.answers[&Session(client)].last().expect("it was answered").1
    }
}

#[test]
fn a_session_ends_by_its_own_ask_or_by_another_clients() {
    let mut world = World::new(7, 3, 1);
    (0..3).for_each(|client| world.ask(client, write(client as u64)));
    world.settle().expect("honest");
    // Client 1 ends its own session, client 2 that of client 0, which is silent.
    world.ask(1, Ask::end_of(Session(1)));
    world.ask(2, Ask::end_of(Session(0)));
    world.settle().expect("honest");
    assert!(
        world.last(1).answer.done && world.last(2).answer.done,
        "they are carried out like any others"
    );
    for client in [0, 1] {
        world.ask(client, read(2));
        world.settle().expect("honest");
        assert_eq!(world.last(client as u64).refusal, Some(AskRefusal::Ended));
        assert_eq!(world.clients[client].over(), Some(AskRefusal::Ended));
        assert!(world.clients[client].ask(&read(2)).is_err(), "its client knows");
    }
    world.ask(2, read(0));
    world.settle().expect("honest");
    assert_eq!(world.last(2).answer.content, Some(vec![0; BYTES]), "others go on");
    // And a later scribe knows it too.
    world.kill().expect("honest");
    let first = world.records.iter().flat_map(|stored| &stored.asks).next().expect("an ask");
    assert_eq!(first.session, Session(0));
    let again = world.scribe.take(first).expect("it opens");
    assert_eq!(again, Admitted::Refused(AskRefusal::Ended), "it does not begin again");
}

/// What waits of a session that is ended is refused, after the answers that are under way.
#[test]
fn the_asks_of_an_ended_session_that_wait_are_refused() {
    let mut world = World::new(7, 2, 1);
    world.ask(0, write(1));
    world.settle().expect("honest");
    world.ask(1, Ask::end_of(Session(0)));
    world.transaction(0, vec![write(1), write(2)]);
    world.settle().expect("honest");
    let mut refusals: Vec<_> =
        world.answers[&Session(0)].iter().map(|(_, answer)| answer.refusal).collect();
    refusals.dedup();
    // They may stand in one batch with what ends it; then they are carried out.
    assert!(refusals == [None] || refusals == [None, Some(AskRefusal::Ended)], "{refusals:?}");
}

#[test]
fn a_transaction_whose_parts_do_not_all_come_holds_up_nobody() {
    let mut world = World::new(7, 2, 1);
    let parts = world.clients[0].transaction(&[write(1), write(2), write(3)]).expect("it fits");
    for part in &parts[..2] {
        world.server.ask(part.clone());
    }
    for id in 0..20 {
        world.ask(1, write(10 + id));
        world.settle().expect("honest");
    }
    assert_eq!(world.answers[&Session(1)].len(), 20);
    assert!(!world.answers.contains_key(&Session(0)));
    // A later scribe finds the parts at the server.
    world.kill().expect("honest");
    world.server.ask(parts[2].clone());
    world.settle().expect("honest");
    assert_eq!(world.answers[&Session(0)].len(), 3);
    let shows: Vec<_> = world.server.trace.iter().rev().collect();
    let show = shows.iter().find_map(|seen| match seen {
        Recorded::Show(asks) => Some(asks),
        _ => None,
    });
    assert_eq!(show.map(Vec::len), Some(3), "side by side in one batch");
}

#[test]
fn a_full_volume_refuses_new_blocks_and_shows_them_like_any_other() {
    let mut world = World::new(6, 1, 1);
    for id in 0..64 {
        world.ask(0, write(id));
        world.settle().expect("honest");
        assert_eq!(world.live_blocks, id + 1);
    }
    let shown = |world: &World| {
        world.server.trace.iter().filter(|seen| matches!(seen, Recorded::Show(_))).count()
    };
    let before = shown(&world);
    world.ask(0, write(64));
    world.settle().expect("honest");
    let refused = world.last(0).clone();
    assert_eq!((refused.answer.done, refused.refusal), (false, Some(AskRefusal::Full)));
    assert_eq!(shown(&world), before + 1);
    // A transaction is refused as a whole.
    world.transaction(0, vec![ask(1, Action::Remove, false), write(70), write(71)]);
    world.settle().expect("honest");
    assert!(world.answers[&Session(0)].iter().rev().take(3).all(|(_, it)| !it.answer.done));
    world.ask(0, write(3));
    world.settle().expect("honest");
    assert!(world.last(0).answer.done, "it exists");
    world.ask(0, ask(1, Action::Remove, false));
    world.ask(0, write(64));
    world.settle().expect("honest");
    assert!(world.last(0).answer.done, "one was removed");
    assert_eq!(world.live_blocks, 64);
    world.ask(0, read(71));
    world.settle().expect("honest");
    assert_eq!(world.last(0).answer.content, None);
}

#[test]
fn there_is_a_most_of_sessions() {
    let mut world = World::new(7, 1, 1);
    let follower = |n| Follower::new(Session(n), VOLUME, BYTES, sealer(n)).knowing(Head::default());
    for n in 1..MOST_SESSIONS as u64 + 8 {
        let record = follower(n).ask(&read(0)).expect("it fits");
        let taken = world.scribe.take(&record).expect("it opens");
        let room = n <= MOST_SESSIONS as u64;
        let expected = if room { Admitted::Waits } else { Admitted::Refused(AskRefusal::Crowded) };
        assert_eq!(taken, expected, "session {n}");
    }
}

#[test]
fn an_ask_that_names_an_older_head_than_the_window_is_refused() {
    let mut world = World::new(7, 2, 1);
    world.ask(1, write(0));
    world.settle().expect("honest");
    let heads = [Head::default(), world.clients[1].head()];
    let window = world.config.remembered_records() as u64;
    while world.scribe.head().number <= window + 8 {
        world.ask(0, write(1));
        world.settle().expect("honest");
    }
    for (n, head) in (50..).zip(heads) {
        let mut late = Follower::new(Session(n), VOLUME, BYTES, sealer(n)).knowing(head);
        let record = late.ask(&read(0)).expect("it fits");
        let taken = world.scribe.take(&record).expect("it opens");
        assert_eq!(taken, Admitted::Refused(AskRefusal::Old));
    }
    // One that was silent names the head of its last answer, and the scribe knows that.
    world.ask(1, read(0));
    world.settle().expect("honest");
    assert!(world.last(1).answer.done);
    // So does a later scribe.
    world.kill().expect("honest");
    world.ask(1, read(0));
    world.settle().expect("honest");
    assert!(world.last(1).answer.done);
}

#[test]
fn an_answer_that_was_lost_comes_again_until_it_is_no_longer_kept() {
    let mut world = World::new(6, 2, 1);
    let record = world.clients[0].ask(&write(1)).expect("it fits");
    world.server.ask(record.clone());
    while world.step().expect("honest") {}
    let first = world.server.answer(Session(0)).expect("answered");
    world.server.ask(record.clone());
    assert_eq!(world.server.answer(Session(0)), Some(first), "the same bytes");
    while world.server.forgotten < 3 {
        world.ask(1, write(2));
        while world.step().expect("honest") {}
    }
    world.server.ask(record);
    while world.step().expect("honest") {}
    let gone = world.server.answer(Session(0)).expect("answered");
    let (_, answer) = world.clients[0].answer(&gone).expect("it opens").expect("the first");
    assert_eq!(answer.refusal, Some(AskRefusal::Gone));
    assert_eq!(world.clients[0].over(), None, "its session goes on");
}
