//! A mount that reads what is stored in quiet moments.

use crate::common::{Notes, json, no_leak, noise, until};
use crate::mount::{Rig, rig};
use std::fs;

/// How far the scrub is, as this computer noted it.
fn noted(rig: &Rig) -> Option<u64> {
    let places = fs::read_dir(rig.scratch.path("state/oblivio/places")).ok()?;
    let is_note = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "scrub");
    let path = places.filter_map(|entry| Some(entry.ok()?.path())).find(is_note)?;
    let text = String::from_utf8_lossy(&fs::read(path).ok()?).into_owned();
    let notes = text.split("oblivio-scrub 1").skip(1).filter_map(|note| {
        let field = |name: &str| {
            let line = note.lines().find_map(|line| line.strip_prefix(name))?;
            line.parse::<u64>().ok()
        };
        Some((field("note ")?, field("next ")?))
    });
    notes.max().map(|(_, next)| next)
}

/// Waits for the end of a round.
fn round(rig: &Rig) {
    let mut most = 0;
    until(|| {
        let now = noted(rig).unwrap_or(0);
        let ended = now < most;
        most = most.max(now);
        ended
    });
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_scrub_amid_work_passes_the_audit_and_logs_damage_once() {
    let Some(rig) = rig() else { return };
    rig.scratch.write("data", noise(12_000_000, 1));
    rig.scratch.good(["put", "-q", "v", "data", "/"]);
    let options = ["--memory", "64M", "--scrub", "3M"];
    let mut child = rig.child(&[&options[..], &["--trace-out", "scrub.jsonl"]].concat());
    let mut notes = Notes::of(&mut child);
    until(|| noted(&rig) > Some(0));
    for number in 0..4 {
        rig.scratch.write(&format!("m/file{number}"), noise(100_000, number));
    }
    round(&rig);
    round(&rig);
    rig.umount();
    assert!(child.wait().expect("it ends").success());
    let said = notes.end();
    assert!(!said.contains("damaged"), "{said}");
    let audited = rig.scratch.run(["audit", "--json", "--trace", "scrub.jsonl"]);
    let audit = json(std::str::from_utf8(&audited.stdout).expect("text"));
    no_leak(&audit);

    let slab = rig.scratch.path("v/slab");
    let mut bytes = fs::read(&slab).expect("the slab");
    let len = bytes.len();
    bytes[len / 3..].iter_mut().step_by(len / 9).for_each(|byte| *byte ^= 1);
    fs::write(&slab, &bytes).expect("written");
    let mut child = rig.child(&options);
    notes = Notes::of(&mut child);
    notes.until("damaged: slab");
    round(&rig);
    round(&rig);
    rig.umount();
    assert!(child.wait().expect("it ends").success());
    let said = notes.end();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("damaged: ")).collect();
    let mut once = lines.clone();
    once.sort_unstable();
    once.dedup();
    assert!(lines.len() == once.len() && !lines.is_empty(), "{said}");
}
