//! One tiny volume of each format is kept for ever and must open for ever.

use crate::common::Scratch;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name)
}

/// A copy, because opening a volume may write to it.
fn copied(name: &str) -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("v")).expect("a folder");
    for entry in fixture(name).read_dir().expect("the fixture") {
        let from = entry.expect("an entry").path();
        fs::copy(&from, scratch.path("v").join(from.file_name().expect("a name"))).expect("copied");
    }
    scratch
}

#[test]
fn format_1() {
    let scratch = copied("format-1");
    assert!(scratch.good(["check", "v"]).starts_with("clean"));
    scratch.good(["get", "-r", "v", "/src", "back"]);
    let back = scratch.path("back");
    assert_eq!(fs::read(back.join("small.txt")).expect("a file"), b"a small file\n");
    let numbers: String = (1..=4000).map(|n| format!("{n}\n")).collect();
    assert_eq!(fs::read_to_string(back.join("folder/numbers.txt")).expect("a file"), numbers);
    assert_eq!(fs::read_link(back.join("link")).expect("a link"), Path::new("small.txt"));
    let small = fs::metadata(back.join("small.txt")).expect("a file");
    assert_eq!((small.mode() & 0o777, small.mtime()), (0o640, 1_795_219_200));
    // It can still be written.
    scratch.write("new", "new");
    scratch.good(["put", "v", "new", "/"]);
    assert_eq!(scratch.good(["cat", "v", "/new"]), "new");
}

#[test]
fn a_newer_format_is_refused() {
    let scratch = copied("format-1");
    let header = scratch.path("v/header");
    let mut bytes = fs::read(&header).expect("the header");
    bytes[8] = 3;
    fs::write(&header, &bytes).expect("changed");
    assert!(scratch.bad(9, ["ls", "v"]).contains("format 3"));
    bytes[8] = 1;
    bytes[12] = 4;
    fs::write(&header, &bytes).expect("changed");
    assert!(scratch.bad(9, ["ls", "v"]).contains("does not know"));
    // Known flags, but not this volume's.
    for flags in 1..4 {
        bytes[12] = flags;
        fs::write(&header, &bytes).expect("changed");
        assert!(scratch.bad(5, ["ls", "v"]).contains("header"));
    }
}
