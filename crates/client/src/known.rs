//! The newest head that this computer knows of a shared volume: a server that shows an older state
//! is found by it.

use oblivio_crypto::{Entropy, OsEntropy, TAG_BYTES, Tag, VolumeId, digest};
use oblivio_engine::pyramid::share::Head;
use oblivio_store::replace_file;
use oblivio_volume::{Error, Result};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 16] = *b"oblivio-share 1\n";
/// Bytes of a note. Two take turns, so one that a power failure tore leaves the other.
const NOTE: usize = 512;

/// What keeps the newest head.
pub trait Known: Send {
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

impl Known for Unremembered {
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

/// A file of this computer. One client at a time has it.
pub struct FileKnown {
    path: PathBuf,
    file: Option<File>,
    count: u64,
    head: Head,
    _lock: File,
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::Forgotten(format!("cannot be kept: {}: {error}", path.display()))
}

impl FileKnown {
    /// The memory of a volume in this folder, which is made if there is none. `address` says where
    /// the volume is; with `any_volume` another one may have been there before.
    ///
    /// # Errors
    /// `Busy` if another client of this computer has it; `Forgotten` if it cannot be read or kept;
    /// `OtherVolume`.
    pub fn open(folder: &Path, address: &str, volume: VolumeId, any_volume: bool) -> Result<Self> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| failed(folder, &error))?;
        let lock_path = folder.join(format!("{volume}.share.lock"));
        let lock = File::options().create(true).append(true).mode(0o600).open(&lock_path);
        let lock = lock.map_err(|error| failed(&lock_path, &error))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(Error::Busy),
            Err(error) => return Err(failed(&lock_path, &error.into())),
        }
        check_place(folder, address, volume, any_volume)?;
        let path = folder.join(format!("{volume}.share"));
        let (file, count, head) = match File::options().read(true).write(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => (None, 0, Head::default()),
            Err(error) => return Err(failed(&path, &error)),
            Ok(file) => {
                let bytes = fs::read(&path).map_err(|error| failed(&path, &error))?;
                let (count, head) = newest(&bytes).ok_or_else(|| {
                    Error::Forgotten(format!("is unreadable: {}", path.display()))
                })?;
                (Some(file), count, head)
            }
        };
        Ok(Self { path, file, count, head, _lock: lock })
    }
}

impl FileKnown {
    /// The number by which this computer knows itself again in the volume. It is made at the first
    /// call. Another computer has another one, unless this folder was copied to it.
    ///
    /// # Errors
    /// `Forgotten` if it cannot be read or kept.
    pub fn computer(&self) -> Result<[u8; 16]> {
        let path = self.path.with_extension("computer");
        match fs::read(&path) {
            Ok(bytes) => bytes
                .try_into()
                .map_err(|_| Error::Forgotten(format!("is unreadable: {}", path.display()))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut new = [0; 16];
                OsEntropy.fill(&mut new);
                replace_file(&path, &new).map_err(|error| failed(&path, &error))?;
                Ok(new)
            }
            Err(error) => Err(failed(&path, &error)),
        }
    }
}

/// Notes which volume is at a place, and refuses another one than before.
fn check_place(folder: &Path, address: &str, volume: VolumeId, any_volume: bool) -> Result<()> {
    let name: String =
        digest(address.as_bytes())[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let (places, text) = (folder.join("places"), format!("volume {volume}\nplace {address}\n"));
    let path = places.join(format!("{name}.share"));
    match fs::read_to_string(&path) {
        Ok(known) if known == text => return Ok(()),
        Ok(known) if !any_volume => {
            let known = known.lines().next().unwrap_or_default().to_owned();
            let why = format!("{address} was the place of {known}, and now holds volume {volume}");
            return Err(Error::OtherVolume(why));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&path, &error)),
        _ => {}
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&places);
    made.map_err(|error| failed(&places, &error))?;
    replace_file(&path, text.as_bytes()).map(drop).map_err(|error| failed(&path, &error))
}

fn encode(count: u64, head: Head) -> [u8; NOTE] {
    let (count, number) = (U64::new(count), U64::new(head.number));
    let note = Note { magic: MAGIC, count, number, tag: head.tag.0 };
    let mut bytes = [0; NOTE];
    let len = size_of::<Note>();
    bytes[..len].copy_from_slice(note.as_bytes());
    let sum = digest(&bytes[..NOTE - 32]);
    bytes[NOTE - 32..].copy_from_slice(&sum);
    bytes
}

/// The newest note that is whole; none if there is none.
fn newest(bytes: &[u8]) -> Option<(u64, Head)> {
    let whole = |bytes: &[u8; NOTE]| {
        let (note, _) = Note::read_from_prefix(&bytes[..]).ok()?;
        let sound = digest(&bytes[..NOTE - 32]) == bytes[NOTE - 32..] && note.magic == MAGIC;
        let head = Head { number: note.number.get(), tag: Tag(note.tag) };
        sound.then_some((note.count.get(), head))
    };
    bytes.as_chunks().0.iter().filter_map(whole).max_by_key(|(count, _)| *count)
}

impl Known for FileKnown {
    fn head(&self) -> Head {
        self.head
    }

    fn note(&mut self, head: Head, durable: bool) -> Result<()> {
        if head == self.head && !durable {
            return Ok(());
        }
        let count = self.count + 1;
        let (note, at) = (encode(count, head), count % 2 * NOTE as u64);
        let done = match &self.file {
            Some(file) if durable => file.write_all_at(&note, at).and_then(|()| file.sync_data()),
            Some(file) => file.write_all_at(&note, at),
            None => {
                let mut both = vec![b'\n'; 2 * NOTE];
                both[at as usize..at as usize + NOTE].copy_from_slice(&note);
                replace_file(&self.path, &both).map(|file| self.file = Some(file))
            }
        };
        done.map_err(|error| failed(&self.path, &error))?;
        (self.count, self.head) = (count, head);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        bytes[NOTE + 30] ^= 1;
        fs::write(&path, &bytes).expect("written");
        assert_eq!(open()?.head(), head(4));
        fs::write(&path, [0; 2 * NOTE]).expect("written");
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
