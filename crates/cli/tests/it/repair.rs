//! A damaged volume is repaired: what is whole stays, what is lost is named, and an older copy
//! gives what it has.

use crate::common::{Scratch, copy_dir, json, noise};
use crate::terminal::Terminal;
use oblivio_testkit::Dice;
use std::collections::BTreeSet;
use std::fs;

const FILES: u64 = 40;

/// A tree with damage, see [`damaged_of`].
fn damaged(wanted: fn(&BTreeSet<String>) -> bool) -> Scratch {
    damaged_of(&["--seen-by", "storage"], |_| {}, flip, wanted)
}

/// A volume of files, made with these options, an older copy of it, and harm to a few places that
/// is of use: files of `wanted` kinds are lost, and no metadata. `between` is done after the copy.
fn damaged_of(
    made: &[&str],
    between: fn(&Scratch),
    harm: fn(&Scratch, &mut Dice),
    wanted: fn(&BTreeSet<String>) -> bool,
) -> Scratch {
    let scratch = Scratch::new();
    for file in 0..FILES {
        scratch.write(&format!("src/f{file}"), noise(40_000 + 1_000 * file as usize, file));
    }
    let kdf = ["init", "whole", "--kdf-memory", "32K", "--kdf-passes", "1"];
    scratch.good([&kdf, made].concat());
    scratch.good(["put", "-r", "whole", "src", "/"]);
    copy_dir(&scratch.path("whole"), &scratch.path("old"));
    // Every fourth file changes after the copy.
    for file in (0..FILES).step_by(4) {
        scratch.write(&format!("src/f{file}"), noise(50_000, 1_000 + file));
        scratch.good(["put", "whole", &format!("src/f{file}"), &format!("/src/f{file}")]);
    }
    between(&scratch);
    let mut dice = Dice::new(49);
    for _ in 0..50 {
        copy_dir(&scratch.path("whole"), &scratch.path("v"));
        harm(&scratch, &mut dice);
        let look = ["repair", "--dry-run", "--unobserved", "--json", "v"];
        // Nothing is shown of a volume that cannot be repaired: both copies of the block that says
        // where files begin may be hit.
        let shown = serde_json::from_slice(&scratch.run(look).stdout).unwrap_or_default();
        if lost_of(&shown).is_some_and(|lost| wanted(&lost)) {
            return scratch;
        }
        fs::remove_dir_all(scratch.path("v")).expect("removed");
    }
    panic!("no damage is of use");
}

/// Flips two bits of each slab.
fn flip(scratch: &Scratch, dice: &mut Dice) {
    for slab in ["slab", "slab-1", "slab-2", "slab-3"] {
        let path = scratch.path(&format!("v/{slab}"));
        let Ok(mut bytes) = fs::read(&path) else { continue };
        for _ in 0..if bytes.is_empty() { 0 } else { 2 } {
            let at = dice.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << dice.below(8);
        }
        fs::write(path, bytes).expect("it can be written");
    }
}

/// Flips a few bits of a sequential volume's disk.
fn flip_disk(scratch: &Scratch, dice: &mut Dice) {
    let path = scratch.path("v/disk");
    let mut bytes = fs::read(&path).expect("the disk");
    for _ in 0..12 {
        let at = dice.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << dice.below(8);
    }
    fs::write(path, bytes).expect("it can be written");
}

fn changed(path: &str) -> bool {
    let number: u64 = path["/src/f".len()..].parse().expect("a number");
    number.is_multiple_of(4)
}

/// The paths that a report names as lost.
fn lost_in(report: &serde_json::Value) -> BTreeSet<String> {
    lost_of(report).expect("a list")
}

fn lost_of(report: &serde_json::Value) -> Option<BTreeSet<String>> {
    let path = |it: &serde_json::Value| it["path"].as_str().expect("a path").to_owned();
    Some(report["lost"].as_array()?.iter().map(path).collect())
}

/// The names in a list of a report.
fn names_in(report: &serde_json::Value, list: &str) -> BTreeSet<String> {
    let names = report[list].as_array().expect("a list");
    names.iter().map(|path| path.as_str().expect("a path").to_owned()).collect()
}

/// Each file is whole, or in this list, and then an error.
fn expect(scratch: &Scratch, lost: &BTreeSet<String>) {
    for file in 0..FILES {
        let path = format!("/src/f{file}");
        let read = scratch.run(["cat", "v", &path]);
        let whole = fs::read(scratch.path(&format!("src/f{file}"))).expect("written");
        match lost.contains(&path) {
            true => assert!(!read.status.success(), "{path}"),
            false => assert!(read.status.success() && read.stdout == whole, "{path}"),
        }
    }
}

#[test]
fn what_is_lost_is_shown_before_and_known_after() {
    let scratch = damaged(|lost| lost.len() > 2);
    let shown = scratch.run(["repair", "--dry-run", "--json", "v"]);
    assert_eq!(shown.status.code(), Some(5));
    let shown = json(&String::from_utf8_lossy(&shown.stdout));
    let lost = lost_in(&shown);
    assert!(!lost.is_empty() && shown["repaired"] == false, "{shown}");
    // Nobody is asked, so nothing is done.
    let refused = scratch.bad(2, ["repair", "v"]);
    assert!(refused.contains("--yes"), "{refused}");
    expect(&scratch, &lost);

    let done = json(&scratch.good(["repair", "--yes", "--json", "--trace-out", "trace", "v"]));
    assert_eq!((lost_in(&done), &done["repaired"]), (lost.clone(), &true.into()), "{done}");
    scratch.good(["audit", "--trace", "trace"]);
    expect(&scratch, &lost);
    let check = json(&scratch.good(["check", "--json", "v"]));
    assert_eq!(check["clean"], true, "{check}");
    assert!(scratch.good(["repair", "v"]).contains("Nothing to repair"));

    // What is written or removed is whole again.
    let (first, last) = (lost.first().expect("some"), lost.last().expect("some"));
    scratch.good(["put", "v", &first[1..], first]);
    scratch.good(["put", "v", &last[1..], last]);
    let mut left = lost.clone();
    left.retain(|path| path != first && path != last);
    expect(&scratch, &left);
    let gone: Vec<&str> = left.iter().map(String::as_str).collect();
    scratch.good([&["rm", "v"][..], &gone].concat());
    scratch.good(["check", "v"]);
}

/// Blocks that nobody asked for after the copy come from it, also once the damage was met.
#[test]
fn an_older_copy_gives_the_blocks_that_are_the_same() {
    let scratch = damaged(|lost| lost.iter().any(|path| !changed(path)));
    // It reads all that is lost.
    scratch.bad(5, ["check", "v"]);
    let from = ["repair", "--yes", "--from", "old", "--json", "v"];
    let shown = scratch.run([&from[..], &["--dry-run"]].concat());
    assert_eq!(shown.status.code(), Some(5), "nothing is done yet");
    let done = json(&scratch.good(from));
    assert!(done["blocks"].as_u64() > Some(0), "{done}");
    // Ends of files share blocks. One beside that of a changed file has no proof any more: then
    // the file is compared.
    let (lost, restored) = (lost_in(&done), names_in(&done, "restored"));
    let left: BTreeSet<String> = lost.difference(&restored).cloned().collect();
    assert!(left.iter().all(|path| changed(path)), "the others were not touched: {done}");
    expect(&scratch, &left);
    scratch.good(["check", "v"]);
}

/// Blocks that were read after the copy have no proof there. The files are compared.
#[test]
fn an_older_copy_gives_what_is_the_same_and_names_the_rest() {
    let read_all = |scratch: &Scratch| drop(scratch.good(["get", "-r", "whole", "/", "out"]));
    let scratch = damaged_of(&["--seen-by", "storage"], read_all, flip, |lost| {
        lost.iter().any(|path| changed(path)) && lost.iter().any(|path| !changed(path))
    });
    let done = json(&scratch.good(["repair", "--yes", "--from", "old", "--json", "v"]));
    assert_eq!(done["blocks"], 0, "{done}");
    let lost = lost_in(&done);
    let (restored, older) = (names_in(&done, "restored"), names_in(&done, "older"));
    let same: BTreeSet<String> = lost.iter().filter(|path| !changed(path)).cloned().collect();
    assert_eq!(restored, same, "{done}");
    let left: BTreeSet<String> = lost.difference(&same).cloned().collect();
    assert_eq!(older, left.iter().map(|path| format!("{path}.older")).collect(), "{done}");
    assert!(!same.is_empty() && !left.is_empty(), "the damage is of both kinds: {done}");
    expect(&scratch, &left);
    for path in &left {
        let number: u64 = path["/src/f".len()..].parse().expect("a number");
        let read = scratch.run(["cat", "v", &format!("{path}.older")]);
        assert!(read.stdout == noise(40_000 + 1_000 * number as usize, number), "{path}");
    }
    scratch.good(["check", "v"]);
}

/// What a look at the volume says is lost.
fn lost_now(scratch: &Scratch, more: &[&str]) -> BTreeSet<String> {
    let look = [&["repair", "--dry-run", "--unobserved", "--json", "v"], more].concat();
    lost_in(&json(&String::from_utf8_lossy(&scratch.run(look).stdout)))
}

/// Before that nothing of a backup is written, and so nothing is anew.
#[test]
fn a_repair_with_a_backup_asks_before_it_writes() {
    let scratch = damaged(|lost| {
        lost.iter().any(|path| changed(path)) && lost.iter().any(|path| !changed(path))
    });
    let before = lost_now(&scratch, &[]);
    let refused = scratch.bad(2, ["repair", "--from", "old", "v"]);
    assert!(refused.contains("--yes"), "{refused}");
    assert_eq!(lost_now(&scratch, &[]), before);
    expect(&scratch, &before);
    let shown = scratch.run(["repair", "--dry-run", "--from", "old", "v"]);
    assert_eq!(shown.status.code(), Some(5));
    expect_each_once(&String::from_utf8_lossy(&shown.stdout));
    assert_eq!(lost_now(&scratch, &[]), before);
}

#[test]
#[ignore = "system: a terminal, and setsid"]
fn a_repair_with_a_backup_asks_once() {
    let scratch = damaged(|lost| {
        lost.iter().any(|path| changed(path)) && lost.iter().any(|path| !changed(path))
    });
    let before = lost_now(&scratch, &[]);
    for (answer, code) in [(b"n\n", 5), (b"y\n", 0)] {
        assert_eq!(lost_now(&scratch, &[]), before);
        let mut terminal = Terminal::new();
        let args = ["repair", "--from", "old", "v"];
        let mut child = terminal.command(&scratch, &args).spawn().expect("it runs");
        terminal.expect("Passphrase: ");
        terminal.say(b"secret\n");
        terminal.expect("Go on? [y/N]: ");
        terminal.say(answer);
        // A second question would have no answer.
        assert_eq!(child.wait().expect("it ends").code(), Some(code));
    }
    let left: BTreeSet<String> = before.into_iter().filter(|path| changed(path)).collect();
    expect(&scratch, &left);
}

/// No place or file is named twice.
fn expect_each_once(said: &str) {
    let mut lines = BTreeSet::new();
    for line in said.lines().filter(|line| line.contains(": ")) {
        assert!(lines.insert(line), "twice: {line}");
    }
}

/// What an earlier repair took for lost comes from a backup as well.
#[test]
fn a_backup_gives_what_an_earlier_repair_left() {
    let read_all = |scratch: &Scratch| drop(scratch.good(["get", "-r", "whole", "/", "out"]));
    let scratch = damaged_of(&["--seen-by", "storage"], read_all, flip, |lost| {
        lost.iter().any(|path| changed(path)) && lost.iter().any(|path| !changed(path))
    });
    let lost = lost_now(&scratch, &[]);
    scratch.good(["repair", "--yes", "v"]);
    expect(&scratch, &lost);
    assert!(scratch.good(["repair", "v"]).contains("Nothing to repair"));
    let done = json(&scratch.good(["repair", "--yes", "--from", "old", "--json", "v"]));
    assert_eq!(done["repaired"], true, "{done}");
    let left: BTreeSet<String> = lost.into_iter().filter(|path| changed(path)).collect();
    expect(&scratch, &left);
    assert_eq!(done["older"].as_array().map(Vec::len), Some(left.len()), "{done}");
    let again = json(&scratch.good(["repair", "--yes", "--from", "old", "--json", "v"]));
    assert_eq!(again["older"], serde_json::json!([]), "they are there: {again}");
    let check = json(&scratch.good(["check", "--json", "v"]));
    assert_eq!(check["clean"], true, "{check}");
}

/// Another volume with the same passphrase has files of the same names.
#[test]
fn nothing_is_taken_from_another_volume() {
    let scratch = damaged(|lost| !lost.is_empty());
    let init =
        ["init", "other", "--seen-by", "storage", "--kdf-memory", "32K", "--kdf-passes", "1"];
    scratch.good(init);
    scratch.good(["put", "-r", "other", "src", "/"]);
    let refused = scratch.bad(11, ["repair", "--yes", "--from", "other", "v"]);
    assert!(refused.contains("another volume"), "{refused}");
    // Nothing was changed; and what is rolled back is not repaired.
    let shown =
        json(&String::from_utf8_lossy(&scratch.run(["repair", "--dry-run", "--json", "v"]).stdout));
    let lost = lost_in(&shown);
    assert!(!lost.is_empty() && !shown.to_string().contains(".older"), "{shown}");
    copy_dir(&scratch.path("v"), &scratch.path("before"));
    scratch.good(["repair", "--yes", "v"]);
    fs::remove_dir_all(scratch.path("v")).expect("removed");
    copy_dir(&scratch.path("before"), &scratch.path("v"));
    let refused = scratch.bad(6, ["repair", "--yes", "--from", "old", "v"]);
    assert!(refused.contains("rolled back"), "{refused}");
    scratch.bad(6, ["check", "v"]);
}

#[test]
fn zeros_can_be_read() {
    let scratch = damaged(|lost| !lost.is_empty());
    let done = json(&scratch.good(["repair", "--yes", "--zeros", "--json", "v"]));
    let lost = lost_in(&done);
    assert!(!lost.is_empty());
    for path in &lost {
        let read = scratch.run(["cat", "v", path]);
        let whole = fs::read(scratch.path(&path[1..])).expect("written");
        assert!(read.status.success() && read.stdout.len() == whole.len(), "{path}");
        let differs = read.stdout.iter().zip(&whole).filter(|(now, then)| now != then);
        assert!(differs.map(|(now, _)| *now).all(|now| now == 0), "{path}");
    }
    scratch.good(["check", "v"]);
}

/// Nobody sees its reads, so what is lost is not in the way of what is read.
#[test]
fn a_sequential_volume_is_made_whole() {
    let made = ["--seen-by", "snapshots", "--files", "--size", "8M"];
    let scratch = damaged_of(&made, |_| {}, flip_disk, |lost| !lost.is_empty());
    let done = json(&scratch.good(["repair", "--yes", "--json", "v"]));
    let lost = lost_in(&done);
    assert!(!lost.is_empty() && done["repaired"] == true, "{done}");
    expect(&scratch, &lost);
    let check = json(&scratch.good(["check", "--json", "v"]));
    assert_eq!(check["clean"], true, "{check}");
    assert!(scratch.good(["repair", "v"]).contains("Nothing to repair"));
    for path in &lost {
        scratch.good(["put", "v", &path[1..], path]);
    }
    expect(&scratch, &BTreeSet::new());
    scratch.good(["check", "v"]);
}

#[test]
fn what_cannot_be_repaired_is_not_begun() {
    let scratch = Scratch::new();
    scratch.write("a", noise(5_000, 1));
    scratch.good(["init", "v", "--sync-folder", "--size", "4M", "--kdf-memory", "32K"]);
    scratch.good(["put", "v", "a", "/a"]);
    let names = || {
        let entries = fs::read_dir(scratch.path("v")).expect("the folder");
        entries.map(|entry| entry.expect("an entry").file_name()).collect::<BTreeSet<_>>()
    };
    let before = names();
    let refused = scratch.bad(1, ["repair", "--yes", "v"]);
    assert!(refused.contains("oblivio check") && refused.contains("--incomplete"), "{refused}");
    assert_eq!(names(), before);
    scratch.good(["get", "-r", "--incomplete", "v", "/", "out"]);
}

/// Of metadata whose both copies are lost, the rest is made whole.
#[test]
fn what_stood_in_lost_metadata_is_named() {
    let scratch = damaged(|_| true);
    let mut dice = Dice::new(7);
    let mut tries = 0;
    loop {
        fs::remove_dir_all(scratch.path("v")).expect("removed");
        copy_dir(&scratch.path("whole"), &scratch.path("v"));
        (0..5).for_each(|_| flip(&scratch, &mut dice));
        let look = ["repair", "--dry-run", "--unobserved", "--json", "v"];
        let shown = serde_json::from_slice(&scratch.run(look).stdout);
        let shown: serde_json::Value = shown.unwrap_or_default();
        if shown["metadata"]["blocks"].as_u64() > Some(0) {
            break;
        }
        tries += 1;
        assert!(tries < 200, "no damage hits both copies");
    }
    copy_dir(&scratch.path("v"), &scratch.path("again"));
    let said = scratch.good(["repair", "--yes", "v"]);
    expect_each_once(&said);
    assert!(said.contains("damaged: "), "{said}");
    fs::remove_dir_all(scratch.path("v")).expect("removed");
    copy_dir(&scratch.path("again"), &scratch.path("v"));
    let repair = ["repair", "--yes", "--json", "--accept-rollback", "--trace-out", "trace", "v"];
    let done = json(&scratch.good(repair));
    scratch.good(["audit", "--trace", "trace"]);
    let metadata = &done["metadata"];
    let list = |of: &serde_json::Value| of.as_array().expect("a list").clone();
    let mut named: BTreeSet<String> = BTreeSet::new();
    for lost in [&done["lost"], &done["holes"], &metadata["lost"]] {
        named.extend(list(lost).iter().map(|it| it["path"].as_str().expect("a path").to_owned()));
    }
    let removed = list(&metadata["removed"]);
    named.extend(removed.iter().map(|it| it.as_str().expect("a path").to_owned()));
    let mut unnamed = 0;
    for file in 0..FILES {
        let path = format!("/src/f{file}");
        let read = scratch.run(["cat", "v", &path]);
        let whole = fs::read(scratch.path(&format!("src/f{file}"))).expect("written");
        match read.status.success() {
            true => assert!(read.stdout == whole, "{path}"),
            false => unnamed += usize::from(!named.contains(&path)),
        }
    }
    assert!(list(&metadata["found"]).iter().all(|found| found["inode"].is_u64()), "{done}");
    let found = list(&metadata["found"]).len();
    let all_kept = found == 0 && unnamed == 0 && named.is_empty();
    assert!(all_kept || !said.contains("Nothing is lost"), "{said}");
    let all = metadata["unnamed"].as_u64().map_or(usize::MAX, |unnamed| found + unnamed as usize);
    assert!(unnamed <= all, "{unnamed} files are gone without a word: {done}");
    assert_eq!(json(&scratch.good(["check", "--json", "v"]))["clean"], true);
    assert!(scratch.good(["repair", "v"]).contains("Nothing to repair"));
}
