//! An open file, by offsets. Its position is kept in Python.

use crate::held::Closable;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An open file of a volume.
#[pyclass(frozen, module = "oblivio._oblivio")]
pub struct File(Closable<oblivio::File>);

impl File {
    pub fn of(file: oblivio::File) -> Self {
        Self(Closable::of(file))
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&oblivio::File) -> oblivio::Result<T> + Send,
    ) -> PyResult<T> {
        self.0.with(py, "the file", work)
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

    fn append(&self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        self.with(py, |file| file.append(data))
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

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py, |file| {
            drop(file);
            Ok(())
        })
    }
}
