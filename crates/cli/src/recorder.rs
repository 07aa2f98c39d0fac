//! Records what the storage was asked, call by call, and what the volume reports of it, for an
//! audit.

use crate::args::OpenArgs;
use anyhow::{Context, Result};
use oblivio_audit::observer::{Observer, TraceObserver};
use oblivio_audit::record::{
    RecordLine, RecordWriter, RecordedAct, RecordedCall, RecordedSession, VolumeLine,
};
use oblivio_audit::{RequestKind, TraceLogRule, TraceRequest, TraceRule, TraceWindowRule};
use oblivio_store::record::{CallKind, StoreEvent};
use oblivio_store::{AnyStore, Objects, RecordStore, layered};
use oblivio_volume::{OnShown, Shown, ShownKind};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Where lines go; only the call under way is kept.
enum Sink {
    /// Judged at once.
    Judge(Box<Observer>),
    File(RecordWriter<BufWriter<File>>),
}

struct Recording {
    sink: Sink,
    /// The call under way, with its number in the store.
    call: Option<(u64, RecordedCall)>,
    /// Calls of this session so far.
    calls: u64,
    /// The last of them: number in the store, number here.
    lately: [(u64, u64); 4],
    /// Why lines are lost, if they are.
    failed: Option<io::Error>,
}

/// The growing record of a working volume.
#[derive(Clone)]
pub struct Recorder {
    recording: Arc<Mutex<Recording>>,
    begun: Instant,
}

impl Recording {
    fn new(sink: Sink) -> Self {
        Self { sink, call: None, calls: 0, lately: [(u64::MAX, 0); 4], failed: None }
    }

    fn line(&mut self, line: &RecordLine) {
        match &mut self.sink {
            Sink::Judge(observer) => observer.see(line),
            Sink::File(_) if self.failed.is_some() => {}
            Sink::File(writer) => self.failed = writer.write(line).err(),
        }
    }

    /// Writes the call under way: it is complete.
    fn settle(&mut self) {
        if let Some((number, call)) = self.call.take() {
            self.lately.rotate_right(1);
            self.lately[0] = (number, self.calls);
            self.calls += 1;
            self.line(&RecordLine::Call(call));
        }
    }

    fn say(&mut self, line: &RecordLine) {
        self.settle();
        self.line(line);
    }

    /// Takes in an event; the events of one call are consecutive.
    fn see(&mut self, event: &StoreEvent, at: u64) {
        let Some(act) = act(event.op) else {
            self.settle();
            let here = self.lately.iter().find(|(number, _)| *number == event.call);
            if let Some(&(_, number)) = here {
                self.line(&RecordLine::Failed(number));
            }
            return;
        };
        if self.call.as_ref().is_none_or(|(number, _)| *number != event.call) {
            self.settle();
        }
        let (_, call) = self.call.get_or_insert_with(|| (event.call, RecordedCall::new(act, at)));
        call.add(&event.object, event.offset, event.len);
    }
}

/// The act of a request; `None` for its result.
fn act(op: CallKind) -> Option<RecordedAct> {
    Some(match op {
        CallKind::Read => RecordedAct::Read,
        CallKind::Write => RecordedAct::Write,
        CallKind::Sync => RecordedAct::Sync,
        CallKind::Put => RecordedAct::Put,
        CallKind::Truncate => RecordedAct::Truncate,
        CallKind::Allocate => RecordedAct::Allocate,
        CallKind::Discard => RecordedAct::Discard,
        CallKind::Delete => RecordedAct::Delete,
        CallKind::Len => RecordedAct::Len,
        CallKind::List => RecordedAct::List,
        CallKind::Lock => RecordedAct::Lock,
        CallKind::Free => RecordedAct::Free,
        CallKind::ExpectReads => RecordedAct::ExpectReads,
        CallKind::MayKeep => RecordedAct::MayKeep,
        CallKind::MayRoundUp => RecordedAct::MayRoundUp,
        CallKind::Failed => return None,
    })
}

impl Recorder {
    /// Judges events at once and keeps only what that needs.
    pub fn in_memory() -> Self {
        Self::of_sink(Sink::Judge(Box::default()))
    }

    fn of_sink(sink: Sink) -> Self {
        Self { recording: Arc::new(Mutex::new(Recording::new(sink))), begun: Instant::now() }
    }

    /// The record that the options ask for: a session in a file. Fails now if the file cannot be
    /// written.
    pub fn of(args: &OpenArgs) -> Result<Option<Self>> {
        let Some(path) = &args.trace_out else { return Ok(None) };
        let recorder = Self::to_file(path)?;
        let OpenArgs { pad, pace, accept_rollback, .. } = *args;
        recorder.begin(RecordedSession { pad, pace, accept_rollback });
        Ok(Some(recorder))
    }

    /// Writes lines to a file as they come.
    fn to_file(path: &Path) -> Result<Self> {
        let what = || format!("the trace {}", path.display());
        let file = File::create(path).with_context(what)?;
        let writer = RecordWriter::new(BufWriter::new(file)).with_context(what)?;
        Ok(Self::of_sink(Sink::File(writer)))
    }

    /// Notes the beginning of a session.
    pub fn begin(&self, session: RecordedSession) {
        let mut recording = self.recording();
        recording.say(&RecordLine::Session(session));
        recording.calls = 0;
    }

    /// Notes which volume the session is of.
    pub fn volume(&self, id: String, engine: &str) {
        self.recording().say(&RecordLine::Volume(VolumeLine { id, engine: engine.into() }));
    }

    /// The store under the recorder, which must lie right over what an adversary sees.
    pub fn over<S: Objects>(&self, store: S) -> RecordStore<S> {
        let (recording, begun) = (Arc::clone(&self.recording), self.begun);
        let see = move |event: &StoreEvent| lock(&recording).see(event, micros(begun));
        RecordStore::watching(store, see).whole()
    }

    /// The store under the recorder, if there is one.
    pub fn under(store: AnyStore, recorder: Option<&Self>) -> AnyStore {
        match recorder {
            Some(recorder) => layered!(store, below => recorder.over(below)),
            None => store,
        }
    }

    /// The callback by which the volume reports each thing that its store was shown.
    pub fn callback(&self) -> OnShown {
        let (recording, begun) = (Arc::clone(&self.recording), self.begun);
        Box::new(move |shown: &Shown| {
            let said = request(shown, micros(begun));
            lock(&recording).say(&RecordLine::Said(Box::new(said)));
        })
    }

    /// What was seen since the last call; empty for a record in a file.
    pub fn take(&self) -> TraceObserver {
        let mut recording = self.recording();
        recording.settle();
        match &mut recording.sink {
            Sink::Judge(observer) => std::mem::take(&mut **observer).finish(),
            Sink::File(_) => TraceObserver::default(),
        }
    }

    /// Requests of the current session so far; 0 for a record in a file.
    pub fn requests(&self) -> usize {
        match &self.recording().sink {
            Sink::Judge(observer) => observer.requests(),
            Sink::File(_) => 0,
        }
    }

    /// Writes the rest to the file, if there is one.
    pub fn finish(self) -> Result<()> {
        let mut recording = self.recording();
        recording.settle();
        let failed = recording.failed.take();
        match (&mut recording.sink, failed) {
            (Sink::File(_), Some(error)) => Err(error).context("the trace"),
            (Sink::File(writer), None) => writer.flush().context("the trace"),
            (Sink::Judge(_), _) => Ok(()),
        }
    }

    /// Writes the file, if there is one, whatever the session's outcome: the store has seen it.
    pub fn finish_after<T>(recorder: Option<Self>, ended: Result<T>) -> Result<T> {
        let recorded = recorder.map_or(Ok(()), Self::finish);
        let value = ended?;
        recorded?;
        Ok(value)
    }

    fn recording(&self) -> MutexGuard<'_, Recording> {
        lock(&self.recording)
    }
}

fn lock(recording: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

fn micros(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX)
}

fn request(shown: &Shown, at: u64) -> TraceRequest {
    TraceRequest {
        kind: match shown.kind {
            ShownKind::Batch => RequestKind::Batch,
            ShownKind::Map => RequestKind::Map,
            ShownKind::Maintenance => RequestKind::Maintenance,
            ShownKind::Repair => RequestKind::Repair,
            ShownKind::Sync => RequestKind::Sync,
            ShownKind::Flush => RequestKind::Flush,
            ShownKind::Commit => RequestKind::Commit,
            ShownKind::Rule => RequestKind::Rule,
        },
        at,
        leaves: shown.leaves.clone(),
        scheduled: shown.scheduled,
        sweep: shown.sweep,
        depth: shown.depth,
        reads: shown.reads,
        writes: shown.writes,
        entries: shown.entries,
        bytes_read: shown.bytes_read,
        bytes_written: shown.bytes_written,
        rule: shown.rule.as_ref().map(rule),
    }
}

fn rule(rule: &oblivio_volume::Rule) -> TraceRule {
    TraceRule {
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
        places: rule.places.clone(),
        ahead: rule.ahead,
        requests: rule.requests,
        log: rule.log.as_ref().map(log),
        windows: rule.windows.as_ref().map(windows),
    }
}

fn log(rule: &oblivio_volume::LogRule) -> TraceLogRule {
    TraceLogRule {
        buckets: rule.buckets,
        places: rule.places,
        next: rule.next,
        owed: rule.owed,
        entry_bytes: rule.entry_bytes,
        slot_bytes: rule.slot_bytes,
        changed: rule.changed.clone(),
    }
}

fn windows(rule: &oblivio_volume::WindowRule) -> TraceWindowRule {
    TraceWindowRule {
        session: rule.session,
        every: rule.every,
        log_turns: rule.log_turns,
        pool_levels: rule.pool_levels,
        exclusive: rule.exclusive,
        uncached: rule.uncached,
        windows: rule.windows,
        left: rule.left,
        commits: rule.commits,
        kept: rule.kept,
        shapes: rule.shapes.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_audit::AuditVerdict;
    use oblivio_audit::observer::{TraceObserver, judge_records};
    use oblivio_crypto::{KdfParams, Passphrase};
    use oblivio_engine::{Action, BlockId, BlockOp};
    use oblivio_store::MemoryStore;
    use oblivio_volume::tree::TreeVolume;
    use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, TopLogs};

    /// Large enough that an idle commit comes in parts.
    #[test]
    fn what_quiet_moments_write_follows_from_what_is_public() {
        const BLOCKS: u64 = 2300;
        let recorder = Recorder::in_memory();
        let create =
            CreateOptions { block_bytes: 64 << 10, capacity_bytes: 1 << 30, kdf: KdfParams::TEST };
        let on_shown = Some(recorder.callback());
        let open = OpenOptions { memory_bytes: 256 << 20, on_shown, ..OpenOptions::default() };
        let store = Arc::new(recorder.over(MemoryStore::new()));
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
        let sight = recorder.take();
        let trace = sight.whole();
        let parts = trace.requests.iter().filter(|r| r.kind == RequestKind::Flush);
        assert!(parts.count() > 0);
        assert!(trace.requests.iter().any(|r| r.kind == RequestKind::Maintenance));
        let report = judge_records(&sight, 1e-6);
        assert_eq!(report.verdict, AuditVerdict::Pass, "{report:#?}");
    }

    /// A session with the top of the tree in a log, one that goes on with it after a crash, and the
    /// end of the log.
    fn logged(ids: impl Fn(u64) -> u64) -> TraceObserver {
        let recorder = Recorder::in_memory();
        let create =
            CreateOptions { block_bytes: 1024, capacity_bytes: 1 << 20, kdf: KdfParams::TEST };
        let open = || OpenOptions {
            top_logs: TopLogs::Always,
            memory_bytes: 8 << 20,
            on_shown: Some(recorder.callback()),
            ..OpenOptions::default()
        };
        let passphrase = Passphrase::new("logged");
        let store = Arc::new(recorder.over(MemoryStore::new()));
        let mut volume =
            TreeVolume::create(store.clone(), &passphrase, create, open()).expect("an empty store");
        let op = |id, action| BlockOp { id: BlockId(id), action };
        let fill = |id: u64| op(id, Action::Write(vec![id as u8; 1024]));
        volume.reserve(512).expect("room");
        volume.access((0..512).map(fill).collect()).expect("room");
        volume.commit().expect("memory");
        for at in 0..400 {
            volume.access(vec![op(ids(at), Action::Read)]).expect("memory");
            if at % 50 == 0 {
                volume.defer(vec![fill(ids(at))]).expect("memory");
                volume.commit().expect("memory");
            }
        }
        drop(volume);
        recorder.begin(RecordedSession::default());
        let mut volume = TreeVolume::open(store, &passphrase, open()).expect("a crash");
        for at in 0..200 {
            volume.access(vec![op(ids(at), Action::Read)]).expect("memory");
        }
        volume.finish().expect("memory");
        recorder.take()
    }

    #[test]
    fn what_a_log_of_the_top_shows_follows_from_what_is_public() {
        let one = logged(|_| 7);
        let entries: u64 = one.whole().requests.iter().map(|r| u64::from(r.entries)).sum();
        assert!(entries > 600, "{entries}");
        let report = judge_records(&one, 1e-6);
        assert_eq!(report.verdict, AuditVerdict::Pass, "{report:#?}");
        let all = logged(|at| at * 37 % 512);
        let report = judge_records(&all, 1e-6);
        assert_eq!(report.verdict, AuditVerdict::Pass, "{report:#?}");
    }
}
