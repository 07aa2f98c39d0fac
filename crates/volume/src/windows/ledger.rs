//! The ledger: the engine, its session, its objects, and what makes them durable. It knows no
//! policy.
//!
//! What makes the engine's state current is in [`checkpoint`](super::checkpoint).

use super::account::WindowAccount;
use super::begin::{WindowOpening, base_of, session_of};
use super::cache::DiskCache;
use super::header::{config, with_limit};
use super::near::Near;
use super::parity;
use super::pending::{Checkpoints, Past};
use super::places::{Places, WindowObjects};
use super::policy::GROUP;
use super::records::{Left, Log};
use super::state::Kept;
use crate::core::{self, LEAST_BLOCKS, Limit};
use crate::options::CacheOptions;
use crate::records::journal::PAGE;
use crate::records::record::{INTENT, RESIZE, SYNC, push_intent, push_resize, push_sync};
use crate::records::writes::Writes;
use crate::session::{self, FIRST_KIND, History, OwnSession, Vault};
use crate::trust::{LogMark, StoredAct, Trust};
use crate::{Error, Result};
use oblivio_crypto::{Kind, Sealer};
use oblivio_engine::Level;
use oblivio_engine::carry_out;
use oblivio_engine::tree::{Intent, TreeJob, TreeKeys, TreeOram};
use oblivio_store::Objects;
use std::collections::BTreeSet;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// The engine and everything of it in the store.
pub struct WindowLedger {
    pub(super) store: Arc<dyn Objects>,
    pub(super) session: OwnSession,
    pub(super) engine: TreeOram,
    pub(super) places: Places,
    pub(super) cache: Option<DiskCache>,
    pub(super) trust: Trust,
    /// The caller's bytes beside the blocks.
    pub(super) root: Vec<u8>,
    pub(super) limit: Limit,
    /// What seals parts.
    vault: Vault,
    /// Whether this session said that it does nothing more.
    gave_up: bool,
    /// Whether the session before ended by itself.
    pub(super) released: bool,
    pub(super) commits: Checkpoints,
    pub(super) log: Log,
    pub(super) past: Past,
}

/// The payload of a release after a failure: this session may have left something.
const GAVE_UP: u8 = 1;

impl WindowLedger {
    /// Takes the volume: begins a session and loads the newest commit, if there is one.
    pub(super) fn begin(
        opening: &mut WindowOpening<'_>,
        trust: Trust,
        new: bool,
    ) -> Result<(Self, Left)> {
        let on_wait = opening.options.on_wait.take();
        let opening = &*opening;
        let WindowOpening { store, header, master, options, .. } = opening;
        let volume = header.volume();
        let parameters = header.parameters();
        let config = config(&parameters);
        let rule = config.eviction.windows().ok_or_else(|| Error::Closed("no windows".into()))?;
        let blocks = LEAST_BLOCKS.min(config.capacity);
        let keys = TreeKeys::of_volume(master, volume, &options.environment.randomness);
        let randomness = Box::new(options.environment.randomness.clone());
        let engine = TreeOram::new(config, blocks, keys)?;
        let (session, history) =
            session::SessionOpening { on_wait, ..session_of(opening, &trust, new) }.begin()?;
        let mut ledger = Self {
            store: Arc::clone(store),
            session,
            engine,
            places: Places::new(rule),
            cache: None,
            trust,
            root: Vec::new(),
            limit: Limit::of(header, master),
            vault: Vault::new(volume, Sealer::new(master.state_root(volume), randomness)),
            gave_up: false,
            released: history.released,
            commits: Checkpoints::new(rule.kept(config.blocks_per_bucket)),
            log: Log::default(),
            past: Past::new(),
        };
        // Whole groups of parts stay.
        let parts = rule.kept(config.blocks_per_bucket) + parity::GROUP;
        ledger.commits.near = options.cache.as_ref().map(|cache| Near::new(cache, parts));
        let taken = ledger.take_up(opening, &history, new);
        let left = taken.inspect_err(|error| ledger.give_up_after(error))?;
        Ok((ledger, left))
    }

    /// Goes on from what earlier sessions left.
    fn take_up(
        &mut self,
        opening: &WindowOpening<'_>,
        history: &History,
        new: bool,
    ) -> Result<Left> {
        let base = base_of(history, &mut self.trust, new)?;
        if let Some(commit) = &base {
            let places = &mut self.places;
            (places.done, places.spans) = (commit.windows, commit.spans.clone());
            self.root.clone_from(&commit.root);
            self.commits.epoch = commit.number;
            self.commits.parts = commit.parts.iter().copied().collect();
            self.commits.parities.take(&commit.parities);
            self.restore(commit)?;
            let protected = self.commits.are_protected();
            self.commits.heals |= !protected;
            self.past.newest = history.commit.as_ref().map(|(mark, _)| (*mark, protected));
        }
        self.commits.heals |= !history.damaged.is_empty();
        self.past.damaged.extend(history.damaged.iter().cloned());
        let left = self.take_records(history)?;
        // Whoever ended by itself left nothing.
        if !history.released || !history.records.is_empty() {
            self.past.leftovers = self.take_leftovers(history, base.as_ref())?;
        } else if let Some(commit) = &base {
            let part = self.commits.first_part();
            self.past.kept = Kept { entry: 1, window: commit.windows, part };
            let mark = history.commit.as_ref().map(|(mark, _)| mark);
            self.past.leftovers = mark.map_or_else(Vec::new, |mark| commit.entries_up_to(mark));
        }
        let id = self.session.id();
        self.places.begin(id.random, id.number, self.commits.epoch)?;
        if let Some(cache) = &opening.options.cache {
            self.take_cache(cache)?;
        }
        Ok(left)
    }

    /// Begins to use the disk cache.
    fn take_cache(&mut self, options: &CacheOptions) -> Result<()> {
        let rule = self.places.rule;
        let bytes = self.engine.config().geometry().bucket_bytes();
        let mut cache = DiskCache::new(options, Level(rule.pool_levels), bytes);
        let mut current = BTreeSet::new();
        for (level, window) in self.places.current(self.engine.depth()) {
            if cache.keeps(level) {
                current.insert(self.places.object(level, window)?);
            }
        }
        for number in self.commits.first_part()..=self.commits.epoch {
            current.insert(self.places.part(number)?.0);
        }
        cache.keep_only(&current);
        self.cache = Some(cache);
        Ok(())
    }

    /// Seals a part, between the bytes of its seal.
    pub(super) fn seal_part(&mut self, number: u64, session: u64, part: &mut [u8]) -> Result<()> {
        self.vault.seal(Kind::Part, number, session, part).map(drop)
    }

    /// Opens a part in place. Whether it was one.
    pub(super) fn open_part(&mut self, number: u64, session: u64, part: &mut [u8]) -> bool {
        self.vault.open(Kind::Part, number, session, part).is_some()
    }

    /// Sends the session's first entry. If it is lost with this computer, so are the intents of the
    /// first batches, as those of any others that are on their way.
    pub fn start(&mut self) -> Result<()> {
        self.session.start(&[])?;
        self.log.records += 1;
        Ok(())
    }

    /// Carries out a job of the engine. If it met damage, the disk cache forgets what it got just
    /// now: the store may have what it should another time.
    pub fn run(&mut self, job: &mut TreeJob) -> Result<()> {
        let (store, cache) = (&*self.store, self.cache.as_mut());
        let (session, places) = (&mut self.session, &mut self.places);
        places.cached.clear();
        let mut objects = WindowObjects { store, session, places, cache };
        let done = carry_out(job, &mut self.engine, &mut objects);
        if self.engine.take_damage()
            && let Some(cache) = &mut self.cache
        {
            cache.forget(self.places.cached.iter());
        }
        done
    }

    /// Carries out a window.
    pub fn run_window(&mut self, job: &mut TreeJob) -> Result<()> {
        self.run(job)?;
        let slots = self.engine.config().blocks_per_bucket;
        let shapes = self.engine.shapes().clone();
        let deepest = shapes.all().iter().map(|it| it.1.depth).max().unwrap_or(Level(0));
        self.places.did_window(deepest, |level, window| shapes.slots(level, window, slots) > 0)?;
        if let Some(cache) = &mut self.cache {
            cache.forget(self.places.replaced().iter());
        }
        Ok(())
    }

    /// Records the intent of a batch or a window, without waiting. It goes into an entry with
    /// others.
    pub fn note_intent(&mut self, of: &Intent) {
        push_intent(&mut self.log.intents, of);
        self.log.grouped += 1;
        self.log.unsettled += 1;
    }

    /// Sends a full group of intents, once the one before is acknowledged.
    pub fn send_group(&mut self) -> Result<()> {
        if self.log.grouped < GROUP {
            return Ok(());
        }
        if self.log.unsettled > self.log.grouped {
            self.settle_sent()?;
        }
        self.send_intents()
    }

    /// Sends the intents that wait.
    pub(super) fn send_intents(&mut self) -> Result<()> {
        if self.log.grouped == 0 {
            return Ok(());
        }
        let intents = std::mem::take(&mut self.log.intents);
        self.log.grouped = 0;
        self.push(INTENT, 0, |payload| payload.extend_from_slice(&intents))
    }

    /// Records writes and the root, in the size class of `least` bytes or a larger one.
    pub fn send_sync(&mut self, writes: &Writes, least: usize) -> Result<()> {
        let root = std::mem::take(&mut self.root);
        // Room for a root of any length: `least` counts writes only.
        let sent = self.send(SYNC, least + PAGE, |payload| push_sync(payload, &root, writes));
        self.root = root;
        sent
    }

    fn send(&mut self, kind: u64, least: usize, push: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.send_intents()?;
        self.push(kind, least, push)
    }

    fn push(&mut self, kind: u64, least: usize, push: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let act = self.trust.act()?;
        let mut payload = StoredAct::new(act).as_bytes().to_vec();
        push(&mut payload);
        self.session.send(FIRST_KIND + kind, &payload, least)?;
        self.log.records += 1;
        self.log.bytes += payload.len().max(least).next_multiple_of(PAGE) as u64;
        Ok(())
    }

    /// Waits until all records are durable and acknowledged; then this computer notes them.
    pub fn settle(&mut self) -> Result<()> {
        self.send_intents()?;
        self.settle_sent()
    }

    pub(super) fn settle_sent(&mut self) -> Result<()> {
        self.session.settle()?;
        self.log.unsettled = self.log.grouped;
        self.trust.reached(self.session.hint());
        let act = Some(self.trust.last_act()).filter(|act| act.number > 0);
        let newest = act.or(self.trust.known().newest);
        let tag = self.session.mark().tag;
        self.trust.logged(LogMark { end: self.log.records, tag }, newest)
    }

    /// Answers who asked for the volume: this computer goes on with it for now.
    pub fn beat(&mut self) -> Result<()> {
        self.settle()?;
        let mark = self.session.beat()?;
        self.log.records += 1;
        let act = self.trust.last_act();
        self.trust.logged(LogMark { end: self.log.records, tag: mark.tag }, Some(act))
    }

    /// Says the same after a failure, once: what this session left is still to be gone through.
    fn release_after_failure(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.gave_up, true) {
            return Ok(());
        }
        if !self.session.has_started() {
            self.session.start(&[])?;
        }
        // What was shown, the next session shows again.
        self.send_intents()?;
        self.session.release(&[GAVE_UP])
    }

    /// Says the same when opening fails, as far as that can be said: nobody need wait for a session
    /// that will do nothing. A state that this computer refuses as an older one gets no entry that
    /// stands on it.
    pub fn give_up_after(&mut self, error: &Error) {
        if !matches!(error, Error::Store(_) | Error::Overtaken | Error::RolledBack(_)) {
            let _ = self.release_after_failure();
        }
    }

    /// The number of the last checkpoint.
    pub fn epoch(&self) -> u64 {
        self.commits.epoch
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
        let parts: u64 = self.commits.parts.iter().map(|part| part.0).sum();
        let parities: u64 = self.commits.parities.stored().iter().map(|of| of.bytes).sum();
        tree + parts + parities + self.log.bytes
    }

    /// Bytes of this session's records since the last commit.
    pub fn record_bytes(&self) -> u64 {
        self.log.bytes
    }

    /// Whether this session made records since the last checkpoint.
    pub fn has_records(&self) -> bool {
        self.log.grouped > 0
            || self.log.bytes > self.commits.pending.back().map_or(0, |last| last.record_bytes)
    }

    /// Records since the last confirmed commit, of all sessions.
    pub fn records(&self) -> u64 {
        self.log.records
    }
}

impl core::Ledger for WindowLedger {
    type Account = WindowAccount;

    fn engine(&self) -> &TreeOram {
        &self.engine
    }

    fn engine_mut(&mut self) -> &mut TreeOram {
        &mut self.engine
    }

    fn root(&self) -> &[u8] {
        &self.root
    }

    fn set_root(&mut self, root: Vec<u8>) {
        self.root = root;
    }

    fn limit(&self) -> u64 {
        config(&self.limit.parameters()).capacity
    }

    fn set_limit(&mut self, blocks: u64) -> Result<()> {
        let parameters = with_limit(&self.limit.parameters(), blocks)?;
        self.session.look()?;
        self.limit.replace(&*self.store, &parameters)
    }

    fn record_resize(&mut self, blocks: u64, class: u64) -> Result<()> {
        self.send(RESIZE, 0, |payload| push_resize(payload, blocks, class))?;
        self.settle()
    }

    /// What is missing was perhaps deleted by a session that took over, and the session's guard
    /// says `Busy` before a read is repeated.
    fn judged<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(Error::Tampered(_) | Error::Busy) = &result {
            self.session.look()?;
        }
        result
    }

    fn give_up(&mut self) {
        // Others wait for it in any case, and then take it over.
        let _ = self.release_after_failure();
    }
}
