//! The audit of what the storage sees of work on a disk.

use super::{Rig, run};
use crate::common;

const BLOCK: u64 = 4096;
const WRITES: u64 = 400;
const READS: u64 = 500;

/// Works on a copy of the volume `d` with a server that records. For each turn the two functions
/// give the block to write, then the block to read.
fn record(
    rig: &mut Rig,
    name: &str,
    written: impl Fn(u64) -> u64,
    read: impl Fn(u64) -> u64,
) -> String {
    let trace = format!("{name}.jsonl");
    common::copy_dir(&rig.scratch.path("d"), &rig.scratch.path(name));
    // Little memory, to keep most of the tree outside it; no timer, because the times of its
    // commits are not under control.
    let options = ["--memory", "16M", "--commit-every", "3600", "--accept-rollback"];
    rig.serve_volume(name, &[&options[..], &["--trace-out", &trace]].concat());
    let write = |turn| format!("write -P {} {} {BLOCK}", turn % 251, written(turn) * BLOCK);
    let mut commands: Vec<String> = (0..WRITES).map(write).collect();
    commands.push("flush".into());
    commands.extend((0..READS).map(|turn| format!("read {} {BLOCK}", read(turn) * BLOCK)));
    let uri = rig.uri();
    let mut args = vec!["-f", "raw", "-t", "none"];
    commands.iter().for_each(|command| args.extend(["-c", command.as_str()]));
    args.push(&uri);
    let said = run("qemu-io", &args);
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && !text.contains("failed"), "{text}");
    assert_eq!(rig.end(), Some(0));
    trace
}

#[test]
#[ignore = "system: starts a server"]
fn the_storage_cannot_tell_one_block_from_many() {
    let Some(mut rig) = Rig::with("64M", &["qemu-io"]) else { return };
    std::fs::remove_dir_all(rig.scratch.path("d")).expect("it");
    let small = ["--kdf-memory", "32K", "--kdf-passes", "1", "--block-size", "4K"];
    rig.scratch.good(["init"].iter().chain(&small).chain(&["--disk", "64M", "d"]));
    let blocks = (64 << 20) / BLOCK;
    // One writes and reads all over the disk, also blocks never written. The other writes from the
    // beginning on and reads a single block again and again.
    let scattered = |turn| turn * 7919 % blocks;
    let wide = record(&mut rig, "wide", scattered, scattered);
    let narrow = record(&mut rig, "narrow", |turn| turn, |_| 3);
    for trace in [&wide, &narrow] {
        let audit = common::json(&rig.scratch.good(["audit", "--json", "--trace", trace]));
        assert_eq!(audit["verdict"], "pass", "{trace}: {audit}");
        let accesses = audit["judgements"][0]["report"]["accesses"].as_u64();
        assert!(accesses > Some(WRITES + READS - 1), "{trace}: {accesses:?}");
    }
    // Not even public facts differ.
    rig.scratch.good(["audit", "--strict", "--trace", &wide, "--against", &narrow]);
}
