//! The README's example is the file beside this one, and it runs.

use std::process::Command;

/// Is set for the process that runs the example.
const FOLDER: &str = "OBLIVIO_README_FOLDER";

/// The example itself, for the process that runs it.
mod letters {
    include!("letters.rs");

    pub(super) fn run() {
        main().expect("the example ends well");
    }
}

/// Where the other test starts it, in a folder of its own; by itself it does nothing.
#[test]
fn runs_here() {
    if std::env::var_os(FOLDER).is_some() {
        letters::run();
    }
}

#[test]
fn the_example_of_the_readme_is_this_one_and_runs() {
    let (readme, example) = (include_str!("../../../../../README.md"), include_str!("letters.rs"));
    let (_, code) = example.split_once("\n\n").expect("a comment, then code");
    assert!(readme.contains(&format!("```rust\n{code}```\n")), "README.md shows another example");
    assert!(code.lines().count() < 30, "an example fits a screen");

    let room = tempfile::tempdir().expect("a folder");
    let status = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "readme::runs_here", "--quiet"])
        .current_dir(room.path())
        .env(FOLDER, room.path())
        // What the computer remembers goes there, not to the user's own folder.
        .env("XDG_STATE_HOME", room.path().join("state"))
        .status();
    assert!(status.expect("a process").success());
    assert!(room.path().join("vault").is_dir() && room.path().join("state/oblivio").is_dir());
}
