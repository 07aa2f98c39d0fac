//! `oblivio share`: a server from its first start to its end.

use crate::common::Scratch;
use oblivio_share::{LinePatience, RemoteShare, Token};
use oblivio_store::share::{Number, ServerSpot, ServerTable, Share, ShareError};
use oblivio_testkit::share::Rig;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

struct Served {
    child: Child,
    address: String,
    fingerprint: String,
}

fn serve(scratch: &Scratch) -> Served {
    serve_with(scratch, &[])
}

fn serve_with(scratch: &Scratch, options: &[&str]) -> Served {
    let mut command = scratch.command(["share", "serve", "srv", "--listen", "127.0.0.1:0"]);
    #[cfg(feature = "online")]
    {
        use oblivio_testkit::rigs::S3Rig;
        command.env("AWS_ACCESS_KEY_ID", S3Rig::KEY_ID);
        command.env("AWS_SECRET_ACCESS_KEY", S3Rig::SECRET).env_remove("AWS_ENDPOINT_URL");
    }
    let command = command.args(["--volume", "team"]).args(options);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last_word = || {
        let line = lines.next().unwrap().unwrap();
        line.trim_end_matches('.').rsplit(' ').next().unwrap().to_owned()
    };
    let (address, fingerprint) = (last_word(), last_word());
    Served { child, address, fingerprint }
}

impl Served {
    /// Asks it to end; its exit code.
    fn end(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "system: starts a server"]
fn a_server_from_its_first_start_to_its_end() {
    let scratch = Scratch::new();
    let served = serve(&scratch);
    let host = served.address.clone();
    let line = scratch.good(["share", "token", "add", "srv", "team", "anna", "--host", &host]);
    assert_eq!(line.lines().count(), 1);
    assert!(line.contains(&served.fingerprint));
    let token = Token::parse(&line).unwrap();
    let share = RemoteShare::new(token, LinePatience::default()).unwrap();
    share.put_parameters(0, 64, b"header").unwrap();

    // A token in a file is this user's.
    let out = ["share", "token", "add", "srv", "team", "ben", "--host", &host, "--out", "ben"];
    assert_eq!(scratch.good(out), "");
    let mode = std::fs::metadata(scratch.path("ben")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    Token::load(&scratch.path("ben")).unwrap();
    scratch.bad(2, out);
    let again = scratch.bad(3, ["share", "token", "add", "srv", "team", "anna", "--host", "nas"]);
    assert!(again.contains("anna"), "{again}");
    assert_eq!(scratch.good(["share", "token", "list", "srv"]), "team  anna\nteam  ben\n");

    let status: Value =
        serde_json::from_str(&scratch.good(["share", "status", "--json", "srv"])).unwrap();
    assert_eq!(status["runs"], true);
    assert_eq!(status["volumes"][0]["connected"][0], "anna");
    scratch.good(["share", "quota", "srv", "team", "1G"]);
    let said = scratch.good(["share", "status", "srv"]);
    assert!(said.contains("1 client") && said.contains("of 1.0 GiB"), "{said}");
    scratch.bad(3, ["share", "quota", "srv", "nothing", "1G"]);

    scratch.bad(8, ["share", "serve", "srv", "--listen", "127.0.0.1:0"]);
    scratch.good(["share", "token", "revoke", "srv", "team", "anna"]);
    assert!(matches!(share.status(), Err(ShareError::Denied(_))));
    scratch.bad(3, ["share", "token", "revoke", "srv", "team", "anna"]);
    assert_eq!(served.end(), Some(0));

    // The same without a server.
    assert_eq!(scratch.good(["share", "token", "list", "srv"]), "team  ben\n");
    let said = scratch.good(["share", "status", "srv"]);
    assert!(said.starts_with("The server does not run."), "{said}");
    scratch.bad(3, ["share", "status", "nowhere"]);
    // A later start is the same server. A key that others may read is refused.
    let served_again = serve(&scratch);
    assert!(line.contains(&served_again.fingerprint));
    assert_eq!(served_again.end(), Some(0));
    let key = scratch.path("srv/key.pem");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = scratch.bad(1, ["share", "serve", "srv", "--listen", "127.0.0.1:0"]);
    assert!(refused.contains("chmod 600"), "{refused}");
}

/// Names and lengths of the files in a folder.
fn files(folder: std::path::PathBuf) -> Vec<(String, u64)> {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap());
    let file = |it: std::fs::DirEntry| {
        (it.file_name().into_string().unwrap(), it.metadata().unwrap().len())
    };
    let mut all: Vec<_> = entries.map(file).collect();
    all.sort();
    all
}

#[test]
#[ignore = "system: starts a server"]
fn tables_may_be_in_another_folder() {
    let scratch = Scratch::new();
    let bytes = goes_on_with_tables_at(&scratch, "big");
    let there = files(scratch.path("big/team"));
    assert_eq!(there.iter().map(|it| it.1).collect::<Vec<_>>(), [16, bytes.len() as u64]);
    let here = files(scratch.path("srv/volumes/team/tables"));
    assert!(here.len() == 1 && here[0].1 < 100, "{here:?}");
}

/// With a server that speaks like S3, if there is one.
#[test]
#[ignore = "system: a server that speaks like S3, if it is installed"]
#[cfg(feature = "online")]
fn tables_may_be_in_a_bucket() {
    use oblivio_testkit::rigs::{S3Kind, S3Rig};
    let Some(rig) = S3Kind::ALL.into_iter().find_map(|kind| S3Rig::start(kind).ok()) else {
        return eprintln!("skipped: no server that speaks like S3");
    };
    let scratch = Scratch::new();
    goes_on_with_tables_at(&scratch, &rig.url("tables"));
    let here = files(scratch.path("srv/volumes/team/tables"));
    assert!(here.len() == 1 && here[0].1 < 100, "{here:?}");
}

/// A server with its tables in this place, before and after another start. Gives a table's bytes.
fn goes_on_with_tables_at(scratch: &Scratch, place: &str) -> Vec<u8> {
    let served = serve_with(scratch, &["--tables", place]);
    let client = |served: &Served, device: &str| {
        let add = ["share", "token", "add", "srv", "team", device, "--host", &served.address];
        let token = Token::parse(&scratch.good(add)).unwrap();
        RemoteShare::new(token, LinePatience::default()).unwrap()
    };
    let share = client(&served, "anna");
    let mut rig = Rig::new(&share).unwrap();
    let bytes = rig.build(ServerTable(1), 100).unwrap();
    rig.switch(ServerTable(1), &[]).unwrap();
    let spots: Vec<ServerSpot> =
        (0..100).map(|slot| ServerSpot { table: ServerTable(1), slot }).collect();
    assert!(share.slots(rig.term, Number(0), &spots).unwrap() == bytes);
    let term = rig.term;
    drop(share);
    assert_eq!(served.end(), Some(0));

    // Without them the volume is looked after, and not served.
    let said = scratch.good(["share", "status", "srv"]);
    assert!(said.contains("in 1 table"), "{said}");
    let refused = scratch.bad(2, ["share", "serve", "srv", "--listen", "127.0.0.1:0"]);
    assert!(refused.contains("--tables"), "{refused}");
    let served = serve_with(scratch, &["--tables", place]);
    let share = client(&served, "ben");
    assert!(share.slots(term, Number(0), &spots).unwrap() == bytes);
    drop(share);
    assert_eq!(served.end(), Some(0));
    bytes
}
