//! Programs under QEMU with the plugin inside. Without `qemu-x86_64` these tests say that they are
//! skipped.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use oblivio_tracer::caches::Kind;
use oblivio_tracer::record::{Header, Reader, Record};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The folder of what was built: this file is in its `deps`.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned()
}

/// The plugin. Cargo leaves it in one of two places.
fn plugin() -> PathBuf {
    let name = "liboblivio_tracer.so";
    let places = [built().join("deps").join(name), built().join(name)];
    places.into_iter().find(|path| path.is_file()).expect("the plugin was built")
}

fn has_qemu() -> bool {
    let there = Command::new("qemu-x86_64").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !there {
        eprintln!("skipped: qemu-x86_64 is missing (apt install qemu-user)");
    }
    there
}

/// Runs a program with these options of the plugin.
fn traced(folder: &Path, name: &str, options: &str, program: &Path, arguments: &[&str]) -> Output {
    let about = folder.join(format!("{name}.about"));
    std::fs::write(&about, "p\nq\nr\n").unwrap();
    let out = folder.join(name);
    let (plugin, out, about) = (plugin(), out.display().to_string(), about.display().to_string());
    let plugin = format!("{},out={out},about={about}{options}", plugin.display());
    let mut command = Command::new("setarch");
    command.args(["-R", "qemu-x86_64", "-seed", "1", "-plugin", &plugin]).arg(program);
    command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin").output().unwrap()
}

fn read(path: &Path) -> (Header, Vec<Record>) {
    let bytes = std::fs::read(path).unwrap();
    let reader = Reader::new(&bytes[..]).unwrap();
    (reader.header().clone(), reader.map(Result::unwrap).collect())
}

#[test]
fn two_traces_of_a_program_are_equal() {
    if !has_qemu() {
        return;
    }
    let folder = scratch("equal");
    let program = built().join("examples/astar");
    for name in ["one", "two"] {
        let options = ",skip=1000000,measure=2000000";
        let output = traced(&folder, name, options, &program, &["300", "9"]);
        assert!(output.status.success(), "{output:?}");
    }
    let (header, records) = read(&folder.join("one"));
    assert!(
        std::fs::read(folder.join("one")).unwrap() == std::fs::read(folder.join("two")).unwrap()
    );
    let within = |number: u64, wanted: u64| (wanted..wanted + 512).contains(&number);
    assert!(within(header.totals.skipped, 1_000_000), "{header:?}");
    assert!(within(header.totals.instructions, 2_000_000), "{header:?}");
    assert!(header.totals.cycles > header.totals.instructions);
    // The grid has 90,000 fields of 16 bytes, and is written from one end to the other.
    assert!(records.len() > 1000, "{}", records.len());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_program_is_traced_to_its_end() {
    if !has_qemu() {
        return;
    }
    let folder = scratch("end");
    let output = traced(&folder, "t", "", &built().join("examples/astar"), &["40", "3"]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("steps"), "it ran as always");
    let (header, _) = read(&folder.join("t"));
    assert!(header.totals.skipped == 0 && header.totals.instructions > 100_000);
    std::fs::remove_dir_all(folder).unwrap();
}

/// A table of 4 MiB is filled once and read eight times.
#[test]
fn loads_are_no_stores() {
    if !has_qemu() {
        return;
    }
    const LINES: usize = 1 << 16;
    let folder = scratch("strides");
    let program = built().join("examples/strides");
    let output = traced(&folder, "t", "", &program, &[&LINES.to_string(), "8"]);
    assert!(output.status.success(), "{output:?}");
    let (_, records) = read(&folder.join("t"));
    let count = |kind| records.iter().filter(|it| it.kind == kind).count();
    // What starts and ends a program asks for some hundred lines besides.
    let near = |number: usize, wanted: usize| (wanted..wanted + 4000).contains(&number);
    assert!(near(count(Kind::Load), 8 * LINES), "{}", count(Kind::Load));
    assert!(near(count(Kind::Store), LINES), "{}", count(Kind::Store));
    assert!(near(count(Kind::Eviction), LINES), "{}", count(Kind::Eviction));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_one_core_cannot_run_is_refused() {
    if !has_qemu() {
        return;
    }
    let folder = scratch("refused");
    let tests = std::env::current_exe().unwrap();
    let cases: [(&str, &Path, &[&str]); 3] = [
        // A test is run by a thread.
        ("starts a thread", &tests, &["nothing_here", "--include-ignored", "--test-threads", "2"]),
        ("starts a child", Path::new("/bin/sh"), &["-c", "/bin/true; /bin/true"]),
        ("becomes another program", Path::new("/usr/bin/env"), &["true"]),
    ];
    for (what, program, arguments) in cases {
        let output = traced(&folder, "t", "", program, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(what), "{what}: {said}");
        assert_eq!(output.status.code(), Some(121));
        assert!(Reader::new(&std::fs::read(folder.join("t")).unwrap()[..]).is_err());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn options_that_are_not_known_stop_it() {
    if !has_qemu() {
        return;
    }
    let folder = scratch("options");
    let output = traced(&folder, "t", ",colour=red", Path::new("/bin/true"), &[]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("colour=red: not known"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// For [`what_one_core_cannot_run_is_refused`], which runs this file once more.
#[test]
#[ignore = "it does nothing"]
fn nothing_here() {}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
