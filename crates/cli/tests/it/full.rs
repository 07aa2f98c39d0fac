//! Full volumes, and their remedies.

use crate::common::{Scratch, failed, json, noise};
use serde_json::Value;

const QUICK: [&str; 4] = ["--kdf-memory", "32K", "--kdf-passes", "1"];

/// A volume `v` with this size limit.
fn volume(size: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.good([&["init", "--size", size][..], &QUICK, &["v"]].concat());
    scratch
}

fn info(scratch: &Scratch) -> Value {
    json(&scratch.good(["info", "--json", "v"]))
}

fn used(scratch: &Scratch) -> u64 {
    info(scratch)["used_bytes"].as_u64().expect("a number")
}

/// All names in the root, hidden ones too.
fn names(scratch: &Scratch) -> String {
    scratch.good(["ls", "-R", "v", "/"])
}

#[test]
fn a_put_that_does_not_fit_leaves_nothing_behind() {
    let scratch = volume("8M");
    scratch.write("before", noise(1 << 20, 1));
    scratch.write("large", noise(13 << 20, 2));
    scratch.write("d/a", noise(300_000, 3));
    scratch.write("d/b", noise(13 << 20, 4));
    let empty = used(&scratch);
    // Files stored before the failure are kept.
    let error = scratch.bad(7, ["put", "v", "before", "large", "/"]);
    assert!(error.contains("oblivio resize VOLUME SIZE"), "{error}");
    assert_eq!(names(&scratch).lines().filter(|line| line.contains("before")).count(), 1);
    assert!(!names(&scratch).contains("incoming") && !names(&scratch).contains("large"));
    let kept = used(&scratch);
    assert!(kept < empty + (2 << 20), "{kept} bytes in use, {empty} before");
    // Over an existing file, from a pipe, and a directory.
    let mut piped = scratch.command(["put", "v", "-", "/before"]);
    piped.stdin(std::fs::File::open(scratch.path("large")).expect("a file"));
    failed(7, piped.output().expect("it runs"));
    scratch.bad(7, ["put", "-r", "v", "d", "/"]);
    assert!(used(&scratch) < kept + (1 << 20), "{} bytes in use, {kept} before", used(&scratch));
    assert!(!names(&scratch).contains("incoming"));
    let read = scratch.run(["cat", "v", "/before"]);
    assert!(read.stdout == noise(1 << 20, 1), "the old content");
    // The advice helps.
    scratch.good(["resize", "v", "38M"]);
    scratch.good(["put", "v", "large", "/"]);
    scratch.good(["cp", "v", "/large", "/copy"]);
    let full = used(&scratch);
    let error = scratch.bad(7, ["cp", "v", "/large", "/more"]);
    assert!(error.contains("oblivio resize"), "{error}");
    assert!(used(&scratch) < full + (1 << 20) && !names(&scratch).contains("incoming"));
    scratch.good(["check", "v"]);
}

#[test]
fn a_limit_is_raised_and_lowered() {
    let scratch = volume("64M");
    scratch.write("f", noise(10 << 20, 1));
    scratch.good(["put", "v", "f", "/"]);
    let before = info(&scratch);
    let said = scratch.good(["resize", "v", "1G"]);
    assert!(said.contains("1.0 GiB") && said.contains("64 MiB"), "{said}");
    let said = json(&scratch.good(["resize", "--json", "v", "32M"]));
    assert_eq!(
        (&said["capacity_bytes"], &said["before_bytes"]),
        (&(32 << 20).into(), &(1 << 30).into())
    );
    let least = said["least_bytes"].as_u64().expect("a number");
    assert!((10 << 20..13 << 20).contains(&least), "{least}");
    let after = info(&scratch);
    assert_eq!(after["capacity_bytes"], 32 << 20);
    for same in ["file_bytes", "size_class_blocks", "recursion_levels", "volume"] {
        assert_eq!(before[same], after[same], "{same}");
    }
    let error = scratch.bad(7, ["resize", "v", "10M"]);
    assert!(error.contains("or more") && info(&scratch)["capacity_bytes"] == 32 << 20, "{error}");
    assert_eq!(scratch.good(["resize", "-q", "v", "40M"]), "");
    let read = scratch.run(["cat", "v", "/f"]);
    assert!(read.stdout == noise(10 << 20, 1));
    scratch.good(["check", "v"]);
}

#[test]
fn what_cannot_be_resized_says_why() {
    let scratch = volume("64M");
    scratch.bad(2, ["resize", "v", "0"]);
    scratch.bad(2, ["resize", "v", "much"]);
    scratch.bad(2, ["resize", "v"]);
    scratch.bad(3, ["resize", "missing", "1G"]);
    scratch.bad(1, ["resize", "v", "9E"]);
    let wrong = scratch.command(["resize", "v", "1G"]).env("OBLIVIO_PASSPHRASE", "nope").output();
    failed(4, wrong.expect("it runs"));
    assert_eq!(info(&scratch)["capacity_bytes"], 64 << 20);
    scratch.good([&["init", "--disk", "32M"][..], &QUICK, &["disk"]].concat());
    let error = scratch.bad(9, ["resize", "disk", "64M"]);
    assert!(error.contains("disk of 32 MiB") && error.contains("copy"), "{error}");
    let snapshots = ["init", "--seen-by", "snapshots", "--files", "--size", "16M"];
    scratch.good([&snapshots[..], &QUICK, &["s"]].concat());
    let error = scratch.bad(1, ["resize", "s", "64M"]);
    assert!(error.contains("snapshots") && error.contains("larger one"), "{error}");
    scratch.write("f", noise(20 << 20, 1));
    let error = scratch.bad(7, ["put", "s", "f", "/"]);
    assert!(error.contains("fixed") && !error.contains("resize"), "{error}");
}
