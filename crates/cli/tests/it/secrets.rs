//! A passphrase stays neither in the environment, nor the memory, nor a core dump of a server.

use crate::common::{Scratch, succeeded, until};
use crate::terminal::Terminal;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

const SECRET: &str = "battery staple 7391 c\u{f4}rrect";

/// A volume with the passphrase [`SECRET`], with a disk or files.
fn volume(what: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    let args = [&["init", "--kdf-memory", "1M", "--kdf-passes", "1", "v"], what].concat();
    let made = scratch.command(args).env("OBLIVIO_PASSPHRASE", SECRET).output().expect("it runs");
    succeeded(made);
    scratch.write("secret.txt", format!("{SECRET}\nthe rest\n"));
    scratch
}

/// Processes that have this as an argument.
fn processes_with(argument: &str) -> Vec<i32> {
    let numbers = fs::read_dir("/proc").expect("processes").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has = |number: &i32| {
        fs::read(format!("/proc/{number}/cmdline")).is_ok_and(|line| {
            line.split(|byte| *byte == 0).any(|found| found == argument.as_bytes())
        })
    };
    numbers.filter(has).collect()
}

/// Which of these a process's memory holds; `None` where access is denied.
fn holds<const N: usize>(process: i32, needles: [&[u8]; N]) -> Option<[bool; N]> {
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    let most = needles.iter().map(|needle| needle.len()).max()?;
    let (mut piece, mut found) = (vec![0; 4 << 20], [false; N]);
    for line in maps.lines().filter(|line| line.contains(" r")) {
        let (from, rest) = line.split_once('-')?;
        let to = rest.split(' ').next()?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (mut at, end) = (hex(from)?, hex(to)?);
        while at < end {
            let len = piece.len().min((end - at) as usize);
            // Some mappings of the kernel cannot be read.
            let Ok(got) = memory.read_at(&mut piece[..len], at) else { break };
            if got == 0 {
                break;
            }
            look(&piece[..got], most, &needles, &mut found);
            // The next piece begins with what a needle may begin with here.
            at += if got == len && at + (got as u64) < end {
                (got - most) as u64
            } else {
                got as u64
            };
        }
    }
    Some(found)
}

/// Looks through memory, but for pages of zeros, which most of it is.
fn look(memory: &[u8], most: usize, needles: &[&[u8]], found: &mut [bool]) {
    const PAGE: usize = 4096;
    for from in (0..memory.len()).step_by(PAGE) {
        let page = &memory[from..memory.len().min(from + PAGE)];
        // What begins in this page may end in the next one. What begins in one of zeros cannot be
        // text.
        let around = &memory[from..memory.len().min(from + PAGE + most)];
        if page == &[0; PAGE][..page.len()] {
            continue;
        }
        for (needle, found) in needles.iter().zip(found.iter_mut()) {
            *found = *found || around.windows(needle.len()).any(|here| here == *needle);
        }
    }
}

/// Neither `/proc` nor the memory of a process shows the passphrase.
fn expect_clean(process: i32, argument: &str) {
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    assert!(!environment.windows(8).any(|found| found == &SECRET.as_bytes()[..8]), "environ");
    let line = fs::read(format!("/proc/{process}/cmdline")).expect("it runs");
    assert!(!line.windows(8).any(|found| found == &SECRET.as_bytes()[..8]), "arguments");
    // Any long enough part of it, and both ends.
    let (first, last) = (&SECRET.as_bytes()[..12], &SECRET.as_bytes()[SECRET.len() - 12..]);
    let Some(found) = holds(process, [argument.as_bytes(), first, last]) else {
        return eprintln!("skipped: only root looks into the memory of such a process");
    };
    assert!(found[0], "its arguments are in its memory, and would be found");
    assert!(!environment.is_empty(), "root sees the environment");
    assert_eq!(found[1..], [false; 2], "the memory holds a part of the passphrase");
}

/// Ends a server and waits until it is gone.
fn end(process: i32) {
    kill_process(Pid::from_raw(process).expect("a process"), Signal::TERM).expect("it is there");
    until(|| !Path::new(&format!("/proc/{process}/environ")).exists() || is_zombie(process));
}

fn is_zombie(process: i32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

/// For every source of the passphrase. `begin` starts a server in the background.
fn a_background_server_is_clean(scratch: &Scratch, begin: &[&str], place: &str) {
    let clean = || {
        let found = processes_with(place);
        assert_eq!(found.len(), 1, "one server, in the background: {found:?}");
        expect_clean(found[0], place);
        end(found[0]);
    };
    let with = |more: &[&str]| scratch.command([begin, more].concat());
    let by_environment = with(&[]).env("OBLIVIO_PASSPHRASE", SECRET).output();
    succeeded(by_environment.expect("it runs"));
    clean();
    let mut by_file = with(&["--passphrase-file", "secret.txt"]);
    succeeded(by_file.env("OBLIVIO_PASSPHRASE", SECRET).output().expect("it runs"));
    clean();
    let mut by_descriptor = with(&["--passphrase-fd", "0"]);
    by_descriptor.env_remove("OBLIVIO_PASSPHRASE").stdin(Stdio::piped()).stdout(Stdio::null());
    let mut begun = by_descriptor.spawn().expect("it runs");
    let typed = format!("{SECRET}\n");
    begun.stdin.take().expect("a pipe").write_all(typed.as_bytes()).expect("it reads");
    assert!(begun.wait().expect("it ends").success());
    clean();
    let mut terminal = Terminal::new();
    let mut by_typing = terminal.command(scratch, begin);
    let mut begun = by_typing.spawn().expect("it runs");
    terminal.expect("Passphrase: ");
    terminal.say(typed.as_bytes());
    assert!(begun.wait().expect("it ends").success(), "{}", terminal.heard());
    clean();
}

#[test]
#[ignore = "system: starts a server"]
fn a_background_disk_holds_no_passphrase() {
    let scratch = volume(&["--disk", "1M"]);
    let place = scratch.path("s").display().to_string();
    let begin = ["nbd", "v", "--background", "--socket", &place];
    a_background_server_is_clean(&scratch, &begin, &place);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_background_mount_holds_no_passphrase() {
    if !Path::new("/dev/fuse").exists() || Command::new("fusermount3").arg("-V").output().is_err() {
        return eprintln!("skipped: there is no FUSE here");
    }
    let scratch = volume(&[]);
    fs::create_dir(scratch.path("m")).expect("a folder");
    let place = scratch.path("m").display().to_string();
    a_background_server_is_clean(&scratch, &["mount", "--background", "v", &place], &place);
}

/// A server in the foreground with the passphrase in its environment.
fn foreground(scratch: &Scratch) -> (std::process::Child, String) {
    let place = scratch.path("s").display().to_string();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c unlimited; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_oblivio")]);
    command.args(["nbd", "v", "--socket", &place]).current_dir(scratch.path(""));
    command.env("XDG_STATE_HOME", scratch.path("state")).env("OBLIVIO_PASSPHRASE", SECRET);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert!(line.starts_with("Serving"), "{line}");
    (child, place)
}

#[test]
#[ignore = "system: starts a server"]
fn a_foreground_server_is_clean_and_leaves_no_core() {
    let scratch = volume(&["--disk", "1M"]);
    let (mut child, place) = foreground(&scratch);
    expect_clean(child.id() as i32, &place);
    let abort = "ulimit -c unlimited; kill -ABRT $$";
    let control = Command::new("sh").args(["-c", abort]).current_dir(scratch.path("")).status();
    let dumps = control.expect("it runs").core_dumped();
    kill_process(Pid::from_child(&child), Signal::ABORT).expect("it is there");
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(6));
    match dumps {
        true => assert!(!status.core_dumped(), "it left a core"),
        false => eprintln!("skipped: no process leaves a core here"),
    }
}

/// A browser or another program that a command starts.
#[test]
#[ignore = "system: starts a server"]
fn children_inherit_no_passphrase() {
    let scratch = volume(&[]);
    let seen = scratch.path("seen");
    let script = format!(
        "#!/bin/sh\nenv >{0}.part\nfor fd in /proc/self/fd/*; do timeout 1 cat \"$fd\"; done \
         </dev/null 2>/dev/null >>{0}.part\nmv {0}.part {0}\n",
        seen.display()
    );
    let browser = scratch.write("bin/xdg-open", script);
    fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it");
    let path = format!("{}:{}", scratch.path("bin").display(), std::env::var("PATH").expect("one"));
    let mut watch = scratch.command(["watch", "--open", "v"]);
    watch.env("PATH", path).env("OBLIVIO_PASSPHRASE", SECRET).stdout(Stdio::null());
    let mut child = watch.stderr(Stdio::null()).spawn().expect("it runs");
    until(|| seen.exists());
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is there");
    child.wait().expect("it ends");
    let text = String::from_utf8_lossy(&fs::read(&seen).expect("it")).into_owned();
    assert!(text.contains("PATH="), "{text}");
    assert!(!text.contains(SECRET), "{text}");
}
