//! The audit of what the storage sees of real work in a mount.

use crate::common::{copy_dir, json, noise, until};
use crate::mount::{Rig, rig};
use serde_json::Value;
use std::cell::Cell;
use std::fs;
use std::process::{Command, Stdio};

/// Small blocks: even one file then has enough accesses for statistics.
const SMALL_BLOCKS: [&str; 8] =
    ["--kdf-memory", "32K", "--kdf-passes", "1", "--block-size", "4K", "--size", "1G"];
/// Most of the tree must lie outside memory.
const LITTLE: [&str; 2] = ["--memory", "16M"];

/// Mounts a volume, works in it, unmounts; the trace is a file in the volume's folder.
fn record(rig: &Rig, volume: &str, trace: &str, options: &[&str], work: impl FnOnce()) {
    let args = [&["mount", "--trace-out", trace], options, &[volume, "m"]].concat();
    let mut mount = rig.scratch.command(args);
    let mut mount = mount.stdout(Stdio::null()).spawn().expect("the command runs");
    until(|| rig.mounted());
    work();
    rig.umount();
    assert!(mount.wait().expect("it ends").success());
}

/// Runs a script in the mount.
fn work(rig: &Rig, script: &str) {
    let mut command = Command::new("sh");
    command.args(["-e", "-c", script]).current_dir(&rig.dir).stdin(Stdio::null());
    command.env("HOME", rig.scratch.path("home")).env_remove("GIT_DIR");
    for (name, value) in [("NAME", "n"), ("EMAIL", "e")] {
        command.env(format!("GIT_AUTHOR_{name}"), value);
        command.env(format!("GIT_COMMITTER_{name}"), value);
    }
    let output = command.output().expect("a shell");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The audit of a trace, which must pass.
fn passes(rig: &Rig, trace: &str) -> Value {
    let audit = json(&rig.scratch.good(["audit", "--json", "--trace", trace]));
    assert_eq!(audit["verdict"], "pass", "{trace}: {audit}");
    audit["judgements"][0]["report"].clone()
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_clone_a_search_and_a_removal_pass_the_audit() {
    let Some(rig) = rig() else { return };
    if !Command::new("git").arg("--version").output().is_ok_and(|git| git.status.success()) {
        eprintln!("skipped: there is no git");
        return;
    }
    rig.scratch.good(["init"].iter().chain(&SMALL_BLOCKS).chain(&["w"]));
    for mail in 0..400 {
        let text = format!("Subject: {mail}\n\n{:?}", noise(900, mail));
        rig.scratch.write(&format!("mail/{}/{mail}", mail % 8), text);
    }
    for file in 0..60 {
        rig.scratch.write(&format!("repo/{file}"), noise(9000, file));
    }
    record(&rig, "w", "clone.jsonl", &LITTLE, || {
        work(&rig, "git -C ../repo init -q && git -C ../repo add . && git -C ../repo commit -qm 1");
        work(&rig, "git clone -q --no-hardlinks ../repo clone && cp -r ../mail .");
    });
    record(&rig, "w", "look.jsonl", &LITTLE, || {
        work(&rig, "git -C clone fsck --full && grep -r 'Subject: 7' mail > /dev/null");
    });
    record(&rig, "w", "remove.jsonl", &LITTLE, || work(&rig, "rm -r mail/[0-6] clone"));
    let least = [("clone.jsonl", 700), ("look.jsonl", 500), ("remove.jsonl", 64)];
    for (trace, least) in least {
        let accesses = passes(&rig, trace)["accesses"].as_u64();
        assert!(accesses > Some(least), "{trace}: {accesses:?}");
    }
    let text = fs::read_to_string(rig.scratch.path("remove.jsonl")).expect("recorded");
    assert!(text.contains("\"sweep\":true"), "the tree became smaller");
    // The audit finds a bucket that is read from a place against the rule.
    let what = "\"act\":\"read\",\"on\":[[\"slab";
    let read = text.rfind(what).expect("buckets are read");
    let at = read + text[read..].find(",[").expect("places") + ",[".len();
    rig.scratch.write("odd.jsonl", format!("{}9{}", &text[..at], &text[at..]));
    rig.scratch.bad(1, ["audit", "--trace", "odd.jsonl"]);
    // The sessions are judged together too: none repeats the places of earlier ones.
    let together = ["clone.jsonl", "look.jsonl", "remove.jsonl"];
    let mut args = vec!["audit", "--json"];
    together.iter().for_each(|trace| args.extend(["--trace", trace]));
    let audit = json(&rig.scratch.good(args));
    assert_eq!(audit["verdict"], "pass", "{audit}");
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn one_photo_looks_like_another() {
    let Some(rig) = rig() else { return };
    rig.scratch.good(["init"].iter().chain(&SMALL_BLOCKS).chain(&["w"]));
    record(&rig, "w", "all.jsonl", &[], || {
        for photo in 0..60 {
            let len = if photo == 59 { 450_000 } else { 200_000 };
            fs::write(rig.path(&format!("{photo}.jpg")), noise(len, photo)).expect("written");
        }
    });
    // A session's view depends on all earlier sessions too, so each starts from a copy.
    let copies = Cell::new(0);
    let open = |photo: u32, pad: &[&str]| {
        copies.set(copies.get() + 1);
        let (trace, copy) = (format!("{}.jsonl", copies.get()), format!("w{}", copies.get()));
        copy_dir(&rig.scratch.path("w"), &rig.scratch.path(&copy));
        let options = [&["--accept-rollback"], pad].concat();
        record(&rig, &copy, &trace, &options, || {
            let photo = fs::read(rig.path(&format!("{photo}.jpg"))).expect("a photo");
            assert!(photo.len() >= 200_000);
        });
        trace
    };
    let against = |a: &str, b: &str| {
        let args = ["audit", "--json", "--trace", a, "--against", b];
        let audit = json(&rig.scratch.good(args));
        assert_eq!(audit["verdict"], "pass", "{audit}");
        audit["alike"].as_bool()
    };
    // The places reveal nothing, whatever else is public.
    let (one, other, large) = (open(3, &[]), open(44, &[]), open(59, &[]));
    against(&one, &other);
    assert_eq!(against(&one, &large), Some(false));
    let strictly = ["audit", "--strict", "--trace", &one, "--against", &large];
    let said = rig.scratch.bad(1, strictly);
    assert!(said.contains("told apart"), "{said}");
    // On a busy machine a session may last until a timer commits.
    let pairs = std::iter::repeat_with(|| (open(3, &["--pad"]), open(44, &["--pad"])));
    let alike = pairs.take(3).find(|(one, other)| against(one, other) == Some(true));
    let (one, other) = alike.expect("they look the same");
    rig.scratch.good(["audit", "--strict", "--trace", &one, "--against", &other]);
}
