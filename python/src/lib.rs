//! The part of the Python module `oblivio` that is Rust: volumes, files and disks, by bytes and
//! offsets.
//!
//! It is for calling the library `oblivio` from Python. What Python programs see is in `oblivio/`:
//! paths as text, modes, buffers, exceptions. Here every call lets go of Python's lock, so that
//! other threads run while the storage is waited for. It must not know how a volume works, nor
//! decide anything: a choice of its own would be one that Rust programs do not have.
//!
//! Its types: `Volume`, `File` and `Disk` are those of the library, in a `Closable` that may be
//! closed while other threads use it. A `Held` has the first and the last, or a lane of them: it
//! ends with what it is a lane of. `How` and `What` are the options of opening and making. `error`
//! has the class of each error of the library.

mod disk;
mod error;
mod file;
mod held;
mod lanes;
mod open;
mod volume;

use pyo3::prelude::*;

/// Volumes, by bytes and offsets; the package around it is what programs use.
#[pymodule]
fn _oblivio(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<volume::Volume>()?;
    module.add_class::<file::File>()?;
    module.add_class::<disk::Disk>()?;
    module.add_function(wrap_pyfunction!(open::open, module)?)?;
    module.add_function(wrap_pyfunction!(open::create, module)?)?;
    module.add_function(wrap_pyfunction!(open::open_disk, module)?)?;
    module.add_function(wrap_pyfunction!(open::create_disk, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
