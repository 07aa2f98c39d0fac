//! A volume: a ledger, what waits for it, and when that is carried out.

use super::header::{PyramidOptions, capacity_blocks, check, config, parameters_of};
use super::info::PyramidInfo;
use super::ledger::Ledger;
use super::policy::{
    MOST_OPS, bytes_per_ask, commit_asks, commit_journal, expect_memory, most_bytes,
};
use super::waiting::Waiting;
use crate::engine::{EngineEntry, EngineVolume, Opening, VolumeInfo, make, open_as};
use crate::options::{DEFAULT_MEMORY, OpenOptions};
use crate::trust::{Known, LogMark, Trust};
use crate::volume::Volume;
use crate::{Error, Result};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::pyramid::Home;
use oblivio_engine::{BlockAnswer, BlockId, BlockOp};
use oblivio_store::Store;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The entry of the pyramid engine.
pub static ENGINE: EngineEntry = EngineEntry {
    number: 3,
    name: "pyramid",
    hides_reads: true,
    resizes: false,
    check,
    capacity_blocks,
    open: |opening| Ok(Box::new(PyramidVolume::of(opening)?)),
};

/// An open volume.
pub struct PyramidVolume {
    pub(super) ledger: Ledger,
    pub(super) waiting: Waiting,
    pub(super) memory_bytes: usize,
    /// Rounds of an earlier session that were shown again.
    pub(super) replayed: u64,
    /// The failure that made this handle unusable, if any.
    pub(super) failed: Option<String>,
}

impl PyramidVolume {
    /// Creates a volume in an empty store and opens it.
    ///
    /// # Errors
    /// `Exists` if there is a volume already, `Invalid` if there is something else or the options
    /// make no sense, `Full` if the store has too little room for a full volume.
    pub fn create(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        kdf: KdfParams,
        create: PyramidOptions,
        open: OpenOptions,
    ) -> Result<Self> {
        let parameters = (&parameters_of(&create)?, kdf);
        make(&ENGINE, store, passphrase, parameters, open, |opening| {
            expect_room(&opening)?;
            let mut volume = Self::assemble(opening)?;
            volume.ledger.trust.begin(LogMark::default(), None)?;
            volume.ledger.commit()?;
            Ok(volume)
        })
    }

    /// Opens a volume; shows again what a crashed session had shown.
    ///
    /// # Errors
    /// `WrongPassphrase`, `Unsupported`, `Tampered`, `RolledBack`, `Busy`.
    pub fn open(store: Arc<dyn Store>, passphrase: &Passphrase, open: OpenOptions) -> Result<Self> {
        open_as(&ENGINE, store, passphrase, open, Self::of)
    }

    /// Opens a volume whose header is read and unlocked.
    pub(super) fn of(opening: Opening<'_>) -> Result<Self> {
        let mut volume = Self::assemble(opening)?;
        volume.ledger.load()?;
        let records = volume.ledger.load_journal()?;
        if !records.is_empty() {
            volume.replay(records)?;
            volume.checkpoint()?;
        }
        Ok(volume)
    }

    fn assemble(mut opening: Opening<'_>) -> Result<Self> {
        let options = &opening.options;
        if options.pad || options.pace.is_some() {
            let why = "a volume on the pyramid engine has no --pad and no --pace";
            return Err(Error::Invalid(why.into()));
        }
        let memory_bytes =
            if options.memory_bytes == 0 { DEFAULT_MEMORY } else { options.memory_bytes };
        expect_memory(&config(&opening.header.parameters()), memory_bytes)?;
        let trust = Trust::take(opening.header.volume(), &mut opening.options)?;
        let ledger = Ledger::new(&opening, trust)?;
        Ok(Self { ledger, waiting: Waiting::default(), memory_bytes, replayed: 0, failed: None })
    }

    /// Serves operations, with their records and the merges that they make due. `writes` says that
    /// they are the oldest recorded writes; else they are reads.
    pub(super) fn serve(&mut self, ops: Vec<BlockOp>, writes: bool) -> Result<Vec<BlockAnswer>> {
        let (mut ops, mut answers) = (VecDeque::from(ops), Vec::new());
        while !ops.is_empty() {
            let ids: Vec<BlockId> = ops.iter().map(|op| op.id).collect();
            let round = self.ledger.engine.begin_round(&mut ops)?;
            let mut round = round.ok_or_else(|| Error::Closed("a round must wait".into()))?;
            let ids = &ids[..ids.len() - ops.len()];
            if ids.is_empty() {
                return Err(Error::Closed("a round of no asks".into()));
            }
            self.ledger.record_intent(round.intent().seed, writes, ids)?;
            self.ledger.run_round(&mut round)?;
            answers.append(&mut round.into_answers());
            self.merge_due()?;
        }
        Ok(answers)
    }

    /// Carries out the merges that are due.
    pub(super) fn merge_due(&mut self) -> Result<()> {
        while let Some(mut merge) = self.ledger.engine.begin_merge()? {
            self.ledger.run_merge(&mut merge)?;
        }
        Ok(())
    }

    /// Makes all accepted writes, and the root, durable.
    pub(super) fn record(&mut self) -> Result<()> {
        if self.waiting.is_synced() {
            return Ok(());
        }
        let config = self.ledger.engine.config();
        let writes = self.waiting.unsynced();
        let entries = writes.entries(config.blocks(), config.block_bytes);
        let entries = entries.ok_or_else(|| Error::Closed("a write does not fit".into()))?;
        self.ledger.record_sync(writes)?;
        self.waiting.recorded(entries);
        Ok(())
    }

    /// Carries out the oldest recorded writes, one round or a few.
    pub(super) fn carry_out(&mut self) -> Result<()> {
        let ops = self.waiting.take_logged(MOST_OPS);
        self.serve(ops, true).map(drop)
    }

    /// Carries out everything and commits: the journal is empty then.
    pub(super) fn checkpoint(&mut self) -> Result<()> {
        self.record()?;
        while self.waiting.has_logged() {
            self.carry_out()?;
        }
        self.ledger.commit()
    }

    /// Commits if the asks or the journal since the last time make it due.
    pub(super) fn commit_if_due(&mut self) -> Result<()> {
        let asks = self.ledger.asks_since() >= commit_asks(self.ledger.engine.config());
        if asks || self.ledger.journal_bytes() >= commit_journal(self.ledger.state_bytes()) {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// The tables: the engine's number of each, its object, and its range there.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u32, String, Range<u64>)> {
        let homes = self.ledger.engine.tables().map(|table| table.home);
        homes.filter_map(|home| {
            let (object, range) = self.ledger.place_of(home)?;
            Some((home.0, object, range))
        })
    }

    /// Reads and checks one of [`Self::places`].
    pub(crate) fn check_place(&mut self, home: u64) -> Result<()> {
        self.ledger.check_table(Home(u32::try_from(home).unwrap_or(u32::MAX)))
    }

    /// Information about the pyramid.
    pub fn pyramid_info(&self) -> PyramidInfo {
        let engine = &self.ledger.engine;
        let (read_per_ask, written_per_ask) = bytes_per_ask(engine.config());
        PyramidInfo {
            config: *engine.config(),
            asks: engine.asks(),
            live_blocks: engine.live_blocks(),
            stash_blocks: engine.stash_blocks().0,
            table_slots: engine.stored_slots(),
            table_bytes: self.ledger.table_bytes(),
            most_table_bytes: most_bytes(engine.config()),
            read_per_ask,
            written_per_ask,
        }
    }
}

/// A volume takes all of its space after a number of asks, whatever is in it. So the store must
/// have it.
fn expect_room(opening: &Opening<'_>) -> Result<()> {
    let most = most_bytes(&config(&opening.header.parameters()));
    match opening.store.free_bytes()? {
        Some(free) if free < most => {
            let why = format!("a full volume takes {most} bytes, and the store has {free}");
            Err(Error::Full(why))
        }
        _ => Ok(()),
    }
}

impl EngineVolume for PyramidVolume {
    fn known(&self) -> Known {
        self.ledger.trust.known()
    }

    /// By partition, each table as a whole.
    fn verify(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        self.checkpoint()?;
        let homes: Vec<_> = self.ledger.engine.tables().map(|table| table.home).collect();
        let count = homes.len() as u64;
        for (done, home) in (0..).zip(homes) {
            progress(done, count);
            self.ledger.check_table(home)?;
        }
        progress(count, count);
        Ok(count)
    }

    fn info(&self) -> Result<VolumeInfo> {
        let report = self.pyramid_info();
        Ok(VolumeInfo {
            live_blocks: Some(report.live_blocks),
            epoch: self.ledger.epoch(),
            memory_bytes: self.memory_bytes,
            replayed: self.replayed,
            verified: "table",
            report: Arc::new(report),
            ..VolumeInfo::of(&self.ledger.header, &ENGINE, &*self.ledger.store)?
        })
    }
}

impl Volume {
    /// The volume, if it is on the pyramid engine.
    pub fn pyramid(&mut self) -> Option<&mut PyramidVolume> {
        self.on()
    }
}
