//! The newest head that this computer knows of a shared volume: a server that shows an older state
//! is found by it.

use oblivio_crypto::{Entropy, OsEntropy, TAG_BYTES, Tag, VolumeId, digest};
use oblivio_engine::pyramid::share::Head;
use oblivio_store::replace_file;
use oblivio_volume::notes::{
    NOTE_BYTES, NoteFormat, Parsed, PlaceNote, TwoNotes, lock, make_folder, unkept, unreadable,
};
use oblivio_volume::{Keep, Result};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 16] = *b"oblivio-share 1\n";
/// Bytes of a note's digest.
const SUM: usize = 32;

/// What keeps the newest head.
pub trait HeadKeeper: Send {
    /// The newest head that was noted; that of an empty history if there is none.
    fn head(&self) -> Head;

    /// Notes a newer head; durably, if asked for.
    ///
    /// # Errors
    /// `Forgotten` if it cannot be kept.
    fn note(&mut self, head: Head, durable: bool) -> Result<()>;
}

/// A memory that ends with the process: for volumes that are used once, and for tests.
#[derive(Debug, Default)]
pub struct Unremembered(pub Head);

impl HeadKeeper for Unremembered {
    fn head(&self) -> Head {
        self.0
    }

    fn note(&mut self, head: Head, _durable: bool) -> Result<()> {
        self.0 = head;
        Ok(())
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Note {
    magic: [u8; 16],
    count: U64,
    number: U64,
    tag: [u8; TAG_BYTES],
}

/// Notes as records of bytes: the head first, a digest of all else at the end.
struct HeadFormat;

impl NoteFormat for HeadFormat {
    type Note = Head;

    fn encode(&self, number: u64, head: &Head) -> [u8; NOTE_BYTES] {
        let (count, number) = (U64::new(number), U64::new(head.number));
        let note = Note { magic: MAGIC, count, number, tag: head.tag.0 };
        let mut bytes = [0; NOTE_BYTES];
        bytes[..size_of::<Note>()].copy_from_slice(note.as_bytes());
        let sum = digest(&bytes[..NOTE_BYTES - SUM]);
        bytes[NOTE_BYTES - SUM..].copy_from_slice(&sum);
        bytes
    }

    fn decode(&self, bytes: &[u8]) -> Parsed<Option<(u64, Head)>> {
        let Some((body, sum)) = bytes.split_last_chunk::<SUM>() else { return Ok(None) };
        let Ok((note, _)) = Note::read_from_prefix(body) else { return Ok(None) };
        let whole = bytes.len() == NOTE_BYTES && digest(body) == *sum && note.magic == MAGIC;
        let head = Head { number: note.number.get(), tag: Tag(note.tag) };
        Ok(whole.then_some((note.count.get(), head)))
    }
}

/// A file of this computer. One client at a time has it.
pub struct FileKnown {
    path: PathBuf,
    notes: TwoNotes<HeadFormat>,
    head: Head,
    _lock: File,
}

impl FileKnown {
    /// The memory of a volume in this folder, which is made if there is none. `address` says where
    /// the volume is; with `any_volume` another one may have been there before.
    ///
    /// # Errors
    /// `Busy` if another client of this computer has it; `Forgotten` if it cannot be read or kept;
    /// `OtherVolume`.
    pub fn open(folder: &Path, address: &str, volume: VolumeId, any_volume: bool) -> Result<Self> {
        make_folder(folder).map_err(|error| unkept(folder, &error))?;
        let lock = lock(&folder.join(format!("{volume}.share.lock")))?;
        let mut place = PlaceNote::new(folder, address.as_ref(), ".share", "");
        place.check(volume, any_volume)?;
        place.keep(volume)?;
        let path = folder.join(format!("{volume}.share"));
        let (notes, head) = TwoNotes::open(path.clone(), HeadFormat)?;
        Ok(Self { path, notes, head: head.unwrap_or_default(), _lock: lock })
    }

    /// The number by which this computer knows itself again in the volume. It is made at the first
    /// call. Another computer has another one, unless this folder was copied to it.
    ///
    /// # Errors
    /// `Forgotten` if it cannot be read or kept.
    pub fn computer(&self) -> Result<[u8; 16]> {
        let path = self.path.with_extension("computer");
        match fs::read(&path) {
            Ok(bytes) => bytes.try_into().map_err(|_| unreadable(&path, "it is no number")),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut new = [0; 16];
                OsEntropy.fill(&mut new);
                replace_file(&path, &new).map_err(|error| unkept(&path, &error))?;
                Ok(new)
            }
            Err(error) => Err(unkept(&path, &error)),
        }
    }
}

impl HeadKeeper for FileKnown {
    fn head(&self) -> Head {
        self.head
    }

    fn note(&mut self, head: Head, durable: bool) -> Result<()> {
        if head == self.head && !durable {
            return Ok(());
        }
        self.notes.write(&head, if durable { Keep::Durable } else { Keep::Soon })?;
        self.head = head;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_volume::Error;

    const VOLUME: VolumeId = VolumeId([7; 16]);

    fn head(number: u64) -> Head {
        Head { number, tag: Tag([number as u8; TAG_BYTES]) }
    }

    #[test]
    fn the_newest_head_is_known_again_and_a_torn_note_leaves_the_one_before() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let open = || FileKnown::open(dir.path(), "share://a/b", VOLUME, false);
        let mut known = open()?;
        assert_eq!(known.head(), Head::default());
        assert!(matches!(open(), Err(Error::Busy)));
        for number in 1..6 {
            known.note(head(number), number % 2 == 0)?;
        }
        drop(known);
        assert_eq!(open()?.head(), head(5));
        let path = dir.path().join(format!("{VOLUME}.share"));
        let mut bytes = fs::read(&path).expect("it is there");
        bytes[NOTE_BYTES + 30] ^= 1;
        fs::write(&path, &bytes).expect("written");
        assert_eq!(open()?.head(), head(4));
        fs::write(&path, [0; 2 * NOTE_BYTES]).expect("written");
        assert!(matches!(open(), Err(Error::Forgotten(_))), "no first time");
        Ok(())
    }

    #[test]
    fn another_volume_at_a_known_address_is_refused() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let open = |volume, any| FileKnown::open(dir.path(), "share://a/b", volume, any).map(drop);
        open(VOLUME, false)?;
        let other = VolumeId([8; 16]);
        assert!(matches!(open(other, false), Err(Error::OtherVolume(_))));
        open(other, true)?;
        open(other, false)
    }
}
