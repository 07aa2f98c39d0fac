//! What an inspector has of a disk and of a home: every call that changed something, with its bytes
//! and its time, every note, and how much of lanes was read in between.

use oblivio_crypto::LANE_SLOTS_BYTES;
use oblivio_store::record::CallKind;
use oblivio_store::{Layer, Result, StoreAnswer, StoreCall};
use oblivio_testkit::CrashStore;
use oblivio_volume::{Clock, Keep, Known, SimulatedClock};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A range of an object, and what was written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub object: String,
    pub offset: u64,
    pub len: u64,
    pub data: Vec<u8>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A call to the store, with its parts in their order.
    Call(CallKind, Vec<Part>),
    /// A note in the home.
    Note(Known, Keep),
}

/// Something that the inspector sees.
#[derive(Clone, Debug)]
pub struct Seen {
    pub what: What,
    pub time: Duration,
    /// Bytes read of the levels of lanes since the last that he saw, and of their logs.
    pub read: u64,
    pub read_of_logs: u64,
    /// Slots of lanes that were read since then, to try a passphrase on.
    pub tried: u64,
}

/// All that he saw.
#[derive(Default)]
pub struct Diary {
    inner: Mutex<Pages>,
    pub clock: Arc<SimulatedClock>,
}

#[derive(Default)]
struct Pages {
    seen: Vec<Seen>,
    read: u64,
    read_of_logs: u64,
    tried: u64,
}

impl Diary {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was seen since the last time.
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.pages().seen)
    }

    /// What the owner read in a lane by himself, and a passphrase that opened nothing, are no part
    /// of what follows.
    pub fn begin_act(&self) {
        let mut pages = self.pages();
        (pages.read, pages.read_of_logs, pages.tried) = (0, 0, 0);
    }

    pub fn see(&self, what: What) {
        let mut pages = self.pages();
        let [read, read_of_logs, tried] = {
            let Pages { read, read_of_logs, tried, .. } = &mut *pages;
            [read, read_of_logs, tried].map(std::mem::take)
        };
        pages.seen.push(Seen { what, time: self.clock.now(), read, read_of_logs, tried });
    }

    fn see_read(&self, object: &str, bytes: u64) {
        let mut pages = self.pages();
        match object {
            "lane-1" | "lane-2" => pages.read += bytes,
            "lane-1-log" | "lane-2-log" => pages.read_of_logs += bytes,
            "lane-1-state" | "lane-2-state" if bytes == LANE_SLOTS_BYTES as u64 => {
                pages.tried += 1;
            }
            _ => {}
        }
    }
}

/// Writes everything into a diary.
pub struct Watch {
    pub disk: CrashStore,
    pub diary: Arc<Diary>,
}

/// The kind of a call that changes something, or makes it durable.
fn kind(call: &StoreCall<'_, '_>) -> Option<CallKind> {
    Some(match call {
        StoreCall::Write(_) | StoreCall::WriteDurable(_) | StoreCall::Begin(_) => CallKind::Write,
        StoreCall::Sync(_) | StoreCall::Settle(_) => CallKind::Sync,
        StoreCall::Put(..) => CallKind::Put,
        StoreCall::Truncate(..) => CallKind::Truncate,
        StoreCall::Allocate(..) => CallKind::Allocate,
        StoreCall::Discard(_) => CallKind::Discard,
        StoreCall::Delete(_) => CallKind::Delete,
        _ => return None,
    })
}

fn data(call: &StoreCall<'_, '_>) -> Vec<Vec<u8>> {
    match call {
        StoreCall::Write(writes) => writes.iter().map(|it| it.data.to_vec()).collect(),
        StoreCall::WriteDurable(it) => vec![it.data.to_vec()],
        StoreCall::Begin(objects) => objects.iter().map(|it| it.1.to_vec()).collect(),
        StoreCall::Put(_, data, _) => vec![data.to_vec()],
        _ => Vec::new(),
    }
}

impl Watch {
    /// Writes a call into the diary.
    pub fn see(&self, call: &StoreCall<'_, '_>) {
        if let StoreCall::Read(reads) = call {
            reads.iter().for_each(|it| self.diary.see_read(it.object, it.buf.len() as u64));
        }
        if let Some(kind) = kind(call) {
            let (mut parts, mut data) = (Vec::new(), data(call).into_iter());
            call.ranges(&mut |object, offset, len| {
                let data = data.next().unwrap_or_default();
                parts.push(Part { object: object.to_owned(), offset, len, data });
            });
            self.diary.see(What::Call(kind, parts));
        }
    }
}

impl Layer for Watch {
    type Below = CrashStore;

    fn below(&self) -> &Self::Below {
        &self.disk
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        self.see(call);
        call.on(&self.disk)
    }
}
