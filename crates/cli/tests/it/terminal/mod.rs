//! A terminal for a test, and commands that run in it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::common::{PATIENCE, Scratch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, tcgetattr};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::time::Instant;

pub struct Terminal {
    /// The user's end.
    user: OwnedFd,
    /// The programs' end.
    programs: File,
    heard: String,
}

impl Terminal {
    pub fn new() -> Self {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&user).expect("it is ours");
        unlockpt(&user).expect("it can be used");
        let name = ptsname(&user, Vec::new()).expect("it has a name");
        let path = OsStr::from_bytes(name.as_bytes());
        let mut options = File::options();
        let programs = options.read(true).write(true).open(path).expect("its other end");
        Self { user, programs, heard: String::new() }
    }

    /// A program in this terminal, without a passphrase in its environment.
    pub fn program(&self, scratch: &Scratch, program: &str, args: &[&str]) -> Command {
        // Copies the settings of a command of ours.
        let ours = scratch.command::<&str>([]);
        // Tests run in the background may ignore signals, and their children inherit that.
        let mut command = Command::new("env");
        command.args(["--default-signal", "setsid", "--ctty", program]).args(args);
        command.current_dir(scratch.path(""));
        for (name, value) in ours.get_envs() {
            value.map(|value| command.env(name, value));
        }
        command.env_remove("OBLIVIO_PASSPHRASE").env_remove("OBLIVIO_NEW_PASSPHRASE");
        let end = || Stdio::from(self.programs.try_clone().expect("a descriptor"));
        command.stdin(end()).stdout(end()).stderr(end());
        command
    }

    pub fn command(&self, scratch: &Scratch, args: &[&str]) -> Command {
        self.program(scratch, env!("CARGO_BIN_EXE_oblivio"), args)
    }

    /// Types these bytes.
    pub fn say(&mut self, bytes: &[u8]) {
        assert_eq!(rustix::io::write(&self.user, bytes), Ok(bytes.len()));
    }

    /// Waits until this is shown, after the previously expected text.
    pub fn expect(&mut self, text: &str) {
        let begun = Instant::now();
        let mut piece = [0; 4096];
        loop {
            if let Some(at) = self.heard.find(text) {
                self.heard.drain(..at + text.len());
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "no {text:?} in {:?}", self.heard);
            let soon = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            if poll(&mut [PollFd::new(&self.user, PollFlags::IN)], Some(&soon)) == Ok(0) {
                continue;
            }
            let len = rustix::io::read(&self.user, &mut piece).unwrap_or(0);
            self.heard.push_str(&String::from_utf8_lossy(&piece[..len]));
        }
    }

    /// Text shown but not yet expected.
    pub fn heard(&self) -> &str {
        &self.heard
    }

    fn attributes(&self) -> Termios {
        tcgetattr(&self.programs).expect("a terminal")
    }

    /// Whether typed characters show.
    pub fn echoes(&self) -> bool {
        self.attributes().local_modes.contains(LocalModes::ECHO)
    }

    /// All settings that a program could have changed.
    pub fn modes(&self) -> String {
        let Termios { input_modes, output_modes, control_modes, local_modes, .. } =
            self.attributes();
        format!("{input_modes:?} {output_modes:?} {control_modes:?} {local_modes:?}")
    }
}
