//! What a store says when it fails, and whether the same call may succeed later.

use std::io;

/// An error of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The object is not there.
    #[error("object {object:?} is missing")]
    Missing {
        /// Its name.
        object: String,
    },
    /// The object ends before the requested range.
    #[error("object {object:?} is too short: {len} bytes, {wanted} wanted")]
    Short {
        /// Its name.
        object: String,
        /// Its length.
        len: u64,
        /// The length that the range needs.
        wanted: u64,
    },
    /// Put-if-absent found the object present.
    #[error("object {object:?} already exists")]
    Exists {
        /// Its name.
        object: String,
    },
    /// The place for a new store is not empty. Nothing was changed.
    #[error("{object} is not empty: it holds {what}")]
    Occupied {
        /// The file or partition.
        object: String,
        /// What it seems to hold.
        what: &'static str,
    },
    /// Another process has the store open for writing, or the partition is mounted.
    #[error("the store is in use by another process, or mounted")]
    Busy,
    /// The space is used up.
    #[error("no space left in the store")]
    Full,
    /// Anything else.
    #[error("storage failed on {object:?}: {source}")]
    Io {
        /// The object concerned.
        object: String,
        /// The system's error.
        source: io::Error,
    },
}

impl StoreError {
    /// The system's error about an object; a full disk or quota becomes [`StoreError::Full`].
    #[must_use]
    pub fn io(object: &str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            // For a new object too: then its folder is gone, and no retry helps.
            io::ErrorKind::NotFound => Self::missing(object),
            _ => Self::Io { object: object.to_owned(), source },
        }
    }

    /// Whether the same call may succeed later: after an outage, or once there is space. What the
    /// system refuses for a reason that stays (credentials, a bad request), it refuses again. A
    /// disk that an error made read-only may be mounted again.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        use io::ErrorKind as Kind;
        match self {
            Self::Full => true,
            Self::Io { source, .. } => !matches!(
                source.kind(),
                Kind::PermissionDenied
                    | Kind::InvalidInput
                    | Kind::InvalidData
                    | Kind::InvalidFilename
                    | Kind::FileTooLarge
                    | Kind::NotADirectory
                    | Kind::IsADirectory
                    | Kind::Unsupported
            ),
            Self::Missing { .. }
            | Self::Short { .. }
            | Self::Exists { .. }
            | Self::Occupied { .. }
            | Self::Busy => false,
        }
    }

    /// What a service on a network said, or that it said nothing, as an error of this kind.
    #[must_use]
    pub fn service(object: &str, kind: io::ErrorKind, text: String) -> Self {
        let source = io::Error::new(kind, Service(text));
        Self::Io { object: object.to_owned(), source }
    }

    fn is_of_service(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        source.get_ref().is_some_and(|inner| inner.is::<Service>())
    }

    /// Whether a network, or the service on it, did not answer, or could not do it now.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.is_of_service() && self.may_pass()
    }

    /// Whether a service on a network refused the request, for a reason that stays until somebody
    /// changes it: credentials, permissions, a server that is not the one it says it is.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.is_of_service() && !self.may_pass()
    }

    /// A missing object.
    #[must_use]
    pub fn missing(object: &str) -> Self {
        Self::Missing { object: object.to_owned() }
    }

    /// An object that ends before `wanted`.
    #[must_use]
    pub fn short(object: &str, len: u64, wanted: u64) -> Self {
        Self::Short { object: object.to_owned(), len, wanted }
    }

    /// A request that this object cannot serve, and the reason.
    #[must_use]
    pub fn refused(object: &str, why: &'static str) -> Self {
        let source = io::Error::new(io::ErrorKind::InvalidInput, why);
        Self::Io { object: object.to_owned(), source }
    }

    /// A range that no file system could hold.
    #[must_use]
    pub fn out_of_range(object: &str) -> Self {
        Self::refused(object, "range beyond the largest offset")
    }
}

/// The words of a service on a network, or about it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Service(String);

/// A result of a store.
pub type Result<T> = std::result::Result<T, StoreError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_worth_another_attempt() {
        use io::ErrorKind as Kind;
        let io = |kind: Kind| StoreError::io("a", kind.into());
        let system = |number| StoreError::io("a", io::Error::from_raw_os_error(number));
        let (eio, enxio, eacces, eperm, erofs) = (5, 6, 13, 1, 30);
        let table = [
            (system(eio), true),
            (system(enxio), true),
            (io(Kind::TimedOut), true),
            (io(Kind::ConnectionReset), true),
            (io(Kind::NetworkDown), true),
            (io(Kind::StaleNetworkFileHandle), true),
            (io(Kind::Interrupted), true),
            (io(Kind::Other), true),
            (io(Kind::StorageFull), true),
            (io(Kind::QuotaExceeded), true),
            (StoreError::Full, true),
            (system(eacces), false),
            (system(eperm), false),
            (system(erofs), true),
            (io(Kind::InvalidData), false),
            (io(Kind::Unsupported), false),
            (io(Kind::NotFound), false),
            (StoreError::refused("a", "a bad request"), false),
            (StoreError::out_of_range("a"), false),
            (StoreError::missing("a"), false),
            (StoreError::short("a", 1, 2), false),
            (StoreError::Exists { object: "a".into() }, false),
            (StoreError::Occupied { object: "a".into(), what: "ext4" }, false),
            (StoreError::Busy, false),
        ];
        for (error, may_pass) in table {
            assert_eq!(error.may_pass(), may_pass, "{error:?}");
        }
    }
}
