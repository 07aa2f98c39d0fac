//! An open disk: bytes by their offset.

use crate::held::Closable;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An open volume that holds a disk.
#[pyclass(frozen, module = "oblivio._oblivio")]
pub struct Disk(Closable<oblivio::Disk>);

impl Disk {
    pub fn of(disk: oblivio::Disk) -> Self {
        Self(Closable::of(disk))
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&oblivio::Disk) -> oblivio::Result<T> + Send,
    ) -> PyResult<T> {
        self.0.with(py, "by its owner", work)
    }
}

#[pymethods]
impl Disk {
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |disk| Ok(disk.len()))
    }

    fn read_at<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        len: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.with(py, |disk| disk.read_at(offset, len))?))
    }

    fn write_at(&self, py: Python<'_>, offset: u64, data: &[u8]) -> PyResult<()> {
        self.with(py, |disk| disk.write_at(offset, data))
    }

    fn trim(&self, py: Python<'_>, offset: u64, len: u64) -> PyResult<()> {
        self.with(py, |disk| disk.trim(offset, len))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, oblivio::Disk::sync)
    }

    fn idle(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, oblivio::Disk::idle)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py, oblivio::Disk::close)
    }

    fn closed(&self, py: Python<'_>) -> bool {
        self.0.closed(py)
    }
}
