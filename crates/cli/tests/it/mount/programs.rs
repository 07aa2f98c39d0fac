//! Popular programs, where they are installed.

use crate::common::noise;
use crate::mount::{Rig, lane_rig, rig};
use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread;

/// Runs a shell script in the mount; `None`, with a printed reason, when a program is missing.
fn shell(rig: &Rig, needs: &[&str], script: &str) -> Option<String> {
    for program in needs {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        if !found.is_ok_and(|found| found.status.success()) {
            eprintln!("skipped: there is no {program}");
            return None;
        }
    }
    let output = in_mount(rig, script);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}");
    Some(String::from_utf8(output.stdout).expect("text"))
}

fn in_mount(rig: &Rig, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-e", "-c", script]).current_dir(rig.path(".")).stdin(Stdio::null());
    // The user's own settings must not change what git does.
    command.env("HOME", rig.scratch.path("home")).env_remove("GIT_DIR");
    rig.while_used(|| command.output()).expect("a shell")
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn git_clones_and_finds_nothing_wrong() {
    if let Some(rig) = rig() {
        git_clones(&rig);
    }
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn git_clones_in_a_lane() {
    if let Some(rig) = lane_rig("64M") {
        git_clones(&rig);
    }
}

fn git_clones(rig: &Rig) {
    rig.mount(&[]);
    let script = "
        export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
        git init -q one && cd one
        for turn in 1 2 3 4 5; do
            mkdir -p dir$turn
            for file in 1 2 3 4 5 6 7 8; do
                seq $turn $((turn * file * 100)) > dir$turn/file$file
            done
            git add -A && git commit -q -m $turn
        done
        cd .. && git clone -q --no-hardlinks one two
        cd two && git gc -q && git fsck --full && git status --short && git rev-list --count HEAD";
    let Some(said) = shell(rig, &["git", "seq"], script) else { return };
    assert_eq!(said.trim(), "5");
    rig.umount();
    rig.mount(&[]);
    let said = shell(rig, &["git"], "cd two && git fsck --full && git status --short");
    assert_eq!(said.as_deref().map(str::trim), Some(""));
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_database_is_whole_after_many_writers() {
    if let Some(rig) = rig() {
        writers_of_a_database(&rig, 10);
    }
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_database_in_a_lane_is_whole_after_many_writers() {
    if let Some(rig) = lane_rig("64M") {
        writers_of_a_database(&rig, 3);
    }
}

fn writers_of_a_database(rig: &Rig, turns: usize) {
    rig.mount(&[]);
    for mode in ["delete", "truncate", "persist", "wal"] {
        let make = format!(
            "sqlite3 {mode}.db 'pragma journal_mode={mode};
             create table t(id integer primary key, who int, x blob); create index i on t(x);'"
        );
        if shell(rig, &["sqlite3"], &make).is_none() {
            return;
        }
        let writer = |who: u32| {
            let turn = format!(
                "begin immediate; insert into t(who, x) with recursive n(i) as
                     (select 1 union all select i + 1 from n where i < 40)
                     select {who}, randomblob(300) from n;
                 update t set x = randomblob(500) where id % 7 = {who}; commit;"
            );
            let all = turn.repeat(turns);
            let script = format!("sqlite3 -cmd '.timeout 60000' {mode}.db '{all}'");
            let output = in_mount(rig, &script);
            assert!(output.status.success(), "{mode}: {output:?}");
        };
        thread::scope(|scope| (1..4).for_each(|who| drop(scope.spawn(move || writer(who)))));
        let count = format!("ok\n{}\n", 3 * 40 * turns);
        let check = format!("sqlite3 {mode}.db 'pragma integrity_check; select count(*) from t'");
        assert_eq!(shell(rig, &[], &check).as_deref(), Some(count.as_str()), "{mode}");
    }
    rig.umount();
    rig.mount(&[]);
    let check = "for db in *.db; do sqlite3 $db 'pragma integrity_check'; done";
    assert_eq!(shell(rig, &[], check).as_deref(), Some("ok\nok\nok\nok\n"));
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn an_archive_is_unpacked_and_the_same() {
    let Some(rig) = rig() else { return };
    rig.mount(&["--trace-out", "unpack.jsonl"]);
    if !unpacks(&rig, 100) {
        return;
    }
    let trace = fs::read_to_string(rig.scratch.path("unpack.jsonl")).expect("recorded");
    let requests = trace.lines().count();
    assert!((1..20_000).contains(&requests), "{requests} requests to the store for 2000 files");
    archive_is_whole(&rig);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn an_archive_is_unpacked_in_a_lane_and_the_same() {
    let Some(rig) = lane_rig("64M") else { return };
    rig.mount(&[]);
    if unpacks(&rig, 30) {
        archive_is_whole(&rig);
    }
}

/// Packs 20 directories with this many files each, and unpacks them in the mount; whether the
/// programs are there.
fn unpacks(rig: &Rig, files: usize) -> bool {
    let from = rig.scratch.path("tree");
    for dir in 0..20 {
        fs::create_dir_all(from.join(dir.to_string())).expect("a directory");
        for file in 0..files {
            let data = noise(1 + (dir * 997 + file * 131) % 9000, (dir * 100 + file) as u64);
            fs::write(from.join(format!("{dir}/{file}")), data).expect("written");
        }
    }
    let (tree, archive) = (from.display(), rig.scratch.path("tree.tar"));
    let pack = format!("tar -C {tree} -cf {} .", archive.display());
    if shell(rig, &["tar", "diff"], &pack).is_none() {
        return false;
    }
    shell(rig, &[], &format!("mkdir tree && tar -C tree -xf {}", archive.display())).is_some()
}

fn archive_is_whole(rig: &Rig) {
    let tree = rig.scratch.path("tree");
    let same = format!("diff -r {} tree", tree.display());
    shell(rig, &[], &same);
    rig.umount();
    rig.mount(&[]);
    shell(rig, &[], &format!("{same} && cp -a tree copy && diff -r tree copy"));
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn many_move_and_remove_at_once() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    fs::create_dir(rig.path("shared")).expect("a directory");
    let worker = |who: u32| {
        let script = format!(
            "mkdir {who} && cd {who}
             for turn in 1 2 3 4 5 6 7 8; do
                 mkdir a && for f in 1 2 3 4 5 6 7 8 9; do echo {who} $turn $f > a/$f; done
                 cp -r a b && mv b ../shared/{who}-$turn && mv a c && mkdir a && mv c a/c
                 cp ../shared/{who}-$turn/* a && rm -r a
                 ls -lR ../shared > /dev/null 2>&1 || true
             done"
        );
        let output = in_mount(&rig, &script);
        assert!(output.status.success(), "{output:?}");
    };
    thread::scope(|scope| (0..4).for_each(|who| drop(scope.spawn(move || worker(who)))));
    let count = shell(&rig, &["find"], "find shared -type f | wc -l").unwrap_or_default();
    assert_eq!(count.trim(), "288");
    rig.umount();
    rig.scratch.good(["check", "v"]);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn what_fio_writes_it_reads_again() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let script = "fio --name=v --directory=. --rw=randrw --bs=4k-64k --size=4m --numjobs=3 \
                  --fsync=32 --verify=crc32c --do_verify=1 --verify_fatal=1 --minimal";
    shell(&rig, &["fio"], script);
}
