//! Volumes that computers share, through the same calls as any other.

use oblivio::{CreateOptions, Error, OpenOptions, Result, Volume};
use oblivio_share::{Server, ShareAddress, admit};
use oblivio_testkit::eventually;
use std::path::PathBuf;
use tempfile::TempDir;

/// A server in this process, and folders of the computers that use it.
pub struct Team {
    folder: TempDir,
    server: Option<Server>,
}

impl Team {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let volumes = ["team".to_owned(), "disk".to_owned()];
        let server = Server::start(&folder.path().join("server"), "127.0.0.1:0", &volumes);
        Self { folder, server: Some(server.expect("a port")) }
    }

    fn port(&self) -> u16 {
        self.server.as_ref().expect("it runs").address().port()
    }

    pub fn place(&self, volume: &str) -> String {
        format!("share://127.0.0.1:{}/{volume}", self.port())
    }

    /// The folder in which a computer keeps what it knows.
    pub fn state(&self, computer: &str) -> PathBuf {
        self.folder.path().join(computer)
    }

    /// The token of a computer for a volume, in a file.
    pub fn token(&self, computer: &str, volume: &str) -> PathBuf {
        let file = self.folder.path().join(format!("{computer}.{volume}.token"));
        if !file.exists() {
            let (host, port) = ("127.0.0.1".to_owned(), self.port());
            let address = ShareAddress { host, port, volume: volume.into() };
            let token = admit(&self.folder.path().join("server"), computer, address);
            token.expect("admitted").store(&file).expect("a file");
        }
        file
    }

    /// How a computer opens the volume the first time.
    pub fn first(&self, computer: &str, volume: &str) -> OpenOptions {
        self.later(computer).token_file(self.token(computer, volume))
    }

    /// How it does later, when it has used its token.
    fn later(&self, computer: &str) -> OpenOptions {
        OpenOptions::new().remember_in(self.state(computer))
    }

    pub fn create(&self, computer: &str, volume: &str) -> CreateOptions {
        let cheap = CreateOptions::new().guessing_cost(32 << 10, 1).size(64 << 20);
        cheap.opened(self.first(computer, volume))
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.ending().end();
            let _ = server.wait();
        }
    }
}

fn names(volume: &Volume, path: &str) -> Result<Vec<String>> {
    let name = |entry: Result<oblivio::DirEntry>| Ok(entry?.name().to_string_lossy().into_owned());
    volume.list(path)?.map(name).collect()
}

#[test]
#[ignore = "system: listens on a port"]
fn two_computers_use_one_volume_at_once() -> Result<()> {
    let team = Team::new();
    let place = team.place("team");
    let one = team.create("anna", "team").create(&place, "secret")?;
    one.create_dir_all("/letters/old")?;
    one.write("/letters/alice.txt", b"See you on Sunday.")?;
    one.sync()?;

    let two = team.first("ben", "team").open(&place, "secret")?;
    assert_eq!(two.read("/letters/alice.txt")?, b"See you on Sunday.");
    assert_eq!(names(&two, "/letters")?, ["alice.txt", "old"]);
    two.rename("/letters/alice.txt", "/letters/alice")?;
    // What one changes, the other sees a round trip later.
    eventually("a new name", || one.exists("/letters/alice").ok().filter(|there| *there));
    assert!(!one.exists("/letters/alice.txt")?);
    // What both append is all there.
    let left = one.create_file("/log")?;
    let right = eventually("a new file", || two.open_file("/log").ok());
    for _ in 0..5 {
        left.append(b"left.")?;
        right.append(b"right")?;
    }
    drop((left, right));
    let log = eventually("all of it", || one.read("/log").ok().filter(|log| log.len() == 50));
    assert_eq!(log.chunks(5).filter(|word| *word == b"left.").count(), 5);
    assert_eq!(two.copy("/log", "/letters/old/log")?, 50);
    let copied = || one.metadata("/letters/old/log").ok().filter(|copy| copy.len() == 50);
    eventually("the copy", copied);
    one.remove_dir_all("/letters")?;
    let left = || names(&two, "/").ok().filter(|left| *left == ["log"]);
    eventually("a directory that is gone", left);
    assert!(one.usage()?.free > 0 && one.idle()?.is_none());
    two.close()?;
    one.close()?;

    // The token is kept, and so is what was there.
    let one = team.later("anna").open(&place, "secret")?;
    assert_eq!(one.read("/log")?.len(), 50);
    one.close()
}

#[test]
#[ignore = "system: listens on a port"]
fn a_shared_volume_refuses_what_it_is_not_for() -> Result<()> {
    let team = Team::new();
    let place = team.place("team");
    let create = || team.create("anna", "team");
    assert!(matches!(create().one_file().create(&place, "secret"), Err(Error::Invalid(_))));
    assert!(matches!(create().create(&place, ""), Err(Error::Invalid(_))));
    assert!(matches!(create().create_disk(&place, "secret", 7), Err(Error::Invalid(_))));
    create().create(&place, "secret")?.close()?;
    assert!(matches!(create().create(&place, "secret"), Err(Error::Exists(_))));
    let open = |options: OpenOptions| options.open(&place, "secret").map(drop);
    assert!(matches!(open(team.later("ben")), Err(Error::Refused(why)) if why.contains("token")));
    let other = team.later("ben").token_file(team.token("ben", "disk"));
    assert!(matches!(open(other), Err(Error::Refused(_))));
    assert!(matches!(open(team.first("ben", "team").pad(true)), Err(Error::Invalid(_))));
    let ben = team.first("ben", "team");
    assert!(matches!(ben.open(&place, "guess"), Err(Error::WrongPassphrase)));
    let disk = team.first("ben", "team").open_disk(&place, "secret");
    assert!(matches!(disk, Err(Error::HoldsFiles)));
    assert!(matches!(Volume::open("share://nowhere", "secret"), Err(Error::Invalid(_))));
    // Who keeps nothing needs the token each time.
    let nowhere = || team.later("carl").without_rollback_protection();
    assert!(matches!(open(nowhere()), Err(Error::Refused(_))));
    open(nowhere().token_file(team.token("carl", "team")))?;
    assert!(!team.state("carl").exists());
    // One process of a computer at a time: what it knows would not be the newest.
    let _one = team.later("anna").open(&place, "secret")?;
    assert!(matches!(open(team.later("anna")), Err(Error::Busy)));
    Ok(())
}

#[test]
#[ignore = "system: listens on a port"]
fn one_computer_at_a_time_has_a_shared_disk() -> Result<()> {
    let team = Team::new();
    let place = team.place("disk");
    let disk = team.create("anna", "disk").create_disk(&place, "secret", 1 << 20)?;
    disk.write_at(5000, b"written")?;
    disk.sync()?;
    let other = team.first("ben", "disk");
    assert!(matches!(other.clone().open_disk(&place, "secret"), Err(Error::Busy)));
    disk.write_at((1 << 20) - 3, b"end")?;
    disk.close()?;
    let disk = other.open_disk(&place, "secret")?;
    assert_eq!((disk.len(), disk.read_at(4999, 9)?), (1 << 20, b"\0written\0".to_vec()));
    assert_eq!(disk.read_at((1 << 20) - 3, 3)?, b"end");
    disk.trim(0, 1 << 20)?;
    assert_eq!(disk.read_at(5000, 7)?, [0; 7]);
    disk.close()?;
    assert!(matches!(team.later("anna").open(&place, "secret"), Err(Error::HoldsDisk)));
    Ok(())
}
