//! A real server process, killed at random moments under load: nothing that it acknowledged is
//! missing, and it serves again. `just share-kills` makes it longer.

use oblivio_share::{LinePatience, RemoteShare, Server, ShareAddress, Token, admit};
use oblivio_store::share::{
    AskNumber, HistoryEntry, Number, Object, SealedAsk, ServerSpot, ServerTable, Share, ShareError,
};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::share::{Rig, ask_id, entry_of_asks, session_of};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a server takes to come.
const LONG: Duration = Duration::from_secs(60);

const FOLDER: &str = "OBLIVIO_SHARE_TEST_FOLDER";

/// Not a test: the server process, which the test below starts and kills.
#[test]
#[ignore = "system: a server, of the test beside it"]
fn server_process() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = Path::new(&folder);
    let port = std::fs::read_to_string(folder.with_extension("port")).unwrap_or_default();
    let listen = format!("127.0.0.1:{}", port.trim().parse::<u16>().unwrap_or(0));
    let server = Server::start(folder, &listen, &["team".to_owned()]).unwrap();
    std::fs::write(folder.with_extension("port"), server.address().port().to_string()).unwrap();
    server.wait().unwrap();
}

/// A server process, which does not outlive the test.
struct Process(Child);

impl Process {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Path) -> Process {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "it::kills::server_process", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Process(child.unwrap())
}

fn token(folder: &Path) -> Token {
    let begin = Instant::now();
    loop {
        let address = ShareAddress { host: "127.0.0.1".into(), port: 0, volume: "team".into() };
        match admit(folder, "load", address) {
            Ok(mut token) => {
                let port = std::fs::read_to_string(folder.with_extension("port")).unwrap();
                token.address.port = port.parse().unwrap();
                return token;
            }
            other => assert!(begin.elapsed() < LONG, "{other:?}"),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// What the load knows to be durable.
#[derive(Default)]
struct Acknowledged {
    records: u64,
    /// The newest table.
    table: Option<(ServerTable, Vec<u8>)>,
    /// The sums of the newest batch, when it has no answers yet.
    sums: Option<(Number, Vec<u8>)>,
}

fn sealed_of(number: u64) -> Vec<u8> {
    Dice::new(number).bytes(200)
}

/// A claim may be lost with the server: then its own lease has to end first.
fn become_scribe(share: &dyn Share) -> Rig<'_> {
    loop {
        match Rig::new(share) {
            Ok(rig) => return rig,
            Err(error) => assert!(error.may_pass(), "{error:?}"),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// One batch with its answers, and now and then a table, as a scribe does it.
fn round(
    rig: &mut Rig<'_>,
    known: &Mutex<Acknowledged>,
    dice: &mut Dice,
) -> Result<(), ShareError> {
    let (share, term) = (rig.share, rig.term);
    let table = known.lock().unwrap().table.clone();
    if dice.percent(20) || table.is_none() {
        let id = ServerTable(dice.next_u64());
        let bytes = rig.build(id, 64)?;
        let replaced = table.iter().map(|(id, _)| *id).collect();
        let (number, merged) = (rig.next, sealed_of(rig.next.0));
        let switch = oblivio_store::share::SealedSwitch { merged, table: id, replaced };
        share.append(term, number, &HistoryEntry::Switch(switch))?;
        share.durable(term, number)?;
        rig.next.0 += 1;
        let mut known = known.lock().unwrap();
        (known.records, known.table) = (rig.next.0, Some((id, bytes)));
        return Ok(());
    }
    let (number, slot) = (rig.next, dice.below(64) as u32);
    let (id, _) = table.unwrap();
    let asks = [(ask_id(share, 1, number.0), vec![ServerSpot { table: id, slot }])];
    let own = vec![SealedAsk { id: asks[0].0, sealed: vec![number.0 as u8; 4608] }];
    let show = entry_of_asks(&sealed_of(number.0), own, &asks);
    let sums = share.show(term, number, &show)?;
    rig.next.0 += 1;
    {
        let mut known = known.lock().unwrap();
        known.records = rig.next.0;
        known.sums = Some((number, sums.clone()));
    }
    assert_eq!(share.show(term, number, &show)?, sums, "a repeat shows the same");
    let told = rig.next;
    let HistoryEntry::Tell(mut tell) = Rig::answers(number, &[asks[0].0]) else { unreachable!() };
    tell.settle = sealed_of(told.0);
    share.append(term, told, &HistoryEntry::Tell(tell))?;
    share.durable(term, told)?;
    rig.next.0 += 1;
    let mut known = known.lock().unwrap();
    (known.records, known.sums) = (rig.next.0, None);
    Ok(())
}

/// Compares the server with what it acknowledged.
fn check(share: &dyn Share, known: &Acknowledged) {
    let mut from = 0;
    while from < known.records {
        let records = share.records(Number(from), usize::MAX, Duration::ZERO).unwrap();
        for record in records {
            assert_eq!(record.number.0, from);
            assert_eq!(record.sealed, sealed_of(from), "record {from}");
            if let Some(ask) = record.asks.first() {
                assert_eq!(*ask.sealed, vec![from as u8; 4608]);
            }
            from += 1;
        }
    }
    let answers = share.answers(session_of(share, 1), AskNumber(0), Duration::ZERO).unwrap();
    for answer in answers {
        assert_eq!(answer.sealed, answer.id.seq.0.to_le_bytes());
    }
}

#[test]
#[ignore = "system: kills a server"]
fn kills_lose_nothing_that_was_acknowledged() {
    let kills = scaled(4);
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("served");
    let known = Mutex::new(Acknowledged::default());
    let over = AtomicBool::new(false);
    let mut server = start(&folder);
    let share = RemoteShare::new(token(&folder), LinePatience::default()).unwrap();
    let mut again = Vec::new();
    thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut dice = Dice::new(seed(1));
            let mut rig = become_scribe(&share);
            while !over.load(Ordering::SeqCst) {
                match round(&mut rig, &known, &mut dice) {
                    Ok(()) => {}
                    // Pieces of a table went with the server: the scribe builds another one. It
                    // goes on where the history ends, as it does for every later scribe.
                    Err(ShareError::NoObject(Object::Table(_))) => {
                        rig.next = share.status().unwrap().next;
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
        });
        let mut dice = Dice::new(seed(1) + 1);
        for _ in 0..kills {
            thread::sleep(Duration::from_millis(100 + dice.below(300)));
            server.kill();
            let (before, begin) = (known.lock().unwrap().records, Instant::now());
            server = start(&folder);
            while known.lock().unwrap().records == before && !load.is_finished() {
                assert!(begin.elapsed() < LONG, "it serves again");
                thread::sleep(Duration::from_millis(5));
            }
            again.push(begin.elapsed());
            check(&share, &known.lock().unwrap());
        }
        over.store(true, Ordering::SeqCst);
        load.join().unwrap();
    });
    check(&share, &known.lock().unwrap());
    again.sort_unstable();
    let records = known.lock().unwrap().records;
    let median = again.get(again.len() / 2);
    eprintln!("{kills} kills, {records} records, none lost; service again in {median:?} (median)");
}
