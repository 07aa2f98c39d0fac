//! Dropbox, Google Drive and OneDrive, against a server that answers by their documents. No real
//! account was used.

use crate::{Home, folders, probed};
use oblivio_online::{Begin, OnlineStore, Runtime};
use oblivio_store::{
    Held, Layer, Objects, Patience, PutMode, ReadAt, Result, RetryStore, StoreAnswer, StoreCall,
    StoreError,
};
use oblivio_testkit::accounts::{Account, Faults, Kind};
use oblivio_testkit::conformance::{self, Connector};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// All secrets of the account begin so.
const CANARY: &str = "canary-";

/// A home whose file of remotes leads to the account.
fn home(account: &Account) -> Home {
    let url = account.url("");
    let remotes = format!("[rig]\nurl = \"{url}\"\nsecret_file = \"~/tokens.json\"\n");
    let home = Home::new(&[], &remotes);
    fs::write(tokens_of(&home), account.tokens()).unwrap();
    fs::set_permissions(tokens_of(&home), fs::Permissions::from_mode(0o600)).unwrap();
    home
}

fn tokens_of(home: &Home) -> PathBuf {
    home.dir.path().join("tokens.json")
}

/// A store on a line of its own.
fn open(account: &Account, folder: &str) -> OnlineStore {
    home(account).open(&account.url(folder))
}

/// What the caller of a store does: what failed is sent again, and who does not know whether it
/// created an object looks whose it is.
struct Settled(RetryStore<OnlineStore>);

impl Settled {
    fn boxed(store: OnlineStore) -> Box<dyn Objects> {
        // With short pauses: one request in eight fails, and a call may have dozens.
        let patient = RetryStore::new(Arc::new(store), Patience::default(), Box::new(|_| {}));
        Box::new(Self(patient))
    }

    fn created(&self, name: &str, data: &[u8]) -> Result<StoreAnswer> {
        for _ in 0..20 {
            match self.0.put(name, data, PutMode::IfAbsent) {
                Err(error) if error.may_pass() => {}
                answer => return answer.map(|()| StoreAnswer::Done),
            }
            let mut held = vec![0; data.len()];
            match self.0.read(&mut [ReadAt { object: name, offset: 0, buf: &mut held }]) {
                Err(StoreError::Missing { .. }) => {}
                Ok(()) if held == data => return Ok(StoreAnswer::Done),
                _ => return Err(StoreError::Exists { object: name.to_owned() }),
            }
        }
        Err(StoreError::Busy)
    }
}

impl Layer for Settled {
    type Below = RetryStore<OnlineStore>;

    fn below(&self) -> &RetryStore<OnlineStore> {
        &self.0
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        match call {
            StoreCall::Put(name, data, PutMode::IfAbsent) => self.created(name, data),
            _ => call.on(&self.0),
        }
    }
}

fn conforms(kind: Kind) {
    let account = Arc::new(Account::start(kind, 1));
    let place = Arc::clone(&account);
    conformance::objects(&folders(home(&account), move |folder| place.url(folder)), 0..12);
    assert_eq!(account.wrong(), Vec::<String>::new());
}

/// The suite once more, while requests are refused, answers are lost and others are cut.
fn conforms_with_faults(kind: Kind) {
    let account = Arc::new(Account::start(kind, 2));
    account.fail(Faults { refused: 5, lost: 5, cut: 2, retry_after: 0 });
    let next = std::cell::Cell::new(0);
    let fresh = || -> Connector {
        next.set(next.get() + 1);
        let (account, folder) = (Arc::clone(&account), format!("f{}/in", next.get()));
        let home = home(&account);
        Box::new(move || Settled::boxed(home.open(&account.url(&folder))))
    };
    conformance::objects(&fresh, 0..12);
    assert_eq!(account.wrong(), Vec::<String>::new());
    let seen = account.seen();
    let (refused, lost) = (
        seen.iter().filter(|it| matches!(it.status, 403 | 429)).count(),
        seen.iter().filter(|it| it.status == 0).count(),
    );
    assert!(refused > 20 && lost > 20, "{refused} refused and {lost} lost of {}", seen.len());
}

#[test]
#[ignore = "system: listens on the loopback"]
fn dropbox_conforms() {
    conforms(Kind::Dropbox);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn onedrive_conforms() {
    conforms(Kind::OneDrive);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn gdrive_conforms() {
    conforms(Kind::GDrive);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn dropbox_conforms_with_faults() {
    conforms_with_faults(Kind::Dropbox);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn onedrive_conforms_with_faults() {
    conforms_with_faults(Kind::OneDrive);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn gdrive_conforms_with_faults() {
    conforms_with_faults(Kind::GDrive);
}

/// 25 races of 8 connections for one name: one wins, and its bytes are there.
fn races(kind: Kind) {
    let account = Account::start(kind, 3);
    let stores: Vec<_> = (0..8).map(|_| open(&account, "races")).collect();
    assert!(stores[0].capabilities().creates_exclusively);
    for race in 0..25 {
        let (name, barrier) = (&format!("s-{race}"), &Barrier::new(stores.len()));
        let results: Vec<_> = std::thread::scope(|scope| {
            let racers = stores.iter().enumerate().map(|(racer, store)| {
                scope.spawn(move || {
                    barrier.wait();
                    store.put(name, &[racer as u8; 100], PutMode::IfAbsent)
                })
            });
            let racers: Vec<_> = racers.collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        let won: Vec<_> = (0..stores.len()).filter(|&racer| results[racer].is_ok()).collect();
        assert_eq!(won.len(), 1, "{name}: {results:?}");
        for error in results.iter().filter_map(|it| it.as_ref().err()) {
            assert!(matches!(error, StoreError::Exists { .. }) || error.may_pass(), "{error:?}");
        }
        let mut buf = [0; 100];
        stores[0].read(&mut [ReadAt { object: name, offset: 0, buf: &mut buf }]).unwrap();
        assert_eq!(buf, [won[0] as u8; 100]);
    }
}

#[test]
#[ignore = "system: listens on the loopback"]
fn dropbox_creates_once() {
    races(Kind::Dropbox);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn onedrive_creates_once() {
    races(Kind::OneDrive);
}

/// Bytes of a batch go up side by side, and few requests commit all of it.
#[test]
#[ignore = "system: listens on the loopback"]
fn dropbox_commits_many_at_once() {
    let account = Account::start(Kind::Dropbox, 4);
    account.write_takes(Duration::from_millis(30));
    let store = open(&account, "many");
    let names: Vec<_> = (0..24).map(|number| format!("b-{number}")).collect();
    let data = vec![7; 300 << 10];
    let begun: Vec<_> = names.iter().map(|name| (name.as_str(), data.as_slice())).collect();
    store.begin(&begun).unwrap();
    store.settle(&names.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    assert_eq!(account.files().len(), 24);
    let seen = account.seen();
    let count = |route: &str| seen.iter().filter(|it| it.line.ends_with(route)).count();
    assert_eq!(count("upload_session/start"), 24);
    let commits = count("finish_batch_v2");
    assert!((1..=12).contains(&commits), "{commits} commits");
    assert!(seen.iter().all(|it| it.status == 200), "no write met another");
    assert_eq!(count("upload"), 0);
}

/// Objects that are longer than a small request takes go up, and come down by ranges.
fn takes_large_objects(kind: Kind) {
    let account = Account::start(kind, 11);
    let store = open(&account, "large");
    let data = |seed: usize| (0..9 << 20).map(|at| (at * 31 + seed) as u8).collect::<Vec<_>>();
    for data in [data(1), data(2)] {
        store.begin(&[("b-1", &data)]).unwrap();
        store.settle(&["b-1"]).unwrap();
        assert_eq!(store.list().unwrap(), [("b-1".to_owned(), 9 << 20)]);
        let mut buffers = vec![vec![0; 1000]; 20];
        let reads = buffers.iter_mut().enumerate();
        let mut reads: Vec<_> = reads
            .map(|(at, buf)| ReadAt { object: "b-1", offset: (at * 450_000) as u64, buf })
            .collect();
        store.read(&mut reads).unwrap();
        for (at, buf) in buffers.iter().enumerate() {
            assert!(*buf == data[at * 450_000..][..1000], "at {at}");
        }
    }
    assert_eq!(account.files(), ["large/b-1"]);
    assert_eq!(account.wrong(), Vec::<String>::new());
}

#[test]
#[ignore = "system: listens on the loopback"]
fn dropbox_takes_large_objects() {
    takes_large_objects(Kind::Dropbox);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn onedrive_takes_large_objects() {
    takes_large_objects(Kind::OneDrive);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn gdrive_takes_large_objects() {
    takes_large_objects(Kind::GDrive);
}

/// An answer is lost after the act: the error may pass, and the repeated write leaves one file.
fn repeats_what_was_lost(kind: Kind, line: &str, bytes: usize) {
    let account = Account::start(kind, 12);
    let (store, data) = (open(&account, "lost"), vec![6; bytes]);
    account.lose_next(line);
    store.begin(&[("b-1", &data)]).unwrap();
    let error = store.settle(&["b-1"]).unwrap_err();
    assert!(error.may_pass(), "{error:?}");
    assert_eq!(account.files(), ["lost/b-1"], "it had arrived");
    store.settle(&["b-1"]).unwrap();
    assert_eq!(account.files(), ["lost/b-1"]);
    assert_eq!(store.len("b-1").unwrap(), Some(bytes as u64));
}

#[test]
#[ignore = "system: listens on the loopback"]
fn what_was_lost_is_repeated_and_is_there_once() {
    repeats_what_was_lost(Kind::Dropbox, "/upload", 100);
    repeats_what_was_lost(Kind::Dropbox, "finish_batch_v2", 300 << 10);
    repeats_what_was_lost(Kind::OneDrive, "/content", 100);
    repeats_what_was_lost(Kind::GDrive, "/upload/", 100);
    repeats_what_was_lost(Kind::GDrive, "/open/", 6 << 20);
}

/// A list that lags behind does not make a repeated create a second file.
#[test]
#[ignore = "system: listens on the loopback"]
fn gdrive_repeats_a_create_by_its_id() {
    let account = Account::start(Kind::GDrive, 14);
    let store = open(&account, "lag");
    store.put("a", b"first", PutMode::Replace).unwrap();
    account.hide_new();
    account.lose_next("/upload/");
    store.put("b-1", b"the bytes", PutMode::Replace).unwrap_err();
    store.put("b-1", b"or others", PutMode::Replace).unwrap();
    assert_eq!(account.files(), ["lag/a", "lag/b-1"]);
    // The one who made it finds it all the same.
    let mut buf = [0; 9];
    store.read(&mut [ReadAt { object: "b-1", offset: 0, buf: &mut buf }]).unwrap();
    assert_eq!(&buf, b"or others");
    let taken = store.put("b-1", b"else", PutMode::IfAbsent);
    assert!(matches!(taken, Err(StoreError::Exists { .. })), "{taken:?}");
    store.delete(&["b-1"]).unwrap();
    assert_eq!(account.files(), ["lag/a"]);
}

/// Of two files of one name the oldest counts, a list has the name once, and a delete takes both.
#[test]
#[ignore = "system: listens on the loopback"]
fn gdrive_lives_with_two_files_of_one_name() {
    let account = Account::start(Kind::GDrive, 13);
    let store = open(&account, "a/it's");
    store.put("b-1", b"the bytes", PutMode::Replace).unwrap();
    account.make_twin("a/it's/b-1");
    let other = open(&account, "a/it's");
    for store in [&store, &other] {
        assert_eq!(account.files().len(), 2);
        assert_eq!(store.list().unwrap(), [("b-1".to_owned(), 9)]);
        let mut buf = [0; 5];
        store.read(&mut [ReadAt { object: "b-1", offset: 4, buf: &mut buf }]).unwrap();
        assert_eq!(&buf, b"bytes");
    }
    let taken = other.put("b-1", b"else", PutMode::IfAbsent);
    assert!(matches!(taken, Err(StoreError::Exists { .. })), "{taken:?}");
    other.delete(&["b-1"]).unwrap();
    assert!(account.files().is_empty());
    // The one who knew its id sees that it is gone, and that another one is there.
    assert_eq!(store.len("b-1").unwrap(), None);
    other.put("b-1", b"again", PutMode::IfAbsent).unwrap();
    store.len("b-1").unwrap();
    other.delete(&["b-1"]).unwrap();
    other.put("b-1", b"third", PutMode::Replace).unwrap();
    let mut buf = [0; 5];
    store.read(&mut [ReadAt { object: "b-1", offset: 0, buf: &mut buf }]).unwrap();
    assert_eq!(&buf, b"third");
}

/// A token that expired is renewed once, whatever waits for it, and stored for its owner only.
fn renews(kind: Kind) {
    let account = Account::start(kind, 5);
    let home = home(&account);
    let store = home.open(&account.url("in"));
    store.put("a", b"first", PutMode::Replace).unwrap();
    account.expire_tokens();
    let names: Vec<_> = (0..32).map(|number| format!("b-{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    assert!(store.lens(&names).unwrap().iter().all(Option::is_none));
    let renewals =
        |account: &Account| account.seen().iter().filter(|it| it.line.ends_with("/token")).count();
    assert_eq!(renewals(&account), 1);
    let stored = fs::read_to_string(tokens_of(&home)).unwrap();
    assert!(stored.contains("canary-access-1") && stored.contains("expires_at"), "{stored}");
    let mode = fs::metadata(tokens_of(&home)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The next session begins with what was stored.
    assert_eq!(home.open(&account.url("in")).len("a").unwrap(), Some(5));
    assert_eq!(renewals(&account), 1);
    // Who is logged out is told so, and it does not pass.
    account.log_out();
    let error = store.len("a").unwrap_err();
    assert!(!error.may_pass() && error.to_string().contains("get a new one"), "{error}");
    let text = format!("{error} {error:?} {store:?}");
    assert!(!text.contains(CANARY) && !text.contains("://"), "{text}");
}

#[test]
#[ignore = "system: listens on the loopback"]
fn dropbox_renews_tokens() {
    renews(Kind::Dropbox);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn onedrive_renews_tokens() {
    renews(Kind::OneDrive);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn gdrive_renews_tokens() {
    renews(Kind::GDrive);
}

/// A request that is asked to wait for a second waits, by the service's own clock, and is answered.
fn pauses(kind: Kind) {
    let account = Account::start(kind, 6);
    let store = open(&account, "in");
    store.put("a", b"first", PutMode::Replace).unwrap();
    store.lens(&["a"]).unwrap();
    account.refuse_next(1, 1);
    assert_eq!(store.len("a").unwrap(), Some(5));
    assert_eq!(account.wrong(), [""; 0], "nothing is asked before the second is over");
    // Much longer is an error, and nothing more is sent.
    account.refuse_next(1, 3600);
    let error = store.len("a").unwrap_err();
    assert!(error.may_pass() && error.to_string().contains("asks to wait"), "{error}");
    let before = account.seen().len();
    store.put("b", b"x", PutMode::Replace).unwrap_err();
    assert_eq!(account.seen().len(), before);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn dropbox_waits_as_long_as_it_is_asked_to() {
    pauses(Kind::Dropbox);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn onedrive_waits_as_long_as_it_is_asked_to() {
    pauses(Kind::OneDrive);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn gdrive_waits_as_long_as_it_is_asked_to() {
    pauses(Kind::GDrive);
}

/// Errors, and what prints a store, hold nothing secret; neither does any address.
fn hides(kind: Kind) {
    let account = Account::start(kind, 7);
    let store = open(&account, "in");
    let mut texts = format!("{store:?}\n");
    let mut note = |error: StoreError| texts += &format!("{error} {error:?}\n");
    let calls: [&(dyn Fn() -> Result<()> + Sync); 3] = [
        &|| store.put("a", b"x", PutMode::Replace),
        &|| store.put("a", b"x", PutMode::IfAbsent),
        &|| store.read(&mut [ReadAt { object: "a", offset: 0, buf: &mut [0] }]),
    ];
    // All at once, and each asks seven times.
    account.refuse_next(7 * calls.len(), 1);
    let errors = std::thread::scope(|scope| {
        let running = calls.map(|call| scope.spawn(move || call().unwrap_err()));
        running.map(|call| call.join().unwrap())
    });
    for error in errors {
        assert!(error.may_pass(), "{error:?}");
        note(error);
    }
    store.len("a").unwrap();
    drop(account);
    note(store.len("a").unwrap_err());
    for secret in [CANARY, "://", "uthorization", "earer", "test-client"] {
        assert!(!texts.contains(secret), "{secret} in {texts}");
    }
}

#[test]
#[ignore = "system: listens on the loopback"]
fn dropbox_hides_secrets() {
    hides(Kind::Dropbox);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn onedrive_hides_secrets() {
    hides(Kind::OneDrive);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn gdrive_hides_secrets() {
    hides(Kind::GDrive);
}

/// What the service gets to see beside the bytes: no more headers than it needs.
#[test]
#[ignore = "system: listens on the loopback"]
fn requests_tell_nothing_of_the_client() {
    let account = Account::start(Kind::Dropbox, 8);
    let store = open(&account, "in");
    store.put("a", b"first", PutMode::Replace).unwrap();
    store.read(&mut [ReadAt { object: "a", offset: 1, buf: &mut [0; 2] }]).unwrap();
    let plain = [
        "accept",
        "authorization",
        "content-length",
        "content-type",
        "dropbox-api-arg",
        "host",
        "range",
        "user-agent",
    ];
    for seen in account.seen() {
        assert!(seen.headers.iter().all(|it| plain.contains(&it.as_str())), "{seen:?}");
    }
}

/// A connection that is cut in the middle of an object leaves nothing under its name.
fn leaves_nothing_of_a_cut_put(kind: Kind) {
    let account = Account::start(kind, 9);
    let data = vec![5; 2 << 20];
    let whole = open(&account, "cut");
    for round in 0..4 {
        let mut alone = home(&account);
        alone.runtime = Runtime::new().unwrap();
        let name = format!("cut-{round}");
        let store = alone.open(&account.url("cut"));
        store.begin(&[(&name, &data)]).unwrap();
        std::thread::sleep(Duration::from_millis(round));
        drop((store, alone));
        let len = whole.len(&name).unwrap();
        assert!(len.is_none_or(|len| len == data.len() as u64), "{len:?}");
    }
}

#[test]
#[ignore = "system: listens on the loopback"]
fn dropbox_leaves_nothing_of_a_cut_put() {
    leaves_nothing_of_a_cut_put(Kind::Dropbox);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn onedrive_leaves_nothing_of_a_cut_put() {
    leaves_nothing_of_a_cut_put(Kind::OneDrive);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn gdrive_leaves_nothing_of_a_cut_put() {
    leaves_nothing_of_a_cut_put(Kind::GDrive);
}

fn verdict(kind: Kind, begin: &Begin) {
    let account = Account::start(kind, 10);
    account.write_takes(Duration::from_micros(50));
    let verdict = probed(&format!("{kind:?}"), &home(&account), &account.url("probe"));
    assert_eq!(verdict.begin, *begin);
    assert_eq!(account.wrong(), Vec::<String>::new());
}

#[test]
#[ignore = "system: listens on the loopback"]
fn dropbox_probed() {
    verdict(Kind::Dropbox, &Begin::Exclusive);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn onedrive_probed() {
    verdict(Kind::OneDrive, &Begin::Exclusive);
}

/// Names are no keys there, so nothing is created exclusively.
#[test]
#[ignore = "system: listens on the loopback"]
fn gdrive_probed() {
    verdict(Kind::GDrive, &Begin::Alone);
}

/// Tokens never go to an address without encryption, and a store without tokens says what it needs.
#[test]
#[ignore = "system: listens on the loopback"]
fn what_is_missing_or_unsafe_is_said_before_anything_is_sent() {
    use oblivio_online::{Ambient, Remotes, Url, open as try_open};
    let error = |remotes: &str, url: &str| {
        let home = Home::new(&[], remotes);
        let env = Arc::new(|_: &str| None);
        let ambient = Ambient { env, home: home.dir.path().to_owned() };
        let url: Url = url.parse().unwrap();
        let remotes = Remotes::read(&ambient).unwrap();
        try_open(&url, &remotes, &ambient, &home.runtime).map(drop).unwrap_err().to_string()
    };
    let none = error("", "dropbox:/a");
    assert!(none.contains("oblivio remote add"), "{none}");
    let remote = |url: &str, secret: &str| format!("[it]\nurl = \"{url}\"\nsecret = '{secret}'\n");
    let plain = "gdrive:/a?endpoint=http://example.org";
    let plain = error(&remote(plain, "canary-token"), plain);
    assert!(plain.contains("https://"), "{plain}");
    let broken = error(&remote("onedrive:/a", "{canary"), "onedrive:/a");
    assert!(broken.contains("one JSON object") && !broken.contains(CANARY), "{broken}");
    // The tokens of one endpoint are not sent to another.
    let there = "dropbox:/a?endpoint=https://example.org";
    assert!(error(&remote("dropbox:/a", "canary-token"), there).contains("oblivio remote add"));
}
