//! The feed from a working command to `oblivio watch`: frames of a length and one JSON object, over
//! a socket that only the same user can reach.

use oblivio_volume::Shown;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// Version of the feed; a different number ends the connection.
pub const VERSION: u32 = 2;
/// Limit of a frame: well above the largest event of a publisher.
const MOST_BYTES: u32 = 256 << 10;
/// Limit of a batch's places in an event. A larger batch is thinned evenly: it is for the eye.
const MOST_PLACES: usize = 512;

/// One message of the feed, and one of the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WatchEvent {
    /// The first message of a connection.
    Hello { version: u32, command: String, pid: u32 },
    /// The volume's facts.
    Facts(Facts),
    /// One batch as the store saw it.
    Shown(DrawnBatch),
    /// Writes made at once, to a volume that hides writes.
    Written(Written),
    /// The same request as ordinary encryption would show it.
    Ordinary {
        at: u64,
        #[serde(flatten)]
        event: OrdinaryEvent,
    },
    /// Events left out because the watcher was slow.
    Dropped { count: u64 },
}

/// The public facts of an open volume, and whether it holds a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    pub block_bytes: u64,
    pub holds: WatchedUse,
    #[serde(flatten)]
    pub engine: EngineFacts,
}

/// What a volume holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchedUse {
    /// A file system.
    Files,
    /// A disk.
    Disk,
}

/// The facts of its engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "engine", rename_all = "snake_case")]
pub enum EngineFacts {
    Tree {
        bucket_bytes: u64,
        size_class_bytes: u64,
        depth: u32,
    },
    Sequential {
        capacity_bytes: u64,
        /// The parts of the store, end to end.
        parts: Vec<StorePart>,
    },
}

/// A part of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorePart {
    pub name: String,
    pub bytes: u64,
}

/// A [`Shown`] with its time, thinned for drawing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnBatch {
    /// Milliseconds since 1970.
    pub at: u64,
    pub depth: u32,
    /// Paths that were read.
    pub paths: u64,
    pub reads: u32,
    pub writes: u32,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Byte offsets in the slab; all of them, or evenly chosen ones.
    pub places_read: Vec<u64>,
    pub places_written: Vec<u64>,
}

impl DrawnBatch {
    pub fn of(shown: &Shown) -> Self {
        Self {
            at: now(),
            depth: shown.depth,
            paths: shown.leaves.len() as u64,
            reads: shown.reads,
            writes: shown.writes,
            bytes_read: shown.bytes_read,
            bytes_written: shown.bytes_written,
            places_read: thinned(&shown.places_read),
            places_written: thinned(&shown.places_written),
        }
    }
}

fn thinned<T: Copy>(places: &[T]) -> Vec<T> {
    if places.len() <= MOST_PLACES {
        return places.to_vec();
    }
    (0..MOST_PLACES).filter_map(|at| places.get(at * places.len() / MOST_PLACES)).copied().collect()
}

/// Writes that the store was given together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Milliseconds since 1970.
    pub at: u64,
    pub writes: u64,
    pub bytes: u64,
    /// Places in the store and lengths there; all of them, or evenly chosen ones.
    pub places: Vec<(u64, u64)>,
    /// Flushes seen so far, once it is known how many there were before.
    pub flushes: Option<u64>,
}

impl Written {
    pub fn of(places: &[(u64, u64)], flushes: Option<u64>) -> Self {
        let bytes = places.iter().map(|(_, len)| len).sum();
        let writes = places.len() as u64;
        Self { at: now(), writes, bytes, places: thinned(places), flushes }
    }
}

/// What was done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    Read,
    Write,
    Create,
    Delete,
}

/// One request as it would reach the storage if every file were encrypted by itself, in a file of
/// its own, as gocryptfs and its like do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrdinaryEvent {
    what: Work,
    /// A number that stands for the file; its name is encrypted there too.
    file: u64,
    /// How long the file is.
    size: u64,
    offset: u64,
    len: u64,
}

impl OrdinaryEvent {
    /// A read of `len` bytes at `offset` in a file of `size` bytes.
    pub fn read(file: u64, size: u64, offset: u64, len: u64) -> Self {
        Self { what: Work::Read, file, size, offset, len }
    }

    /// A write, likewise.
    pub fn write(file: u64, size: u64, offset: u64, len: u64) -> Self {
        Self { what: Work::Write, file, size, offset, len }
    }

    /// A new file.
    pub fn create(file: u64) -> Self {
        Self { what: Work::Create, file, size: 0, offset: 0, len: 0 }
    }

    /// The end of a file of `size` bytes.
    pub fn delete(file: u64, size: u64) -> Self {
        Self { what: Work::Delete, file, size, offset: 0, len: 0 }
    }
}

/// Milliseconds since 1970, as the page's clock has them.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Writes one event as a frame, in one piece.
pub fn write(to: &mut impl Write, event: &WatchEvent) -> io::Result<()> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, event)?;
    let len = u32::try_from(frame.len() - 4).ok().filter(|&len| len <= MOST_BYTES);
    let len = len.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "a frame too long"))?;
    frame[..4].copy_from_slice(&len.to_le_bytes());
    to.write_all(&frame)
}

/// Reads one event; `None` at the end of the feed.
pub fn read(from: &mut impl Read) -> io::Result<Option<WatchEvent>> {
    let mut len = [0; 4];
    match from.read(&mut len)? {
        0 => return Ok(None),
        some => from.read_exact(&mut len[some..])?,
    }
    let len = u32::from_le_bytes(len);
    if len > MOST_BYTES {
        return Err(io::Error::new(ErrorKind::InvalidData, "a frame too long"));
    }
    let mut body = vec![0; len as usize];
    from.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(places: u64) -> Shown {
        Shown {
            leaves: vec![1, 2],
            depth: 9,
            reads: places as u32,
            writes: 0,
            bytes_read: places * 4096,
            bytes_written: 0,
            places_read: (0..places).map(|place| place << 40).collect(),
            ..Shown::default()
        }
    }

    #[test]
    fn what_is_written_is_read() -> io::Result<()> {
        let tree = EngineFacts::Tree { bucket_bytes: 2, size_class_bytes: u64::MAX, depth: 3 };
        let parts = vec![StorePart { name: "log".into(), bytes: u64::MAX }];
        let sequential = EngineFacts::Sequential { capacity_bytes: 4, parts };
        let events = [
            WatchEvent::Hello { version: VERSION, command: "put".into(), pid: 7 },
            WatchEvent::Facts(Facts { block_bytes: 1, holds: WatchedUse::Files, engine: tree }),
            WatchEvent::Facts(Facts {
                block_bytes: 1,
                holds: WatchedUse::Disk,
                engine: sequential,
            }),
            WatchEvent::Shown(DrawnBatch::of(&shown(3))),
            WatchEvent::Written(Written::of(&[(0, 4096), (1 << 60, 1)], None)),
            WatchEvent::Written(Written::of(&[], Some(9))),
            WatchEvent::Ordinary { at: 5, event: OrdinaryEvent::read(1, 2, 3, 4) },
            WatchEvent::Dropped { count: 9 },
        ];
        let mut wire = Vec::new();
        events.iter().try_for_each(|event| write(&mut wire, event))?;
        let mut from = wire.as_slice();
        for event in events {
            assert_eq!(read(&mut from)?, Some(event));
        }
        assert_eq!(read(&mut from)?, None);
        Ok(())
    }

    #[test]
    fn the_largest_batch_fits_a_frame() -> io::Result<()> {
        let mut all = shown(100_000);
        all.places_read.iter_mut().for_each(|place| *place |= 1 << 63);
        all.places_written = all.places_read.clone();
        let batch = DrawnBatch::of(&all);
        assert_eq!(batch.places_read.len(), MOST_PLACES);
        assert_eq!(batch.reads, 100_000);
        write(&mut io::sink(), &WatchEvent::Shown(batch))?;
        let all = Written::of(&vec![(u64::MAX, 1 << 50); 9999], Some(u64::MAX));
        assert_eq!((all.places.len(), all.writes), (MOST_PLACES, 9999));
        write(&mut io::sink(), &WatchEvent::Written(all))
    }

    #[test]
    fn anything_else_is_refused() -> io::Result<()> {
        let mut good = Vec::new();
        write(&mut good, &WatchEvent::Dropped { count: 9 })?;
        for cut in 1..good.len() {
            assert!(read(&mut &good[..cut]).is_err(), "{cut}");
        }
        for body in ["", "null", "{}", r#"{"kind":"other"}"#, r#"{"kind":"dropped","count":-1}"#] {
            let frame = [&(body.len() as u32).to_le_bytes(), body.as_bytes()].concat();
            assert!(read(&mut frame.as_slice()).is_err(), "{body}");
        }
        // A length that nobody should make room for.
        assert!(read(&mut [0xff; 64].as_slice()).is_err());
        Ok(())
    }
}
