//! A sequential volume: the engine's disk and log in a store, and the work between them.

use super::DISK_OBJECT;
use super::header::{SequentialHeader, check, layout};
use super::info::{LaneInfo, SequentialInfo};
use super::lanes::{LaneForm, LaneLogs, LaneSpace, Lanes, disks, unlock};
use super::log::{LOG_OBJECT, LogPosition, RingLog};
use super::options::SequentialOptions;
use super::parity::Parity;
use super::quantum::{QuantumEntry, QuantumForm};
use super::reads::DiskReads;
use super::shared::Shared;
use super::state_places::{STATE_OBJECTS, StateForm, StatePlaces};
use crate::around::Repeats;
use crate::damage::{DamagedPlace, Inspected};
use crate::engine::{Creation, EngineEntry, EngineVolume, Making, Opening, VolumeInfo, make};
use crate::header::Header;
use crate::lane::{LaneSync, LaneWait, OpenLane};
use crate::options::{OpenOptions, Pace};
use crate::pacer::Pacer;
use crate::scrub::Inspection;
use crate::trust::{Act, ComputerId, Known, Trust};
use crate::{Error, Result};
use oblivio_crypto::{Passphrase, Sealer, VolumeId};
use oblivio_engine::sequential::{Sequential, SequentialKeys};
use oblivio_engine::{BlockId, BlockOutcome};
use oblivio_store::{Hint, Slots};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// The default memory for the caller's caches.
const MEMORY: usize = 128 << 20;

/// What the store may keep of each object when memory is little.
const LITTLE_KEPT: usize = 1 << 20;

/// The objects of which any is read to tell damage from an outage.
const PROBED: [&str; 4] = [STATE_OBJECTS[0], STATE_OBJECTS[1], LOG_OBJECT, DISK_OBJECT];

/// The entry of the sequential engine.
pub static ENGINE: EngineEntry = EngineEntry {
    number: 2,
    name: "sequential",
    hides_reads: false,
    resizes: false,
    repairs: true,
    check,
    capacity_blocks: |parameters| layout(parameters).engine.blocks,
    lanes: Some(unlock),
    open: |opening| Ok(Box::new(SequentialVolume::of(opening.slots()?)?)),
    making: Some(Making {
        fixed_objects: |new| SequentialOptions::from(new).objects().map(Some),
        cost: |new, _| SequentialOptions::from(new).cost(),
        create: |new, Creation { store, passphrase, lanes, open, progress }| {
            let options = SequentialOptions::from(new);
            let (parameters, store) = (options.parameters()?, store.over()?);
            let made = make(&ENGINE, store, passphrase, (&parameters, new.kdf), open, |opening| {
                SequentialVolume::made(opening.slots()?, &options, lanes, progress)
            })?;
            Ok(Box::new(made))
        },
    }),
};

/// The newest state.
#[derive(Default)]
pub(super) struct Newest {
    /// Its number and identity.
    pub current: (u64, [u8; 32]),
    /// The identity that it names of the lanes' states.
    pub lanes: Option<[u8; 32]>,
    /// The end of the log when it was written.
    pub state_end: u64,
    /// Where the logs of the previous turn and of this one begin.
    pub turns: [LogPosition; 2],
}

/// What this session did.
#[derive(Default)]
pub(super) struct Session {
    /// The writer of the log's end, if known.
    pub writer: Option<ComputerId>,
    /// Whether the log names this session as its writer.
    pub writing: bool,
    /// The end of the log that the opening found.
    pub found_end: u64,
    /// Whether what is stored is what a session's end would leave.
    pub clean: bool,
    /// Whether the log is being replayed.
    pub replaying: bool,
    /// Writes replayed.
    pub replayed: u64,
    /// Copies of the newest state that were damaged.
    pub damaged: Vec<DamagedPlace>,
    /// Time of the last durable note of a state.
    pub(super) noted: Option<Duration>,
    /// The times of cover, if there is any.
    pub(super) cover: Option<Pacer>,
}

/// An open volume on the sequential engine.
pub struct SequentialVolume {
    pub(super) shared: Arc<Shared>,
    pub(super) volume: VolumeId,
    pub(super) stored_header: Header,
    pub(super) header: SequentialHeader,
    pub(super) log: RingLog,
    /// The lanes beside it, if it has any.
    pub(super) lanes: Option<Lanes>,
    pub(super) newest: Newest,
    pub(super) session: Session,
    pub(super) states: StatePlaces,
    pub(super) times_sealer: Sealer,
    pub(super) trust: Trust,
    pub(super) root: Vec<u8>,
    pub(super) options: OpenOptions,
}

impl SequentialVolume {
    /// The parts of an empty volume.
    pub(super) fn assemble(opening: Opening<'_, Arc<dyn Slots>>) -> Result<Self> {
        let Opening { store, header, master, mut options, .. } = opening;
        if options.pad || options.pace.is_some() {
            let why = "padding and pacing hide reads; nobody sees those of this volume";
            return Err(Error::Invalid(why.into()));
        }
        let cover = options.cover.map(|interval| Pace { interval, batch: 1 });
        let cover = cover.map(|pace| Pacer::new(pace, &*options.environment.clock));
        let (volume, layout) = (header.volume(), layout(&header.parameters()));
        if layout.engine.time_pages > 0 {
            // Its map is on the disk because memory is little.
            store.hint(Hint::Keep(LITTLE_KEPT));
        }
        let randomness = &options.environment.randomness.clone();
        let keys = SequentialKeys::of_volume(master, volume, randomness);
        let engine = Sequential::new(layout.engine, keys)?;
        let sealer = |root| Sealer::new(root, Box::new(randomness.clone())).hiding();
        let (log, state) = (sealer(master.intent_root(volume)), sealer(master.state_root(volume)));
        let states = StatePlaces::new(volume, state, StateForm::of(&layout, engine.layout()));
        let (reads, parity) =
            (DiskReads::of(&*store, &PROBED), Parity::new(master.parity_prf(volume)));
        let lanes = LaneForm::of(&layout)?;
        let apart = &options.environment.lanes.clone();
        let lane_logs = lanes.as_ref().map(|form| LaneLogs::of(form, apart));
        let form = (QuantumForm::of(&layout), layout.log_quanta);
        let mut trust = Trust::take(volume, &mut options)?;
        trust.limit_rows(states.rows());
        Ok(Self {
            log: RingLog::new(volume, (log, parity), reads.clone(), form, lane_logs),
            lanes: lanes.map(|form| Lanes::of(form, master.duplicate(), apart)),
            states,
            times_sealer: sealer(master.times_root(volume)),
            shared: Arc::new(Shared::new(store, reads, engine, None)),
            volume,
            stored_header: header.clone(),
            header: layout,
            newest: Newest::default(),
            session: Session { cover, ..Session::default() },
            trust,
            root: Vec::new(),
            options,
        })
    }

    /// The engine, briefly ([`Shared::engine`]).
    pub(super) fn engine(&self) -> MutexGuard<'_, Sequential> {
        self.shared.engine()
    }

    /// Runs `work` unless an earlier failure closed this handle; a failure closes it.
    pub(super) fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.shared.expect_open()?;
        let result = work(self);
        self.shared.judged(result)
    }

    /// Reads blocks. A lost one fails by itself.
    pub(super) fn read_blocks(&self, blocks: &[BlockId]) -> Result<Vec<BlockOutcome>> {
        let mut outcomes = Vec::with_capacity(blocks.len());
        self.shared.read_blocks(blocks, &mut |_, block| {
            outcomes.push(block.map(|block| block.map(<[u8]>::to_vec)));
        })?;
        Ok(outcomes)
    }

    /// Writes a block, or makes it absent: to the log, to the engine, with whatever is due then.
    pub(super) fn write_block(&mut self, block: BlockId, content: Option<Vec<u8>>) -> Result<()> {
        self.begin_writing()?;
        let entry = match &content {
            Some(content) => QuantumEntry::Write(block, content),
            None => QuantumEntry::Discard(block),
        };
        let number = self.engine().writes();
        self.log.add(&*self.shared.store, number, entry)?;
        self.take(block, content)?;
        self.pad_if_long()
    }

    /// Counts writes of nothing, in the log too, up to the end of the turn at most: they look like
    /// any other. Gives how many there were.
    pub(super) fn write_empty(&mut self, most: u64) -> Result<u64> {
        let (number, turn) = {
            let engine = self.engine();
            let schedule = engine.layout().schedule();
            (engine.writes(), schedule.writes_per_flush() * schedule.queue_buckets())
        };
        let count = most.min(turn - number % turn);
        self.begin_writing()?;
        self.log.add(&*self.shared.store, number, QuantumEntry::Padding(count))?;
        self.pad(count)?;
        Ok(count)
    }

    /// Gives a write to the engine, and makes the flush that is due then.
    pub(super) fn take(&mut self, block: BlockId, content: Option<Vec<u8>>) -> Result<()> {
        let mut engine = self.engine();
        let taken = match content {
            Some(content) => engine.write(block, content),
            None => engine.discard(block),
        };
        drop(engine);
        taken?;
        self.flush_if_due()
    }

    /// Makes the due flush, if any; the last one of a turn ends it.
    fn flush_if_due(&mut self) -> Result<()> {
        if !self.engine().flush_due() {
            return Ok(());
        }
        self.flush()?;
        let ends_turn = {
            let engine = self.engine();
            engine.flushes().0.is_multiple_of(engine.layout().schedule().queue_buckets())
        };
        if ends_turn { self.end_turn() } else { Ok(()) }
    }

    /// A flush, and that of the lanes, on all threads. The seal overlaps with the prefetch for the
    /// next flushes.
    fn flush(&mut self) -> Result<()> {
        let (number, mut flushing) = {
            let mut engine = self.engine();
            (engine.flushes(), engine.begin_flush()?)
        };
        let beside = match &mut self.lanes {
            Some(lanes) => lanes.begin_flush(&*self.shared.store, &self.shared.reads, number)?,
            None => Vec::new(),
        };
        self.shared.carry_out(&mut flushing, beside)?;
        self.lanes.as_ref().map_or(Ok(()), Lanes::end_flush)
    }

    /// Makes durable what the state names, and then the state itself.
    fn end_turn(&mut self) -> Result<()> {
        self.log.close()?;
        self.log.hand_over(&*self.shared.store)?;
        self.shared.store.sync(&[disks(&self.lanes), self.log.objects()].concat())?;
        self.log.synced();
        self.newest.turns = [self.newest.turns[1], self.log.end()];
        self.write_state(None)
    }

    /// The log must hold two turns. A turn whose syncs use up its half is padded to its end.
    pub(super) fn pad_if_long(&mut self) -> Result<()> {
        if self.log.since(self.newest.turns[1]) + 2 < self.header.log_quanta / 2 {
            return Ok(());
        }
        self.write_empty(u64::MAX).map(drop)
    }

    /// Makes `count` empty writes.
    pub(super) fn pad(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            self.engine().pad()?;
            self.flush_if_due()?;
        }
        Ok(())
    }

    /// Makes everything accepted so far durable.
    pub(super) fn sync(&mut self) -> Result<()> {
        if !self.log.waits() {
            return Ok(());
        }
        self.begin_writing()?;
        self.log.close()?;
        self.log.sync(&*self.shared.store)?;
        self.trust.logged(self.log.end().into(), self.newest_act())?;
        self.pad_if_long()
    }

    /// The newest act that led here. Its number is the end of the log: its writer did that many
    /// acts, others' included.
    pub(super) fn newest_act(&self) -> Option<Act> {
        let number = self.log.end().number;
        self.session.writer.map(|computer| Act { computer, number })
    }

    /// Another computer writes the log from this quantum on; the previous writer stays known.
    pub(super) fn hand_over(&mut self, to: ComputerId, quantum: u64) {
        if let Some(computer) = self.session.writer.replace(to) {
            self.trust.absorb(Act { computer, number: quantum });
        }
    }

    /// Names this computer in the log before this session writes to it.
    pub(super) fn begin_writing(&mut self) -> Result<()> {
        if self.session.writing {
            return Ok(());
        }
        self.session.writing = true;
        self.run_shut_lanes()?;
        let lacks_parity = self.log.lacks_parity();
        self.log.take_parity();
        let names = self.states.rows() > 0;
        let computer = if names { Some(self.trust.go_on()?) } else { None };
        if lacks_parity || names && self.session.writer.is_none() {
            // What older versions cannot read begins with a state of its own version.
            self.session.writer = self.session.writer.or(computer);
            self.shared.store.sync(&disks(&self.lanes))?;
            self.write_state(None)?;
        }
        let Some(computer) = computer else { return Ok(()) };
        self.hand_over(computer, self.log.end().number);
        let number = self.engine().writes();
        self.log.add(&*self.shared.store, number, QuantumEntry::Session(computer))
    }

    /// Where the log that was found would go on, if it went on: an object, an offset in it, bytes.
    pub(crate) fn found_end_place(&self) -> (&'static str, u64, usize) {
        let (offset, bytes) = self.log.place_of(self.session.found_end);
        (LOG_OBJECT, offset, bytes)
    }

    /// Writes so far, padding included, and flushes: public counters.
    pub(crate) fn counted(&self) -> (u64, u64) {
        let engine = self.engine();
        (engine.writes(), engine.flushes().0)
    }

    /// The memory budget for the caller's caches.
    pub(super) fn memory_bytes(&self) -> usize {
        if self.options.memory_bytes == 0 { MEMORY } else { self.options.memory_bytes }
    }

    /// Information about the engine.
    pub fn sequential_info(&self) -> SequentialInfo {
        let engine = self.engine();
        let layout = engine.layout();
        let lanes = self.lanes.as_ref().map(|lanes| &lanes.form).map(|form| LaneInfo {
            count: form.parameters.count,
            bytes: form.layout.schedule().blocks() * self.header.engine.block_bytes as u64,
            grace_bytes: form.layout.grace() * form.flush_bytes,
            written_per_byte: form.written_per_byte(&self.header),
        });
        SequentialInfo {
            lanes,
            fan_outs: self.header.engine.fan_outs(),
            queue_bytes: self.header.engine.queue_blocks() * self.header.engine.block_bytes as u64,
            log_bytes: RingLog::object_bytes(QuantumForm::of(&self.header), self.header.log_quanta),
            disk_bytes: layout.bytes(),
            written_per_byte: layout.cost().written,
            map_on_disk: self.header.engine.time_pages > 0,
            flushes: engine.flushes().0,
            writes: engine.writes(),
        }
    }
}

impl EngineVolume for SequentialVolume {
    fn known(&self) -> Known {
        self.trust.known()
    }

    /// In the order of the blocks' addresses.
    fn inspect(&mut self, inspection: Inspection<'_>) -> Result<Inspected> {
        self.read_all(inspection)
    }

    fn has_quiet_scrubs(&self) -> bool {
        true
    }

    fn repeats(&self) -> Repeats {
        self.shared.reads.repeats().clone()
    }

    fn repair(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.guarded(|volume| volume.renew(progress))
    }

    fn lane(&mut self, number: u8, wait: LaneWait) -> Option<OpenLane> {
        let lane = self.lanes.as_ref()?.lane(number)?;
        let space = Box::new(LaneSpace::of(lane, wait));
        Some(OpenLane { space, sync: LaneSync::of(Arc::clone(lane) as _) })
    }

    fn give_lane(&mut self, number: u8, passphrase: &Passphrase) -> Result<()> {
        self.shared.expect_open()?;
        self.give(number, passphrase)
    }

    fn damaged(&self) -> Vec<DamagedPlace> {
        [self.session.damaged.clone(), self.log.damaged()].concat()
    }

    fn info(&self) -> Result<VolumeInfo> {
        let info = VolumeInfo {
            epoch: self.newest.current.0,
            memory_bytes: self.memory_bytes(),
            replayed: self.session.replayed,
            ..VolumeInfo::of(&self.stored_header, &ENGINE, &*self.shared.store)?
        };
        Ok(info.reporting(|info| self.sequential_info().report(info, self.engine().layout())))
    }
}
