//! The manual pages that packages need of the command.

use crate::common::{Scratch, succeeded};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Writes all pages to a folder and returns their names.
fn pages(scratch: &Scratch) -> (PathBuf, BTreeSet<String>) {
    let dir = scratch.path("man");
    fs::create_dir(&dir).unwrap();
    scratch.good(["man", "--dir", "man"]);
    let names = dir.read_dir().unwrap().map(|page| page.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap()).collect();
    (dir, names)
}

/// The commands that `--help` lists below a command.
fn listed(scratch: &Scratch, above: &[&str]) -> Vec<String> {
    let help = scratch.good(above.iter().chain(&["--help"]));
    let commands = help.split("Commands:\n").nth(1).unwrap_or_default();
    let names = commands.lines().take_while(|line| line.starts_with("  "));
    let names = names.filter(|line| !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(ToOwned::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let scratch = Scratch::new();
    let (dir, mut names) = pages(&scratch);
    let commands = listed(&scratch, &[]);
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands.iter().filter(|command| *command != "help") {
        assert!(names.contains(&format!("oblivio-{command}.1")), "{command}: {names:?}");
        for below in listed(&scratch, &[command]) {
            let page = format!("oblivio-{command}-{below}.1");
            assert!(below == "help" || names.contains(&page), "{page}: {names:?}");
        }
    }
    assert!(names.remove("oblivio.1"));
    assert!(!names.contains("oblivio-man.1"), "it is for packagers");
    for name in names {
        let page = fs::read_to_string(dir.join(&name)).unwrap();
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "\"SEE ALSO\""] {
            assert!(page.contains(&format!(".SH {section}\n")), "{name}: {section}");
        }
        assert!(!page.contains("EXTRA"), "{name}");
    }
    scratch.bad(3, ["man", "--dir", "missing"]);
}

#[test]
#[ignore = "system: man, if it is installed"]
fn the_page_of_mount_says_what_its_help_says() {
    let scratch = Scratch::new();
    let (dir, _) = pages(&scratch);
    let mut man = Command::new("man");
    man.env("MANWIDTH", "200").args(["-E", "ascii", "-l"]).arg(dir.join("oblivio-mount.1"));
    let Ok(shown) = man.output() else {
        return eprintln!("skipped: there is no man");
    };
    let page = succeeded(shown);
    for text in [
        "oblivio-mount - Use a volume as a directory, with any program",
        "oblivio mount ~/vault ~/private",
        "--passphrase-file <FILE>",
        "--pad  Round the accesses of each file operation up to a power of two",
        "oblivio(1)",
    ] {
        assert!(page.contains(text), "{text:?} in\n{page}");
    }
    assert!(!page.contains("--child") && !page.contains("--sloppy"), "{page}");
}
