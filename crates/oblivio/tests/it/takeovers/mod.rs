//! Processes on three computers that take a volume over from each other, on real servers: killed,
//! stopped for a while, or overtaken in the middle of their work. Each later one has all that was
//! acknowledged, and one that lost the volume ends with code 12.
//!
//! `just takeovers` plays many on each server.

mod computer;
mod work;

use computer::{Computer, Env};
use oblivio_testkit::SplitMix64;
use oblivio_testkit::campaign::{self, scaled};
#[cfg(feature = "sftp")]
use oblivio_testkit::rigs::SftpRig;
use oblivio_testkit::rigs::{S3Kind, S3Rig, Skip, WebDavKind, WebDavRig};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// How a computer loses the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Killed,
    Stopped,
    Overtaken,
}

/// What happened in all.
#[derive(Default)]
struct Counts {
    killed: usize,
    stopped: usize,
    overtaken: usize,
    told: usize,
}

/// Plays take-overs on one server.
fn play(name: &str, url: &str, env: &Env, seed: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let home = |computer: u64| folder.path().join(format!("home{computer}"));
    for computer in 0..3 {
        env.prepare(&home(computer));
    }
    Computer::create(url, env, &home(0));
    let (mut dice, mut counts) = (SplitMix64::new(campaign::seed(0) + seed), Counts::default());
    let mut one = Computer::start(url, env, &home(0));
    one.wait_seen();
    for round in 0..scaled(6) {
        one.wait_acked(1 + dice.below(4));
        std::thread::sleep(Duration::from_millis(dice.below(60)));
        let loss = [Loss::Killed, Loss::Stopped, Loss::Overtaken][dice.below(3) as usize];
        match loss {
            Loss::Killed => one.kill(),
            Loss::Stopped => one.signal("STOP"),
            Loss::Overtaken => {}
        }
        // The state folder of the same computer is in use while its process lives.
        let next = if loss == Loss::Killed { dice.below(3) } else { (one.number + 1) % 3 };
        let mut other = Computer::start_as(next, url, env, &home(next));
        let seen = other.wait_seen();
        match loss {
            Loss::Killed => counts.killed += 1,
            Loss::Stopped => {
                other.wait_acked(dice.below(3));
                one.signal("CONT");
                counts.stopped += 1;
            }
            Loss::Overtaken => counts.overtaken += 1,
        }
        if loss != Loss::Killed {
            one.wait_told();
            counts.told += 1;
        }
        let acked = one.acked();
        assert!(
            acked <= seen,
            "{name}, round {round}: {loss:?} with {acked} acknowledged, of which {seen} are there"
        );
        one = other;
    }
    one.finish();
    let Counts { killed, stopped, overtaken, told } = counts;
    eprintln!(
        "{name}: {} take-overs: {killed} after a kill, {stopped} of one that was stopped, \
         {overtaken} of one at work; {told} of {} were told; nothing acknowledged is lost",
        killed + stopped + overtaken,
        stopped + overtaken
    );
}

fn there<T>(name: &str, rig: Result<T, Skip>) -> Option<T> {
    rig.inspect_err(|why| eprintln!("skipped: {name}: {why}")).ok()
}

#[test]
#[ignore = "system: a server that speaks like S3, if it is installed"]
fn on_a_server_that_speaks_like_s3() {
    let rigs =
        S3Kind::ALL.into_iter().find_map(|kind| Some((kind, there("S3", S3Rig::start(kind))?)));
    let Some((kind, rig)) = rigs else { return };
    let keys = [("AWS_ACCESS_KEY_ID", S3Rig::KEY_ID), ("AWS_SECRET_ACCESS_KEY", S3Rig::SECRET)];
    play(&format!("{kind:?}"), &rig.url("vault"), &Env::of(&keys), 1);
}

#[test]
#[ignore = "system: Apache, if it is installed"]
fn on_apache() {
    let Some(rig) = there("Apache", WebDavRig::start(WebDavKind::Apache)) else { return };
    let remotes = format!(
        "[rig]\nurl = \"{}\"\nuser = \"{}\"\nsecret = \"{}\"\n",
        rig.url("").trim_end_matches('/'),
        WebDavRig::USER,
        WebDavRig::PASSWORD
    );
    play("Apache", "rig:vault", &Env { remotes, ..Env::default() }, 2);
}

#[test]
#[cfg(feature = "sftp")]
#[ignore = "system: OpenSSH, if it is installed"]
fn on_openssh() {
    let Some(rig) = there("OpenSSH", SftpRig::start()) else { return };
    let path = rig.path().into_string().expect("a plain path");
    play("OpenSSH", &rig.url("vault"), &Env::of(&[("PATH", &path)]), 3);
}

/// What a computer's process does; started by the tests above, and nothing by itself.
#[test]
fn work() {
    if std::env::var_os("TAKEOVER_MODE").is_some() {
        work::run();
    }
}

/// A file that only its owner may read.
fn write_secret(path: &Path, text: &str) {
    fs::write(path, text).expect("room");
    fs::set_permissions(path, Permissions::from_mode(0o600)).expect("own file");
}
