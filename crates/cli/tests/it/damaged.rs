//! A volume whose stored bits flip: what no damaged place carries comes back byte for byte, and the
//! rest is named.

use crate::common::*;
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Output;

const METADATA: &str = "the volume's metadata";

/// Files of all sizes, by their paths below the root of a volume `v`.
fn stored(scratch: &Scratch) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for number in 0..60u64 {
        let longest = [2_000, 20_000, 200_000][number as usize % 3];
        let len = 1 + Dice::new(number).index(longest);
        let path = format!("tree/{}/f{number:02}", ["a", "b"][number as usize % 2]);
        scratch.write(&path, noise(len, 1_000 + number));
        files.insert(path.clone(), noise(len, 1_000 + number));
    }
    scratch.good(["put", "-r", "v", "tree", "/"]);
    files
}

/// A copy of the volume with flipped bits in its buckets.
fn flipped(scratch: &Scratch, name: &str, flips: u64, dice: &mut Dice) {
    copy_dir(&scratch.path("v"), &scratch.path(name));
    let slab = scratch.path(name).join("slab");
    let mut bytes = fs::read(&slab).expect("the slab");
    for _ in 0..flips {
        let at = dice.index(bytes.len());
        bytes[at] ^= 1 << dice.below(8);
    }
    fs::write(&slab, &bytes).expect("written");
}

/// Runs a command on a computer that has not seen the copy yet.
fn elsewhere(scratch: &Scratch, copy: &str, args: &[&str]) -> Output {
    let mut command = scratch.command(args);
    command.env("XDG_STATE_HOME", scratch.path(copy).join(".seen")).output().expect("it runs")
}

/// What a command's JSON says is lost: paths below the root, and their ranges.
fn lost(said: &Value) -> BTreeMap<String, Vec<(u64, u64)>> {
    let number = |value: &Value| value.as_u64().expect("a number");
    let file = |file: &Value| {
        let path = file["path"].as_str().expect("a path").trim_start_matches('/').to_owned();
        let ranges = file["ranges"].as_array().expect("ranges").iter();
        (path, ranges.map(|range| (number(&range[0]), number(&range[1]))).collect())
    };
    let files = said["lost"].as_array();
    files.map(|files| files.iter().map(file).collect()).unwrap_or_default()
}

fn last_json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    json(text.lines().last().unwrap_or_else(|| panic!("nothing was said: {error}")))
}

/// What became of one damaged copy.
#[derive(Default, Debug)]
struct Outcome {
    lost: usize,
    metadata: bool,
}

/// Brings all back from a copy, and checks it.
fn judge(scratch: &Scratch, name: &str, files: &BTreeMap<String, Vec<u8>>) -> Outcome {
    let checked = format!("{name}-checked");
    copy_dir(&scratch.path(name), &scratch.path(&checked));
    let out = format!("{name}-out");
    let args = ["get", "-r", "-q", "--json", "--incomplete", name, "/", &out];
    fs::create_dir(scratch.path(&out)).expect("a folder");
    let got = elsewhere(scratch, name, &args);
    let error = String::from_utf8_lossy(&got.stderr).into_owned();
    let check = elsewhere(scratch, &checked, &["check", "-q", "--json", &checked]);
    let found = last_json(&check);
    assert_eq!(check.status.code(), Some(if found["clean"] == true { 0 } else { 5 }), "{name}");
    let named = lost(&found);
    let metadata = named.contains_key(METADATA);
    if metadata && got.stdout.is_empty() {
        assert_eq!(got.status.code(), Some(17), "{name}: {error}");
        return Outcome { lost: files.len(), metadata };
    }
    let damaged = lost(&last_json(&got));
    assert_eq!(got.status.code(), Some(if damaged.is_empty() { 0 } else { 17 }), "{name}: {error}");
    assert_eq!(error.matches("lost: ").count(), damaged.len(), "each is named once: {error}");
    let mut missing = BTreeSet::new();
    for (path, content) in files {
        let there = fs::read(scratch.path(&out).join(path));
        match (there, damaged.get(path)) {
            (Ok(there), None) => assert!(there == *content, "{name}: {path} is wrong"),
            (Ok(_), Some(_)) => panic!("{name}: {path} is damaged, and looks whole"),
            (Err(_), Some(ranges)) => {
                incomplete(scratch, &format!("{out}/{path}"), content, ranges)
            }
            (Err(_), None) => drop(missing.insert(path.clone())),
        }
    }
    if metadata {
        // Names that nobody knows any more.
        return Outcome { lost: missing.len() + damaged.len(), metadata };
    }
    assert_eq!(missing, BTreeSet::new(), "{name}: {error}");
    assert_eq!(named, damaged, "{name}: check and get say the same");
    Outcome { lost: damaged.len(), metadata }
}

/// A damaged file stands under another name, with zeros for what is lost, and only for that.
fn incomplete(scratch: &Scratch, path: &str, content: &[u8], lost: &[(u64, u64)]) {
    let there = fs::read(scratch.path(&format!("{path}.incomplete")));
    if lost.is_empty() {
        return assert!(there.is_err(), "nothing of {path} is known");
    }
    let mut wanted = content.to_vec();
    for &(first, last) in lost {
        wanted[first as usize..=last as usize].fill(0);
    }
    assert!(there.expect("it was asked for") == wanted, "{path}");
}

#[test]
fn what_no_damaged_place_carries_comes_back() {
    let scratch = Scratch::with_volume();
    let files = stored(&scratch);
    let (mut hit, mut unreadable) = (0, 0);
    for flips in [1, 10] {
        for seed in seed(0)..seed(0) + scaled(6) {
            let name = format!("copy-{flips}-{seed}");
            flipped(&scratch, &name, flips, &mut Dice::new(seed * 100 + flips));
            let outcome = judge(&scratch, &name, &files);
            eprintln!("{name}: {outcome:?}");
            hit += usize::from(outcome.lost > 0);
            unreadable += usize::from(outcome.metadata);
            for folder in ["", "-checked", "-out"] {
                fs::remove_dir_all(scratch.path(&format!("{name}{folder}"))).expect("removed");
            }
        }
    }
    assert!(hit > 0, "some of the flips hit a file");
    // In a tree this small both copies of a part of it may be in one bucket.
    eprintln!("{hit} copies lost something, {unreadable} of them metadata");
}

#[test]
fn a_damaged_file_is_not_written_and_all_others_are() {
    let scratch = Scratch::with_volume();
    let files = stored(&scratch);
    let mut dice = Dice::new(7);
    let damaged = (0..).map(|try_number| format!("copy-{try_number}")).find_map(|name| {
        flipped(&scratch, &name, 10, &mut dice);
        let check = elsewhere(&scratch, &name, &["check", "-q", "--json", &name]);
        let named = lost(&last_json(&check));
        let whole_files = !named.is_empty() && !named.contains_key(METADATA);
        whole_files.then_some((name, named))
    });
    let (name, named) = damaged.expect("one of them");
    fs::create_dir(scratch.path("out")).expect("a folder");
    let got = elsewhere(&scratch, &name, &["get", "-r", "-q", &name, "/", "out"]);
    let error = failed(17, got);
    for path in named.keys() {
        assert!(error.contains(&format!("lost: {path}, bytes ")), "{error}");
        assert!(!scratch.path("out").join(path).exists(), "{path}");
        let shown = elsewhere(&scratch, &name, &["cat", "-q", &name, &format!("/{path}")]);
        assert!(files[path].starts_with(&shown.stdout), "what comes before is right");
        failed(17, shown);
    }
    let (lost, all) = (named.len(), files.len());
    assert!(error.contains(&format!("{lost} of {all} files")), "{error}");
    assert!(error.contains(&format!("{} were written", all - lost)), "{error}");
    let whole = files.keys().find(|path| !named.contains_key(*path)).expect("most of them");
    let one = elsewhere(&scratch, &name, &["cat", &name, &format!("/{whole}")]);
    assert!(one.status.success() && one.stdout == files[whole]);
}

/// A scrub goes on where it stopped, however it stopped; what it shows is accepted by an audit; and
/// damage makes it end with 5, once in each round.
#[test]
fn a_scrub_goes_on_where_it_stopped() {
    let scratch = Scratch::with_volume();
    scratch.write("tree/a", noise(700_000, 1));
    scratch.good(["put", "-q", "-r", "v", "tree", "/"]);
    // One part each time.
    let part = |trace: &str| {
        let args = ["check", "--scrub", "--for", "0", "--limit-rate", "1M", "--json", "-q", "v"];
        let output = scratch.run([&args[..], &["--trace-out", trace]].concat());
        (output.status.code(), last_json(&output))
    };
    let round = |from: usize| {
        let (mut parts, mut codes, mut read) = (Vec::new(), Vec::new(), 0);
        loop {
            let name = format!("scrub{}.jsonl", from + parts.len());
            let (code, said) = part(&name);
            read += said["read"].as_u64().expect("a number");
            assert_eq!(said["done"].as_u64(), Some(read), "it goes on: {said}");
            codes.push(code);
            parts.push(name);
            if said["complete"] == true {
                assert_eq!(said["left"], 0);
                return (parts, codes);
            }
        }
    };
    let (parts, codes) = round(0);
    assert!(parts.len() > 3 && codes.iter().all(|code| *code == Some(0)), "{codes:?}");
    let mut args = vec!["audit", "--json"];
    parts.iter().for_each(|name| args.extend(["--trace", name]));
    let audit = json(std::str::from_utf8(&scratch.run(args).stdout).expect("text"));
    no_leak(&audit);

    let slab = scratch.path("v").join("slab");
    let mut bytes = fs::read(&slab).expect("the slab");
    // Some of it is free.
    let len = bytes.len();
    bytes[len / 2..].iter_mut().step_by(len / 9).for_each(|byte| *byte ^= 1);
    fs::write(&slab, &bytes).expect("written");
    let (_, codes) = round(100);
    let found = codes.iter().filter(|code| **code == Some(5)).count();
    assert!(found > 0 && codes.len() > 3, "{codes:?}");

    let whole = scratch.run(["check", "--scrub", "v"]);
    let said = String::from_utf8_lossy(&whole.stdout).into_owned();
    assert!(said.contains("damaged: slab") && said.contains("to the end"), "{said}");
    for (what, args) in [
        ("needs --scrub", &["check", "--for", "10m", "v"][..]),
        ("no time", &["check", "--scrub", "--for", "soon", "v"]),
        ("no trace is left", &["check", "--scrub", "--unobserved", "v"]),
        ("pads", &["mount", "--scrub", "1M", "--pad", "v", "tree"]),
        ("paced", &["mount", "--scrub", "1M", "--pace", "9", "v", "tree"]),
        ("no rate", &["mount", "--scrub", "0", "v", "tree"]),
    ] {
        assert_eq!(scratch.run(args).status.code(), Some(2), "{what}");
    }
}
