//! Negotiation, transmission and the server over a disk in memory, with bytes made by hand.

mod authority;
mod negotiating;
mod nonsense;
mod outage;
mod padded;
mod requests;
mod serving;
mod tls;

use super::listen::Conn;
use super::negotiation::{Agreed, Export, Exports, negotiate};
use super::request::DiskQueue;
use super::server::{DiskServer, DiskSettings};
use super::transmission::transmit;
use super::wire::{
    OPTION_MAGIC, OPTION_REPLY_MAGIC, REQUEST_MAGIC, RequestHeader, SIMPLE_REPLY_MAGIC,
    STRUCTURED_REPLY_MAGIC, read_array,
};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::MemoryStore;
use oblivio_volume::disk::Disk;
use oblivio_volume::{CreateOptions, OpenOptions, Shown, Volume};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const BLOCK: usize = 1024;
const SIZE: u64 = 1 << 20;
const EXPORT: Export =
    Export { size: SIZE, block_bytes: BLOCK as u64, read_only: false, little: false };
const PLAIN: Agreed = Agreed { disk: 0, structured: false, allocation: false };
const STRUCTURED: Agreed = Agreed { disk: 0, structured: true, allocation: true };

/// An empty disk in memory, and everything that its store is shown from now on.
fn disk() -> (Disk, Arc<Mutex<Vec<Shown>>>) {
    let shown: Arc<Mutex<Vec<Shown>>> = Arc::default();
    let seen = Arc::clone(&shown);
    let on_shown = Box::new(move |event: &Shown| seen.lock().expect("alone").push(event.clone()));
    let create = CreateOptions { block_bytes: BLOCK, capacity_bytes: SIZE, kdf: KdfParams::TEST };
    let open =
        OpenOptions { memory_bytes: 16 << 20, on_shown: Some(on_shown), ..OpenOptions::default() };
    let (store, secret) = (Arc::new(MemoryStore::new()), Passphrase::new("x"));
    let volume = Volume::create(store, &secret, create, open).expect("a volume");
    let disk = Disk::format(Box::new(volume), SIZE).expect("a disk");
    shown.lock().expect("alone").clear();
    (disk, shown)
}

fn settings() -> DiskSettings {
    // The timer never fires: only requested work happens.
    DiskSettings { commit_every: Duration::from_secs(3600), paced: false, on_request: None }
}

fn queue() -> Arc<DiskQueue> {
    Arc::new(DiskQueue::new(Duration::from_secs(3600), Arc::default()))
}

/// One more client of a queue's server, and how its connection ends.
fn connected(
    queue: &Arc<DiskQueue>,
    export: Export,
    agreed: Agreed,
) -> (UnixStream, JoinHandle<io::Result<()>>) {
    let (stream, theirs) = UnixStream::pair().expect("a pair");
    let queue = Arc::clone(queue);
    let connection = thread::spawn(move || {
        let (to, whole) = (Conn::Unix(Arc::new(theirs.try_clone()?)), theirs.try_clone()?);
        let close = move || drop(whole.shutdown(Shutdown::Both));
        let ended = transmit(&theirs, to, close, (export, agreed), &queue);
        let _ = theirs.shutdown(Shutdown::Both);
        ended
    });
    (stream, connection)
}

/// A client of a server in memory.
struct Client {
    stream: UnixStream,
    queue: Arc<DiskQueue>,
    server: Option<JoinHandle<()>>,
    connection: Option<JoinHandle<io::Result<()>>>,
}

impl Client {
    fn new(export: Export, agreed: Agreed) -> Self {
        let queue = queue();
        let server = DiskServer::new(disk().0, Arc::clone(&queue), settings());
        let server = thread::spawn(move || server.run().expect("memory"));
        let (stream, connection) = connected(&queue, export, agreed);
        Client { stream, queue, server: Some(server), connection: Some(connection) }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    fn ask(&mut self, flags: u16, command: u16, offset: u64, len: u32, data: &[u8]) {
        self.send(&[&request(flags, command, 7, offset, len)[..], data].concat());
    }

    /// The error of a simple reply.
    fn simple(&mut self) -> u32 {
        let head: [u8; 16] = read_array(&mut self.stream).expect("a reply");
        assert_eq!(head[..4], SIMPLE_REPLY_MAGIC.to_be_bytes());
        assert_eq!(head[8..], 7u64.to_be_bytes());
        u32::from_be_bytes(head[4..8].try_into().expect("four bytes"))
    }

    /// Type and payload of the only chunk of a structured reply.
    fn chunk(&mut self) -> (u16, Vec<u8>) {
        let head: [u8; 20] = read_array(&mut self.stream).expect("a reply");
        assert_eq!(head[..4], STRUCTURED_REPLY_MAGIC.to_be_bytes());
        assert_eq!(head[4..6], [0, 1], "it is the last");
        assert_eq!(head[8..16], 7u64.to_be_bytes());
        let len = u32::from_be_bytes(head[16..].try_into().expect("four bytes"));
        let mut payload = vec![0; len as usize];
        self.stream.read_exact(&mut payload).expect("its payload");
        (u16::from_be_bytes([head[6], head[7]]), payload)
    }

    fn data(&mut self, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        self.stream.read_exact(&mut data).expect("data");
        data
    }

    /// Checks that nothing more comes; returns how the connection ended.
    fn end(&mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).expect("an end");
        assert!(rest.is_empty(), "nothing that was not asked for: {rest:?}");
        self.connection.take().expect("once").join().expect("no panic")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.queue.close();
        if let Some(server) = self.server.take() {
            let ended = server.join();
            assert!(ended.is_ok() || thread::panicking(), "the server panicked");
        }
    }
}

fn request(
    flags: u16,
    command: u16,
    cookie: u64,
    offset: u64,
    len: u32,
) -> [u8; RequestHeader::BYTES] {
    let mut out = REQUEST_MAGIC.to_be_bytes().to_vec();
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(&command.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(&len.to_be_bytes());
    out.try_into().expect("28 bytes")
}

fn option(kind: u32, data: &[u8]) -> Vec<u8> {
    let mut out = OPTION_MAGIC.to_be_bytes().to_vec();
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
    out
}

/// A client's input, and the server's output.
struct Line<'b>(&'b [u8], Vec<u8>);

impl Read for Line<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The server's output and result for a client that sends all this at once and leaves.
fn talk(said: &[u8]) -> (Vec<u8>, io::Result<Option<Agreed>>) {
    let (mut line, exports) = (Line(said, Vec::new()), Exports::alone(EXPORT));
    let ended = negotiate(&mut line, &exports);
    (line.1, ended)
}

/// A reply to an option: option, kind, data.
type Said = (u32, u32, Vec<u8>);

/// The replies to options in the server's output after its greeting.
fn replies(mut said: &[u8]) -> Vec<Said> {
    let mut replies = Vec::new();
    while !said.is_empty() {
        assert_eq!(said[..8], OPTION_REPLY_MAGIC.to_be_bytes());
        let word = |at: usize| u32::from_be_bytes(said[at..at + 4].try_into().expect("four bytes"));
        let len = word(16) as usize;
        replies.push((word(8), word(12), said[20..20 + len].to_vec()));
        said = &said[20 + len..];
    }
    replies
}
