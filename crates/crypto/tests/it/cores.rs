//! A core dump shows no keys.
//!
//! The test starts itself once more, as a process that holds a secret and then aborts.

use oblivio_crypto::Secret;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// Set in the process that aborts.
const CHILD: &str = "OBLIVIO_CORE_SEED";
const BYTES: usize = 32;

fn byte(seed: u8, at: usize) -> u8 {
    (at as u8).wrapping_mul(167).wrapping_add(seed) ^ 0x5a
}

#[test]
#[ignore = "system: aborts a process for its core dump"]
fn a_core_has_no_key_pages() {
    if let Some(seed) = std::env::var_os(CHILD) {
        hold_and_abort(seed.to_str().and_then(|seed| seed.parse().ok()).expect("a number"));
    }
    let dir = tempfile::tempdir().expect("a folder");
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if !cfg!(target_os = "linux") || pattern.starts_with('|') || pattern.contains('/') {
        return eprintln!("skipped: core dumps go elsewhere ({})", pattern.trim());
    }
    let seed = std::process::id() as u8;
    let ended = Command::new("sh")
        .args([
            "-c",
            "ulimit -c unlimited; exec \"$0\" a_core_has_no_key_pages --ignored --nocapture",
        ])
        .arg(std::env::current_exe().expect("this program"))
        .env(CHILD, seed.to_string())
        .current_dir(dir.path())
        .output()
        .expect("it runs");
    if !ended.status.core_dumped() {
        return eprintln!("skipped: there is no core dump ({:?})", ended.status);
    }
    let core = core_in(dir.path());
    let holds = |seed| {
        let wanted: Vec<u8> = (0..BYTES).map(|at| byte(seed, at)).collect();
        core.windows(BYTES).any(|found| found == wanted)
    };
    assert!(holds(seed.wrapping_add(1)), "the core shows other memory");
    assert!(!holds(seed), "the core shows the secret");
}

fn hold_and_abort(seed: u8) {
    let secret = Secret::<BYTES>::new(|bytes| {
        bytes.iter_mut().enumerate().for_each(|(at, to)| *to = byte(seed, at));
    });
    let other: Vec<u8> = (0..BYTES).map(|at| byte(seed.wrapping_add(1), at)).collect();
    std::hint::black_box((&secret, &other));
    std::process::abort();
}

fn core_in(dir: &Path) -> Vec<u8> {
    let files = dir.read_dir().expect("a folder").flatten();
    let core = files.map(|file| file.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("core"))
    });
    std::fs::read(core.expect("a core in the working directory")).expect("it can be read")
}
