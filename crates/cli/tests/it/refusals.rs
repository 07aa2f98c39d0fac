//! Every failure has its own exit code, says what happened, and loses nothing.

use crate::common::{Scratch, copy_dir, failed, json, noise, succeeded};
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn passphrases() {
    let scratch = Scratch::with_volume();
    let wrong = scratch.command(["ls", "v"]).env("OBLIVIO_PASSPHRASE", "nope").output();
    let error = failed(4, wrong.expect("it runs"));
    assert!(!error.contains("nope"), "{error}");
    scratch.write("new.txt", "other\n");
    let quick = ["--kdf-memory", "32K", "--kdf-passes", "1"];
    let with_new = |command, new: &[&str]| {
        let args = [&["passphrase", command, "v"][..], &quick[..], new].concat();
        scratch.good(args)
    };
    with_new("change", &["--new-passphrase-file", "new.txt"]);
    failed(4, scratch.run(["ls", "v"]));
    scratch.good(["ls", "v", "--passphrase-file", "new.txt"]);
    let mut back = scratch.command(["passphrase", "add", "v", "--passphrase-file", "new.txt"]);
    back.args(quick).env("OBLIVIO_NEW_PASSPHRASE", "secret");
    succeeded(back.output().expect("it runs"));
    scratch.good(["ls", "v"]);
    let list = scratch.good(["passphrase", "list", "--json", "v"]);
    assert_eq!(json(&list)["passphrases"], 2);
    scratch.good(["passphrase", "remove", "v", "--passphrase-file", "new.txt"]);
    failed(4, scratch.run(["ls", "v", "--passphrase-file", "new.txt"]));
    // The last one stays.
    let error = scratch.bad(1, ["passphrase", "remove", "v"]);
    assert!(error.contains("last"), "{error}");
    scratch.good(["ls", "v"]);
}

#[test]
fn a_passphrase_is_never_guessed_at() {
    let scratch = Scratch::with_volume();
    scratch.write("empty", "\n");
    scratch.bad(2, ["ls", "v", "--passphrase-file", "empty"]);
    scratch.bad(3, ["ls", "v", "--passphrase-file", "missing"]);
    scratch.bad(2, ["init", "w", "--passphrase-file", "empty"]);
    assert!(!scratch.path("w").exists());
}

#[test]
fn init_has_no_options_of_a_volume_that_is_there() {
    let scratch = Scratch::new();
    let help = scratch.good(["init", "--help"]);
    assert!(help.contains("--passphrase-file") && help.contains("--memory"), "{help}");
    let options: [&[&str]; 6] = [
        &["--accept-rollback"],
        &["--take-over"],
        &["--unobserved"],
        &["--older"],
        &["--history", "0123"],
        &["--trace-out", "trace"],
    ];
    for option in options {
        assert!(!help.contains(option[0]), "{help}");
        let error = scratch.bad(2, [&["init", "v", "--seen-by", "storage"], option].concat());
        assert!(error.contains(option[0]), "{error}");
        assert!(!scratch.path("v").exists());
    }
    assert!(scratch.good(["ls", "--help"]).contains("--accept-rollback"));
}

#[test]
fn what_is_no_volume() {
    let scratch = Scratch::new();
    scratch.bad(3, ["ls", "missing"]);
    fs::create_dir(scratch.path("folder")).expect("a folder");
    scratch.bad(9, ["ls", "folder"]);
    scratch.write("file", "x");
    scratch.bad(9, ["ls", "file"]);
    scratch.write("odd/header", noise(2000, 1));
    scratch.bad(9, ["ls", "odd"]);
    scratch.write("full/x", "x");
    scratch.bad(3, ["init", "full"]);
    assert_eq!(fs::read(scratch.path("full/x")).expect("still there"), b"x");
    scratch.bad(3, ["init", "file"]);
    scratch.bad(2, ["init", "v", "--size", "0"]);
    scratch.bad(2, ["init", "v", "--block-size", "3000"]);
    scratch.bad(2, ["init", "v", "--size", "much"]);
    assert!(!scratch.path("v").exists());
    let quick = ["init", "v", "--kdf-memory", "32K", "--kdf-passes", "1"];
    scratch.good(quick);
    scratch.bad(3, quick);
}

#[test]
fn paths_are_judged() {
    let scratch = Scratch::with_volume();
    scratch.bad(3, ["cat", "v", "/missing"]);
    scratch.bad(3, ["get", "v", "/missing", "x"]);
    scratch.bad(3, ["stat", "v", "/missing"]);
    scratch.bad(2, ["cat", "v", "/a/../b"]);
    scratch.bad(2, ["cat", "v", "relative"]);
    scratch.bad(2, ["cat", "v"]);
    scratch.bad(2, ["nonsense"]);
    scratch.write("a", "a");
    scratch.good(["put", "v", "a", "/"]);
    scratch.bad(3, ["cat", "v", "/a/b"]);
    let error = scratch.bad(10, ["cat", "v", "/a", "/missing"]);
    assert!(error.contains("/missing"), "{error}");
}

#[test]
fn a_rollback_is_refused_until_it_is_said_to_be_a_backup() {
    let scratch = Scratch::with_volume();
    scratch.write("a", "old");
    scratch.good(["put", "v", "a", "/"]);
    copy_dir(&scratch.path("v"), &scratch.path("backup"));
    scratch.write("a", "new");
    scratch.good(["put", "v", "a", "/"]);
    fs::remove_dir_all(scratch.path("v")).expect("removed");
    copy_dir(&scratch.path("backup"), &scratch.path("v"));
    let error = scratch.bad(6, ["cat", "v", "/a"]);
    assert!(error.contains("--accept-rollback"), "{error}");
    let mut elsewhere = scratch.command(["cat", "v", "/a"]);
    elsewhere.env("XDG_STATE_HOME", scratch.path("another computer"));
    assert_eq!(succeeded(elsewhere.output().expect("it runs")), "old");
    assert_eq!(scratch.good(["cat", "--accept-rollback", "v", "/a"]), "old");
    assert_eq!(scratch.good(["cat", "v", "/a"]), "old");
}

#[test]
fn an_unreadable_memory_is_no_first_time() {
    let scratch = Scratch::with_volume();
    let state = scratch.path("state/oblivio");
    let mut files = state.read_dir().expect("a folder").map(|entry| entry.expect("read").path());
    // Beside it lie a lock and the notes about places.
    let file = files.find(|path| path.is_file() && path.extension().is_none()).expect("a file");
    fs::write(&file, "oblivio-seen 1\nvolume").expect("written");
    let error = scratch.bad(1, ["ls", "v"]);
    assert!(error.contains("unreadable"), "{error}");
    fs::remove_file(&file).expect("removed");
    scratch.good(["ls", "v"]);
}

#[test]
fn one_at_a_time() {
    let scratch = Scratch::with_volume();
    let mut first = scratch.command(["put", "v", "-", "/slow"]);
    first.stdin(Stdio::piped()).stderr(Stdio::null());
    let mut first = first.spawn().expect("it runs");
    let mut input = first.stdin.take().expect("a pipe");
    // More than a pipe holds: once it is written, the volume is open.
    input.write_all(&noise(1 << 20, 1)).expect("it reads");
    scratch.bad(8, ["ls", "v"]);
    scratch.bad(8, ["passphrase", "remove", "v"]);
    drop(input);
    assert!(first.wait().expect("it ends").success());
    assert_eq!(scratch.good(["ls", "v"]), "slow\n");
}

#[test]
fn a_flipped_byte_is_refused() {
    let scratch = Scratch::with_volume();
    scratch.write("a", noise(400_000, 1));
    scratch.good(["put", "v", "a", "/"]);
    let mut refused = 0;
    for part in 0..32 {
        // A check commits, so each one gets a copy, on a computer that has not seen it yet.
        let name = format!("copy-{part}");
        copy_dir(&scratch.path("v"), &scratch.path(&name));
        let slab = scratch.path(&name).join("slab");
        let mut bytes = fs::read(&slab).expect("the slab");
        let at = bytes.len() * (2 * part + 1) / 64;
        bytes[at] ^= 1;
        fs::write(&slab, &bytes).expect("written");
        let mut check = scratch.command(["check", "--json", &name]);
        let output = check.env("XDG_STATE_HOME", scratch.path(&name).join(".seen")).output();
        let output = output.expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match output.status.code() {
            // A slot that holds no bucket now.
            Some(0) => assert_eq!(json(&text)["clean"], true),
            Some(5) => {
                assert_eq!(json(&text)["clean"], false);
                refused += 1;
            }
            other => panic!("{other:?} {text}"),
        }
    }
    assert!(refused > 0);
}

#[test]
#[ignore = "system: kills processes"]
fn a_killed_put_leaves_nothing_half() {
    let scratch = Scratch::with_volume();
    for n in 0..60 {
        scratch.write(&format!("tree/{n:02}"), noise(200_000 + n * 997, n as u64));
    }
    scratch.write("tree/large", noise(70 << 20, 99));
    scratch.write("first", "the old one");
    scratch.good(["put", "v", "first", "/large"]);
    for wait in [150, 400, 700] {
        let mut put = scratch.command(["put", "-rv", "v", "tree", "/"]);
        put.stdout(fs::File::create(scratch.path("said")).expect("a file")).stderr(Stdio::null());
        let mut put = put.spawn().expect("it runs");
        let until = Instant::now() + Duration::from_millis(wait);
        while Instant::now() < until && put.try_wait().expect("it runs").is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        put.kill().expect("killed");
        put.wait().expect("it ended");
        assert!(scratch.good(["check", "v"]).starts_with("clean"));
        for name in fs::read_to_string(scratch.path("said")).expect("text").lines() {
            let local = fs::read(scratch.path(name.trim_start_matches('/'))).expect("local");
            assert!(scratch.run(["cat", "v", name]).stdout == local, "{name}");
        }
        // A file with a name is whole.
        if scratch.good(["ls", "v"]).contains("tree") {
            let back = format!("back-{wait}");
            scratch.good(["get", "-r", "v", "/tree", &back]);
            for entry in scratch.path(&back).read_dir().expect("a folder") {
                let path = entry.expect("an entry").path();
                let name = path.file_name().expect("a name").to_owned();
                let original = fs::read(scratch.path("tree").join(&name)).expect("local");
                assert!(fs::read(&path).expect("it is there") == original, "{name:?}");
            }
        }
    }
    scratch.good(["put", "-r", "v", "tree", "/"]);
    assert!(!scratch.good(["ls", "-a", "v"]).contains("incoming"));
    assert_eq!(scratch.good(["cat", "v", "/large"]), "the old one");
}

/// A passphrase added twice would still open the volume after its removal.
#[test]
fn a_passphrase_that_opens_is_not_added_again() {
    let scratch = Scratch::with_volume();
    let quick = ["--kdf-memory", "32K", "--kdf-passes", "1"];
    let with_new = |command: &str, known: &str, new: &str| {
        let mut command = scratch.command([&["passphrase", command, "v"][..], &quick].concat());
        command.env("OBLIVIO_PASSPHRASE", known).env("OBLIVIO_NEW_PASSPHRASE", new);
        command.output().expect("it runs")
    };
    let error = failed(1, with_new("add", "secret", "secret"));
    assert!(error.contains("opens the volume already"), "{error}");
    succeeded(with_new("add", "secret", "other"));
    failed(1, with_new("change", "secret", "other"));
    let list = json(&scratch.good(["passphrase", "list", "--json", "v"]));
    assert_eq!(list["passphrases"], 2);
    succeeded(with_new("change", "secret", "third"));
    failed(4, scratch.run(["ls", "v"]));
}

/// Eight slots that each ask for the permitted maximum: refused at once, not tried for minutes.
#[test]
fn a_header_that_asks_for_minutes_of_work_is_refused() {
    let scratch = Scratch::with_volume();
    let path = scratch.path("v/header");
    let mut header = fs::read(&path).expect("a header");
    let slots = 88;
    let first = header[slots..slots + 128].to_vec();
    for slot in header[slots..slots + 8 * 128].chunks_mut(128) {
        slot.copy_from_slice(&first);
        slot[4..8].copy_from_slice(&(1u32 << 20).to_le_bytes());
        slot[8..12].copy_from_slice(&16u32.to_le_bytes());
    }
    fs::write(&path, &header).expect("it can be written");
    // The other copy is whole.
    scratch.good(["ls", "v"]);
    for copy in ["v/header", "v/header-2"] {
        fs::write(scratch.path(copy), &header).expect("it can be written");
    }
    let error = scratch.bad(9, ["ls", "v"]);
    assert!(error.contains("more than a volume may ask for"), "{error}");
}

#[test]
fn a_url_of_no_service_is_no_folder() {
    let scratch = Scratch::with_volume();
    let url = "ftp://host/vault";
    let quick = ["init", "--kdf-memory", "32K", "--kdf-passes", "1"];
    let commands: [&[&str]; 12] = [
        &["ls", url],
        &["put", url, "f", "/"],
        &["get", url, "/f", "x"],
        &["cat", url, "/f"],
        &["rm", url, "/f"],
        &["info", url],
        &["check", url],
        &["mount", url, "m"],
        &["nbd", url, "--socket", "s"],
        &["watch", url],
        &["passphrase", "list", url],
        &["passphrase", "add", url],
    ];
    for command in commands.into_iter().chain([&[&quick[..], &[url]].concat()[..]]) {
        let error = scratch.bad(2, command);
        assert!(error.contains("ftp://host/vault is a URL"), "{command:?}: {error}");
        let said = error.lines().filter(|line| line.starts_with("oblivio: ")).count();
        assert_eq!(said, 1, "{error}");
    }
    assert!(!scratch.path("ftp:").exists(), "nothing was made");
    // A folder with such a name can be named another way.
    fs::create_dir(scratch.path("sftp:")).expect("a folder");
    scratch.good([&quick[..], &["./sftp://w"]].concat());
    scratch.good(["ls", "./sftp://w"]);
}

/// A folder that is read-only while this lives; `None` where nothing can be mounted.
struct ReadOnly(std::path::PathBuf);

impl ReadOnly {
    fn of(from: &std::path::Path, at: std::path::PathBuf) -> Option<Self> {
        fs::create_dir(&at).expect("a folder");
        let mount = |args: &[&std::ffi::OsStr]| {
            let done = std::process::Command::new("mount").args(args).output();
            done.is_ok_and(|output| output.status.success())
        };
        if !mount(&["--bind".as_ref(), from.as_ref(), at.as_ref()]) {
            return None;
        }
        let bound = Self(at);
        mount(&["-o".as_ref(), "remount,bind,ro".as_ref(), bound.0.as_ref()]).then_some(bound)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).output();
    }
}

#[test]
#[ignore = "system: a read-only mount, as root"]
fn a_volume_that_cannot_be_written_is_read_where_nobody_watches() {
    let scratch = Scratch::with_volume();
    let content = noise(200_000, 4);
    scratch.write("f", &content);
    scratch.good(["put", "v", "f", "/f"]);
    let Some(_bound) = ReadOnly::of(&scratch.path("v"), scratch.path("ro")) else {
        return eprintln!("skipped: nobody may mount here");
    };
    for command in [&["ls", "ro"][..], &["cat", "ro", "/f"], &["check", "ro"], &["info", "ro"]] {
        let error = scratch.bad(1, command);
        assert!(error.contains("Nothing can be written there"), "{error}");
        assert!(error.contains("--unobserved"), "{error}");
    }
    let before = copied(&scratch, "v", "before");
    // Twice: the first run leaves nothing behind, neither there nor in this computer's memory.
    for _ in 0..2 {
        assert_eq!(scratch.good(["ls", "--unobserved", "ro"]), "f\n");
        scratch.good(["get", "--unobserved", "--force", "ro", "/f", "back"]);
        assert!(fs::read(scratch.path("back")).expect("it is there") == content);
        assert!(scratch.good(["check", "--unobserved", "ro"]).starts_with("clean"));
        scratch.good(["stat", "--unobserved", "ro", "/f"]);
        scratch.good(["info", "--unobserved", "ro"]);
    }
    assert_eq!(copied(&scratch, "v", "after"), before, "nothing was written");
    scratch.good(["put", "v", "f", "/g"]);
    // A command that changes a volume fails instead of changing nothing.
    for command in
        [&["put", "--unobserved", "v", "f", "/h"][..], &["rm", "--unobserved", "v", "/f"]]
    {
        let error = scratch.bad(2, command);
        assert!(error.contains("--unobserved reads a volume"), "{error}");
    }
    // An older copy counts as one, watched or not.
    let error = scratch.bad(6, ["ls", "--unobserved", "before"]);
    assert!(error.contains("--accept-rollback"), "{error}");
    assert_eq!(scratch.good(["ls", "--unobserved", "--accept-rollback", "before"]), "f\n");
    assert_eq!(scratch.good(["ls", "v"]), "f\ng\n", "what is remembered stayed");
}

/// A copy of a volume's folder, and its files with their contents.
fn copied(scratch: &Scratch, from: &str, to: &str) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    copy_dir(&scratch.path(from), &scratch.path(to));
    let entries = scratch.path(to).read_dir().expect("a folder").flatten();
    let mut files: Vec<_> =
        entries.map(|entry| (entry.file_name(), fs::read(entry.path()).expect("a file"))).collect();
    files.sort();
    files
}

/// Each of them is there twice: every command says so, `check` ends with 5 once, and then all is
/// whole.
#[test]
fn damage_to_what_is_there_twice_is_said_and_mended() {
    let scratch = Scratch::with_volume();
    for object in ["header", "header-2", "commit", "commit-2", "state-0", "log-1"] {
        let path = scratch.path(&format!("v/{object}"));
        let mut bytes = fs::read(&path).expect("it is there");
        if bytes.is_empty() {
            continue;
        }
        bytes.iter_mut().for_each(|byte| *byte ^= 1);
        fs::write(&path, &bytes).expect("it can be written");
        let error = scratch.bad(5, ["check", "v"]);
        assert!(error.contains("damaged: ") && error.contains(object), "{object}: {error}");
        assert!(error.contains("nothing is lost"), "{object}: {error}");
        let again = scratch.good(["check", "v"]);
        assert!(again.contains("clean: "), "{object}: {again}");
    }
    fs::remove_file(scratch.path("v/header-2")).expect("it is there");
    let error = scratch.bad(5, ["check", "v"]);
    assert!(error.contains("damaged: header-2: the header is missing"), "{error}");
    let path = scratch.path("v/header");
    fs::write(&path, "nothing").expect("it can be written");
    let looked = scratch.run(["ls", "v"]);
    let said = String::from_utf8_lossy(&looked.stderr).into_owned();
    assert!(looked.status.success() && said.contains("damaged: header"), "{said}");
    let json = json(&String::from_utf8_lossy(&scratch.run(["check", "--json", "v"]).stdout));
    assert_eq!((&json["clean"], &json["healed"]), (&true.into(), &serde_json::json!([])));
}
