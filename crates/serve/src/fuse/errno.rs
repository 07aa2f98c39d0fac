//! Errors of both file systems as the kernel's numbers.

use super::answer::FileAnswer;
use fuser::Errno;
use oblivio_privatefs::Error as SharedError;
use oblivio_volume::Error;

/// The result of a request.
pub type Served = Result<FileAnswer, Fail>;

/// The cause of a failed request: the request itself, or the volume, whose server judges it.
#[derive(Debug)]
pub enum Fail {
    Errno(Errno),
    Volume(Error),
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        Fail::Volume(error)
    }
}

impl From<SharedError> for Fail {
    fn from(error: SharedError) -> Self {
        Fail::Errno(of_shared(&error))
    }
}

impl From<Errno> for Fail {
    fn from(errno: Errno) -> Self {
        Fail::Errno(errno)
    }
}

impl Fail {
    pub fn errno(&self) -> Errno {
        match self {
            Fail::Errno(errno) => *errno,
            Fail::Volume(error) => of(error),
        }
    }
}

/// The outcome of what answers nothing.
pub fn done<E>(result: Result<(), E>) -> Served
where
    Fail: From<E>,
{
    result.map(|()| FileAnswer::Done).map_err(Fail::from)
}

/// The number for an error of a volume.
pub fn of(error: &Error) -> Errno {
    match error {
        Error::NotFound(_) => Errno::ENOENT,
        Error::Exists(_) => Errno::EEXIST,
        Error::NotADirectory(_) => Errno::ENOTDIR,
        Error::IsADirectory(_) => Errno::EISDIR,
        Error::NotEmpty(_) => Errno::ENOTEMPTY,
        Error::Full(_) => Errno::ENOSPC,
        Error::Invalid(_) => Errno::EINVAL,
        Error::NameTooLong(_) => Errno::ENAMETOOLONG,
        Error::TooLarge(_) => Errno::EFBIG,
        Error::TooManyLinks(_) => Errno::EMLINK,
        _ => Errno::EIO,
    }
}

/// The number for an error of a file system of several writers.
fn of_shared(error: &SharedError) -> Errno {
    match error {
        SharedError::NotFound => Errno::ENOENT,
        SharedError::Exists => Errno::EEXIST,
        SharedError::NotADirectory => Errno::ENOTDIR,
        SharedError::IsADirectory => Errno::EISDIR,
        SharedError::NotEmpty => Errno::ENOTEMPTY,
        SharedError::Full(_) => Errno::ENOSPC,
        SharedError::Invalid(_) => Errno::EINVAL,
        SharedError::NameTooLong => Errno::ENAMETOOLONG,
        SharedError::TooLarge => Errno::EFBIG,
        SharedError::TooManyLinks => Errno::EMLINK,
        SharedError::Stale => Errno::ESTALE,
        SharedError::Locked | SharedError::Busy => Errno::EAGAIN,
        SharedError::NoAttribute => Errno::ENODATA,
        SharedError::Unsupported(_) => Errno::EOPNOTSUPP,
        SharedError::Conflict
        | SharedError::Damaged(_)
        | SharedError::Lost(_)
        | SharedError::Below(_)
        | SharedError::LockLost => Errno::EIO,
    }
}
