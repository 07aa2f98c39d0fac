//! A device that is known and means harm, a volume that is damaged, files that others might read:
//! who else feels it.

use super::server::{Served, ask};
use crate::connections::MOST_OF_DEVICE;
use crate::frame::{FrameKind, MOST_FRAME};
use crate::identity::pinned;
use crate::message::Lane;
use crate::remote::greet;
use oblivio_share::{AdminRequest, Error, Granted, RemoteShare, Server, VolumeStatus, wish};
use oblivio_store::share::{AskNumber, HistoryEntry, Number, SealedAsk, Share, ShareError};
use oblivio_testkit::eventually;
use oblivio_testkit::share::{Rig, TestClock, session_of};
use std::collections::VecDeque;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

fn status(served: &Served) -> VolumeStatus {
    let Granted::Status(mut volumes, true, _) =
        wish(served.dir.path(), &AdminRequest::Status).unwrap()
    else {
        panic!("it runs")
    };
    volumes.retain(|it| it.volume == "team");
    volumes.pop().unwrap()
}

/// Sends asks of 80,000 sessions of the device. The server refuses most of them.
fn flood(device: &RemoteShare) {
    for first in 0..80 {
        let asks: Vec<SealedAsk> = (0..1000).map(|n| ask(device, first * 1000 + n, 0)).collect();
        match device.ask(&asks) {
            Ok(()) | Err(ShareError::Busy) => {}
            Err(error) => panic!("{error}"),
        }
    }
    // The server has them, or refused them, before it replies to this.
    let _ = device.ask(&[]);
    device.answers(session_of(device, 0), AskNumber(0), Duration::ZERO).unwrap();
}

#[test]
fn a_flood_of_asks_fills_its_own_share_only() {
    let served = Served::new();
    let (one, two) = (served.client("one"), served.client("two"));
    let mut rig = Rig::new(&one).unwrap();
    flood(&two);
    let found = status(&served);
    let junk = found.status.pending;
    assert!((1000..10_000).contains(&junk), "{junk}");
    assert_eq!(found.waiting, [("two".to_owned(), junk)], "its owner is named");
    one.ask(&[ask(&one, 1, 0)]).unwrap();
    let id = ask(&one, 1, 0).id;
    let (batch, _) = rig.show(&[(id, vec![])]).unwrap();
    rig.tell(batch, &[id]).unwrap();
    let answers = one.answers(id.session, AskNumber(0), Duration::from_secs(60)).unwrap();
    assert_eq!(answers.len(), 1);
}

#[test]
fn what_a_gone_device_asked_goes() {
    let clock = TestClock::default();
    let served = Served::with(|dir, volumes| Server::within(dir, volumes, clock.clock()));
    let one = served.client("one");
    Rig::new(&one).unwrap();
    one.ask(&[ask(&one, 1, 0)]).unwrap();
    let two = served.client("two");
    flood(&two);
    assert!(status(&served).status.pending > 1000);
    drop(two);
    let left = || status(&served).connected.iter().all(|name| name == "one").then_some(());
    eventually("it has left", left);
    clock.pass(Duration::from_secs(59));
    one.status().unwrap();
    assert!(status(&served).status.pending > 1000, "it may come again");
    clock.pass(Duration::from_secs(2));
    eventually("its asks are gone", || (status(&served).status.pending == 1).then_some(()));
}

/// The beginning of the longest frame.
fn half_a_frame() -> Vec<u8> {
    let mut begin = (MOST_FRAME as u32).to_le_bytes().to_vec();
    begin.push(FrameKind::Call as u8);
    begin.extend([0; 12]);
    begin
}

/// Many connections of one device, each in the middle of a long frame.
#[test]
fn half_frames_of_one_device_hold_up_nobody() {
    let served = Served::new();
    let (one, token) = (served.client("one"), served.token("two"));
    one.status().unwrap();
    let half = |_| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        served.server().door().admit(theirs).unwrap();
        let (config, until) = (pinned(token.fingerprint).unwrap(), Instant::now() + LONG);
        let lines = greet(ours.into(), &token, &config, Lane::Foreground, until).unwrap();
        lines.1.send([&half_a_frame()]).unwrap();
        lines
    };
    let lines: Vec<_> = (0..3 * MOST_OF_DEVICE).map(half).collect();
    let of_two = |it: &VolumeStatus| it.connected.iter().filter(|name| *name == "two").count();
    let found = status(&served);
    assert_eq!(of_two(&found), MOST_OF_DEVICE, "its own oldest ones had to go");
    one.status().unwrap();
    drop(lines);
    eventually("they are gone", || (of_two(&status(&served)) == 0).then_some(()));
}

fn log_of(dir: &Path, volume: &str) -> PathBuf {
    dir.join("volumes").join(volume).join("log/0000000000000000")
}

/// A record in the middle of a history cannot be read: its volume is named, and nothing of it
/// changed; the other is served. So it is with one whose catalog is no catalog.
#[test]
fn a_damaged_volume_is_named_and_the_others_are_served() {
    let served = Served::new();
    let client = served.client("one");
    let mut rig = Rig::new(&client).unwrap();
    for note in 0..5 {
        rig.add(&HistoryEntry::Note(vec![note; 50])).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    drop(client);
    let start = |damage: &dyn Fn(&Path)| {
        let _ = fs::remove_dir_all(dir.path());
        copy(served.dir.path(), dir.path());
        damage(dir.path());
        // And the second copies are gone.
        fs::remove_dir_all(dir.path().join("volumes/team/second")).unwrap();
        let before = fs::read(log_of(dir.path(), "team")).unwrap();
        let clock = TestClock::default().clock();
        let server = Server::within(dir.path(), &["team".into(), "other".into()], clock).unwrap();
        let findings = server.findings();
        let wished = wish(dir.path(), &AdminRequest::Quota("team".into(), None));
        assert!(matches!(wished, Err(Error::Said(_) | Error::Damaged { .. })), "{wished:?}");
        wish(dir.path(), &AdminRequest::Quota("other".into(), None)).unwrap();
        server.ending().end();
        server.wait().unwrap();
        assert_eq!(fs::read(log_of(dir.path(), "team")).unwrap(), before);
        findings
    };
    let findings = start(&|dir| {
        let mut bytes = fs::read(log_of(dir, "team")).unwrap();
        bytes[60] ^= 1;
        fs::write(log_of(dir, "team"), bytes).unwrap();
    });
    assert!(findings.len() == 1 && findings[0].starts_with("team is not served"), "{findings:?}");
    let findings = start(&|dir| fs::write(dir.join("volumes/team/catalog"), "no catalog").unwrap());
    assert!(findings.len() == 1 && findings[0].starts_with("team is not served"), "{findings:?}");
}

/// Copies what a server left: it still runs, and has written all that it acknowledged.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&path, &to);
        } else if kind.is_file() {
            fs::copy(&path, &to).unwrap();
        }
    }
}

fn all_of(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let inside = |path: PathBuf| match path.is_dir() {
        true => [vec![path.clone()], all_of(&path)].concat(),
        false => vec![path],
    };
    entries.flat_map(inside).collect()
}

#[test]
fn nothing_in_the_folder_is_for_others() {
    let served = Served::new();
    let one = served.client("one");
    let mut rig = Rig::new(&one).unwrap();
    rig.add(&HistoryEntry::Note(vec![7; 9])).unwrap();
    let open = |path: &&PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o077 != 0;
    let all = all_of(served.dir.path());
    assert!(all.len() >= 9, "{all:?}");
    assert_eq!(all.iter().filter(open).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
}

/// The most memory that this process has had, in MiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// How long an operation of a device takes, in the middle of many: an ask, its batch, its answer.
fn operations(rig: &mut Rig<'_>, first: u64) -> Duration {
    let one = rig.share;
    let mut times: Vec<Duration> = (first..first + 300)
        .map(|seq| {
            let (begun, id) = (Instant::now(), ask(one, 1, seq).id);
            one.ask(&[ask(one, 1, seq)]).unwrap();
            let (batch, _) = rig.show(&[(id, vec![])]).unwrap();
            rig.tell(batch, &[id]).unwrap();
            assert!(!one.answers(id.session, id.seq, LONG).unwrap().is_empty());
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// While a device does its worst at a server: floods with 100,000 sessions, asks for the whole
/// history again and again, holds 1,000 connections in the middle of a frame.
fn beside<R>(harmed: &Served, work: impl FnOnce() -> R) -> R {
    let token = harmed.token("two");
    let over = AtomicBool::new(false);
    let goes_on = || !over.load(Ordering::Relaxed);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let two = harmed.client_with(token.clone());
                let mut session = 0;
                while goes_on() {
                    let asks: Vec<SealedAsk> =
                        (0..1000).map(|at| ask(&two, session + at, 0)).collect();
                    drop(two.ask(&asks).and_then(|()| two.ask(&[])));
                    drop(two.records(Number(0), usize::MAX, Duration::ZERO));
                    session = (session + 1000) % 100_000;
                }
            });
        }
        scope.spawn(|| {
            let config = pinned(token.fingerprint).unwrap();
            let mut lines = VecDeque::new();
            while goes_on() {
                let Ok(stream) = TcpStream::connect(harmed.server().address()) else { continue };
                let until = Instant::now() + LONG;
                let line = greet(stream.into(), &token, &config, Lane::Bulk, until);
                let Ok(line) = line else { continue };
                drop(line.1.send([&half_a_frame()]));
                lines.push_back(line);
                if lines.len() > 1000 {
                    lines.pop_front();
                }
            }
        });
        eventually("it floods", || (status(harmed).status.pending > 1000).then_some(()));
        let done = work();
        over.store(true, Ordering::Relaxed);
        done
    })
}

/// `just share-worst`: what another device feels of that. All run in this process, so its memory is
/// more than a server's, and what the offender itself computes counts: so it also harms another
/// server, for comparison.
#[test]
#[ignore = "long: a measurement"]
fn long_one_device_at_its_worst() {
    let start = || Served::with(|dir, volumes| Server::start(dir, "127.0.0.1:0", volumes));
    let (served, other) = (start(), start());
    let (one, elsewhere) = (served.client("one"), other.client("one"));
    let mut rig = Rig::new(&one).unwrap();
    Rig::new(&elsewhere).unwrap();
    operations(&mut rig, 0);
    let alone = operations(&mut rig, 300);
    let apart = beside(&other, || operations(&mut rig, 600));
    let together = beside(&served, || {
        let took = operations(&mut rig, 900);
        let named = status(&served).waiting.into_iter().max_by_key(|it| it.1);
        assert_eq!(named.unwrap().0, "two", "status names the offender");
        took
    });
    let times = together.as_secs_f64() / apart.as_secs_f64();
    eprintln!(
        "alone {alone:?}; beside an offender at another server {apart:?}, at this one {together:?}: \
         {times:.2} times; {} MiB",
        peak()
    );
}
