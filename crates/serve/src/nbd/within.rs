//! A disk served by the process that uses it, over any blocks of that process.

use super::listen::{ListenPlace, Listener};
use super::server::DiskOptions;
use super::session::{DiskServing, serve};
use crate::ending::GRACE;
use crate::error::Result;
use crate::queue::Pulse;
use oblivio_volume::BlockSpace;
use oblivio_volume::disk::{Disk, size_in};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The default of `oblivio nbd`.
const COMMIT_EVERY: Duration = Duration::from_secs(5);
/// Nothing here reports the store's progress, so requests are given up late.
const TIMEOUT: Duration = Duration::from_secs(600);
const OFTEN: Duration = Duration::from_millis(5);

/// A disk being served.
pub struct DiskWithin {
    serving: DiskServing,
}

/// Serves blocks as a disk on a socket, as `oblivio nbd` does: the disk that they hold, or a new
/// one of `size` bytes.
///
/// # Errors
/// Those of the blocks; something else is at the socket's path.
pub fn nbd_within(blocks: Box<dyn BlockSpace>, size: u64, socket: &Path) -> Result<DiskWithin> {
    let disk = match size_in(blocks.root())? {
        Some(_) => Disk::open(blocks)?,
        None => Disk::format(blocks, size)?,
    };
    let listener = Listener::open(&ListenPlace::socket(socket)?)?;
    let options = DiskOptions {
        read_only: false,
        commit_every: COMMIT_EVERY,
        paced: false,
        timeout: TIMEOUT,
        on_request: None,
        pulse: Pulse::default(),
    };
    Ok(DiskWithin { serving: serve(disk, Vec::new(), listener, options)? })
}

impl DiskWithin {
    /// Accepts no more requests, and returns when everything is committed.
    ///
    /// # Errors
    /// Those of the last commit.
    pub fn end(self) -> Result<()> {
        let (ending, begun) = (self.serving.ending(), Instant::now());
        ending.begin();
        while !ending.alone() && begun.elapsed() < GRACE {
            thread::sleep(OFTEN);
        }
        ending.leave_clients();
        ending.queues.close();
        self.serving.wait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nbd::wire::{
        OPTION_MAGIC, REQUEST_MAGIC, RequestHeader, SIMPLE_REPLY_MAGIC, command, flag, handshake,
        option, read_array,
    };
    use anyhow::Result;
    use oblivio_crypto::{KdfParams, Passphrase};
    use oblivio_store::{MemoryStore, Store};
    use oblivio_volume::{CreateOptions, OpenOptions, Volume};
    use std::io::{self, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    const SIZE: u64 = 1 << 20;
    const DATA: &[u8; 6] = b"within";

    /// A client that has agreed to the export.
    fn client(socket: &Path) -> io::Result<UnixStream> {
        let mut stream = UnixStream::connect(socket)?;
        read_array::<18>(&mut stream)?;
        let flags = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        stream.write_all(&flags.to_be_bytes())?;
        stream.write_all(&OPTION_MAGIC.to_be_bytes())?;
        stream.write_all(&option::EXPORT_NAME.to_be_bytes())?;
        stream.write_all(&0u32.to_be_bytes())?;
        assert_eq!(u64::from_be_bytes(read_array(&mut stream)?), SIZE);
        read_array::<2>(&mut stream)?;
        Ok(stream)
    }

    fn ask(stream: &mut UnixStream, flags: u16, command: u16, data: &[u8]) -> io::Result<()> {
        let mut request = Vec::with_capacity(RequestHeader::BYTES + data.len());
        request.extend_from_slice(&REQUEST_MAGIC.to_be_bytes());
        request.extend_from_slice(&flags.to_be_bytes());
        request.extend_from_slice(&command.to_be_bytes());
        request.extend_from_slice(&7u64.to_be_bytes());
        request.extend_from_slice(&5000u64.to_be_bytes());
        request.extend_from_slice(&(DATA.len() as u32).to_be_bytes());
        request.extend_from_slice(data);
        stream.write_all(&request)?;
        let reply: [u8; 16] = read_array(stream)?;
        assert_eq!(reply[..4], SIMPLE_REPLY_MAGIC.to_be_bytes());
        assert_eq!(reply[4..], [&[0; 4][..], &7u64.to_be_bytes()].concat());
        Ok(())
    }

    fn read(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
        ask(stream, 0, command::READ, &[])?;
        let mut data = vec![0; DATA.len()];
        stream.read_exact(&mut data)?;
        Ok(data)
    }

    #[test]
    fn blocks_are_a_disk_for_as_long_as_it_is_served() -> Result<()> {
        let scratch = tempfile::tempdir()?;
        let socket = scratch.path().join("socket");
        let (store, secret) = (Arc::new(MemoryStore::new()), Passphrase::new("x"));
        let kdf = KdfParams::TEST;
        let create = CreateOptions { block_bytes: 4096, capacity_bytes: SIZE, kdf };
        let as_store = || Arc::clone(&store) as Arc<dyn Store>;
        let made = Volume::create(as_store(), &secret, create, OpenOptions::default())?;
        let served = nbd_within(Box::new(made), SIZE, &socket)?;
        let mut stream = client(&socket)?;
        ask(&mut stream, flag::FUA, command::WRITE, DATA)?;
        assert_eq!(read(&mut stream)?, DATA);
        // Also while a client is connected.
        served.end()?;
        assert!(!socket.exists(), "its socket goes with it");

        let opened = Volume::open(as_store(), &secret, OpenOptions::default())?;
        let served = nbd_within(Box::new(opened), 0, &socket)?;
        assert_eq!(read(&mut client(&socket)?)?, DATA, "what is there is not made anew");
        let again =
            Volume::create(Arc::new(MemoryStore::new()), &secret, create, OpenOptions::default())?;
        assert!(nbd_within(Box::new(again), SIZE, &socket).is_err(), "the socket is taken");
        Ok(served.end()?)
    }
}
