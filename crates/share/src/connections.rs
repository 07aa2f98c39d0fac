//! The connections of devices: each device has its own bounds, and none feels those of another.
//!
//! One bound is of its connections: beyond it, the device's oldest one is cut. The other is of the
//! bytes of calls under way on all of them together: beyond it, the device's calls wait.
//! A device without a connection is gone after a while; then its asks go too.

use crate::devices::{Devices, KnownDevice, SecretHash};
use crate::line::LineWriter;
use oblivio_store::Budget;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most connections of a device.
pub const MOST_OF_DEVICE: usize = 32;
/// The most calls that it has under way: all that its connections may have.
const MOST_CALLS: usize = 1024;
/// The most bytes of its calls, from the begin of a frame to the end of its reply.
pub const MOST_UNDER_WAY: usize = 64 << 20;
/// A device is gone when it has had no connection for so long.
pub const GONE: Duration = Duration::from_secs(60);

/// All connections of devices that are known.
#[derive(Default)]
pub struct Connections {
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    next: u64,
    open: BTreeMap<u64, Connected>,
    budgets: BTreeMap<SecretHash, Arc<Budget>>,
    /// Devices without connections, and since when.
    left: BTreeMap<SecretHash, (KnownDevice, Duration)>,
}

struct Connected {
    hash: SecretHash,
    device: KnownDevice,
    line: LineWriter,
}

/// A connection that was let in: it has this number, and shares this budget.
pub struct Entered {
    /// Its number.
    pub number: u64,
    /// What its device may have under way.
    pub budget: Arc<Budget>,
}

/// A part of a device's budget, until it is dropped.
pub struct Reserved {
    budget: Arc<Budget>,
    bytes: usize,
}

fn new_budget() -> Arc<Budget> {
    Arc::new(Budget::new(MOST_CALLS, MOST_UNDER_WAY))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reserved {
    /// Waits until there is room for this many bytes. A frame is never longer than all of it.
    pub fn of(budget: &Arc<Budget>, bytes: usize) -> Self {
        budget.take(bytes);
        Self { budget: Arc::clone(budget), bytes }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

impl Inside {
    fn of(&self, hash: SecretHash) -> impl Iterator<Item = &Connected> {
        self.open.values().filter(move |it| it.hash == hash)
    }
}

impl Connections {
    /// Lets a connection in, unless its device is not known (any more) for this volume.
    pub fn enter(
        &self,
        devices: &Devices,
        hash: SecretHash,
        volume: &str,
        line: &LineWriter,
    ) -> Option<Entered> {
        // Under this lock, so that a device that is removed meanwhile is cut off.
        let mut inside = lock(&self.inside);
        let device = devices.find(&hash).filter(|device| device.volume == volume)?;
        if inside.of(hash).count() >= MOST_OF_DEVICE {
            let oldest = inside.open.iter().find(|(_, it)| it.hash == hash).map(|(at, _)| *at);
            // Its thread finds out, and has left already.
            oldest.and_then(|at| inside.open.remove(&at)).inspect(|it| it.line.cut());
        }
        inside.left.remove(&hash);
        let number = inside.next;
        inside.next += 1;
        inside.open.insert(number, Connected { hash, device, line: line.clone() });
        let budget = Arc::clone(inside.budgets.entry(hash).or_insert_with(new_budget));
        Some(Entered { number, budget })
    }

    /// A connection ended.
    pub fn leave(&self, number: u64, now: Duration) {
        let mut inside = lock(&self.inside);
        let Some(Connected { hash, device, .. }) = inside.open.remove(&number) else { return };
        if inside.of(hash).next().is_none() {
            inside.left.insert(hash, (device, now));
        }
    }

    /// Devices that are gone, once each.
    pub fn gone(&self, now: Duration) -> Vec<(SecretHash, KnownDevice)> {
        let mut inside = lock(&self.inside);
        let is_gone = |_: &SecretHash, left: &mut (KnownDevice, Duration)| now >= left.1 + GONE;
        let gone: Vec<_> = inside.left.extract_if(.., is_gone).collect();
        gone.iter().for_each(|(hash, _)| drop(inside.budgets.remove(hash)));
        gone.into_iter().map(|(hash, (device, _))| (hash, device)).collect()
    }

    /// Cuts the connections of a device.
    pub fn cut(&self, hash: SecretHash) {
        lock(&self.inside).of(hash).for_each(|it| it.line.cut());
    }

    /// Cuts all connections.
    pub fn cut_all(&self) {
        lock(&self.inside).open.values().for_each(|it| it.line.cut());
    }

    /// The names of the devices that are connected to a volume, once for each connection.
    pub fn names(&self, volume: &str) -> Vec<String> {
        let inside = lock(&self.inside);
        let of = inside.open.values().filter(|it| it.device.volume == volume);
        of.map(|it| it.device.name.clone()).collect()
    }
}
