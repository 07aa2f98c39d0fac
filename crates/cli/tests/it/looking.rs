//! Reports on a volume and on what its storage sees.

use crate::common::{Scratch, json, no_leak, noise};
use std::fs;
use std::io::Read;
use std::process::Stdio;

#[test]
fn the_audit_passes() {
    let scratch = Scratch::new();
    let args = ["audit", "--json", "--blocks", "256", "--accesses", "2000"];
    let audit = json(&scratch.good(args));
    assert_eq!(audit["verdict"], "pass");
    assert_eq!(audit["judgements"].as_array().map(Vec::len), Some(25));
    let args = ["audit", "--blocks", "64", "--accesses", "500", "--picture", "a.svg"];
    scratch.good(args);
    assert!(fs::read_to_string(scratch.path("a.svg")).expect("drawn").contains("<svg"));
    scratch.bad(2, ["audit", "--false-alarm-rate", "2"]);
    scratch.bad(2, ["audit", "--blocks", "1"]);
}

/// The leaks are those that the audit's own crate tests with every run: see `just audit-honest`.
#[test]
#[ignore = "long: `just audit-honest`"]
fn long_its_own_test_passes_too() {
    let scratch = Scratch::new();
    let args = ["audit", "--json", "--blocks", "64", "--accesses", "500", "--self-test"];
    let audit = json(&scratch.good(args));
    assert_eq!(audit["verdict"], "pass");
    assert!(audit["self_test"]["leaks_caught"].as_u64() > Some(10));
}

#[test]
fn a_command_can_be_recorded_and_judged() {
    let scratch = Scratch::with_volume();
    scratch.write("tree/a", noise(2_000_000, 1));
    scratch.good(["put", "-r", "v", "tree", "/", "--trace-out", "put.jsonl"]);
    scratch.good(["get", "v", "/tree/a", "a", "--memory", "4M", "--trace-out", "get.jsonl"]);
    for name in ["put.jsonl", "get.jsonl"] {
        let text = fs::read_to_string(scratch.path(name)).expect("recorded");
        assert!(text.starts_with("{\"format\":\"oblivio-trace\"") && text.lines().count() > 2);
        let output = scratch.run(["audit", "--json", "--trace", name, "--picture", "t.svg"]);
        let audit = json(std::str::from_utf8(&output.stdout).expect("text"));
        no_leak(&audit);
    }
    assert!(fs::read_to_string(scratch.path("t.svg")).expect("drawn").contains("<svg"));
    #[cfg(feature = "png")]
    {
        scratch.good(["audit", "--trace", "put.jsonl", "--picture", "t.png"]);
        assert!(fs::read(scratch.path("t.png")).expect("drawn").starts_with(b"\x89PNG"));
    }
    // A check also reads everything stored, in order.
    scratch.good(["check", "v", "--trace-out", "check.jsonl"]);
    let together = ["put", "get", "check"].map(|name| format!("{name}.jsonl"));
    let mut args = vec!["audit", "--json"];
    together.iter().for_each(|name| args.extend(["--trace", name]));
    let output = scratch.run(args);
    let audit = json(std::str::from_utf8(&output.stdout).expect("text"));
    no_leak(&audit);
    let findings =
        audit["judgements"][0]["report"]["findings"].as_array().expect("findings").clone();
    let named = |name: &str| findings.iter().any(|finding| finding["name"] == name);
    assert!(named("places at the store") && named("repeats across sessions"), "{audit}");
    // A trace that only the volume reported is refused with advice.
    scratch.write("old.jsonl", "{\"format\":\"oblivio-trace\",\"version\":3,\"depth\":3}\n");
    assert!(scratch.bad(1, ["audit", "--trace", "old.jsonl"]).contains("record it again"));
    scratch.write("odd.jsonl", "{\"format\":\"something\",\"version\":1}\n");
    scratch.bad(1, ["audit", "--trace", "odd.jsonl"]);
    scratch.bad(3, ["audit", "--trace", "missing.jsonl"]);
}

#[test]
fn the_demo_tells_its_story_and_cleans_up() {
    let scratch = Scratch::new();
    for n in 0..40 {
        scratch.write(&format!("files/{n}.bin"), noise(9000 + n * 10, n as u64));
    }
    fs::create_dir(scratch.path("tmp")).expect("a folder");
    let mut demo = scratch.command(["demo", "files"]);
    let output = demo.env("TMPDIR", scratch.path("tmp")).output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    for part in ["40 files", "PASS", "byte for byte the same", "Refused", "cleaned up"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let left: Vec<_> = fs::read_dir(scratch.path("tmp")).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].file_name(), "oblivio-demo.svg");
    // Nothing is remembered of a deleted volume.
    assert!(!scratch.path("state").exists());
}

#[test]
fn words_about_a_volume() {
    let scratch = Scratch::with_volume();
    scratch.write("a", "a");
    scratch.good(["put", "v", "a", "/"]);
    let info = scratch.good(["info", "v"]);
    for part in ["256 GiB", "1 file", "What its storage learns", "whether one access reads"] {
        assert!(info.contains(part), "{info}");
    }
    let long = scratch.good(["ls", "-l", "v"]);
    assert!(long.starts_with("-rw"), "{long}");
    assert!(scratch.good(["stat", "v", "/a"]).contains("1 bytes"));
    assert!(scratch.good(["du", "v"]).ends_with("/\n"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(scratch.good(["completions", shell]).contains("oblivio"));
    }
    // A reader that goes away early is no failure to report.
    scratch.good([
        "put",
        "v",
        scratch.write("big", noise(4 << 20, 1)).to_str().expect("text"),
        "/",
    ]);
    let mut cat = scratch.command(["cat", "v", "/big"]);
    let mut cat = cat.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut some = [0; 10];
    cat.stdout.take().expect("a pipe").read_exact(&mut some).expect("the file");
    let ended = cat.wait_with_output().expect("it ends");
    assert!(some == noise(4 << 20, 1)[..10]);
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert!(scratch.good(["check", "v"]).starts_with("clean"));
}

#[test]
fn a_full_volume_says_so_and_stays_whole() {
    let scratch = Scratch::new();
    let quick = ["--kdf-memory", "32K", "--kdf-passes", "1"];
    scratch.good([&["init", "v", "--size", "4M"][..], &quick].concat());
    scratch.write("small", noise(100_000, 1));
    scratch.write("large", noise(8 << 20, 2));
    scratch.good(["put", "v", "small", "/"]);
    scratch.bad(7, ["put", "v", "large", "/"]);
    assert!(scratch.good(["check", "v"]).starts_with("clean"));
    assert!(scratch.run(["cat", "v", "/small"]).stdout == noise(100_000, 1));
    scratch.good(["put", "v", "small", "/again"]);
}
