//! A volume: a ledger, what waits for it, and when that is carried out.

use super::account::WindowAccount;
use super::begin::WindowOpening;
use super::header::{WindowOptions, check, config, parameters_of};
use super::info::WindowInfo;
use super::ledger::WindowLedger;
use super::planted::{Leak, planted};
use super::policy::{HEED_SECONDS, LOOK_SECONDS, SETTLE_SECONDS, VERIFIED_AT_ONCE};
use super::verify::inspect_buckets;
use crate::core::{Core, Ledger as _};
use crate::damage::{DamagedPlace, Inspected};
use crate::engine::{Creation, EngineEntry, EngineVolume, Making, Opening, VolumeInfo};
use crate::header::{Header, has_header};
use crate::options::{DEFAULT_MEMORY, OpenOptions};
use crate::scrub::{Inspection, only_as_a_whole};
use crate::trust::{Known, Trust};
use crate::volume::Volume;
use crate::{Error, Result};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{Hint, Objects, PutMode};
use std::sync::Arc;
use std::time::Duration;

/// The entry of the tree in windows.
pub static ENGINE: EngineEntry = EngineEntry {
    number: 4,
    name: "windows",
    hides_reads: true,
    resizes: true,
    repairs: true,
    check,
    capacity_blocks: |parameters| config(parameters).capacity,
    lanes: None,
    open: |opening| Ok(Box::new(WindowVolume::of(opening.objects(), false)?)),
    making: Some(Making {
        fixed_objects: |_| Ok(None),
        cost: |new, stored| Ok(WindowOptions::from(new).cost_of(stored)),
        create: |new, Creation { store, passphrase, open, .. }| {
            Ok(Box::new(WindowVolume::create(
                store.objects(),
                passphrase,
                new.kdf,
                new.into(),
                open,
            )?))
        },
    }),
};

/// An open volume.
pub type WindowVolume = Core<WindowLedger>;

impl WindowVolume {
    /// Creates a volume in a store and opens it.
    ///
    /// # Errors
    /// `Exists` if there is a volume already, `Invalid` if the options make no sense.
    pub fn create(
        store: Arc<dyn Objects>,
        passphrase: &Passphrase,
        kdf: KdfParams,
        create: WindowOptions,
        open: OpenOptions,
    ) -> Result<Self> {
        if has_header(&*store)? {
            return Err(Error::Exists("a volume".into()));
        }
        let randomness = open.environment.randomness.clone();
        let parameters = parameters_of(&create)?;
        let (header, master) =
            Header::create(ENGINE.number, &parameters, passphrase, kdf, &randomness)?;
        let opening = Opening {
            store: Arc::clone(&store),
            header: &header,
            master: &master,
            lanes: Vec::new(),
            options: open,
        };
        let mut volume = Self::of(opening, true)?;
        volume.checkpoint(true)?;
        volume.flush()?;
        header.save(&*store, PutMode::IfAbsent)?;
        Ok(volume)
    }

    /// Begins a session on a volume whose header is read and unlocked.
    pub(super) fn of(mut opening: WindowOpening<'_>, new: bool) -> Result<Self> {
        let trust = Trust::take(opening.header.volume(), &mut opening.options)?;
        let memory_bytes = match opening.options.memory_bytes {
            0 => DEFAULT_MEMORY,
            bytes => bytes,
        };
        if opening.options.pad || opening.options.pace.is_some() {
            let why = "a volume in an online store has no --pad and no --pace";
            return Err(Error::Invalid(why.into()));
        }
        let (mut ledger, left) = WindowLedger::begin(&mut opening, trust, new)?;
        ledger.start().inspect_err(|error| ledger.give_up_after(error))?;
        opening.store.hint(Hint::BeforeRepeat(&ledger.session.guard()));
        let left = if planted(Leak::NoReplay) { Vec::new() } else { left };
        let now = opening.options.environment.clock.also_asleep();
        let account = WindowAccount::new(now, !left.is_empty());
        let mut volume = Self::over(ledger, account, (memory_bytes, opening.options));
        volume.report_now();
        if volume.account.replaying {
            // What it shows is of the sessions before until it has an entry.
            let settled = volume.settle();
            settled.inspect_err(|error| volume.ledger.give_up_after(error))?;
            let replayed = volume.replay(left);
            let judged = volume.ledger.judged(replayed);
            judged.inspect_err(|error| volume.ledger.give_up_after(error))?;
        }
        Ok(volume)
    }

    /// Before a batch: few intents are on their way, for a short time, and the session looked
    /// lately.
    pub(super) fn settle_in_time(&mut self) -> Result<()> {
        self.heed_others()?;
        let now = self.now();
        let older = |since: Duration, seconds| now.saturating_sub(since).as_secs() >= seconds;
        if planted(Leak::SleepsOn) {
            return self.ledger.send_group();
        }
        let waits = self.ledger.log.unsettled > 0 && older(self.account.sent, SETTLE_SECONDS);
        if waits {
            return self.settle();
        }
        self.ledger.send_group()?;
        if older(self.account.looked, LOOK_SECONDS) {
            self.ledger.session.look()?;
            self.account.looked = self.now();
        }
        Ok(())
    }

    /// Waits until all records are acknowledged.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.ledger.settle()?;
        self.account.looked = self.now();
        Ok(())
    }

    /// Looks, from time to time, whether another computer asks for the volume. Then the caller is
    /// told, and as long as this session goes on, the other one gets an answer.
    pub(super) fn heed_others(&mut self) -> Result<()> {
        let now = self.now();
        if self.account.replaying
            || now.saturating_sub(self.account.heed.at).as_secs() < HEED_SECONDS
        {
            return Ok(());
        }
        self.account.heed.at = now;
        let before =
            std::mem::replace(&mut self.account.heed.entry, self.ledger.session.mark().index);
        let Some(who) = self.ledger.session.wanted()? else { return Ok(()) };
        if before == self.account.heed.entry {
            self.ledger.beat()?;
            (self.account.looked, self.account.heed.entry) =
                (self.now(), self.ledger.session.mark().index);
        }
        if let Some(on_wanted) = self.options.on_wanted.as_mut().filter(|_| !self.account.heed.told)
        {
            self.account.heed.told = true;
            on_wanted(&who.host);
        }
        Ok(())
    }

    /// Another computer may have begun while this one slept.
    pub(super) fn now(&self) -> Duration {
        self.options.environment.clock.also_asleep()
    }

    /// Carries out the windows that are due, and commits.
    pub(super) fn windows_due(&mut self) -> Result<()> {
        if self.left() == 0 && !self.account.replaying {
            // If writes wait, this carries the windows out too.
            self.drain()?;
        }
        let mut any = false;
        while self.left() == 0 {
            let mut window = self.ledger.engine.begin_window()?;
            self.ledger.run_window(&mut window)?;
            self.report_window(false);
            any = true;
        }
        if any && !self.account.replaying { self.checkpoint(false) } else { Ok(()) }
    }

    /// Sends everything, so that no record has to be replayed once it is stored. Nothing may be
    /// deferred. With `rests`, nothing follows for now: there are two of what is small.
    pub(super) fn checkpoint(&mut self, rests: bool) -> Result<()> {
        let before = self.ledger.confirmed();
        self.ledger.checkpoint(rests)?;
        self.waiting.checkpoint(self.ledger.epoch(), &self.ledger.root);
        self.note_confirmed(before);
        self.shrink_if_due()
    }

    /// Waits until the last checkpoint is a commit.
    pub(super) fn flush(&mut self) -> Result<()> {
        let before = self.ledger.confirmed();
        self.ledger.flush()?;
        self.note_confirmed(before);
        Ok(())
    }

    /// What is confirmed is durable. The session looked for it, if it is more than before.
    fn note_confirmed(&mut self, before: u64) {
        let confirmed = self.ledger.confirmed();
        self.waiting.confirmed(confirmed);
        if confirmed > before {
            self.account.looked = self.now();
        }
    }

    /// A checkpoint of everything, and waits until it is a commit.
    pub(super) fn commit_all(&mut self) -> Result<()> {
        self.checkpoint_all()?;
        self.flush()
    }

    /// The same, and ends the session.
    pub(super) fn finish_all(&mut self) -> Result<()> {
        self.checkpoint_all()?;
        let before = self.ledger.confirmed();
        self.ledger.finish()?;
        self.note_confirmed(before);
        Ok(())
    }

    /// Makes a checkpoint, if there is anything that the last one has not.
    fn checkpoint_all(&mut self) -> Result<()> {
        if self.has_news() || self.ledger.commits.heals || !self.ledger.commits.are_protected() {
            self.checkpoint(true)?;
        }
        Ok(())
    }

    /// A window ahead of its turn, which shrinks the tree.
    pub(super) fn window_ahead(&mut self) -> Result<()> {
        self.drain()?;
        let turns = self.ledger.places.rule.turns();
        let mut window = self.ledger.engine.begin_maintenance(turns)?;
        self.ledger.note_intent(window.intent());
        self.settle()?;
        self.ledger.run_window(&mut window)?;
        self.report_window(true);
        self.checkpoint(false)
    }

    /// After as many windows every bucket was written anew, and every part of the memory.
    fn windows_to_whole(&self) -> u64 {
        let (engine, rule) = (&self.ledger.engine, self.ledger.places.rule);
        let deepest = engine.shapes().all().iter().map(|it| it.1.depth.0).max().unwrap_or(0);
        let round = 1u64 << deepest.saturating_sub(rule.log_turns).min(62);
        round.max(rule.kept(engine.config().blocks_per_bucket))
    }

    /// Information about the tree.
    pub fn window_info(&self) -> WindowInfo {
        let engine = &self.ledger.engine;
        WindowInfo {
            config: *engine.config(),
            rule: self.ledger.places.rule,
            addressable_blocks: engine.capacity(),
            size_class: engine.size_class(),
            depth: engine.depth().0,
            leaf_slots: engine.shape().leaf_slots,
            windows: engine.windows_done(),
            session: self.ledger.session.id().number,
            released: self.ledger.released,
        }
    }
}

impl EngineVolume for WindowVolume {
    fn known(&self) -> Known {
        self.ledger.trust.known()
    }

    /// Level by level, object by object.
    fn inspect(&mut self, inspection: Inspection<'_>) -> Result<Inspected> {
        let Inspection { from, at_once, amid_requests, reached, damaged } = inspection;
        if amid_requests {
            return Err(only_as_a_whole());
        }
        self.guarded(|volume| {
            volume.drain()?;
            volume.commit_all()?;
            // An inspection that goes on has seen them.
            let small = if from == 0 { volume.ledger.inspect_small()? } else { Vec::new() };
            volume.commit_all()?;
            // Before the inspection moves on: it may be stopped.
            let small_damaged = small.len() as u64;
            small.into_iter().for_each(&mut *damaged);
            let at_once = at_once.min(VERIFIED_AT_ONCE);
            let buckets = Inspection { from, at_once, amid_requests, reached, damaged };
            let mut found = inspect_buckets(&mut volume.ledger, buckets)?;
            found.damaged += small_damaged;
            Ok(found)
        })
    }

    /// Each bucket, and each part of the memory, is written in as many windows, ahead of their
    /// turn.
    fn repair(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let windows = self.windows_to_whole();
        for done in 0..windows {
            self.guarded(Self::window_ahead)?;
            progress(done + 1, windows);
        }
        self.guarded(|volume| {
            volume.checkpoint(true)?;
            volume.flush()
        })
    }

    fn damaged(&self) -> Vec<DamagedPlace> {
        self.ledger.past.damaged.clone()
    }

    fn info(&self) -> Result<VolumeInfo> {
        let info = VolumeInfo {
            live_blocks: Some(self.ledger.engine.live_blocks()),
            epoch: self.ledger.epoch(),
            memory_bytes: self.memory_bytes,
            replayed: self.replayed,
            verified: "bucket",
            ..VolumeInfo::of_header(self.ledger.limit.header(), &ENGINE, self.ledger.bytes_stored())
        };
        Ok(info.reporting(|info| self.window_info().report(info)))
    }
}

impl Volume {
    /// The volume, if it is on the tree in windows.
    pub fn windows(&mut self) -> Option<&mut WindowVolume> {
        self.on()
    }
}
