//! One connection after the negotiation: requests in, replies out.
//!
//! One thread reads requests and queues them; replies go out as they come, in any order. A client's
//! requests under way are bounded: one that asks for much and reads nothing holds up only itself.

use super::negotiation::{ALLOCATION_ID, Agreed, Export};
use super::replies::{DiskReply, Outbox, ToClient};
use super::request::{DiskAnswer, DiskOp, DiskQueue, DiskReplier, checked};
use super::wire::{
    Errno, RequestHeader, chunk, command, error_chunk, only_chunk, read_array, simple_reply, state,
};
use oblivio_store::Budget;
use oblivio_volume::disk::DiskExtent;
use std::io::{self, Read};
use std::sync::Arc;

/// The most requests of a connection under way.
const MOST_REQUESTS: usize = 256;
/// Limit of the bytes that a connection's requests under way read and write.
const MOST_BYTES: usize = 40 << 20;
/// The same for a disk that saves memory.
const LITTLE_BYTES: usize = 1 << 20;

/// Serves a connection until the client leaves or breaks the protocol; returns when every request
/// is answered. `close` ends both directions, for a client that does not read its replies.
///
/// # Errors
/// Those of the connection; `InvalidData` for a client that does not speak the protocol.
pub fn transmit<R: Read, W: ToClient>(
    mut from: R,
    to: W,
    close: impl Fn() + Send + 'static,
    (export, agreed): (Export, Agreed),
    queue: &DiskQueue,
) -> io::Result<()> {
    let budget =
        Arc::new(Budget::new(MOST_REQUESTS, if export.little { LITTLE_BYTES } else { MOST_BYTES }));
    let (outbox, writer) = Outbox::open(to, Arc::clone(&budget), close)?;
    let session = Session { export, agreed, queue, outbox, budget };
    let ended = session.requests(&mut from);
    // Pending requests still hold the outbox.
    drop(session);
    let _ = writer.join();
    ended
}

struct Session<'q, W> {
    export: Export,
    agreed: Agreed,
    queue: &'q DiskQueue,
    outbox: Arc<Outbox<W>>,
    budget: Arc<Budget>,
}

impl<W: ToClient> Session<'_, W> {
    fn requests(&self, from: &mut impl Read) -> io::Result<()> {
        loop {
            let Some(header) = next_header(from)? else { return Ok(()) };
            if header.command == command::DISC {
                return Ok(());
            }
            self.request(&header, from)?;
        }
    }

    fn request(&self, header: &RequestHeader, from: &mut impl Read) -> io::Result<()> {
        let op = checked(header, &self.export, self.agreed);
        let bytes = match (&op, header.command) {
            (Ok(_), command::READ | command::WRITE) => header.len as usize,
            _ => 0,
        };
        self.budget.take(bytes);
        let replier = self.replier(*header, bytes);
        let op = match op {
            Ok(DiskOp::Write { offset, durable, .. }) => {
                let mut data = vec![0; bytes];
                from.read_exact(&mut data)?;
                DiskOp::Write { offset, data, durable }
            }
            Ok(op) => op,
            Err(errno) => {
                if header.command == command::WRITE {
                    // Its bytes come in any case, and the next request after them.
                    let len = u64::from(header.len);
                    if io::copy(&mut from.by_ref().take(len), &mut io::sink())? < len {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                replier(Err(errno));
                return Ok(());
            }
        };
        self.queue.push(op, replier);
        Ok(())
    }

    fn replier(&self, header: RequestHeader, bytes: usize) -> DiskReplier {
        let (outbox, agreed) = (Arc::clone(&self.outbox), self.agreed);
        Box::new(move |result| {
            let (head, data) = encode(&header, agreed, result);
            outbox.send(DiskReply { head, data, bytes });
        })
    }
}

/// The next request; `None` if the client has gone between two.
fn next_header(from: &mut impl Read) -> io::Result<Option<RequestHeader>> {
    let mut first = [0; 1];
    loop {
        match from.read(&mut first) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let rest: [u8; RequestHeader::BYTES - 1] = read_array(from)?;
    let mut bytes = [first[0]; RequestHeader::BYTES];
    bytes[1..].copy_from_slice(&rest);
    let header = RequestHeader::parse(&bytes).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "a request does not begin as requests do")
    })?;
    Ok(Some(header))
}

/// A reply as bytes: its head, and the data after it.
fn encode(
    header: &RequestHeader,
    agreed: Agreed,
    result: Result<DiskAnswer, Errno>,
) -> (Vec<u8>, Vec<u8>) {
    let cookie = header.cookie;
    match result {
        Err(errno) if agreed.structured => {
            (error_chunk(errno, cookie, in_words(errno)), Vec::new())
        }
        Err(errno) => (simple_reply(Some(errno), cookie), Vec::new()),
        // A chunk of data holds at least one byte.
        Ok(DiskAnswer::Data(data)) if agreed.structured && data.is_empty() => {
            (only_chunk(chunk::NONE, cookie, &[], 0), data)
        }
        Ok(DiskAnswer::Data(data)) if agreed.structured => {
            let offset = header.offset.to_be_bytes();
            (only_chunk(chunk::OFFSET_DATA, cookie, &offset, data.len()), data)
        }
        Ok(DiskAnswer::Data(data)) => (simple_reply(None, cookie), data),
        Ok(DiskAnswer::Extents(extents)) => {
            (only_chunk(chunk::BLOCK_STATUS, cookie, &status(&extents), 0), Vec::new())
        }
        Ok(DiskAnswer::Done) => (simple_reply(None, cookie), Vec::new()),
    }
}

/// The reply about extents: an absent one is a hole and reads as zeros.
fn status(extents: &[DiskExtent]) -> Vec<u8> {
    let mut payload = ALLOCATION_ID.to_be_bytes().to_vec();
    for extent in extents {
        // No request is longer, so no extent is.
        let len = u32::try_from(extent.len).unwrap_or(u32::MAX);
        payload.extend_from_slice(&len.to_be_bytes());
        let flags = if extent.exists { 0 } else { state::HOLE | state::ZERO };
        payload.extend_from_slice(&flags.to_be_bytes());
    }
    payload
}

fn in_words(errno: Errno) -> &'static str {
    match errno {
        Errno::Perm => "the disk is served read-only",
        Errno::Io => "the volume or its storage failed; the server's log says more",
        Errno::Invalid => "the request makes no sense for this disk",
        Errno::NoSpace => "beyond the end of the disk, or no space left where the volume is",
        Errno::NotSupported => "zeros over less than a block cost as much as a write",
    }
}
