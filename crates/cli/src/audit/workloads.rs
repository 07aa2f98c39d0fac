//! The audit's own volume, in memory, and its workloads.
//!
//! Five workloads request one block at a time. The others request batches, some of whose blocks are
//! equal or absent. They also remove, sync, close, open and break off. They differ in which blocks
//! they use, and in nothing public.

use crate::recorder::Recorder;
use anyhow::Result;
use oblivio_audit::observer::TraceObserver;
use oblivio_audit::planted::{SplitMix64, Workload};
use oblivio_audit::record::RecordedSession;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::MemoryStore;
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, Volume};
use std::sync::Arc;

/// Small, for speed: what the store sees does not depend on block contents.
const BLOCK_BYTES: usize = 512;
/// Small too: most of the tree must lie outside memory.
const MEMORY_BYTES: usize = 64 << 10;
/// Accesses between two updates of the progress bar.
const STRIDE: usize = 512;
/// Operations of a batch, and memory for it where the tree is as small as possible.
const BATCH: usize = 4;
const BATCH_MEMORY: usize = 512 << 10;
/// The last batches of each `CRASH_EVERY` are not synced, then the session breaks off. How many
/// blocks are redone after a crash follows from how many different ones were synced, which is
/// public.
const CRASH_EVERY: u64 = 512;
const UNSYNCED: u64 = 64;

/// What was seen of a workload, and how many requests came before it to fill the volume.
pub struct Worked {
    pub sight: TraceObserver,
    pub filling: usize,
}

/// A workload in batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixed {
    /// Reads and writes of any blocks.
    Any,
    /// Each batch asks for one block again and again.
    Duplicates,
    /// Reads of blocks that do not exist; removals and writes are scattered.
    Absent,
    /// Always the same few blocks, side by side.
    Few,
}

impl Mixed {
    /// All of them.
    pub const ALL: [Mixed; 4] = [Mixed::Any, Mixed::Duplicates, Mixed::Absent, Mixed::Few];

    /// Its name, in words.
    pub fn name(self) -> &'static str {
        match self {
            Mixed::Any => "batches of any blocks",
            Mixed::Duplicates => "batches of one block each",
            Mixed::Absent => "batches of absent blocks",
            Mixed::Few => "batches of a few blocks",
        }
    }
}

/// A volume, its store and its recorder.
struct Bench {
    store: Arc<MemoryStore>,
    recorder: Recorder,
    volume: Volume,
    blocks: u64,
    memory: usize,
}

/// Runs a workload on a fresh volume, one request per access, and keeps what its storage saw.
pub fn run(
    workload: Workload,
    blocks: u64,
    accesses: usize,
    mut progress: impl FnMut(u64),
) -> Result<Worked> {
    let mut bench = Bench::filled(blocks, blocks, MEMORY_BYTES)?;
    let filling = bench.recorder.requests();
    let mut rng = SplitMix64::new(accesses as u64);
    let wanted = workload.blocks(blocks, accesses, &mut rng);
    for part in wanted.chunks(STRIDE) {
        for &block in part {
            // Half are writes: the store must not tell them from reads.
            let action = match rng.chance(0.5) {
                true => Action::Read,
                false => Action::Patch { offset: 0, bytes: block.to_le_bytes().to_vec() },
            };
            bench.volume.access(vec![op(block, action)])?;
        }
        progress(part.len() as u64);
    }
    Ok(Worked { sight: bench.recorder.take(), filling })
}

/// Runs a workload in batches, with everything that happens to a volume in between.
pub fn run_mixed(
    mixed: Mixed,
    blocks: u64,
    accesses: usize,
    mut progress: impl FnMut(u64),
) -> Result<Worked> {
    let present = blocks - blocks / 8;
    let memory = BATCH_MEMORY * (blocks / 1024).max(1) as usize;
    let mut bench = Bench::filled(blocks, present, memory)?;
    let filling = bench.recorder.requests();
    // One for the operations, one for their blocks.
    let (mut script, mut choice) =
        (SplitMix64::new(accesses as u64), SplitMix64::new(mixed as u64));
    for turn in 0..(accesses / BATCH) as u64 {
        let written = script.below(BATCH as u64 + 1) as usize;
        bench.batch(mixed, present, written, &mut choice)?;
        let until_crash = CRASH_EVERY - 1 - turn % CRASH_EVERY;
        match turn % 64 {
            63 if until_crash == 0 => bench = bench.reopened(true)?,
            63 if until_crash <= UNSYNCED || turn % 256 == 255 => bench = bench.reopened(false)?,
            17 | 49 if until_crash >= UNSYNCED => bench.volume.commit()?,
            31 if until_crash >= UNSYNCED => {
                bench.remove_and_bring_back(mixed, present, &mut choice)?;
            }
            _ => {}
        }
        if turn % STRIDE as u64 == 0 {
            progress(BATCH as u64);
        }
    }
    bench.volume.finish()?;
    Ok(Worked { sight: bench.recorder.take(), filling })
}

fn op(id: u64, action: Action) -> BlockOp {
    BlockOp { id: BlockId(id), action }
}

fn open(recorder: &Recorder, memory_bytes: usize) -> OpenOptions {
    let on_shown = Some(recorder.callback());
    OpenOptions { memory_bytes, on_shown, ..OpenOptions::default() }
}

impl Bench {
    /// A volume of `present` blocks in which every bucket was written. What it shows from then on
    /// does not depend on how it was filled.
    fn filled(blocks: u64, present: u64, memory: usize) -> Result<Self> {
        let create = CreateOptions {
            block_bytes: BLOCK_BYTES,
            capacity_bytes: blocks.saturating_mul(BLOCK_BYTES as u64),
            kdf: KdfParams::TEST,
        };
        let recorder = Recorder::in_memory();
        let store = Arc::new(MemoryStore::new());
        recorder.begin(RecordedSession::default());
        let over = Arc::new(recorder.over(Arc::clone(&store)));
        let mut volume =
            Volume::create(over, &Passphrase::new("audit"), create, open(&recorder, memory))?;
        volume.reserve(blocks)?;
        let write = |id: u64| op(id, Action::Write(id.to_le_bytes().to_vec()));
        volume.access((0..present).map(write).collect())?;
        // The schedule has gone round once when every leaf had its turn.
        let round = 4u64 << volume.info()?.report.number("depth").unwrap_or(0);
        volume.access((0..round).map(|at| op(at % present, Action::Read)).collect())?;
        volume.commit()?;
        Ok(Self { store, recorder, volume, blocks, memory })
    }

    fn batch(
        &mut self,
        mixed: Mixed,
        present: u64,
        written: usize,
        choice: &mut SplitMix64,
    ) -> Result<()> {
        let one = choice.below(present);
        let block = |at: usize, choice: &mut SplitMix64| match mixed {
            Mixed::Any => choice.below(present),
            Mixed::Duplicates => one,
            // Writes go to existing blocks; otherwise the size class would change.
            Mixed::Absent if at < written => choice.below(present),
            Mixed::Absent => present + choice.below(self.blocks - present),
            Mixed::Few => at as u64 % 3,
        };
        let action = |at: usize| match at < written {
            true => Action::Patch { offset: 0, bytes: vec![at as u8; 8] },
            false => Action::Read,
        };
        let ops = (0..BATCH).map(|at| op(block(at, choice), action(at))).collect();
        self.volume.access(ops)?;
        Ok(())
    }

    /// Removes some blocks, commits, and writes them again.
    fn remove_and_bring_back(
        &mut self,
        mixed: Mixed,
        present: u64,
        choice: &mut SplitMix64,
    ) -> Result<()> {
        let first = choice.below(present - BATCH as u64);
        let stride = if mixed == Mixed::Absent { present / BATCH as u64 } else { 1 };
        let ids: Vec<u64> = (0..BATCH as u64).map(|at| (first + at * stride) % present).collect();
        self.volume.discard(&ids)?;
        self.volume.commit()?;
        let write = |&id: &u64| op(id, Action::Write(vec![id as u8; 8]));
        self.volume.access(ids.iter().map(write).collect())?;
        Ok(())
    }

    /// The volume in a new session, after one that ended well or broke off.
    fn reopened(mut self, broken: bool) -> Result<Self> {
        if !broken {
            self.volume.finish()?;
        }
        drop(self.volume);
        self.recorder.begin(RecordedSession::default());
        let over = Arc::new(self.recorder.over(Arc::clone(&self.store)));
        let options = open(&self.recorder, self.memory);
        let volume = Volume::open(over, &Passphrase::new("audit"), options)?;
        Ok(Self { volume, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_audit::AuditVerdict;
    use oblivio_audit::observer::{compare_records, judge_records};
    use oblivio_testkit::campaign::{scaled_len, seed};

    const BLOCKS: u64 = 1024;

    #[test]
    fn whatever_is_in_the_batches_the_store_sees_the_same() {
        let run = |mixed| run_mixed(mixed, BLOCKS, 9000, |_| ()).expect("memory").sight;
        let sights = Mixed::ALL.map(run);
        for (mixed, sight) in Mixed::ALL.iter().zip(&sights) {
            let report = judge_records(sight, 1e-6);
            assert_eq!(report.verdict, AuditVerdict::Pass, "{mixed:?}: {report}");
            assert!(sight.sessions.len() > 3, "{mixed:?}: it was opened again");
            assert!(sight.sessions.iter().any(|seen| seen.confirmed > 0), "{mixed:?}: a crash");
        }
        for other in &sights[1..] {
            let report = compare_records(&sights[0], other, 1e-6);
            assert_eq!(report.verdict, AuditVerdict::Pass, "{report}");
        }
    }

    /// See `just audit-honest`.
    #[test]
    #[ignore = "long: whole volumes under the audit"]
    fn long_honest_runs_raise_no_alarm() {
        let (accesses, first) = (scaled_len(50_000), seed(0) as usize);
        for run in first..first + scaled_len(2) {
            let (single, count) = (Workload::ALL.len(), accesses + 8 * run);
            let way = run % (single + Mixed::ALL.len());
            let (name, worked) = match Mixed::ALL.get(way.wrapping_sub(single)) {
                Some(&mixed) => (mixed.name(), run_mixed(mixed, BLOCKS, count, |_| ())),
                None => (
                    Workload::ALL[way].name(),
                    super::run(Workload::ALL[way], BLOCKS, count, |_| ()),
                ),
            };
            let sight = worked.expect("memory").sight;
            let report = judge_records(&sight, 1e-6);
            let least = report.findings.iter().map(|finding| finding.p_value).fold(1.0, f64::min);
            println!(
                "run {run}, {name}: {} accesses, {} sessions, p {least:.3}",
                report.accesses,
                sight.sessions.len()
            );
            for power in &report.power {
                println!("  could have found {}", power.what);
            }
            assert_eq!(report.verdict, AuditVerdict::Pass, "{report}");
        }
    }
}
