//! `oblivio passphrase` of a shared volume, while a computer has it mounted.

use super::team::{Team, may_mount};
use super::{becomes, written};
use crate::common::{failed, json, succeeded};
use std::process::Output;

const CHEAP: [&str; 4] = ["--kdf-memory", "32K", "--kdf-passes", "1"];

/// A command on Anna's computer, with this passphrase and perhaps a new one.
fn run(team: &Team, args: &[&str], secret: &str, new: Option<&str>) -> Output {
    let at = team.at();
    let all: Vec<&str> = args.iter().copied().chain([at.as_str()]).collect();
    let mut command = team.on("anna", &all);
    command.env("OBLIVIO_PASSPHRASE", secret);
    if let Some(new) = new {
        command.env("OBLIVIO_NEW_PASSPHRASE", new);
    }
    command.output().expect("it runs")
}

fn count(team: &Team) -> serde_json::Value {
    let listed = run(team, &["passphrase", "list", "--json"], "", None);
    json(&succeeded(listed))["passphrases"].clone()
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn passphrases_come_and_go_while_a_mount_goes_on() {
    let mut team = Team::new();
    let token = ["passphrase", "list", "--token-file", "anna.token"];
    assert!(succeeded(run(&team, &token, "", None)).contains("1 passphrase"));
    let mounted = may_mount().then(|| team.mount("ben", &[]));
    let add = [&["passphrase", "add"][..], &CHEAP].concat();
    let change = [&["passphrase", "change"][..], &CHEAP].concat();
    let said = succeeded(run(&team, &add, "secret", Some("of ben")));
    assert!(said.contains("2 passphrases can open"), "{said}");
    failed(4, run(&team, &add, "no secret", Some("of carl")));
    failed(1, run(&team, &add, "secret", Some("of ben")));
    let said = succeeded(run(&team, &change, "of ben", Some("of carl")));
    assert!(said.contains("old passphrase"), "{said}");
    // An old passphrase opens nothing any more.
    failed(4, run(&team, &["check"], "of ben", None));
    succeeded(run(&team, &["passphrase", "remove"], "secret", None));
    failed(4, run(&team, &["check"], "secret", None));
    assert_eq!(count(&team), 1);
    let said = failed(1, run(&team, &["passphrase", "remove"], "of carl", None));
    assert!(said.contains("the last passphrase"), "{said}");
    if let Some(dir) = mounted {
        written(&dir.join("after"), b"it has the key");
        becomes(&dir.join("after"), b"it has the key");
        assert!(team.umount(0));
    }
    succeeded(run(&team, &["check"], "of carl", None));
}
