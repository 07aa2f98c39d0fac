//! The suite pjdfstest on mounts of one volume: `just share-pjdfstest DIR`. It needs root, and the
//! suite, built.

use super::team::{Team, may_mount};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const DEVICES: [&str; 2] = ["anna", "ben"];
/// Other users may enter, and what the suite does as root counts.
const OPTIONS: [&str; 3] = ["--allow-other", "-o", "suid,dev"];
/// Lists and looks at everything until the end.
const LOOK: &str = r#"
times=0
while [ ! -e "$2" ]; do
    ls -lR "$1" >/dev/null 2>&1
    times=$((times + 1))
done
echo "$times""#;

/// All files of the suite, in order.
fn files_of(suite: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![suite.join("tests")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).expect("the suite") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "t") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn prove(dir: &Path, files: &[PathBuf]) -> Child {
    let mut prove = Command::new("prove");
    prove.arg("-Q").args(files).current_dir(dir).stdin(Stdio::null());
    prove.spawn().expect("prove, which is of Perl")
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn pjdfstest_passes_beside_another_mount() {
    let Some(suite) = std::env::var_os("OBLIVIO_PJDFSTEST").map(PathBuf::from) else {
        return eprintln!("pjdfstest_passes_beside_another_mount: skipped, no OBLIVIO_PJDFSTEST");
    };
    assert!(may_mount(), "somebody asked for it");
    let files = files_of(&suite);
    assert!(files.len() > 200, "{} has few tests", suite.display());
    let mut team = Team::of(&DEVICES, "256M");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(team.scratch.path(""), open).expect("the scratch folder");
    let dirs = DEVICES.map(|device| team.mount(device, &OPTIONS));

    // All of it on one mount, while the other one looks on.
    let ended = team.scratch.path("ended");
    let mut look = Command::new("sh");
    look.args(["-c", LOOK, "sh"]).args([&dirs[1], &ended]).stdout(Stdio::piped());
    let look = look.spawn().expect("a shell");
    let passed = prove(&dirs[0], &files).wait().expect("it ends").success();
    fs::write(&ended, b"").expect("written");
    let looked = look.wait_with_output().expect("it ends");
    let looked = String::from_utf8_lossy(&looked.stdout).trim().to_owned();
    eprintln!("the other mount listed everything {looked} times");

    // A half of it on each, at the same time.
    let halves = [0, 1].map(|half| files.iter().skip(half).step_by(2).cloned().collect::<Vec<_>>());
    let both: Vec<Child> = dirs.iter().zip(&halves).map(|(dir, half)| prove(dir, half)).collect();
    let both = both.into_iter().map(|mut half| half.wait().expect("it ends").success());
    let both: Vec<bool> = both.collect();
    assert!(team.umount(0) && team.umount(0));
    let checked = team.scratch.good(["check", &team.at()]);
    eprintln!("{checked}");
    assert!(passed, "on one mount, beside another one");
    assert_eq!(both, [true, true], "on two at once");
}
