//! All that a server can do to one kind of object, on every kind: what comes of it for a client
//! that opens the volume and works. Never is an answer wrong.
//!
//! A client that finds it says so (`Tampered`, `RolledBack`). What does not open is nobody's: an
//! ask of that sort is left out as if it had not come, and the client waits in vain. A slot that
//! does not open costs the block that it held.

use super::{LONG, Line, World, block, read, value, write};
use oblivio_client::{Client, ClientOptions, Unremembered};
use oblivio_store::share::{
    HistoryEntry, Number, Object, SealedAnswer, SealedAsk, Share, ShareCall, ShareReply,
    StoredEntry,
};
use oblivio_volume::Error;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What the server keeps or passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Ask,
    Answer,
    /// The record of a batch, and the asks that stand with it.
    Batch,
    KeptAsk,
    /// The record of a batch's answers.
    Settle,
    Switch,
    State,
    /// What an ask shows, added up.
    Sum,
    /// What a merge reads.
    Slot,
}

/// What the server does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Changed,
    Cut,
    Longer,
    Dropped,
    Twice,
    Swapped,
    /// Another one of this volume, from before.
    Stale,
    /// One of another volume.
    Foreign,
}

const DEEDS: [Deed; 8] = [
    Deed::Changed,
    Deed::Cut,
    Deed::Longer,
    Deed::Dropped,
    Deed::Twice,
    Deed::Swapped,
    Deed::Stale,
    Deed::Foreign,
];

/// What comes of each deed, in their order: `T` tampered, `R` rolled back or another history, `W`
/// nothing comes any more, `-` no effect.
const OUTCOMES: [(Kind, &str); 9] = [
    (Kind::Ask, "WWWW-WWW"),
    (Kind::Answer, "TTTW-TTT"),
    (Kind::Batch, "TTTTTTTT"),
    (Kind::KeptAsk, "TTTTTTTT"),
    (Kind::Settle, "TTTTTTTT"),
    (Kind::Switch, "TTTTTTTT"),
    (Kind::State, "TTTTTTTT"),
    (Kind::Sum, "-TTTT---"),
    (Kind::Slot, "-TTTT---"),
];

/// What passed between clients and an honest server.
#[derive(Default)]
struct Observed {
    /// Bytes of each kind, in their order.
    bytes: BTreeMap<Kind, Vec<Vec<u8>>>,
    /// The records.
    records: BTreeMap<Number, Kind>,
    states: BTreeMap<Number, Vec<u8>>,
    /// Records before this one are in the newest state.
    saved: Number,
    /// The newest batch of several asks: of one, none can be swapped.
    several: Option<Number>,
}

impl Observed {
    fn note(&mut self, kind: Kind, bytes: &[u8]) {
        self.bytes.entry(kind).or_default().push(bytes.to_vec());
    }

    fn asks(&mut self, asks: &[SealedAsk]) {
        for ask in asks {
            self.note(Kind::Ask, &ask.sealed);
            self.note(Kind::KeptAsk, &ask.sealed);
        }
    }

    fn see(&mut self, call: &ShareCall<'_>, reply: &ShareReply, slot_bytes: usize) {
        match (call, reply) {
            (ShareCall::Ask(asks), _) => self.asks(asks),
            (ShareCall::Append { number, entry, .. }, _) => {
                let kind = match entry {
                    HistoryEntry::Show(show) => {
                        self.asks(&show.own);
                        let several = show.fetches.len() > 1;
                        self.several = self.several.max(several.then_some(*number));
                        Kind::Batch
                    }
                    HistoryEntry::Tell(tell) => {
                        tell.answers.iter().for_each(|it| self.note(Kind::Answer, &it.sealed));
                        Kind::Settle
                    }
                    HistoryEntry::Switch(_) => Kind::Switch,
                    HistoryEntry::Note(_) => return,
                };
                self.records.insert(*number, kind);
                self.note(kind, entry.sealed());
            }
            (ShareCall::Upload { object: Object::Checkpoint(at), piece, .. }, _) => {
                self.states.entry(*at).or_default().extend_from_slice(piece);
            }
            (ShareCall::Save { at, .. }, _) => {
                self.saved = *at;
                let state = self.states.get(at).cloned().unwrap_or_default();
                self.note(Kind::State, &state);
            }
            (ShareCall::Sums { .. }, ShareReply::Bytes(bytes)) => {
                bytes.chunks(slot_bytes).for_each(|slot| self.note(Kind::Sum, slot));
            }
            (ShareCall::Slots { .. }, ShareReply::Bytes(bytes)) => {
                bytes.chunks(slot_bytes).for_each(|slot| self.note(Kind::Slot, slot));
            }
            _ => {}
        }
    }

    /// Whether a record of each kind comes after the newest state, and there was one before it.
    fn has_all(&self) -> bool {
        let later = |kind| self.records.range(self.saved..).any(|(_, it)| *it == kind);
        let records = [Kind::Settle, Kind::Switch].into_iter().all(later);
        let several = self.several >= Some(self.saved);
        records && several && self.bytes.get(&Kind::State).is_some_and(|states| states.len() > 1)
    }
}

/// A volume that an honest server has, and what passed.
struct Volume {
    world: World,
    observed: Arc<Mutex<Observed>>,
    round: u64,
    /// Whether slots were changed: then blocks may be lost.
    lossy: bool,
}

/// Blocks in use.
const USED: u64 = 60;

impl Volume {
    fn new() -> Self {
        let world = World::in_memory();
        let observed = Arc::new(Mutex::new(Observed::default()));
        let (seen, slot_bytes) = (Arc::clone(&observed), world.keyed.config().slot_bytes());
        world.line.lie(move |call, reply| seen.lock().unwrap().see(call, reply, slot_bytes));
        Self { world, observed, round: 0, lossy: false }
    }

    fn expected(&self, index: u64) -> u64 {
        self.round * 1000 + index
    }

    /// An honest client reads all blocks, writes them anew, and goes on until there is a record of
    /// each kind.
    fn use_it(&mut self) {
        let (client, _) = self.world.client();
        for index in (0..USED).filter(|_| self.round > 0) {
            match client.carry_out(&[read(index)]) {
                Err(Error::Lost(_)) if self.lossy => {}
                found => assert_eq!(value(&found.unwrap()[0]), self.expected(index), "{index}"),
            }
        }
        self.round += 1;
        let all = |index| vec![write(index, self.expected(index))];
        client.carry_out_many(&(0..USED).map(all).collect::<Vec<_>>()).unwrap();
        client.close().unwrap();
        // The end of a session may be the time for another state.
        while !self.has_all() {
            let (client, _) = self.world.client();
            while !self.has_all() {
                client.carry_out(&[read(1), read(2), read(3)]).unwrap();
            }
            client.close().unwrap();
        }
    }

    fn has_all(&self) -> bool {
        self.observed.lock().unwrap().has_all()
    }
}

/// What a lie is about, one after the other.
struct Piece {
    bytes: Vec<u8>,
    record: Option<StoredEntry>,
    ask: Option<SealedAsk>,
    answer: Option<SealedAnswer>,
}

impl Piece {
    fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), record: None, ask: None, answer: None }
    }

    fn of_ask(ask: &SealedAsk) -> Self {
        Self { ask: Some(ask.clone()), ..Self::of(&ask.sealed) }
    }

    fn of_answer(answer: &SealedAnswer) -> Self {
        Self { answer: Some(answer.clone()), ..Self::of(&answer.sealed) }
    }

    fn of_record(record: &StoredEntry) -> Self {
        Self { record: Some(record.clone()), ..Self::of(&record.sealed) }
    }
}

/// The pieces of a reply that are of a kind, or that stand between such.
fn pieces(kind: Kind, call: &ShareCall<'_>, reply: &ShareReply, slot_bytes: usize) -> Vec<Piece> {
    match (kind, call, reply) {
        (Kind::Ask, _, ShareReply::Asks(asks, _)) => asks.iter().map(Piece::of_ask).collect(),
        (Kind::Answer, _, ShareReply::Answers(answers)) => {
            answers.iter().map(Piece::of_answer).collect()
        }
        (Kind::Batch | Kind::Settle | Kind::Switch, _, ShareReply::Records(records)) => {
            records.iter().map(Piece::of_record).collect()
        }
        (Kind::KeptAsk, _, ShareReply::Records(records)) => {
            let first = records.iter().find(|record| record.asks.len() > 1);
            first.into_iter().flat_map(|record| &record.asks).map(Piece::of_ask).collect()
        }
        (Kind::State, ShareCall::ReadCheckpoint { .. }, ShareReply::Bytes(bytes)) => {
            vec![Piece::of(bytes)]
        }
        (Kind::Sum, ShareCall::Sums { .. }, ShareReply::Bytes(bytes))
        | (Kind::Slot, ShareCall::Slots { .. }, ShareReply::Bytes(bytes)) => {
            bytes.chunks(slot_bytes).map(Piece::of).collect()
        }
        _ => Vec::new(),
    }
}

/// Puts changed pieces into their reply.
fn put_back(kind: Kind, reply: &mut ShareReply, pieces: Vec<Piece>) {
    let asks = |pieces: Vec<Piece>| -> Vec<_> {
        let ask = |piece: Piece| {
            let ask = piece.ask?;
            Some(SealedAsk { sealed: piece.bytes, ..ask })
        };
        pieces.into_iter().filter_map(ask).collect()
    };
    match reply {
        ShareReply::Asks(was, _) => *was = asks(pieces),
        ShareReply::Answers(was) => {
            let answer = |piece: Piece| {
                let answer = piece.answer?;
                Some(SealedAnswer { sealed: piece.bytes, ..answer })
            };
            *was = pieces.into_iter().filter_map(answer).collect();
        }
        ShareReply::Records(was) if kind == Kind::KeptAsk => {
            if let Some(first) = was.iter_mut().find(|record| record.asks.len() > 1) {
                first.asks = asks(pieces);
            }
        }
        ShareReply::Records(was) => {
            let record =
                |piece: Piece| piece.record.map(|it| StoredEntry { sealed: piece.bytes, ..it });
            *was = pieces.into_iter().filter_map(record).collect();
        }
        ShareReply::Bytes(was) => *was = pieces.into_iter().flat_map(|piece| piece.bytes).collect(),
        _ => {}
    }
}

/// Does it to the piece at a place. False if it cannot be done here.
fn carry_out(deed: Deed, pieces: &mut Vec<Piece>, at: usize, other: Option<&Vec<u8>>) -> bool {
    let before = pieces[at].bytes.clone();
    let (alone, middle) = (pieces.len() == 1, before.len() / 2);
    let Piece { bytes, record, ask, answer } = &mut pieces[at];
    match deed {
        Deed::Changed => bytes[middle] ^= 4,
        Deed::Cut => bytes.truncate(bytes.len() - 1),
        Deed::Longer => bytes.push(0),
        Deed::Dropped => drop(pieces.remove(at)),
        Deed::Twice => {
            let (record, ask, answer) = (record.clone(), ask.clone(), answer.clone());
            pieces.insert(at, Piece { bytes: before, record, ask, answer });
        }
        // The halves of a state.
        Deed::Swapped if alone => {
            bytes.rotate_left(middle);
            return record.is_none() && ask.is_none() && answer.is_none();
        }
        Deed::Swapped => {
            let with = if at + 1 < pieces.len() { at + 1 } else { at.saturating_sub(1) };
            let bytes = std::mem::take(&mut pieces[at].bytes);
            pieces[at].bytes = std::mem::replace(&mut pieces[with].bytes, bytes);
            return pieces[at].bytes != before;
        }
        Deed::Stale | Deed::Foreign => {
            let Some(other) = other else { return false };
            *bytes = other.clone();
            bytes.resize(before.len(), 0);
            return *bytes != before;
        }
    }
    true
}

/// What a client met.
#[derive(Debug)]
enum Met {
    Error(Error),
    /// All was right. The number of lies.
    Nothing(u64),
}

impl Met {
    fn letter(&self) -> char {
        match self {
            Self::Error(Error::Tampered(_)) => 'T',
            Self::Error(Error::RolledBack(_)) => 'R',
            Self::Error(Error::Store(_)) => 'W',
            Self::Error(_) => '?',
            Self::Nothing(0) => '0',
            Self::Nothing(_) => '-',
        }
    }
}

/// A client that is lied to, from its opening on.
fn meet(volume: &Volume, foreign: &BTreeMap<Kind, Vec<Vec<u8>>>, kind: Kind, deed: Deed) -> Met {
    let line = Line::to(Arc::clone(&volume.world.line) as Arc<dyn Share>);
    let slot_bytes = volume.world.keyed.config().slot_bytes();
    let lies = Arc::new(Mutex::new(0));
    let others = match deed {
        Deed::Foreign => foreign.get(&kind).cloned(),
        _ => volume.observed.lock().unwrap().bytes.get(&kind).cloned(),
    };
    // The newest but a few: it may be the one in question.
    let other = others.and_then(|all| all.get(all.len().saturating_sub(9) / 2).cloned());
    let (counted, observed) = (Arc::clone(&lies), Arc::clone(&volume.observed));
    line.lie(move |call, reply| {
        let mut all = pieces(kind, call, reply, slot_bytes);
        let is_it = |piece: &Piece| match &piece.record {
            Some(record) => observed.lock().unwrap().records.get(&record.number) == Some(&kind),
            None => true,
        };
        let Some(at) = all.iter().position(is_it) else { return };
        if carry_out(deed, &mut all, at, other.as_ref()) {
            put_back(kind, reply, all);
            *counted.lock().unwrap() += 1;
        }
    });
    // Short only where it waits in vain: a call that is to meet something else has time for it.
    let vain = OUTCOMES.iter().any(|(of, letters)| {
        let letter = DEEDS.iter().zip(letters.chars()).find(|(it, _)| **it == deed);
        *of == kind && letter.is_some_and(|(_, letter)| letter == 'W')
    });
    let timeout = if vain { Duration::from_secs(1) } else { LONG };
    let asking = ClientOptions { timeout, ..World::options() };
    let honest = |options| {
        let line = Line::to(Arc::clone(&volume.world.line) as Arc<dyn Share>);
        volume.world.client_over(&line, options)
    };
    // A scribe keeps its own asks and answers to itself: so another client is the scribe, or asks.
    let scribe = (kind == Kind::Answer).then(|| honest(World::options()));
    scribe.iter().for_each(be_the_scribe);
    let options = if kind == Kind::Ask { World::options() } else { asking };
    let client = match volume.world.knowing(&line, options, Box::new(Unremembered::default())) {
        Ok(client) => client,
        Err(error) => return Met::Error(error),
    };
    let asks = (kind == Kind::Ask).then(|| {
        be_the_scribe(&client);
        honest(asking)
    });
    let met = read_all(volume, asks.as_ref().unwrap_or(&client), (kind, deed));
    for client in asks.iter().chain([&client]).chain(&scribe) {
        client.close().ok();
    }
    met.unwrap_or_else(|| Met::Nothing(*lies.lock().unwrap()))
}

/// Nobody else is it, so the first one that asks is.
fn be_the_scribe(client: &Client) {
    client.carry_out(&[read(0)]).unwrap();
}

/// Reads all blocks, in threes. The error that it meets.
fn read_all(volume: &Volume, client: &Client, what: (Kind, Deed)) -> Option<Met> {
    for first in 0..USED {
        let three = [first, (first + 7) % USED, (first + 20) % USED];
        match client.carry_out_each(&three.map(|index| vec![read(index)])) {
            Ok(found) => {
                for (answers, index) in found.iter().zip(three) {
                    let Ok(answers) = answers else {
                        assert!(volume.lossy, "{what:?}: nothing is lost");
                        continue;
                    };
                    let right = Some(block(volume.expected(index)));
                    assert!(answers[0].content == right, "{what:?}: a wrong answer");
                }
            }
            Err(error) => return Some(Met::Error(error)),
        }
    }
    None
}

/// Some deeds on one kind, one after the other.
fn outcomes(kind: Kind, deeds: &[Deed], foreign: &BTreeMap<Kind, Vec<Vec<u8>>>) -> String {
    let mut volume = Volume::new();
    let mut letters = String::new();
    for deed in deeds {
        volume.use_it();
        volume.lossy |= kind == Kind::Slot;
        let met = meet(&volume, foreign, kind, *deed);
        println!("{kind:?} {deed:?}: {met:?}");
        letters.push(met.letter());
    }
    if !is_record(kind) {
        // An honest line shows that nothing was broken for good.
        volume.use_it();
    }
    letters
}

fn is_record(kind: Kind) -> bool {
    matches!(kind, Kind::Batch | Kind::Settle | Kind::Switch)
}

#[test]
fn whatever_a_server_does_to_an_object_no_answer_is_wrong() {
    let mut other = Volume::new();
    (0..2).for_each(|_| other.use_it());
    let foreign = &other.observed.lock().unwrap().bytes.clone();
    // A client takes the newest record for the newest head. If it was changed, the asks name a head
    // of no history, and all scribes that find them say so: then each deed has a volume of its own.
    // So it has where a client waits in vain, to do that beside others.
    let at_once = |kind| if is_record(kind) || kind == Kind::Ask { 1 } else { DEEDS.len() };
    let rows: Vec<(Kind, String)> = thread::scope(|scope| {
        let rows = OUTCOMES.map(|(kind, _)| {
            let begin = |some| scope.spawn(move || outcomes(kind, some, foreign));
            (kind, DEEDS.chunks(at_once(kind)).map(begin).collect::<Vec<_>>())
        });
        let letters = |row: Vec<thread::ScopedJoinHandle<'_, String>>| -> String {
            row.into_iter().map(|some| some.join().unwrap()).collect()
        };
        rows.into_iter().map(|(kind, row)| (kind, letters(row))).collect()
    });
    let expected = OUTCOMES.map(|(kind, letters)| (kind, letters.to_string()));
    assert_eq!(rows, expected);
}
