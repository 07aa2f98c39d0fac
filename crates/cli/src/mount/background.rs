//! `--background`: the command starts itself once more, waits until its server is up, and ends.
//!
//! The first process asks for the passphrase and hands it over: only one process uses the terminal.
//! The second one reports errors there as usual, and leaves the terminal only when the mount (or
//! the disk) works.

use crate::args::OpenArgs;
use crate::exit::{Code, fault};
use crate::human::plain;
use crate::{open, passphrase};
use anyhow::{Context, Result};
use oblivio_serve::log;
use oblivio_volume::read_header;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

const UP: &[u8] = b"up\n";

/// In the first process: ends when the server is up, or with the second process's exit code. Asks
/// for the passphrase of the volume in `folder`, if there is one.
pub fn start(folder: &Path, args: &OpenArgs) -> Result<()> {
    read_header(&open::store(folder)?).with_context(|| folder.display().to_string())?;
    again(args)
}

/// The same for a volume that is not in a folder.
pub fn again(args: &OpenArgs) -> Result<()> {
    let passphrase = passphrase::to_hand_over(&args.passphrase)?;
    let mut words =
        super::options::as_mount_helper(std::env::args_os().collect()).into_iter().skip(1);
    let command = words.next().context("no command")?;
    let mut again = Command::new(std::env::current_exe()?);
    again.arg(command).arg("--child").args(words).stdout(Stdio::piped());
    passphrase.to(&mut again);
    let mut child = again.spawn().context("starting the process in the background")?;
    drop(passphrase);
    let mut said = Vec::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_end(&mut said)?;
    }
    if said.ends_with(UP) {
        let text = said.strip_suffix(UP).unwrap_or_default();
        return match text.strip_suffix(b"\n") {
            Some(line) => crate::human::say(line),
            None => Ok(()),
        };
    }
    match child.wait()?.code() {
        // That process has reported the error.
        Some(code) => std::process::exit(code),
        None => Err(fault(Code::General, "the process in the background was killed", "")),
    }
}

/// In the second process: the server is up. Leaves the terminal and lets the first process end,
/// with a line to print.
pub fn up(line: Option<String>) -> Result<()> {
    // It fails only for a process that leads a session already.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/")?;
    let mut out = std::io::stdout().lock();
    if let Some(line) = line {
        writeln!(out, "{}", plain(&line))?;
    }
    out.write_all(UP)?;
    out.flush()?;
    log::to_background();
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Notifies systemd, if it started us and waits, that the server is up.
pub fn ready() {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Ok(socket) = UnixDatagram::unbound() {
        let _ = socket.send_to(b"READY=1", Path::new(&address));
    }
}
