//! Volumes on the pyramid engine, made and used with the command.

use crate::common::{Scratch, json, noise};
use std::process::Stdio;
use std::time::Duration;

const INIT: [&str; 7] = ["init", "--kdf-memory", "32K", "--kdf-passes", "1", "--engine", "pyramid"];

fn init<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&INIT[..], more].concat()
}

#[test]
fn files_come_back_and_info_names_the_engine() {
    let scratch = Scratch::new();
    let said = scratch.good(init(&["--size", "16M", "v"]));
    assert!(said.contains("all of it in time") && said.contains("Made a volume"), "{said}");
    scratch.write("noise", noise(3 << 20, 1));
    scratch.write("small", "a letter\n");
    scratch.good(["put", "v", "noise", "small", "/"]);
    assert_eq!(scratch.good(["ls", "v", "/"]), "noise\nsmall\n");
    assert_eq!(scratch.good(["cat", "v", "/small"]), "a letter\n");
    scratch.good(["get", "v", "/noise", "back"]);
    assert_eq!(std::fs::read(scratch.path("back")).expect("there"), noise(3 << 20, 1));
    let info = json(&scratch.good(["info", "--json", "v"]));
    assert_eq!((&info["engine"], &info["levels"]), (&"pyramid".into(), &1.into()), "{info}");
    assert!(scratch.good(["info", "v"]).contains("pyramid"));
    scratch.good(["rm", "v", "/noise"]);
    assert!(scratch.good(["check", "v"]).starts_with("clean"));
}

#[test]
fn what_it_does_not_have_is_refused() {
    let scratch = Scratch::new();
    // Each block takes memory, so there is no default size.
    assert!(scratch.bad(2, init(&["v"])).contains("--size"));
    scratch.bad(2, init(&["--seen-by", "snapshots", "--size", "4M", "v"]));
    scratch.bad(2, init(&["--size", "4M", "--one-file", "v"]));
    assert!(!scratch.path("v").exists());
    scratch.good(init(&["--size", "4M", "v"]));
    for option in [&["--pad"][..], &["--pace", "10"]] {
        let said = failed_any(&scratch, &[&["ls"], option, &["v", "/"]].concat());
        assert!(said.contains("pyramid"), "{said}");
    }
    let said = failed_any(&scratch, &["resize", "v", "8M"]);
    assert!(said.contains("one size") && !said.contains("snapshots"), "{said}");
    assert_eq!(scratch.good(["ls", "v", "/"]), "");
}

fn failed_any(scratch: &Scratch, args: &[&str]) -> String {
    let output = scratch.run(args);
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
#[ignore = "system: kills processes"]
fn a_killed_command_leaves_whole_files() {
    let scratch = Scratch::new();
    scratch.good(init(&["--size", "8M", "v"]));
    scratch.write("kept", "kept\n");
    scratch.good(["put", "v", "kept", "/"]);
    scratch.write("noise", noise(2 << 20, 7));
    for millis in [5, 20, 40, 60, 80, 120, 200] {
        let mut put = scratch.command(["put", "v", "noise", "/"]);
        let mut put = put.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        std::thread::sleep(Duration::from_millis(millis));
        put.kill().ok();
        put.wait().expect("it ended");
        assert_eq!(scratch.good(["cat", "v", "/kept"]), "kept\n", "after {millis} ms");
        assert!(scratch.good(["check", "v"]).starts_with("clean"), "after {millis} ms");
        if scratch.good(["ls", "v", "/"]).contains("noise") {
            scratch.good(["get", "v", "/noise", "back"]);
            let whole = std::fs::read(scratch.path("back")).expect("there") == noise(2 << 20, 7);
            assert!(whole, "after {millis} ms");
            std::fs::remove_file(scratch.path("back")).expect("there");
        }
    }
}
