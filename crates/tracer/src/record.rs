//! The format of a trace: a header, then a record for each line that is read or written.
//! `docs/traces.md` has it byte by byte.

use crate::caches::{Counts, Geometry, Kind, Size};
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The first bytes of a trace.
const MAGIC: &[u8; 8] = b"OBLVMISS";
/// The version that is written, and the only one that is read.
const VERSION: u16 = 1;
/// Bytes of a header before its texts.
const FIXED: usize = 120;
/// Longest text in a header.
const MOST_TEXT: usize = 4096;
const SUM_BYTES: usize = 8;
/// Kinds by their numbers in a record.
const KINDS: [Kind; 4] = [Kind::Load, Kind::Store, Kind::Eviction, Kind::Fetch];

/// One line that is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Cycles of the core since the record before, without waiting for memory.
    pub cycles: u64,
    /// Why.
    pub kind: Kind,
    /// The virtual address, divided by the bytes of a line.
    pub line: u64,
}

/// What was traced, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The program's name.
    pub program: String,
    /// The package that it is from, with its version.
    pub package: String,
    /// Its arguments.
    pub arguments: String,
    /// The caches.
    pub geometry: Geometry,
}

/// What a trace comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Instructions before the first record, which warmed the caches up.
    pub skipped: u64,
    /// Instructions that were traced.
    pub instructions: u64,
    /// Their cycles, without waiting for memory.
    pub cycles: u64,
    /// Their misses.
    pub counts: Counts,
}

/// A header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// What was traced.
    pub about: About,
    /// What came out.
    pub totals: Totals,
    /// Bytes of all records.
    pub record_bytes: u64,
    records: u64,
    sum: u64,
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It begins differently.
    #[error("this is no trace, or one whose making was cut off: trace the program again")]
    NoTrace,
    /// Another version.
    #[error("the trace has version {0} of the format, and this program reads version 1 only")]
    Version(u16),
    /// It does not keep to the format.
    #[error("the trace is damaged ({0}): trace the program again")]
    Damaged(&'static str),
    /// A text that does not fit into a header.
    #[error("a text of the header has more than 4096 bytes")]
    LongText,
}

/// FNV-1a. It finds damage by accident, not by intent.
#[derive(Clone, Copy)]
struct Sum(u64);

impl Sum {
    const NEW: Self = Self(0xcbf2_9ce4_8422_2325);

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn of(bytes: &[u8]) -> u64 {
        let mut sum = Self::NEW;
        sum.add(bytes);
        sum.0
    }
}

impl Header {
    fn bytes(&self) -> Result<Vec<u8>, Error> {
        let texts = [&self.about.program, &self.about.package, &self.about.arguments];
        let long: usize = texts.iter().map(|text| 2 + text.len()).sum();
        if texts.iter().any(|text| text.len() > MOST_TEXT) {
            return Err(Error::LongText);
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(((FIXED + long + SUM_BYTES) as u16).to_le_bytes());
        let Geometry { line, l1i, l1d, l2 } = self.about.geometry;
        bytes.extend(line.to_le_bytes());
        for Size { bytes: size, ways } in [l1i, l1d, l2] {
            bytes.extend(size.to_le_bytes());
            bytes.extend(ways.to_le_bytes());
        }
        let Totals { skipped, instructions, cycles, counts } = self.totals;
        let Counts { l1i_misses, l1d_misses, l2_misses, evictions } = counts;
        for number in [
            skipped,
            instructions,
            cycles,
            l1i_misses,
            l1d_misses,
            l2_misses,
            evictions,
            self.records,
            self.record_bytes,
            self.sum,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        for text in texts {
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.extend(Sum::of(&bytes).to_le_bytes());
        Ok(bytes)
    }

    fn read(from: &mut impl Read) -> Result<Self, Error> {
        let mut bytes = vec![0; 12];
        exactly(from, &mut bytes)?;
        if &bytes[..8] != MAGIC {
            return Err(Error::NoTrace);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let long = usize::from(u16::from_le_bytes([bytes[10], bytes[11]]));
        if long < FIXED + SUM_BYTES {
            return Err(Error::Damaged("its header is too short"));
        }
        bytes.resize(long, 0);
        exactly(from, &mut bytes[12..])?;
        let (body, sum) = bytes.split_at(long - SUM_BYTES);
        if sum != Sum::of(body).to_le_bytes() {
            return Err(Error::Damaged("its header does not add up"));
        }
        let mut fields = Fields(&body[12..]);
        let header = fields.header()?;
        let counts = header.totals.counts;
        if !fields.0.is_empty()
            || !header.about.geometry.is_valid()
            || counts.l2_misses.checked_add(counts.evictions) != Some(header.records)
        {
            return Err(Error::Damaged("its header says what cannot be"));
        }
        Ok(header)
    }
}

/// As `read_exact`, but a file that ends is a damaged trace.
fn exactly(from: &mut impl Read, bytes: &mut [u8]) -> Result<(), Error> {
    from.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::Damaged("it ends too early"),
        _ => error.into(),
    })
}

/// The fields of a header that are not read yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (first, rest) =
            self.0.split_first_chunk().ok_or(Error::Damaged("its header ends too early"))?;
        self.0 = rest;
        Ok(*first)
    }

    fn small(&mut self) -> Result<u32, Error> {
        self.take().map(u32::from_le_bytes)
    }

    fn large(&mut self) -> Result<u64, Error> {
        self.take().map(u64::from_le_bytes)
    }

    fn size(&mut self) -> Result<Size, Error> {
        Ok(Size { bytes: self.small()?, ways: self.small()? })
    }

    fn text(&mut self) -> Result<String, Error> {
        let long = usize::from(u16::from_le_bytes(self.take()?));
        let (text, rest) =
            self.0.split_at_checked(long).ok_or(Error::Damaged("a text ends too early"))?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).map_err(|_| Error::Damaged("a text is not UTF-8"))
    }

    fn header(&mut self) -> Result<Header, Error> {
        let geometry = Geometry {
            line: self.small()?,
            l1i: self.size()?,
            l1d: self.size()?,
            l2: self.size()?,
        };
        let totals = Totals {
            skipped: self.large()?,
            instructions: self.large()?,
            cycles: self.large()?,
            counts: Counts {
                l1i_misses: self.large()?,
                l1d_misses: self.large()?,
                l2_misses: self.large()?,
                evictions: self.large()?,
            },
        };
        let (records, record_bytes, sum) = (self.large()?, self.large()?, self.large()?);
        let about = About {
            program: self.text()?,
            package: self.text()?,
            arguments: self.text()?,
            geometry,
        };
        Ok(Header { about, totals, record_bytes, records, sum })
    }
}

/// Lines are written as steps from the line before. Lines that are read and lines that are written
/// back come from different places: each has its own line before.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    read: u64,
    evicted: u64,
}

impl Before {
    fn of(&mut self, kind: Kind) -> &mut u64 {
        if kind == Kind::Eviction { &mut self.evicted } else { &mut self.read }
    }
}

/// Writes a trace. It can be read once [`Writer::finish`] has returned.
pub struct Writer<W> {
    to: W,
    header: Header,
    before: Before,
    sum: Sum,
}

impl<W: Write + Seek> Writer<W> {
    /// Leaves room for the header.
    ///
    /// # Errors
    /// Those of the file, and a text that is too long.
    pub fn new(mut to: W, about: About) -> Result<Self, Error> {
        let totals = Totals::default();
        let header = Header { about, totals, record_bytes: 0, records: 0, sum: 0 };
        to.write_all(&vec![0; header.bytes()?.len()])?;
        Ok(Self { to, header, before: Before::default(), sum: Sum::NEW })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Those of the file.
    pub fn record(&mut self, record: Record) -> Result<(), Error> {
        let before = self.before.of(record.kind);
        let step = record.line.wrapping_sub(*before) as i64;
        *before = record.line;
        let mut bytes = [0; 20];
        let first = varint(record.cycles << 2 | record.kind as u64, &mut bytes);
        let long = first + varint((step << 1 ^ step >> 63) as u64, &mut bytes[first..]);
        self.to.write_all(&bytes[..long])?;
        self.sum.add(&bytes[..long]);
        self.header.records += 1;
        self.header.record_bytes += long as u64;
        Ok(())
    }

    /// Writes the header: the trace is whole.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(mut self, totals: Totals) -> Result<W, Error> {
        self.header.totals = totals;
        self.header.sum = self.sum.0;
        self.to.seek(SeekFrom::Start(0))?;
        self.to.write_all(&self.header.bytes()?)?;
        self.to.flush()?;
        Ok(self.to)
    }
}

/// Seven bits a byte, the lowest first. Returns how many bytes it took.
fn varint(mut value: u64, to: &mut [u8]) -> usize {
    let mut long = 0;
    while value >= 0x80 {
        to[long] = value as u8 | 0x80;
        value >>= 7;
        long += 1;
    }
    to[long] = value as u8;
    long + 1
}

/// Reads a trace, record by record. Give it something with a buffer.
pub struct Reader<R> {
    from: R,
    header: Header,
    before: Before,
    sum: Sum,
    records: u64,
    bytes: u64,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// Those of the file; it is no trace, of another version, or damaged.
    pub fn new(mut from: R) -> Result<Self, Error> {
        let header = Header::read(&mut from)?;
        let before = Before::default();
        Ok(Self { from, header, before, sum: Sum::NEW, records: 0, bytes: 0, ended: false })
    }

    /// What is in the trace.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next record; none behind the last. What was read is known to be whole only then.
    fn record(&mut self) -> Result<Option<Record>, Error> {
        if self.records == self.header.records {
            if self.bytes != self.header.record_bytes || self.sum.0 != self.header.sum {
                return Err(Error::Damaged("its records do not add up"));
            }
            return match self.from.read(&mut [0])? {
                0 => Ok(None),
                _ => Err(Error::Damaged("something follows its last record")),
            };
        }
        self.records += 1;
        let (first, step) = (self.varint()?, self.varint()?);
        let kind = KINDS[(first & 3) as usize];
        let before = self.before.of(kind);
        *before = before.wrapping_add(step >> 1 ^ (step & 1).wrapping_neg());
        Ok(Some(Record { cycles: first >> 2, kind, line: *before }))
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            exactly(&mut self.from, &mut byte)?;
            self.sum.add(&byte);
            self.bytes += 1;
            let bits = u64::from(byte[0] & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::Damaged("a number is too long"))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    /// Ends after the last record, and after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let record = self.record().transpose();
        self.ended = !matches!(record, Some(Ok(_)));
        record
    }
}
