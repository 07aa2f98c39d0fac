//! Codes and advice for remotes and log-ons.

use super::code::Code;
use oblivio_app::remotes::{ConfigError, LogOnError, RemoteError};

/// The code and the advice.
pub(super) fn judge(error: &RemoteError) -> (Code, &'static str) {
    match error {
        RemoteError::Config(error) => match error {
            ConfigError::Unknown { .. } => {
                (Code::Path, "`oblivio remote list` shows those that there are.")
            }
            ConfigError::Taken(_) => (Code::Path, "`oblivio remote remove NAME` forgets one."),
            ConfigError::Name => (Code::Usage, "Choose another name, as `cloud`."),
            ConfigError::Keyring(_) => (
                Code::General,
                "Leave out --keyring: then the secret is in a file that only you may read.",
            ),
            _ => (Code::General, ""),
        },
        RemoteError::Url(_) | RemoteError::Named => {
            (Code::Usage, "`oblivio init --help` shows URLs; no password is part of one.")
        }
        RemoteError::LogOn(error) => log_on(error),
        RemoteError::NoHome | RemoteError::System(_) => (Code::General, ""),
    }
}

fn log_on(error: &LogOnError) -> (Code, &'static str) {
    match error {
        LogOnError::Setup(_) => (Code::Usage, ""),
        LogOnError::Port(..) => (Code::General, "Choose another --port, and register it too."),
        LogOnError::TimedOut => (Code::General, "Nothing was kept. Run the command again."),
        LogOnError::NoAnswer(_) => (Code::General, "Check the connection and try again."),
        LogOnError::Refused(_) => (
            Code::Refused,
            "Nothing was kept. Check the client id, and that the address to come back to is \
             registered with the service.",
        ),
        LogOnError::NoRefresh => (
            Code::Refused,
            "Nothing was kept. Register the program as one for desktops, with offline access.",
        ),
    }
}
