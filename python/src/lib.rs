//! The part of the Python module `oblivio` that is Rust: volumes and files, by bytes and offsets.
//!
//! What Python programs see is in `oblivio/`. Here every call lets go of Python's lock, so that
//! other threads run while the storage is waited for.

mod error;
mod file;
mod open;
mod volume;

use pyo3::prelude::*;

/// Volumes, by bytes and offsets; the package around it is what programs use.
#[pymodule]
fn _oblivio(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<volume::Volume>()?;
    module.add_class::<file::File>()?;
    module.add_function(wrap_pyfunction!(open::open, module)?)?;
    module.add_function(wrap_pyfunction!(open::create, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
