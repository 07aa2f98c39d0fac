//! Volumes over SFTP, with the command and OpenSSH, if it is there.

use crate::common::{Scratch, noise, succeeded, until};
use crate::online::{INIT, command};
use oblivio_testkit::rigs::SftpRig;
use std::fs;

/// Processes of `ssh` with this rig's configuration.
fn lines(rig: &SftpRig) -> usize {
    let config = rig.server.folder().join("client").into_os_string().into_encoded_bytes();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let commands = processes.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
    commands.filter(|line| line.split(|byte| *byte == 0).any(|part| part == config)).count()
}

#[test]
#[ignore = "system: OpenSSH, if it is installed"]
fn over_sftp_nothing_outlives_the_command() {
    let rig = match SftpRig::start() {
        Ok(rig) => rig,
        Err(skip) => return eprintln!("skipped: OpenSSH: {skip}"),
    };
    let (scratch, url) = (Scratch::new(), rig.url("vault"));
    let ssh = |computer: &str, args: &[&str]| {
        let mut command = command(&scratch, computer, args);
        command.env("PATH", rig.path());
        command
    };
    let on = |computer: &str, args: &[&str]| succeeded(ssh(computer, args).output().unwrap());
    let ended = || until(|| lines(&rig) == 0);
    on("one", &[&INIT[..], &["--size", "64M", &url]].concat());
    ended();
    scratch.write("noise", noise(3 << 20, 1));
    on("one", &["put", &url, "noise", "/"]);
    ended();
    let back = ssh("two", &["cat", &url, "/noise"]).output().unwrap();
    assert_eq!(back.stdout, noise(3 << 20, 1));
    ended();
    // Killed while it has lines.
    let mut killed = ssh("one", &["put", &url, "noise", "/again"]).spawn().unwrap();
    until(|| lines(&rig) > 0);
    killed.kill().unwrap();
    killed.wait().unwrap();
    ended();
    assert!(on("two", &["check", "--take-over", &url]).starts_with("clean"));
    ended();
}
