//! OpenSSH's server, with keys of its own.

use super::server::{Folder, Server, Skip, find_program, free_port};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server for this user.
#[derive(Debug)]
pub struct SftpRig {
    /// The server.
    pub server: Server,
    ssh: PathBuf,
}

impl SftpRig {
    /// Starts the server.
    ///
    /// # Errors
    /// When `sshd`, `ssh` or `ssh-keygen` is not there, or it does not serve.
    pub fn start() -> Result<Self, Skip> {
        let (program, ssh) = (find_program("sshd")?, find_program("ssh")?);
        let (folder, port) = (Folder::new()?, free_port()?);
        let root = folder.path();
        fs::create_dir(root.join("data"))?;
        for key in ["host", "user"] {
            make_key(&root.join(key))?;
        }
        fs::copy(root.join("user.pub"), root.join("authorized"))?;
        let host = fs::read_to_string(root.join("host.pub"))?;
        fs::write(root.join("known"), format!("[127.0.0.1]:{port} {host}"))?;
        let at = root.display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nPidFile none\nUsePAM no\n\
             AuthorizedKeysFile {at}/authorized\nStrictModes no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             Subsystem sftp internal-sftp\nMaxStartups 100\nMaxSessions 100\n"
        );
        fs::write(root.join("server"), config)?;
        wrap(root, &ssh)?;
        // The system makes it when the service starts, which it need not have.
        drop(fs::create_dir("/run/sshd"));
        let mut command = Command::new(program);
        command.args(["-D", "-e", "-f"]).arg(root.join("server"));
        let ssh = root.join("bin");
        Ok(Self { server: Server::start(&mut command, port, folder)?, ssh })
    }

    /// The URL of a folder.
    #[must_use]
    pub fn url(&self, folder: &str) -> String {
        let port = self.server.address.port();
        format!("sftp://127.0.0.1:{port}{}/data/{folder}", self.server.folder().display())
    }

    /// A PATH whose `ssh` knows this server and the key for it, and nothing of the user's. The
    /// process that uses the server must have been started with it.
    #[must_use]
    pub fn path(&self) -> OsString {
        let mut path = self.ssh.clone().into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        path
    }
}

impl Drop for SftpRig {
    /// Ends the connections that `ssh` keeps open for later commands. Each names this rig's folder.
    fn drop(&mut self) {
        let named = format!("-F {}/client", self.server.folder().display());
        drop(Command::new("pkill").args(["-KILL", "-f", "--", &named]).status());
    }
}

fn make_key(file: &Path) -> Result<(), Skip> {
    let mut command = Command::new(find_program("ssh-keygen")?);
    command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(file);
    let done = command.stdin(Stdio::null()).status()?.success();
    done.then_some(()).ok_or_else(|| Skip("ssh-keygen makes no key".to_owned()))
}

/// An `ssh` with a configuration of its own.
fn wrap(root: &Path, ssh: &Path) -> Result<(), Skip> {
    let at = root.display();
    let config = format!(
        "Host *\nUserKnownHostsFile {at}/known\nGlobalKnownHostsFile none\nIdentityFile {at}/user\n\
         IdentitiesOnly yes\nIdentityAgent none\n"
    );
    fs::write(root.join("client"), config)?;
    let bin = root.join("bin");
    fs::create_dir(&bin)?;
    let script = format!("#!/bin/sh\nexec {} -F {at}/client \"$@\"\n", ssh.display());
    fs::write(bin.join("ssh"), script)?;
    fs::set_permissions(bin.join("ssh"), Permissions::from_mode(0o755))?;
    Ok(())
}
