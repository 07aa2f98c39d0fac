//! Errors as the kernel's numbers.

use fuser::Errno;
use oblivio_volume::Error;

/// The cause of a failed request: the request itself, or the file system.
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

/// The number for an error of the volume.
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

/// Advice for a failure that the mount cannot recover from.
pub const ADVICE: &str = "nothing more is read or written until the volume is mounted again; what \
                          was synced is kept, what was not is lost. Put back what is missing, if \
                          anything is; then unmount (`oblivio umount DIR`, with --lazy if somebody \
                          works in it) and mount. If it fails again, `oblivio check VOLUME` says \
                          what is damaged; restore a backup then";
