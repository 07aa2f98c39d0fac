//! The disk of a lane, as export 1 of the same server.

use super::{Rig, good, run};
use crate::common::{Scratch, succeeded};
use std::process::Output;

/// A disk in one file, whose lane of a half opens with `hidden`; `None` without its clients.
fn rig() -> Option<Rig> {
    for program in ["qemu-io", "nbdcopy", "nbdinfo"] {
        let found = std::process::Command::new(program).arg("--version").output();
        if !found.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: there is no {program}");
            return None;
        }
    }
    let scratch = Scratch::new();
    let init = "init --kdf-memory 32K --kdf-passes 1 --seen-by snapshots --one-file --lanes 1/2 \
                --disk 16M --passphrase-fd 0 d";
    succeeded(scratch.feed(b"secret\nhidden\n", init.split_whitespace()));
    Some(Rig { scratch, server: None })
}

fn io(rig: &Rig, export: &str, commands: &[&str]) -> Output {
    let uri = format!("nbd+unix:///{export}?socket={}", rig.socket().display());
    let mut args = vec!["-f", "raw"];
    commands.iter().for_each(|command| args.extend(["-c", command]));
    run("qemu-io", &[&args[..], &[&uri]].concat())
}

fn did(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stdout);
    output.status.success() && !said.contains("failed")
}

#[test]
#[ignore = "system: starts a server"]
fn a_lane_is_an_export_for_its_passphrase_alone() {
    let Some(mut rig) = rig() else { return };
    rig.serve_by("hidden", "d", &[]);
    // Nothing of the lane causes a write, so its flush waits for those of the volume.
    let writes = ["write -P 7 0 256k", "write -P 8 100k 8k", "flush"];
    let lane = std::thread::scope(|scope| {
        let lane = scope.spawn(|| io(&rig, "1", &writes));
        for round in 0.. {
            let write = format!("write -P {} 0 512k", round % 200 + 1);
            assert!(did(&io(&rig, "", &[&write, "flush"])));
            if lane.is_finished() {
                break;
            }
        }
        lane.join().expect("no panic")
    });
    assert!(did(&lane), "{lane:?}");
    assert!(did(&io(&rig, "1", &["read -P 7 0 100k", "read -P 8 100k 8k"])));
    let copy = rig.scratch.path("copy");
    let lane = format!("nbd+unix:///1?socket={}", rig.socket().display());
    good("nbdcopy", &[&lane, copy.to_str().expect("text")]);
    let copied = std::fs::read(copy).expect("copied");
    assert!(copied[..100 << 10].iter().all(|byte| *byte == 7) && copied[100 << 10] == 8);
    let listed = good("nbdinfo", &["--list", "--json", &rig.uri()]);
    assert!(!listed.contains("\"export-name\": \"1\""), "{listed}");
    assert_eq!(rig.end(), Some(0));

    rig.serve_by("secret", "d", &[]);
    assert!(!io(&rig, "1", &["read 0 4k"]).status.success(), "there is no such export");
    assert!(did(&io(&rig, "", &["write -P 9 1M 64k", "flush"])));
    assert_eq!(rig.end(), Some(0));

    rig.serve_by("hidden", "d", &[]);
    assert!(did(&io(&rig, "1", &["read -P 7 0 100k", "read -P 8 100k 8k", "read -P 7 108k 148k"])));
    assert!(did(&io(&rig, "", &["read -P 9 1M 64k"])));
    rig.kill();
    rig.serve_by("hidden", "d", &[]);
    assert!(did(&io(&rig, "1", &["read -P 8 100k 8k"])));
    assert_eq!(rig.end(), Some(0));
}

/// What a server with the outer passphrase says is what it says of a volume whose lane was never
/// given a passphrase.
#[test]
#[ignore = "system: starts a server"]
fn without_its_passphrase_a_lane_is_no_other_name() {
    let Some(mut rig) = rig() else { return };
    rig.serve_by("secret", "d", &[]);
    let [lane, other] = ["1", "7"].map(|name| io(&rig, name, &["read 0 4k"]));
    let said = |output: &Output, name: &str| {
        String::from_utf8_lossy(&output.stderr).replace(&format!("///{name}?"), "///?")
    };
    assert_eq!(said(&lane, "1"), said(&other, "7"));
    assert_eq!((lane.status, lane.stdout), (other.status, other.stdout));
    assert_eq!(rig.end(), Some(0));
}
