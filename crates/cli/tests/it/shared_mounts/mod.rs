//! `share://`: a real server, two computers (folders of state), mounts, disks, and deaths. Skipped
//! where nobody may mount, or where a program is missing.

mod disks;
mod kills;
mod passphrases;
mod posix;
mod programs;
mod races;
mod team;

use crate::common::{Scratch, comes, failed, json, noise, succeeded, until};
use crate::round_trip::{describe, make_tree};
use filetime::FileTime;
use std::fs;
use std::path::Path;
use team::{Team, may_mount};

fn written(path: &Path, content: &[u8]) {
    team::synced(path, content).expect("written and synced");
}

/// Reads a file once it has this content.
fn becomes(path: &Path, content: &[u8]) {
    until(|| fs::read(path).is_ok_and(|found| found == content));
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn what_one_mount_writes_the_other_one_reads() {
    if !may_mount() {
        return;
    }
    let mut team = Team::new();
    let anna = team.mount("anna", &[]);
    let ben = team.mount("ben", &["-o", "strict"]);
    let long: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    written(&anna.join("long"), &long);
    becomes(&ben.join("long"), &long);
    fs::create_dir(ben.join("letters")).expect("a directory");
    written(&ben.join("letters/to-anna"), b"hello");
    becomes(&anna.join("letters/to-anna"), b"hello");
    // The scribe dies.
    team.kill_mount(0);
    written(&ben.join("after"), b"all is well");
    let again = team.mount("anna", &[]);
    becomes(&again.join("after"), b"all is well");
    becomes(&again.join("long"), &long);
    let info = team.scratch.good(["info", &team.at(), "--json"]);
    assert!(info.contains("\"engine\":\"shared\"") || info.contains("\"shared\""), "{info}");
    assert!(team.umount(1) && team.umount(0));
    let checked = team.scratch.good(["check", &team.at()]);
    assert!(checked.contains("3 files"), "{checked}");
}

/// Commands that look at files take a share as any volume, beside a mount of another computer.
#[test]
#[ignore = "system: mounts through FUSE"]
fn files_are_looked_at_without_a_mount() {
    if !may_mount() {
        return;
    }
    let mut team = Team::new();
    let ben = team.mount("ben", &[]);
    let long: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    fs::create_dir(ben.join("letters")).expect("a directory");
    written(&ben.join("letters/long"), &long);
    written(&ben.join("note"), b"hello\n");
    std::os::unix::fs::symlink("note", ben.join("link")).expect("a link");
    fs::hard_link(ben.join("note"), ben.join("again")).expect("a second name");
    let anna = |args: &[&str]| team.on("anna", args).output().expect("it runs");
    let at = team.at();
    assert_eq!(succeeded(anna(&["check", &at, "--token-file", "anna.token"])).lines().count(), 1);
    assert_eq!(succeeded(anna(&["ls", &at])), "again\nletters\nlink\nnote\n");
    assert_eq!(succeeded(anna(&["cat", &at, "/link"])), "hello\n");
    let stat = json(&succeeded(anna(&["stat", "--json", &at, "/letters/long"])));
    assert_eq!((&stat["size"], &stat["links"]), (&300_000.into(), &1.into()), "{stat}");
    succeeded(anna(&["get", "-r", &at, "/", "back"]));
    let back = team.scratch.path("back");
    assert_eq!(fs::read(back.join("letters/long")).expect("a file"), long);
    assert_eq!(fs::read_link(back.join("link")).expect("a link"), Path::new("note"));
    failed(3, anna(&["get", &at, "/nothing", "nowhere"]));
    failed(2, anna(&["ls", "--pad", &at]));
    // Ben's mount goes on.
    written(&ben.join("after"), b"all is well");
}

/// So do commands that change files. Nobody sees a file that is not whole, and nothing stays of a
/// command that was killed.
#[test]
#[ignore = "system: mounts through FUSE"]
fn files_are_changed_without_a_mount() {
    if !may_mount() {
        return;
    }
    let mut team = Team::new();
    let ben = team.mount("ben", &[]);
    make_tree(&team.scratch);
    // Each of its pages is asked for, also where there is none.
    fs::remove_file(team.scratch.path("tree/sparse")).expect("it goes");
    let at = team.at();
    let ask = |args: &[&str]| team.on("anna", args).output().expect("it runs");
    let anna = |args: &[&str]| succeeded(ask(args));
    anna(&["put", "-r", &at, "tree", "/", "--token-file", "anna.token"]);
    let tree = describe(&team.scratch.path("tree"));
    anna(&["get", "-r", &at, "/tree", "back"]);
    assert_eq!(describe(&team.scratch.path("back")), tree);
    // A second time it replaces each file in one step.
    anna(&["put", "-r", &at, "tree", "/"]);
    anna(&["cp", "-r", &at, "/tree", "/copy"]);
    anna(&["mkdir", "-p", &at, "/a/b/c"]);
    anna(&["mv", &at, "/copy", "/a/b/c"]);
    anna(&["get", "-r", &at, "/a/b/c/copy", "again"]);
    assert_eq!(describe(&team.scratch.path("again")), tree);
    failed(3, ask(&["rm", &at, "/a"]));
    failed(3, ask(&["put", &at, "tree/small.txt", "/nowhere/"]));
    anna(&["rm", "-r", &at, "/a"]);
    assert_eq!(anna(&["ls", "-a", &at]), "tree\n");
    becomes(&ben.join("tree/small.txt"), b"hello\n");

    // One that is killed at work leaves what only those see who look for it.
    team.scratch.write("large", noise(40_000_000, 9));
    let mut child = team.on("anna", &["put", &at, "large", "/"]).spawn().expect("it runs");
    let incoming = || -> Option<std::path::PathBuf> {
        let names = ben.join(".oblivio-incoming").read_dir().ok()?;
        names.flatten().map(|entry| entry.path()).last()
    };
    let begun =
        || incoming().is_some_and(|dir| dir.read_dir().is_ok_and(|mut file| file.next().is_some()));
    until(begun);
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    assert!(!ben.join("large").exists());
    let left = incoming().expect("a remnant");
    anna(&["put", &at, "tree/empty", "/"]);
    assert!(left.exists(), "it may be at work");
    // It may still write to a file, which changes no time of the directory.
    let long_ago = FileTime::from_unix_time(1_000_000_000, 0);
    filetime::set_file_mtime(&left, long_ago).expect("a time");
    anna(&["put", &at, "tree/empty", "/"]);
    assert!(left.exists(), "its file is new");
    for file in left.read_dir().expect("a listing").flatten() {
        filetime::set_file_mtime(file.path(), long_ago).expect("a time");
    }
    filetime::set_file_mtime(&left, long_ago).expect("a time");
    anna(&["put", &at, "tree/empty", "/"]);
    until(|| !ben.join(".oblivio-incoming").exists());
}

/// Once `umount` has returned, nothing of the mount has the volume.
#[test]
#[ignore = "system: mounts through FUSE"]
fn who_unmounted_has_the_volume() {
    if !may_mount() {
        return;
    }
    let mut team = Team::new();
    for round in 0..8 {
        let dir = team.mount("anna", &[]);
        written(&dir.join(format!("file-{round}")), &[round; 5000]);
        let unmounted = team.on("anna", &["umount", dir.to_str().expect("text")]).output();
        assert!(unmounted.expect("it runs").status.success());
        let checked =
            team.on("anna", &["check", &team.at(), "--token-file", "anna.token"]).output();
        let checked = checked.expect("it runs");
        assert!(checked.status.success(), "round {round}: {checked:?}");
        assert!(team.umount(0));
    }
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_killed_server_loses_nothing_and_a_dead_one_holds_up_no_unmount() {
    if !may_mount() {
        return;
    }
    let mut team = Team::new();
    let dir = team.mount("anna", &["--timeout", "4"]);
    for round in 0..3 {
        written(&dir.join(format!("file-{round}")), &[round; 5000]);
        team.kill_server();
        team.start();
        becomes(&dir.join(format!("file-{round}")), &[round; 5000]);
    }
    team.kill_server();
    let lost = dir.join("lost");
    let failed = comes("an error", move || team::synced(&lost, b"x"));
    assert!(failed.is_err(), "there is no server");
    team.umount(0);
}

/// A server whose host answers and then says nothing: who waits for it knows so.
#[test]
#[ignore = "system: starts a server, and waits for one that says nothing"]
fn a_command_says_that_it_waits_for_a_server() {
    let mut team = Team::new();
    let at = team.at();
    team.kill_server();
    let host = at.trim_start_matches("share://").trim_end_matches("/team");
    let silent = std::net::TcpListener::bind(host).expect("its port");
    let said = failed(
        16,
        team.on("anna", &["ls", &at, "--token-file", "anna.token"]).output().expect("it runs"),
    );
    assert!(said.contains(&format!("waiting for {at}: no answer yet")), "{said}");
    drop(silent);
}

#[test]
fn other_commands_say_what_to_do_instead() {
    let said = Scratch::with_volume().bad(2, ["ls", "v", "--token-file", "x"]);
    assert!(said.contains("share://"), "{said}");
    let scratch = Scratch::new();
    let said = scratch.bad(2, ["resize", "share://127.0.0.1:1/team", "1G"]);
    assert!(said.contains("oblivio mount share://127.0.0.1:1/team"), "{said}");
    let said = scratch.bad(2, ["rm", "share://127.0.0.1:1/team", "/a"]);
    assert!(said.contains("--token-file"), "{said}");
    let said = scratch.bad(2, ["mount", "share://127.0.0.1:1/team", "."]);
    assert!(said.contains("token") || said.contains("empty"), "{said}");
    let said = scratch.bad(2, ["init", "share://127.0.0.1:1/team", "--fill"]);
    assert!(said.contains("--fill"), "{said}");
    let said = scratch.bad(2, ["init", "share://127.0.0.1:1/team", "--disk", "1000"]);
    assert!(said.contains("512"), "{said}");
}
