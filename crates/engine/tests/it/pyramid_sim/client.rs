//! The simulated clients: what they ask, how they ask again, and what they saw.

use super::glue::{self, BYTES};
use oblivio_engine::pyramid::share::{AnswerRecord, AskRecord, Follower, Head, Seq};
use oblivio_testkit::SplitMix64;
use oblivio_testkit::linear::{Answer, Call, Change, Compare, Part};
use std::collections::{BTreeMap, VecDeque};

/// What a planted client does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// It answers reads from what it saw before.
    StaleRead,
    /// It acknowledges a write and never sends it.
    LostUpdate,
    /// It asks again with a new number, so that a swap happens twice.
    SwapTwice,
    /// It sends the parts of a transaction as asks of their own.
    HalfTransaction,
    /// Its session has the number of another client's.
    OtherSession,
}

impl Bug {
    pub const ALL: [Bug; 5] =
        [Bug::StaleRead, Bug::LostUpdate, Bug::SwapTwice, Bug::HalfTransaction, Bug::OtherSession];
}

/// Blocks in groups of four; a transaction stays in one. The rest are asked for alone.
const GROUPS: u64 = 5;
const BLOCKS: u64 = 100;

fn change(rng: &mut SplitMix64, unique: u64) -> Change {
    let mut content = vec![0; BYTES];
    content[..8].copy_from_slice(&unique.to_le_bytes());
    match rng.below(8) {
        0..=2 => Change::Read,
        3..=5 => Change::Write(content),
        6 => Change::Patch(8 * rng.below(3) as usize, unique.to_le_bytes().to_vec(), BYTES),
        _ => Change::Remove,
    }
}

/// The next transaction of a client. Every written content is another one.
fn transaction(rng: &mut SplitMix64, unique: u64, most: u64) -> Vec<Part> {
    let alone = rng.below(3) == 0;
    let (first, count) = match alone {
        true => (4 * GROUPS + rng.below(BLOCKS - 4 * GROUPS), 1),
        false => (4 * rng.below(GROUPS), 1 + rng.below(most)),
    };
    let one = |at: u64| {
        let block = if alone { first } else { first + rng.below(4) };
        let change = change(rng, unique * 16 + at);
        let compare = match rng.below(if count > 1 { 10 } else { 30 }) {
            0 => Compare::Exists,
            1 => Compare::Absent,
            2 => Compare::Bytes(0, vec![0]),
            _ => Compare::Always,
        };
        Part { block, compare, change, and_read: rng.below(2) == 0 }
    };
    (0..count).map(one).collect()
}

/// A transaction that is not answered.
struct Open {
    /// Its number in the history.
    call: usize,
    first: Seq,
    answers: Vec<Answer>,
    parts: usize,
}

/// One client, through its sessions.
pub struct Client {
    follower: Follower,
    pub session: u64,
    /// Records without an answer, to be sent again.
    records: BTreeMap<Seq, AskRecord>,
    open: VecDeque<Open>,
    next: Seq,
    /// Answers that came before earlier ones.
    early: BTreeMap<Seq, AnswerRecord>,
    expected: Seq,
    /// Transactions so far.
    pub begun: u64,
    bug: Option<Bug>,
    /// What it saw of blocks: a planted one believes it.
    seen: BTreeMap<u64, Option<Vec<u8>>>,
}

impl Client {
    pub fn new(seed: u64, session: u64, head: Head, bug: Option<Bug>) -> Self {
        Self {
            follower: glue::follower(seed, session, head),
            session,
            records: BTreeMap::new(),
            open: VecDeque::new(),
            next: Seq(0),
            early: BTreeMap::new(),
            expected: Seq(0),
            begun: 0,
            bug,
            seen: BTreeMap::new(),
        }
    }

    /// The newest head that it knows.
    pub fn head(&self) -> Head {
        self.follower.head()
    }

    pub fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub fn under_way(&self) -> usize {
        self.open.len()
    }

    /// What it asks for next.
    pub fn transaction(&self, rng: &mut SplitMix64, unique: u64) -> Vec<Part> {
        let most = if self.bug == Some(Bug::OtherSession) { 1 } else { 4 };
        transaction(rng, unique, most)
    }

    /// Begins a transaction; what is to be sent.
    pub fn begin(
        &mut self,
        rng: &mut SplitMix64,
        parts: Vec<Part>,
        clock: u64,
        history: &mut Vec<Call>,
    ) -> Vec<AskRecord> {
        self.begun += 1;
        let answered = self.answer_itself(rng, &parts).map(|answer| (clock, vec![answer]));
        let itself = answered.is_some();
        history.push(Call { called: clock, parts: parts.clone(), answered });
        if itself { Vec::new() } else { self.send(history.len() - 1, &parts) }
    }

    fn send(&mut self, call: usize, parts: &[Part]) -> Vec<AskRecord> {
        let first = self.next;
        let asks: Vec<_> = parts.iter().map(glue::ask).collect();
        let records = if self.bug == Some(Bug::HalfTransaction) {
            asks.iter().map(|ask| self.follower.ask(ask).expect("it fits")).collect()
        } else {
            self.follower.transaction(&asks).expect("it fits")
        };
        self.next.0 += records.len() as u64;
        let new = records.iter().map(|record| (record.seq, record.clone()));
        self.records.extend(new);
        self.open.push_back(Open { call, first, answers: Vec::new(), parts: parts.len() });
        records
    }

    /// A planted client's answer without asking.
    fn answer_itself(&self, rng: &mut SplitMix64, parts: &[Part]) -> Option<Answer> {
        let [part] = parts else { return None };
        let known = self.seen.get(&part.block);
        let content = match (self.bug?, &part.change, part.compare == Compare::Always) {
            (Bug::StaleRead, Change::Read, true) if rng.below(2) == 0 => known?.clone(),
            (Bug::LostUpdate, Change::Write(_), true) if !part.and_read && rng.below(2) == 0 => {
                None
            }
            _ => return None,
        };
        Some(Answer { done: true, content })
    }

    /// What is to be sent again.
    pub fn again(&mut self, history: &[Call]) -> Vec<AskRecord> {
        let mut records: Vec<AskRecord> = self.records.values().cloned().collect();
        let first = self.open.front().map(|open| open.call);
        if self.bug == Some(Bug::SwapTwice)
            && let Some(call) = first
            && self.open.iter().filter(|open| open.call == call).count() == 1
        {
            records.extend(self.send(call, &history[call].parts));
        }
        records
    }

    /// Takes an answer. They come in any order, and more than once.
    pub fn answer(&mut self, record: AnswerRecord, clock: u64, history: &mut [Call]) {
        if record.seq < self.expected {
            let again = self.follower.answer(&record).expect("an honest server");
            assert!(again.is_none(), "an answer is given once");
            return;
        }
        // Another client has the same session number, and is ahead.
        if record.seq >= self.next {
            assert_eq!(self.bug, Some(Bug::OtherSession), "an answer to nothing");
            return;
        }
        self.early.insert(record.seq, record);
        while let Some(record) = self.early.remove(&self.expected) {
            let answer = self.follower.answer(&record).expect("an honest server");
            let (seq, outcome) = answer.expect("it is new");
            self.records.remove(&seq);
            self.expected.0 += 1;
            self.take(seq, glue::answer(outcome.answer), clock, history);
        }
    }

    fn take(&mut self, seq: Seq, answer: Answer, clock: u64, history: &mut [Call]) {
        let Some(open) = self.open.front_mut() else { return };
        assert!(seq >= open.first, "answers in order");
        open.answers.push(answer);
        if open.answers.len() < open.parts {
            return;
        }
        let Some(Open { call, answers, .. }) = self.open.pop_front() else { return };
        let call = &mut history[call];
        for (part, answer) in call.parts.iter().zip(&answers) {
            if part.change == Change::Read && answer.done {
                self.seen.insert(part.block, answer.content.clone());
            }
        }
        call.answered.get_or_insert((clock, answers));
    }
}
