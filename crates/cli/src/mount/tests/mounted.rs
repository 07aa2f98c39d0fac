//! A real mount over a store that stalls; skipped where nothing can be mounted.

use super::*;
use crate::mount::attach;
use crate::mount::session::{Mounted, Options, serve};
use crate::mount::stop;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

struct Stalling {
    gate: Gate,
    dir: PathBuf,
    mounted: Mounted,
    _parent: tempfile::TempDir,
}

fn stalling() -> Option<Stalling> {
    let parent = tempfile::tempdir().expect("a folder");
    let dir = parent.path().join("m");
    fs::create_dir(&dir).expect("a directory");
    let gate = Gate::default();
    let inner = MemoryBlocks::new(4096, 1 << 16, 4 << 20).boxed();
    let space = Blocks { inner, gate: gate.clone(), counts: Arc::default() };
    let fs = FileSystem::format(Box::new(space)).expect("an empty file system");
    let options = Options { timeout: Duration::from_secs(1), ..Options::default() };
    match serve(fs, &dir, options) {
        Ok(mounted) => Some(Stalling { gate, dir, mounted, _parent: parent }),
        Err(error) => {
            eprintln!("skipped: {error:#}");
            None
        }
    }
}

#[test]
fn a_stalled_mount_gives_errors_and_comes_back() {
    let Some(rig) = stalling() else { return };
    let mut file = fs::File::create(rig.dir.join("f")).expect("made");
    rig.gate.shut(true);
    file.write_all(b"first").expect("into the kernel's cache");
    assert_eq!(file.sync_all().expect_err("stalled").raw_os_error(), Some(EIO));
    rig.gate.shut(false);
    file.write_all(b" second").expect("written");
    // The kernel tells of a write that failed once, to each who has the file open.
    let _ = file.sync_all();
    file.sync_all().expect("the store is back");
    fs::write(rig.dir.join("g"), "new").expect("written");
    assert_eq!(fs::read(rig.dir.join("g")).expect("read"), b"new");
    drop(file);
    attach::detach(&rig.dir, false).expect("unmounted");
    rig.mounted.wait().expect("a last commit");
}

#[test]
fn a_stalled_mount_can_be_ended() {
    let Some(rig) = stalling() else { return };
    fs::write(rig.dir.join("f"), "never committed").expect("written");
    rig.gate.shut(true);
    let dir = rig.dir.clone();
    let begun = Instant::now();
    let (tell, ended) = channel();
    // Two signals, without sending any to the process of the tests.
    thread::spawn(move || {
        let result = stop::until_signalled(rig.mounted, &dir, 2);
        let _ = tell.send(result.map_err(|error| error.to_string()));
    });
    let result = ended.recv_timeout(Duration::from_secs(30)).expect("it ends");
    assert!(result.expect_err("lost").contains("lost"));
    assert!(begun.elapsed() < Duration::from_secs(8));
    rig.gate.shut(false);
}
