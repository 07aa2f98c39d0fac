//! Stored files come back unchanged.

use crate::common::{Scratch, failed, fifo, json, noise, succeeded};
use filetime::FileTime;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// A tree with every kind of kept property.
pub(crate) fn make_tree(scratch: &Scratch) {
    scratch.write("tree/small.txt", "hello\n");
    scratch.write("tree/empty", "");
    scratch.write("tree/sub/deep/large.bin", noise(3_000_000, 1));
    scratch.write("tree/sub/ümlaut and space", "x");
    let long = "n".repeat(255);
    scratch.write(&format!("tree/{long}"), "long");
    fs::create_dir_all(scratch.path("tree/hollow")).expect("a folder");
    symlink("sub/deep", scratch.path("tree/link")).expect("a link");
    symlink("/etc/passwd", scratch.path("tree/away")).expect("a link");
    let (one, two) = (scratch.path("tree/small.txt"), scratch.path("tree/sub/same.txt"));
    fs::hard_link(one, two).expect("a link");
    let sparse = fs::File::create(scratch.path("tree/sparse")).expect("a file");
    sparse.set_len(50 << 20).expect("a length");
    sparse.write_all_at(&noise(10_000, 2), 20 << 20).expect("some data");
    for (name, mode) in [("tree/small.txt", 0o640), ("tree/empty", 0o4711), ("tree/hollow", 0o1777)]
    {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(scratch.path(name), mode).expect("a mode");
    }
    let time = FileTime::from_unix_time(981_173_106, 123_456_789);
    for name in ["tree/small.txt", "tree/hollow", "tree/sub", "tree"] {
        filetime::set_file_mtime(scratch.path(name), time).expect("a time");
    }
    filetime::set_symlink_file_times(scratch.path("tree/link"), time, time).expect("a time");
}

/// Every name with the properties that must come back.
pub(crate) fn describe(root: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut todo = vec![root.to_owned()];
    while let Some(path) = todo.pop() {
        let found = path.symlink_metadata().expect("it is there");
        let name = path.strip_prefix(root).expect("below the root").display().to_string();
        let content = if found.is_symlink() {
            path.read_link().expect("a target").display().to_string()
        } else if found.is_file() {
            format!(
                "{:?}",
                fs::read(&path)
                    .expect("a content")
                    .iter()
                    .fold(7u64, |sum, &byte| { sum.wrapping_mul(31).wrapping_add(byte.into()) })
            )
        } else {
            todo.extend(path.read_dir().expect("a folder").map(|e| e.expect("an entry").path()));
            String::new()
        };
        // The length of a directory depends on the local file system.
        let len = if found.is_dir() { 0 } else { found.len() };
        let links = if found.is_dir() { 0 } else { found.nlink() };
        let (mtime, nanos) = (found.mtime(), found.mtime_nsec());
        all.push(format!("{name} {:o} {len} {links} {mtime}.{nanos} {content}", found.mode()));
    }
    all.sort();
    all
}

#[test]
fn a_tree_comes_back_as_it_was() {
    let scratch = Scratch::with_volume();
    make_tree(&scratch);
    scratch.good(["put", "-r", "v", "tree", "/"]);
    scratch.good(["get", "-r", "v", "/tree", "back"]);
    assert_eq!(describe(&scratch.path("back")), describe(&scratch.path("tree")));
    assert!(scratch.path("back/sparse").metadata().expect("a file").blocks() * 512 < 1 << 20);
    assert!(scratch.good(["check", "v"]).starts_with("clean"));
    // Into an existing folder, and once more over the existing files.
    fs::create_dir(scratch.path("into")).expect("a folder");
    scratch.good(["get", "-r", "v", "/tree", "into"]);
    assert_eq!(describe(&scratch.path("into/tree")), describe(&scratch.path("tree")));
    let error = scratch.bad(10, ["get", "-r", "v", "/tree", "into"]);
    assert!(error.contains("--force"), "{error}");
    scratch.good(["get", "-rf", "v", "/tree", "into"]);
    assert_eq!(describe(&scratch.path("into/tree")), describe(&scratch.path("tree")));
    // The whole volume.
    scratch.good(["get", "-r", "v", "/", "all"]);
    assert_eq!(describe(&scratch.path("all/tree")), describe(&scratch.path("tree")));
}

/// On the sequential engine: in a folder, in one file with the map on the disk, on a disk without
/// seeks.
#[test]
fn a_tree_comes_back_from_a_volume_made_against_snapshots() {
    let scratch = Scratch::new();
    make_tree(&scratch);
    let cheap = ["init", "--kdf-memory", "32K", "--kdf-passes", "1"];
    let against = ["--seen-by", "snapshots", "--size", "24M", "--files"];
    let mut levels = Vec::new();
    let in_a_file = ["--one-file", "--map-on-disk", "--fill"];
    for (volume, more) in [("v", &[][..]), ("f", &in_a_file), ("s", &["--seeks", "no"])] {
        scratch.good([&cheap, &against, more, &[volume]].concat());
        scratch.good(["put", "-r", volume, "tree", "/"]);
        scratch.good(["put", "-r", volume, "tree", "/again"]);
        scratch.good(["rm", "-r", volume, "/tree"]);
        let back = format!("back-{volume}");
        scratch.good(["get", "-r", volume, "/again", &back]);
        assert_eq!(describe(&scratch.path(&back)), describe(&scratch.path("tree")));
        assert!(scratch.good(["check", volume]).starts_with("clean"));
        let told = json(&scratch.good(["info", "--json", volume]));
        assert_eq!(told["engine"], "sequential");
        assert_eq!(told["map_on_disk"], volume == "f");
        levels.push(told["fan_outs"].as_array().expect("a list").len());
    }
    assert!(levels[2] < levels[0], "fewer levels without seeks: {levels:?}");
    assert!(scratch.path("f").is_file());
}

#[test]
fn what_is_put_again_is_replaced() {
    let scratch = Scratch::with_volume();
    make_tree(&scratch);
    scratch.good(["put", "-r", "v", "tree", "/"]);
    scratch.write("tree/small.txt", "changed\n");
    scratch.write("tree/new", "new\n");
    fs::remove_file(scratch.path("tree/link")).expect("removed");
    symlink("elsewhere", scratch.path("tree/link")).expect("a link");
    scratch.good(["put", "-r", "v", "tree", "/"]);
    scratch.good(["get", "-r", "v", "/tree", "back"]);
    assert_eq!(describe(&scratch.path("back")), describe(&scratch.path("tree")));
    let check = json(&scratch.good(["check", "--json", "v"]));
    assert_eq!(check["clean"], true);
    assert!(!scratch.good(["ls", "-a", "v"]).contains("incoming"));
    // A file does not replace a directory, nor a directory a file.
    fs::remove_dir_all(scratch.path("tree/sub")).expect("removed");
    scratch.write("tree/sub", "a file now");
    let error = scratch.bad(10, ["put", "-r", "v", "tree", "/"]);
    assert!(error.contains("tree/sub"), "{error}");
}

#[test]
fn single_files_go_where_they_are_told() {
    let scratch = Scratch::with_volume();
    scratch.write("a.txt", "a");
    scratch.write("b.txt", "b");
    scratch.good(["put", "v", "a.txt", "/renamed.txt"]);
    scratch.good(["mkdir", "-p", "v", "/x/y"]);
    scratch.good(["put", "v", "a.txt", "b.txt", "/x/y"]);
    assert_eq!(scratch.good(["ls", "v", "/x/y"]), "a.txt\nb.txt\n");
    assert_eq!(scratch.good(["cat", "v", "/renamed.txt", "/x/y/b.txt"]), "ab");
    scratch.bad(3, ["put", "v", "a.txt", "b.txt", "/nowhere"]);
    scratch.bad(3, ["put", "v", "a.txt", "/nowhere/a.txt"]);
    scratch.bad(3, ["put", "v", "missing.txt", "/"]);
    let error = scratch.bad(2, ["put", "v", "state", "/"]);
    assert!(error.contains("-r"), "{error}");
    let error = scratch.bad(2, ["get", "v", "/x", "x"]);
    assert!(error.contains("-r"), "{error}");
}

#[test]
fn pipes_work_at_both_ends() {
    let scratch = Scratch::with_volume();
    let content = noise(5_000_000, 3);
    succeeded(scratch.feed(&content, ["put", "v", "-", "/piped.bin"]));
    let back = scratch.run(["get", "v", "/piped.bin", "-"]);
    assert!(back.stdout == content);
    assert!(scratch.run(["cat", "v", "/piped.bin"]).stdout == content);
    scratch.good(["mkdir", "v", "/d"]);
    succeeded(scratch.feed(b"named", ["put", "v", "-", "/d", "--name", "n.txt"]));
    assert_eq!(scratch.good(["cat", "v", "/d/n.txt"]), "named");
    failed(2, scratch.feed(b"", ["put", "v", "-", "/d"]));
    // The passphrase first, the content after it, both from standard input.
    let args = ["put", "--passphrase-fd", "0", "v", "-", "/after"];
    succeeded(scratch.feed(b"secret\ncontent", args));
    assert_eq!(scratch.good(["cat", "v", "/after"]), "content");
}

#[test]
fn the_tree_inside_can_be_changed() {
    let scratch = Scratch::with_volume();
    make_tree(&scratch);
    scratch.good(["put", "-r", "v", "tree", "/"]);
    scratch.good(["cp", "-r", "v", "/tree", "/copy"]);
    scratch.good(["mv", "v", "/tree", "/moved"]);
    scratch.good(["get", "-r", "v", "/copy", "copy"]);
    scratch.good(["get", "-r", "v", "/moved", "moved"]);
    assert_eq!(describe(&scratch.path("copy")), describe(&scratch.path("tree")));
    assert_eq!(describe(&scratch.path("moved")), describe(&scratch.path("tree")));
    scratch.bad(1, ["mv", "v", "/moved", "/moved/sub"]);
    scratch.bad(3, ["cp", "v", "/moved", "/other"]);
    scratch.bad(3, ["rm", "v", "/moved"]);
    scratch.bad(3, ["mkdir", "v", "/moved"]);
    scratch.bad(3, ["mv", "-n", "v", "/copy/small.txt", "/copy/empty"]);
    scratch.good(["mv", "v", "/copy/small.txt", "/copy/empty"]);
    scratch.good(["rm", "-r", "v", "/moved", "/copy"]);
    scratch.good(["rm", "-f", "v", "/moved"]);
    scratch.bad(3, ["rm", "v", "/moved"]);
    scratch.bad(2, ["rm", "-r", "v", "/"]);
    assert_eq!(scratch.good(["ls", "-a", "v"]), "");
    assert!(scratch.good(["check", "v"]).starts_with("clean"));
}

#[test]
fn json_is_json() {
    let scratch = Scratch::with_volume();
    make_tree(&scratch);
    let put = json(&scratch.good(["put", "--json", "-r", "v", "tree", "/"]));
    assert_eq!((&put["files"], &put["symlinks"]), (&7.into(), &2.into()));
    let lines = scratch.good(["put", "--json", "-v", "-r", "v", "tree", "/"]);
    let lines: Vec<_> = lines.lines().map(json).collect();
    assert!(lines.iter().any(|line| line["stored"] == "/tree/small.txt"));
    let listed: Vec<_> = scratch.good(["ls", "--json", "-R", "v"]).lines().map(json).collect();
    let small = listed.iter().find(|line| line["path"] == "/tree/small.txt").expect("listed");
    assert_eq!((&small["size"], &small["mode"]), (&6.into(), &"0640".into()));
    assert_eq!(small["mtime"], "2001-02-03T04:05:06.123456789Z");
    let stat = json(&scratch.good(["stat", "--json", "v", "/tree/link"]));
    assert_eq!((&stat["kind"], &stat["target"]), (&"symlink".into(), &"sub/deep".into()));
    let du = scratch.good(["du", "--json", "--depth", "0", "v"]);
    assert_eq!(json(&du)["files"], 8);
    assert_eq!(json(&scratch.good(["info", "--json", "v"]))["passphrases"], 1);
    let get = json(&scratch.good(["get", "--json", "-r", "v", "/tree", "back"]));
    assert_eq!(get["failed"], 0);
}

#[test]
fn other_kinds_of_files_are_named_and_not_passed_over() {
    let scratch = Scratch::with_volume();
    scratch.write("tree/a", "a");
    let socket = std::os::unix::net::UnixListener::bind(scratch.path("tree/socket"));
    let output = scratch.run(["put", "-r", "v", "tree", "/"]);
    drop(socket);
    let error = failed(10, output);
    assert!(error.contains("tree/socket: a socket, not stored"), "{error}");
    // The volume is not stored in itself.
    let error = scratch.bad(10, ["put", "-r", "v", ".", "/all"]);
    assert!(error.contains("the volume itself, not stored"), "{error}");
    assert_eq!(scratch.good(["cat", "v", "/all/tree/a"]), "a");
}

/// Pipes, and files without a known length, are read until they end.
#[test]
fn what_is_named_is_read_to_its_end() {
    let scratch = Scratch::with_volume();
    let content = noise(300_000, 8);
    let path = fifo(&scratch, "pipe");
    let writer = std::thread::spawn({
        let (path, content) = (path.clone(), content.clone());
        move || fs::write(path, content).expect("somebody reads")
    });
    scratch.good(["put", "v", "pipe", "/from-pipe"]);
    writer.join().expect("all was read");
    scratch.good(["get", "v", "/from-pipe", "back"]);
    assert!(fs::read(scratch.path("back")).expect("it is there") == content);
    if !cfg!(target_os = "linux") {
        return eprintln!("skipped: there is no /proc");
    }
    // Files of the kernel report a length of zero.
    scratch.good(["put", "v", "/proc/version", "/version"]);
    let version = fs::read_to_string("/proc/version").expect("it is there");
    assert_eq!(scratch.good(["cat", "v", "/version"]), version);
    scratch.good(["put", "-r", "v", "/proc/sys/kernel/random", "/random"]);
    let size = fs::read_to_string("/proc/sys/kernel/random/poolsize").expect("it is there");
    assert_eq!(scratch.good(["cat", "v", "/random/poolsize"]), size);
    let summary = json(&scratch.good(["put", "--json", "v", "/proc/version", "/again2"]));
    assert_eq!(summary["bytes"], version.len());
}

/// A shell puts the output of a program in the place of a file.
#[test]
#[ignore = "system: bash, if it is installed"]
fn what_a_program_says_is_read_to_its_end() {
    let scratch = Scratch::with_volume();
    let shell = format!(
        "{0} put v <(printf 'said by a program') /said && {0} put -r v <(printf again) /again",
        env!("CARGO_BIN_EXE_oblivio")
    );
    let mut substituted = scratch.command::<&str>([]);
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", &shell]).current_dir(scratch.path(""));
    for (name, value) in substituted.stdin(std::process::Stdio::null()).get_envs() {
        value.map(|value| bash.env(name, value));
    }
    match bash.output() {
        Ok(output) => {
            succeeded(output);
            assert_eq!(scratch.good(["cat", "v", "/said"]), "said by a program");
            assert_eq!(scratch.good(["cat", "v", "/again"]), "again");
        }
        Err(_) => eprintln!("skipped: there is no bash"),
    }
}

/// Anything not stored, or not brought back, is named, and the exit code shows it.
#[test]
fn nothing_is_left_out_in_silence() {
    let scratch = Scratch::with_volume();
    scratch.write("tree/a", "a");
    scratch.write("tree/z", "z");
    fifo(&scratch, "tree/pipe");
    let _socket = std::os::unix::net::UnixListener::bind(scratch.path("tree/socket"));
    let error = scratch.bad(10, ["put", "-r", "v", "tree", "/"]);
    assert!(error.contains("tree/pipe: a pipe, not stored"), "{error}");
    assert!(error.contains("tree/socket: a socket, not stored"), "{error}");
    assert_eq!(scratch.good(["cat", "v", "/tree/a", "/tree/z"]), "az", "the rest is");
    // By itself, too.
    let error = scratch.bad(10, ["put", "-r", "v", "tree/pipe", "/"]);
    assert!(error.contains("a pipe, not stored"), "{error}");
    let error = scratch.bad(10, ["put", "v", "tree/socket", "/"]);
    assert!(error.contains("a socket, not stored"), "{error}");
    // A mount can store them.
    add_special_files(&scratch.path("v"));
    let error = scratch.bad(10, ["get", "-r", "v", "/tree", "out"]);
    assert!(error.contains("out/fifo: a fifo, not brought back"), "{error}");
    assert!(error.contains("out/device: a character device, not brought back"), "{error}");
    assert_eq!(fs::read(scratch.path("out/z")).expect("the rest is"), b"z");
    assert!(!scratch.path("out/fifo").exists());
}

/// Adds a pipe and a device to `/tree` of a volume, as a program on a mount does.
fn add_special_files(volume: &Path) {
    use oblivio_volume::fs::{FileKind, FileSystem, NewNode, ROOT_INO};
    let store = std::sync::Arc::new(oblivio_store::LocalStore::open(volume).expect("the folder"));
    let secret = oblivio_crypto::Passphrase::new("secret");
    let opened = oblivio_volume::Volume::open(store, &secret, Default::default());
    let fs = FileSystem::open(Box::new(opened.expect("it opens"))).expect("it holds files");
    let tree = fs.lookup(ROOT_INO, b"tree").expect("it is there").ino;
    for (name, kind) in [(&b"fifo"[..], FileKind::Fifo), (b"device", FileKind::CharDevice)] {
        fs.mknod(tree, name, kind, 0, NewNode::default()).expect("there is room");
    }
    fs.into_blocks().expect("a good end");
}
