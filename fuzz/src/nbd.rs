//! The messages of a disk's clients.

use crate::input::Input;
use oblivio_serve::fuzzing::{Agreement, nbd_negotiation, nbd_transmission};
use oblivio_testkit::blocks::MemoryBlocks;
use oblivio_volume::disk::Disk;
use std::io::ErrorKind;

const SIZE: u64 = 1 << 20;
const REQUEST: [u8; 4] = 0x2560_9513u32.to_be_bytes();
const OPTION_REPLY: [u8; 8] = 0x0003_e889_0455_65a9u64.to_be_bytes();
const SIMPLE: [u8; 4] = 0x6744_6698u32.to_be_bytes();
const CHUNK: [u8; 4] = 0x668e_33efu32.to_be_bytes();
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISC: u16 = 2;
const STATUS: u16 = 7;

/// The choices at the start of an input.
pub mod choice {
    /// The client must request TLS.
    pub const TLS: u8 = 1;
    pub const READ_ONLY: u8 = 2;
    /// No negotiation: the client is in transmission.
    pub const TRANSMISSION: u8 = 4;
    /// Replies in transmission are structured.
    pub const STRUCTURED: u8 = 8;
    /// Requests have a brief form: `[flags 1][command 1][offset 3][length 3]`. The bytes of writes
    /// are made up.
    pub const BRIEF: u8 = 16;
}

/// A disk's client with any messages, from negotiation or only in transmission. The answers have
/// the protocol's form. Every complete request gets one answer, with as many bytes as it asked for.
/// The connection ends as the client ended it.
pub fn nbd(data: &[u8]) {
    let mut input = Input(data);
    let chosen = input.byte();
    let is = |what: u8| chosen & what != 0;
    let (read_only, structured) = (is(choice::READ_ONLY), is(choice::STRUCTURED));
    let mut agreement = Agreement { structured, allocation: structured };
    if !is(choice::TRANSMISSION) {
        let tls = is(choice::TLS);
        let outcome = nbd_negotiation(input.0, SIZE, read_only, tls);
        well_told(&outcome.told, tls, matches!(outcome.ended, Ok(Some(_))));
        match outcome.ended {
            Ok(Some(agreed)) => agreement = agreed,
            Ok(None) => return,
            Err(error) => {
                let known = [ErrorKind::InvalidData, ErrorKind::UnexpectedEof];
                assert!(known.contains(&error.kind()), "{error}");
                return;
            }
        }
        input.take(outcome.used);
    }
    let said = if is(choice::BRIEF) { brief(&mut input) } else { input.0.to_vec() };
    let said = Said::of(said);
    let blocks = MemoryBlocks::new(4096, 1 << 10, 1 << 20);
    let disk = Disk::format(blocks.boxed(), SIZE).expect("there is room");
    let (told, ended) = nbd_transmission(disk, &said.bytes, agreement, read_only);
    assert_eq!(ended.err().map(|error| error.kind()), said.ends, "how it ends");
    said.answered(&told, agreement);
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// A greeting and replies to options. Before TLS there are only refusals. At the end there may be
/// the answer of the old protocol, which has no form.
fn well_told(told: &[u8], tls: bool, agreed: bool) {
    let (greeting, mut rest) = told.split_at(18);
    assert_eq!(&greeting[..8], b"NBDMAGIC");
    let mut plain = tls;
    while rest.len() >= 20 && rest[..8] == OPTION_REPLY {
        let (option, kind, len) = (word(rest, 8), word(rest, 12), word(rest, 16) as usize);
        assert!(!plain || kind >= 1 << 31 || (kind == 1 && [2, 5].contains(&option)));
        plain &= !(option == 5 && kind == 1);
        rest = &rest[20 + len..];
    }
    assert!(!plain || !agreed, "agreed on in plain text");
    assert!(rest.is_empty() || (agreed && [10, 134].contains(&rest.len())), "{rest:?}");
}

/// The encoded requests.
fn brief(input: &mut Input<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..64 {
        if !input.more() {
            break;
        }
        let (flags, command) = (input.byte(), u16::from(input.byte()));
        let mut three = || u32::from(input.byte()) << 16 | u32::from(input.u16());
        let (offset, len) = (three(), three());
        let len = if command == WRITE { len % (128 << 10) } else { len };
        out.extend_from_slice(&REQUEST);
        out.extend_from_slice(&u16::from(flags).to_be_bytes());
        out.extend_from_slice(&command.to_be_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&u64::from(offset).to_be_bytes());
        out.extend_from_slice(&len.to_be_bytes());
        if command == WRITE {
            out.resize(out.len() + len as usize, flags);
        }
    }
    out
}

/// A request, as this target parses it.
struct Asked {
    command: u16,
    offset: u64,
    len: u32,
}

/// A client's messages in transmission.
struct Said {
    /// With cookies that distinguish requests.
    bytes: Vec<u8>,
    /// The complete requests.
    asked: Vec<Asked>,
    ends: Option<ErrorKind>,
}

impl Said {
    fn of(mut bytes: Vec<u8>) -> Self {
        let (mut asked, mut at) = (Vec::new(), 0);
        let ends = loop {
            match bytes.len() - at {
                0 => break None,
                1..28 => break Some(ErrorKind::UnexpectedEof),
                _ => {}
            }
            let head = &mut bytes[at..at + 28];
            if head[..4] != REQUEST {
                break Some(ErrorKind::InvalidData);
            }
            head[8..16].copy_from_slice(&(asked.len() as u64).to_be_bytes());
            let command = u16::from_be_bytes([head[6], head[7]]);
            let offset = u64::from_be_bytes(head[16..24].try_into().expect("eight bytes"));
            let len = word(head, 24);
            at += 28;
            if command == DISC {
                break None;
            }
            if command == WRITE {
                if bytes.len() - at < len as usize {
                    break Some(ErrorKind::UnexpectedEof);
                }
                at += len as usize;
            }
            asked.push(Asked { command, offset, len });
        };
        Said { bytes, asked, ends }
    }

    /// Checks that every request has exactly one reply, in the protocol's form.
    fn answered(&self, mut told: &[u8], agreement: Agreement) {
        let mut open: Vec<bool> = vec![true; self.asked.len()];
        while !told.is_empty() {
            let (magic, cookie) =
                (&told[..4], u64::from_be_bytes(told[8..16].try_into().expect("")));
            let asked = &self.asked[cookie as usize];
            assert!(std::mem::take(&mut open[cookie as usize]), "answered twice");
            let len = if magic == SIMPLE {
                let data = if word(told, 4) == 0 && asked.command == READ { asked.len } else { 0 };
                assert!(asked.command != READ || !agreement.structured);
                16 + data as usize
            } else {
                assert_eq!(magic, CHUNK);
                assert!(agreement.structured);
                let end = 20 + word(told, 16) as usize;
                let (flags, kind) = (&told[4..6], u16::from_be_bytes([told[6], told[7]]));
                assert_eq!(flags, [0, 1], "it is the last");
                asked.fits(kind, &told[20..end], agreement);
                end
            };
            told = &told[len..];
        }
        assert!(!open.contains(&true), "a request without an answer");
    }
}

impl Asked {
    /// Checks that a chunk answers this request.
    fn fits(&self, kind: u16, payload: &[u8], agreement: Agreement) {
        match kind {
            // Nothing to read.
            0 => assert_eq!((self.command, self.len, payload.len()), (READ, 0, 0)),
            1 => {
                assert_eq!((self.command, payload.len()), (READ, 8 + self.len as usize));
                assert_eq!(payload[..8], self.offset.to_be_bytes());
            }
            5 => {
                assert!(self.command == STATUS && agreement.allocation);
                let extents = payload[4..].chunks_exact(8);
                assert!(extents.remainder().is_empty() && extents.len() > 0);
                let lens: Vec<u64> = extents.map(|extent| u64::from(word(extent, 0))).collect();
                assert!(lens.iter().all(|len| *len > 0));
                assert!(lens.iter().sum::<u64>() <= u64::from(self.len));
            }
            _ => {
                assert_eq!(kind, (1 << 15) + 1, "an error");
                let text = usize::from(u16::from_be_bytes([payload[4], payload[5]]));
                assert!(word(payload, 0) != 0 && payload.len() == 6 + text);
            }
        }
    }
}
