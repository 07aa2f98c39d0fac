//! A client's asks and answers: what waits to be sent, what waits for an answer, and who wants it.

use crate::convert;
use crate::error::Failure;
use crate::heard::Heard;
use crate::volume::Keyed;
use oblivio_crypto::{Entropy, OsEntropy};
use oblivio_engine::Result as EngineResult;
use oblivio_engine::pyramid::share::{
    Answer, AnswerRecord, Ask, Change, Follower, Head, Outcome, Refusal, Seq, Session,
};
use oblivio_store::share as port;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The most asks without answers; more wait. A server takes twice as many of a session.
pub const MOST_OPEN: usize = 512;

/// An ask of one of the client's sessions.
pub type Key = (Session, Seq);

/// The state of a client, behind its lock.
pub struct Desk {
    keyed: Keyed,
    device: u16,
    follower: Follower,
    heard: Option<Heard>,
    /// Asks that the server does not have yet.
    unsent: Vec<port::Ask>,
    /// Those whose caller still waits.
    wanted: BTreeSet<Key>,
    answers: BTreeMap<Key, Outcome>,
    /// Blocks that exist, as the newest answer says.
    live_blocks: u64,
    /// The line broke: the server may have lost asks that it had.
    pub lost: bool,
    /// When an answer came last, or was first waited for.
    pub progress: Instant,
    /// When the newest ask was made.
    pub asked: Instant,
    /// Nothing came since a call waited in vain: the next ones wait no longer.
    pub away: bool,
    /// Why nothing more can be done.
    pub failed: Option<Failure>,
    /// What went wrong last with the server, for messages.
    pub trouble: Option<Trouble>,
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
    let session = Session(port::Session::of(device, u64::from_le_bytes(bytes)).0);
    let follower =
        Follower::new(session, keyed.volume(), keyed.config().block_bytes, keyed.sealer());
    follower.knowing(head)
}

impl Desk {
    /// That of a new client on the device of this number, which knows this head.
    pub fn new(keyed: Keyed, head: Head, device: u16, notices: bool, now: Instant) -> Self {
        Self {
            device,
            follower: new_follower(&keyed, head, device),
            heard: notices.then(|| Heard::new(&keyed, now)),
            keyed,
            unsent: Vec::new(),
            wanted: BTreeSet::new(),
            answers: BTreeMap::new(),
            live_blocks: 0,
            lost: false,
            progress: now,
            asked: now,
            away: false,
            failed: None,
            trouble: None,
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
    pub fn begin(&mut self, asks: &[Ask], wanted: bool, now: Instant) -> EngineResult<Vec<Key>> {
        if self.follower.over().is_some() {
            self.begin_session();
        }
        if self.next_answer().is_none() {
            self.progress = now;
        }
        let records = self.follower.transaction(asks)?;
        let keys: Vec<Key> = records.iter().map(|ask| (ask.session, ask.seq)).collect();
        self.unsent.extend(records.iter().map(convert::ask));
        if wanted {
            self.wanted.extend(keys.iter().copied());
        }
        (self.asked, self.lives) = (now, true);
        Ok(keys)
    }

    /// The session is over: what it asked and was not answered is not carried out any more, and
    /// its callers ask again.
    fn begin_session(&mut self) {
        let refusal = self.follower.over();
        let live_blocks = self.live_blocks;
        for ask in self.follower.open_asks() {
            let key = (ask.session, ask.seq);
            if self.wanted.remove(&key) {
                let answer = Answer { done: false, content: None };
                self.answers.insert(key, Outcome { answer, refusal, live_blocks });
            }
        }
        self.unsent.clear();
        self.follower = new_follower(&self.keyed, self.follower.head(), self.device);
    }

    /// Asks to send: new ones, at most this many.
    pub fn take_unsent(&mut self, most: usize) -> Vec<port::Ask> {
        let rest = self.unsent.split_off(self.unsent.len().min(most));
        std::mem::replace(&mut self.unsent, rest)
    }

    /// Whether the session should ask something, so that nobody takes its client for dead.
    pub fn is_silent(&self, for_long: Duration) -> bool {
        self.lives && self.asked.elapsed() >= for_long && self.failed.is_none()
    }

    /// Whether asks wait to be sent.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// All asks without an answer, as they were sent.
    pub fn again(&mut self) -> Vec<port::Ask> {
        self.unsent.clear();
        self.follower.open_asks().map(convert::ask).collect()
    }

    /// Takes answers that came. Those after a gap are left for later.
    ///
    /// # Errors
    /// `Forked` for answers of another history; `State` for those that do not open.
    pub fn take(&mut self, answers: Vec<port::Answer>, now: Instant) -> EngineResult<bool> {
        let mut some = false;
        for answer in answers {
            let record = convert::answer_record(answer);
            let Some((session, seq)) = self.next_answer() else { break };
            if record.session != session || record.seq > seq {
                break;
            }
            if let Some((seq, answer)) = self.follower.answer(&record)? {
                (some, self.progress, self.away) = (true, now, false);
                self.live_blocks = answer.live_blocks;
                if let Some(heard) = &mut self.heard
                    && matches!(answer.refusal, None | Some(Refusal::Full))
                {
                    heard.expect(self.follower.head(), now)?;
                }
                if self.wanted.remove(&(session, seq)) {
                    self.answers.insert((session, seq), answer);
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
            let key = (record.session, record.seq);
            if self.wanted.contains(&key) {
                let answer = self.follower.answer_early(record)?;
                (some, self.progress, self.away) = (true, now, false);
                self.live_blocks = answer.live_blocks;
                self.wanted.remove(&key);
                self.answers.insert(key, answer);
            }
        }
        Ok(some)
    }

    /// Takes notices that came, or that there are none.
    ///
    /// # Errors
    /// `Forked` if one is of another history; `State` if it does not open.
    pub fn hear(&mut self, notices: &[port::Notice], now: Instant) -> EngineResult<()> {
        let session = self.session();
        let Some(heard) = &mut self.heard else { return Ok(()) };
        heard.spoke(now);
        notices.iter().try_for_each(|notice| heard.hear(notice, session))
    }

    /// What others changed since the last call; none if anything may have changed.
    pub fn take_changes(&mut self, now: Instant) -> Option<Vec<Change>> {
        self.heard.as_mut()?.take(now)
    }

    /// The answers to these asks, once all are there.
    pub fn answered(&mut self, keys: &[Key]) -> Option<Vec<Outcome>> {
        let all = keys.iter().all(|key| self.answers.contains_key(key));
        all.then(|| keys.iter().filter_map(|key| self.answers.remove(key)).collect())
    }

    /// Nobody waits for these any more. They may still be carried out.
    pub fn abandon(&mut self, keys: &[Key]) {
        for key in keys {
            self.wanted.remove(key);
            self.answers.remove(key);
        }
    }
}

/// Whether asks that were refused so are never carried out, and may be asked again in another
/// session.
pub fn may_ask_again(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::Ended | Refusal::Old)
}
