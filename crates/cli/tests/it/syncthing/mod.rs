//! Two computers with a folder that Syncthing copies: `just syncthing` plays many rounds.

mod client;

use crate::common::{Scratch, failed, json, succeeded};
use client::{listed, pair, settle};
use oblivio_testkit::SplitMix64;
use oblivio_testkit::campaign::{scaled, seed};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
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
    /// The file's number, and when the system last changed anything about it, at the last look.
    stamps: BTreeMap<PathBuf, (u64, i64, i64)>,
    looks: usize,
    /// Bytes of all files that were seen.
    bytes: u64,
}

impl Watch {
    fn look(&mut self, folders: &[PathBuf; 2]) {
        self.looks += 1;
        for folder in folders {
            for (name, len) in listed(folder) {
                assert!(!name.contains("conflict"), "a conflict copy: {name}");
                let path = folder.join("private").join(&name);
                let found = path.metadata().unwrap();
                let stamp = (found.ino(), found.ctime(), found.ctime_nsec());
                if self.stamps.insert(path.clone(), stamp) == Some(stamp) {
                    continue;
                }
                let digest = oblivio_crypto::digest(&std::fs::read(&path).unwrap());
                let before = self.seen.insert(name.clone(), digest);
                assert!(before.is_none_or(|it| it == digest), "{name} changed");
                self.bytes += if before.is_none() { len } else { 0 };
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
#[ignore = "system: Syncthing, if it is installed"]
fn two_computers_by_turns_and_apart() {
    let rounds = scaled(4);
    let scratch = Scratch::new();
    let Some((clients, folders)) = pair(&scratch.path("")) else { return };
    let init = ["init", "-q", "--kdf-memory", "32K", "--kdf-passes", "1", "--sync-folder"];
    succeeded(run(&scratch, 0, &[&init[..], &["--size", "4M", &volume(0)]].concat()));
    settle(&clients, &folders);
    let (mut watch, mut dice) = (Watch::default(), SplitMix64::new(seed(20)));
    let (mut expected, mut parted): (Vec<String>, u64) = (Vec::new(), 0);
    let settle = |watch: &mut Watch| {
        settle(&clients, &folders);
        watch.look(&folders);
    };
    watch.look(&folders);
    for round in 0..rounds {
        let name = format!("file-{round:04}");
        let who = usize::from(dice.below(2) == 0);
        put(&scratch, who, &name);
        if dice.below(3) > 0 {
            expected.push(name);
            settle(&mut watch);
            assert_eq!(ls(&scratch, 1 - who), expected, "round {round}");
        } else {
            let other = format!("file-{round:04}-apart");
            put(&scratch, 1 - who, &other);
            settle(&mut watch);
            expected.push(resolve(&scratch, [(who, &name), (1 - who, &other)], &expected));
            parted += 1;
        }
        settle(&mut watch);
        // Both look, and say where they stand; no look parts anybody.
        for computer in [who, 1 - who] {
            assert_eq!(ls(&scratch, computer), expected, "round {round}");
        }
        settle(&mut watch);
    }
    watch.look(&folders);
    let sent: u64 = clients.iter().map(client::Client::sent).sum();
    eprintln!(
        "{rounds} rounds, {parted} apart: {} files made, {} looks, 0 changed, 0 conflict copies, {} \
         left; {sent} bytes sent, {:.2} times those of the files",
        watch.seen.len(),
        watch.looks,
        listed(&folders[0]).len(),
        sent as f64 / watch.bytes as f64
    );
    assert!(sent as f64 <= 1.3 * watch.bytes as f64, "{sent} bytes sent for {}", watch.bytes);
}

/// Both see two histories, and can look at each. The second one is picked; gives its file.
fn resolve(scratch: &Scratch, files: [(usize, &str); 2], before: &[String]) -> String {
    let (mut picked, mut dropped) = (None, None);
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
            let chosen = if file == files[1].1 { &mut picked } else { &mut dropped };
            *chosen = Some(name.to_owned());
        }
    }
    let (computer, file) = files[1];
    let name = picked.expect("it is among them");
    succeeded(run(scratch, computer, &["pick", "-q", &volume(computer), &name]));
    let other = dropped.expect("it is among them");
    succeeded(run(scratch, computer, &["pick", "-q", &volume(computer), "--drop", &other]));
    file.to_owned()
}

fn other_of(files: [(usize, &str); 2], computer: usize) -> &str {
    files.into_iter().find(|it| it.0 != computer).expect("there are two").1
}
