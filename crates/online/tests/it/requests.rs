//! What a service gets to see, at a server that writes everything down.

use crate::Home;
use oblivio_store::{Held, Objects, PutMode, ReadAt, StoreError};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// The secret key of these tests, which must show nowhere.
pub const CANARY: &str = "canary-SECRET-7f3a";
const KEY_ID: &str = "canary-KEYID-1b2c";

/// A request, as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    line: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

type Answer = dyn Fn(usize, &Seen) -> (u16, Vec<u8>) + Send + Sync;

/// A server that keeps what it is asked, and answers by number and request. The body of an answer
/// that sends us elsewhere is the place.
pub struct Listener {
    pub address: SocketAddr,
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Listener {
    pub fn new(answer: impl Fn(usize, &Seen) -> (u16, Vec<u8>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, answer): (Arc<Mutex<Vec<Seen>>>, Arc<Answer>) =
            (Arc::default(), Arc::new(answer));
        let (all, count) = (Arc::clone(&seen), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            for line in listener.incoming() {
                let (all, count, answer) =
                    (Arc::clone(&all), Arc::clone(&count), Arc::clone(&answer));
                std::thread::spawn(move || drop(serve(line.unwrap(), &all, &count, &*answer)));
            }
        });
        Self { address, url: format!("s3://bucket/in?endpoint=http://{address}&region=r"), seen }
    }

    fn open(&self) -> oblivio_online::OnlineStore {
        let keys = [("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", CANARY)];
        Home::new(&keys, "").open(&self.url)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(
    line: TcpStream,
    all: &Mutex<Vec<Seen>>,
    count: &AtomicUsize,
    answer: &Answer,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(line.try_clone()?);
    loop {
        let (mut first, mut headers) = (String::new(), BTreeMap::new());
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim().split_once(':') else { break };
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
        let len = headers.get("content-length").map_or(0, |len| len.parse().unwrap());
        let mut body = vec![0; len];
        reader.read_exact(&mut body)?;
        let seen = Seen { line: first.trim().to_owned(), headers, body };
        all.lock().unwrap().push(seen.clone());
        let (status, body) = answer(count.fetch_add(1, Ordering::SeqCst), &seen);
        let more = match status {
            429 => "Retry-After: 1\r\n".to_owned(),
            300..400 => format!("Location: {}\r\n", String::from_utf8_lossy(&body)),
            _ => String::new(),
        };
        let len = body.len();
        let head = format!("HTTP/1.1 {status} X\r\n{more}Content-Length: {len}\r\n\r\n");
        (&line).write_all(&[head.as_bytes(), &body].concat())?;
    }
}

/// What a request says of who asks, beside its address: all of it has fixed words, but for what
/// follows from the object and the key.
fn says_more(seen: &Seen) -> Option<String> {
    let fixed = [
        ("accept", "*/*"),
        ("accept-encoding", "identity"),
        ("content-type", "application/octet-stream"),
        ("user-agent", "oblivio"),
        ("if-none-match", "*"),
    ];
    let of_the_call =
        ["authorization", "content-length", "host", "range", "x-amz-content-sha256", "x-amz-date"];
    let odd = |(name, value): (&String, &String)| {
        let right = fixed.contains(&(name.as_str(), value.as_str()));
        (!right && !of_the_call.contains(&name.as_str())).then(|| format!("{name}: {value}"))
    };
    let agent = (!seen.headers.contains_key("user-agent")).then(|| "no agent".to_owned());
    seen.headers.iter().find_map(odd).or(agent)
}

/// Every kind of request has the same agent and no words of its own. One that names a version or
/// the computer is found by comparison: no chance is in it.
#[test]
#[ignore = "system: listens on the loopback"]
fn an_agent_that_tells_of_the_client_is_found() {
    let listener = Listener::new(|_, seen| match seen.headers.contains_key("range") {
        true => (206, vec![b'x'; 4]),
        false if seen.line.starts_with("DELETE") => (204, Vec::new()),
        false => (200, Vec::new()),
    });
    let store = listener.open();
    store.begin(&[("b-1", b"bytes")]).unwrap();
    store.settle(&["b-1"]).unwrap();
    store.put("s-1", b"bytes", PutMode::IfAbsent).unwrap();
    store.read(&mut [ReadAt { object: "b-1", offset: 0, buf: &mut [0; 4] }]).unwrap();
    store.len("b-1").unwrap();
    store.delete(&["b-1"]).unwrap();
    let honest = listener.seen();
    assert!(honest.len() >= 5, "{honest:?}");
    for seen in &honest {
        assert_eq!(says_more(seen), None, "{seen:?}");
    }
    for agent in ["oblivio/0.1.0", "oblivio (alices-laptop)", "Oblivio"] {
        for seen in &honest {
            let mut planted = seen.clone();
            planted.headers.insert("user-agent".into(), agent.into());
            assert_eq!(says_more(&planted), Some(format!("user-agent: {agent}")));
        }
    }
    let mut planted = honest[0].clone();
    planted.headers.insert("x-amz-meta-host".into(), "alices-laptop".into());
    assert!(says_more(&planted).is_some());
}

/// 64 MiB go in one request, which tells nothing but the name, the length and the key's id.
#[test]
#[ignore = "system: listens on the loopback"]
fn an_object_is_one_plain_put() {
    let listener = Listener::new(|_, _| (200, Vec::new()));
    let (store, data) = (listener.open(), vec![7; 64 << 20]);
    store.begin(&[("b-1", &data)]).unwrap();
    store.settle(&["b-1"]).unwrap();
    let seen = listener.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].line, "PUT /bucket/in/b-1 HTTP/1.1");
    assert!(seen[0].body == data);
    let names: Vec<_> = seen[0].headers.keys().map(String::as_str).collect();
    let usual = [
        "accept",
        "authorization",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-amz-content-sha256",
        "x-amz-date",
    ];
    assert_eq!(names, usual);
    assert_eq!(seen[0].headers["user-agent"], "oblivio");
    assert_eq!(seen[0].headers["content-type"], "application/octet-stream");
}

#[test]
#[ignore = "system: listens on the loopback"]
fn a_write_that_failed_is_sent_again_as_it_was() {
    let listener = Listener::new(|number, _| (if number < 2 { 503 } else { 200 }, Vec::new()));
    let store = listener.open();
    store.begin(&[("b-1", b"the bytes")]).unwrap();
    for _ in 0..2 {
        let error = store.settle(&["b-1"]).unwrap_err();
        assert!(error.may_pass(), "{error}");
    }
    store.settle(&["b-1"]).unwrap();
    store.settle(&["b-1"]).unwrap();
    let seen = listener.seen();
    assert_eq!(seen.len(), 3, "no attempt but those that a settle asked for");
    assert!(seen.iter().all(|it| it.line == seen[0].line && it.body == b"the bytes"));
}

/// A service that asks for a second gets it, by its own clock, and then all is asked.
#[test]
#[ignore = "system: listens on the loopback"]
fn a_service_that_asks_to_wait_is_left_alone_that_long() {
    let refused = Arc::new(Mutex::new(None));
    let early = Arc::new(AtomicUsize::new(0));
    let (when, too_early) = (Arc::clone(&refused), Arc::clone(&early));
    let listener = Listener::new(move |number, _| {
        let now = Instant::now();
        if number == 0 {
            *when.lock().unwrap() = Some(now);
            return (429, Vec::new());
        }
        let since = now - when.lock().unwrap().unwrap();
        too_early.fetch_add(usize::from(since < Duration::from_secs(1)), Ordering::SeqCst);
        (200, Vec::new())
    });
    let store = listener.open();
    assert!(store.len("a").unwrap_err().may_pass());
    store.lens(&["a", "b", "c"]).unwrap();
    assert_eq!((listener.seen().len(), early.load(Ordering::SeqCst)), (4, 0));
}

/// A place where everybody waits for the others: `all` of them, or a minute.
#[derive(Default)]
struct Meeting(Mutex<usize>, Condvar);

impl Meeting {
    /// Whether all came.
    fn wait(&self, all: usize) -> bool {
        let mut here = self.0.lock().unwrap();
        *here += 1;
        self.1.notify_all();
        let minute = Duration::from_secs(60);
        let (here, _) = self.1.wait_timeout_while(here, minute, |here| *here < all).unwrap();
        *here >= all
    }
}

#[test]
#[ignore = "system: listens on the loopback"]
fn reads_and_lengths_are_asked_for_side_by_side() {
    let (gets, heads) = (Meeting::default(), Meeting::default());
    let listener = Listener::new(move |_, seen| {
        let is_get = seen.headers.contains_key("range");
        let all_at_once = if is_get { gets.wait(64) } else { heads.wait(64) };
        match (all_at_once, is_get) {
            (true, true) => (206, vec![b'x'; 100]),
            (true, false) => (200, Vec::new()),
            (false, _) => (500, Vec::new()),
        }
    });
    let store = listener.open();
    let names: Vec<_> = (0..64).map(|number| format!("b-{number}")).collect();
    let mut buffers = vec![[0; 100]; 64];
    let reads = names.iter().zip(&mut buffers).enumerate();
    let mut reads: Vec<_> = reads
        .map(|(number, (object, buf))| ReadAt { object, offset: 100 * number as u64, buf })
        .collect();
    store.read(&mut reads).unwrap();
    store.lens(&names.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    assert!(buffers.iter().all(|buf| *buf == [b'x'; 100]));
    let seen = listener.seen();
    let (gets, heads): (Vec<_>, Vec<_>) = seen.iter().partition(|it| it.line.starts_with("GET"));
    assert_eq!((gets.len(), heads.len()), (64, 64), "one request each");
    let mut ranges: Vec<_> = gets.iter().map(|it| (&it.line, &it.headers["range"])).collect();
    ranges.sort();
    ranges.dedup();
    assert_eq!(ranges.len(), 64);
    assert!(gets.iter().any(|it| it.headers["range"] == "bytes=6300-6399"));
}

#[test]
#[ignore = "system: listens on the loopback"]
fn no_error_shows_a_secret_or_a_signature() {
    let mut texts = String::new();
    for (status, may_pass) in [
        (400, false),
        (401, false),
        (403, false),
        (404, false),
        (429, true),
        (500, true),
        (503, true),
    ] {
        let listener = Listener::new(move |_, _| {
            let body = format!("<Error><Code>SomeCode</Code><Message>{CANARY}</Message></Error>");
            (status, body.into_bytes())
        });
        let store = listener.open();
        store.begin(&[("b-1", b"x")]).unwrap();
        let errors = [
            store.settle(&["b-1"]).unwrap_err(),
            store.read(&mut [ReadAt { object: "b-1", offset: 0, buf: &mut [0] }]).unwrap_err(),
            store.put("b-1", b"x", PutMode::IfAbsent).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.may_pass(), may_pass, "{status}: {error:?}");
            texts += &format!("{error} {error:?} {store:?}\n");
        }
        // The secret itself is never sent, and the id in the signature only.
        assert!(listener.seen().iter().all(|it| !format!("{it:?}").contains(CANARY)));
    }
    for secret in [CANARY, KEY_ID, "ignature", "://", "uthorization"] {
        assert!(!texts.contains(secret), "{secret} in {texts}");
    }
}

#[test]
#[ignore = "system: listens on the loopback"]
fn nobody_there_is_an_outage_and_says_so() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let keys = [("AWS_ACCESS_KEY_ID", KEY_ID), ("AWS_SECRET_ACCESS_KEY", CANARY)];
    let home = Home::new(&keys, "");
    let store = home.open(&format!("s3://bucket/in?endpoint=http://{address}&region=r"));
    let error = store.len("b-1").unwrap_err();
    assert!(error.may_pass() && error.to_string().contains("refused"), "{error}");
    // Encryption that the server does not speak.
    let listener = Listener::new(|_, _| (200, Vec::new()));
    let url = listener.url.replace("http://", "https://");
    let error = Home::new(&keys, "").open(&url).len("b-1").unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(!error.to_string().contains("://"), "{error}");
}

/// A put that replaces ends what a failed write would have sent again.
#[test]
#[ignore = "system: listens on the loopback"]
fn a_failed_write_is_not_sent_over_a_later_put() {
    let listener = Listener::new(|number, _| (if number < 1 { 500 } else { 200 }, Vec::new()));
    let store = listener.open();
    store.begin(&[("a", b"old")]).unwrap();
    store.settle(&["a"]).unwrap_err();
    store.put("a", b"new", PutMode::Replace).unwrap();
    store.settle(&["a"]).unwrap();
    let bodies: Vec<_> = listener.seen().into_iter().map(|it| it.body).collect();
    assert_eq!(bodies, [b"old".to_vec(), b"new".to_vec()]);
}

#[test]
#[ignore = "system: listens on the loopback"]
fn an_answer_of_another_length_is_no_answer() {
    let listener = Listener::new(|_, seen| match seen.line.starts_with("HEAD") {
        true => (200, Vec::new()),
        false => (206, b"short".to_vec()),
    });
    let store = listener.open();
    let mut buf = [0; 10];
    let error = store.read(&mut [ReadAt { object: "a", offset: 0, buf: &mut buf }]).unwrap_err();
    // The object has no bytes, as its length says, so there is nothing to cut.
    assert!(matches!(error, StoreError::Short { len: 0, wanted: 10, .. }), "{error:?}");
    let listener = Listener::new(|_, _| (206, b"more than was asked".to_vec()));
    let store = listener.open();
    let error = store.read(&mut [ReadAt { object: "a", offset: 0, buf: &mut buf }]).unwrap_err();
    assert!(!error.may_pass() && error.to_string().contains("ignores ranges"), "{error:?}");
}

/// A WebDAV server that says of a missing object's deletion that it is locked, as rclone's does.
#[test]
#[ignore = "system: listens on the loopback"]
fn a_missing_object_may_be_locked_but_one_that_is_there_may_not() {
    let there = |seen: &Seen| seen.line.contains("/b-there");
    let listener = Listener::new(move |_, seen| match seen.line.split(' ').next() {
        Some("DELETE") => (423, Vec::new()),
        Some("PROPFIND") if there(seen) => (207, found("/in/b-there")),
        Some("PROPFIND") => (404, Vec::new()),
        _ => (405, Vec::new()),
    });
    let url = listener.url.split("endpoint=http").nth(1).and_then(|it| it.split('&').next());
    let store = Home::new(&[], "").open(&format!("webdav{}/in", url.unwrap()));
    store.delete(&["b-missing"]).unwrap();
    let asked: Vec<String> = listener.seen().into_iter().map(|it| it.line).collect();
    let words = asked.iter().map(|line| line.split(' ').next().unwrap_or_default());
    assert_eq!(words.collect::<Vec<_>>(), ["DELETE", "PROPFIND"], "one look, and no second try");
    let error = store.delete(&["b-there"]).unwrap_err();
    assert!(error.to_string().contains("423"), "{error}");
}

/// The answer of WebDAV about one file.
fn found(path: &str) -> Vec<u8> {
    format!(
        "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>{path}</D:href>\
         <D:propstat><D:prop><D:getcontentlength>5</D:getcontentlength><D:resourcetype/>\
         <D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified></D:prop>\
         <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response></D:multistatus>"
    )
    .into_bytes()
}
