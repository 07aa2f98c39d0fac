//! A volume as a block device of this computer. Needs root and the ublk driver; skipped, with a
//! printed reason, where there is none.

use crate::common::{Notes, Scratch, until};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

const CONTROL: &str = "/dev/ublk-control";
const MIB: usize = 1 << 20;

/// A volume `d` with a disk of 64 MiB in it, and its server.
struct Rig {
    scratch: Scratch,
    server: Option<(Child, String)>,
    /// What the server says.
    notes: Option<Notes>,
}

impl Rig {
    fn new() -> Option<Self> {
        if !Path::new(CONTROL).exists() {
            eprintln!("skipped: there is no {CONTROL} (the kernel has no ublk driver)");
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: adding block devices needs root");
            return None;
        }
        let scratch = Scratch::new();
        scratch.good(["init", "--kdf-memory", "32K", "--kdf-passes", "1", "--disk", "64M", "d"]);
        Some(Self { scratch, server: None, notes: None })
    }

    /// Serves the disk; returns the device's path.
    fn serve(&mut self, options: &[&str]) -> String {
        let mut command =
            self.scratch.command(["ublk", "d"].into_iter().chain(options.iter().copied()));
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        self.notes = Some(Notes::of(&mut child));
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let device = line.split(" at ").nth(1).and_then(|rest| rest.split(". ").next());
        let device = device.unwrap_or_else(|| panic!("{line:?}")).to_owned();
        self.server = Some((child, device.clone()));
        device
    }

    /// Tells the server to end, while its device is mounted.
    fn signal_in_use(&mut self) {
        self.signal();
        self.notes.as_mut().expect("a server").until("is mounted");
    }

    fn signal(&self) {
        let (server, _) = self.server.as_ref().expect("a server");
        let id = rustix::process::Pid::from_child(server);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it is there");
    }

    /// Ends the server as a user would.
    fn end(&mut self) {
        self.signal();
        let (mut server, device) = self.server.take().expect("a server");
        assert_eq!(server.wait().expect("it ends").code(), Some(0));
        assert!(!Path::new(&device).exists(), "{device} is left");
        assert!(!Path::new(&device.replace("ublkb", "ublkc")).exists(), "its control is left");
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some((mut server, _)) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().expect("the program runs")
}

fn good(program: &str, args: &[&str]) -> String {
    crate::common::succeeded(run(program, args))
}

fn queue(device: &str, attribute: &str) -> u64 {
    let path = device.replace("/dev/", "/sys/block/") + "/queue/" + attribute;
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.trim().parse().expect("a number")
}

/// A pattern that distinguishes all blocks of 4 KiB.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let number = |at: usize| (at as u64 / 8).wrapping_add(seed << 32).to_le_bytes()[at % 8];
    (0..len).map(number).collect()
}

/// Bytes of the device, past the system's cache.
fn cold(device: &str, offset: usize, len: usize) -> Vec<u8> {
    good("blockdev", &["--flushbufs", device]);
    let mut bytes = vec![0; len];
    File::open(device).expect("open").read_exact_at(&mut bytes, offset as u64).expect("read");
    bytes
}

#[test]
#[ignore = "system: the driver ublk, as root"]
fn what_is_written_is_read_and_stays() {
    let Some(mut rig) = Rig::new() else { return };
    let device = rig.serve(&[]);
    assert_eq!(good("blockdev", &["--getsize64", &device]).trim(), (64 * MIB).to_string());
    assert_eq!(queue(&device, "logical_block_size"), 4096);
    assert_eq!(queue(&device, "max_sectors_kb"), 512);
    assert_eq!(queue(&device, "fua"), 1);
    // Longer than a request's limit, and several at once.
    let data = pattern(9 * MIB, 1);
    let writer = |from: usize| {
        let (device, part) = (device.clone(), data[from..from + 3 * MIB].to_vec());
        thread::spawn(move || {
            let file = OpenOptions::new().write(true).open(device).expect("open");
            file.write_all_at(&part, (from + MIB) as u64).expect("write");
            file.sync_all().expect("sync");
        })
    };
    let writers: Vec<_> = [0, 3 * MIB, 6 * MIB].into_iter().map(writer).collect();
    writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
    assert_eq!(cold(&device, MIB, 9 * MIB), data);
    // Discards and zeros, on whole blocks.
    let range = |at: usize| [at.to_string(), MIB.to_string()];
    let [at, len] = range(2 * MIB);
    good("blkdiscard", &["-o", &at, "-l", &len, &device]);
    let [at, len] = range(4 * MIB);
    good("blkdiscard", &["-z", "-o", &at, "-l", &len, &device]);
    let check = |device: &str| {
        let now = cold(device, MIB, 9 * MIB);
        assert_eq!(now[..MIB], data[..MIB]);
        assert!(now[MIB..2 * MIB].iter().all(|byte| *byte == 0), "discarded");
        assert_eq!(now[2 * MIB..3 * MIB], data[2 * MIB..3 * MIB]);
        assert!(now[3 * MIB..4 * MIB].iter().all(|byte| *byte == 0), "zeroed");
        assert_eq!(now[4 * MIB..], data[4 * MIB..]);
    };
    check(&device);
    rig.end();
    let device = rig.serve(&["--block-size", "512"]);
    assert_eq!(queue(&device, "logical_block_size"), 512);
    check(&device);
    rig.end();
    rig.scratch.good(["check", "d"]);
}

#[test]
#[ignore = "system: the driver ublk, as root"]
fn a_disk_to_be_read_only_is() {
    let Some(mut rig) = Rig::new() else { return };
    let device = rig.serve(&["--read-only"]);
    assert_eq!(good("blockdev", &["--getro", &device]).trim(), "1");
    let file = OpenOptions::new().read(true).write(true).open(&device);
    let wrote = file.and_then(|file| {
        file.write_all_at(&[1; 4096], 0)?;
        file.sync_all()
    });
    assert!(wrote.is_err());
    assert_eq!(cold(&device, 0, 4096), [0; 4096]);
    rig.end();
}

/// A served disk with a mounted ext4 on it, and its directory, also as text.
fn mounted() -> Option<(Rig, PathBuf, String)> {
    let mut rig = Rig::new()?;
    let device = rig.serve(&[]);
    let dir = rig.scratch.path("m");
    fs::create_dir_all(&dir).expect("a directory");
    let at = dir.to_str().expect("text").to_owned();
    good("mkfs.ext4", &["-q", &device]);
    good("mount", &["-t", "ext4", &device, &at]);
    Some((rig, dir, at))
}

/// A file system is mounted when the signal comes: the server waits for it.
#[test]
#[ignore = "system: the driver ublk, as root"]
fn a_file_system_is_not_torn_away() {
    let Some((mut rig, dir, at)) = mounted() else { return };
    let data = pattern(5 * MIB, 2);
    fs::write(dir.join("file"), &data).expect("write");
    rig.signal_in_use();
    fs::write(dir.join("after the signal"), &data).expect("still there");
    good("umount", &[&at]);
    let (server, _) = rig.server.as_mut().expect("a server");
    let mut ended = None;
    until(|| {
        ended = server.try_wait().expect("a child");
        ended.is_some()
    });
    let code = ended.and_then(|status| status.code());
    assert_eq!(code, Some(0));
    rig.server = None;
    let device = rig.serve(&[]);
    good("e2fsck", &["-f", "-n", &device]);
    good("mount", &["-t", "ext4", &device, &at]);
    for name in ["file", "after the signal"] {
        let mut found = Vec::new();
        File::open(dir.join(name)).and_then(|mut file| file.read_to_end(&mut found)).expect(name);
        assert!(found == data, "{name}");
    }
    good("umount", &[&at]);
    rig.end();
}

/// The second signal takes the device from a file system, which then gets errors.
#[test]
#[ignore = "system: the driver ublk, as root"]
fn a_second_signal_does_not_wait() {
    let Some((mut rig, dir, at)) = mounted() else { return };
    fs::write(dir.join("file"), pattern(MIB, 4)).expect("write");
    good("sync", &[]);
    rig.signal_in_use();
    rig.signal();
    let (mut server, _) = rig.server.take().expect("a server");
    let ended = server.wait();
    good("umount", &[&at]);
    assert_eq!(ended.expect("it ends").code(), Some(0));
    let again = rig.serve(&[]);
    assert!(run("e2fsck", &["-p", &again]).status.code().is_some_and(|code| code <= 1));
    good("e2fsck", &["-f", "-n", &again]);
    rig.end();
}

/// A killed server: the device goes, and flushed data is there when it is served again.
#[test]
#[ignore = "system: the driver ublk, as root"]
fn what_was_flushed_outlives_the_server() {
    let Some(mut rig) = Rig::new() else { return };
    let device = rig.serve(&[]);
    let data = pattern(MIB, 3);
    let file = OpenOptions::new().write(true).open(&device).expect("open");
    file.write_all_at(&data, 0).expect("write");
    file.sync_all().expect("sync");
    drop(file);
    let (mut server, _) = rig.server.take().expect("a server");
    server.kill().expect("it is there");
    server.wait().expect("it ends");
    until(|| !Path::new(&device).exists());
    let again = rig.serve(&[]);
    assert_eq!(cold(&again, 0, MIB), data);
    rig.end();
}

#[test]
#[ignore = "system: the driver ublk, as root"]
fn without_the_driver_it_says_what_to_do() {
    if Path::new(CONTROL).exists() {
        eprintln!("skipped: the driver is here");
        return;
    }
    let output = Scratch::new().command(["ublk", "d"]).output().expect("the command runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(CONTROL) && said.contains("modprobe ublk_drv"), "{said}");
}
