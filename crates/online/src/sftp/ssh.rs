//! A line to a server: a process of the system's `ssh`, which knows the user's keys, hosts and
//! proxies.
//!
//! The process lives as long as its line. It ends with this program, however that ends, because its
//! input does. Nothing stays for later commands: no shared connection, no socket.

use super::super::failure::Fault;
use super::super::secrets::keep_from;
use oblivio_store::waits;
use openssh_sftp_client::{Sftp, SftpOptions};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

/// What is kept of the words of `ssh`.
const SAID: usize = 4096;
/// A line is given up after three questions that far apart, in seconds, that nobody answers.
const ALIVE: u64 = 10;

/// Where a server is, and who asks.
#[derive(Clone, Debug)]
pub(in super::super) struct Host {
    pub(in super::super) name: String,
    pub(in super::super) port: Option<u16>,
    pub(in super::super) user: Option<String>,
    /// The one key to use. Without, `ssh` chooses.
    pub(in super::super) key: Option<PathBuf>,
}

/// A line to a server.
pub(super) struct Line {
    pub(super) sftp: Sftp,
    _ssh: Child,
}

impl Host {
    fn command(&self) -> Command {
        let mut ssh = Command::new("ssh");
        let (connect, alive) = (waits::CONNECT.as_secs(), ALIVE);
        // It asks nothing, trusts no new host, and shares no connection.
        ssh.args(["-oBatchMode=yes", "-oStrictHostKeyChecking=yes"]);
        ssh.args(["-oControlMaster=no", "-oControlPath=none", "-oServerAliveCountMax=3"]);
        ssh.arg(format!("-oConnectTimeout={connect}"));
        ssh.arg(format!("-oServerAliveInterval={alive}"));
        if let Some(port) = self.port {
            ssh.args(["-p", &port.to_string()]);
        }
        if let Some(user) = &self.user {
            ssh.args(["-l", user]);
        }
        if let Some(key) = &self.key {
            ssh.arg("-oIdentitiesOnly=yes").arg("-i").arg(key);
        }
        let inner = self.name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        ssh.args(["-s", "--", inner.unwrap_or(&self.name), "sftp"]);
        keep_from(ssh.as_std_mut());
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ssh.kill_on_drop(true);
        ssh
    }

    /// Makes a line.
    pub(super) async fn connect(&self) -> Result<Line, Fault> {
        let not_there = |error| Fault::Way(Some(format!("ssh cannot be started: {error}")));
        let mut ssh = self.command().spawn().map_err(not_there)?;
        let (Some(stdin), Some(stdout)) = (ssh.stdin.take(), ssh.stdout.take()) else {
            return Err(Fault::Ended);
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let listener = ssh.stderr.take().map(|from| tokio::spawn(listen(from, Arc::clone(&said))));
        match Sftp::new(stdin, stdout, SftpOptions::default()).await {
            Ok(sftp) => Ok(Line { sftp, _ssh: ssh }),
            Err(_) => {
                if let Some(listener) = listener {
                    drop(timeout(Duration::from_secs(1), listener).await);
                }
                let said = said.lock().unwrap_or_else(PoisonError::into_inner);
                Err(Fault::Way(reason(&String::from_utf8_lossy(&said))))
            }
        }
    }
}

/// Reads what `ssh` says, so that it never waits for us, and keeps the end of it.
async fn listen(mut from: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut buf = [0; 1024];
    while let Ok(got @ 1..) = from.read(&mut buf).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&buf[..got]);
        let over = said.len().saturating_sub(SAID);
        said.drain(..over);
    }
}

/// Why a line ended: the last thing that `ssh` said.
fn reason(said: &str) -> Option<String> {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.next_back()?;
    let plain = |letter: &char| !letter.is_control();
    Some(last.chars().filter(plain).take(160).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_reason() {
        let said = "Warning: something\r\nalice@host: Permission denied (publickey).\r\n\n";
        assert_eq!(reason(said).unwrap(), "alice@host: Permission denied (publickey).");
        assert_eq!(reason(" \n"), None);
    }

    #[test]
    fn an_address_has_no_brackets_and_a_child_no_secrets() {
        let host = Host { name: "[::1]".into(), port: Some(22), user: None, key: None };
        let command = host.command();
        let args: Vec<_> = command.as_std().get_args().collect();
        assert!(args.ends_with(&["-s", "--", "::1", "sftp"].map(std::ffi::OsStr::new)));
        let gone = |name: &str| {
            command.as_std().get_envs().any(|(key, value)| key == name && value.is_none())
        };
        assert!(gone("AWS_SECRET_ACCESS_KEY") && !gone("SSH_AUTH_SOCK"));
    }
}
