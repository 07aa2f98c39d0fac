//! Third-party clients: libnbd's tools and qemu's.

use super::{ONE_FILE, Rig, SNAPSHOTS, TREE, good, run};
use crate::common;
use std::fs;

/// An image with holes: noise, nothing, noise.
fn image(len: usize) -> Vec<u8> {
    let mut image = common::noise(len, 5);
    image[len / 3..len / 2].fill(0);
    image
}

#[test]
#[ignore = "system: starts a server"]
fn images_go_in_and_out() {
    let Some(mut rig) = Rig::with("24M", &["nbdcopy", "nbdinfo"]) else { return };
    rig.serve(&[]);
    let (path, uri) = (rig.scratch.write("image", image(24 << 20)), rig.uri());
    let (path, back) = (path.to_str().expect("text"), rig.scratch.path("back"));
    let back = back.to_str().expect("text");
    good("nbdcopy", &["--flush", "--destination-is-zero", path, &uri]);
    good("nbdcopy", &[&uri, back]);
    assert!(fs::read(path).expect("it") == fs::read(back).expect("it"), "four connections");
    // Plain requests of the oldest clients, one at a time and many.
    for options in [&["--synchronous", "--connections=1"][..], &["--requests=64", "--no-extents"]] {
        fs::remove_file(back).expect("it");
        good("nbdcopy", &[options, &[&uri, back]].concat());
        assert!(fs::read(path).expect("it") == fs::read(back).expect("it"), "{options:?}");
    }
    let told = common::json(&good("nbdinfo", &["--json", &uri]));
    let export = &told["exports"][0];
    assert_eq!(export["export-size"], 24 << 20);
    assert_eq!(export["can_multi_conn"], true);
    assert_eq!(export["is_read_only"], false);
    assert_eq!(export["block_size_maximum"], 32 << 20);
    let map = common::json(&good("nbdinfo", &["--map", "--json", &uri]));
    let holes = map.as_array().expect("a list").iter().filter(|extent| extent["type"] == 3);
    let bytes: u64 = holes.map(|extent| extent["length"].as_u64().expect("a number")).sum();
    assert_eq!(bytes, 4 << 20, "what was zero takes no space");
    assert_eq!(rig.end(), Some(0));
    let told = common::json(&rig.scratch.good(["info", "--json", "d"]));
    assert_eq!(told["disk_bytes"], 24 << 20);
    assert_eq!(told["used_bytes"], 20 << 20);
    assert!(rig.scratch.good(["check", "d"]).starts_with("clean: "));
}

#[test]
#[ignore = "system: starts a server"]
fn qemu_writes_zeroes_discards_and_compares() {
    for how in [TREE, SNAPSHOTS, ONE_FILE] {
        zeroes_and_discards(how);
    }
}

fn zeroes_and_discards(how: &[&str]) {
    let Some(mut rig) = Rig::with_disk(how, "16M", &["qemu-io", "qemu-img"]) else { return };
    rig.serve(&[]);
    let uri = rig.uri();
    let io = |commands: &[&str]| {
        let mut args = vec!["-f", "raw"];
        commands.iter().for_each(|command| args.extend(["-c", command]));
        args.push(&uri);
        let said = run("qemu-io", &args);
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success() && !text.contains("failed"), "{commands:?}: {text}");
    };
    io(&["write -P 1 0 1M", "write -f -P 2 1000 3000", "read -P 1 0 1000", "read -P 2 1000 3000"]);
    io(&["read -P 1 4000 1044576", "read -P 0 1M 15M"]);
    io(&["write -z 5000 100000", "read -P 0 5000 100000", "read -P 1 105000 1000"]);
    io(&["write -z -u 128k 128k", "read -P 0 128k 128k", "read -P 1 256k 64k"]);
    // Zeros cost as much as data where all writes look the same: then none are fast.
    let fast = if how == TREE { "write -z -u -n 512k 64k" } else { "write -z -u 512k 64k" };
    io(&[fast, "read -P 0 512k 64k", "flush"]);
    let refused = run("qemu-io", &["-f", "raw", "-c", "write -z -u -n 512k 64k", &uri]);
    let said = String::from_utf8_lossy(&refused.stdout);
    assert_eq!(said.contains("not supported"), how != TREE, "{said}");
    io(&["discard 256k 256k", "read -P 0 256k 256k", "read -P 1 600k 64k"]);
    // Many at once, in any order.
    let many: Vec<String> =
        (0..32).map(|at| format!("aio_write -P {} {}k 5k", at + 1, 2048 + at * 5)).collect();
    let mut commands: Vec<&str> = many.iter().map(String::as_str).collect();
    commands.extend(["aio_flush", "read -P 32 2203k 5k", "read -P 1 2048k 5k"]);
    io(&commands);
    let map = common::json(&good("qemu-img", &["map", "--output=json", "-f", "raw", &uri]));
    let hole = |at: u64| {
        let extents = map.as_array().expect("a list");
        let holds = |extent: &&serde_json::Value| {
            let start = extent["start"].as_u64().expect("a number");
            start <= at && at < start + extent["length"].as_u64().expect("a number")
        };
        extents.iter().find(holds).expect("all of it is told")["zero"] == true
    };
    assert!(!hole(0) && !hole(600 << 10));
    // On the sequential engine a freed block counts as written.
    assert!(how != TREE || (hole(200 << 10) && hole(300 << 10) && hole(8 << 20)));
    let copy = rig.scratch.path("copy");
    let copy = copy.to_str().expect("text");
    good("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", &uri, copy]);
    good("qemu-img", &["compare", "-f", "qcow2", "-F", "raw", copy, &uri]);
    // And back, over the existing data.
    io(&["write -P 9 3M 1M"]);
    good("qemu-img", &["convert", "-n", "-f", "qcow2", "-O", "raw", copy, &uri]);
    good("qemu-img", &["compare", "-f", "qcow2", "-F", "raw", copy, &uri]);
    assert_eq!(rig.end(), Some(0));
}

#[test]
#[ignore = "system: starts a server"]
fn a_disk_that_is_only_to_be_read_says_so() {
    let Some(mut rig) = Rig::with("1M", &["qemu-io", "nbdinfo"]) else { return };
    rig.serve(&["--read-only"]);
    let uri = rig.uri();
    let told = common::json(&good("nbdinfo", &["--json", &uri]));
    assert_eq!(told["exports"][0]["is_read_only"], true);
    assert!(!run("qemu-io", &["-f", "raw", "-c", "write 0 1k", &uri]).status.success());
    assert!(run("qemu-io", &["-r", "-f", "raw", "-c", "read -P 0 0 1M", &uri]).status.success());
    assert_eq!(rig.end(), Some(0));
}
