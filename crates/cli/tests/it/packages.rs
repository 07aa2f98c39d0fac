//! What packages need of the command: completions, and the helper of `mount`.

use crate::common::{Scratch, failed, succeeded};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn completions_know_the_commands_and_their_options() {
    let scratch = Scratch::new();
    for (shell, begin) in [("bash", "_oblivio()"), ("zsh", "#compdef oblivio"), ("fish", "__fish")]
    {
        let script = scratch.good(["completions", shell]);
        assert!(script.contains(begin) && script.contains("passphrase-file"), "{shell}");
        assert!(script.contains("umount"), "{shell}");
    }
}

#[test]
#[ignore = "system: bash, if it is installed"]
fn bash_completes_a_command() {
    let scratch = Scratch::new();
    let script = scratch.write("complete", scratch.good(["completions", "bash"]));
    let ask = "source \"$0\"; COMP_WORDS=(oblivio mo); COMP_CWORD=1; _oblivio oblivio mo oblivio; \
               echo \"${COMPREPLY[@]}\"";
    match Command::new("bash").args(["-c", ask]).arg(script).output() {
        Ok(output) => assert_eq!(succeeded(output).trim(), "mount"),
        Err(_) => eprintln!("skipped: there is no bash"),
    }
}

/// The command as `mount` finds it.
fn helper(scratch: &Scratch, args: &[&str]) -> std::process::Output {
    let helper = scratch.path("mount.oblivio");
    if !helper.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_oblivio"), &helper).unwrap();
    }
    let mut command = Command::new(helper);
    command.current_dir(scratch.path(".")).env("XDG_STATE_HOME", scratch.path("state"));
    command.args(args).output().unwrap()
}

#[test]
fn a_fake_mount_checks_and_mounts_nothing() {
    let scratch = Scratch::with_volume();
    fs::create_dir(scratch.path("m")).unwrap();
    let said = succeeded(helper(&scratch, &["v", "m", "-f", "-o", "rw,passphrase_file=p"]));
    assert_eq!(said, "");
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    assert!(!mounts.contains(scratch.path("m").to_str().unwrap()), "{mounts}");
    failed(3, helper(&scratch, &["none", "m", "-f"]));
    failed(3, helper(&scratch, &["v", "none", "-f"]));
    let said = failed(2, helper(&scratch, &["v", "m", "-f", "-o", "colour=red"]));
    assert!(said.contains("colour=red"), "{said}");
    succeeded(helper(&scratch, &["v", "m", "-sf", "-o", "colour=red"]));
}

/// The files of the package say what the command has.
#[test]
fn the_files_of_the_package_fit_the_command() {
    let scratch = Scratch::new();
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let unit = fs::read_to_string(packaging.join("oblivio@.service")).unwrap();
    let mount = scratch.good(["mount", "--help"]);
    for line in unit.lines().filter(|line| line.starts_with("Exec")) {
        for option in line.split_whitespace().filter(|word| word.starts_with("--")) {
            assert!(mount.contains(option), "{option} of {line}");
        }
    }
    assert!(unit.contains("Type=notify"), "the command tells systemd when the mount is up");
}

#[test]
fn the_manual_page_of_the_helper_names_options_that_there_are() {
    let scratch = Scratch::with_volume();
    fs::create_dir(scratch.path("m")).unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/mount.oblivio.8");
    let page = fs::read_to_string(page).unwrap();
    let mut named = 0;
    for option in page.split("\n.TP\n.B").skip(1).filter_map(|text| text.lines().next()) {
        let option = option.trim_start_matches('I').trim_start();
        let option = match option.split_once("= ") {
            Some((name, "seconds")) => format!("{name}=7"),
            Some((name, "size")) => format!("{name}=64M"),
            Some((name, _)) => format!("{name}=file"),
            None => option.to_owned(),
        };
        let tried = helper(&scratch, &["v", "m", "-f", "-o", &option]);
        let said = String::from_utf8_lossy(&tried.stderr);
        assert!(tried.status.success() || said.contains("for shared volumes"), "{option}: {said}");
        named += 1;
    }
    assert_eq!(named, 9, "options of the page");
}
