//! Keeps what the storage was shown, for an audit.

use anyhow::{Context, Result};
use oblivio_audit::{Kind, Request, Rule, Trace};
use oblivio_volume::{OnShown, Shown, ShownKind};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A trace that grows while a volume is at work.
#[derive(Debug)]
pub struct Recorder {
    trace: Arc<Mutex<Trace>>,
    file: Option<File>,
    begun: Instant,
}

impl Recorder {
    /// Keeps the trace in memory.
    pub fn in_memory() -> Self {
        Self { trace: Arc::default(), file: None, begun: Instant::now() }
    }

    /// Writes the trace to a file in the end; a file that cannot be written fails now.
    pub fn to_file(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("the trace {}", path.display()))?;
        Ok(Self { file: Some(file), ..Self::in_memory() })
    }

    /// What the volume calls after each thing that its store was shown.
    pub fn callback(&self) -> OnShown {
        let (trace, begun) = (Arc::clone(&self.trace), self.begun);
        Box::new(move |shown: &Shown| {
            let mut trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
            if trace.requests.is_empty() {
                trace.depth = shown.depth;
            }
            let at = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            trace.requests.push(request(shown, at));
        })
    }

    /// The trace since the last call.
    pub fn take(&self) -> Trace {
        std::mem::take(&mut *self.trace.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes the file, if there is one.
    pub fn finish(mut self) -> Result<()> {
        let trace = self.take();
        match &mut self.file {
            Some(file) => Ok(file.write_all(trace.to_text().as_bytes())?),
            None => Ok(()),
        }
    }

    /// Writes the file, if there is one, however that ended which was recorded: what was shown was
    /// shown.
    pub fn finish_after<T>(recorder: Option<Self>, ended: Result<T>) -> Result<T> {
        let recorded = recorder.map_or(Ok(()), Self::finish);
        let value = ended?;
        recorded?;
        Ok(value)
    }
}

fn request(shown: &Shown, at: u64) -> Request {
    Request {
        kind: match shown.kind {
            ShownKind::Batch => Kind::Batch,
            ShownKind::Map => Kind::Map,
            ShownKind::Maintenance => Kind::Maintenance,
            ShownKind::Sync => Kind::Sync,
            ShownKind::Flush => Kind::Flush,
            ShownKind::Commit => Kind::Commit,
            ShownKind::Rule => Kind::Rule,
        },
        at,
        leaves: shown.leaves.clone(),
        scheduled: shown.scheduled,
        sweep: shown.sweep,
        depth: shown.depth,
        reads: shown.reads,
        writes: shown.writes,
        bytes_read: shown.bytes_read,
        bytes_written: shown.bytes_written,
        rule: shown.rule.as_ref().map(rule),
    }
}

fn rule(rule: &oblivio_volume::Rule) -> Rule {
    Rule {
        blocks: rule.blocks,
        slots: rule.slots,
        leaf_slots: rule.leaf_slots,
        floor: rule.floor,
        floor_slots: rule.floor_slots,
        cached: rule.cached,
        bucket_bytes: rule.bucket_bytes,
        slot_bytes: rule.slot_bytes,
        turn: rule.turn,
        flush_at: rule.flush_at,
        swept: rule.swept,
        stored: rule.stored.clone(),
        lacking: rule.lacking.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_audit::{Verdict, schedule};
    use oblivio_crypto::{KdfParams, Passphrase};
    use oblivio_engine::{Action, BlockId, BlockOp};
    use oblivio_store::MemoryStore;
    use oblivio_volume::tree::TreeVolume;
    use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions};

    /// So large that a commit in quiet moments comes in parts.
    #[test]
    fn what_quiet_moments_write_follows_from_what_is_public() {
        const BLOCKS: u64 = 2300;
        let recorder = Recorder::in_memory();
        let create =
            CreateOptions { block_bytes: 64 << 10, capacity_bytes: 1 << 30, kdf: KdfParams::TEST };
        let on_shown = Some(recorder.callback());
        let open = OpenOptions { memory_bytes: 256 << 20, on_shown, ..OpenOptions::default() };
        let store = Arc::new(MemoryStore::new());
        let mut volume = TreeVolume::create(store, &Passphrase::new("quiet"), create, open)
            .expect("an empty store");
        let op = |id, action| BlockOp { id: BlockId(id), action };
        let read = |ids: std::ops::Range<u64>| ids.map(|id| op(id, Action::Read)).collect();
        volume.reserve(BLOCKS).expect("room");
        let fill = |id: u64| op(id, Action::Write(id.to_le_bytes().to_vec()));
        volume.access((0..BLOCKS).map(fill).collect()).expect("room");
        volume.commit().expect("memory");
        volume.access(read(0..90)).expect("memory");
        volume.discard(&(300..BLOCKS).collect::<Vec<_>>()).expect("no access");
        while volume.idle().expect("memory").is_some() {}
        volume.access(read(0..300)).expect("memory");
        let trace = recorder.take();
        let parts = trace.requests.iter().filter(|r| r.kind == Kind::Flush);
        assert!(parts.count() > 0);
        assert!(trace.requests.iter().any(|r| r.kind == Kind::Maintenance));
        let report = schedule::judge(&trace, None, 1e-6);
        assert_eq!(report.verdict, Verdict::Pass, "{report:#?}");
    }
}
