//! What a sync client lost or changed: `check` names it, a computer that holds it puts it back, and
//! one that does not reads what is there.

use crate::common::{Scratch, failed, noise, succeeded};
use crate::sync_folder::{INIT, names, run, shared, sync};
use std::fs;
use std::path::Path;

/// Replaces a file by a new one, as a sync client does: other names of it stay what they are.
fn replace(path: &Path, bytes: &[u8]) {
    let new = path.with_file_name("~arriving");
    fs::write(&new, bytes).unwrap();
    fs::rename(&new, path).unwrap();
}

fn flipped(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 8;
    bytes
}

/// Two computers, of which only the first has opened the newest epoch; its files in the folder.
fn written() -> (Scratch, Vec<String>) {
    let scratch = shared();
    scratch.write("small", "a letter\n");
    succeeded(run(&scratch, "one", &["put", "-q", "one/v", "small", "/"]));
    let mut needed = names(&scratch.path("one/v"));
    let kept = scratch.path("one/state/oblivio/folders");
    let volume = kept.read_dir().unwrap().map(|it| it.unwrap().path());
    let mut volume = volume.filter(|path| path.join("base").exists());
    let kept = names(&volume.next().expect("its place"));
    needed.retain(|name| kept.contains(name) && name != "header");
    assert!(needed.iter().filter(|name| name.starts_with("x-")).count() > 3, "{needed:?}");
    (scratch, needed)
}

/// A computer that has nothing but a copy of the first one's folder.
fn newcomer(scratch: &Scratch, name: &str) {
    let folder = scratch.path(name).join("v");
    fs::create_dir_all(&folder).unwrap();
    for file in names(&scratch.path("one/v")) {
        fs::copy(scratch.path("one/v").join(&file), folder.join(&file)).unwrap();
    }
}

#[test]
fn a_check_names_what_the_folder_lost_and_puts_it_back() {
    let (scratch, needed) = written();
    for (at, name) in needed.iter().enumerate() {
        let path = scratch.path("one/v").join(name);
        let whole = fs::read(&path).unwrap();
        match at % 3 {
            0 => fs::remove_file(&path).unwrap(),
            1 => replace(&path, &flipped(&path)),
            _ => replace(&path, &whole[..whole.len() / 3]),
        }
        let said = failed(5, run(&scratch, "one", &["check", "one/v"]));
        assert!(said.contains(name) && said.contains("nothing is lost"), "{said}");
        let others = needed.iter().filter(|other| *other != name);
        assert!(others.into_iter().all(|other| !said.contains(other)), "{name}: {said}");
        assert_eq!(fs::read(&path).unwrap(), whole, "{name}");
    }
    assert!(succeeded(run(&scratch, "one", &["check", "one/v"])).starts_with("clean"));
    newcomer(&scratch, "three");
    assert!(succeeded(run(&scratch, "three", &["check", "three/v"])).starts_with("clean"));
    assert_eq!(succeeded(run(&scratch, "three", &["cat", "three/v", "/small"])), "a letter\n");
}

/// Any opening puts back what is gone: nobody need think of a check.
#[test]
fn an_opening_puts_back_what_is_gone() {
    let (scratch, needed) = written();
    let before = names(&scratch.path("one/v"));
    for name in &needed {
        fs::remove_file(scratch.path("one/v").join(name)).unwrap();
    }
    succeeded(run(&scratch, "one", &["ls", "one/v", "/"]));
    assert_eq!(names(&scratch.path("one/v")), before);
    newcomer(&scratch, "three");
    assert_eq!(succeeded(run(&scratch, "three", &["ls", "three/v", "/"])), "noise\nsmall\n");
}

/// A bit of the file itself: the writer's own copy is a second name of it. Another computer that
/// holds the file heals the folder, and then the writer heals its copy.
#[test]
fn a_bit_that_changes_in_place_is_healed_by_another_computer() {
    let (scratch, needed) = written();
    sync(&scratch);
    succeeded(run(&scratch, "two", &["ls", "two/v", "/"]));
    sync(&scratch);
    // Two of the disk: one alone would be made again from the others, and without the log no
    // opening gets far enough to name anything else.
    let number = |name: &&String| name.split('-').nth(2).map(str::to_owned);
    let mut extents: Vec<&String> = needed.iter().filter(|name| name.starts_with("x-")).collect();
    extents.sort_by_key(number);
    let extents = &extents[..2];
    let of = |computer: &str, name: &str| scratch.path(computer).join("v").join(name);
    let whole: Vec<Vec<u8>> = extents.iter().map(|it| fs::read(of("one", it)).unwrap()).collect();
    for name in extents {
        fs::write(of("one", name), flipped(&of("one", name))).unwrap();
    }
    let names_all = |said: &str| extents.iter().all(|name| said.contains(*name));
    let checked = run(&scratch, "one", &["check", "one/v"]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(names_all(&said), "{said}");
    let advice = failed(5, checked);
    assert!(advice.contains("2 damaged places") && !advice.contains("repair"), "{advice}");
    for name in extents {
        replace(&of("two", name), &fs::read(of("one", name)).unwrap());
    }
    let said = failed(5, run(&scratch, "two", &["check", "two/v"]));
    assert!(names_all(&said) && said.contains("nothing is lost"), "{said}");
    for (name, whole) in extents.iter().zip(&whole) {
        assert_eq!(fs::read(of("two", name)).unwrap(), *whole);
        replace(&of("one", name), whole);
    }
    let said = failed(5, run(&scratch, "one", &["check", "one/v"]));
    assert!(said.contains("beside the folder") && said.contains("nothing is lost"), "{said}");
    for computer in ["one", "two"] {
        let said = succeeded(run(&scratch, computer, &["check", &format!("{computer}/v")]));
        assert!(said.starts_with("clean"), "{said}");
    }
}

#[test]
fn who_holds_nothing_reads_what_is_there() {
    let scratch = Scratch::new();
    succeeded(run(&scratch, "one", &[&INIT[..], &["--size", "32M", "one/v"]].concat()));
    scratch.write("noise", noise(2_000_000, 1));
    succeeded(run(&scratch, "one", &["put", "-q", "one/v", "noise", "/"]));
    let all = names(&scratch.path("one/v"));
    let extents: Vec<&String> = all.iter().filter(|name| name.starts_with("x-")).collect();
    let (mut read, mut damaged, mut whole) = (0, 0, 0);
    for (at, pair) in extents.windows(2).enumerate() {
        let computer = format!("new{at}");
        newcomer(&scratch, &computer);
        let volume = format!("{computer}/v");
        for name in pair {
            fs::remove_file(scratch.path(&volume).join(name)).unwrap();
        }
        let before = names(&scratch.path(&volume));
        let listed = run(&scratch, &computer, &["ls", &volume, "/"]);
        if listed.status.success() {
            // One of the log and one of the rest.
            whole += 1;
            continue;
        }
        let (error, name) = (failed(14, listed), pair[0]);
        assert!(pair.iter().any(|name| error.contains(*name)), "{error}");
        assert!(error.contains("--incomplete"), "{error}");
        let refused = run(&scratch, &computer, &["mkdir", "--incomplete", &volume, "/new"]);
        failed(2, refused);
        let args = ["get", "-q", "--force", "--incomplete", &volume, "/noise", "back"];
        let got = run(&scratch, &computer, &args);
        if got.status.success() {
            assert_eq!(fs::read(scratch.path("back")).unwrap(), noise(2_000_000, 1), "{name}");
            fs::remove_file(scratch.path("back")).unwrap();
            read += 1;
        } else {
            // It is damaged, lost, or not known to be the newest.
            assert!(matches!(got.status.code(), Some(5 | 14 | 17)), "{got:?}");
            damaged += 1;
        }
        assert_eq!(names(&scratch.path(&volume)), before, "a look changes nothing");
    }
    assert!(read > 0 && damaged > 0 && whole > 0, "{read} {damaged} {whole}");
}

/// Any one file: it is named, all is there, and the folder is whole.
#[test]
fn any_one_file_costs_a_newcomer_nothing() {
    let (scratch, needed) = written();
    for (at, name) in needed.iter().enumerate() {
        let computer = format!("new{at}");
        newcomer(&scratch, &computer);
        let volume = format!("{computer}/v");
        let path = scratch.path(&volume).join(name);
        match at % 3 {
            0 => fs::remove_file(&path).unwrap(),
            1 => replace(&path, &flipped(&path)),
            _ => replace(&path, &fs::read(&path).unwrap()[..100]),
        }
        let output = run(&scratch, &computer, &["cat", &volume, "/small"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // One that is missing or short may be on its way: it is made again beside the folder.
        let damaged = at % 3 == 1;
        assert_eq!(said.contains(name), damaged, "{name}: {said}");
        assert_eq!(succeeded(output), "a letter\n", "{name}");
        let checked = succeeded(run(&scratch, &computer, &["check", &volume]));
        assert!(checked.starts_with("clean"), "{name}: {checked}");
        if damaged {
            let whole = fs::read(scratch.path("one/v").join(name)).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
    }
}
