//! Opening destroys nothing: one bit of a volume changes, a command opens it and ends, and once the
//! bit is as it was, everything is there.
//!
//! Whatever command it was, and whether it noticed. `just opening` tries more places.

use crate::common::{Scratch, copy_dir, noise, succeeded};
#[cfg(feature = "online")]
use crate::online::log_on;
use oblivio_testkit::Dice;
#[cfg(feature = "online")]
use oblivio_testkit::accounts::{Account, Kind};
use oblivio_testkit::campaign::{scaled, seed};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

/// What a keeper holds: objects by their names.
type Objects = BTreeMap<String, Vec<u8>>;

/// Where a volume is, as its keeper has it.
enum Home {
    /// A folder, or one file.
    Local(&'static str),
    #[cfg(feature = "online")]
    Account(Account),
}

impl Home {
    fn objects(&self, scratch: &Scratch) -> Objects {
        match self {
            Self::Local(name) if scratch.path(name).is_file() => {
                BTreeMap::from([(String::new(), fs::read(scratch.path(name)).unwrap())])
            }
            Self::Local(name) => files_of(&scratch.path(name)),
            #[cfg(feature = "online")]
            Self::Account(account) => account.contents("v"),
        }
    }

    /// Makes it hold exactly these.
    fn hold(&self, scratch: &Scratch, objects: &Objects) {
        match self {
            Self::Local(name) if objects.contains_key("") => {
                fs::write(scratch.path(name), &objects[""]).unwrap();
            }
            Self::Local(name) => {
                fs::remove_dir_all(scratch.path(name)).unwrap();
                fs::create_dir(scratch.path(name)).unwrap();
                for (object, bytes) in objects {
                    fs::write(scratch.path(name).join(object), bytes).unwrap();
                }
            }
            #[cfg(feature = "online")]
            Self::Account(account) => account.hold("v", objects),
        }
    }
}

fn files_of(folder: &Path) -> Objects {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap());
    entries
        .map(|it| (it.file_name().into_string().unwrap(), fs::read(it.path()).unwrap()))
        .collect()
}

/// Runs a command. `V` is the volume.
fn run(scratch: &Scratch, volume: &str, command: &str) -> Output {
    let words = command.split_whitespace().map(|word| if word == "V" { volume } else { word });
    let mut command = scratch.command(words);
    command.env("HOME", scratch.path("home")).env_remove("XDG_CONFIG_HOME");
    command.env("OBLIVIO_NEW_PASSPHRASE", "other").output().unwrap()
}

fn good(scratch: &Scratch, volume: &str, command: &str) {
    drop(succeeded(run(scratch, volume, command)));
}

/// A volume, and the commands that open it.
struct Subject {
    scratch: Scratch,
    home: Home,
    volume: String,
    /// All that open it. `V` is the volume.
    commands: Vec<&'static str>,
    /// It holds `/one`, `/two` and `/d/three`; otherwise, a disk.
    has_files: bool,
}

/// What opens a volume. Some are for few.
const COMMANDS: [&str; 22] = [
    "ls V",
    "get V /two back",
    "put V new /new",
    "check V",
    "cat V /one",
    "info V",
    "stat V /two",
    "du V",
    "rm V /one",
    "mkdir V /made",
    "cp V /one /copy",
    "mv V /one /other",
    "passphrase list V",
    "passphrase add --kdf-memory 32K --kdf-passes 1 V",
    "resize V 8G",
    "migrate V moved",
    "get --unobserved V /two back",
    "put --pad V new /new",
    "status V",
    "pick V",
    "gc V",
    "gc --dry-run V",
];

impl Subject {
    fn files(scratch: Scratch, home: Home, volume: &str, init: &str) -> Self {
        good(&scratch, volume, &format!("init -q --kdf-memory 32K --kdf-passes 1 {init} V"));
        fs::create_dir(scratch.path("d")).unwrap();
        for (at, name) in ["one", "two", "d/three"].into_iter().enumerate() {
            scratch.write(name, noise(9_000 << at, at as u64));
        }
        scratch.write("new", "new");
        good(&scratch, volume, "put -q V new one /");
        good(&scratch, volume, "put -q -r V two d /");
        good(&scratch, volume, "rm V /new");
        let commands = COMMANDS.to_vec();
        Self { scratch, home, volume: volume.to_owned(), commands, has_files: true }
    }

    /// A fixture, whose session was interrupted: nothing on this computer knows it.
    fn fixture(name: &str) -> Self {
        let scratch = Scratch::new();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
        copy_dir(&from, &scratch.path("v"));
        let commands = COMMANDS.to_vec();
        Self { scratch, home: Home::Local("v"), volume: "v".to_owned(), commands, has_files: false }
    }

    /// One bit, one command. Whether that noticed it: it failed, or it read a second copy and said
    /// so. Or what was destroyed.
    fn flip(&self, whole: &Objects, at: u64) -> Result<bool, String> {
        let mut dice = Dice::new(at);
        let (object, byte, bit) = place(whole, &mut dice);
        let command = self.commands[(at % self.commands.len() as u64) as usize];
        let mut objects = whole.clone();
        objects.get_mut(&object).unwrap()[byte] ^= bit;
        self.home.hold(&self.scratch, &objects);
        let what = format!("place {at}, bit {bit:#04x} of byte {byte} of {object:?}, `{command}`");
        let done = self.run(command);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let code = done.status.code().ok_or_else(|| format!("{what}: killed: {said}"))?;
        if code == 101 {
            return Err(format!("{what}: {said}"));
        }
        if code == 0 {
            self.right(command, &done.stdout).map_err(|wrong| format!("{what}: {wrong}"))?;
        }
        // The medium reads right again, where nothing was written meanwhile.
        let mut now = self.home.objects(&self.scratch);
        if let Some(bytes) = now.get_mut(&object) {
            let near = byte.saturating_sub(24)..(byte + 24).min(objects[&object].len());
            if bytes.get(near.clone()) == Some(&objects[&object][near]) {
                bytes[byte] ^= bit;
                self.home.hold(&self.scratch, &now);
            }
        }
        self.is_whole(command, code == 0)
            .map_err(|lost| format!("{what}, which ended with {code}: {said}{lost}"))?;
        Ok(code != 0 || said.contains("damaged: "))
    }

    fn run(&self, command: &str) -> Output {
        run(&self.scratch, &self.volume, command)
    }

    /// What a command brought that ended with 0.
    fn right(&self, command: &str, out: &[u8]) -> Result<(), String> {
        let same = match command.split(' ').next() {
            _ if !self.has_files => true,
            Some("ls") => out == b"d/\none\ntwo\n" || out == b"d\none\ntwo\n",
            Some("cat") => out == fs::read(self.scratch.path("one")).unwrap(),
            Some("get") => {
                fs::read(self.scratch.path("back")).unwrap()
                    == fs::read(self.scratch.path("two")).unwrap()
            }
            _ => true,
        };
        if same {
            Ok(())
        } else {
            Err(format!("exit code 0, and wrong: {}", String::from_utf8_lossy(out)))
        }
    }

    /// Every file is what it was, but for what the command did, if it ended with 0.
    fn is_whole(&self, command: &str, done: bool) -> Result<(), String> {
        let check = self.run("check V");
        if !check.status.success() {
            return Err(format!("and then check: {}", String::from_utf8_lossy(&check.stderr)));
        }
        if !self.has_files {
            return Ok(());
        }
        let back = self.scratch.path("whole");
        let _ = fs::remove_dir_all(&back);
        let got = self.run("get -q -r V / whole");
        if !got.status.success() {
            return Err(format!("and then get: {}", String::from_utf8_lossy(&got.stderr)));
        }
        let gone = command.starts_with("rm ") || command.starts_with("mv ");
        let put = done && command.starts_with("put ");
        let mut names = vec!["two", "d/three"];
        names.extend((!gone).then_some("one").into_iter().chain(put.then_some("new")));
        let same =
            |name: &&str| fs::read(back.join(name)).ok() == fs::read(self.scratch.path(name)).ok();
        if let Some(name) = names.into_iter().find(|name| !same(name)) {
            return Err(format!("/{name} is not as it was"));
        }
        Ok(())
    }
}

/// A place of an object: any object as likely as another, and its first and last pages more than
/// others.
fn place(whole: &Objects, dice: &mut Dice) -> (String, usize, u8) {
    let with_bytes: Vec<_> = whole.iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
    let (name, bytes) = with_bytes[dice.below(with_bytes.len() as u64) as usize];
    let (len, page) = (bytes.len() as u64, 2048.min(bytes.len() as u64));
    let byte = match dice.below(4) {
        0 => dice.below(page),
        1 => len - 1 - dice.below(page),
        _ => dice.below(len),
    };
    (name.clone(), byte as usize, 1 << dice.below(8))
}

/// Flips bits of a subject. Each place begins from the same volume, and from what this computer
/// knew then.
fn destroys_nothing(mut subject: Subject, usual: u64) {
    let (whole, known) = (subject.home.objects(&subject.scratch), subject.scratch.path("state"));
    let kept = subject.scratch.path("kept");
    if known.exists() {
        copy_all(&known, &kept);
    }
    let afresh = || {
        let _ = fs::remove_dir_all(&known);
        if kept.exists() {
            copy_all(&kept, &known);
        }
        for made in ["back", "moved"] {
            let _ = fs::remove_file(subject.scratch.path(made));
            let _ = fs::remove_dir_all(subject.scratch.path(made));
        }
    };
    // Those that are for such a volume.
    subject.commands.retain(|command| {
        afresh();
        subject.home.hold(&subject.scratch, &whole);
        run(&subject.scratch, &subject.volume, command).status.success()
    });
    assert!(subject.commands.len() > 2, "only {:?}", subject.commands);
    let first = seed(0);
    let (mut noticed, mut lost) = (0, Vec::new());
    for at in first..first + scaled(usual) {
        afresh();
        match subject.flip(&whole, at) {
            Ok(it) => noticed += u64::from(it),
            Err(what) => lost.push(what),
        }
    }
    assert!(lost.is_empty(), "{} places:\n{}", lost.len(), lost.join("\n"));
    assert!(noticed > 0, "nobody noticed any of them");
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap().map(|entry| entry.unwrap()) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn local(init: &str) -> Subject {
    Subject::files(Scratch::new(), Home::Local("v"), "v", init)
}

#[test]
fn of_a_tree() {
    destroys_nothing(local(""), 20);
}

#[test]
fn of_a_sequential_volume() {
    destroys_nothing(local("--seen-by snapshots --files --size 4M"), 20);
}

/// Without lanes: most places are of a lane there, and nobody notices those.
#[test]
fn of_one_file() {
    let init = "--seen-by snapshots --files --size 4M --one-file --lanes none";
    destroys_nothing(local(init), 20);
}

#[test]
fn of_a_synced_folder() {
    destroys_nothing(local("--sync-folder --size 4M"), 20);
}

#[test]
fn of_interrupted_sessions() {
    for name in ["tables", "sequential", "sequential-map-on-disk", "sequential-tables"] {
        destroys_nothing(Subject::fixture(&format!("{name}-interrupted")), 12);
    }
}

#[cfg(feature = "online")]
#[test]
#[ignore = "system: starts a server"]
fn of_an_online_store() {
    let (scratch, account) = (Scratch::new(), Account::start(Kind::Dropbox, 5));
    log_on(&scratch, "home", &account);
    let url = account.url("v");
    let init = "--size 4M --small-probe=3";
    destroys_nothing(Subject::files(scratch, Home::Account(account), &url, init), 8);
}
