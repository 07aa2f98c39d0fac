//! Volumes in folders that a sync client copies, with the command: here the tests copy.

use crate::common::{Scratch, failed, json, noise, succeeded};
use std::fs;
use std::path::Path;
use std::process::Output;

pub const INIT: [&str; 7] =
    ["init", "-q", "--kdf-memory", "32K", "--kdf-passes", "1", "--sync-folder"];

/// Runs a command on one of two computers, each with a folder of its name.
pub fn run(scratch: &Scratch, computer: &str, args: &[&str]) -> Output {
    let mut command = scratch.command(args);
    command.env("XDG_STATE_HOME", scratch.path(computer).join("state"));
    command.output().expect("the command runs")
}

pub fn names(folder: &Path) -> Vec<String> {
    let mut all: Vec<String> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    all.sort();
    all
}

/// Copies files that only one side has to the other, as a sync client does.
pub fn sync(scratch: &Scratch) {
    let [one, two] = ["one/v", "two/v"].map(|name| scratch.path(name));
    fs::create_dir_all(&two).unwrap();
    for (from, to) in [(&one, &two), (&two, &one)] {
        for name in names(from) {
            let (from, to) = (from.join(&name), to.join(&name));
            if to.exists() {
                assert_eq!(fs::read(&from).unwrap(), fs::read(&to).unwrap(), "{name} changed");
            } else {
                fs::copy(from, to).unwrap();
            }
        }
    }
}

/// A volume that both computers have used.
pub fn shared() -> Scratch {
    let scratch = Scratch::new();
    succeeded(run(&scratch, "one", &[&INIT[..], &["--size", "4M", "one/v"]].concat()));
    scratch.write("noise", noise(300_000, 1));
    succeeded(run(&scratch, "one", &["put", "-q", "one/v", "noise", "/"]));
    sync(&scratch);
    assert_eq!(succeeded(run(&scratch, "two", &["ls", "two/v", "/"])), "noise\n");
    // It says where it stands.
    sync(&scratch);
    scratch
}

/// Two computers look at one folder at once, in every way: no file comes, and nobody parts.
#[test]
fn who_only_looks_leaves_nothing() {
    looks_at_once(look);
}

/// The same with mounts in which nothing is changed.
#[test]
#[ignore = "system: mounts through FUSE"]
fn who_only_mounts_leaves_nothing() {
    looks_at_once(mount_and_look);
}

fn look(scratch: &Scratch, computer: &str) {
    let looks: [&[&str]; 5] = [
        &["ls", "VOLUME", "/"],
        &["get", "VOLUME", "/noise", "FILE"],
        &["info", "VOLUME"],
        &["check", "VOLUME"],
        &["stat", "VOLUME", "/noise"],
    ];
    let (volume, file) = (format!("{computer}/v"), format!("{computer}/back"));
    for args in looks {
        let own = args.iter().map(|arg| match *arg {
            "VOLUME" => volume.as_str(),
            "FILE" => file.as_str(),
            other => other,
        });
        succeeded(run(scratch, computer, &own.collect::<Vec<_>>()));
    }
    assert_eq!(fs::read(scratch.path(&file)).unwrap(), noise(300_000, 1));
}

fn looks_at_once(look: fn(&Scratch, &str)) {
    let scratch = shared();
    let before = ["one/v", "two/v"].map(|folder| names(&scratch.path(folder)));
    std::thread::scope(|threads| {
        let scratch = &scratch;
        for name in ["one", "two"] {
            threads.spawn(move || look(scratch, name));
        }
    });
    assert_eq!(["one/v", "two/v"].map(|folder| names(&scratch.path(folder))), before);
    sync(&scratch);
    for computer in ["one", "two"] {
        let histories =
            succeeded(run(&scratch, computer, &["pick", "--json", &format!("{computer}/v")]));
        assert_eq!(json(&histories).as_array().unwrap().len(), 1, "{histories}");
    }
}

/// A mount in which nothing is changed, where there are mounts.
fn mount_and_look(scratch: &Scratch, computer: &str) {
    let (volume, dir) = (format!("{computer}/v"), format!("{computer}/m"));
    fs::create_dir_all(scratch.path(&dir)).unwrap();
    for options in [&["-b", "-q"][..], &["-b", "-q", "--read-only"]] {
        let tried = run(scratch, computer, &[&["mount"], options, &[&volume, &dir]].concat());
        if !tried.status.success() {
            return eprintln!("skipped: {}", String::from_utf8_lossy(&tried.stderr));
        }
        let seen = fs::read(scratch.path(&dir).join("noise"));
        succeeded(run(scratch, computer, &["umount", "-q", &dir]));
        assert_eq!(seen.unwrap(), noise(300_000, 1));
    }
}

#[test]
fn files_that_are_kept_online_only_are_refused() {
    let scratch = shared();
    let folder = scratch.path("two/v");
    let extent = names(&folder).into_iter().find(|name| name.starts_with("x-")).unwrap();
    let len = folder.join(&extent).metadata().unwrap().len();
    // As a client leaves it: the length, and no block.
    fs::remove_file(folder.join(&extent)).unwrap();
    fs::File::create(folder.join(&extent)).unwrap().set_len(len).unwrap();
    let error = failed(14, run(&scratch, "two", &["ls", "two/v", "/"]));
    assert!(error.contains(&extent) && error.contains("always available"), "{error}");
    fs::copy(scratch.path("one/v").join(&extent), folder.join(&extent)).unwrap();
    assert_eq!(succeeded(run(&scratch, "two", &["ls", "two/v", "/"])), "noise\n");
}

#[test]
fn two_computers_by_turns() {
    let scratch = shared();
    succeeded(run(&scratch, "two", &["get", "two/v", "/noise", "back"]));
    assert_eq!(fs::read(scratch.path("back")).unwrap(), noise(300_000, 1));
    scratch.write("small", "a letter\n");
    succeeded(run(&scratch, "two", &["put", "-q", "two/v", "small", "/"]));
    sync(&scratch);
    assert_eq!(succeeded(run(&scratch, "one", &["cat", "one/v", "/small"])), "a letter\n");
    let info = json(&succeeded(run(&scratch, "one", &["info", "--json", "one/v"])));
    assert_eq!((&info["engine"], &info["computers"]), (&"extents".into(), &2.into()), "{info}");
    // Files are kept as second names, not as copies.
    let kept = scratch.path("one/state/oblivio/folders");
    let volume = info["volume"].as_str().unwrap();
    let kept = names(&kept.join(volume));
    assert!(kept.iter().filter(|name| name.starts_with("x-")).count() > 3, "{kept:?}");
}

#[test]
fn what_has_not_arrived_is_waited_for_and_two_histories_are_told() {
    let scratch = shared();
    scratch.write("small", "a letter\n");
    succeeded(run(&scratch, "one", &["put", "-q", "one/v", "small", "/"]));
    // All arrive but the extents: one of them alone would be made again from the others.
    let (one, two) = (scratch.path("one/v"), scratch.path("two/v"));
    let there = names(&two);
    let coming: Vec<String> = names(&one).into_iter().filter(|it| !there.contains(it)).collect();
    let (late, early): (Vec<_>, Vec<_>) = coming.iter().partition(|name| name.starts_with("x-"));
    for name in early {
        fs::copy(one.join(name), two.join(name)).unwrap();
    }
    let error = failed(14, run(&scratch, "two", &["ls", "two/v", "/"]));
    assert!(error.contains("still to come: ") && error.contains("--older"), "{error}");
    assert!(late.iter().any(|name| error.contains(*name)), "{error}");
    assert_eq!(succeeded(run(&scratch, "two", &["ls", "--older", "two/v", "/"])), "noise\n");
    scratch.write("apart", "mine\n");
    succeeded(run(&scratch, "two", &["put", "-q", "--older", "two/v", "apart", "/"]));
    sync(&scratch);
    for computer in ["one", "two"] {
        let volume = format!("{computer}/v");
        let error = failed(15, run(&scratch, computer, &["ls", &volume, "/"]));
        assert!(error.contains("2 histories") && error.contains("oblivio pick"), "{error}");
    }
    let list = succeeded(run(&scratch, "one", &["pick", "--json", "one/v"]));
    let list = json(&list);
    let other = list.as_array().unwrap().iter().find(|it| it["own"] == false).unwrap();
    let name = other["name"].as_str().unwrap();
    let look =
        |what: &[&str]| run(&scratch, "one", &[what, &["--history", name, "one/v"]].concat());
    assert!(succeeded(look(&["info"])).contains("only looked at"));
    let listed = run(&scratch, "one", &["ls", "--history", name, "one/v", "/"]);
    assert_eq!(succeeded(listed), "apart\nnoise\n");
    failed(2, run(&scratch, "one", &["mkdir", "--history", name, "one/v", "/new"]));
    succeeded(run(&scratch, "one", &["pick", "one/v", name]));
    sync(&scratch);
    for computer in ["one", "two"] {
        let volume = format!("{computer}/v");
        let said = succeeded(run(&scratch, computer, &["ls", &volume, "/"]));
        assert_eq!(said, "apart\nnoise\n");
    }
    failed(3, run(&scratch, "one", &["pick", "one/v", "ffffffff-9"]));
}

#[test]
fn a_new_passphrase_is_a_new_file() {
    let scratch = shared();
    let header = |folder: &Path| -> Vec<String> {
        names(folder).into_iter().filter(|name| name.starts_with("header-")).collect()
    };
    let before = header(&scratch.path("one/v"));
    let mut command = scratch.command(["passphrase", "change", "--kdf-memory", "32K", "one/v"]);
    command.env("XDG_STATE_HOME", scratch.path("one/state")).env("OBLIVIO_NEW_PASSPHRASE", "new");
    succeeded(command.output().unwrap());
    let after = header(&scratch.path("one/v"));
    assert!(before.len() == 2 && after.len() == 2 && before != after, "{before:?} {after:?}");
    sync(&scratch);
    let mut command = scratch.command(["ls", "two/v", "/"]);
    command.env("XDG_STATE_HOME", scratch.path("two/state")).env("OBLIVIO_PASSPHRASE", "new");
    assert_eq!(succeeded(command.output().unwrap()), "noise\n");
    failed(4, run(&scratch, "two", &["ls", "two/v", "/"]));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let scratch = Scratch::new();
    for wrong in [
        &["--size", "4M", "--seen-by", "storage", "v"][..],
        &["--size", "4M", "--one-file", "v"],
        &["v"],
    ] {
        failed(2, run(&scratch, "one", &[&INIT[..], wrong].concat()));
    }
    assert!(!scratch.path("v").exists());
    succeeded(run(&scratch, "one", &[&INIT[..], &["--size", "4M", "v"]].concat()));
    failed(3, run(&scratch, "one", &[&INIT[..], &["--size", "4M", "v"]].concat()));
}
