//! Volumes at URLs, with the command and a server that speaks like S3, if there is one.

use crate::common::{Scratch, failed, json, noise, succeeded, until};
use oblivio_testkit::accounts::{Account, Faults, Kind};
use oblivio_testkit::rigs::{S3Kind, S3Rig};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

/// The first server that is there.
fn rig() -> Option<S3Rig> {
    for kind in S3Kind::ALL {
        match S3Rig::start(kind) {
            Ok(rig) => return Some(rig),
            Err(skip) => eprintln!("{kind:?}: {skip}"),
        }
    }
    eprintln!("skipped: no server that speaks like S3");
    None
}

pub fn command(scratch: &Scratch, computer: &str, args: &[&str]) -> Command {
    let mut command = scratch.command(args);
    command
        .env("HOME", scratch.path(computer))
        .env("XDG_STATE_HOME", scratch.path(computer).join("state"))
        .env("XDG_CONFIG_HOME", scratch.path(computer).join("config"))
        .env("AWS_ACCESS_KEY_ID", S3Rig::KEY_ID)
        .env("AWS_SECRET_ACCESS_KEY", S3Rig::SECRET)
        .env_remove("AWS_ENDPOINT_URL");
    command
}

fn run(scratch: &Scratch, computer: &str, args: &[&str]) -> Output {
    command(scratch, computer, args).output().expect("the command runs")
}

pub const INIT: [&str; 6] = ["init", "--kdf-memory", "32K", "--kdf-passes", "1", "--small-probe=3"];

#[test]
#[ignore = "system: a server that speaks like S3, if it is installed"]
fn two_computers_use_a_volume_in_a_bucket() {
    let Some(rig) = rig() else { return };
    let (scratch, url) = (Scratch::new(), rig.url("vault"));
    let on = |computer: &str, args: &[&str]| succeeded(run(&scratch, computer, args));
    let said = on("one", &[&INIT[..], &["--size", "64M", &url]].concat());
    assert!(said.contains(&format!("'{url}'")), "a line that a shell takes: {said}");
    scratch.write("noise", noise(3 << 20, 1));
    scratch.write("small", "a letter\n");
    on("one", &["put", &url, "noise", "small", "/"]);
    assert_eq!(on("two", &["ls", &url, "/"]), "noise\nsmall\n");
    on("two", &["get", &url, "/noise", "back"]);
    assert_eq!(fs::read(scratch.path("back")).expect("there"), noise(3 << 20, 1));
    on("two", &["rm", &url, "/noise"]);
    assert_eq!(on("one", &["cat", &url, "/small"]), "a letter\n");
    let info = json(&on("one", &["info", "--json", &url]));
    assert_eq!(info["engine"], "windows", "{info}");
    assert_eq!(info["session_before_ended"], true, "{info}");
    assert!(on("one", &["check", &url]).starts_with("clean"));
    // Killed in the middle of its work: what was there is there.
    let mut killed = command(&scratch, "one", &["put", &url, "noise", "/again"]).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(150));
    let _ = killed.kill();
    killed.wait().unwrap();
    assert_eq!(on("two", &["cat", "--take-over", &url, "/small"]), "a letter\n");
    assert!(on("two", &["check", &url]).starts_with("clean"));
    // Who had it, and what nobody needs.
    let status = json(&on("one", &["status", "--json", &url]));
    assert_eq!((&status["free"], &status["own"]), (&true.into(), &false.into()), "{status}");
    assert_eq!(status["phrase"], json(&on("two", &["status", "--json", &url]))["phrase"]);
    assert!(on("one", &["gc", "--dry-run", &url]).contains("could be deleted"));
    assert!(on("two", &["gc", &url]).starts_with("Deleted"));
    assert_eq!(json(&on("one", &["gc", "--json", &url]))["strange"], 0);
    assert!(on("one", &["status", &url]).starts_with("state    free; last used on"));
    assert!(on("one", &["check", &url]).starts_with("clean"));
    // And what is refused.
    let bad = |code, args: &[&str]| failed(code, run(&scratch, "one", args));
    let said = bad(3, &[&INIT[..], &[&url]].concat());
    assert!(said.contains("already"), "{said}");
    bad(2, &[&INIT[..], &["--seen-by", "snapshots", "--size", "4M", &rig.url("x")]].concat());
    bad(9, &["ls", &rig.url("nothing"), "/"]);
}

/// A server ends when another computer asks for its volume, and that one has what was not synced.
#[test]
#[ignore = "system: a server that speaks like S3, if it is installed"]
fn a_server_hands_its_volume_over() {
    let Some(rig) = rig() else { return };
    let (scratch, url) = (Scratch::new(), rig.url("disk"));
    let init = [&INIT[..], &["--disk", "4M", &url]].concat();
    succeeded(run(&scratch, "one", &init));
    let socket = scratch.path("socket");
    let socket = socket.to_str().expect("plain");
    let mut server = command(&scratch, "one", &["nbd", &url, "--socket", socket]);
    let server = server.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    until(|| fs::exists(socket).expect("a folder"));
    let status = json(&succeeded(run(&scratch, "two", &["status", "--json", &url])));
    assert_eq!(status["free"], false, "{status}");
    let asked = run(&scratch, "two", &["info", "--json", &url]);
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(said.contains("was asked for it"), "{said}");
    let info = json(&succeeded(asked));
    assert_eq!(info["session_before_ended"], true, "{info}");
    let ended = server.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(12), "{said}");
    assert!(said.contains("was handed over to"), "{said}");
}

/// What a computer needs to use an account: a remote, and the tokens that it names.
pub fn log_on(scratch: &Scratch, computer: &str, account: &Account) {
    let config = scratch.path(computer).join(".config/oblivio");
    fs::create_dir_all(&config).unwrap();
    let remote = format!(
        "[account]\nurl = \"{}\"\nsecret_file = \"~/.config/oblivio/account.json\"\n",
        account.url("")
    );
    for (name, text) in [("remotes.toml", remote), ("account.json", account.tokens())] {
        fs::write(config.join(name), text).unwrap();
        fs::set_permissions(config.join(name), Permissions::from_mode(0o600)).unwrap();
    }
}

/// Volumes in a folder of an account, while one request in twenty is refused, lost or cut.
fn two_computers_use_a_volume_in_an_account(kind: Kind) {
    let (scratch, account) = (Scratch::new(), Account::start(kind, 20));
    for computer in ["one", "two"] {
        log_on(&scratch, computer, &account);
    }
    let url = account.url("vaults/mine");
    let on = |computer: &str, args: &[&str]| succeeded(run(&scratch, computer, args));
    let said = on("one", &[&INIT[..], &["--size", "64M", &url]].concat());
    assert!(said.contains(&format!("'{url}'")), "a line that a shell takes: {said}");
    account.fail(Faults { refused: 2, lost: 2, cut: 1, retry_after: 0 });
    scratch.write("noise", noise(1 << 20, 1));
    scratch.write("small", "a letter\n");
    on("one", &["put", &url, "noise", "small", "/"]);
    // The token expires, and each computer gets one for itself.
    account.expire_tokens();
    assert_eq!(on("two", &["ls", "account:vaults/mine", "/"]), "noise\nsmall\n");
    on("two", &["get", &url, "/noise", "back"]);
    assert_eq!(fs::read(scratch.path("back")).unwrap(), noise(1 << 20, 1));
    on("two", &["rm", &url, "/noise"]);
    assert_eq!(on("one", &["cat", &url, "/small"]), "a letter\n");
    assert!(on("one", &["check", &url]).starts_with("clean"));
    assert_eq!(account.wrong(), Vec::<String>::new());
    // Who has no tokens any more is told so, without any of them.
    account.log_out();
    let output = run(&scratch, "one", &["ls", &url, "/"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("get a new one"), "{said}");
    assert!(!said.contains("canary"), "{said}");
}

#[test]
#[ignore = "system: a service on a local port"]
fn two_computers_use_a_volume_in_dropbox() {
    two_computers_use_a_volume_in_an_account(Kind::Dropbox);
}

#[test]
#[ignore = "system: a service on a local port"]
fn two_computers_use_a_volume_in_google_drive() {
    two_computers_use_a_volume_in_an_account(Kind::GDrive);
}

#[test]
#[ignore = "system: a service on a local port"]
fn two_computers_use_a_volume_in_onedrive() {
    two_computers_use_a_volume_in_an_account(Kind::OneDrive);
}

/// A missing key is no outage: nothing is repeated for minutes.
#[test]
fn without_a_key_it_says_so_at_once() {
    let scratch = Scratch::new();
    let url = "s3://bucket/vault?endpoint=http://127.0.0.1:9&region=us-east-1";
    let mut ls = command(&scratch, "one", &["ls", url, "/"]);
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"] {
        ls.env_remove(name);
    }
    let said = failed(13, ls.output().expect("the command runs"));
    assert!(said.contains("check the credentials"), "{said}");
}

#[test]
fn a_url_with_a_password_is_refused_and_not_repeated() {
    let scratch = Scratch::new();
    for url in ["sftp://me:canary@host/vault", "s3://key:canary@bucket/vault?region=x"] {
        let output = scratch.run(["ls", url, "/"]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("canary") && said.contains("password"), "{said}");
    }
    assert!(scratch.bad(2, ["ls", "ftp://host/vault", "/"]).contains("no known service"));
}

/// A command that met damage keeps nobody of this computer waiting, however far it came.
#[test]
#[ignore = "system: starts a server"]
fn a_command_that_fails_keeps_nobody_waiting() {
    let (scratch, account) = (Scratch::new(), Account::start(Kind::Dropbox, 21));
    log_on(&scratch, "one", &account);
    let url = account.url("v");
    let on = |args: &[&str]| succeeded(run(&scratch, "one", args));
    on(&[&INIT[..], &["--size", "4M", &url]].concat());
    scratch.write("noise", noise(1 << 20, 1));
    on(&["put", &url, "noise", "/"]);
    let whole = account.contents("v");
    let mut flipped = whole.clone();
    for (_, bytes) in flipped.iter_mut().filter(|(name, _)| name.starts_with("p-")) {
        bytes.iter_mut().step_by(1000).for_each(|byte| *byte ^= 1);
    }
    account.hold("v", &flipped);
    for command in ["check", "ls", "check"] {
        // What the disk cache holds is not asked for.
        let _ = fs::remove_dir_all(scratch.path("one").join(".cache"));
        let said = failed(5, run(&scratch, "one", &[command, &url]));
        assert!(!said.contains("has the volume") && !said.contains("does not answer"), "{said}");
    }
    // What was damaged is as it was.
    let mut now = account.contents("v");
    now.extend(whole.into_iter().filter(|(name, _)| name.starts_with("p-")));
    account.hold("v", &now);
    on(&["get", &url, "/noise", "back"]);
    assert_eq!(fs::read(scratch.path("back")).unwrap(), noise(1 << 20, 1));
}

/// What is no service at all: one that does not speak TLS ends the command at once, and one that
/// says nothing is named before patience is over.
#[test]
#[ignore = "system: a service that says nothing for some seconds"]
fn a_command_says_what_it_waits_for() {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    let listen = |answers: bool| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for mut line in listener.incoming().flatten() {
                if answers {
                    drop(line.read(&mut [0; 1000]));
                    drop(line.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
                } else {
                    kept.push(line);
                }
            }
        });
        port
    };
    let scratch = Scratch::new();
    let ls = |url: String| {
        let mut command = command(&scratch, "one", &["ls", &url]);
        command.env("OBLIVIO_PATIENCE", "5").output().unwrap()
    };
    let plain = format!("s3://bucket/v?region=r&endpoint=https://127.0.0.1:{}", listen(true));
    let said = failed(13, ls(plain));
    assert!(said.contains("does not speak TLS") && !said.contains("waiting"), "{said}");
    let silent = format!("s3://bucket/v?region=r&endpoint=http://127.0.0.1:{}", listen(false));
    let said = failed(16, ls(silent));
    assert!(said.contains("waiting for s3://bucket/v") && said.contains("no answer yet"), "{said}");
}
