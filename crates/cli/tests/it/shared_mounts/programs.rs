//! Popular programs on two mounts at the same time, where they are installed.

use super::team::{Team, may_mount};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const DEVICES: [&str; 2] = ["anna", "ben"];

/// Two mounts; none, with a printed reason, where they or a program are missing.
fn two_mounts(needs: &[&str]) -> Option<(Team, [PathBuf; 2])> {
    if !may_mount() {
        return None;
    }
    for program in needs {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        if !found.is_ok_and(|found| found.status.success()) {
            eprintln!("skipped: there is no {program}");
            return None;
        }
    }
    let mut team = Team::of(&DEVICES, "64M");
    let dirs = DEVICES.map(|device| team.mount(device, &[]));
    Some((team, dirs))
}

/// Starts a script in a mount, with the name of its device as the first argument.
fn start(team: &Team, dir: &Path, device: &str, script: &str) -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", script, "sh", device]).current_dir(dir).stdin(Stdio::null());
    // The user's own settings must not change what git does.
    shell.env("HOME", team.scratch.path("home")).env_remove("GIT_DIR");
    // Samples of hooks are most of the files of a new repository.
    shell.env("GIT_TEMPLATE_DIR", "");
    for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
        shell.env(name, device);
    }
    for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
        shell.env(name, format!("{device}@example.org"));
    }
    shell.stdout(Stdio::piped()).spawn().expect("a shell")
}

/// Runs a script in one mount after the other, or in both at the same time; what each printed.
fn run(team: &Team, dirs: &[PathBuf; 2], at_once: bool, script: &str) -> [String; 2] {
    let end = |shell: Child| {
        let output = shell.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{script}: {:?}", output.status);
        String::from_utf8(output.stdout).expect("text")
    };
    let start = |at: usize| start(team, &dirs[at], DEVICES[at], script);
    if at_once { [start(0), start(1)].map(end) } else { [0, 1].map(|at| end(start(at))) }
}

fn end(mut team: Team) {
    assert!(team.umount(0) && team.umount(0));
    let checked = team.scratch.good(["check", &team.at()]);
    assert!(!checked.contains("rest"), "{checked}");
}

/// A name of the other mount may be seen some seconds late: then a try fails, and a later one does
/// not.
const AGAIN: &str = "
    again() {
        tries=0
        until \"$@\"; do
            tries=$((tries + 1))
            [ $tries -lt 30 ] || exit 1
            sleep 0.5
        done
    }
    ";

#[test]
#[ignore = "system: mounts through FUSE"]
fn git_works_on_two_mounts_at_once() {
    let Some((team, dirs)) = two_mounts(&["git", "seq"]) else { return };
    let begin = "
        if [ $1 = anna ]; then git init -q --bare -b main origin.git; fi
        again git clone -q origin.git $1-tree
        cd $1-tree
        seq 1 1000 > from-$1
        git add . && git commit -q -m \"hello from $1\"
        git push -q origin HEAD:refs/heads/main";
    run(&team, &dirs, false, &format!("{AGAIN}{begin}"));
    // Each has a branch of its own, and both push to one.
    let work = "
        cd $1-tree
        push() {
            git push -q origin HEAD:refs/heads/main +HEAD:refs/heads/$1 && return
            git pull -q --rebase origin main || git rebase --abort || true
            return 1
        }
        mkdir $1-dir
        for file in 1 2; do seq $file 1000 > $1-dir/$file; done
        git add . && git commit -q -m \"more of $1\"
        again push $1";
    run(&team, &dirs, true, &format!("{AGAIN}{work}"));
    let last = "
        cd $1-tree
        again git pull -q --rebase origin main
        git fsck --full --strict
        git status --short
        git -C ../origin.git fsck --full --strict
        git rev-parse HEAD
        git rev-list --count HEAD
        cat */* from-anna from-ben | cksum";
    let said = run(&team, &dirs, false, &format!("{AGAIN}{last}"));
    assert_eq!(said[0], said[1]);
    assert!(said[0].contains("\n4\n"), "one commit, and one more, of each: {}", said[0]);
    end(team);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_database_counts_right_on_two_mounts_at_once() {
    let Some((team, dirs)) = two_mounts(&["sqlite3"]) else { return };
    let begin = "
        if [ $1 = ben ]; then again test -f counts; exit; fi
        sqlite3 counts 'create table c(n); create table t(who, n); insert into c values (0);'";
    run(&team, &dirs, false, &format!("{AGAIN}{begin}"));
    // Each opens the database before it gets the lock.
    let count = "
        for turn in 1 2 3 4 5 6 7 8; do
            sqlite3 -cmd '.timeout 60000' counts \"begin immediate;
                update c set n = n + 1; insert into t values ('$1', $turn); commit;\"
        done";
    run(&team, &dirs, true, count);
    let said = "sqlite3 counts 'pragma integrity_check; select n from c; select count(*) from t;'";
    assert_eq!(run(&team, &dirs, false, said), ["ok\n16\n16\n", "ok\n16\n16\n"]);
    end(team);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn make_builds_on_two_mounts_at_once() {
    let Some((team, dirs)) = two_mounts(&["make", "cc"]) else { return };
    // Anna writes the sources, and both build them.
    let sources = "
        if [ $1 = ben ]; then exit; fi
        mkdir project && cd project
        for part in 1 2 3 4 5 6 7 8; do
            echo \"int part$part(int x) { return x * $part; }\" > part$part.c
            echo \"int part$part(int x);\" >> parts.h
        done
        {
            echo '#include <stdio.h>'
            echo '#include \"parts.h\"'
            echo 'int main(void) {'
            echo 'int sum = 0;'
            for part in 1 2 3 4 5 6 7 8; do echo \"sum += part$part(10);\"; done
            printf '%s\\n' 'printf(\"%d\\n\", sum); return 0; }'
        } > main.c
        {
            echo 'OBJECTS = $(patsubst %.c,$(OUT)/%.o,$(wildcard *.c))'
            echo '$(OUT)/sum: $(OBJECTS)'
            printf '\\t$(CC) -o $@ $^\\n'
            echo '$(OUT)/%.o: %.c parts.h'
            printf '\\t@mkdir -p $(OUT)\\n\\t$(CC) -c -o $@ $<\\n'
        } > Makefile";
    run(&team, &dirs, false, sources);
    let build = "
        again test -f project/Makefile
        cd project
        make -s -j2 OUT=out-$1
        out-$1/sum";
    let said = run(&team, &dirs, true, &format!("{AGAIN}{build}"));
    assert_eq!(said, ["360\n", "360\n"]);
    // What one mount made, the other one need not make.
    let other = "
        other=out-anna
        [ $1 = ben ] || other=out-ben
        cd project
        again make -q OUT=$other
        $other/sum
        if [ $1 = ben ]; then
            touch part3.c
            make -j2 OUT=$other | wc -l
        fi";
    let said = run(&team, &dirs, false, &format!("{AGAIN}{other}"));
    assert_eq!(said, ["360\n", "360\n2\n"]);
    end(team);
}
