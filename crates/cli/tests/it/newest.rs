//! Freshness: attempts of a store to pass off an older state, or another volume, as the newest.
//!
//! Each test is an attack that once worked (docs/decisions/0018-trust.md).

use crate::common::{Scratch, copy_dir, failed, fifo, json, noise};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

const CHEAP: [&str; 5] = ["init", "--kdf-memory", "32K", "--kdf-passes", "1"];
const TREE: &[&str] = &["--seen-by", "storage", "--size", "64M"];
const SEQUENTIAL: &[&str] = &["--seen-by", "snapshots", "--size", "8M", "--files"];
/// Exit codes.
const TAMPERED: i32 = 5;
const ROLLED_BACK: i32 = 6;
const BUSY: i32 = 8;
const OTHER_VOLUME: i32 = 11;

fn with_files(how: &[&str]) -> Scratch {
    let scratch = Scratch::new();
    scratch.good([&CHEAP, how, &["v"]].concat());
    scratch
}

/// Replaces a volume's folder by another.
fn put_in_place(scratch: &Scratch, from: &str, to: &str) {
    fs::remove_dir_all(scratch.path(to)).expect("a folder");
    copy_dir(&scratch.path(from), &scratch.path(to));
}

/// Stores a small file.
fn store(scratch: &Scratch, name: &str, computer: &str) {
    scratch.write(name, name);
    let mut put = scratch.command(["put", "v", name, "/"]);
    let done = put.env("XDG_STATE_HOME", scratch.path(computer)).output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// C1: the header read before the passphrase prompt is the one that counts.
#[test]
fn a_header_that_changes_at_the_prompt_opens_nothing() {
    for how in [TREE, SEQUENTIAL] {
        let scratch = with_files(how);
        scratch.good([&CHEAP, how, &["decoy"]].concat());
        store(&scratch, "old", "state");
        copy_dir(&scratch.path("v"), &scratch.path("copy"));
        store(&scratch, "new", "state");
        copy_dir(&scratch.path("v"), &scratch.path("newest"));
        put_in_place(&scratch, "copy", "v");
        fs::copy(scratch.path("decoy/header"), scratch.path("v/header")).expect("a copy");
        let pipe = fifo(&scratch, "pipe");
        let mut ls = scratch.command(["ls", "v", "/", "--passphrase-file", "pipe"]);
        ls.env_remove("OBLIVIO_PASSPHRASE").stdout(Stdio::piped()).stderr(Stdio::piped());
        let ls = ls.spawn().expect("it runs");
        // When this returns, the command waits for the passphrase and has read the header.
        let mut passphrase = fs::File::options().write(true).open(&pipe).expect("a pipe");
        fs::copy(scratch.path("copy/header"), scratch.path("v/header")).expect("a copy");
        passphrase.write_all(b"secret\n").expect("it reads");
        drop(passphrase);
        let ended = ls.wait_with_output().expect("it ends");
        let code = ended.status.code();
        assert!(code == Some(OTHER_VOLUME) || code == Some(TAMPERED), "{ended:?}");
        // This computer's memory is unchanged.
        scratch.bad(ROLLED_BACK, ["ls", "v", "/"]);
        put_in_place(&scratch, "newest", "v");
        assert_eq!(scratch.good(["ls", "v", "/"]), "new\nold\n");
    }
}

/// A disk server, which holds its volume until it is dropped.
struct Server(Child);

impl Server {
    fn of(scratch: &Scratch, volume: &str) -> Self {
        let mut command = scratch.command(["nbd", volume, "--socket", "s"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
        let mut line = String::new();
        let said = child.stdout.take().expect("a pipe");
        BufReader::new(said).read_line(&mut line).expect("it says where it serves");
        assert!(line.starts_with("Serving"), "{line}");
        Self(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// H2: a lock that the store removes does not let a second session in.
#[test]
#[ignore = "system: starts a server"]
fn a_lock_that_is_renamed_lets_nobody_in() {
    for how in [&["--seen-by", "storage"][..], &["--seen-by", "snapshots"]] {
        let scratch = Scratch::new();
        scratch.good([&CHEAP, how, &["--disk", "4M", "d"]].concat());
        let server = Server::of(&scratch, "d");
        fs::rename(scratch.path("d/.lock"), scratch.path("d/.lock-")).expect("it is there");
        scratch.bad(BUSY, ["check", "d"]);
        // Nor under another name of the same folder.
        std::os::unix::fs::symlink(scratch.path("d"), scratch.path("e")).expect("a link");
        scratch.bad(BUSY, ["check", "e"]);
        drop(server);
        assert!(scratch.good(["check", "d"]).starts_with("clean"));
    }
}

/// H3: a history that forked from a computer's memory is refused, however long it is.
#[test]
fn a_longer_fork_is_refused() {
    for how in [TREE, SEQUENTIAL] {
        let scratch = with_files(how);
        store(&scratch, "both", "state");
        store(&scratch, "b", "other");
        store(&scratch, "a", "state");
        copy_dir(&scratch.path("v"), &scratch.path("base"));
        store(&scratch, "mine", "state");
        copy_dir(&scratch.path("v"), &scratch.path("mine-v"));
        put_in_place(&scratch, "base", "v");
        for name in ["1", "2", "3", "4", "5", "6"] {
            store(&scratch, name, "other");
        }
        copy_dir(&scratch.path("v"), &scratch.path("other-v"));
        scratch.bad(ROLLED_BACK, ["ls", "v", "/"]);
        // Each computer goes on with its own history, and the other one's is refused to it too.
        put_in_place(&scratch, "mine-v", "v");
        assert!(scratch.good(["ls", "v", "/"]).contains("mine"));
        let mut ls = scratch.command(["ls", "v", "/"]);
        failed(ROLLED_BACK, ls.env("XDG_STATE_HOME", scratch.path("other")).output().expect("run"));
        // A user who accepts the rollback goes on with the other one.
        put_in_place(&scratch, "other-v", "v");
        let found = scratch.good(["ls", "v", "/", "--accept-rollback"]);
        assert!(found.contains('6') && !found.contains("mine"), "{found}");
        assert_eq!(scratch.good(["ls", "v", "/"]), found);
    }
}

fn reads_some(scratch: &Scratch) -> Child {
    let mut cat = scratch.command(["cat", "v", "/large"]);
    let mut cat = cat.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut some = [0; 1000];
    cat.stdout.as_mut().expect("a pipe").read_exact(&mut some).expect("the file");
    cat
}

/// H4: a session that is cut short ends like any other, and a killed one is replayed: its journal
/// cannot be taken away.
#[test]
#[ignore = "system: kills processes"]
fn what_was_shown_is_not_shown_again_when_the_journal_is_emptied() {
    let scratch = with_files(TREE);
    scratch.write("large", noise(8 << 20, 5));
    scratch.good(["put", "v", "large", "/"]);
    let mut cat = reads_some(&scratch);
    drop(cat.stdout.take());
    cat.wait().expect("it ends");
    let journal = scratch.path("v/journal");
    assert_eq!(fs::metadata(&journal).expect("there").len(), 0, "the session ended in order");
    let mut cat = reads_some(&scratch);
    cat.kill().expect("it runs");
    cat.wait().expect("it ends");
    let whole = fs::read(&journal).expect("there");
    assert!(!whole.is_empty());
    fs::write(&journal, "").expect("written");
    let error = scratch.bad(ROLLED_BACK, ["ls", "v", "/"]);
    assert!(error.contains("the end of the log is missing"), "{error}");
    fs::write(&journal, whole).expect("written");
    assert!(scratch.good(["check", "v"]).starts_with("clean"));
}

/// M2: another volume with the same passphrase is not accepted in place of one.
#[test]
fn two_folders_that_are_swapped_are_told_apart() {
    for how in [TREE, SEQUENTIAL] {
        let scratch = with_files(how);
        scratch.good([&CHEAP, how, &["w"]].concat());
        store(&scratch, "mine", "state");
        let identity = |at| json(&scratch.good(["info", "--json", at]))["volume"].to_string();
        let (v, w) = (identity("v"), identity("w"));
        fs::rename(scratch.path("v"), scratch.path("x")).expect("a folder");
        fs::rename(scratch.path("w"), scratch.path("v")).expect("a folder");
        let error = scratch.bad(OTHER_VOLUME, ["ls", "v", "/"]);
        for volume in [&v, &w] {
            assert!(error.contains(volume.trim_matches('"')), "{error}");
        }
        // A volume that only moved is known by its identity.
        assert_eq!(scratch.good(["ls", "x", "/"]), "mine\n");
        assert_eq!(scratch.good(["ls", "v", "/", "--accept-other-volume"]), "");
        assert_eq!(scratch.good(["ls", "v", "/"]), "");
        // A new volume belongs where it is made.
        fs::remove_dir_all(scratch.path("v")).expect("a folder");
        scratch.good([&CHEAP, how, &["v"]].concat());
        assert_eq!(scratch.good(["ls", "v", "/"]), "");
    }
}
