//! The beginning of a connection: fixed newstyle negotiation.
//!
//! There is one disk, and its name is empty. Open lanes have disks too, which no list has: their
//! names are their numbers. Without one, the answer to such a name is that to any other. A client
//! with an invalid option gets the protocol's error and may go on; one with malformed messages is
//! disconnected.

use super::wire::{
    Fields, INIT_MAGIC, MOST_PAYLOAD, OPTION_MAGIC, export, handshake, info, option, option_reply,
    read_array, reply,
};
use oblivio_volume::disk::Disk;
use std::io::{self, Read, Write};

/// Limit of an option's data: a name of 4,096 bytes and a few queries.
const MOST_DATA: u32 = 64 << 10;
/// A client that has not chosen after this many options is disconnected.
const MOST_OPTIONS: usize = 256;
const DESCRIPTION: &[u8] = b"a disk that its storage cannot watch";
const ALLOCATION: &[u8] = b"base:allocation";
/// The number of `base:allocation` in replies.
pub const ALLOCATION_ID: u32 = 1;

/// The offered disk.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    pub size: u64,
    /// Requests aligned to this cost least.
    pub block_bytes: u64,
    pub read_only: bool,
    /// The disk saves memory.
    pub little: bool,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Exports {
    /// The volume's own.
    pub own: Export,
    /// Those of its lanes, as far as they are open.
    pub lanes: Vec<Option<Export>>,
}

impl Exports {
    /// A volume without open lanes.
    pub fn alone(own: Export) -> Self {
        Self { own, lanes: Vec::new() }
    }

    /// The disk that a client agreed on.
    pub fn of(&self, agreed: Agreed) -> Export {
        let lane = agreed.disk.checked_sub(1).and_then(|lane| *self.lanes.get(lane)?);
        lane.unwrap_or(self.own)
    }

    /// The disk of this name: its number, 0 for the volume's own, and what it is.
    fn find(&self, name: &[u8]) -> Option<(usize, Export)> {
        if name.is_empty() {
            return Some((0, self.own));
        }
        let lanes = (1..).zip(&self.lanes).filter_map(|(number, lane)| Some((number, (*lane)?)));
        lanes.into_iter().find(|(number, _)| number.to_string().as_bytes() == name)
    }
}

/// The agreement with a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Which disk: 0 for the volume's own, or the number of a lane.
    pub disk: usize,
    pub structured: bool,
    /// Whether the client may query which parts exist.
    pub allocation: bool,
}

impl Export {
    /// The export of a disk.
    pub fn of(disk: &Disk, read_only: bool) -> Self {
        Self {
            size: disk.size(),
            block_bytes: disk.block_bytes(),
            read_only,
            little: disk.reader().is_some_and(|reader| reader.saves_memory()),
        }
    }

    fn flags(&self, structured: bool) -> u16 {
        let mut flags = export::HAS_FLAGS
            | export::SEND_FLUSH
            | export::SEND_FUA
            | export::SEND_TRIM
            | export::SEND_WRITE_ZEROES
            | export::SEND_FAST_ZERO
            // One server handles all connections, and a flush makes everything durable.
            | export::CAN_MULTI_CONN;
        if self.read_only {
            flags |= export::READ_ONLY;
        }
        if structured {
            flags |= export::SEND_DF;
        }
        flags
    }

    fn info(&self, kind: u16, structured: bool) -> Option<Vec<u8>> {
        let mut data = kind.to_be_bytes().to_vec();
        match kind {
            info::EXPORT => {
                data.extend_from_slice(&self.size.to_be_bytes());
                data.extend_from_slice(&self.flags(structured).to_be_bytes());
            }
            info::NAME => {}
            info::DESCRIPTION => data.extend_from_slice(DESCRIPTION),
            info::BLOCK_SIZE => {
                let preferred = u32::try_from(self.block_bytes).unwrap_or(MOST_PAYLOAD);
                for bytes in [1, preferred, MOST_PAYLOAD] {
                    data.extend_from_slice(&bytes.to_be_bytes());
                }
            }
            _ => return None,
        }
        Some(data)
    }
}

/// The result of the greeting, before the first option.
#[derive(Clone, Copy, Debug)]
pub struct Greeted {
    /// Whether the client expects 124 zeros, reserved by older servers.
    zeroes: bool,
    /// Whether TLS protects the rest.
    secure: bool,
}

/// Agrees with a client; `None` if it left in order.
///
/// # Errors
/// Those of the connection; `InvalidData` for a client that does not speak the protocol.
pub fn negotiate<S: Read + Write>(stream: &mut S, exports: &Exports) -> io::Result<Option<Agreed>> {
    let greeted = greet(stream)?;
    choose(stream, exports, greeted)
}

fn greet<S: Read + Write>(stream: &mut S) -> io::Result<Greeted> {
    let mut hello = INIT_MAGIC.to_be_bytes().to_vec();
    hello.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    let ours = handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES;
    hello.extend_from_slice(&ours.to_be_bytes());
    stream.write_all(&hello)?;
    let theirs = u32::from_be_bytes(read_array(stream)?);
    if theirs & !u32::from(ours) != 0 || theirs & u32::from(handshake::FIXED_NEWSTYLE) == 0 {
        return Err(refused("the client does not speak the newer form of the protocol"));
    }
    let zeroes = theirs & u32::from(handshake::NO_ZEROES) == 0;
    Ok(Greeted { zeroes, secure: false })
}

/// Serves options until the client asks for TLS, which it must; refuses all others. TLS begins with
/// the next byte in both directions, and [`choose`] goes on within it: nothing from before counts.
/// `None` if the client left in order.
///
/// # Errors
/// As [`negotiate`]; also `InvalidData` for a client that chooses without TLS.
pub fn until_tls<S: Read + Write>(stream: &mut S) -> io::Result<Option<Greeted>> {
    let greeted = greet(stream)?;
    for _ in 0..MOST_OPTIONS {
        let (option, data) = next_option(stream)?;
        let (kind, why) = match option {
            option::STARTTLS if data.is_empty() => {
                stream.write_all(&option_reply(option, reply::ACK, &[]))?;
                return Ok(Some(Greeted { secure: true, ..greeted }));
            }
            option::STARTTLS => (reply::ERR_INVALID, "that option makes no sense as it is"),
            option::ABORT => {
                // It may have gone already.
                let _ = stream.write_all(&option_reply(option, reply::ACK, &[]));
                return Ok(None);
            }
            // The only way to refuse it is to disconnect.
            option::EXPORT_NAME => return Err(refused("the client does not ask for TLS")),
            _ => (reply::ERR_TLS_REQD, "this server is to be spoken to by TLS"),
        };
        stream.write_all(&option_reply(option, kind, why.as_bytes()))?;
    }
    Err(refused("the client does not choose"))
}

/// Agrees with a greeted client; `None` if it left in order.
///
/// # Errors
/// As [`negotiate`].
pub fn choose<S: Read + Write>(
    stream: &mut S,
    exports: &Exports,
    greeted: Greeted,
) -> io::Result<Option<Agreed>> {
    let mut talk = Talk { stream, exports, agreed: Agreed::default(), greeted };
    for _ in 0..MOST_OPTIONS {
        match talk.option()? {
            Next::Option => {}
            Next::Transmission => return Ok(Some(talk.agreed)),
            Next::End => return Ok(None),
        }
    }
    Err(refused("the client does not choose"))
}

/// An option and its data.
fn next_option<S: Read + Write>(stream: &mut S) -> io::Result<(u32, Vec<u8>)> {
    let head: [u8; 16] = read_array(stream)?;
    let mut fields = Fields(&head);
    if fields.u64() != Some(OPTION_MAGIC) {
        return Err(refused("an option does not begin as options do"));
    }
    let (option, len) = (fields.u32().unwrap_or(0), fields.u32().unwrap_or(u32::MAX));
    if len > MOST_DATA {
        let why = b"that is too much for an option";
        stream.write_all(&option_reply(option, reply::ERR_TOO_BIG, why))?;
        return Err(refused("an option is too long"));
    }
    let mut data = vec![0; len as usize];
    stream.read_exact(&mut data)?;
    Ok((option, data))
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

enum Next {
    Option,
    Transmission,
    End,
}

struct Talk<'s, S> {
    stream: &'s mut S,
    exports: &'s Exports,
    agreed: Agreed,
    greeted: Greeted,
}

impl<S: Read + Write> Talk<'_, S> {
    fn option(&mut self) -> io::Result<Next> {
        let (option, data) = next_option(self.stream)?;
        match option {
            option::EXPORT_NAME => self.export_name(&data),
            option::ABORT => {
                // It may have gone already.
                let _ = self.reply(option, reply::ACK, &[]);
                Ok(Next::End)
            }
            option::LIST if data.is_empty() => {
                // The length of an empty name.
                self.reply(option, reply::SERVER, &[0; 4])?;
                self.ack(option)
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.agreed.structured = true;
                self.ack(option)
            }
            option::STARTTLS if self.greeted.secure => self.invalid(option),
            option::LIST | option::STRUCTURED_REPLY => self.invalid(option),
            option::INFO | option::GO => self.info_or_go(option, &data),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(option, &data),
            _ => {
                self.error(option, reply::ERR_UNSUP, "this server does not know that option")?;
                Ok(Next::Option)
            }
        }
    }

    /// The old way to choose, which has no errors.
    fn export_name(&mut self, name: &[u8]) -> io::Result<Next> {
        let Some((disk, export)) = self.exports.find(name) else {
            return Err(refused("there is one disk here, and its name is empty"));
        };
        self.choose_disk(disk);
        let mut out = export.size.to_be_bytes().to_vec();
        out.extend_from_slice(&export.flags(self.agreed.structured).to_be_bytes());
        if self.greeted.zeroes {
            out.resize(out.len() + 124, 0);
        }
        self.stream.write_all(&out)?;
        Ok(Next::Transmission)
    }

    fn info_or_go(&mut self, option: u32, data: &[u8]) -> io::Result<Next> {
        let Some((name, wanted)) = info_request(data) else { return self.invalid(option) };
        let Some((disk, export)) = self.exports.find(name) else { return self.unknown(option) };
        let structured = self.agreed.structured;
        let mut kinds = vec![info::EXPORT];
        for kind in wanted {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        for info in kinds.into_iter().filter_map(|kind| export.info(kind, structured)) {
            self.reply(option, reply::INFO, &info)?;
        }
        self.ack(option)?;
        if option != option::GO {
            return Ok(Next::Option);
        }
        self.choose_disk(disk);
        Ok(Next::Transmission)
    }

    /// Contexts were agreed on for one disk only.
    fn choose_disk(&mut self, disk: usize) {
        self.agreed.allocation &= self.agreed.disk == disk;
        self.agreed.disk = disk;
    }

    fn contexts(&mut self, option: u32, data: &[u8]) -> io::Result<Next> {
        let list = option == option::LIST_META_CONTEXT;
        if !list {
            // Whatever this request's outcome, it ends the earlier contexts.
            self.agreed.allocation = false;
        }
        let Some((name, queries)) = context_request(data) else { return self.invalid(option) };
        if !self.agreed.structured {
            return self.invalid(option);
        }
        let Some((disk, _)) = self.exports.find(name) else { return self.unknown(option) };
        let found = match list {
            true => {
                queries.is_empty()
                    || queries.iter().any(|query| [ALLOCATION, b"base:"].contains(query))
            }
            false => queries.contains(&ALLOCATION),
        };
        if found {
            let id = if list { 0 } else { ALLOCATION_ID };
            let context = [&id.to_be_bytes()[..], ALLOCATION].concat();
            self.reply(option, reply::META_CONTEXT, &context)?;
            if !list {
                (self.agreed.allocation, self.agreed.disk) = (true, disk);
            }
        }
        self.ack(option)
    }

    fn reply(&mut self, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        self.stream.write_all(&option_reply(option, kind, data))
    }

    fn ack(&mut self, option: u32) -> io::Result<Next> {
        self.reply(option, reply::ACK, &[])?;
        Ok(Next::Option)
    }

    fn error(&mut self, option: u32, kind: u32, why: &str) -> io::Result<()> {
        self.reply(option, kind, why.as_bytes())
    }

    fn invalid(&mut self, option: u32) -> io::Result<Next> {
        self.error(option, reply::ERR_INVALID, "that option makes no sense as it is")?;
        Ok(Next::Option)
    }

    fn unknown(&mut self, option: u32) -> io::Result<Next> {
        self.error(option, reply::ERR_UNKNOWN, "there is one disk here, and its name is empty")?;
        Ok(Next::Option)
    }
}

/// The name and the requested information.
fn info_request(data: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let mut fields = Fields(data);
    let name = fields.string()?;
    let count = fields.u16()?;
    let wanted = (0..count).map(|_| fields.u16()).collect::<Option<Vec<_>>>()?;
    fields.0.is_empty().then_some((name, wanted))
}

/// The name and the queries.
fn context_request(data: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let mut fields = Fields(data);
    let name = fields.string()?;
    let count = fields.u32()?;
    // Ends at the first missing one: the data bounds the memory.
    let mut queries = Vec::new();
    for _ in 0..count {
        queries.push(fields.string()?);
    }
    fields.0.is_empty().then_some((name, queries))
}
