//! A disk on the sequential engine on the page: it draws writes, and no reads.

use super::browser::Browser;
use super::{fits, nothing_is_wider_than_the_window, nothing_was_said, number, pictures_of, shots};
use crate::common::{Scratch, noise, until};
use crate::watching::{Events, Watching};
use serde_json::json;
use std::cell::Cell;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

const SIZE: u64 = 48 << 20;

/// A client of the disk with a minimum of the protocol.
struct Client(UnixStream);

impl Client {
    fn of(scratch: &Scratch, socket: &str) -> Self {
        let mut stream = UnixStream::connect(scratch.path(socket)).expect("a server");
        stream.read_exact(&mut [0; 18]).expect("a greeting");
        // Both sides know the newer form; the export with the empty name.
        let mut hello = 3u32.to_be_bytes().to_vec();
        hello.extend(b"IHAVEOPT");
        hello.extend(1u32.to_be_bytes());
        hello.extend(0u32.to_be_bytes());
        stream.write_all(&hello).expect("sent");
        let mut export = [0; 10];
        stream.read_exact(&mut export).expect("the export");
        assert_eq!(export[..8], SIZE.to_be_bytes());
        Self(stream)
    }

    fn ask(&mut self, kind: u16, offset: u64, len: u32, data: &[u8]) {
        let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
        request.extend(0u16.to_be_bytes());
        request.extend(kind.to_be_bytes());
        request.extend([0; 8]);
        request.extend(offset.to_be_bytes());
        request.extend(len.to_be_bytes());
        self.0.write_all(&[&request, data].concat()).expect("sent");
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply).expect("a reply");
        assert_eq!(reply[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0], "kind {kind} at {offset}");
    }

    fn read(&mut self, offset: u64, len: u32) {
        self.ask(0, offset, len, &[]);
        self.0.read_exact(&mut vec![0; len as usize]).expect("the data");
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        self.ask(1, offset, data.len() as u32, data);
    }

    fn flush(&mut self) {
        self.ask(3, 0, 0, &[]);
    }
}

fn serve(scratch: &Scratch) -> Child {
    let mut command = scratch.command(["nbd", "disk", "--socket", "s"]);
    let mut server = command.stdout(Stdio::piped()).spawn().expect("the command runs");
    let mut line = [0; 8];
    server.stdout.as_mut().expect("a pipe").read_exact(&mut line).expect("a line");
    assert_eq!(&line, b"Serving ");
    server
}

/// Writes mostly to a few places in the first third of the disk: plain encryption reveals such a
/// favourite.
fn work(client: &mut Client, rounds: u64, pause: Duration) {
    for at in 0..rounds {
        let offset = if at % 4 == 3 { at * 977 % 47 } else { 12 + at * 31 % 4 } << 20;
        client.write(offset + (at * 4096) % (1 << 19), &noise(160_000, at + 1));
        client.read(at * 7919 % SIZE / 4096 * 4096 % (SIZE - 4096), 4096);
        if at % 3 == 0 {
            client.flush();
        }
        std::thread::sleep(pause);
    }
}

#[test]
#[ignore = "system: a browser"]
fn a_disk_that_hides_what_is_written() {
    let browser = match Browser::begin() {
        Ok(browser) => browser,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let scratch = Scratch::new();
    let init = ["init", "--kdf-memory", "32K", "--kdf-passes", "1", "--seen-by", "snapshots"];
    scratch.good(init.into_iter().chain(["--size", "48M", "disk"]));
    // The server starts before its watcher; the folder of their socket must exist by then.
    std::fs::create_dir_all(scratch.path("run")).expect("a folder");
    let mut server = serve(&scratch);
    let mut client = Client::of(&scratch, "s");
    for at in 0..12 {
        client.write(at * (SIZE / 12), &noise(4 << 20, at));
    }
    client.flush();
    let watching = Watching::of(&scratch, "disk");
    let events = watching.events();
    browser.resize(1280, 800, 1);
    browser.prefer("light", "no-preference");
    browser.visit(&watching.url);
    browser.wait("document.querySelector('#status').innerText.includes('Waiting')");
    assert_eq!(number(&browser, "left", "requests"), 0);

    counts(&browser, &mut client, events);
    says_what_it_is(&browser);
    fits(&browser);
    browser.click("#tables");
    browser.wait("document.querySelectorAll('#right .as-table tbody tr').length > 6");
    assert!(browser.text("#right .as-table").contains("The busiest stretches of the disk"));
    browser.resize(360, 740, 2);
    nothing_is_wider_than_the_window(&browser, "tables");
    browser.click("#tables");

    // For docs: a minute of work, to fill the pictures.
    let temporary = tempfile::tempdir().expect("a folder");
    if std::env::var_os("OBLIVIO_SCREENSHOTS").is_some() {
        work(&mut client, 110, Duration::from_millis(520));
    }
    let pictures = [
        ("watch-disk-desktop.png", 1280, 800, 1, "light"),
        ("watch-disk-phone.png", 390, 844, 2, "light"),
    ];
    pictures_of(&browser, &shots(&temporary), &pictures);
    nothing_was_said(&browser);
    drop(client);
    let id = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it is there");
    assert_eq!(server.wait().expect("it ends").code(), Some(0));
    assert_eq!(watching.stop(), Some(0));
}

/// The page, beside the events that it hears.
struct Seen<'a> {
    browser: &'a Browser,
    events: Events,
    /// Writes that the store saw.
    writes: Cell<u64>,
    marks: u64,
}

impl Seen<'_> {
    /// Waits until the page shows all that was done, and `right` requests on the right. A read
    /// marks the end: its event follows all that came before it, and it is drawn on neither side.
    fn all(&mut self, client: &mut Client, right: u64) {
        self.marks += 1;
        let (mark, writes) = (SIZE - 4096 * self.marks, &self.writes);
        client.read(mark, 4096);
        self.events.until(|event| {
            if event["kind"] == "written" {
                writes.set(writes.get() + event["writes"].as_u64().expect("a number"));
            }
            event["kind"] == "ordinary" && event["offset"] == mark
        });
        for (panel, count) in [("left", self.writes()), ("right", right)] {
            let shown = format!("document.querySelector('#{panel} [data-is=requests]').innerText");
            self.browser.wait(&format!("{shown}.replace(/,/g, '') === '{count}'"));
        }
    }

    fn writes(&self) -> u64 {
        self.writes.get()
    }

    /// Those that the page shows.
    fn flushes(&self) -> u64 {
        let text = self.browser.text("#fact-flushes").replace(',', "");
        text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
    }
}

fn counts(browser: &Browser, client: &mut Client, events: Events) {
    // The command looks for a watcher at most once a second, when it has something to tell.
    until(|| {
        client.read(0, 4096);
        browser.text("#status").contains("oblivio nbd")
    });
    let mut seen = Seen { browser, events, writes: Cell::new(0), marks: 0 };
    client.write(5 << 20, &noise(2 << 20, 77));
    client.flush();
    seen.all(client, 1);
    let (left, flushes) = (seen.writes(), seen.flushes());
    assert!(left > 0 && flushes > 10, "{flushes} flushes of a disk that was written once");
    for at in 0..20 {
        client.read(at * 65_536, 65_536);
    }
    client.write(0, &noise(4096, 78));
    client.flush();
    seen.all(client, 2);
    let more = seen.writes() - left;
    assert!((1..=4).contains(&more), "{more} writes for one block and a sync");
    let flushes = seen.flushes();
    work(client, 12, Duration::ZERO);
    seen.all(client, 14);
    // 12 times 40 blocks; a bucket takes 168.
    let more = seen.flushes() - flushes;
    assert!((2..=4).contains(&more), "{more} flushes");
    let inked = "[...document.querySelectorAll('canvas')].every((canvas) => canvas.getContext('2d') \
                 .getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0))";
    browser.wait(inked);
    nothing_was_said(browser);
}

fn says_what_it_is(browser: &Browser) {
    assert_eq!(browser.text("#fact-capacity"), "48\u{a0}MiB");
    let last = browser.text("#last-left");
    assert!(last.contains("log") && last.contains("level 1, level 2"), "{last}");
    assert!(browser.text("#last-right").contains("the disk"));
    let says = browser.text(".contract");
    assert!(says.contains("reads are drawn on neither side"), "{says}");
    // Nothing of the other engine.
    let whole = browser.text("body");
    for word in ["Size class", "Depth of the tree", "Buckets", "paths at once"] {
        assert!(!whole.contains(word), "{word}");
    }
    assert_eq!(
        browser.value("document.querySelectorAll('#right .of-files').length > 0"),
        json!(true)
    );
    assert!(!browser.text("#right").contains("file"), "{}", browser.text("#right"));
}
