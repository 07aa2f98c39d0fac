//! An open disk: bytes by their offset.

use crate::lanes::{Held, Status};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An open volume that holds a disk.
#[pyclass(frozen, module = "oblivio._oblivio")]
pub struct Disk(Held<oblivio::Disk>);

impl Disk {
    pub fn of(disk: oblivio::Disk) -> Self {
        Self(Held::of(disk))
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&oblivio::Disk) -> oblivio::Result<T> + Send,
    ) -> PyResult<T> {
        self.0.with(py, work)
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
        self.0.sync(py)
    }

    fn idle(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, oblivio::Disk::idle)
    }

    fn lane(&self, py: Python<'_>, number: usize) -> PyResult<Option<Self>> {
        Ok(self.0.lane(py, number)?.map(Self))
    }

    fn lane_status(&self, py: Python<'_>) -> PyResult<Option<Status>> {
        self.0.lane_status(py)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    fn closed(&self, py: Python<'_>) -> bool {
        self.0.closed(py)
    }
}
