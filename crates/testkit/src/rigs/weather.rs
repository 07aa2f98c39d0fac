//! A network between a client and a server that a test can break: a small proxy on the loopback.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a connection looks at the weather.
const LOOK: Duration = Duration::from_millis(10);

/// What the network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFault {
    /// It passes everything on.
    Fair,
    /// Connections end, and new ones too.
    Refuse,
    /// Nothing arrives, in either direction. No connection ends.
    Stall,
    /// A connection ends after this many bytes of answers.
    CutAnswers(u64),
    /// A connection ends after this many bytes of requests.
    CutRequests(u64),
    /// Each request is answered with 429, and to come again after this many seconds.
    Busy(u64),
    /// Each request is answered with 403, as by a network that wants a log-on first.
    Forbid,
}

/// The proxy. It ends with this value.
#[derive(Debug)]
pub struct Network {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: SocketAddr,
    weather: Mutex<NetworkFault>,
    /// Connections and requests that the weather hit.
    hits: AtomicU64,
    over: AtomicBool,
}

impl Network {
    /// A network before a server, with fair weather.
    ///
    /// # Errors
    /// When there is no port.
    pub fn before(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (hits, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let weather = Mutex::new(NetworkFault::Fair);
        let shared = Arc::new(Shared { server, weather, hits, over });
        let lines = Arc::clone(&shared);
        thread::spawn(move || {
            for line in listener.incoming().flatten() {
                let shared = Arc::clone(&lines);
                if shared.over.load(Ordering::SeqCst) {
                    return;
                }
                thread::spawn(move || drop(shared.carry(&line)));
            }
        });
        Ok(Self { address, shared })
    }

    /// Changes the weather, for connections that are up too.
    pub fn set(&self, weather: NetworkFault) {
        *self.shared.weather.lock().unwrap_or_else(PoisonError::into_inner) = weather;
    }

    /// Connections and requests that bad weather has hit.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.shared.hits.load(Ordering::SeqCst)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn weather(&self) -> NetworkFault {
        *self.weather.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hit(&self) {
        self.hits.fetch_add(1, Ordering::SeqCst);
    }

    fn carry(self: &Arc<Self>, client: &TcpStream) -> io::Result<()> {
        if self.weather() == NetworkFault::Refuse {
            self.hit();
            return client.shutdown(Shutdown::Both);
        }
        let server = TcpStream::connect(self.server)?;
        let (back, to) = (server.try_clone()?, client.try_clone()?);
        let shared = Arc::clone(self);
        let answers = thread::spawn(move || shared.pass(&back, &to, false));
        let done = self.pass(client, &server, true);
        drop(answers.join());
        done
    }

    /// Passes bytes on in one direction, until either side or the weather ends the connection.
    fn pass(&self, mut from: &TcpStream, mut to: &TcpStream, requests: bool) -> io::Result<()> {
        from.set_read_timeout(Some(LOOK))?;
        let (mut buf, mut passed) = (vec![0; 16 << 10], None);
        let ended = loop {
            if self.over.load(Ordering::SeqCst) || self.weather() == NetworkFault::Refuse {
                break Ok(());
            }
            if self.weather() == NetworkFault::Stall {
                thread::sleep(LOOK);
                continue;
            }
            let got = match from.read(&mut buf) {
                Ok(0) => break Ok(()),
                Ok(got) => got,
                Err(error) if is_pause(&error) => continue,
                Err(error) => break Err(error),
            };
            // What arrives while it stalls arrives later.
            while self.weather() == NetworkFault::Stall && !self.over.load(Ordering::SeqCst) {
                thread::sleep(LOOK);
            }
            let most = match (self.weather(), requests) {
                (NetworkFault::Busy(seconds), true) => {
                    self.hit();
                    let wait = format!("429 Too Many Requests\r\nRetry-After: {seconds}");
                    break refuse(from, &wait);
                }
                (NetworkFault::Forbid, true) => {
                    self.hit();
                    break refuse(from, "403 Forbidden");
                }
                (NetworkFault::CutAnswers(most), false)
                | (NetworkFault::CutRequests(most), true) => most,
                _ => {
                    passed = None;
                    u64::MAX
                }
            };
            let passed = passed.get_or_insert(0);
            let rest = most.saturating_sub(*passed).min(got as u64) as usize;
            if let Err(error) = to.write_all(&buf[..rest]) {
                break Err(error);
            }
            *passed += rest as u64;
            if rest < got {
                self.hit();
                break Ok(());
            }
        };
        drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
        ended
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Answers a request that has begun to arrive, once the rest of it was read.
fn refuse(mut client: &TcpStream, status: &str) -> io::Result<()> {
    let mut rest = [0; 16 << 10];
    client.set_read_timeout(Some(5 * LOOK))?;
    while client.read(&mut rest).is_ok_and(|got| got > 0) {}
    let end = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    client.write_all(format!("HTTP/1.1 {status}\r\n{end}").as_bytes())?;
    client.shutdown(Shutdown::Write)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it gets.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for line in listener.incoming().flatten() {
                thread::spawn(move || io::copy(&mut &line, &mut &line));
            }
        });
        address
    }

    fn line(network: &Network) -> TcpStream {
        let line = TcpStream::connect(network.address).unwrap();
        line.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        line
    }

    #[test]
    #[ignore = "system: starts a server"]
    fn each_weather_does_what_it_says() {
        let network = Network::before(echo()).unwrap();
        let mut fair = line(&network);
        let mut back = [0; 4];
        fair.write_all(b"fair").unwrap();
        fair.read_exact(&mut back).unwrap();
        assert_eq!((&back, network.hits()), (b"fair", 0));
        // What is sent while it stalls arrives later.
        network.set(NetworkFault::Stall);
        fair.write_all(b"late").unwrap();
        fair.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(is_pause(&fair.read_exact(&mut back).unwrap_err()));
        network.set(NetworkFault::Fair);
        fair.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        fair.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"late");
        for weather in [NetworkFault::CutAnswers(3), NetworkFault::CutRequests(3)] {
            network.set(weather);
            let (mut cut, mut got) = (line(&network), Vec::new());
            cut.write_all(b"four").unwrap();
            drop(cut.read_to_end(&mut got));
            assert!(got.len() <= 3, "{weather:?}: {got:?}");
        }
        for (weather, status) in [(NetworkFault::Busy(7), "429"), (NetworkFault::Forbid, "403")] {
            network.set(weather);
            let (mut told, mut got) = (line(&network), String::new());
            told.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            told.read_to_string(&mut got).unwrap();
            assert!(got.starts_with(&format!("HTTP/1.1 {status}")), "{got}");
            assert_eq!(got.contains("Retry-After: 7"), weather == NetworkFault::Busy(7));
        }
        network.set(NetworkFault::Refuse);
        let mut ended = Vec::new();
        drop(line(&network).read_to_end(&mut ended));
        assert!(ended.is_empty() && fair.read(&mut back).map_or(0, |got| got) == 0);
        assert_eq!(network.hits(), 5);
    }
}
