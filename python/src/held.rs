//! What a Python object holds until it is closed: a volume, a file, a disk.

use crate::error::outside;
use oblivio::{Error, Result};
use pyo3::prelude::*;
use std::sync::{PoisonError, RwLock};

/// Something that may be closed while other threads use it. The lock is taken outside of Python's:
/// the order of both is then the same everywhere.
pub struct Closable<T>(RwLock<Option<T>>);

impl<T: Send + Sync> Closable<T> {
    pub fn of(it: T) -> Self {
        Self(RwLock::new(Some(it)))
    }

    /// Runs a call on it; `Closed` with these words if it was closed.
    pub fn with<R: Send>(
        &self,
        py: Python<'_>,
        closed: &str,
        work: impl FnOnce(&T) -> Result<R> + Send,
    ) -> PyResult<R> {
        outside(py, || {
            let it = self.0.read().unwrap_or_else(PoisonError::into_inner);
            work(it.as_ref().ok_or_else(|| Error::Closed(closed.into()))?)
        })
    }

    /// Closes it. A second time it does nothing.
    pub fn close(
        &self,
        py: Python<'_>,
        close: impl FnOnce(T) -> Result<()> + Send,
    ) -> PyResult<()> {
        outside(py, || {
            let it = self.0.write().unwrap_or_else(PoisonError::into_inner).take();
            it.map_or(Ok(()), close)
        })
    }

    pub fn closed(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.read().unwrap_or_else(PoisonError::into_inner).is_none())
    }
}
