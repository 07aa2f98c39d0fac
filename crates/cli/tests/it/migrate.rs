//! Volumes that move between services, with the command and real servers where they are installed.

use crate::common::{Scratch, failed, json, noise, succeeded};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::LocalStore;
use oblivio_testkit::accounts::{Account, Kind};
use oblivio_testkit::rigs::{S3Kind, S3Rig, SftpRig, Skip, WebDavKind, WebDavRig};
use oblivio_volume::{BlockSpace, NewVolume, OpenOptions, SeenBy};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const CHEAP: [&str; 4] = ["--kdf-memory", "32K", "--kdf-passes", "1"];

/// A computer, and the servers that it reaches.
struct Computer {
    scratch: Scratch,
    path: OsString,
}

impl Computer {
    fn new(path: OsString) -> Self {
        Self { scratch: Scratch::new(), path }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.scratch.command(args);
        command
            .env("HOME", self.scratch.path("home"))
            .env_remove("XDG_CONFIG_HOME")
            .env("AWS_ACCESS_KEY_ID", S3Rig::KEY_ID)
            .env("AWS_SECRET_ACCESS_KEY", S3Rig::SECRET)
            .env_remove("AWS_ENDPOINT_URL")
            .env("PATH", &self.path);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the command runs")
    }

    fn good(&self, args: &[&str]) -> String {
        succeeded(self.run(args))
    }

    fn migrate(&self, from: &str, to: &str) -> String {
        self.good(&[&["migrate", "--small-probe=3"], &CHEAP[..], &[from, to]].concat())
    }

    /// The files of a volume, brought back.
    fn tree(&self, volume: &str, name: &str) -> BTreeMap<String, (u32, i64, Vec<u8>)> {
        self.good(&["get", "-r", volume, "/", name]);
        tree(&self.scratch.path(name))
    }
}

/// Paths with modes, times and contents.
fn tree(root: &Path) -> BTreeMap<String, (u32, i64, Vec<u8>)> {
    let (mut found, mut todo) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(path) = todo.pop() {
        let it = path.symlink_metadata().unwrap();
        let content = if it.is_dir() {
            todo.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if it.is_symlink() {
            path.read_link().unwrap().into_os_string().into_encoded_bytes()
        } else {
            fs::read(&path).unwrap()
        };
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        found.insert(name, (it.mode(), it.mtime(), content));
    }
    found.remove("");
    found
}

fn volume_in_a_folder(computer: &Computer) {
    let scratch = &computer.scratch;
    computer.good(&[&["init"], &CHEAP[..], &["--size", "64M", "v"]].concat());
    scratch.write("files/noise", noise(1 << 20, 1));
    scratch.write("files/deep/small", "a letter\n");
    for number in 0..20 {
        scratch.write(&format!("files/deep/er/{number}"), noise(100 * number as usize, number));
    }
    std::os::unix::fs::symlink("deep/small", scratch.path("files/link")).unwrap();
    fs::set_permissions(scratch.path("files/noise"), fs::Permissions::from_mode(0o600)).unwrap();
    computer.good(&["put", "-r", "v", "files", "/"]);
}

/// Runs a migration and kills it, each time later, until it is through. `whole` is how long one
/// takes here.
fn killed_again_and_again(computer: &Computer, from: &str, to: &str, whole: Duration) -> u32 {
    let args = [&["migrate", "--small-probe=3"], &CHEAP[..], &[from, to]].concat();
    for run in 1..40 {
        let mut child = computer.command(&args).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(whole * run / 4);
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
            continue;
        }
        let out = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        // Cut off after the last file, the copy is whole: the caller looks.
        let was_through = said.contains("at its very end");
        assert!(out.status.success() || was_through, "run {run}: {}: {said}", out.status);
        return run - 1;
    }
    panic!("it never gets through");
}

fn have<T>(name: &str, rig: Result<T, Skip>) -> Option<T> {
    rig.inspect_err(|why| eprintln!("skipped: {name}: {why}")).ok()
}

fn s3() -> Option<S3Rig> {
    S3Kind::ALL.into_iter().find_map(|kind| have(&format!("{kind:?}"), S3Rig::start(kind)))
}

fn webdav() -> Option<WebDavRig> {
    let kinds = [WebDavKind::Apache, WebDavKind::WsgiDav];
    kinds.into_iter().find_map(|kind| have(&format!("{kind:?}"), WebDavRig::start(kind)))
}

/// Folder, S3, WebDAV, SFTP, folder: with all that there is.
#[test]
#[ignore = "system: servers, if they are installed"]
fn a_volume_goes_round_all_services_and_comes_home() {
    let sftp = have("sftp", SftpRig::start()).filter(|_| cfg!(feature = "sftp"));
    let path = sftp.as_ref().map_or_else(|| std::env::var_os("PATH").unwrap(), SftpRig::path);
    let computer = Computer::new(path);
    volume_in_a_folder(&computer);
    let wanted = computer.tree("v", "before");
    let mut at = "v".to_owned();
    let mut go = |to: String, in_words: &str| {
        let said = computer.migrate(&at, &to);
        assert!(said.contains(in_words) && said.contains("not both"), "{said}");
        assert!(computer.good(&["check", &to]).starts_with("clean"), "{to}");
        at = to;
    };
    let (s3, dav) = (s3(), webdav());
    if let Some(rig) = &s3 {
        go(rig.url("one"), "files");
        // The same service: objects as they are, unless it lets two win a race under load.
        go(rig.url("other"), "Copied");
    }
    if let Some(rig) = &dav {
        computer.scratch.write("password", WebDavRig::PASSWORD);
        let file = computer.scratch.path("password");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let url = rig.url("").trim_end_matches('/').to_owned();
        let user = ["--user", WebDavRig::USER, "--secret-file", file.to_str().unwrap()];
        let user = if rig.has_user { &user[..] } else { &["--no-secret"] };
        computer.good(&[&["remote", "add", "dav", &url], user].concat());
        // Sessions begin in another way there, if the service before creates exclusively.
        go("dav:vault".to_owned(), "Copied");
    }
    if let Some(rig) = &sftp {
        // From WebDAV, where sessions are alone in a list, to any other: objects.
        go(rig.url("vault"), if dav.is_some() { "objects" } else { "files" });
    }
    go("at-home".to_owned(), "files");
    assert_eq!(computer.tree("at-home", "after"), wanted);
    // The volume where it began is whole.
    assert_eq!(computer.tree("v", "still"), wanted);
}

/// What a trial of the service left, or a volume that did not come about, is no reason to refuse;
/// anything else is.
#[test]
#[cfg(feature = "sftp")]
#[ignore = "system: OpenSSH, if it is installed"]
fn what_was_left_at_a_new_place_does_no_harm() {
    let Some(rig) = have("sftp", SftpRig::start()) else { return };
    let computer = Computer::new(rig.path());
    let holding = |folder: &str, names: &[&str]| {
        let url = rig.url(folder);
        // The path in the URL is that of the server's file system.
        let path = url["sftp://".len()..].find('/').map(|at| &url["sftp://".len() + at..]);
        let there = PathBuf::from(path.unwrap());
        fs::create_dir_all(&there).unwrap();
        names.iter().for_each(|name| fs::write(there.join(name), "left").unwrap());
        (url, there)
    };
    let trial = "probe-0123456789abcdef-a0-0";
    let left = [trial, "b-0123456789abcdef-00-000000000000"];
    let (one, at_one) = holding("one", &left);
    let (two, at_two) = holding("two", &left);
    let (other, at_other) = holding("other", &["letter.txt"]);
    let init = |url| computer.run(&[&["init", "--small-probe=3"], &CHEAP[..], &[url]].concat());
    let migrate = |url| {
        computer.run(&[&["migrate", "--small-probe=3"], &CHEAP[..], &[one.as_str(), url]].concat())
    };
    succeeded(init(&one));
    assert!(succeeded(migrate(&two)).contains("objects"));
    assert!(computer.good(&["check", &two]).starts_with("clean"));
    assert!(!at_one.join(trial).exists() && !at_two.join(trial).exists());
    for out in [init(&other), migrate(&other)] {
        assert!(failed(3, out).contains("letter.txt"));
    }
    assert_eq!(fs::read_to_string(at_other.join("letter.txt")).unwrap(), "left");
    assert_eq!(at_other.read_dir().unwrap().count(), 1, "and nothing was made");
}

#[test]
#[ignore = "system: a server that speaks like S3, if it is installed"]
fn a_migration_that_is_killed_goes_on_where_it_was() {
    let Some(rig) = s3() else { return };
    let computer = Computer::new(std::env::var_os("PATH").unwrap());
    volume_in_a_folder(&computer);
    let wanted = computer.tree("v", "before");
    let (one, other) = (rig.url("one"), rig.url("other"));
    let begun = Instant::now();
    computer.migrate("v", &rig.url("at-once"));
    let whole = begun.elapsed();
    let kills = killed_again_and_again(&computer, "v", &one, whole);
    let more = killed_again_and_again(&computer, &one, &other, whole);
    eprintln!("killed {kills} and {more} times");
    // What got to its end is left as it is, and how to look is said.
    let again = computer.run(&[&["migrate"], &CHEAP[..], &[&one, &other]].concat());
    assert!(failed(3, again).contains("at its very end"));
    assert_eq!(computer.tree(&other, "after"), wanted);
    assert!(computer.good(&["check", &other]).starts_with("clean"));
}

/// A run that was killed before its new volume had a file system: the next one goes on. What a
/// program put into a volume is left alone.
#[test]
fn a_new_volume_without_files_yet_gets_them() {
    let computer = Computer::new(std::env::var_os("PATH").unwrap());
    volume_in_a_folder(&computer);
    let make = |name: &str| {
        let store = Arc::new(LocalStore::create(computer.scratch.path(name)).unwrap());
        let new = NewVolume::new(SeenBy::Storage, 16 << 10, 64 << 20, KdfParams::TEST);
        let passphrase = Passphrase::new("secret");
        new.create(store, &passphrase, OpenOptions::default(), &mut |_, _| {}).unwrap()
    };
    make("w").finish().unwrap();
    let mut other = make("other");
    let write = Action::Write(vec![1; 16 << 10]);
    other.access(vec![BlockOp { id: BlockId(0), action: write }]).unwrap();
    other.finish().unwrap();
    drop(other);
    computer.migrate("v", "w");
    assert_eq!(computer.tree("w", "after"), computer.tree("v", "before"));
    let args = [&["migrate"], &CHEAP[..], &["v", "other"]].concat();
    assert!(failed(9, computer.run(&args)).contains("holds no file system"));
}

/// An account has larger blocks: there, requests are scarce.
#[test]
#[ignore = "system: a service on a local port"]
fn a_new_volume_in_an_account_has_the_shape_for_it() {
    let account = Account::start(Kind::Dropbox, 8);
    let computer = Computer::new(std::env::var_os("PATH").unwrap());
    let scratch = &computer.scratch;
    scratch.write("tokens", account.tokens());
    let tokens = scratch.path("tokens");
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let tokens = tokens.to_str().unwrap();
    computer.good(&["remote", "add", "mine", &account.url(""), "--secret-file", tokens]);
    volume_in_a_folder(&computer);
    let wanted = computer.tree("v", "before");
    computer.migrate("v", "mine:vault");
    let init =
        [&["init", "--small-probe=3", "--size", "64M"], &CHEAP[..], &["mine:other"]].concat();
    computer.good(&init);
    for place in ["mine:vault", "mine:other"] {
        let info = json(&computer.good(&["info", "--json", place]));
        assert_eq!(info["block_bytes"], 64 << 10, "{info}");
        // 32 turns of buckets of four blocks: objects of 8 MiB.
        assert_eq!(info["window_turns"], 32, "{info}");
    }
    assert_eq!(computer.tree("mine:vault", "after"), wanted);
    assert_eq!(account.wrong(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_moved_is_refused_and_nothing_changes() {
    let computer = Computer::new(std::env::var_os("PATH").unwrap());
    volume_in_a_folder(&computer);
    let bad = |code, args: &[&str]| failed(code, computer.run(&[&["migrate"], args].concat()));
    bad(2, &["v", "v"]);
    bad(2, &["v", "./v"]);
    bad(2, &["--unobserved", "v", "w"]);
    bad(3, &["nothing", "w"]);
    computer.scratch.write("full/letter", "mine");
    bad(9, &["v", "full"]);
    computer.good(&[&["init"], &CHEAP[..], &["--size", "64M", "w"]].concat());
    computer.good(&["mkdir", "w", "/mine"]);
    assert!(bad(3, &["v", "w"]).contains("a volume with files"));
    computer.good(&[&["init"], &CHEAP[..], &["--disk", "4M", "d"]].concat());
    assert!(bad(2, &["d", "x"]).contains("holds a disk"));
    assert!(!computer.scratch.path("x").exists());
    assert_eq!(fs::read_to_string(computer.scratch.path("full/letter")).unwrap(), "mine");
    let mut wrong = computer.command(&["migrate", "v", "y"]);
    let output = wrong.env("OBLIVIO_PASSPHRASE", "wrong").output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(!computer.scratch.path("y").exists());
}
