//! A store whose calls are judged as they come, with what the volume says of them.

use crate::environment::Clock;
use crate::options::{OnShown, Rule, Shown, ShownKind};
use oblivio_audit::observer::{Observer, TraceObserver};
use oblivio_audit::record::{RecordLine, RecordedAct, RecordedCall, RecordedSession, VolumeLine};
use oblivio_audit::{RequestKind, TraceRequest, TraceWindowRule};
use oblivio_store::record::{CallKind, StoreEvent};
use std::sync::{Arc, Mutex, PoisonError};

/// What the audit has seen, and the call that is not over.
#[derive(Default)]
struct Seen {
    observer: Observer,
    call: Option<(u64, RecordedCall)>,
    /// Calls of the session so far, and the last of the store.
    calls: u64,
    last: u64,
}

/// The audit's side of a run.
#[derive(Clone, Default)]
pub(super) struct Witness(Arc<Mutex<Seen>>);

impl Seen {
    fn settle(&mut self) {
        if let Some((number, call)) = self.call.take() {
            self.last = number;
            self.calls += 1;
            self.observer.see(&RecordLine::Call(call));
        }
    }

    fn say(&mut self, line: &RecordLine) {
        self.settle();
        self.observer.see(line);
    }
}

impl Witness {
    fn with<T>(&self, act: impl FnOnce(&mut Seen) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A session begins.
    pub(super) fn begin(&self) {
        self.with(|seen| {
            seen.say(&RecordLine::Session(RecordedSession::default()));
            let volume = VolumeLine { id: "v".into(), engine: "windows".into() };
            seen.say(&RecordLine::Volume(volume));
            seen.calls = 0;
        });
    }

    /// Takes an event of the store; those of one call follow each other.
    pub(super) fn see(&self, event: &StoreEvent) {
        self.with(|seen| {
            let Some(act) = act(event.op) else {
                seen.settle();
                if seen.last == event.call {
                    seen.observer.see(&RecordLine::Failed(seen.calls - 1));
                }
                return;
            };
            if seen.call.as_ref().is_none_or(|(number, _)| *number != event.call) {
                seen.settle();
            }
            let at = event.time.unwrap_or_default() / 1000;
            let (_, call) =
                seen.call.get_or_insert_with(|| (event.call, RecordedCall::new(act, at)));
            call.add(&event.object, event.offset, event.len);
        });
    }

    /// What a volume tells of itself goes there.
    pub(super) fn listener(&self, clock: Arc<dyn Clock>) -> OnShown {
        let here = self.clone();
        Box::new(move |shown: &Shown| {
            let said = request(shown, clock.now().as_micros() as u64);
            here.with(|seen| seen.say(&RecordLine::Said(Box::new(said))));
        })
    }

    /// All that was seen.
    pub(super) fn finish(&self) -> TraceObserver {
        self.with(|seen| {
            seen.settle();
            std::mem::take(&mut seen.observer).finish()
        })
    }
}

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

/// What a volume of this kind says: the rest of a statement is of others.
fn request(shown: &Shown, at: u64) -> TraceRequest {
    let kind = match shown.kind {
        ShownKind::Batch => RequestKind::Batch,
        ShownKind::Maintenance => RequestKind::Maintenance,
        ShownKind::Sync => RequestKind::Sync,
        ShownKind::Rule => RequestKind::Rule,
        other => panic!("a tree in windows says nothing of {other:?}"),
    };
    TraceRequest {
        kind,
        at,
        leaves: shown.leaves.clone(),
        scheduled: shown.scheduled,
        sweep: shown.sweep,
        depth: shown.depth,
        rule: shown.rule.as_ref().map(rule),
        ..TraceRequest::default()
    }
}

fn rule(rule: &Rule) -> oblivio_audit::TraceRule {
    let of = rule.windows.as_ref().expect("of windows");
    oblivio_audit::TraceRule {
        blocks: rule.blocks,
        slots: rule.slots,
        leaf_slots: rule.leaf_slots,
        floor: rule.floor,
        floor_slots: rule.floor_slots,
        bucket_bytes: rule.bucket_bytes,
        slot_bytes: rule.slot_bytes,
        turn: rule.turn,
        requests: rule.requests,
        windows: Some(TraceWindowRule {
            session: of.session,
            every: of.every,
            log_turns: of.log_turns,
            pool_levels: of.pool_levels,
            exclusive: of.exclusive,
            uncached: of.uncached,
            windows: of.windows,
            left: of.left,
            commits: of.commits,
            kept: of.kept,
            shapes: of.shapes.clone(),
        }),
        ..oblivio_audit::TraceRule::default()
    }
}
