//! The numbers of the NBD protocol, and its messages as bytes.
//!
//! Names and values are those of the protocol's document (NetworkBlockDevice/nbd, doc/proto.md),
//! without their prefixes. Everything on the wire is big-endian.

use std::io::{self, Read};

/// Limit of the bytes in a read or write; a larger request is refused.
pub const MOST_PAYLOAD: u32 = 32 << 20;

/// The first bytes from the server.
pub const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// The first bytes of an option; they also follow [`INIT_MAGIC`].
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Flags of the handshake, the server's and the client's.
pub mod handshake {
    pub const FIXED_NEWSTYLE: u16 = 1;
    pub const NO_ZEROES: u16 = 2;
}

/// Transmission flags.
pub mod export {
    pub const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Options.
pub mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub mod reply {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    pub const ERR_TLS_REQD: u32 = (1 << 31) + 5;
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;
}

/// Kinds of information about an export.
pub mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Commands.
pub mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands.
pub mod flag {
    pub const FUA: u16 = 1;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunks of structured replies.
pub mod chunk {
    pub const FLAG_DONE: u16 = 1;
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = (1 << 15) + 1;
}

/// States of `base:allocation`.
pub mod state {
    pub const HOLE: u32 = 1;
    pub const ZERO: u32 = 2;
}

/// The cause of a failed command, in the protocol's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    Perm = 1,
    Io = 5,
    Invalid = 22,
    NoSpace = 28,
    NotSupported = 95,
}

/// A request's header; a write's bytes follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    pub flags: u16,
    pub command: u16,
    /// Identifies the request in its reply.
    pub cookie: u64,
    pub offset: u64,
    pub len: u32,
}

impl RequestHeader {
    pub const BYTES: usize = 28;

    /// `None` if it does not begin like a request.
    pub fn parse(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut rest = Fields(bytes);
        (rest.u32()? == REQUEST_MAGIC).then_some(())?;
        Some(Self {
            flags: rest.u16()?,
            command: rest.u16()?,
            cookie: rest.u64()?,
            offset: rest.u64()?,
            len: rest.u32()?,
        })
    }
}

/// Takes big-endian fields from the front of a slice; `None` when it ends too early.
pub struct Fields<'b>(pub &'b [u8]);

impl<'b> Fields<'b> {
    pub fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }

    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.bytes(8)?.try_into().ok()?))
    }

    /// A string behind its length.
    pub fn string(&mut self) -> Option<&'b [u8]> {
        let len = self.u32()?;
        self.bytes(usize::try_from(len).ok()?)
    }
}

/// Reads exactly `N` bytes.
pub fn read_array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A reply to an option.
pub fn option_reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut out = OPTION_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
    out
}

/// A reply without structure; the data of a read follows it.
pub fn simple_reply(error: Option<Errno>, cookie: u64) -> Vec<u8> {
    let mut out = SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend_from_slice(&error.map_or(0, |error| error as u32).to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
    out
}

/// The only chunk of a structured reply, with the beginning of its payload; `more` bytes follow.
pub fn only_chunk(kind: u16, cookie: u64, payload: &[u8], more: usize) -> Vec<u8> {
    let mut out = STRUCTURED_REPLY_MAGIC.to_be_bytes().to_vec();
    out.extend_from_slice(&chunk::FLAG_DONE.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&((payload.len() + more) as u32).to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// A structured reply with the cause of a failed command, also in words.
pub fn error_chunk(error: Errno, cookie: u64, message: &str) -> Vec<u8> {
    let mut text = message.as_bytes();
    // The protocol's strings have at most 4,096 bytes.
    while text.len() > 4096 {
        let cut = (0..=4096).rev().find(|&at| message.is_char_boundary(at)).unwrap_or(0);
        text = &text[..cut];
    }
    let mut payload = (error as u32).to_be_bytes().to_vec();
    payload.extend_from_slice(&(text.len() as u16).to_be_bytes());
    payload.extend_from_slice(text);
    only_chunk(chunk::ERROR, cookie, &payload, 0)
}
