//! A server on loopback, with its clients.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

use oblivio_share::{
    Address, Device, Granted, Patience, RemoteShare, Server, Token, Wish, random, secret_hash, wish,
};
use oblivio_store::share::{
    Arrival, Ask, Clock, Entry, Number, Object, Seq, Session, Share, ShareError, Spot, TableId,
};
use oblivio_testkit::share::{Rig, ShareOpener, ask_id, model, refused_ask, suites};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server with the volume `team`.
struct Served {
    dir: TempDir,
    server: Option<Server>,
}

impl Served {
    fn new(clock: Option<Clock>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let volumes = ["team".to_owned(), "other".to_owned()];
        let server = match clock {
            Some(clock) => Server::with_clock(dir.path(), "127.0.0.1:0", &volumes, clock),
            None => Server::start(dir.path(), "127.0.0.1:0", &volumes),
        };
        Self { dir, server: Some(server.unwrap()) }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn token(&self, device: &str) -> Token {
        token(self.dir.path(), device, self.server().address().port())
    }

    fn client(&self, device: &str) -> RemoteShare {
        RemoteShare::new(self.token(device), Patience::default()).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.ending().end();
            server.wait().unwrap();
        }
    }
}

fn device(name: &str) -> Device {
    Device { volume: "team".into(), name: name.into() }
}

fn token(dir: &Path, name: &str, port: u16) -> Token {
    let secret = random().unwrap();
    let wanted = Wish::Add(device(name), secret_hash(&secret));
    let Granted::Done(fingerprint) = wish(dir, &wanted).unwrap() else { panic!() };
    let address = Address { host: "127.0.0.1".into(), port, volume: "team".into() };
    Token { address, fingerprint, secret: secret.into() }
}

fn ask(session: u64, seq: u64) -> Ask {
    Ask { id: ask_id(session, seq), sealed: vec![seq as u8; 100] }
}

#[test]
fn a_server_keeps_the_promises_of_the_port() {
    let fresh = |clock: Clock| -> ShareOpener {
        let served = Served::new(Some(clock));
        let token = served.token("laptop");
        Box::new(move || {
            let _ = &served;
            Box::new(RemoteShare::new(token.clone(), Patience::default()).unwrap())
        })
    };
    suites(&fresh);
    model(&fresh, 0..2);
}

/// A follower asks, a scribe answers, both wait for each other; lines break meanwhile.
#[test]
fn two_clients_meet_over_lines_that_break() {
    const ASKS: u64 = 60;
    let served = Served::new(None);
    let (scribe, follower) = (served.client("scribe"), served.client("follower"));
    let rig = Rig::new(&scribe).unwrap();
    rig.build(TableId(1), 4).unwrap();
    let mut rig = Rig { ..rig };
    rig.switch(TableId(1), &[]).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut from, mut done) = (Arrival(0), 0);
            while done < ASKS {
                let (asks, next) = scribe.asks(rig.term, from, Duration::from_secs(5)).unwrap();
                from = next;
                if asks.is_empty() {
                    continue;
                }
                let spots = || vec![Spot { table: TableId(1), slot: 2 }];
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
                follower.ask(&[ask(9, seq)]).unwrap();
                let begin = Instant::now();
                loop {
                    let wait = Duration::from_secs(5);
                    let answers = follower.answers(Session(9), Seq(seq), wait).unwrap();
                    if let Some(answer) = answers.first() {
                        assert_eq!(answer.sealed, seq.to_le_bytes());
                        break;
                    }
                    assert!(begin.elapsed() < Duration::from_secs(20), "an answer to {seq}");
                }
            }
        });
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(40));
            served.server().cut_connections();
        }
    });
    let records = scribe.records(Number(0), usize::MAX, Duration::ZERO).unwrap();
    let asks: usize = records.iter().map(|record| record.asks.len()).sum();
    assert_eq!(asks as u64, ASKS, "each ask is in one batch");
}

/// Records that are sent one after the other, without waiting, while lines break: all are there,
/// once and in order.
#[test]
fn records_keep_their_order_over_lines_that_break() {
    let served = Served::new(None);
    let scribe = served.client("scribe");
    let rig = Rig::new(&scribe).unwrap();
    for number in 0..200u64 {
        let note = Entry::Note(number.to_le_bytes().to_vec());
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
    let served = Served::new(None);
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
    let served = Served::new(None);
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
    let served = Served::new(None);
    let scribe = served.client("scribe");
    let rig = Rig::new(&scribe).unwrap();
    let note = Entry::Note(vec![1]);
    scribe.append(rig.term, Number(5), &note).unwrap();
    let done = scribe.durable(rig.term, Number(5));
    assert!(matches!(done, Err(ShareError::Gap(Number(0)))), "{done:?}");
    scribe.append(rig.term, Number(0), &note).unwrap();
    scribe.durable(rig.term, Number(0)).unwrap();
}

#[test]
fn a_revoked_device_is_cut_off_at_once() {
    let served = Served::new(None);
    let (one, two) = (served.client("one"), served.client("two"));
    Rig::new(&one).unwrap();
    two.status().unwrap();
    let waiting = thread::spawn(move || {
        let begin = Instant::now();
        let done = two.answers(Session(2), Seq(0), Duration::from_secs(25));
        (done, begin.elapsed())
    });
    thread::sleep(Duration::from_millis(200));
    let Granted::Status(volumes, true) = wish(served.dir.path(), &Wish::Status).unwrap() else {
        panic!()
    };
    let team = volumes.iter().find(|it| it.volume == "team").unwrap();
    assert!(team.connected.contains(&"two".to_owned()), "{team:?}");
    wish(served.dir.path(), &Wish::Revoke(device("two"))).unwrap();
    let (done, took) = waiting.join().unwrap();
    assert!(matches!(done, Err(ShareError::Denied(_))), "{done:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    one.status().unwrap();
    let Granted::Devices(left) = wish(served.dir.path(), &Wish::List).unwrap() else { panic!() };
    assert_eq!(left, [device("one")]);
}

#[test]
fn others_are_not_admitted() {
    let served = Served::new(None);
    let good = served.token("laptop");
    let refused = |token: &Token| {
        let share = RemoteShare::new(token.clone(), Patience::default()).unwrap();
        let done = share.status();
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
    RemoteShare::new(good, Patience::default()).unwrap().status().unwrap();
}

#[test]
fn a_session_is_one_devices() {
    let served = Served::new(None);
    let (one, two) = (served.client("one"), served.client("two"));
    Rig::new(&one).unwrap();
    one.ask(&[ask(1, 0)]).unwrap();
    // The server has it before it replies to this.
    one.answers(Session(1), Seq(0), Duration::ZERO).unwrap();
    assert!(matches!(refused_ask(&two, &ask(1, 1)), ShareError::Denied(_)));
    let answers = two.answers(Session(1), Seq(0), Duration::ZERO);
    assert!(matches!(answers, Err(ShareError::Denied(_))));
    two.ask(&[ask(2, 0)]).unwrap();
}

#[test]
fn a_quota_of_a_server_that_runs_holds() {
    let served = Served::new(None);
    let one = served.client("one");
    Rig::new(&one).unwrap();
    wish(served.dir.path(), &Wish::Quota("team".into(), Some(1))).unwrap();
    assert!(matches!(refused_ask(&one, &ask(1, 0)), ShareError::Quota));
    wish(served.dir.path(), &Wish::Quota("team".into(), None)).unwrap();
    one.ask(&[ask(1, 0)]).unwrap();
    let nothing = wish(served.dir.path(), &Wish::Quota("nothing".into(), None));
    assert!(matches!(nothing, Err(oblivio_share::Error::NoVolume(_))));
}

/// Idle connections of nobody known: a client is served beside them.
#[test]
fn strangers_keep_nobody_out() {
    let served = Served::new(None);
    let address = served.server().address();
    let strangers: Vec<TcpStream> =
        (0..400).map(|_| TcpStream::connect(address).unwrap()).collect();
    let begin = Instant::now();
    served.client("laptop").status().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    drop(strangers);
}

#[test]
fn one_server_has_a_folder_and_a_later_one_all_of_it() {
    let served = Served::new(None);
    let dir = served.dir.path();
    assert!(Server::start(dir, "127.0.0.1:0", &[]).is_err());
    let token = served.token("laptop");
    let client = RemoteShare::new(token.clone(), Patience::default()).unwrap();
    let mut rig = Rig::new(&client).unwrap();
    rig.add(&Entry::Note(vec![7; 9])).unwrap();
    drop(client);
    let mut served = served;
    let server = served.server.take().unwrap();
    server.ending().end();
    server.wait().unwrap();
    // Nothing runs: the same is done on the folder.
    let dir = served.dir.path();
    let Granted::Devices(devices) = wish(dir, &Wish::List).unwrap() else { panic!() };
    assert_eq!(devices, [device("laptop")]);
    let Granted::Status(_, runs) = wish(dir, &Wish::Status).unwrap() else { panic!() };
    assert!(!runs);
    let server = Server::start(dir, "127.0.0.1:0", &[]).unwrap();
    assert_eq!(server.fingerprint(), token.fingerprint, "it is who it was");
    let mut token = token;
    token.address.port = server.address().port();
    let client = RemoteShare::new(token, Patience::default()).unwrap();
    let records = client.records(Number(0), usize::MAX, Duration::ZERO).unwrap();
    assert_eq!(records[0].sealed, [7; 9]);
    drop(client);
    server.ending().end();
    server.wait().unwrap();
}

/// The server links no key of a volume, and no engine.
#[test]
fn no_key_and_no_engine_is_linked() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let done = std::process::Command::new(cargo)
        .args(["tree", "--offline", "-p", "oblivio-share", "-e", "normal", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let ours: std::collections::BTreeSet<&str> =
        tree.split_whitespace().filter(|word| word.starts_with("oblivio")).collect();
    let expected = ["oblivio-share", "oblivio-store"];
    assert!(ours.into_iter().eq(expected), "{tree}");
}
