//! An open file, by offsets. Its position is kept in Python.

use crate::error::outside;
use oblivio::Error;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{PoisonError, RwLock};

/// An open file of a volume.
#[pyclass(frozen, module = "oblivio._oblivio")]
pub struct File(RwLock<Option<oblivio::File>>);

impl File {
    pub fn of(file: oblivio::File) -> Self {
        Self(RwLock::new(Some(file)))
    }

    /// Runs a call on the open file. The lock is taken outside of Python's: the order of both is
    /// then the same everywhere.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&oblivio::File) -> oblivio::Result<T> + Send,
    ) -> PyResult<T> {
        outside(py, || {
            let file = self.0.read().unwrap_or_else(PoisonError::into_inner);
            work(file.as_ref().ok_or_else(|| Error::Closed("the file".into()))?)
        })
    }
}

#[pymethods]
impl File {
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        len: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.with(py, |file| file.read_at(offset, len))?))
    }

    fn write_at(&self, py: Python<'_>, offset: u64, data: &[u8]) -> PyResult<()> {
        self.with(py, |file| file.write_at(offset, data))
    }

    fn length(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, oblivio::File::len)
    }

    fn set_length(&self, py: Python<'_>, len: u64) -> PyResult<()> {
        self.with(py, |file| file.set_len(len))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, oblivio::File::sync)
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.write().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
