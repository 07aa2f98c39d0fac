//! Two computers with a folder that Syncthing copies: `just syncthing` plays many rounds.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod client;
#[path = "../common/mod.rs"]
mod common;

use client::{listed, pair, settle};
use common::{Scratch, failed, json, succeeded};
use oblivio_testkit::SplitMix64;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Output;

const NAMES: [&str; 2] = ["one", "two"];

/// Runs a command on one of the computers.
fn run(scratch: &Scratch, computer: usize, args: &[&str]) -> Output {
    let mut command = scratch.command(args);
    command.env("XDG_STATE_HOME", scratch.path(NAMES[computer]).join("state"));
    command.output().expect("the command runs")
}

fn volume(computer: usize) -> String {
    format!("{}/synced/private", NAMES[computer])
}

/// What was ever seen of each file: no file may change.
#[derive(Default)]
struct Watch {
    seen: BTreeMap<String, [u8; 32]>,
    files: usize,
}

impl Watch {
    fn look(&mut self, folders: &[PathBuf; 2]) {
        for folder in folders {
            for (name, _) in listed(folder) {
                assert!(!name.contains("conflict"), "a conflict copy: {name}");
                let bytes = std::fs::read(folder.join("private").join(&name)).unwrap();
                let digest = oblivio_crypto::digest(&bytes);
                let before = self.seen.insert(name.clone(), digest);
                assert!(before.is_none_or(|it| it == digest), "{name} changed");
                self.files += 1;
            }
        }
    }
}

/// Stores a small file of this name.
fn put(scratch: &Scratch, computer: usize, name: &str) {
    scratch.write(name, format!("{name} of {}", NAMES[computer]));
    succeeded(run(scratch, computer, &["put", "-q", &volume(computer), name, "/"]));
}

fn ls(scratch: &Scratch, computer: usize) -> Vec<String> {
    let said = succeeded(run(scratch, computer, &["ls", &volume(computer), "/"]));
    said.lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs Syncthing, and minutes"]
fn two_computers_by_turns_and_apart() {
    let rounds: u64 =
        std::env::var("OBLIVIO_SYNC_ROUNDS").map_or(20, |text| text.parse().expect("a number"));
    let scratch = Scratch::new();
    let Some((clients, folders)) = pair(&scratch.path("")) else { return };
    let init = ["init", "-q", "--kdf-memory", "32K", "--kdf-passes", "1", "--sync-folder"];
    succeeded(run(&scratch, 0, &[&init[..], &["--size", "4M", &volume(0)]].concat()));
    settle(&clients, &folders);
    let (mut watch, mut dice) = (Watch::default(), SplitMix64::new(rounds));
    let (mut expected, mut parted): (Vec<String>, u64) = (Vec::new(), 0);
    for round in 0..rounds {
        watch.look(&folders);
        let name = format!("file-{round:04}");
        let who = usize::from(dice.below(2) == 0);
        put(&scratch, who, &name);
        if dice.below(3) > 0 {
            expected.push(name);
            settle(&clients, &folders);
            assert_eq!(ls(&scratch, 1 - who), expected, "round {round}");
        } else {
            let other = format!("file-{round:04}-apart");
            put(&scratch, 1 - who, &other);
            settle(&clients, &folders);
            expected.push(resolve(&scratch, [(who, &name), (1 - who, &other)], &expected));
            parted += 1;
        }
        settle(&clients, &folders);
        // Both say where they stand.
        assert_eq!(ls(&scratch, who), expected, "round {round}");
        settle(&clients, &folders);
    }
    watch.look(&folders);
    eprintln!(
        "{rounds} rounds, {parted} apart: {} files made, {} looks, 0 changed, 0 conflict copies; {} left",
        watch.seen.len(),
        watch.files,
        listed(&folders[0]).len()
    );
}

/// Both see two histories, and can look at each. The second one is picked; gives its file.
fn resolve(scratch: &Scratch, files: [(usize, &str); 2], before: &[String]) -> String {
    let mut picked = None;
    for (computer, own) in files {
        let volume = volume(computer);
        failed(15, run(scratch, computer, &["ls", &volume, "/"]));
        let list = json(&succeeded(run(scratch, computer, &["pick", "--json", &volume])));
        let all = list.as_array().expect("a list");
        let newest: Vec<_> = all.iter().filter(|it| it["kept"] == false).collect();
        assert_eq!(newest.len(), 2, "{list}");
        for it in newest {
            let name = it["name"].as_str().expect("a name");
            let said = run(scratch, computer, &["ls", "--history", name, &volume, "/"]);
            let seen: Vec<String> = succeeded(said).lines().map(str::to_owned).collect();
            let file = if it["own"] == true { own } else { other_of(files, computer) };
            assert_eq!(seen, [before, &[file.to_owned()]].concat());
            if file == files[1].1 {
                picked = Some(name.to_owned());
            }
        }
    }
    let (computer, file) = files[1];
    let name = picked.expect("it is among them");
    succeeded(run(scratch, computer, &["pick", "-q", &volume(computer), &name]));
    file.to_owned()
}

fn other_of(files: [(usize, &str); 2], computer: usize) -> &str {
    files.into_iter().find(|it| it.0 != computer).expect("there are two").1
}
