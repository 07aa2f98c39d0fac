//! Stores on a network, against real servers where their programs are installed.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod accounts;
mod log_on;
mod redirects;
mod requests;

use oblivio_online::{
    Ambient, Begin, Effort, OnlineStore, ProbeVerdict, Remotes, Runtime, Torn, Url, in_memory,
    open, probe,
};
use oblivio_store::{Held, Objects, Patience, RecordStore, RetryStore};
use oblivio_testkit::FaultStore;
use oblivio_testkit::conformance::{self, Connector};
use oblivio_testkit::fault::FaultPlan;
use oblivio_testkit::rigs::{S3Kind, S3Rig, SftpRig, Skip, WebDavKind, WebDavRig};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;

/// A home folder with a file of remotes, and an environment.
#[derive(Clone)]
struct Home {
    dir: Arc<tempfile::TempDir>,
    env: BTreeMap<String, String>,
    runtime: Runtime,
}

impl Home {
    fn new(env: &[(&str, &str)], remotes: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join(".config/oblivio");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("remotes.toml"), remotes).unwrap();
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(config.join("remotes.toml"), private).unwrap();
        let env = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { dir: Arc::new(dir), env, runtime: Runtime::new().unwrap() }
    }

    fn open(&self, url: &str) -> OnlineStore {
        let env = self.env.clone();
        let env = Arc::new(move |name: &str| env.get(name).cloned());
        let ambient = Ambient { env, home: self.dir.path().to_owned() };
        let url: Url = url.parse().unwrap();
        open(&url, &Remotes::read(&ambient).unwrap(), &ambient, &self.runtime).unwrap()
    }

    fn s3() -> Self {
        let keys = [("AWS_ACCESS_KEY_ID", S3Rig::KEY_ID), ("AWS_SECRET_ACCESS_KEY", S3Rig::SECRET)];
        Self::new(&keys, "")
    }

    fn webdav(rig: &WebDavRig) -> Self {
        let user = format!("user = {:?}\nsecret = {:?}\n", WebDavRig::USER, WebDavRig::PASSWORD);
        let user = if rig.has_user { user.as_str() } else { "" };
        Self::new(&[], &format!("[rig]\nurl = \"{}\"\n{user}", rig.url("").trim_end_matches('/')))
    }
}

/// Opens a new folder for each store, and each store several times.
fn folders(home: Home, url: impl Fn(&str) -> String + 'static) -> impl Fn() -> Connector {
    let (home, next) = (Arc::new(home), Cell::new(0));
    move || {
        next.set(next.get() + 1);
        let (home, url) = (Arc::clone(&home), url(&format!("f{}/in", next.get())));
        Box::new(move || Box::new(home.open(&url)))
    }
}

/// Says which server a test goes without.
fn have<T>(name: &str, rig: Result<T, Skip>) -> Option<T> {
    rig.inspect_err(|why| eprintln!("skipped: {name}: {why}")).ok()
}

#[test]
fn a_store_in_memory() {
    let runtime = Runtime::new().unwrap();
    let fresh = || -> Connector {
        let store = in_memory(&runtime).unwrap();
        Box::new(move || Box::new(store.clone()))
    };
    conformance::objects(&fresh, 0..24);
    // Layers over it have the same port.
    let layered = || -> Connector {
        let store = in_memory(&runtime).unwrap();
        Box::new(move || {
            let plan = FaultPlan::default();
            let inner = Arc::new(FaultStore::new(RecordStore::new(store.clone()), plan));
            Box::new(RetryStore::new(inner, Patience::default(), Box::new(|_| {})))
        })
    };
    conformance::objects(&layered, 0..24);
}

fn s3(kind: S3Kind) {
    let Some(rig) = have(&format!("{kind:?}"), S3Rig::start(kind)) else { return };
    let rig = Arc::new(rig);
    // Moto asks first and stores then, in threads.
    let suite = match kind {
        S3Kind::Moto => conformance::objects_without_races,
        S3Kind::VersityGw | S3Kind::Minio => conformance::objects,
    };
    suite(&folders(Home::s3(), move |folder| rig.url(folder)), 0..6);
}

#[test]
#[ignore = "system: versitygw, if it is installed"]
fn s3_versitygw() {
    s3(S3Kind::VersityGw);
}

#[test]
#[ignore = "system: moto, if it is installed"]
fn s3_moto() {
    s3(S3Kind::Moto);
}

#[test]
#[ignore = "system: minio, if it is installed"]
fn s3_minio() {
    s3(S3Kind::Minio);
}

fn webdav(kind: WebDavKind) {
    let Some(rig) = have(&format!("{kind:?}"), WebDavRig::start(kind)) else { return };
    let home = Home::webdav(&rig);
    let rig = Arc::new(rig);
    conformance::objects(&folders(home, move |folder| rig.url(folder)), 0..6);
}

#[test]
#[ignore = "system: Apache, if it is installed"]
fn webdav_apache() {
    webdav(WebDavKind::Apache);
}

#[test]
#[ignore = "system: wsgidav, if it is installed"]
fn webdav_wsgidav() {
    webdav(WebDavKind::WsgiDav);
}

#[test]
#[ignore = "system: rclone, if it is installed"]
fn webdav_rclone() {
    webdav(WebDavKind::Rclone);
}

/// Probes a server, with a runtime for each connection, and says what came out.
fn probed(name: &str, home: &Home, url: &str) -> ProbeVerdict {
    let connect = || {
        let alone = Home { runtime: Runtime::new().unwrap(), ..home.clone() };
        Ok(Box::new(alone.open(url)) as Box<dyn Objects>)
    };
    let begun = std::time::Instant::now();
    let mut tried = 0;
    // A server on a busy computer may fail once; then there is no verdict, and it is tried again.
    let verdict = loop {
        tried += 1;
        match probe(&connect, Effort::SMALL, &format!("x{tried}"), &|| begun.elapsed()) {
            Ok(verdict) => break verdict,
            Err(error) => assert!(error.may_pass() && tried < 3, "{name}: {error}"),
        }
        let left = home.open(url);
        for (object, _) in left.list().unwrap() {
            left.delete(&[&object]).unwrap();
        }
    };
    eprintln!("{name}:\n  {}", verdict.lines().join("\n  "));
    assert!(home.open(url).list().unwrap().is_empty(), "it removes what it stored");
    verdict
}

/// The verdicts on servers whose behaviour is known.
#[test]
#[ignore = "system: servers, where they are installed"]
fn probes_of_real_servers() {
    for kind in S3Kind::ALL {
        let Some(rig) = have(&format!("{kind:?}"), S3Rig::start(kind)) else { continue };
        let verdict = probed(&format!("{kind:?}"), &Home::s3(), &rig.url("probe"));
        // Moto asks first and stores then, in threads: once in many races it has two winners.
        let alone = kind == S3Kind::Moto && verdict.begin == Begin::Alone;
        assert!(alone || verdict.begin == Begin::Exclusive, "{kind:?}: {:?}", verdict.begin);
    }
    for kind in WebDavKind::ALL {
        let Some(rig) = have(&format!("{kind:?}"), WebDavRig::start(kind)) else { continue };
        let verdict = probed(&format!("{kind:?}"), &Home::webdav(&rig), &rig.url("probe"));
        assert_eq!(verdict.begin, Begin::Alone, "{kind:?}");
        // Apache keeps the old content until a put is whole.
        assert!(kind != WebDavKind::Apache || verdict.torn != Torn::Seen);
    }
}

/// The variable with the URL for the test's other half.
const SFTP_URL: &str = "OBLIVIO_TEST_SFTP_URL";

/// The server's `ssh` is found by a PATH, which only a new process can have: the test runs itself.
#[test]
#[ignore = "system: sshd, if it is installed"]
fn sftp_openssh() {
    if let Ok(url) = std::env::var(SFTP_URL) {
        let verdict = probed("OpenSSH", &Home::new(&[], ""), &format!("{url}probe"));
        assert_eq!(verdict.begin, Begin::Exclusive);
        let url = move |folder: &str| format!("{url}{folder}");
        return conformance::objects(&folders(Home::new(&[], ""), url), 0..4);
    }
    let Some(rig) = have("OpenSSH", SftpRig::start()) else { return };
    let mut half = Command::new(std::env::current_exe().unwrap());
    half.args(["--exact", "sftp_openssh", "--nocapture", "--include-ignored"]);
    half.env("PATH", rig.path()).env(SFTP_URL, rig.url(""));
    assert!(half.status().unwrap().success());
}
