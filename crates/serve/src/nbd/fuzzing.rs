//! A client and a server that share memory instead of a connection.

use super::negotiation::{Agreed, Export, Exports, choose, negotiate, until_tls};
use super::replies::ToClient;
use super::request::DiskQueue;
use super::server::{DiskServer, DiskSettings};
use super::transmission::transmit;
use oblivio_volume::disk::Disk;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Longer than any step takes.
const LONG: Duration = Duration::from_secs(3600);

/// The result of a negotiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Whether replies are structured.
    pub structured: bool,
    /// Whether the client may query which parts exist.
    pub allocation: bool,
}

/// The course of a negotiation.
#[derive(Debug)]
pub struct Negotiated {
    /// The server's output.
    pub told: Vec<u8>,
    /// Bytes of the client's input that were read.
    pub used: usize,
    /// `None` when the client left.
    pub ended: io::Result<Option<Agreement>>,
}

struct Line<'b> {
    said: &'b [u8],
    told: Vec<u8>,
}

impl Read for Line<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.said.read(into)
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.told.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn negotiation(said: &[u8], size: u64, read_only: bool, tls: bool) -> Negotiated {
    let exports = Exports::alone(Export { size, block_bytes: 4096, read_only, little: false });
    let mut line = Line { said, told: Vec::new() };
    let ended = match tls {
        false => negotiate(&mut line, &exports),
        true => match until_tls(&mut line) {
            Ok(Some(greeted)) => choose(&mut line, &exports, greeted),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        },
    };
    let ended = ended.map(|agreed| {
        let told = |agreed: Agreed| Agreement {
            structured: agreed.structured,
            allocation: agreed.allocation,
        };
        agreed.map(told)
    });
    Negotiated { told: line.told, used: said.len() - line.said.len(), ended }
}

/// The server's output, in memory.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<u8>>>);

impl Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ToClient for Told {}

pub fn transmission(
    disk: Disk,
    said: &[u8],
    agreement: Agreement,
    read_only: bool,
) -> (Vec<u8>, io::Result<()>) {
    let export =
        Export { size: disk.size(), block_bytes: disk.block_bytes(), read_only, little: false };
    let agreed =
        Agreed { disk: 0, structured: agreement.structured, allocation: agreement.allocation };
    let queue = Arc::new(DiskQueue::new(LONG, Arc::default()));
    let settings = DiskSettings { commit_every: LONG, paced: false, on_request: None };
    let server = DiskServer::new(disk, Arc::clone(&queue), settings);
    let server = thread::spawn(move || server.run());
    let told = Told::default();
    let ended = transmit(said, told.clone(), || (), (export, agreed), &queue);
    queue.close();
    let served = server.join();
    assert!(matches!(served, Ok(Ok(()))), "the server ended badly: {served:?}");
    let told = std::mem::take(&mut *told.0.lock().unwrap_or_else(PoisonError::into_inner));
    (told, ended)
}
