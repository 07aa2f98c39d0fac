//! What every shared volume must do, case by case.
#![allow(clippy::unwrap_used, reason = "a suite panics at the first failure")]

use super::rig::{Rig, SLOT, ask_id, entry_of_asks, session_of};
use super::{FreshShare, TestClock};
use oblivio_store::share::{
    Arrival, AskId, AskNumber, HistoryEntry, LEASE, Number, Object, ScribeTerm, SealedAsk,
    SealedShow, ServerSpot, ServerTable, Share, ShareError,
};
use std::time::Duration;

const NOW: Duration = Duration::ZERO;

fn spot(table: u64, slot: u32) -> ServerSpot {
    ServerSpot { table: ServerTable(table), slot }
}

/// Why an ask is refused: at once, or at a later call.
///
/// # Panics
/// If it is not.
#[must_use]
pub fn refused_ask(share: &dyn Share, ask: &SealedAsk) -> ShareError {
    let done = share.ask(std::slice::from_ref(ask)).and_then(|()| {
        // The reply to the ask comes before the one to this.
        share.status()?;
        share.ask(&[])
    });
    done.expect_err("the ask is refused")
}

fn ask(id: AskId) -> SealedAsk {
    SealedAsk { id, sealed: vec![id.seq.0 as u8; 20] }
}

fn xor(parts: &[&[u8]]) -> Vec<u8> {
    let mut sum = vec![0; SLOT];
    for part in parts {
        sum.iter_mut().zip(*part).for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

/// All of them.
///
/// # Panics
/// When one fails.
pub fn suites(fresh: FreshShare<'_>) {
    let cases: [fn(&dyn Share, &TestClock); 8] =
        [parameters, terms, asks, history, refusals, tables, replaced, checkpoints];
    for case in cases {
        let clock = TestClock::default();
        let open = fresh(clock.clock());
        case(&*open(), &clock);
    }
    later_starts(fresh);
}

fn parameters(share: &dyn Share, _: &TestClock) {
    assert_eq!(share.parameters().unwrap(), None);
    assert!(matches!(refused_ask(share, &ask(ask_id(share, 1, 0))), ShareError::NotMade));
    assert_eq!(share.put_parameters(0, 64, b"one").unwrap(), 1);
    assert!(matches!(share.put_parameters(0, 64, b"two"), Err(ShareError::Version(1))));
    assert_eq!(share.put_parameters(1, 64, b"two").unwrap(), 2);
    assert!(share.put_parameters(2, 65, b"three").is_err(), "slots keep their length");
    assert!(share.put_parameters(2, 64, &vec![0; 70_000]).is_err(), "too long");
    let found = share.parameters().unwrap().unwrap();
    assert_eq!((found.version, found.slot_bytes, &*found.header), (2, 64, &b"two"[..]));
}

fn terms(share: &dyn Share, clock: &TestClock) {
    let first = Rig::new(share).unwrap().term;
    assert!(matches!(share.claim(first), Err(ShareError::Held { .. })));
    clock.pass(LEASE - Duration::from_millis(1));
    share.renew(first).unwrap();
    clock.pass(LEASE - Duration::from_millis(1));
    assert!(matches!(share.claim(first), Err(ShareError::Held { .. })), "it was renewed");
    clock.pass(Duration::from_millis(1));
    let second = share.claim(first).unwrap();
    assert_eq!(second, ScribeTerm(first.0 + 1));
    assert!(matches!(share.claim(first), Err(ShareError::Superseded(term)) if term == second));
    let old = |done: Result<(), ShareError>| {
        assert!(matches!(done, Err(ShareError::Superseded(term)) if term == second));
    };
    let (note, table) = (HistoryEntry::Note(vec![1]), Object::Table(ServerTable(1)));
    old(share.renew(first));
    old(share.release(first));
    old(share.asks(first, Arrival(0), NOW).map(drop));
    old(share.append(first, Number(0), &note).and_then(|()| share.durable(first, Number(0))));
    old(share.slots(first, Number(0), &[]).map(drop));
    old(store(share, first, table, 0, &[0; SLOT]));
    old(share.finish(first, table, SLOT as u64));
    old(share.save(first, Number(0), Number(0)));
    assert_eq!(share.status().unwrap().next, Number(0), "nothing of it was stored");
    share.release(second).unwrap();
    assert_eq!(share.claim(second).unwrap(), ScribeTerm(second.0 + 1), "handed over at once");
}

fn asks(share: &dyn Share, _: &TestClock) {
    let mut rig = Rig::new(share).unwrap();
    let (a, b, c) = (ask_id(share, 2, 0), ask_id(share, 1, 0), ask_id(share, 2, 1));
    share.ask(&[ask(a), ask(b)]).unwrap();
    share.ask(&[ask(b), ask(c)]).unwrap();
    let other = SealedAsk { id: a, sealed: vec![9; 20] };
    assert!(matches!(refused_ask(share, &other), ShareError::OtherAsk(id) if id == a));
    let (came, next) = share.asks(rig.term, Arrival(0), NOW).unwrap();
    assert_eq!(came, [ask(a), ask(b), ask(c)]);
    assert_eq!(share.asks(rig.term, next, NOW).unwrap(), (vec![], next));
    assert_eq!(share.answers(session_of(share, 2), AskNumber(0), NOW).unwrap(), []);
    let (batch, sums) = rig.show(&[(b, vec![]), (c, vec![])]).unwrap();
    assert_eq!(sums, vec![0; 2 * SLOT], "they show nothing");
    assert_eq!(share.asks(rig.term, Arrival(0), NOW).unwrap().0, [ask(a)]);
    share.ask(&[ask(b), ask(c)]).unwrap();
    assert_eq!(share.asks(rig.term, Arrival(0), NOW).unwrap().0, [ask(a)], "it is in a batch");
    rig.tell(batch, &[b, c]).unwrap();
    let answers =
        share.answers(session_of(share, 2), AskNumber(0), Duration::from_secs(5)).unwrap();
    assert_eq!(answers.iter().map(|it| it.id).collect::<Vec<_>>(), [c]);
    assert_eq!(answers[0].sealed, 1u64.to_le_bytes());
    assert_eq!(share.answers(session_of(share, 2), AskNumber(2), NOW).unwrap(), []);
    assert_eq!(
        share.answers(session_of(share, 1), AskNumber(0), NOW).unwrap().len(),
        1,
        "as often as wanted"
    );
}

fn history(share: &dyn Share, _: &TestClock) {
    let mut rig = Rig::new(share).unwrap();
    let (a, own) = (ask_id(share, 1, 0), ask_id(share, 7, 3));
    share.ask(&[ask(a)]).unwrap();
    let asks = [(own, vec![]), (a, vec![])];
    let show = entry_of_asks(b"intent", vec![ask(own)], &asks);
    let batch = rig.add(&show).unwrap();
    share.sums(rig.term, batch).unwrap();
    rig.add(&HistoryEntry::Note(vec![5; 30])).unwrap();
    let told = rig.tell(batch, &[own, a]).unwrap();
    let all = share.records(Number(0), usize::MAX, NOW).unwrap();
    let numbers: Vec<_> = all.iter().map(|it| it.number.0).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert_eq!(all[0].sealed, b"intent");
    assert_eq!(all[0].asks, [ask(own), ask(a)], "in the order of the batch");
    assert_eq!(share.records(Number(1), 1, NOW).unwrap().len(), 1, "at least one");
    assert_eq!(share.records(Number(3), usize::MAX, NOW).unwrap(), []);
    // Again the same, and another one.
    share.append(rig.term, told, &Rig::answers(batch, &[own, a])).unwrap();
    share.durable(rig.term, told).unwrap();
    share.append(rig.term, batch, &entry_of_asks(b"intent", vec![], &asks)).unwrap();
    share.durable(rig.term, batch).unwrap();
    for (number, entry) in
        [(1, HistoryEntry::Note(vec![6])), (0, entry_of_asks(b"other", vec![], &asks))]
    {
        let number = Number(number);
        let done =
            share.append(rig.term, number, &entry).and_then(|()| share.durable(rig.term, number));
        assert!(matches!(done, Err(ShareError::Differs(it)) if it == number), "{done:?}");
    }
}

fn refusals(share: &dyn Share, _: &TestClock) {
    let mut rig = Rig::new(share).unwrap();
    let (a, b) = (ask_id(share, 1, 0), ask_id(share, 1, 1));
    share.ask(&[ask(a)]).unwrap();
    let refused = |entry: &HistoryEntry, number: u64| {
        let number = Number(number);
        let done =
            share.append(rig.term, number, entry).and_then(|()| share.durable(rig.term, number));
        assert_eq!(share.status().unwrap().next.0, rig.next.0, "{entry:?}");
        done.expect_err("it is refused")
    };
    assert!(matches!(refused(&HistoryEntry::Note(vec![]), 1), ShareError::Gap(Number(0))));
    let show = |asks: &[(AskId, Vec<ServerSpot>)]| entry_of_asks(b"i", vec![], asks);
    assert!(matches!(refused(&show(&[(b, vec![])]), 0), ShareError::NoAsk(id) if id == b));
    assert!(matches!(refused(&show(&[(a, vec![spot(1, 0)])]), 0), ShareError::NoObject(_)));
    assert!(matches!(refused(&show(&[]), 0), ShareError::Invalid(_)));
    assert!(matches!(refused(&show(&[(a, vec![]), (a, vec![])]), 0), ShareError::Invalid(_)));
    let stray = entry_of_asks(b"i", vec![ask(b)], &[(a, vec![])]);
    assert!(matches!(refused(&stray, 0), ShareError::Invalid(_)));
    let other = HistoryEntry::Show(SealedShow {
        intent: vec![],
        own: vec![SealedAsk { id: a, sealed: vec![1] }],
        fetches: vec![oblivio_store::share::Fetch { ask: a, spots: vec![] }],
    });
    assert!(matches!(refused(&other, 0), ShareError::OtherAsk(id) if id == a));
    assert!(matches!(refused(&Rig::answers(Number(0), &[a]), 0), ShareError::Invalid(_)));
    let (batch, _) = rig.show(&[(a, vec![])]).unwrap();
    for answers in [vec![], vec![b], vec![a, b]] {
        let entry = Rig::answers(batch, &answers);
        let number = rig.next;
        let done =
            share.append(rig.term, number, &entry).and_then(|()| share.durable(rig.term, number));
        assert!(matches!(done, Err(ShareError::Invalid(_))), "{done:?}");
    }
    rig.tell(batch, &[a]).unwrap();
    assert!(rig.tell(batch, &[a]).is_err(), "it has its answers");
}

/// Sends a piece, and waits until it is stored: until then it may be refused.
fn store(
    share: &dyn Share,
    term: ScribeTerm,
    object: Object,
    offset: u64,
    piece: &[u8],
) -> Result<(), ShareError> {
    share.upload(term, object, offset, piece)?;
    share.finish(term, object, offset + piece.len() as u64)
}

fn tables(share: &dyn Share, _: &TestClock) {
    let mut rig = Rig::new(share).unwrap();
    let (one, two) = (ServerTable(11), ServerTable(u64::MAX));
    let (bytes_one, bytes_two) = (rig.build(one, 3).unwrap(), rig.build(two, 4).unwrap());
    let slot = |bytes: &[u8], slot: usize| bytes[slot * SLOT..][..SLOT].to_vec();
    share.ask(&[ask(ask_id(share, 1, 0)), ask(ask_id(share, 1, 1))]).unwrap();
    assert!(rig.show(&[(ask_id(share, 1, 0), vec![spot(11, 0)])]).is_err(), "it is not in use");
    rig.next = share.status().unwrap().next;
    // A lost reply: the same pieces again. Others are refused.
    let object = Object::Table(one);
    share.upload(rig.term, object, 0, &bytes_one[..SLOT]).unwrap();
    assert!(store(share, rig.term, object, 0, &bytes_two[..SLOT]).is_err());
    assert!(store(share, rig.term, object, bytes_one.len() as u64, &[1]).is_err(), "it is whole");
    share.finish(rig.term, object, bytes_one.len() as u64).unwrap();
    assert!(share.finish(rig.term, object, 2).is_err());
    assert!(store(share, rig.term, Object::Table(ServerTable(5)), 7, &[1]).is_err(), "no begin");
    rig.switch(one, &[]).unwrap();
    rig.switch(two, &[]).unwrap();
    let asks = [
        (ask_id(share, 1, 1), vec![spot(11, 2), spot(u64::MAX, 3)]),
        (ask_id(share, 1, 0), vec![spot(11, 0)]),
    ];
    let (batch, sums) = rig.show(&asks).unwrap();
    assert_eq!(sums[..SLOT], xor(&[&slot(&bytes_one, 2), &slot(&bytes_two, 3)]));
    assert_eq!(sums[SLOT..], slot(&bytes_one, 0));
    assert_eq!(share.sums(rig.term, batch).unwrap(), sums, "again");
    let slots = share.slots(rig.term, rig.next, &[spot(u64::MAX, 0), spot(11, 1)]).unwrap();
    assert_eq!(slots, [slot(&bytes_two, 0), slot(&bytes_one, 1)].concat());
    assert!(share.slots(rig.term, rig.next, &[spot(11, 3)]).is_err(), "it has three slots");
    assert!(share.slots(rig.term, Number(rig.next.0 + 1), &[]).is_err(), "no such record yet");
}

fn replaced(share: &dyn Share, _: &TestClock) {
    let mut rig = Rig::new(share).unwrap();
    rig.build(ServerTable(1), 2).unwrap();
    rig.switch(ServerTable(1), &[]).unwrap();
    let id = ask_id(share, 1, 0);
    share.ask(&[ask(id), ask(ask_id(share, 1, 1))]).unwrap();
    let (batch, sums) = rig.show(&[(id, vec![spot(1, 1)])]).unwrap();
    rig.build(ServerTable(2), 2).unwrap();
    rig.switch(ServerTable(2), &[ServerTable(1)]).unwrap();
    let status = share.status().unwrap();
    assert_eq!((status.tables, status.unanswered), (1, 1));
    assert_eq!(share.sums(rig.term, batch).unwrap(), sums, "an unanswered batch still reads it");
    assert!(rig.show(&[(ask_id(share, 1, 1), vec![spot(1, 0)])]).is_err(), "but no new one");
    rig.next = share.status().unwrap().next;
    assert!(rig.switch(ServerTable(2), &[]).is_err(), "it is in use");
    rig.tell(batch, &[id]).unwrap();
    assert!(share.sums(rig.term, batch).is_err(), "its answers are durable");
    let saved = status.used_bytes - share.status().unwrap().used_bytes.min(status.used_bytes);
    assert!(saved > 0, "the table is gone");
}

fn checkpoints(share: &dyn Share, _: &TestClock) {
    let mut rig = Rig::new(share).unwrap();
    assert_eq!(share.checkpoint().unwrap(), None);
    let ids: Vec<AskId> = (0..6).map(|seq| ask_id(share, 1, seq)).collect();
    share.ask(&ids.iter().map(|id| ask(*id)).collect::<Vec<_>>()).unwrap();
    for id in &ids[..5] {
        let (batch, _) = rig.show(&[(*id, vec![])]).unwrap();
        rig.tell(batch, &[*id]).unwrap();
    }
    let (open, _) = rig.show(&[(ids[5], vec![])]).unwrap();
    let at = rig.next;
    assert!(share.save(rig.term, at, Number(0)).is_err(), "there is no checkpoint");
    assert!(rig.save(at, Number(open.0 + 1), &[7; 100]).is_err(), "a batch has no answers");
    share.save(rig.term, at, Number(4)).unwrap();
    share.save(rig.term, at, Number(4)).unwrap();
    let found = share.checkpoint().unwrap().unwrap();
    assert_eq!((found.at, found.len), (at, 100));
    assert_eq!(share.read_checkpoint(at, 90, 10).unwrap(), [7; 10]);
    assert!(share.read_checkpoint(at, 91, 10).is_err());
    assert!(matches!(share.records(Number(3), 1, NOW), Err(ShareError::Gone(Number(4)))));
    assert_eq!(share.records(Number(4), usize::MAX, NOW).unwrap()[0].number, Number(4));
    let answers = share.answers(session_of(share, 1), AskNumber(0), NOW).unwrap();
    assert_eq!(answers.iter().map(|it| it.id.seq.0).collect::<Vec<_>>(), [2, 3, 4]);
    rig.tell(open, &[ids[5]]).unwrap();
    rig.save(rig.next, rig.next, &[8; 50]).unwrap();
    assert!(share.read_checkpoint(at, 0, 1).is_err(), "the old one is gone");
    assert_eq!(share.checkpoint().unwrap().unwrap().len, 50);
}

/// What stays when a server is started again, and what does not.
fn later_starts(fresh: FreshShare<'_>) {
    let clock = TestClock::default();
    let open = fresh(clock.clock());
    let (term, arrival, batch, sums) = {
        let share = open();
        let mut rig = Rig::new(&*share).unwrap();
        rig.build(ServerTable(1), 2).unwrap();
        rig.switch(ServerTable(1), &[]).unwrap();
        share.ask(&[ask(ask_id(&*share, 1, 0)), ask(ask_id(&*share, 1, 1))]).unwrap();
        let (_, arrival) = share.asks(rig.term, Arrival(0), NOW).unwrap();
        let (batch, sums) = rig.show(&[(ask_id(&*share, 1, 0), vec![spot(1, 1)])]).unwrap();
        rig.build(ServerTable(2), 1).unwrap();
        rig.switch(ServerTable(2), &[ServerTable(1)]).unwrap();
        (rig.term, arrival, batch, sums)
    };
    let share = open();
    assert_eq!(share.status().unwrap().term, term);
    let asks = share.asks(term, arrival, NOW).unwrap();
    share.ask(&[ask(ask_id(&*share, 1, 1))]).unwrap();
    let (came, _) = share.asks(term, asks.1, NOW).unwrap();
    assert!(
        came.contains(&ask(ask_id(&*share, 1, 1))) || asks.0.is_empty(),
        "asks come after all before"
    );
    assert_eq!(share.sums(term, batch).unwrap(), sums, "the batch has no answers yet");
    let mut rig = Rig { share: &*share, term, next: share.status().unwrap().next };
    rig.tell(batch, &[ask_id(&*share, 1, 0)]).unwrap();
    clock.pass(LEASE);
    assert_eq!(share.claim(term).unwrap(), ScribeTerm(term.0 + 1));
}
