//! A mount killed with SIGKILL at random moments while programs write to it.
//!
//! After every kill everything that a sync acknowledged must be there, byte by byte and name by
//! name, and the volume must check clean. `just mount-kills` kills more often.

mod model;
mod writer;

use super::{Rig, lane_rig, rig};
use oblivio_testkit::campaign::{scaled, seed};
use std::fs;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use writer::{Random, Writer};

const WRITERS: u64 = 4;

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_killed_mount_loses_nothing_that_was_synced() {
    if let Some(rig) = rig() {
        kill(&rig, scaled(4));
    }
}

/// Half of the writers work in the volume itself.
#[test]
#[ignore = "system: mounts through FUSE"]
fn a_killed_mount_loses_nothing_that_was_synced_in_a_lane() {
    if let Some(rig) = lane_rig("128M") {
        kill(&rig, scaled(4));
    }
}

fn kill(rig: &Rig, kills: u64) {
    let mut random = Random(seed(2026));
    let mut child = rig.child(&[]);
    let mut writers = Vec::new();
    for n in 0..WRITERS {
        let within = if n % 2 == 0 { rig.path(".") } else { rig.dir.clone() };
        let dir = within.join(format!("w{n}"));
        for folder in ["a", "b"] {
            fs::create_dir_all(dir.join(folder)).expect("a folder");
        }
        writers.push(Writer::new(dir, random.below(1 << 30)));
    }
    for root in [rig.path("."), rig.dir.clone()] {
        let synced = || fs::File::open(root).and_then(|root| root.sync_all());
        rig.while_used(synced).expect("synced");
    }

    for kill in 1..=kills {
        writers = load_and_kill(rig, child, writers, random.below(1_200));
        if random.below(4) == 0 {
            killed_while_it_opens(rig, random.below(60));
        }
        let check_first = random.below(2) == 0;
        if check_first {
            check(rig, kill);
        }
        child = rig.child(&["--commit-every", "1"]);
        for (n, writer) in writers.iter_mut().enumerate() {
            writer.compare().unwrap_or_else(|why| panic!("kill {kill}, writer {n}: {why}"));
        }
        if !check_first {
            rig.umount();
            child.wait().expect("it ended");
            check(rig, kill);
            child = rig.child(&[]);
        }
    }
    rig.umount();
    child.wait().expect("it ended");
    let syncs: u64 = writers.iter().map(|writer| writer.syncs).sum();
    let bytes: u64 = writers.iter().map(|writer| writer.bytes).sum();
    #[expect(clippy::print_stdout, reason = "the outcome of a long run")]
    {
        println!("{kills} kills, {syncs} syncs and {bytes} bytes acknowledged, 0 lost");
    }
}

/// Lets the writers work for a while and kills the mount below them.
fn load_and_kill(rig: &Rig, mut child: Child, writers: Vec<Writer>, after: u64) -> Vec<Writer> {
    let killed = AtomicBool::new(false);
    let writers = thread::scope(|scope| {
        let work = |mut writer: Writer| {
            let killed = &killed;
            scope.spawn(move || {
                let error = writer.work();
                assert!(killed.load(Ordering::SeqCst), "before the kill: {error}");
                writer
            })
        };
        let threads: Vec<_> = writers.into_iter().map(work).collect();
        thread::sleep(Duration::from_millis(after));
        killed.store(true, Ordering::SeqCst);
        child.kill().expect("killed");
        child.wait().expect("it ended");
        let ended = threads.into_iter().map(|thread| thread.join().expect("it works"));
        ended.collect()
    });
    rig.umount();
    writers
}

/// Kills the recovery too.
fn killed_while_it_opens(rig: &Rig, after: u64) {
    let mut child = rig.command(["mount", rig.inside.volume, "m"]);
    child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = child.spawn().expect("the command runs");
    thread::sleep(Duration::from_millis(after));
    child.kill().expect("killed");
    child.wait().expect("it ended");
    if rig.mounted() {
        rig.umount();
    }
}

fn check(rig: &Rig, kill: u64) {
    let said = rig.scratch.good(["check", rig.inside.volume]);
    assert!(said.starts_with("clean"), "kill {kill}: {said}");
}
