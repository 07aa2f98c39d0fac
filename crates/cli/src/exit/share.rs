//! Codes and advice for what a server of shared volumes says.

use super::code::Code;
use oblivio_share::Error;
use oblivio_store::StoreError;
use oblivio_store::share::ShareError;

/// The code and the advice; `None` where the cause of the error decides.
pub(super) fn judge(error: &Error) -> Option<(Code, String)> {
    let (code, hint) = match error {
        Error::NoVolume(_) => (
            Code::Path,
            "`oblivio share status FOLDER` shows those that are there; `share serve \
              --volume NAME` makes one.",
        ),
        Error::NoDevice(_) => (Code::Path, "`oblivio share token list FOLDER` shows them."),
        Error::Taken(_) => (Code::Path, "Choose another name, or revoke that one first."),
        Error::LacksTables(_) => {
            (Code::Usage, "Say where they are: oblivio share serve FOLDER --tables URL")
        }
        Error::Damaged { .. } => (
            Code::Tampered,
            "Nothing of it was changed. Restore the server's folder from a backup.",
        ),
        Error::SameNumber => (Code::General, "Try again: it draws another secret."),
        Error::BadName(_) | Error::BadAddress(_) => (Code::Usage, ""),
        Error::Open(path) => {
            return Some((Code::General, format!("Run: chmod 600 {}", path.display())));
        }
        Error::Store(StoreError::Busy) => {
            (Code::Busy, "A server, or another command, has this folder.")
        }
        Error::Share(ShareError::Store(StoreError::Full)) => {
            (Code::Full, "Free some space where the volume is and try again.")
        }
        Error::Share(ShareError::Quota) => (Code::Full, "Raise it: oblivio share quota"),
        Error::Tls(_) | Error::Said(_) | Error::Share(_) => (Code::General, ""),
        Error::Store(_) | Error::System { .. } => return None,
    };
    Some((code, hint.into()))
}
