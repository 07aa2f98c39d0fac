//! Volumes made against snapshots: their questions, output and refusals.

use crate::common::{Scratch, copy_dir, json, noise};
use crate::fixtures::fixture;
use std::fs;

const CHEAP: [&str; 5] = ["init", "--kdf-memory", "32K", "--kdf-passes", "1"];
const AGAINST: [&str; 4] = ["--seen-by", "snapshots", "--size", "4M"];

fn init<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&CHEAP[..], &AGAINST, more].concat()
}

#[test]
fn what_it_costs_is_said_before_it_is_made() {
    let scratch = Scratch::new();
    let said = scratch.good(init(&["d"]));
    let cost = said.find("bandwidth  each byte is written").expect("the cost is said");
    assert!(said.find("Made a disk of 4.0 MiB").is_some_and(|made| made > cost), "{said}");
    let said = scratch.good([&CHEAP[..], &["--seen-by", "storage", "v"]].concat());
    assert!(said.contains("bandwidth  with ") && said.contains("Made a volume"), "{said}");
    assert_eq!(scratch.good(init(&["--quiet", "e"])), "");
    // Without a terminal there is no question.
    let said = scratch.good([&CHEAP[..], &["w"]].concat());
    assert!(!said.contains("Who may see"), "{said}");
    assert_eq!(json(&scratch.good(["info", "--json", "w"]))["engine"], "tree");
}

#[test]
fn the_store_is_as_long_as_it_will_ever_be() {
    let scratch = Scratch::new();
    scratch
        .good([&CHEAP[..], &["--seen-by", "snapshots", "--size", "8M", "--files", "v"]].concat());
    let sizes = || {
        let mut sizes: Vec<_> = fs::read_dir(scratch.path("v"))
            .expect("a folder")
            .map(|entry| entry.expect("an entry"))
            .map(|entry| (entry.file_name(), entry.metadata().expect("a file").len()))
            .collect();
        sizes.sort();
        sizes
    };
    let before = sizes();
    scratch.write("noise", noise(2 << 20, 3));
    for _ in 0..3 {
        scratch.good(["put", "v", "noise", "/"]);
    }
    assert_eq!(sizes(), before);
    // A file that does not fit is refused, and the rest stays.
    scratch.write("much", noise(9 << 20, 4));
    scratch.bad(7, ["put", "v", "much", "/"]);
    assert_eq!(scratch.good(["ls", "v", "/"]), "noise\n");
    assert!(scratch.good(["check", "v"]).starts_with("clean"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let scratch = Scratch::new();
    scratch.bad(2, ["init", "--seen-by", "snapshots", "d"]);
    scratch.bad(2, ["init", "--seen-by", "nobody", "d"]);
    scratch.bad(2, ["init", "--seen-by", "storage", "--fill", "d"]);
    scratch.bad(2, ["init", "--seen-by", "storage", "--one-file", "d"]);
    scratch.bad(2, ["init", "--seen-by", "storage", "--seeks", "no", "d"]);
    scratch.bad(2, init(&["--map-on-disk", "--seeks", "no", "d"]));
    scratch.bad(2, init(&["--pad", "d"]));
    for lanes in ["0.5", "1/0", "1/1", "1/8,1/4", "1/8,1/8,1/8", "2/8", "1/200"] {
        scratch.bad(2, init(&["--one-file", "--lanes", lanes, "d"]));
    }
    scratch.bad(2, init(&["--one-file", "--grace", "1/65", "d"]));
    scratch.bad(2, init(&["--one-file", "--lanes", "none", "--grace", "1/4", "d"]));
    for lanes in [&["--lanes", "1/8"][..], &["--grace", "1/4"]] {
        assert!(scratch.bad(2, init(&[lanes, &["d"]].concat())).contains("--one-file"));
    }
    assert!(!scratch.path("d").exists());
    scratch.good(init(&["--files", "v"]));
    for option in [&["--pad"][..], &["--pace", "10"]] {
        assert!(scratch.bad(2, [&["ls"], option, &["v", "/"]].concat()).contains("reads"));
    }
    scratch.bad(9, ["nbd", "v", "--socket", "s"]);
}

#[test]
fn what_is_written_is_recorded_and_judged() {
    let scratch = Scratch::new();
    scratch.good(init(&["--files", "v"]));
    scratch.write("one", "1".repeat(300_000));
    scratch.good(["put", "v", "one", "/", "--trace-out", "put.jsonl"]);
    scratch.good(["ls", "v", "/", "--trace-out", "ls.jsonl"]);
    let audit = ["audit", "--json", "--trace", "put.jsonl", "--trace", "ls.jsonl"];
    let audit = json(&scratch.good(audit));
    assert_eq!(audit["verdict"], "pass", "{audit}");
    let name = &audit["judgements"][0]["report"]["findings"][0]["name"];
    assert_eq!(name, "writes of the sequential engine");
    // The audit finds a quantum that goes elsewhere.
    let text = fs::read_to_string(scratch.path("put.jsonl")).expect("recorded");
    let at = text.rfind("\"write\",\"on\":[[\"state\",").expect("a state is written");
    let odd = format!("{}{}", &text[..at], text[at..].replacen("\"state\"", "\"diary\"", 1));
    scratch.write("odd.jsonl", odd);
    scratch.bad(1, ["audit", "--trace", "odd.jsonl"]);
}

/// In one file a volume has a lane by default.
#[test]
fn in_one_file_a_lane_is_written_beside_the_volume() {
    let scratch = Scratch::new();
    let said = scratch.good(init(&["--files", "--one-file", "v"]));
    assert!(
        said.contains("lanes      one with 512 KiB") && said.contains("--lanes none"),
        "{said}"
    );
    let said = scratch.good(init(&["--one-file", "--lanes", "none", "none"]));
    assert!(!said.contains("lanes "), "{said}");
    scratch.good(init(&["--one-file", "--lanes", "1/4,1/4", "--grace", "1/2", "two"]));
    scratch.good(init(&["folder"]));
    let info = |volume| json(&scratch.good(["info", "--json", volume]));
    let lanes = |volume| info(volume)["lanes"].clone();
    assert_eq!((lanes("v"), lanes("two")), (1.into(), 2.into()), "{}", info("v"));
    assert!(lanes("none").is_null() && lanes("folder").is_null());
    assert!(scratch.good(["info", "v"]).contains("lanes"));

    scratch.write("one", "1".repeat(300_000));
    scratch.good(["put", "v", "one", "/", "--trace-out", "put.jsonl"]);
    scratch.good(["audit", "--trace", "put.jsonl"]);
    let text = fs::read_to_string(scratch.path("put.jsonl")).expect("recorded");
    assert!(text.contains("lane-1-log"), "its quanta");
    // The audit finds a lane that is left out.
    let at = text.rfind("[\"lane-1-log\",12288").expect("its quanta are written");
    let odd = format!("{}{}", &text[..at], text[at..].replacen("lane-1-log", "lane-1-times", 1));
    scratch.write("odd.jsonl", odd);
    scratch.bad(1, ["audit", "--trace", "odd.jsonl"]);
    assert_eq!(scratch.good(["cat", "v", "/one"]), "1".repeat(300_000));
    assert!(scratch.good(["check", "v"]).starts_with("clean"));
}

#[test]
fn a_damaged_state_of_a_lane_is_named_and_stops_nothing() {
    let scratch = Scratch::new();
    copy_dir(&fixture("sequential-lanes"), &scratch.path("v"));
    let run = |command: [&str; 2]| {
        let mut run = scratch.command(command);
        let done = run.env("OBLIVIO_PASSPHRASE", "secret").output().expect("it runs");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    assert_eq!(run(["check", "v"]).0, Some(0));
    // The file ends with the newest one.
    let state = scratch.path("v").join("lane-1-state");
    let mut bytes = fs::read(&state).expect("it is there");
    let newest = bytes.len() - 4096;
    bytes[newest] ^= 1;
    fs::write(&state, bytes).expect("written");
    let (code, said) = run(["info", "v"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("lane-1-state") && said.contains("does without it"), "{said}");
    assert_eq!(run(["check", "v"]).0, Some(5));
    assert!(!run(["check", "v"]).1.contains("second copy"), "there is none");
}

#[test]
fn a_file_that_is_not_empty_stays_unless_it_is_said() {
    let scratch = Scratch::new();
    let file = scratch.write("f", "something that somebody wants to keep");
    assert!(scratch.bad(3, init(&["f"])).contains("--overwrite"));
    assert!(fs::read_to_string(&file).is_ok_and(|text| text.starts_with("something")));
    scratch.bad(9, ["info", "f"]);
    scratch.good(init(&["--overwrite", "f"]));
    scratch.good(["info", "f"]);
    // A volume counts as content.
    scratch.bad(3, init(&["f"]));
    scratch.good(["check", "f"]);
    let wrong = scratch.command(["ls", "f", "/"]).env("OBLIVIO_PASSPHRASE", "wrong").output();
    assert_eq!(wrong.expect("it runs").status.code(), Some(4));
}

#[test]
fn an_older_copy_and_a_changed_one_are_refused() {
    let scratch = Scratch::new();
    scratch.good(init(&["--files", "v"]));
    scratch.write("one", "1");
    scratch.good(["put", "v", "one", "/"]);
    copy_dir(&scratch.path("v"), &scratch.path("old"));
    scratch.good(["put", "v", "one", "/two"]);
    scratch.bad(6, ["ls", "old", "/"]);
    assert_eq!(scratch.good(["ls", "--accept-rollback", "old", "/"]), "one\n");
    for (state, code) in [("v/state", 0), ("v/state-2", 5)] {
        let state = scratch.path(state);
        let mut bytes = fs::read(&state).expect("the state");
        for at in (100..bytes.len()).step_by(1000) {
            bytes[at] ^= 1;
        }
        fs::write(&state, bytes).expect("a state");
        // One of two copies is enough, but not the one that this look makes whole again.
        let looked = scratch.run(["ls", "--accept-rollback", "--unobserved", "v", "/"]);
        assert_eq!(looked.status.code(), Some(code), "{looked:?}");
    }
}
