//! Errors as exceptions of `oblivio._errors`, which has a class for each.

use oblivio::Error;
use pyo3::prelude::*;

/// The result of a call that lets other threads run, with its error as an exception.
pub fn outside<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> oblivio::Result<T> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|error| raised(py, error))
}

/// The exception for an error. If the class cannot be had, it is that error.
fn raised(py: Python<'_>, error: Error) -> PyErr {
    let made = (|| {
        let (class, path) = class(&error);
        let number = match &error {
            Error::Io { source, .. } => source.raw_os_error(),
            _ => None,
        };
        let make = py.import("oblivio._errors")?.getattr("make")?;
        make.call1((class, error.to_string(), path, number))
    })();
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The name of the class, and the path that it is about.
fn class(error: &Error) -> (&'static str, Option<&str>) {
    match error {
        Error::WrongPassphrase => ("WrongPassphrase", None),
        Error::RolledBack(_) => ("RolledBack", None),
        Error::OtherVolume(_) => ("OtherVolume", None),
        Error::Forgotten(_) => ("Forgotten", None),
        Error::Tampered(_) => ("Damaged", None),
        Error::Lost(_) => ("Lost", None),
        Error::Busy | Error::Held(_) => ("InUse", None),
        Error::Overtaken => ("TakenOver", None),
        Error::Full(_) => ("Full", None),
        Error::NotFound(path) => ("NotFound", Some(path)),
        Error::Exists(path) => ("Exists", Some(path)),
        Error::NotADirectory(path) => ("NotADirectory", Some(path)),
        Error::IsADirectory(path) => ("IsADirectory", Some(path)),
        Error::NotEmpty(path) => ("NotEmpty", Some(path)),
        Error::BadPath(_) => ("BadPath", None),
        Error::NotAVolume(_) => ("NotAVolume", None),
        Error::HoldsDisk => ("HoldsDisk", None),
        Error::HoldsFiles => ("HoldsFiles", None),
        Error::StillToCome(_) => ("StillToCome", None),
        Error::Parted(_) => ("Parted", None),
        Error::Invalid(_) => ("Invalid", None),
        Error::Closed(_) => ("Closed", None),
        Error::Io { .. } | Error::Offline(_) | Error::Refused(_) => ("StorageFailed", None),
        // A later version of the library has more.
        _ => ("OblivioError", None),
    }
}
