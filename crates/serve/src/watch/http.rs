//! The page's server: one small document and one stream of events, for this computer alone.

use super::access::{self, DoorVerdict, PageDoor, PageRequest};
use super::hub::Hub;
use super::page::VolumePage;
use crate::strangers::AcceptedConnections;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

/// Limit of pages and streams with a valid token; a browser needs two connections for each page.
const MOST_CONNECTIONS: usize = 64;
/// Limit of connections before their request.
const MOST_STRANGERS: usize = 64;
/// Limit of a request line with its headers.
const MOST_HEAD: usize = 16 << 10;
/// How long a browser may take to send its request, or to take a part of an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time between two messages of a stream, which detect that a page is gone.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The parts of an answer.
#[derive(Debug)]
pub struct Site {
    pub door: PageDoor,
    pub page: VolumePage,
    pub hub: Arc<Hub>,
}

/// Serves for as long as this process lives.
pub fn serve(listener: &TcpListener, site: &Arc<Site>) {
    let (open, strangers) = (AtomicUsize::new(0), AcceptedConnections::new(MOST_STRANGERS));
    let inside = Arc::new(Inside { open, strangers });
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let stream = Arc::new(stream);
        let (number, oldest) = inside.strangers.enter(Arc::clone(&stream));
        if let Some(oldest) = oldest {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let (site, of_thread) = (Arc::clone(site), Arc::clone(&inside));
        let answer = move || {
            // A browser that goes away in the middle is no error.
            let _ = answer(&site, &of_thread, number, &stream);
            of_thread.strangers.leave(number);
            let _ = stream.shutdown(Shutdown::Both);
        };
        // Without a thread the connection is closed, and the browser tries again.
        if thread::Builder::new().name("page".into()).spawn(answer).is_err() {
            inside.strangers.leave(number);
        }
    }
}

/// All connections.
#[derive(Debug)]
struct Inside {
    /// Connections with a valid token.
    open: AtomicUsize,
    strangers: AcceptedConnections<Arc<TcpStream>>,
}

/// Counts a connection while it lives.
struct Guard<'i>(&'i AtomicUsize);

impl<'i> Guard<'i> {
    /// `None` if there are too many.
    fn enter(open: &'i AtomicUsize) -> Option<Self> {
        let guard = Self(open);
        (open.fetch_add(1, Ordering::Relaxed) < MOST_CONNECTIONS).then_some(guard)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn answer(site: &Site, inside: &Inside, number: u64, stream: &TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let until = Instant::now() + PATIENCE;
    let patience = || {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    };
    let mut hurried = Hurried(stream, patience);
    let Some(request) = read_request(&mut hurried)? else {
        return refuse(&mut &*stream, "400 Bad Request");
    };
    let verdict = site.door.judge(&request);
    let known = match verdict {
        DoorVerdict::Page | DoorVerdict::Stream => {
            inside.strangers.leave(number);
            Guard::enter(&inside.open)
        }
        _ => None,
    };
    match (verdict, known) {
        (DoorVerdict::Page, Some(_known)) => {
            let nonce = access::random();
            let body = site.page.with_nonce(&nonce);
            send(&mut &*stream, "200 OK", "text/html", &access::policy(&nonce), &body)
        }
        (DoorVerdict::Stream, Some(_known)) => events(&mut &*stream, &site.hub),
        (DoorVerdict::Page | DoorVerdict::Stream, None) => {
            refuse(&mut &*stream, "503 Service Unavailable")
        }
        (DoorVerdict::Forbidden, _) => refuse(&mut &*stream, "403 Forbidden"),
        (DoorVerdict::NotFound, _) => refuse(&mut &*stream, "404 Not Found"),
        (DoorVerdict::WrongMethod, _) => refuse(&mut &*stream, "405 Method Not Allowed"),
    }
}

/// A connection whose reads ask `P` for their timeout each time.
struct Hurried<'s, P>(&'s TcpStream, P);

impl<P: FnMut() -> io::Result<Duration>> Read for Hurried<'_, P> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.set_read_timeout(Some((self.1)()?))?;
        (&mut &*self.0).read(into)
    }
}

/// Reads a request up to its empty line; `None` if it is invalid.
pub(super) fn read_request(stream: &mut impl Read) -> io::Result<Option<PageRequest>> {
    let mut head = Vec::new();
    let mut piece = [0; 2048];
    loop {
        let len = stream.read(&mut piece)?;
        head.extend_from_slice(&piece[..len]);
        match parse(&head) {
            Ok(Some(request)) => return Ok(Some(request)),
            Ok(None) if len > 0 && head.len() <= MOST_HEAD => {}
            _ => return Ok(None),
        }
    }
}

/// `None` for an incomplete head.
fn parse(head: &[u8]) -> Result<Option<PageRequest>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    if request.parse(head)?.is_partial() {
        return Ok(None);
    }
    let (method, path) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let mut hosts = request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("host"));
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => std::str::from_utf8(host.value).ok().map(str::to_owned),
        _ => None,
    };
    Ok(Some(PageRequest { method: method.into(), path: path.into(), host }))
}

fn refuse(stream: &mut impl Write, status: &str) -> io::Result<()> {
    send(stream, status, "text/plain", access::NOTHING, status)
}

fn send(
    stream: &mut impl Write,
    status: &str,
    kind: &str,
    policy: &str,
    body: &str,
) -> io::Result<()> {
    let len = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {len}\r\n\
         Connection: close\r\nContent-Security-Policy: {policy}\r\n{}\r\n",
        access::HEADERS
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())
}

/// Server-sent events until the page goes.
fn events(stream: &mut impl Write, hub: &Hub) -> io::Result<()> {
    let (first, messages) = hub.page();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\
         Connection: close\r\nContent-Security-Policy: {}\r\n{}\r\nretry: 1000\n\n",
        access::NOTHING,
        access::HEADERS
    );
    stream.write_all(head.as_bytes())?;
    let mut send = |message: &str| stream.write_all(format!("data: {message}\n\n").as_bytes());
    first.iter().try_for_each(|message| send(message))?;
    // The page draws everything before this at once, and then what follows as it comes.
    send(r#"{"kind":"live"}"#)?;
    loop {
        match messages.recv_timeout(HEARTBEAT) {
            Ok(message) => send(&message)?,
            Err(RecvTimeoutError::Timeout) => send(r#"{"kind":"beat"}"#)?,
            Err(RecvTimeoutError::Disconnected) => return Err(ErrorKind::BrokenPipe.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<PageRequest> {
        read_request(&mut text.as_bytes()).expect("no failure of a slice")
    }

    #[test]
    fn requests_are_read() {
        let host = |name: &str| Some(name.to_owned());
        let request = read("GET /a HTTP/1.1\r\nhOsT: x:1\r\nA: b\r\n\r\n").expect("a request");
        assert_eq!((request.path.as_str(), request.host), ("/a", host("x:1")));
        let twice = read("GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n").expect("a request");
        assert_eq!(twice.host, None);
        assert_eq!(read("GET / HTTP/1.0\r\n\r\n").expect("a request").host, None);
    }

    #[test]
    fn nonsense_is_none() {
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(2 * MOST_HEAD));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(100));
        for text in ["", "GET", "GET / HTTP/1.1\r\n", "\0\0\0\0", "\r\n\r\n\r\n", &long, &many] {
            assert_eq!(read(text), None, "{:?}", &text[..text.len().min(40)]);
        }
    }

    #[test]
    #[ignore = "system: listens on a port"]
    fn connections_that_say_nothing_keep_nobody_out() -> io::Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let door = PageDoor::known("token", address.port());
        let page = VolumePage::new("vault", "id", "tree");
        let site = Arc::new(Site { door, page, hub: Arc::default() });
        thread::spawn(move || serve(&listener, &site));
        let idle = (0..MOST_STRANGERS + 20).map(|_| TcpStream::connect(address));
        let idle = idle.collect::<io::Result<Vec<_>>>()?;
        for _ in 0..4 {
            let mut asking = TcpStream::connect(address)?;
            let request = format!("GET /token/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
            asking.write_all(request.as_bytes())?;
            let mut answer = String::new();
            asking.read_to_string(&mut answer)?;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:.100}");
        }
        // The first of them had to go.
        assert_eq!((&idle[0]).read(&mut [0])?, 0);
        Ok(())
    }

    #[test]
    fn every_answer_says_that_it_is_not_to_be_kept_or_framed() -> io::Result<()> {
        let mut out = Vec::new();
        refuse(&mut out, "403 Forbidden")?;
        let text = String::from_utf8_lossy(&out).into_owned();
        assert!(text.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{text}");
        for header in ["Cache-Control: no-store\r\n", "frame-ancestors 'none'", "nosniff"] {
            assert!(text.contains(header), "{text}");
        }
        assert!(text.contains("\r\n\r\n403 Forbidden"), "{text}");
        Ok(())
    }
}
