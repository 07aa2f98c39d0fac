//! What a Python object of a volume or disk holds: all of it, or a lane of it.

use crate::error::outside;
use crate::held::Closable;
use oblivio::{Error, LaneStatus, Result};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const CLOSED: &str = "by its owner";

/// What may have lanes: a volume, a disk.
pub trait Lanes: Send + Sync + Sized {
    /// A lane, counted from 1, if the passphrase opened it.
    fn lane(&self, number: usize) -> Option<&Self>;

    /// What is to be said of it, if it is a lane.
    fn lane_status(&self) -> Option<LaneStatus>;

    /// Commits everything; what is given waits until it is durable.
    fn begin_sync(&self) -> Result<impl FnOnce() -> Result<()> + Send + use<Self>>;

    /// Makes everything durable and ends it and its lanes.
    fn close(self) -> Result<()>;
}

/// Capacity, writes that wait, their bytes, those that carry them, those of the grace that are
/// left, and of all of it.
pub type Status = (u64, u64, u64, u64, u64, u64);

/// An open volume or disk, or a lane of it, which ends with it.
pub struct Held<T> {
    whole: Arc<Closable<T>>,
    lane: Option<usize>,
    /// Whether the object of a lane was closed before.
    left: AtomicBool,
}

impl<T: Lanes> Held<T> {
    pub fn of(it: T) -> Self {
        Self { whole: Arc::new(Closable::of(it)), lane: None, left: AtomicBool::new(false) }
    }

    /// Runs a call on it.
    pub fn with<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&T) -> Result<R> + Send,
    ) -> PyResult<R> {
        self.whole.with(py, CLOSED, |whole| {
            let it = match self.lane {
                _ if self.left.load(Ordering::Relaxed) => None,
                Some(number) => whole.lane(number),
                None => Some(whole),
            };
            work(it.ok_or_else(|| Error::Closed(CLOSED.into()))?)
        })
    }

    pub fn lane(&self, py: Python<'_>, number: usize) -> PyResult<Option<Self>> {
        let open = self.with(py, |it| Ok(it.lane(number).is_some()))?;
        let whole = Arc::clone(&self.whole);
        Ok(open.then(|| Self { whole, lane: Some(number), left: AtomicBool::new(false) }))
    }

    pub fn lane_status(&self, py: Python<'_>) -> PyResult<Option<Status>> {
        let said = |of: LaneStatus| {
            let waits = (of.waiting, of.waiting_bytes, of.carried_by_bytes);
            (of.bytes, waits.0, waits.1, waits.2, of.grace_left_bytes, of.grace_bytes)
        };
        self.with(py, |it| Ok(it.lane_status().map(said)))
    }

    /// Makes everything durable. A lane is not held while it waits: its volume may be closed.
    pub fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let rest = self.with(py, T::begin_sync)?;
        outside(py, rest)
    }

    /// Closes it. The lane itself stays: it ends with its volume.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.lane {
            Some(_) => {
                self.left.store(true, Ordering::Relaxed);
                Ok(())
            }
            None => self.whole.close(py, T::close),
        }
    }

    pub fn closed(&self, py: Python<'_>) -> bool {
        self.left.load(Ordering::Relaxed) || self.whole.closed(py)
    }
}

macro_rules! has_lanes {
    ($($kind:ident),*) => {$(
        impl Lanes for oblivio::$kind {
            fn lane(&self, number: usize) -> Option<&Self> {
                self.lane(number)
            }

            fn lane_status(&self) -> Option<LaneStatus> {
                self.lane_status()
            }

            fn begin_sync(&self) -> Result<impl FnOnce() -> Result<()> + Send + use<>> {
                self.begin_sync()
            }

            fn close(self) -> Result<()> {
                self.close()
            }
        }
    )*};
}
has_lanes!(Volume, Disk);
