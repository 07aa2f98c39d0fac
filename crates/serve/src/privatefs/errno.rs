//! Errors as the kernel's numbers.

use fuser::Errno;
use oblivio_privatefs::Error;

/// Why a request failed: for itself, or in the file system.
#[derive(Debug)]
pub enum Fail {
    Errno(Errno),
    Fs(Error),
}

impl From<Errno> for Fail {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        Self::Fs(error)
    }
}

impl Fail {
    pub fn errno(&self) -> Errno {
        match self {
            Self::Errno(errno) => *errno,
            Self::Fs(error) => of(error),
        }
    }
}

/// The kernel's number for an error.
fn of(error: &Error) -> Errno {
    match error {
        Error::NotFound => Errno::ENOENT,
        Error::Exists => Errno::EEXIST,
        Error::NotADirectory => Errno::ENOTDIR,
        Error::IsADirectory => Errno::EISDIR,
        Error::NotEmpty => Errno::ENOTEMPTY,
        Error::Full(_) => Errno::ENOSPC,
        Error::Invalid(_) => Errno::EINVAL,
        Error::NameTooLong => Errno::ENAMETOOLONG,
        Error::TooLarge => Errno::EFBIG,
        Error::TooManyLinks => Errno::EMLINK,
        Error::Stale => Errno::ESTALE,
        Error::Locked | Error::Busy => Errno::EAGAIN,
        Error::NoAttribute => Errno::ENODATA,
        Error::Unsupported(_) => Errno::EOPNOTSUPP,
        Error::Conflict | Error::Damaged(_) | Error::Below(_) | Error::LockLost => Errno::EIO,
    }
}
