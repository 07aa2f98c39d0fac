//! An open volume. Paths are bytes here: names need not be text.

use crate::file::File;
use crate::lanes::{Held, Status};
use oblivio::{DirEntry, FileKind, Metadata};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::SystemTime;

/// An open volume.
#[pyclass(frozen, module = "oblivio._oblivio")]
pub struct Volume(Held<oblivio::Volume>);

/// Name, whole path, and kind.
type Entry = (Vec<u8>, Vec<u8>, &'static str);
/// Length, kind, mode, and nanoseconds since 1970 of the last change and of the beginning.
type Stat = (u64, &'static str, u32, i128, i128);

impl Volume {
    pub fn of(volume: oblivio::Volume) -> Self {
        Self(Held::of(volume))
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&oblivio::Volume) -> oblivio::Result<T> + Send,
    ) -> PyResult<T> {
        self.0.with(py, work)
    }
}

#[pymethods]
impl Volume {
    fn read<'py>(&self, py: Python<'py>, path: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.with(py, |volume| volume.read(os(path)))?))
    }

    fn write(&self, py: Python<'_>, path: &[u8], data: &[u8]) -> PyResult<()> {
        self.with(py, |volume| volume.write(os(path), data))
    }

    fn append(&self, py: Python<'_>, path: &[u8], data: &[u8]) -> PyResult<()> {
        self.with(py, |volume| volume.append(os(path), data))
    }

    fn copy(&self, py: Python<'_>, from: &[u8], to: &[u8]) -> PyResult<u64> {
        self.with(py, |volume| volume.copy(os(from), os(to)))
    }

    fn open_file(&self, py: Python<'_>, path: &[u8]) -> PyResult<File> {
        self.with(py, |volume| volume.open_file(os(path))).map(File::of)
    }

    fn create_file(&self, py: Python<'_>, path: &[u8]) -> PyResult<File> {
        self.with(py, |volume| volume.create_file(os(path))).map(File::of)
    }

    fn list(&self, py: Python<'_>, path: &[u8]) -> PyResult<Vec<Entry>> {
        self.with(py, |volume| {
            let entry = |entry: DirEntry| {
                let path = entry.path().as_os_str().as_bytes().to_vec();
                (entry.name().as_bytes().to_vec(), path, kind(entry.kind()))
            };
            volume.list(os(path))?.map(|found| found.map(entry)).collect()
        })
    }

    fn stat(&self, py: Python<'_>, path: &[u8]) -> PyResult<Stat> {
        self.with(py, |volume| volume.metadata(os(path)).map(|found| stat(&found)))
    }

    fn exists(&self, py: Python<'_>, path: &[u8]) -> PyResult<bool> {
        self.with(py, |volume| volume.exists(os(path)))
    }

    fn mkdir(&self, py: Python<'_>, path: &[u8], parents: bool) -> PyResult<()> {
        self.with(py, |volume| match parents {
            true => volume.create_dir_all(os(path)),
            false => volume.create_dir(os(path)),
        })
    }

    fn remove(&self, py: Python<'_>, path: &[u8]) -> PyResult<()> {
        self.with(py, |volume| volume.remove(os(path)))
    }

    fn remove_all(&self, py: Python<'_>, path: &[u8]) -> PyResult<()> {
        self.with(py, |volume| volume.remove_dir_all(os(path)))
    }

    fn rename(&self, py: Python<'_>, from: &[u8], to: &[u8]) -> PyResult<()> {
        self.with(py, |volume| volume.rename(os(from), os(to)))
    }

    /// Used, free and the most, in bytes.
    fn usage(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let usage = self.with(py, oblivio::Volume::usage)?;
        Ok((usage.used, usage.free, usage.capacity))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.0.sync(py)
    }

    fn idle(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, oblivio::Volume::idle)
    }

    fn lane(&self, py: Python<'_>, number: usize) -> PyResult<Option<Self>> {
        Ok(self.0.lane(py, number)?.map(Self))
    }

    fn lane_status(&self, py: Python<'_>) -> PyResult<Option<Status>> {
        self.0.lane_status(py)
    }

    /// Makes everything durable. A second time it does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    fn closed(&self, py: Python<'_>) -> bool {
        self.0.closed(py)
    }
}

fn os(path: &[u8]) -> &OsStr {
    OsStr::from_bytes(path)
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        _ => "special",
    }
}

fn stat(found: &Metadata) -> Stat {
    let (modified, created) = (nanoseconds(found.modified()), nanoseconds(found.created()));
    (found.len(), kind(found.kind()), found.mode(), modified, created)
}

fn nanoseconds(at: SystemTime) -> i128 {
    match at.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => after.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    }
}
