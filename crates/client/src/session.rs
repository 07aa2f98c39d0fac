//! A client's asks and answers: what waits to be sent, what waits for an answer, and who wants it.

use crate::convert;
use crate::error::Failure;
use crate::heard::HeardChanges;
use crate::volume::Keyed;
use oblivio_crypto::{Entropy, OsEntropy};
use oblivio_engine::Result as EngineResult;
use oblivio_engine::pyramid::share::{
    Answer, AnswerRecord, Ask, AskRefusal, Change, DamagedSlot, Follower, Head, Outcome, Seq,
    Session,
};
use oblivio_store::share as port;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The most asks without answers; more wait. A server takes twice as many of a session.
pub const MOST_OPEN: usize = 512;

/// The most damaged slots that are remembered.
pub const MOST_DAMAGED: usize = 4096;

/// An ask of one of the client's sessions.
type Key = (Session, Seq);

/// The asks of a transaction, by which its answers are found.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    session: Session,
    first: Seq,
    count: u64,
}

impl Ticket {
    fn keys(self) -> impl Iterator<Item = Key> {
        (self.first.0..self.first.0 + self.count).map(move |seq| (self.session, Seq(seq)))
    }
}

/// The state of a client, behind its lock.
pub struct SessionState {
    keyed: Keyed,
    device: u16,
    follower: Follower,
    heard: Option<HeardChanges>,
    /// The first ask of the session that was not sent yet.
    unsent: Seq,
    /// The asks whose callers still wait, with what became of them.
    wanted: BTreeMap<Key, Option<Outcome>>,
    /// Blocks that exist, as the newest answer says.
    live_blocks: u64,
    /// The line broke: the server may have lost asks that it had.
    pub lost: bool,
    /// When an answer came last, or was first waited for.
    pub progress: Instant,
    /// When an answer came last.
    pub answered: Instant,
    /// When the newest ask was made.
    pub asked: Instant,
    /// Nothing came since a call waited in vain: the next ones wait no longer.
    pub away: bool,
    /// Why nothing more can be done.
    pub failed: Option<Failure>,
    /// What went wrong last with the server, for messages.
    pub trouble: Option<Trouble>,
    /// Damaged slots that were met by the scribe of this client, up to [`MOST_DAMAGED`].
    pub damaged: BTreeSet<DamagedSlot>,
    /// The session has asked something.
    lives: bool,
    /// The threads end.
    pub stopping: bool,
}

/// Something that may pass.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// What happened.
    pub what: String,
    /// Whether there is no space.
    pub is_full: bool,
}

fn new_follower(keyed: &Keyed, head: Head, device: u16) -> Follower {
    let mut bytes = [0; 8];
    OsEntropy.fill(&mut bytes);
    let session = Session(port::ClientSession::of(device, u64::from_le_bytes(bytes)).0);
    let follower =
        Follower::new(session, keyed.volume(), keyed.config().block_bytes, keyed.sealer());
    follower.knowing(head)
}

impl SessionState {
    /// That of a new client on the device of this number, which knows this head.
    pub fn new(keyed: Keyed, head: Head, device: u16, notices: bool, now: Instant) -> Self {
        Self {
            device,
            follower: new_follower(&keyed, head, device),
            heard: notices.then(|| HeardChanges::new(&keyed, now)),
            keyed,
            unsent: Seq(0),
            wanted: BTreeMap::new(),
            live_blocks: 0,
            lost: false,
            progress: now,
            answered: now,
            asked: now,
            away: false,
            failed: None,
            trouble: None,
            damaged: BTreeSet::new(),
            lives: false,
            stopping: false,
        }
    }

    /// The session.
    pub fn session(&self) -> Session {
        self.follower.session()
    }

    /// Whether this is its session, which is not over.
    pub fn is_in(&self, session: Session) -> bool {
        self.follower.over().is_none() && self.session() == session
    }

    /// The newest head that it knows.
    pub fn head(&self) -> Head {
        self.follower.head()
    }

    /// Blocks that exist, as the newest answer says.
    pub fn live_blocks(&self) -> u64 {
        self.live_blocks
    }

    /// Asks without an answer.
    pub fn open(&self) -> usize {
        self.follower.open_asks().count()
    }

    /// Whether an ask of the session has no answer yet.
    pub fn is_open(&self, id: port::AskId) -> bool {
        self.follower.open_asks().any(|ask| convert::ask_id(ask.session, ask.seq) == id)
    }

    /// Where its next answer stands.
    pub fn next_answer(&self) -> Option<(Session, Seq)> {
        self.follower.open_asks().next().map(|ask| (ask.session, ask.seq))
    }

    /// Seals a transaction, to be sent. Its answers are kept if they are wanted.
    ///
    /// # Errors
    /// `Invalid` for asks that do not fit.
    pub fn begin(&mut self, asks: &[Ask], wanted: bool, now: Instant) -> EngineResult<Ticket> {
        if self.follower.over().is_some() {
            self.begin_session();
        }
        if self.next_answer().is_none() {
            self.progress = now;
        }
        let records = self.follower.transaction(asks)?;
        let first = records.first().map_or(Seq(0), |ask| ask.seq);
        let ticket = Ticket { session: self.session(), first, count: records.len() as u64 };
        if wanted {
            self.wanted.extend(ticket.keys().map(|key| (key, None)));
        }
        (self.asked, self.lives) = (now, true);
        Ok(ticket)
    }

    /// The session is over: what it asked and was not answered is not carried out any more, and
    /// its callers ask again.
    fn begin_session(&mut self) {
        let refusal = self.follower.over();
        let live_blocks = self.live_blocks;
        for ask in self.follower.open_asks() {
            if let Some(wanted @ None) = self.wanted.get_mut(&(ask.session, ask.seq)) {
                let answer = Answer { done: false, content: None };
                *wanted = Some(Outcome { answer, refusal, live_blocks });
            }
        }
        self.unsent = Seq(0);
        self.follower = new_follower(&self.keyed, self.follower.head(), self.device);
    }

    /// Asks to send: new ones, at most this many.
    pub fn take_unsent(&mut self, most: usize) -> Vec<port::SealedAsk> {
        let from = self.unsent;
        let unsent = self.follower.open_asks().skip_while(|ask| ask.seq < from);
        let asks: Vec<port::SealedAsk> = unsent.take(most).map(convert::ask).collect();
        if let Some(last) = asks.last() {
            self.unsent = Seq(last.id.seq.0 + 1);
        }
        asks
    }

    /// Whether the session should ask something, so that nobody takes its client for dead.
    pub fn is_silent(&self, for_long: Duration) -> bool {
        self.lives && self.asked.elapsed() >= for_long && self.failed.is_none()
    }

    /// Whether asks wait to be sent.
    pub fn has_unsent(&self) -> bool {
        self.follower.open_asks().last().is_some_and(|ask| ask.seq >= self.unsent)
    }

    /// All asks without an answer, as they were sent.
    pub fn again(&mut self) -> Vec<port::SealedAsk> {
        self.unsent = Seq(0);
        self.take_unsent(usize::MAX)
    }

    /// Takes answers that came. Those after a gap are left for later.
    ///
    /// # Errors
    /// `Forked` for answers of another history; `State` for those that do not open.
    pub fn take(&mut self, answers: Vec<port::SealedAnswer>, now: Instant) -> EngineResult<bool> {
        let mut some = false;
        for answer in answers {
            let record = convert::answer_record(answer);
            let Some((session, seq)) = self.next_answer() else { break };
            if record.session != session || record.seq > seq {
                break;
            }
            if let Some((seq, answer)) = self.follower.answer(&record)? {
                (some, self.away) = (true, false);
                (self.progress, self.answered) = (now, now);
                self.live_blocks = answer.live_blocks;
                if let Some(heard) = &mut self.heard
                    && answer.refusal.is_none_or(AskRefusal::was_shown)
                {
                    heard.expect(self.follower.head(), now)?;
                }
                if let Some(wanted @ None) = self.wanted.get_mut(&(session, seq)) {
                    *wanted = Some(answer);
                }
            }
        }
        if self.follower.over().is_some() {
            self.begin_session();
        }
        Ok(some)
    }

    /// Takes answers that this client made, as the scribe, to its own asks. They come once more,
    /// to [`Self::take`].
    ///
    /// # Errors
    /// None, unless the scribe is broken.
    pub fn take_early(&mut self, made: &[AnswerRecord], now: Instant) -> EngineResult<bool> {
        let mut some = false;
        for record in made {
            if let Some(wanted @ None) = self.wanted.get_mut(&(record.session, record.seq)) {
                let answer = self.follower.answer_early(record)?;
                (some, self.away) = (true, false);
                (self.progress, self.answered) = (now, now);
                self.live_blocks = answer.live_blocks;
                *wanted = Some(answer);
            }
        }
        Ok(some)
    }

    /// Takes notices that came, or that there are none.
    ///
    /// # Errors
    /// `Forked` if one is of another history; `State` if it does not open.
    pub fn hear(&mut self, notices: &[port::SealedNotice], now: Instant) -> EngineResult<()> {
        let session = self.session();
        let Some(heard) = &mut self.heard else { return Ok(()) };
        heard.spoke(now);
        notices.iter().try_for_each(|notice| heard.hear(notice, session))
    }

    /// What others changed since the last call; none if anything may have changed.
    pub fn take_changes(&mut self, now: Instant) -> Option<Vec<Change>> {
        self.heard.as_mut()?.take(now)
    }

    /// What became of these asks, once all are answered.
    pub fn answered(&mut self, ticket: Ticket) -> Option<Vec<Outcome>> {
        let all = ticket.keys().all(|key| matches!(self.wanted.get(&key), Some(Some(_))));
        all.then(|| ticket.keys().filter_map(|key| self.wanted.remove(&key).flatten()).collect())
    }

    /// Nobody waits for these any more. They may still be carried out.
    pub fn abandon(&mut self, ticket: Ticket) {
        ticket.keys().for_each(|key| drop(self.wanted.remove(&key)));
    }
}

/// Whether asks that were refused so are never carried out, and may be asked again in another
/// session.
pub fn may_ask_again(refusal: AskRefusal) -> bool {
    matches!(refusal, AskRefusal::Ended | AskRefusal::Old)
}
