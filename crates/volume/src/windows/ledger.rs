//! The ledger: the engine, its session, its objects, and what makes them durable. It knows no
//! policy.
//!
//! A commit stores, each durable before the next: the objects of its windows and its part, side by
//! side; its entry; its pointer. Then what it replaced is deleted. Before each deletion and after
//! each entry the session looks for a later one, which would go on from here.

use super::header::{config, way, with_limit};
use super::places::{Objects, Places};
use super::state::Commit;
use crate::header::{HEADER_OBJECT, Header};
use crate::records::deferred::Writes;
use crate::records::journal::PAGE;
use crate::session::{self, FIRST_KIND, History, Session, SessionId, Vault, Who};
use crate::tree::journal::{
    INTENT, RESIZE, Record, SYNC, parse_as, push_intent, push_resize, push_sync,
};
use crate::trust::{Act, Keep, LogMark, StoredAct, Table, Trust};
use crate::{Error, Opening, Result};
use oblivio_crypto::{Kind, Mac, Place, SEAL_HEADER, SEAL_OVERHEAD, Sealer, VolumeId, digest};
use oblivio_engine::Level;
use oblivio_engine::carry_out;
use oblivio_engine::tree::{Intent, TreeJob, TreeKeys, TreeOram};
use oblivio_store::{PutMode, ReadAt, Store};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// Windows that a session may have begun and not committed, but for the replay of very many
/// records.
const MOST_LEFT: u64 = 3;
/// Parts read at a time.
const PARTS_AT_ONCE: usize = 8;

/// The engine and everything of it in the store.
pub(super) struct Ledger {
    pub store: Arc<dyn Store>,
    pub session: Session,
    pub engine: TreeOram,
    pub places: Places,
    pub trust: Trust,
    /// The caller's bytes beside the blocks.
    pub root: Vec<u8>,
    header: Header,
    header_mac: Mac,
    volume: VolumeId,
    sealer: Sealer,
    /// The number of the last commit.
    epoch: u64,
    /// Lengths and digests of the kept parts, up to the last commit's.
    parts: VecDeque<(u64, [u8; 32])>,
    /// Records since the last commit, and the bytes of this session's.
    records: u64,
    record_bytes: u64,
    /// Batches whose intents are sent and not known to be stored.
    pub unsettled: u64,
    /// The first entry of this session that is still stored.
    first_entry: u64,
    /// Whether the session before ended by itself.
    pub released: bool,
    /// What sessions left that did not commit: it goes with the first commit of this one.
    leftovers: Vec<String>,
}

/// What an earlier session left: its records since the last commit.
pub(super) type Left = Vec<(Option<Act>, Record)>;

impl Ledger {
    /// Takes the volume: begins a session and loads the newest commit, if there is one.
    pub fn begin(opening: &Opening<'_>, mut trust: Trust, new: bool) -> Result<(Self, Left)> {
        let Opening { store, header, master, options } = opening;
        let volume = header.volume();
        let parameters = header.parameters();
        let randomness = &options.environment.randomness;
        let sealer = |root| Sealer::new(root, Box::new(randomness.clone()));
        let config = config(&parameters);
        let rule = config.eviction.windows().ok_or_else(|| Error::Closed("no windows".into()))?;
        let blocks = super::header::LEAST_BLOCKS.min(config.capacity);
        let keys = TreeKeys::of_volume(master, volume, randomness);
        let engine = TreeOram::new(config, blocks, keys)?;
        let (session, history) = session_of(opening, &trust, new).begin()?;
        let mut places = Places::new(rule);
        let mut root = Vec::new();
        let commit = history.commit.as_ref().map(|(_, payload)| Commit::parse(payload));
        let mut ledger_parts = VecDeque::new();
        let (mut epoch, mut restored) = (0, None);
        match (commit.transpose()?, new) {
            (None, true) => {}
            (Some(commit), false) => {
                let digest = digest(history.commit.as_ref().map_or(&[], |(_, it)| it));
                trust.judge_commit(commit.number, digest, Some(commit.table.clone()))?;
                (places.done, places.spans) = (commit.windows, commit.spans.clone());
                root.clone_from(&commit.root);
                ledger_parts = commit.parts.iter().copied().collect();
                epoch = commit.number;
                restored = Some(commit);
            }
            (None, false) => return Err(Error::Tampered("there is no commit".into())),
            (Some(_), true) => return Err(Error::Exists("a volume".into())),
        }
        let mut ledger = Self {
            store: Arc::clone(store),
            session,
            engine,
            places,
            trust,
            root,
            header: (*header).clone(),
            header_mac: master.header_mac(volume),
            volume,
            sealer: sealer(master.state_root(volume)),
            epoch,
            parts: ledger_parts,
            records: 0,
            record_bytes: 0,
            unsettled: 0,
            first_entry: 1,
            released: history.released,
            leftovers: Vec::new(),
        };
        if let Some(commit) = restored {
            ledger.restore(&commit)?;
        }
        let left = ledger.take_records(&history)?;
        ledger.leftovers = ledger.leftovers_of(&history);
        let id = ledger.session.id();
        ledger.places.begin(id.random, id.number, ledger.epoch)?;
        Ok((ledger, left))
    }

    /// Loads the kept parts.
    fn restore(&mut self, commit: &Commit) -> Result<()> {
        let kept = self.places.rule.kept(self.engine.config().blocks_per_bucket);
        if commit.parts.len() as u64 != kept.min(commit.number) {
            return Err(Error::Tampered("a commit keeps another number of parts".into()));
        }
        let first = commit.number + 1 - commit.parts.len() as u64;
        let mut plains = Vec::new();
        for (at, parts) in commit.parts.chunks(PARTS_AT_ONCE).enumerate() {
            let first = first + (at * PARTS_AT_ONCE) as u64;
            plains.append(&mut self.read_parts(first, parts)?);
        }
        let payload = SEAL_HEADER..;
        let parts: Vec<(u64, &[u8])> = plains
            .iter()
            .map(|(number, plain)| {
                (*number, &plain[payload.clone()][..plain.len() - SEAL_OVERHEAD])
            })
            .collect();
        Ok(self.engine.restore_parts(&parts)?)
    }

    /// Reads and opens some parts, from commit `first` on. Each is between the bytes of its seal.
    fn read_parts(&mut self, first: u64, parts: &[(u64, [u8; 32])]) -> Result<Vec<(u64, Vec<u8>)>> {
        let most = 1 << 30;
        let named = (first..).zip(parts).map(|(number, part)| {
            let (object, session) = self.places.part(number)?;
            let bytes =
                usize::try_from(part.0).ok().filter(|it| (SEAL_OVERHEAD..most).contains(it));
            let bytes = bytes.ok_or_else(|| Error::Tampered(format!("{object}: its length")))?;
            Ok((number, object, session, vec![0; bytes], part.1))
        });
        let mut named: Vec<_> = named.collect::<Result<_>>()?;
        let mut reads: Vec<ReadAt<'_>> = named
            .iter_mut()
            .map(|(_, object, _, buf, _)| ReadAt { object, offset: 0, buf })
            .collect();
        self.store.read(&mut reads)?;
        let mut plains = Vec::new();
        for (number, object, session, mut buf, expected) in named {
            let tampered = || Error::Tampered(format!("{object} is not what was stored"));
            if digest(&buf) != expected {
                return Err(tampered());
            }
            let place =
                Place { volume: self.volume, kind: Kind::Part, index: number, version: session };
            self.sealer.open(&place, &mut buf).map_err(|_| tampered())?;
            plains.push((number, buf));
        }
        Ok(plains)
    }

    /// Objects that sessions stored after the newest commit: records, and what a commit would have
    /// made current. Nothing is listed: their names follow from the counters.
    fn leftovers_of(&self, history: &History) -> Vec<String> {
        let records = history.records.iter().filter(|(_, kind, _)| *kind >= FIRST_KIND);
        let mut names: Vec<String> =
            records.map(|(mark, ..)| mark.session.entry(mark.index)).collect();
        let commits = history.commit.iter().map(|(mark, _)| mark.session);
        let sessions: BTreeSet<SessionId> =
            history.records.iter().map(|(mark, ..)| mark.session).chain(commits).collect();
        let deepest = self.engine.depth().0 + 1;
        for session in sessions {
            let part = Places::part_of(session.random, self.epoch + 1);
            names.push(part);
            for window in self.places.done..self.places.done + MOST_LEFT {
                let levels = (self.places.rule.pool_levels..=deepest).map(Level);
                names.extend(levels.map(|level| Places::object_of(session.random, level, window)));
            }
        }
        names
    }

    /// Checks the records against what this computer knows of them.
    fn take_records(&mut self, history: &History) -> Result<Left> {
        let mut check = self.trust.log_check();
        let mut left = Vec::new();
        let (mut mark, mut newest) = (LogMark::default(), None);
        for (at, kind, payload) in &history.records {
            self.records += 1;
            mark = LogMark { end: self.records, tag: at.tag };
            if let Some(kind) = kind.checked_sub(FIRST_KIND) {
                let (act, record) = parse(kind, payload)
                    .ok_or_else(|| Error::Tampered("a record does not parse".into()))?;
                if matches!(record, Record::Sync { .. }) {
                    check.sync();
                }
                self.trust.absorb(act);
                newest = Some(act);
                left.push((Some(act), record));
            }
            check.pass(mark);
        }
        check.finish(0, mark.end)?;
        // From here on nothing older passes for the newest.
        self.trust.begin(mark, newest)?;
        Ok(left)
    }

    /// Stores the session's first entry. Nothing may be read before it.
    pub fn start(&mut self) -> Result<()> {
        let mark = self.session.start(&[])?;
        self.records += 1;
        let act = Some(self.trust.last_act()).filter(|act| act.number > 0);
        let newest = self.trust.known().newest.or(act);
        self.trust.logged(LogMark { end: self.records, tag: mark.tag }, newest)
    }

    /// Carries out a job of the engine.
    pub fn run(&mut self, job: &mut TreeJob) -> Result<()> {
        let mut objects = Objects { store: &*self.store, places: &mut self.places };
        let done = carry_out(job, &mut self.engine, &mut objects);
        // What is missing was perhaps deleted by a session that took over.
        if let Err(Error::Tampered(_)) = &done {
            self.session.look()?;
        }
        done
    }

    /// Carries out a window.
    pub fn run_window(&mut self, job: &mut TreeJob) -> Result<()> {
        self.run(job)?;
        let slots = self.engine.config().blocks_per_bucket;
        let shapes = self.engine.shapes().clone();
        let deepest = shapes.all().iter().map(|it| it.1.depth).max().unwrap_or(Level(0));
        self.places.did_window(deepest, |level, window| shapes.slots(level, window, slots) > 0)
    }

    /// Makes the engine's state current.
    pub fn commit(&mut self) -> Result<()> {
        let number = self.epoch + 1;
        let (object, session) = self.places.part(number)?;
        let mut part = vec![0; SEAL_HEADER];
        self.engine.part(number, &mut part);
        part.resize(part.len() + SEAL_OVERHEAD - SEAL_HEADER, 0);
        let place =
            Place { volume: self.volume, kind: Kind::Part, index: number, version: session };
        let sealed = self.sealer.seal(&place, &mut part);
        sealed.map_err(|error| Error::Closed(error.to_string()))?;
        let described = (part.len() as u64, digest(&part));
        self.places.store(&*self.store, object, &part)?;
        drop(part);
        let kept = self.places.rule.kept(self.engine.config().blocks_per_bucket);
        self.parts.push_back(described);
        let void = (self.parts.len() as u64).saturating_sub(kept);
        let mut replaced = Vec::new();
        for gone in 0..void {
            self.parts.pop_front();
            let first = number + 1 - kept - void + gone;
            replaced.push(self.places.part(first)?.0);
        }
        self.places.forget(self.engine.depth(), number + 1 - self.parts.len() as u64);
        let table: Table = self.trust.commit_act(number)?.clone();
        let commit = Commit {
            number,
            windows: self.places.done,
            root: self.root.clone(),
            table,
            spans: self.places.spans.clone(),
            parts: self.parts.iter().copied().collect(),
        };
        self.places.settle(&*self.store)?;
        self.trust.refuse_overtaken()?;
        let payload = commit.to_bytes();
        let mark = self.session.commit(&payload, 0)?;
        self.epoch = number;
        self.engine.committed();
        (self.records, self.record_bytes, self.unsettled) = (0, 0, 0);
        self.trust.committed(number, digest(&payload), LogMark::default(), Keep::Durable)?;
        replaced.append(&mut self.places.take_replaced());
        // All entries before the commit but the first, which names what was before the session.
        replaced.extend((self.first_entry.max(2)..mark.index).map(|at| mark.session.entry(at)));
        self.first_entry = mark.index;
        replaced.append(&mut self.leftovers);
        let names: Vec<&str> = replaced.iter().map(String::as_str).collect();
        self.session.delete(&names)
    }

    /// Records the intent of a batch or a window, without waiting.
    pub fn send_intent(&mut self, of: &Intent) -> Result<()> {
        self.send(INTENT, 0, |payload| push_intent(payload, of))?;
        self.unsettled += 1;
        Ok(())
    }

    /// Records writes and the root, in the size class of `least` bytes or a larger one.
    pub fn send_sync(&mut self, writes: &Writes, least: usize) -> Result<()> {
        let root = std::mem::take(&mut self.root);
        // Room for a root of any length: `least` counts writes only.
        let sent = self.send(SYNC, least + PAGE, |payload| push_sync(payload, &root, writes));
        self.root = root;
        sent
    }

    /// Records a new number of addressable blocks and a new size class.
    pub fn record_resize(&mut self, blocks: u64, class: u64) -> Result<()> {
        self.send(RESIZE, 0, |payload| push_resize(payload, blocks, class))?;
        self.settle()
    }

    fn send(&mut self, kind: u64, least: usize, push: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let act = self.trust.act()?;
        let mut payload = StoredAct::new(act).as_bytes().to_vec();
        push(&mut payload);
        self.session.send(FIRST_KIND + kind, &payload, least)?;
        self.records += 1;
        self.record_bytes += payload.len().max(least).next_multiple_of(PAGE) as u64;
        Ok(())
    }

    /// Waits until all records are durable and acknowledged; then this computer notes them.
    pub fn settle(&mut self) -> Result<()> {
        self.session.settle()?;
        self.unsettled = 0;
        let (mark, act) = (self.session.mark(), self.trust.last_act());
        self.trust.logged(LogMark { end: self.records, tag: mark.tag }, Some(act))
    }

    /// Says that this computer is done for now, after a commit of everything.
    pub fn release(&mut self) -> Result<()> {
        self.session.release(&[])?;
        self.trust.end()
    }

    /// The number of the last commit.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Bytes of the current objects. Nothing is listed for it.
    pub fn bytes_stored(&self) -> u64 {
        let (rule, shapes, config) = (self.places.rule, self.engine.shapes(), self.engine.config());
        let level = |level: u32| -> u64 {
            let period = 1u64 << (level - rule.log_turns);
            let windows = self.places.done.saturating_sub(period)..self.places.done;
            let bytes = |window| match shapes.slots(Level(level), window, config.blocks_per_bucket)
            {
                0 => 0,
                slots => config.geometry().bucket_bytes_with(slots) as u64 * rule.turns(),
            };
            windows.map(bytes).sum()
        };
        let tree: u64 = (rule.pool_levels..=self.engine.depth().0).map(level).sum();
        tree + self.parts.iter().map(|part| part.0).sum::<u64>() + self.record_bytes
    }

    /// Bytes of this session's records since the last commit.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// Records since the last commit, of all sessions.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The header as stored.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The most blocks that may exist.
    pub fn limit(&self) -> u64 {
        config(&self.header.parameters()).capacity
    }

    /// Replaces the stored header by one with another limit.
    pub fn set_limit(&mut self, blocks: u64) -> Result<()> {
        let parameters = with_limit(&self.header.parameters(), blocks)?;
        let header = self.header.with_parameters(&parameters, &self.header_mac);
        self.session.look()?;
        header.save(&*self.store, PutMode::Replace)?;
        self.header = header;
        Ok(())
    }
}

/// The session to begin on a volume.
fn session_of(opening: &Opening<'_>, trust: &Trust, new: bool) -> session::Opening {
    let Opening { store, header, master, options } = opening;
    let volume = header.volume();
    let randomness = Box::new(options.environment.randomness.clone());
    session::Opening {
        store: Arc::clone(store),
        way: way(&header.parameters()),
        vault: Vault::new(volume, Sealer::new(master.entry_root(volume), randomness)),
        environment: options.environment.clone(),
        who: Who { computer: trust.known().computer, host: options.host.clone() },
        hint: 0,
        // Before a volume is made, there may be claims to another one that never was.
        accept_gaps: new || options.accept_rollback,
        planted: session::Planted::default(),
    }
}

/// Whether a store has a volume.
pub(super) fn has_header(store: &dyn Store) -> Result<bool> {
    Ok(store.len(HEADER_OBJECT)?.is_some())
}

/// Parses a record: its act, and what it says.
pub(super) fn parse(kind: u64, payload: &[u8]) -> Option<(Act, Record)> {
    let (act, rest) = StoredAct::ref_from_prefix(payload).ok()?;
    Some((act.get(), parse_as(kind, rest)?))
}
