//! `oblivio watch`: access to the page, and its events.

use crate::common::{Scratch, noise};
use crate::watching::{Watching, exchange};
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

fn sockets(scratch: &Scratch) -> Vec<PathBuf> {
    let folders = [scratch.path("run/oblivio"), scratch.path("state/oblivio")];
    let entries = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten();
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "watch")).collect()
}

fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |event| event["kind"] == kind
}

fn work(what: &'static str) -> impl Fn(&Value) -> bool {
    move |event| event["kind"] == "ordinary" && event["what"] == what
}

#[test]
#[ignore = "system: starts a server"]
fn only_the_address_with_its_token_shows_the_page() {
    let scratch = Scratch::with_volume();
    let watching = Watching::begin(&scratch);
    let host = watching.host();
    let page = watching.ask(&watching.path, &host);
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("Cache-Control: no-store\r\n"), "{page}");

    for path in ["/", "/events", "/favicon.ico", "/0123456789abcdef0123456789abcdef/"] {
        let answer = watching.ask(path, &host);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{path}: {answer}");
        assert!(!answer.contains("Oblivio"), "{answer}");
    }
    for other in ["evil.example", &format!("evil.example:{}", watching.port), "127.0.0.1:1", ""] {
        for path in [watching.path.clone(), format!("{}events", watching.path)] {
            let answer = watching.ask(&path, other);
            assert!(answer.starts_with("HTTP/1.1 403 "), "{other}: {answer}");
        }
    }
    let post = format!("POST {} HTTP/1.1\r\nHost: {host}\r\n\r\n", watching.path);
    assert!(exchange(watching.port, post.as_bytes()).starts_with("HTTP/1.1 405 "));
    assert!(exchange(watching.port, b"nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // Other computers cannot reach it.
    let listening = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let port = format!(":{:04X} 00000000:0000 0A", watching.port);
    let all: Vec<&str> = listening.lines().filter(|line| line.contains(&port)).collect();
    assert!(all.iter().all(|line| line.contains("0100007F:")), "{all:?}");
}

#[test]
#[ignore = "system: starts a server"]
fn the_page_allows_its_own_script_and_nothing_else() {
    let scratch = Scratch::with_volume();
    let watching = Watching::begin(&scratch);
    let nonce = || {
        let page = watching.ask(&watching.path, &watching.host());
        let policy = page.split("Content-Security-Policy: ").nth(1).expect("a policy");
        let policy = policy.split("\r\n").next().expect("a line").to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'nonce-"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        let nonce = policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next());
        let nonce = nonce.expect("a nonce").to_owned();
        assert!(page.contains(&format!("<script nonce=\"{nonce}\">")), "{nonce}");
        nonce
    };
    assert_ne!(nonce(), nonce());
}

#[test]
#[ignore = "system: starts a server"]
fn what_commands_do_is_told() {
    let scratch = Scratch::with_volume();
    scratch.write("a", noise(40_000, 1));
    let watching = Watching::begin(&scratch);
    let mut events = watching.events();
    assert_eq!(events.until(is("status"))["users"], json!([]));
    events.until(is("live"));

    scratch.good(["put", "v", "a", "/"]);
    events.until(|event| event["users"][0]["command"] == "put");
    let created = events.until(work("create"));
    let written = events.until(work("write"));
    assert_eq!(written["file"], created["file"]);
    assert_eq!((&written["offset"], &written["len"]), (&json!(0), &json!(40_000)));
    events.until(|event| event["kind"] == "status" && event["users"] == json!([]));

    scratch.good(["get", "v", "/a", "back"]);
    let facts = events.until(is("facts"));
    assert!(facts["size_class_bytes"].as_u64() >= Some(40_000), "{facts}");
    let read = events.until(work("read"));
    assert_eq!((&read["file"], &read["size"]), (&created["file"], &json!(40_000)));

    scratch.good(["cp", "v", "/a", "/b"]);
    let copied = events.until(work("create"));
    assert_ne!(copied["file"], created["file"]);
    scratch.good(["rm", "v", "/a"]);
    assert_eq!(events.until(work("delete"))["file"], created["file"]);

    // A page that opens later sees the recent events, including the store's view.
    let earlier: Vec<Value> =
        watching.events().take_while(|event| event["kind"] != "live").collect();
    let shown: Vec<&Value> = earlier.iter().filter(|event| event["kind"] == "shown").collect();
    assert!(!shown.is_empty());
    for batch in shown {
        let places = batch["places_read"].as_array().expect("places").len() as u64;
        assert_eq!(Some(places.min(512)), batch["reads"].as_u64().map(|reads| reads.min(512)));
    }
}

#[test]
#[ignore = "system: starts a server"]
fn it_comes_and_goes_without_a_trace() {
    let scratch = Scratch::with_volume();
    scratch.write("a", "x");
    scratch.good(["put", "v", "a", "/"]);
    assert_eq!(sockets(&scratch), Vec::<PathBuf>::new());
    let watching = Watching::begin(&scratch);
    assert_eq!(sockets(&scratch).len(), 1);
    let error = scratch.bad(8, ["watch", "v"]);
    assert!(error.contains("watched already"), "{error}");
    assert_eq!(watching.stop(), Some(0));
    assert_eq!(sockets(&scratch), Vec::<PathBuf>::new());
    scratch.good(["cat", "v", "/a"]);
    // A killed watcher leaves a socket, which harms nobody; the next one takes it over.
    drop(Watching::begin(&scratch));
    assert_eq!(sockets(&scratch).len(), 1);
    scratch.good(["cat", "v", "/a"]);
    assert_eq!(Watching::begin(&scratch).stop(), Some(0));
}

#[test]
#[ignore = "system: starts a server"]
fn nonsense_on_the_feed_harms_nobody() {
    let scratch = Scratch::with_volume();
    scratch.write("a", "x");
    let watching = Watching::begin(&scratch);
    let mut events = watching.events();
    let socket = sockets(&scratch).pop().expect("a socket");
    for nonsense in [&[0xff; 4096][..], b"GET / HTTP/1.1\r\n\r\n", b"\x04\0\0\0null", b""] {
        let mut feed = UnixStream::connect(&socket).expect("a connection");
        // The other end may hang up in the middle of it.
        let _ = feed.write_all(nonsense);
    }
    // A connection that stays silent.
    let _silent = UnixStream::connect(&socket).expect("a connection");
    scratch.good(["put", "v", "a", "/"]);
    events.until(work("create"));
}

#[test]
#[ignore = "system: starts a server"]
fn a_page_that_stands_still_does_not_slow_the_work() {
    let scratch = Scratch::with_volume();
    scratch.write("a", noise(4 << 20, 1));
    let watching = Watching::begin(&scratch);
    let _never_read = watching.events();
    let _never_read_either = watching.events();
    for _ in 0..3 {
        scratch.good(["put", "v", "a", "/"]);
    }
    assert_eq!(watching.stop(), Some(0));
}

#[test]
#[ignore = "system: starts a server"]
fn what_cannot_be_watched_is_named() {
    let scratch = Scratch::with_volume();
    scratch.bad(3, ["watch", "missing"]);
    std::fs::create_dir(scratch.path("empty")).expect("a folder");
    scratch.bad(9, ["watch", "empty"]);
    let watching = Watching::begin(&scratch);
    std::fs::create_dir(scratch.path("other")).expect("a folder");
    scratch.good(["init", "--kdf-memory", "32K", "--kdf-passes", "1", "w"]);
    let error = scratch.bad(1, ["watch", "--port", &watching.port.to_string(), "w"]);
    assert!(error.contains("--port"), "{error}");
}
