//! `oblivio nbd share://`: a disk at a server, for one computer at a time.

use super::team::{Team, may_mount};
use crate::common::{failed, noise, succeeded};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// Whether these programs are there; it says so if not.
fn has(programs: &[&str]) -> bool {
    programs.iter().all(|program| {
        let found = Command::new(program).arg("--version").output();
        let found = found.is_ok_and(|output| output.status.success());
        if !found {
            eprintln!("skipped: there is no {program}");
        }
        found
    })
}

/// A disk that a computer serves. It ends with the test.
struct Served {
    child: Child,
    uri: String,
}

impl Served {
    /// Serves the team's disk on a computer of this name.
    fn by(team: &Team, device: &str, more: &[&str]) -> Self {
        let (at, token, socket) =
            (team.at(), format!("{device}.token"), format!("{device}.socket"));
        let args = ["nbd", &at, "--socket", &socket, "--token-file", &token];
        let mut command = team.on(device, &[&args, more].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        said.read_line(&mut line).expect("it says that it is up");
        assert!(line.starts_with("Serving share://"), "{line}");
        let socket = team.scratch.path(&socket);
        Self { child, uri: format!("nbd+unix:///?socket={}", socket.display()) }
    }

    /// Commands of qemu-io, and whether all went well.
    fn io(&self, commands: &[&str]) -> bool {
        let mut args = vec!["-f", "raw"];
        commands.iter().for_each(|command| args.extend(["-c", command]));
        args.push(&self.uri);
        let said = Command::new("qemu-io").args(&args).output().expect("it runs");
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        said.status.success() && !text.contains("failed")
    }

    fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("it ends");
    }

    /// Ends it as a user would; its exit code.
    fn end(mut self) -> Option<i32> {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it is there");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn attempt(team: &Team, device: &str, more: &[&str]) -> Output {
    let (at, token) = (team.at(), format!("{device}.token"));
    let args = ["nbd", &at, "--socket", "refused", "--token-file", &token];
    team.on(device, &[&args, more].concat()).output().expect("it runs")
}

#[test]
#[ignore = "system: starts a server"]
fn a_disk_at_a_server_is_written_trimmed_flushed_and_read() {
    if !has(&["qemu-io", "nbdcopy", "nbdinfo"]) {
        return;
    }
    let team = Team::with_disk("16M");
    let disk = Served::by(&team, "anna", &[]);
    assert!(disk.io(&["write -P 1 0 1M", "write -f -P 2 1000 3000", "read -P 1 0 1000"]));
    assert!(disk.io(&["read -P 2 1000 3000", "read -P 1 4000 1044576", "read -P 0 1M 15M"]));
    assert!(disk.io(&["write -z 5000 100000", "read -P 0 5000 100000", "read -P 1 105000 1000"]));
    assert!(disk.io(&["discard 256k 256k", "read -P 0 256k 256k", "flush", "read -P 1 600k 64k"]));
    assert!(disk.io(&["discard 0 16M", "read -P 0 0 16M"]));
    let many: Vec<String> =
        (0..32).map(|at| format!("aio_write -P {} {}k 5k", at + 1, at * 5)).collect();
    let mut commands: Vec<&str> = many.iter().map(String::as_str).collect();
    commands.extend(["aio_flush", "read -P 32 155k 5k", "read -P 1 0 5k"]);
    assert!(disk.io(&commands));
    let mut image = noise(16 << 20, 5);
    image[5 << 20..8 << 20].fill(0);
    let (path, back) = (team.scratch.write("image", &image), team.scratch.path("back"));
    for (from, to) in [(path.to_str(), Some(&*disk.uri)), (Some(&*disk.uri), back.to_str())] {
        let args = ["--flush", from.expect("text"), to.expect("text")];
        succeeded(Command::new("nbdcopy").args(args).output().expect("it runs"));
    }
    assert!(fs::read(&back).expect("a copy") == image, "many requests on four connections");
    assert_eq!(disk.end(), Some(0));
    // Another computer finds it so.
    let disk = Served::by(&team, "ben", &["--read-only"]);
    fs::remove_file(&back).expect("the first copy");
    let args = [&*disk.uri, back.to_str().expect("text")];
    succeeded(Command::new("nbdcopy").args(args).output().expect("it runs"));
    assert!(fs::read(&back).expect("a copy") == image);
    assert!(!disk.io(&["write 0 1k"]), "it is only to be read");
    assert_eq!(disk.end(), Some(0));
}

#[test]
#[ignore = "system: starts a server"]
fn what_was_flushed_outlives_kills_of_the_computer_and_of_the_server() {
    if !has(&["qemu-io"]) {
        return;
    }
    let mut team = Team::with_disk("4M");
    for round in 1..4 {
        let disk = Served::by(&team, "anna", &[]);
        if round > 1 {
            assert!(disk.io(&[&format!("read -P {} 100k 1M", round - 1)]), "round {round}");
        }
        assert!(disk.io(&[&format!("write -P {round} 100k 1M"), "flush", "write -P 99 3M 64k"]));
        if round == 2 {
            team.kill_server();
            team.start();
            assert!(disk.io(&["flush", "read -P 2 100k 1M"]), "the server is back");
        }
        // The next one on the same computer need not wait.
        disk.kill();
    }
}

#[test]
#[ignore = "system: starts a server"]
fn a_second_computer_is_refused_or_takes_the_disk() {
    if !has(&["qemu-io"]) {
        return;
    }
    let team = Team::with_disk("4M");
    let anna = Served::by(&team, "anna", &[]);
    assert!(anna.io(&["write -P 1 0 64k", "flush"]));
    let said = failed(8, attempt(&team, "ben", &[]));
    assert!(said.contains("another computer serves this disk") && said.contains("--take-over"));
    failed(8, attempt(&team, "anna", &[]));
    let ben = Served::by(&team, "ben", &["--take-over"]);
    assert!(ben.io(&["read -P 1 0 64k", "write -P 2 0 64k", "flush"]));
    assert!(!anna.io(&["read 0 64k"]) && !anna.io(&["write -P 3 0 64k", "flush"]));
    assert!(ben.io(&["read -P 2 0 64k"]));
    assert_eq!(anna.end(), Some(1), "it says that it lost the disk");
    assert_eq!(ben.end(), Some(0));
    // It was given back.
    let anna = Served::by(&team, "anna", &[]);
    assert!(anna.io(&["read -P 2 0 64k"]));
    assert_eq!(anna.end(), Some(0));
}

#[test]
#[ignore = "system: starts a server"]
fn files_are_no_disk_and_a_disk_is_no_files() {
    let team = Team::with_disk("1M");
    let said = team.scratch.bad(9, ["check", &team.at()]);
    assert!(said.contains("holds a disk"), "{said}");
    let said = team.scratch.bad(3, ["init", &team.at(), "--disk", "1M"]);
    assert!(said.contains("already"), "{said}");
    if may_mount() {
        fs::create_dir(team.scratch.path("dir")).expect("a folder");
        let said = team.scratch.bad(9, ["mount", &team.at(), "dir"]);
        assert!(said.contains("holds a disk") && said.contains("oblivio nbd"), "{said}");
    }
    let said = team.scratch.bad(2, ["nbd", &team.at(), "--socket", "x", "--pad"]);
    assert!(said.contains("pad"), "{said}");
    let files = Team::new();
    let said = failed(9, attempt(&files, "anna", &[]));
    assert!(said.contains("holds files") && said.contains("oblivio mount"), "{said}");
}
