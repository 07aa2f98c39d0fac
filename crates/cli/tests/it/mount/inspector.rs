//! Who has the volume's passphrase, the disk and this computer's files sees no difference between a
//! lane that is used and one that never was: in what commands print, in their exit codes, and in
//! what they leave in the home directory.

use crate::common::{json, noise, succeeded, until};
use crate::mount::{Rig, lane_rig};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Output;

/// Only what is asked for is committed: times do not decide.
const MOUNT: &str = "mount -b --commit-every 3600 d m";

fn by(rig: &Rig, passphrase: &str, args: &str) -> Output {
    let mut command = rig.scratch.command(args.split_whitespace());
    command.env("OBLIVIO_PASSPHRASE", passphrase).output().expect("the command runs")
}

/// What somebody with the volume's passphrase reads of a command, but for the volume's identity.
fn seen(rig: &Rig, identity: &str, passphrase: &str, args: &str) -> String {
    let Output { status, stdout, stderr } = by(rig, passphrase, args);
    let [said, noted] = [stdout, stderr].map(|it| String::from_utf8(it).expect("text"));
    let folder = rig.scratch.path("");
    let text = format!("{args}: {status}\n{said}{noted}").replace(identity, "IDENTITY");
    text.replace(folder.to_str().expect("text"), "FOLDER/")
}

/// Days of use of the volume; with a lane in use, it is opened by the lane's passphrase.
fn lives(rig: &Rig, used: bool) {
    for day in 0..3 {
        let own_day = day == 1;
        let passphrase = if used && !own_day { "hidden" } else { "secret" };
        succeeded(by(rig, passphrase, MOUNT));
        let works = || {
            for round in 0..12 {
                let mut file = File::create(rig.dir.join(format!("file{round}"))).expect("made");
                file.write_all(&noise(100_000, day * 100 + round)).expect("written");
                file.sync_all().expect("synced");
            }
        };
        match used && !own_day {
            true => while_hiding(rig, &format!(".1/note{day}"), works),
            false => works(),
        }
        succeeded(by(rig, passphrase, "umount m"));
    }
}

/// Does this while a file of a lane waits for it.
fn while_hiding(rig: &Rig, name: &str, works: impl FnOnce()) {
    let mut file = File::create(rig.dir.join(name)).expect("made");
    file.write_all(&noise(40_000, 1)).expect("written");
    let status = || json(&rig.scratch.good(["lane", "status", "--json", "m"]))[0].clone();
    std::thread::scope(|scope| {
        let synced = scope.spawn(|| file.sync_all());
        until(|| status()["waiting_bytes"].as_u64() >= Some(40_000));
        works();
        synced.join().expect("no panic").expect("carried");
    });
}

/// Names and lengths of all files below.
fn files(dir: &Path, found: &mut Vec<(String, u64)>) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let entry = entry.expect("an entry");
        let (path, len) = (entry.path(), entry.metadata().expect("there").len());
        match path.is_dir() {
            true => files(&path, found),
            false => found.push((path.display().to_string(), len)),
        }
    }
}

/// What the inspector finds, asking in turn what he likes.
fn inspected(used: bool) -> Option<(Vec<String>, Vec<u64>)> {
    let rig = lane_rig("32M")?;
    lives(&rig, used);
    let identity = json(&rig.scratch.good(["info", "--json", "d"]))["volume"].clone();
    let identity = identity.as_str().expect("text");
    let mut said = Vec::new();
    let mut look = |passphrase: &str, args: &str| said.push(seen(&rig, identity, passphrase, args));
    for args in ["info d", "info --json d", "check d", "ls d", "ls d /.1", "cat d /.1/note0"] {
        look("secret", args);
    }
    look("wrong", "ls d");
    look("secret", "lane passphrase d");
    look("secret", MOUNT);
    for args in ["lane status m", "lane status --json m", "umount m"] {
        look("secret", args);
    }
    look("secret", "mount -b --trace-out trace d m");
    look("secret", "umount m");
    look("secret", "info --json d");
    let mut home = Vec::new();
    files(&rig.scratch.path("state"), &mut home);
    files(&rig.scratch.path("run"), &mut home);
    let mut lens: Vec<_> = home.into_iter().map(|(_, len)| len).collect();
    lens.sort_unstable();
    Some((said, lens))
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_used_lane_shows_nowhere() {
    let (Some(used), Some(unused)) = (inspected(true), inspected(false)) else { return };
    for (used, unused) in used.0.iter().zip(&unused.0) {
        assert_eq!(used, unused);
    }
    assert_eq!(used, unused);
    assert!(used.1.len() > 1 && used.0.len() > 12, "there was something to compare");
}
