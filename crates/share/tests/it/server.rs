//! A server and its clients, over pairs of sockets; and some over ports.

use oblivio_share::{
    AdminRequest, Granted, KnownDevice, LinePatience, RemoteShare, Server, ShareAddress, Token,
    admit, wish,
};
use oblivio_store::StoreError;
use oblivio_store::share::{
    Arrival, AskNumber, HistoryEntry, Number, Object, SealedAsk, ServerSpot, ServerTable, Share,
    ShareClock, ShareError,
};
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::share::{
    Rig, ShareOpener, TestClock, ask_id, model, refused_ask, session_of, suites,
};
use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(60);

/// Starts a server on a folder that one before had, once the threads of that one's connections have
/// left it: it waits a second for them, and a busy computer may take longer.
pub fn once_free<T>(start: impl Fn() -> oblivio_share::Result<T>) -> oblivio_share::Result<T> {
    loop {
        match start() {
            Err(
                oblivio_share::Error::Store(StoreError::Busy)
                | oblivio_share::Error::Share(ShareError::Store(StoreError::Busy)),
            ) => thread::yield_now(),
            started => return started,
        }
    }
}

/// A server with the volume `team`.
pub struct Served {
    pub dir: TempDir,
    server: Option<Server>,
}

impl Served {
    pub fn new() -> Self {
        // Time stands still, so that no lease ends on a busy computer.
        Self::with(|dir, volumes| Server::within(dir, volumes, TestClock::default().clock()))
    }

    /// Ends it; the folder stays.
    pub fn end(&mut self) {
        if let Some(server) = self.server.take() {
            server.ending().end();
            server.wait().unwrap();
        }
    }

    /// Starts it again on its folder.
    pub fn start(&mut self, clock: ShareClock) -> oblivio_share::Result<()> {
        let volumes = ["team".to_owned(), "other".to_owned()];
        let start = || Server::within(self.dir.path(), &volumes, clock.clone());
        self.server = Some(once_free(start)?);
        Ok(())
    }

    fn on_a_port() -> Self {
        Self::with(|dir, volumes| Server::start(dir, "127.0.0.1:0", volumes))
    }

    pub fn with(start: impl FnOnce(&Path, &[String]) -> oblivio_share::Result<Server>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = start(dir.path(), &["team".to_owned(), "other".to_owned()]);
        Self { dir, server: Some(server.unwrap()) }
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub fn token(&self, device: &str) -> Token {
        token(self.dir.path(), device, self.server().address().port())
    }

    pub fn client(&self, device: &str) -> RemoteShare {
        self.client_with(self.token(device))
    }

    pub fn client_with(&self, token: Token) -> RemoteShare {
        if token.address.port != 0 {
            return RemoteShare::new(token, LinePatience::default()).unwrap();
        }
        let door = self.server().door();
        let dial = move || {
            let (ours, theirs) = UnixStream::pair()?;
            door.admit(theirs).map(|()| ours)
        };
        RemoteShare::over(token, LinePatience::default(), Box::new(dial)).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

fn device(name: &str) -> KnownDevice {
    KnownDevice { volume: "team".into(), name: name.into() }
}

fn token(dir: &Path, name: &str, port: u16) -> Token {
    let address = ShareAddress { host: "127.0.0.1".into(), port, volume: "team".into() };
    let token = admit(dir, name, address).unwrap();
    let address = ShareAddress { port, ..token.address };
    Token { address, ..token }
}

pub fn ask(share: &dyn Share, session: u64, seq: u64) -> SealedAsk {
    SealedAsk { id: ask_id(share, session, seq), sealed: vec![seq as u8; 100] }
}

#[test]
fn a_server_keeps_the_promises_of_the_port() {
    let fresh = |clock: ShareClock| -> ShareOpener {
        let served = Served::with(|dir, volumes| Server::within(dir, volumes, clock));
        let token = served.token("laptop");
        Box::new(move || Box::new(served.client_with(token.clone())))
    };
    suites(&fresh);
    let first = seed(0);
    model(&fresh, first..first + scaled(2));
}

/// A follower asks, a scribe answers, both wait for each other; lines break meanwhile.
fn meet(served: &Served) {
    const ASKS: u64 = 60;
    let (scribe, follower) = (served.client("scribe"), served.client("follower"));
    let rig = Rig::new(&scribe).unwrap();
    rig.build(ServerTable(1), 4).unwrap();
    let mut rig = Rig { ..rig };
    rig.switch(ServerTable(1), &[]).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut from, mut done) = (Arrival(0), 0);
            while done < ASKS {
                let (asks, next) = scribe.asks(rig.term, from, Duration::from_secs(5)).unwrap();
                from = next;
                if asks.is_empty() {
                    continue;
                }
                let spots = || vec![ServerSpot { table: ServerTable(1), slot: 2 }];
                let ids: Vec<_> = asks.iter().map(|ask| ask.id).collect();
                let fetches: Vec<_> = ids.iter().map(|id| (*id, spots())).collect();
                let (batch, sums) = rig.show(&fetches).unwrap();
                assert_eq!(sums.len(), 48 * ids.len());
                rig.tell(batch, &ids).unwrap();
                done += ids.len() as u64;
            }
        });
        scope.spawn(|| {
            for seq in 0..ASKS {
                follower.ask(&[ask(&follower, 9, seq)]).unwrap();
                // The scribe may be at work on it.
                if seq % 12 == 6 {
                    served.server().cut_connections();
                }
                let begin = Instant::now();
                loop {
                    let wait = Duration::from_secs(5);
                    let answers =
                        follower.answers(session_of(&follower, 9), AskNumber(seq), wait).unwrap();
                    if let Some(answer) = answers.first() {
                        assert_eq!(answer.sealed, seq.to_le_bytes());
                        break;
                    }
                    assert!(begin.elapsed() < LONG, "an answer to {seq}");
                }
            }
        });
    });
    let records = scribe.records(Number(0), usize::MAX, Duration::ZERO).unwrap();
    let asks: usize = records.iter().map(|record| record.asks.len()).sum();
    assert_eq!(asks as u64, ASKS, "each ask is in one batch");
}

#[test]
fn two_clients_meet_over_lines_that_break() {
    meet(&Served::new());
}

#[test]
#[ignore = "system: listens on a port"]
fn two_clients_meet_over_a_network_that_breaks() {
    meet(&Served::on_a_port());
}

/// Records that are sent one after the other, without waiting, while lines break: all are there,
/// once and in order.
#[test]
fn records_keep_their_order_over_lines_that_break() {
    let served = Served::new();
    let scribe = served.client("scribe");
    let rig = Rig::new(&scribe).unwrap();
    for number in 0..200u64 {
        let note = HistoryEntry::Note(number.to_le_bytes().to_vec());
        scribe.append(rig.term, Number(number), &note).unwrap();
        if number % 40 == 20 {
            served.server().cut_connections();
        }
    }
    scribe.durable(rig.term, Number(199)).unwrap();
    let records = scribe.records(Number(0), usize::MAX, Duration::ZERO).unwrap();
    let read: Vec<u64> = records
        .iter()
        .map(|record| u64::from_le_bytes(record.sealed[..].try_into().unwrap()))
        .collect();
    assert!(read.into_iter().eq(0..200));
}

/// Pieces are sent without waiting. What a broken line lost is sent again, before the end.
#[test]
fn pieces_are_stored_once_and_in_order_over_lines_that_break() {
    let served = Served::new();
    let scribe = served.client("scribe");
    let rig = Rig::new(&scribe).unwrap();
    let object = Object::Checkpoint(Number(0));
    let piece = |number: u64| number.to_le_bytes().repeat(1000);
    for number in 0..200 {
        scribe.upload(rig.term, object, number * 8000, &piece(number)).unwrap();
        if number % 40 == 20 {
            served.server().cut_connections();
        }
    }
    scribe.finish(rig.term, object, 200 * 8000).unwrap();
    scribe.save(rig.term, Number(0), Number(0)).unwrap();
    for number in 0..200 {
        let read = scribe.read_checkpoint(Number(0), number * 8000, 8000).unwrap();
        assert_eq!(read, piece(number), "{number}");
    }
}

#[test]
fn a_refused_piece_says_why_at_the_end_of_its_object() {
    let served = Served::new();
    let scribe = served.client("scribe");
    let rig = Rig::new(&scribe).unwrap();
    let object = Object::Checkpoint(Number(0));
    scribe.upload(rig.term, object, 0, &[1; 8]).unwrap();
    scribe.upload(rig.term, object, 0, &[2; 8]).unwrap();
    let done = scribe.finish(rig.term, object, 8);
    assert!(matches!(done, Err(ShareError::Invalid(_))), "{done:?}");
    scribe.finish(rig.term, object, 8).unwrap();
}

#[test]
fn a_refused_record_says_why() {
    let served = Served::new();
    let scribe = served.client("scribe");
    let rig = Rig::new(&scribe).unwrap();
    let note = HistoryEntry::Note(vec![1]);
    scribe.append(rig.term, Number(5), &note).unwrap();
    let done = scribe.durable(rig.term, Number(5));
    assert!(matches!(done, Err(ShareError::Gap(Number(0)))), "{done:?}");
    scribe.append(rig.term, Number(0), &note).unwrap();
    scribe.durable(rig.term, Number(0)).unwrap();
}

#[test]
fn a_revoked_device_is_cut_off_at_once() {
    let served = Served::new();
    let (one, two) = (served.client("one"), served.client("two"));
    Rig::new(&one).unwrap();
    two.status().unwrap();
    // Longer than the test is patient: what ends it is that the line is cut.
    let two = Arc::new(two);
    let (waits, (tell, told)) = (Arc::clone(&two), channel());
    thread::spawn(move || tell.send(waits.answers(session_of(&waits, 2), AskNumber(0), 10 * LONG)));
    // The server carries out calls that wait beside others. By now it has that one, or else it
    // refuses it when it comes.
    for _ in 0..20 {
        two.status().unwrap();
    }
    let Granted::Status(volumes, true, _) = wish(served.dir.path(), &AdminRequest::Status).unwrap()
    else {
        panic!()
    };
    let team = volumes.iter().find(|it| it.volume == "team").unwrap();
    assert!(team.connected.contains(&"two".to_owned()), "{team:?}");
    wish(served.dir.path(), &AdminRequest::Revoke(device("two"))).unwrap();
    let done = told.recv_timeout(LONG).unwrap();
    assert!(matches!(done, Err(ShareError::Denied(_))), "{done:?}");
    one.status().unwrap();
    let Granted::Devices(left) = wish(served.dir.path(), &AdminRequest::List).unwrap() else {
        panic!()
    };
    assert_eq!(left, [device("one")]);
}

#[test]
fn others_are_not_admitted() {
    let served = Served::new();
    let good = served.token("laptop");
    let refused = |token: &Token| {
        let done = served.client_with(token.clone()).status();
        assert!(matches!(done, Err(ShareError::Denied(_))), "{done:?}");
    };
    let mut wrong = good.clone();
    wrong.secret[0] ^= 1;
    refused(&wrong);
    let mut wrong = good.clone();
    wrong.fingerprint[31] ^= 1;
    refused(&wrong);
    let mut wrong = good.clone();
    wrong.address.volume = "other".into();
    refused(&wrong);
    wrong.address.volume = "nothing".into();
    refused(&wrong);
    served.client_with(good).status().unwrap();
}

#[test]
fn a_session_is_one_devices() {
    let served = Served::new();
    let (one, two) = (served.client("one"), served.client("two"));
    Rig::new(&one).unwrap();
    one.ask(&[ask(&one, 1, 0)]).unwrap();
    // The server has it before it replies to this.
    one.answers(session_of(&one, 1), AskNumber(0), Duration::ZERO).unwrap();
    let refused = || {
        // Before anything else, after many others, and after a new start of the server.
        assert!(matches!(refused_ask(&two, &ask(&one, 1, 1)), ShareError::Denied(_)));
        let answers = two.answers(session_of(&one, 1), AskNumber(0), Duration::ZERO);
        assert!(matches!(answers, Err(ShareError::Denied(_))));
    };
    refused();
    for first in 0..80 {
        let sessions: Vec<SealedAsk> = (0..1000).map(|n| ask(&two, first * 1000 + n, 0)).collect();
        let _ = two.ask(&sessions);
    }
    // The replies to those come before the one to this; the next call returns the first error.
    two.status().unwrap();
    while two.ask(&[]).is_err() {}
    refused();
    one.ask(&[ask(&one, 1, 1)]).unwrap();
    one.answers(session_of(&one, 1), AskNumber(0), Duration::ZERO).unwrap();
}

#[test]
fn a_quota_of_a_server_that_runs_holds() {
    let served = Served::new();
    let one = served.client("one");
    Rig::new(&one).unwrap();
    wish(served.dir.path(), &AdminRequest::Quota("team".into(), Some(1))).unwrap();
    assert!(matches!(refused_ask(&one, &ask(&one, 1, 0)), ShareError::Quota));
    wish(served.dir.path(), &AdminRequest::Quota("team".into(), None)).unwrap();
    one.ask(&[ask(&one, 1, 0)]).unwrap();
    let nothing = wish(served.dir.path(), &AdminRequest::Quota("nothing".into(), None));
    assert!(matches!(nothing, Err(oblivio_share::Error::NoVolume(_))));
}

/// Idle connections of nobody known: a client is served beside them.
#[test]
fn strangers_keep_nobody_out() {
    let served = Served::new();
    let client = served.client("laptop");
    // A computer that stands still for long enough gives them up before it serves others.
    let beside = (0..3).any(|_| {
        let strangers: Vec<_> = (0..400).map(|_| stranger(&served)).collect();
        served.server().cut_connections();
        client.status().unwrap();
        assert!(!strangers[..100].iter().any(is_open), "the oldest had to go");
        strangers[200..].iter().all(is_open)
    });
    assert!(beside, "it did not wait until the time of the others was over");
}

fn stranger(served: &Served) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    served.server().door().admit(theirs).unwrap();
    ours.set_nonblocking(true).unwrap();
    ours
}

fn is_open(mut stranger: &UnixStream) -> bool {
    stranger.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
#[ignore = "system: listens on a port"]
fn one_server_has_a_folder_and_a_later_one_all_of_it() {
    let served = Served::on_a_port();
    let dir = served.dir.path();
    assert!(Server::start(dir, "127.0.0.1:0", &[]).is_err());
    let token = served.token("laptop");
    // The server that runs says on which port.
    let by_host = admit(dir, "phone", ShareAddress::at("127.0.0.1", "team").unwrap()).unwrap();
    assert_eq!(by_host.address, token.address);
    wish(dir, &AdminRequest::Revoke(device("phone"))).unwrap();
    let client = RemoteShare::new(token.clone(), LinePatience::default()).unwrap();
    let mut rig = Rig::new(&client).unwrap();
    rig.add(&HistoryEntry::Note(vec![7; 9])).unwrap();
    drop(client);
    let mut served = served;
    let server = served.server.take().unwrap();
    server.ending().end();
    server.wait().unwrap();
    // Nothing runs: the same is done on the folder.
    let dir = served.dir.path();
    let Granted::Devices(devices) = wish(dir, &AdminRequest::List).unwrap() else { panic!() };
    assert_eq!(devices, [device("laptop")]);
    let Granted::Status(_, runs, _) = wish(dir, &AdminRequest::Status).unwrap() else { panic!() };
    assert!(!runs);
    let server = once_free(|| Server::start(dir, "127.0.0.1:0", &[])).unwrap();
    assert_eq!(server.fingerprint(), token.fingerprint, "it is who it was");
    let mut token = token;
    token.address.port = server.address().port();
    let client = RemoteShare::new(token, LinePatience::default()).unwrap();
    let records = client.records(Number(0), usize::MAX, Duration::ZERO).unwrap();
    assert_eq!(records[0].sealed, [7; 9]);
    drop(client);
    server.ending().end();
    server.wait().unwrap();
}

/// The server links no key of a volume, and no engine.
#[test]
fn no_key_and_no_engine_is_linked() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut ours, mut next) = (BTreeSet::new(), vec!["share".to_owned()]);
    while let Some(name) = next.pop() {
        let text = fs::read_to_string(crates.join(&name).join("Cargo.toml")).unwrap();
        let mut is_linked = false;
        for line in text.lines() {
            if let Some(section) = line.strip_prefix('[') {
                // Those of one system too, and those of a feature; not those of tests.
                is_linked = section.split(['.', ']']).any(|part| part == "dependencies");
                assert!(!is_linked || section.ends_with("dependencies]"), "{name}: {line}");
            } else if is_linked && let Some(at) = line.find("oblivio-") {
                let name = line[at + 8..].split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
                next.extend(name.take(1).map(str::to_owned));
            }
        }
        ours.insert(name);
    }
    assert!(ours.iter().map(String::as_str).eq(["share", "store"]), "{ours:?}");
}
