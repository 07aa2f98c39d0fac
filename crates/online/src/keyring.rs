//! Secrets in the keyring of the desktop, through `secret-tool` of libsecret.
//!
//! A secret goes through a pipe, never through an argument. Why a program and not a library:
//! docs/decisions/0031-remotes.md.

use super::secrets::{StoreSecret, keep_from};
use std::io::{self, Write};
use std::process::{Command, Stdio};
use zeroize::Zeroizing;

fn program() -> Command {
    let mut command = Command::new("secret-tool");
    keep_from(&mut command);
    command
}

/// What names the secret of a remote.
fn attributes(remote: &str) -> [&str; 4] {
    ["application", "oblivio", "remote", remote]
}

fn failed(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "`secret-tool` is not installed (Debian, Ubuntu: the package libsecret-tools)"
                .to_owned()
        }
        kind => format!("`secret-tool`: {kind}"),
    }
}

/// The secret of a remote.
pub(super) fn lookup(remote: &str) -> Result<StoreSecret, String> {
    let mut command = program();
    command.arg("lookup").args(attributes(remote)).stdin(Stdio::null());
    let output = command.output().map_err(failed)?;
    let text = Zeroizing::new(output.stdout);
    if !output.status.success() || text.is_empty() {
        return Err(format!("no secret is there for {remote}, or the keyring is locked"));
    }
    let text = std::str::from_utf8(&text).map_err(|_| "the secret is no text".to_owned())?;
    Ok(StoreSecret::new(text.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Keeps the secret of a remote, in place of an earlier one.
pub(super) fn store(remote: &str, secret: &str) -> Result<(), String> {
    let label = format!("--label=Oblivio: {remote}");
    let mut command = program();
    command.args(["store", &label]).args(attributes(remote));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    let written = match child.stdin.take() {
        Some(mut pipe) => pipe.write_all(secret.as_bytes()),
        None => Ok(()),
    };
    // It has ended before all was written only if it failed, which its status says better.
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        return Err("it does not take the secret: is a keyring running and unlocked?".to_owned());
    }
    written.map_err(failed)
}

/// Removes the secret of a remote. A missing one is no error.
pub(super) fn clear(remote: &str) -> Result<(), String> {
    let mut command = program();
    command.arg("clear").args(attributes(remote));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map(drop).map_err(failed)
}
