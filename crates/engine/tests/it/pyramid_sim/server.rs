//! The simulated server: what it keeps, what a crash takes from it, and what it saw.

use crate::share_audit::record::{AskId, Event, Merge, ShareTrace, Shown, Sizes, Spot, What};
use oblivio_engine::pyramid::share::{
    AnswerRecord, AskRecord, Build, Duty, Save, Seq, Session, Show, StoredRecord, Switch, TableId,
    Tell, Term, TurnRecord,
};
use oblivio_engine::pyramid::{self, Height, PyramidConfig, TableHome};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::glue::Reply;

/// An ask's identity in the trace.
pub fn id(session: Session, seq: Seq) -> AskId {
    AskId { session: session.0, seq: seq.0 }
}

/// The number of a height in the trace.
pub fn number(config: &PyramidConfig, height: Height) -> u32 {
    match height {
        Height::Level(level) => level,
        Height::Base => config.levels(),
    }
}

fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// An answer as the server sees it.
fn told(answer: &AnswerRecord) -> (AskId, u64) {
    (id(answer.session, answer.seq), answer.sealed.len() as u64)
}

/// The table that lay at a place then.
fn name(home: TableHome, names: &[(TableHome, TableId)]) -> TableId {
    names.iter().find(|(at, _)| *at == home).expect("it is named").1
}

fn seen(spots: &[pyramid::TableSpot], names: &[(TableHome, TableId)]) -> Vec<Spot> {
    let one =
        |spot: &pyramid::TableSpot| Spot { table: name(spot.home, names).0, slot: spot.slot.0 };
    spots.iter().map(one).collect()
}

/// The state of a scribe, once all its pieces are there.
#[derive(Clone, Default)]
pub struct Saved {
    /// The newest record before it.
    pub number: u64,
    pub pieces: Vec<Vec<u8>>,
}

/// What the server keeps, and what it saw.
pub struct Server {
    config: PyramidConfig,
    pub term: Term,
    /// Durable: the records but for those that were forgotten, the tables, and the answers.
    pub history: Vec<StoredRecord>,
    pub forgotten: u64,
    pub saved: Saved,
    saving: Saved,
    tables: BTreeMap<TableId, Vec<u8>>,
    answers: BTreeMap<(Session, Seq), AnswerRecord>,
    in_batches: BTreeSet<(Session, Seq)>,
    /// Batches that were shown and not answered, and tables that go once they are.
    untold: BTreeSet<u64>,
    leaving: Vec<(u64, TableId)>,
    /// Not durable: asks that no batch has, and those of them that the scribe has.
    asks: BTreeMap<(Session, Seq), AskRecord>,
    handed: BTreeSet<(Session, Seq)>,
    /// Merges that wait until earlier records are durable.
    held: VecDeque<TurnRecord>,
    /// The partition of the merge that makes the table of this place.
    making: BTreeMap<TableHome, u32>,
    /// Tables that are stored and not in use.
    built: BTreeSet<TableId>,
    pub trace: ShareTrace,
}

impl Server {
    pub fn new(config: PyramidConfig, sizes: Sizes) -> Self {
        Self {
            config,
            term: Term(0),
            history: Vec::new(),
            forgotten: 0,
            saved: Saved::default(),
            saving: Saved::default(),
            tables: BTreeMap::new(),
            answers: BTreeMap::new(),
            in_batches: BTreeSet::new(),
            untold: BTreeSet::new(),
            leaving: Vec::new(),
            asks: BTreeMap::new(),
            handed: BTreeSet::new(),
            held: VecDeque::new(),
            making: BTreeMap::new(),
            built: BTreeSet::new(),
            trace: ShareTrace { sizes, delay: None, events: Vec::new() },
        }
    }

    fn record(&mut self, at: u64, bytes: usize, seal: u64, what: What) {
        self.trace.events.push(Event { at, bytes: bytes as u64, seal, what });
    }

    /// Takes an ask. The answer, if it was answered before.
    pub fn ask(&mut self, now: u64, record: AskRecord) -> Option<AnswerRecord> {
        let key = (record.session, record.seq);
        self.record(now, record.sealed.len(), 0, What::Ask(id(key.0, key.1)));
        let answer = self.answers.get(&key).cloned();
        if answer.is_none() && !self.in_batches.contains(&key) {
            self.asks.entry(key).or_insert(record);
        }
        answer
    }

    /// Another client becomes the scribe. It gets all asks anew.
    pub fn claim(&mut self, now: u64) -> Term {
        self.term.0 += 1;
        self.handed.clear();
        self.held.clear();
        self.record(now, 64, 0, What::Claim);
        self.term
    }

    /// The asks that the scribe does not have yet: each session's without gaps.
    pub fn new_asks(&mut self) -> Vec<AskRecord> {
        let mut new = Vec::new();
        for (&(session, seq), record) in &self.asks {
            let before = seq.0.checked_sub(1).map(|before| (session, Seq(before)));
            let follows = before.is_none_or(|before| {
                self.in_batches.contains(&before) || self.handed.contains(&before)
            });
            if follows && self.handed.insert((session, seq)) {
                new.push(record.clone());
            }
        }
        new
    }

    /// A crash: what was not synced is gone.
    pub fn crash(&mut self) {
        self.asks.clear();
        self.handed.clear();
        self.held.clear();
        // A table that was not switched to may be torn: it is removed at the start.
        let built = std::mem::take(&mut self.built);
        built.iter().for_each(|table| drop(self.tables.remove(table)));
        self.making.clear();
        self.saving = Saved::default();
    }

    /// A flawed takeover: batches that were shown and not answered are forgotten, and their asks
    /// come anew.
    pub fn forget_shown(&mut self) {
        while self.newest() > self.saved.number
            && self.history.last().is_some_and(|stored| !stored.asks.is_empty())
        {
            let Some(StoredRecord { asks, .. }) = self.history.pop() else { return };
            self.untold.pop_last();
            for ask in asks {
                self.in_batches.remove(&(ask.session, ask.seq));
                self.asks.insert((ask.session, ask.seq), ask);
            }
        }
    }

    fn slot(&self, spot: pyramid::TableSpot, names: &[(TableHome, TableId)]) -> &[u8] {
        let bytes = self.config.slot_bytes();
        let at = spot.slot.0 as usize * bytes;
        &self.tables[&name(spot.home, names)][at..at + bytes]
    }

    /// The number of the newest record.
    fn newest(&self) -> u64 {
        self.forgotten + self.history.len() as u64
    }

    /// Carries out a duty: the replies to the scribe, and the answers to clients. A duty of an
    /// older scribe is refused.
    pub fn carry_out(
        &mut self,
        now: u64,
        term: Term,
        duty: Duty,
    ) -> Option<(Vec<Reply>, Vec<AnswerRecord>)> {
        if term != self.term {
            return None;
        }
        let mut answers = Vec::new();
        let reply = match duty {
            Duty::Show(show) => Some(self.show(now, show)),
            Duty::Turn(turn) => {
                self.held.push_back(turn);
                None
            }
            Duty::Build(Build { table, home, sealed }) => {
                let partition = self.making.get(&home).copied().unwrap_or(u32::MAX);
                let what = What::Build { partition, table: table.0 };
                self.record(now, sealed.len(), 0, what);
                self.tables.insert(table, sealed);
                self.built.insert(table);
                Some(Reply::Built(home))
            }
            Duty::Refuse(refused) => {
                let lengths = refused.iter().map(told).collect();
                self.record(now, 0, 0, What::Refuse(lengths));
                for answer in &refused {
                    self.asks.remove(&(answer.session, answer.seq));
                }
                answers = refused;
                None
            }
            Duty::Save(save) => {
                self.save(now, save);
                None
            }
            Duty::Switch(switch) => {
                self.switch(now, switch);
                None
            }
            Duty::Tell(tell) => {
                answers = tell.answers.clone();
                self.tell(now, tell);
                None
            }
            Duty::Look(_) => panic!("no slot is damaged here"),
            Duty::Wait => None,
        };
        let mut replies = Vec::from_iter(reply);
        // A merge is read once the records before it are durable.
        while self.held.front().is_some_and(|turn| turn.after <= self.newest()) {
            let turn = self.held.pop_front();
            replies.extend(turn.map(|turn| self.turn(now, turn)));
        }
        Some((replies, answers))
    }

    fn show(&mut self, now: u64, show: Show) -> Reply {
        let again = self.history.iter().any(|stored| stored.sealed == show.intent);
        if !again {
            let taken = show.asks.iter().map(|(session, seq, _)| (*session, *seq));
            let asks = taken.map(|key| self.asks.remove(&key).expect("it was handed out"));
            let asks: Vec<AskRecord> = asks.collect();
            self.in_batches.extend(asks.iter().map(|ask| (ask.session, ask.seq)));
            self.history.push(StoredRecord { sealed: show.intent.clone(), asks });
            self.untold.insert(show.batch.0);
        }
        let shown = show.asks.iter().map(|(session, seq, spots)| Shown {
            ask: id(*session, *seq),
            spots: seen(spots, &show.tables),
        });
        let shown = shown.collect();
        let what = What::Show(show.batch.0, shown);
        self.record(now, show.intent.len(), digest(&show.intent), what);
        let sum = |spots: &Vec<pyramid::TableSpot>| {
            let mut sum = vec![0; self.config.slot_bytes()];
            for &spot in spots {
                let slot = self.slot(spot, &show.tables);
                sum.iter_mut().zip(slot).for_each(|(sum, byte)| *sum ^= byte);
            }
            sum
        };
        let sums = show.asks.iter().map(|(_, _, spots)| sum(spots)).collect();
        Reply::Sums(show.batch, sums)
    }

    fn turn(&mut self, now: u64, turn: TurnRecord) -> Reply {
        let TurnRecord { home, partition, height, ref tables, ref spots, .. } = turn;
        let height = number(&self.config, height);
        let merge = Merge { partition: partition.0, height, spots: seen(spots, tables) };
        self.making.insert(home, partition.0);
        self.record(now, 64, 0, What::Turn(merge));
        let slots = spots.iter().flat_map(|spot| self.slot(*spot, tables).to_vec()).collect();
        Reply::Slots(home, slots)
    }

    /// The last byte of a reply leaves.
    pub fn leaves(&mut self, now: u64, reply: &Reply) {
        match reply {
            Reply::Sums(batch, _) => self.record(now, 0, 0, What::Sums(batch.0)),
            Reply::Slots(home, _) => {
                if let Some(&partition) = self.making.get(home) {
                    self.record(now, 0, 0, What::Slots(partition));
                }
            }
            Reply::Built(_) => {}
        }
    }

    fn switch(&mut self, now: u64, switch: Switch) {
        let Switch { table, home, merged, gone, .. } = switch;
        self.making.remove(&home);
        self.built.remove(&table);
        let replaced = gone.iter().map(|table| table.0).collect();
        let what = What::Switch { table: table.0, replaced };
        self.record(now, merged.len(), digest(&merged), what);
        self.history.push(StoredRecord { sealed: merged, asks: Vec::new() });
        // A scribe that takes over shows batches again that read them.
        let until = self.untold.last().copied().unwrap_or(0);
        self.leaving.extend(gone.into_iter().map(|table| (until, table)));
        self.drop_tables();
    }

    fn drop_tables(&mut self) {
        let first = self.untold.first().copied().unwrap_or(u64::MAX);
        let (gone, stay) = self.leaving.drain(..).partition::<Vec<_>, _>(|it| it.0 < first);
        self.leaving = stay;
        gone.iter().for_each(|(_, table)| drop(self.tables.remove(table)));
    }

    /// Stores a piece of a scribe's state. With the last one, old records are forgotten.
    fn save(&mut self, now: u64, Save { number, piece, of, forget, sealed }: Save) {
        self.record(now, sealed.len(), 0, What::Save(piece));
        if piece == 0 {
            self.saving = Saved { number, pieces: Vec::new() };
        }
        self.saving.pieces.push(sealed);
        if piece + 1 == of {
            self.saved = std::mem::take(&mut self.saving);
            let gone = forget.saturating_sub(self.forgotten);
            self.history.drain(..gone as usize);
            self.forgotten += gone;
        }
    }

    fn tell(&mut self, now: u64, Tell { batch, settle, notice, answers }: Tell) {
        let what = What::Tell(batch.0, answers.iter().map(told).collect());
        self.record(now, settle.len() + notice.len(), digest(&settle), what);
        self.history.push(StoredRecord { sealed: settle, asks: Vec::new() });
        self.untold.remove(&batch.0);
        self.drop_tables();
        for answer in answers {
            self.answers.insert((answer.session, answer.seq), answer);
        }
    }
}
