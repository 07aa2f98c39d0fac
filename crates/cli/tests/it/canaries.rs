//! Secrets of online stores stay where they belong: not in arguments, not in what other programs
//! inherit, in no output, trace, log or state, and in no core dump.

use crate::common::{PATIENCE, Scratch, failed, succeeded, until};
use oblivio_testkit::accounts::{Account, Kind};
use oblivio_testkit::rigs::{S3Kind, S3Rig, WebDavKind, WebDavRig};
use std::fs::{self, Permissions};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What must not be found anywhere. Those of the servers begin so too.
const CANARIES: [&str; 4] = ["canary-", "Y2FuYXJ5L", "63616e617279", "passphrase-of-7391"];
const PASSPHRASE: &str = "canary-passphrase-of-7391";
const QUICK: [&str; 6] = ["init", "--kdf-memory", "32K", "--kdf-passes", "1", "--small-probe=3"];

fn holds_canary(bytes: &[u8]) -> Option<&'static str> {
    let lower = bytes.to_ascii_lowercase();
    CANARIES.into_iter().find(|canary| {
        let canary = canary.to_ascii_lowercase();
        lower.windows(canary.len()).any(|found| found == canary.as_bytes())
    })
}

/// A computer with secrets for three services and a volume's passphrase.
struct Home {
    scratch: Scratch,
    commands: u32,
}

impl Home {
    fn new(dropbox: &Account) -> Self {
        let home = Self { scratch: Scratch::new(), commands: 0 };
        home.secret("secrets/pass", &format!("{PASSPHRASE}\n"));
        home.secret("secrets/wrong", "canary-wrong-passphrase\n");
        home.secret("secrets/tokens.json", &dropbox.tokens());
        home.secret("secrets/dav", WebDavRig::PASSWORD);
        let remotes = format!(
            "[drop]\nurl = \"{}\"\nsecret_file = \"~/secrets/tokens.json\"\n[dav]\n\
             url = \"webdav://127.0.0.1:9/a\"\nuser = \"alice\"\nsecret = \"canary-dav-secret\"\n\
             [asked]\nurl = \"webdav://127.0.0.1:9/b\"\nuser = \"alice\"\n\
             secret_command = \"cat ~/secrets/dav; sleep 0.1\"\n",
            dropbox.url("")
        );
        home.secret("home/.config/oblivio/remotes.toml", &remotes);
        std::os::unix::fs::symlink(home.scratch.path("secrets"), home.scratch.path("home/secrets"))
            .unwrap();
        home.scratch.write("letter", "nothing secret\n");
        home
    }

    fn secret(&self, name: &str, text: &str) {
        let file = self.scratch.write(name, text);
        fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.scratch.command(args);
        command
            .env("HOME", self.scratch.path("home"))
            .env("XDG_STATE_HOME", self.scratch.path("state"))
            .env("XDG_CACHE_HOME", self.scratch.path("cache"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("OBLIVIO_PASSPHRASE")
            .env_remove("AWS_ENDPOINT_URL")
            .env("AWS_ACCESS_KEY_ID", S3Rig::KEY_ID)
            .env("AWS_SECRET_ACCESS_KEY", S3Rig::SECRET)
            .env("RUST_BACKTRACE", "1")
            .env("RUST_LOG", "trace")
            .env("OBLIVIO_PATIENCE", "1");
        command
    }

    /// Runs a command under watch. Its output must be clean; its exit code is returned.
    fn watched(&mut self, args: &[&str]) -> i32 {
        self.commands += 1;
        let mut command = self.command(args);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let process = child.id();
        let over = std::sync::atomic::AtomicBool::new(false);
        let output = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::SeqCst) {
                    look_at(process);
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            let output = child.wait_with_output().unwrap();
            over.store(true, std::sync::atomic::Ordering::SeqCst);
            watch.join().expect("nothing was found in /proc");
            output
        });
        for (name, said) in [("output", &output.stdout), ("errors", &output.stderr)] {
            let text = String::from_utf8_lossy(said);
            assert_eq!(holds_canary(said), None, "{args:?}: {name}: {text}");
        }
        output.status.code().unwrap_or(-1)
    }

    /// With one of the passphrases.
    fn with(&mut self, pass: &str, args: &[&str]) -> i32 {
        let file = format!("secrets/{pass}");
        self.watched(&[args, &["--passphrase-file", &file]].concat())
    }
}

/// A process and those that it started: neither their arguments hold a secret, nor what programs
/// other than this one inherit.
fn look_at(process: u32) {
    let ours = fs::canonicalize(env!("CARGO_BIN_EXE_oblivio")).unwrap();
    for id in family(process) {
        let read = |what: &str| fs::read(format!("/proc/{id}/{what}")).unwrap_or_default();
        let line = read("cmdline");
        assert_eq!(holds_canary(&line), None, "{}", String::from_utf8_lossy(&line));
        let program = fs::read_link(format!("/proc/{id}/exe"));
        let environment = read("environ");
        // The user gave the service's key to the command, and the shell of `secret_command`.
        let shell =
            line.starts_with(b"sh\0") || line.starts_with(b"cat") || line.starts_with(b"sleep");
        if program.is_ok_and(|program| program != ours) && !shell {
            let text = String::from_utf8_lossy(&environment);
            assert_eq!(holds_canary(&environment), None, "{id}: {text}");
        }
        let passphrase = environment.windows(18).any(|part| part == b"passphrase-of-7391");
        assert!(!passphrase, "no process has the passphrase in its environment");
    }
}

/// A process and its descendants.
fn family(process: u32) -> Vec<u32> {
    let parent = |id: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    let all: Vec<u32> = all.filter_map(|it| it.file_name().to_str()?.parse().ok()).collect();
    let mut family = vec![process];
    let mut at = 0;
    while at < family.len() {
        let children = all.iter().filter(|&&id| parent(id) == Some(family[at]));
        let new: Vec<u32> = children.filter(|id| !family.contains(id)).copied().collect();
        family.extend(new);
        at += 1;
    }
    family
}

/// Every file below a folder, but for where the secrets were put.
fn files_are_clean(folder: &Path, seen: &mut u32) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let own = path.ends_with("secrets") || path.ends_with("remotes.toml");
        if kind.is_dir() && !own {
            files_are_clean(&path, seen);
        } else if kind.is_file() && !own {
            let bytes = fs::read(&path).unwrap();
            assert_eq!(holds_canary(&bytes), None, "{}", path.display());
            *seen += 1;
        }
    }
}

fn s3() -> Option<S3Rig> {
    S3Kind::ALL.into_iter().find_map(|kind| S3Rig::start(kind).ok())
}

/// Ordinary commands on a volume at a service.
fn use_it(home: &mut Home, url: &str) {
    assert_eq!(home.with("pass", &[&QUICK[..], &["--size", "64M", url]].concat()), 0);
    for args in [
        &["put", "-v", "--trace-out", "trace-put", url, "letter", "/"][..],
        &["ls", "-l", "--trace-out", "trace-ls", url, "/"],
        &["ls", "--json", url, "/"],
        &["cat", url, "/letter"],
        &["stat", "--json", url, "/letter"],
        &["du", "--json", url],
        &["mkdir", url, "/d"],
        &["cp", url, "/letter", "/d/copy"],
        &["mv", url, "/d/copy", "/d/moved"],
        &["rm", "-r", url, "/d"],
        &["get", "-v", "-f", url, "/letter", "back"],
        &["info", "--json", url],
        &["info", url],
        &["check", "--json", url],
        &["resize", url, "80M"],
        &["passphrase", "list", url],
    ] {
        let code = home.with("pass", args);
        // A subcommand may have another name for the same; what it says counts here.
        assert!(matches!(code, 0 | 2), "{args:?}: {code}");
    }
    for args in [
        &["ls", url, "/"][..],
        &["put", "--json", url, "letter", "/"],
        &["info", "--json", url],
        &["check", url],
        &["mount", "-b", url, "m"],
    ] {
        assert_eq!(home.with("wrong", args), 4, "{args:?}");
    }
    assert_eq!(home.with("pass", &["cat", url, "/nothing"]), 3);
    assert_eq!(home.with("pass", &["put", url, "nowhere", "/"]), 3);
    assert_eq!(home.with("pass", &["get", url, "/nothing", "x"]), 3);
    assert_eq!(home.with("pass", &[&QUICK[..], &[url]].concat()), 3);
}

/// Commands that cannot reach what they name, or whose arguments are wrong.
fn fail_with_it(home: &mut Home) {
    let unreachable = "s3://bucket/vault?endpoint=http://127.0.0.1:9&region=us-east-1";
    for url in [unreachable, "dav:x", "asked:x", "webdav://127.0.0.1:9/x"] {
        for args in [&["ls", "-l", url, "/"][..], &["info", "--json", url], &["check", url]] {
            assert_eq!(home.with("pass", args), 16, "{args:?}");
        }
    }
    for args in [
        &["put", "-v", unreachable, "letter", "/"][..],
        &["mount", unreachable, "m"],
        &[&QUICK[..], &[unreachable]].concat(),
        &["audit", unreachable],
        &["ls", "s3://key:canary-in-a-url@bucket/a", "/"],
        &["ls", "sftp://me:canary-in-a-url@host/a", "/"],
        &["ls", "nobody:x", "/"],
        &["ls", "s3://bucket", "/"],
        &["nbd", unreachable, "--socket", "s"],
    ] {
        let code = match args.iter().any(|arg| arg.contains("canary")) {
            // The user wrote it into the arguments: what is said must not repeat it.
            true => {
                let output = home.command(args).output().unwrap();
                assert_eq!(holds_canary(&output.stderr), None, "{args:?}");
                output.status.code().unwrap()
            }
            false => home.with("pass", args),
        };
        assert_ne!(code, 0, "{args:?}");
    }
}

#[test]
#[ignore = "system: a service on a local port"]
fn no_secret_is_found_anywhere() {
    let dropbox = Account::start(Kind::Dropbox, 3);
    let mut home = Home::new(&dropbox);
    fs::create_dir(home.scratch.path("m")).unwrap();
    match s3() {
        Some(rig) => use_it(&mut home, &rig.url("vault")),
        None => eprintln!("skipped: no server that speaks like S3"),
    }
    use_it(&mut home, "drop:vault");
    match WebDavRig::start(WebDavKind::Apache) {
        Ok(rig) => {
            let add = format!(
                "[apache]\nurl = \"{}\"\nuser = \"{}\"\nsecret_file = \"~/secrets/dav\"\n",
                rig.url(""),
                WebDavRig::USER
            );
            let file = home.scratch.path("home/.config/oblivio/remotes.toml");
            let text = fs::read_to_string(&file).unwrap() + &add;
            home.secret("home/.config/oblivio/remotes.toml", &text);
            use_it(&mut home, "apache:vault");
        }
        Err(skip) => eprintln!("skipped: Apache: {skip}"),
    }
    fail_with_it(&mut home);
    let mut files = 0;
    files_are_clean(&home.scratch.path(""), &mut files);
    eprintln!("{} commands, and {files} files that they left, without a secret", home.commands);
    assert!(home.commands >= 45 && files >= 5);
}

/// What the test itself would find, if it were there.
#[test]
#[ignore = "system: starts a shell"]
fn the_watch_sees_arguments_and_environments() {
    let secret = "canary-for-the-test";
    for (argument, variable) in [(secret, "x"), ("x", secret)] {
        let mut child = Command::new("sh")
            .args(["-c", "read line; true", argument])
            .env("SOME_VARIABLE", variable)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let line = || fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
        // The system needs a moment to show the arguments of a new program.
        until(|| line().starts_with(b"sh\0"));
        let line = line();
        let environment = fs::read(format!("/proc/{}/environ", child.id())).unwrap();
        assert_eq!(holds_canary(&line).is_some(), argument == secret);
        assert_eq!(holds_canary(&environment).is_some(), variable == secret);
        assert!(family(std::process::id()).contains(&child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}

#[test]
#[ignore = "system: a service on a local port"]
fn files_that_others_may_read_are_refused() {
    let dropbox = Account::start(Kind::Dropbox, 3);
    let home = Home::new(&dropbox);
    for (file, url) in
        [("home/.config/oblivio/remotes.toml", "dav:x"), ("secrets/tokens.json", "drop:x")]
    {
        let path = home.scratch.path(file);
        for mode in [0o644, 0o640, 0o604, 0o666] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let output = home.command(&["ls", url, "/"]).output().unwrap();
            let said = failed_cleanly(output);
            assert!(said.contains("chmod 600") || said.contains("only"), "{mode:o}: {said}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }
}

fn failed_cleanly(output: std::process::Output) -> String {
    assert_eq!(holds_canary(&output.stderr), None);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

/// A command that has fetched its secrets, and waits for the network, is killed by a fault.
#[test]
#[ignore = "system: a service on a local port"]
fn a_fault_leaves_no_core() {
    // In a folder that goes: it leaves one where it stands.
    let folder = Scratch::new();
    let mut plain = Command::new("sh");
    plain.args(["-c", "ulimit -c unlimited; kill -s ABRT $$"]).current_dir(folder.path(""));
    let plain = plain.status();
    if !plain.unwrap().core_dumped() {
        return eprintln!("skipped: this system keeps no cores");
    }
    let dropbox = Account::start(Kind::Dropbox, 3);
    let home = Home::new(&dropbox);
    // A service that never answers.
    let service = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = service.local_addr().unwrap();
    let url = format!("s3://bucket/vault?endpoint=http://{address}&region=us-east-1");
    let ls = home.command(&["ls", &url, "/"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -c unlimited; exec \"$0\" \"$@\""]);
    limited.arg(ls.get_program()).args(ls.get_args());
    for (name, value) in ls.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        limited.env(name, value);
    }
    let mut child = limited.current_dir(home.scratch.path("")).spawn().unwrap();
    // Its request has come, with what only the secrets can sign.
    let (mut line, _) = service.accept().unwrap();
    line.set_read_timeout(Some(PATIENCE)).unwrap();
    line.read_exact(&mut [0; 64]).unwrap();
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    // A SIGSEGV that is no fault of a page is given back once by the handler of Rust's runtime.
    let kill = ["-s", "ABRT", &child.id().to_string()];
    assert!(Command::new("kill").args(kill).status().unwrap().success());
    let status = child.wait().unwrap();
    assert_eq!((status.signal(), status.core_dumped()), (Some(6), false));
}

/// The rig for the commands works at all.
#[test]
#[ignore = "system: a service on a local port"]
fn a_command_with_the_right_secrets_succeeds() {
    let dropbox = Account::start(Kind::Dropbox, 3);
    let home = Home::new(&dropbox);
    let pass = ["--passphrase-file", "secrets/pass"];
    let init = [&QUICK[..], &["--size", "64M", "drop:vault"], &pass[..]].concat();
    succeeded(home.command(&init).output().unwrap());
    dropbox.log_out();
    let said = failed(13, home.command(&["ls", "drop:vault", "/"]).output().unwrap());
    assert!(said.contains("get a new one"), "{said}");
}
