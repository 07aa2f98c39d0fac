//! Files of this computer that say what it saw of a volume: without them, a store may show an older
//! state, or another volume, and nobody notices.
//!
//! Three things are kept in a folder of the user's: what was seen ([`TwoNotes`]), which volume was
//! at a place ([`PlaceNote`]), and a file that is locked while a session has the volume ([`lock`]).
//! A file that cannot be read is an error, never a first time.
//!
//! What was seen is noted before each sync returns, so a note is one small write into a file that
//! exists. A power failure may tear it: two notes take turns, and the other one is whole.

use super::known::{Keep, NoteSyncer};
use crate::{Error, Result};
use oblivio_crypto::{VolumeId, digest, hex, unhex};
use oblivio_store::replace_file;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a note.
pub const NOTE_BYTES: usize = 512;

/// The parsed value, or why it is invalid.
pub type Parsed<T> = std::result::Result<T, &'static str>;

/// How notes are stored. Each has a number and a checksum.
pub trait NoteFormat {
    /// What a note says.
    type Note: PartialEq;

    /// A note as stored.
    fn encode(&self, number: u64, note: &Self::Note) -> [u8; NOTE_BYTES];

    /// The number and the content of a stored note; `None` for a torn one.
    ///
    /// # Errors
    /// Why a whole note cannot be used. It is never skipped: the other one is older.
    fn decode(&self, bytes: &[u8]) -> Parsed<Option<(u64, Self::Note)>>;

    /// What the file says, if an earlier version wrote it in a form of its own.
    fn decode_earlier(&self, _path: &Path, _bytes: &[u8]) -> Option<Parsed<Self::Note>> {
        None
    }
}

/// A file of two notes that take turns.
pub struct TwoNotes<F> {
    format: F,
    path: PathBuf,
    /// `None` until the first note, if there is no file yet or one of an earlier form.
    file: Option<File>,
    /// Notes so far; the number modulo two gives a note's place.
    count: u64,
}

impl<F: NoteFormat> TwoNotes<F> {
    /// Opens a file, and reads its newest note; `None` if there is no file.
    ///
    /// # Errors
    /// `Forgotten` if it cannot be read.
    pub fn open(path: PathBuf, format: F) -> Result<(Self, Option<F::Note>)> {
        let mut notes = Self { format, path, file: None, count: 0 };
        let file = match File::options().read(true).write(true).open(&notes.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((notes, None)),
            Err(error) => return Err(unreadable(&notes.path, &error.to_string())),
        };
        let bytes = notes.bytes(&file)?;
        if let Some(earlier) = notes.format.decode_earlier(&notes.path, &bytes) {
            let note = earlier.map_err(|why| unreadable(&notes.path, why))?;
            return Ok((notes, Some(note)));
        }
        let (count, note) = notes.newest(&bytes)?;
        (notes.count, notes.file) = (count, Some(file));
        Ok((notes, Some(note)))
    }

    /// Writes a note.
    ///
    /// # Errors
    /// `Forgotten` if it cannot.
    pub fn write(&mut self, note: &F::Note, keep: Keep) -> Result<()> {
        let number = self.count + 1;
        let (note, at) = (self.format.encode(number, note), number % 2 * NOTE_BYTES as u64);
        let written = match &self.file {
            Some(file) => file.write_all_at(&note, at).and_then(|()| match keep {
                Keep::Soon => Ok(()),
                Keep::Durable => file.sync_data(),
            }),
            // Both places exist from the beginning; the other one is still empty.
            None => {
                let mut both = [b'\n'; 2 * NOTE_BYTES];
                both[at as usize..at as usize + NOTE_BYTES].copy_from_slice(&note);
                replace_file(&self.path, &both).map(|file| self.file = Some(file))
            }
        };
        written.map_err(|error| unkept(&self.path, &error))?;
        self.count = number;
        Ok(())
    }

    /// As [`super::Keeper::syncer`]; `None` before the first note.
    pub fn syncer(&self) -> Option<NoteSyncer> {
        let (file, path) = (self.file.as_ref()?.try_clone().ok()?, self.path.clone());
        Some(Box::new(move || file.sync_data().map_err(|error| unkept(&path, &error))))
    }

    /// Whether the newest note in the file is the last one written, and this one.
    ///
    /// # Errors
    /// `Forgotten` if it cannot be read.
    pub fn holds(&self, note: &F::Note) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let (count, kept) = self.newest(&self.bytes(file)?)?;
        Ok(count == self.count && kept == *note)
    }

    /// The newest whole note of the two, and its number.
    fn newest(&self, bytes: &[u8]) -> Result<(u64, F::Note)> {
        let mut best: Option<(u64, F::Note)> = None;
        for note in bytes.chunks(NOTE_BYTES) {
            let note = self.format.decode(note).map_err(|why| unreadable(&self.path, why))?;
            let newer = |it: &(u64, F::Note)| best.as_ref().is_none_or(|best| best.0 <= it.0);
            if let Some(note) = note.filter(newer) {
                best = Some(note);
            }
        }
        best.ok_or_else(|| unreadable(&self.path, "neither of its two notes is whole"))
    }

    fn bytes(&self, file: &File) -> Result<Vec<u8>> {
        let mut bytes = vec![0; 2 * NOTE_BYTES];
        let mut held = 0;
        while held < bytes.len() {
            match file.read_at(&mut bytes[held..], held as u64) {
                Ok(0) => break,
                Ok(read) => held += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(&self.path, &error.to_string())),
            }
        }
        bytes.truncate(held);
        Ok(bytes)
    }
}

/// The file on a place, in this folder: its name is a digest of the place, and `suffix`.
pub fn place_file(folder: &Path, place: &OsStr, suffix: &str) -> PathBuf {
    folder.join("places").join(hex(&digest(place.as_bytes())[..16]) + suffix)
}

/// The file that says which volume was at a place when this computer used it last.
pub struct PlaceNote {
    /// The lines of the file before the volume's.
    head: &'static str,
    /// The place as its user names it.
    place: PathBuf,
    path: PathBuf,
    /// The content of the file, once it is known.
    kept: Option<VolumeId>,
}

impl PlaceNote {
    /// The note on a place, in this folder ([`place_file`]).
    pub fn new(folder: &Path, place: &OsStr, suffix: &str, head: &'static str) -> Self {
        Self { head, place: place.into(), path: place_file(folder, place, suffix), kept: None }
    }

    /// Refuses another volume than the one that was there, if any was.
    ///
    /// # Errors
    /// `OtherVolume`, unless `any` one may be there; `Forgotten` if the file cannot be read.
    pub fn check(&self, volume: VolumeId, any: bool) -> Result<()> {
        match self.volume()? {
            Some(other) if other != volume && !any => Err(Error::OtherVolume(format!(
                "{} was the place of volume {other} when this computer used it last, and now holds \
                 volume {volume}",
                self.place.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Notes that this volume is there, durably, unless that is noted already.
    ///
    /// # Errors
    /// `Forgotten` if it cannot.
    pub fn keep(&mut self, volume: VolumeId) -> Result<()> {
        if self.kept != Some(volume) && self.volume()? != Some(volume) {
            self.write(volume).map_err(|error| unkept(&self.path, &error))?;
        }
        self.kept = Some(volume);
        Ok(())
    }

    /// The volume that is noted, `None` when none is.
    fn volume(&self) -> Result<Option<VolumeId>> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&self.path, &error.to_string())),
        };
        let lines = text.strip_prefix(self.head).and_then(|rest| rest.strip_prefix("volume "));
        let volume = lines.and_then(|rest| unhex(rest.lines().next()?)).map(VolumeId);
        volume
            .map(Some)
            .ok_or_else(|| unreadable(&self.path, "it does not say which volume was there"))
    }

    fn write(&self, volume: VolumeId) -> io::Result<()> {
        make_folder(self.path.parent().unwrap_or(Path::new(".")))?;
        let mut text = format!("{}volume {volume}\nplace ", self.head).into_bytes();
        // For people who look; nothing reads it.
        text.extend(self.place.as_os_str().as_bytes().iter().filter(|byte| **byte != b'\n'));
        text.push(b'\n');
        replace_file(&self.path, &text).map(drop)
    }
}

/// Makes the folder of a user's notes, for this user alone.
///
/// # Errors
/// Those of the system.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Opens a file, or makes it, and locks it. The lock ends with the file or its process.
///
/// # Errors
/// `Busy` if another session has it; `Forgotten` if it cannot be made.
pub fn lock(path: &Path) -> Result<File> {
    let file = File::options().create(true).read(true).append(true).mode(0o600).open(path);
    let file = file.map_err(|error| unkept(path, &error))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Busy),
        Err(error) => Err(unkept(path, &error.into())),
    }
}

/// An error: a note cannot be read.
pub fn unreadable(path: &Path, why: &str) -> Error {
    Error::Forgotten(format!("is unreadable: {}: {why}", path.display()))
}

/// An error: a note cannot be written.
pub fn unkept(path: &Path, error: &io::Error) -> Error {
    Error::Forgotten(format!("cannot be kept: {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte and its number, and nothing else.
    struct Plain;

    impl NoteFormat for Plain {
        type Note = u8;

        fn encode(&self, number: u64, note: &u8) -> [u8; NOTE_BYTES] {
            let mut bytes = [*note; NOTE_BYTES];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            bytes
        }

        fn decode(&self, bytes: &[u8]) -> Parsed<Option<(u64, u8)>> {
            let Some((number, rest)) = bytes.split_first_chunk() else { return Ok(None) };
            let whole = rest.len() == NOTE_BYTES - 8 && rest.iter().all(|byte| *byte == rest[0]);
            match rest.first() {
                Some(255) => Err("it is of a newer version"),
                Some(note) if whole && *note != b'\n' => {
                    Ok(Some((u64::from_le_bytes(*number), *note)))
                }
                _ => Ok(None),
            }
        }
    }

    #[test]
    fn notes_take_turns_and_the_newest_whole_one_counts() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("notes");
        let open = || TwoNotes::open(path.clone(), Plain);
        let (mut notes, none) = open()?;
        assert_eq!(none, None);
        assert!(!notes.holds(&1)?, "nothing is noted");
        for note in 1..6 {
            notes.write(&note, if note == 3 { Keep::Durable } else { Keep::Soon })?;
            assert!(notes.holds(&note)? && !notes.holds(&9)?);
            assert_eq!(open()?.1, Some(note));
        }
        let mut bytes = fs::read(&path).expect("there");
        assert_eq!(bytes.len(), 2 * NOTE_BYTES);
        // The fifth is in the second place.
        bytes[NOTE_BYTES + 20] ^= 1;
        fs::write(&path, &bytes).expect("written");
        assert_eq!(open()?.1, Some(4));
        assert!(!notes.holds(&5)?);
        bytes[8..NOTE_BYTES].fill(255);
        fs::write(&path, &bytes).expect("written");
        assert!(matches!(open(), Err(Error::Forgotten(_))), "a whole one is never skipped");
        fs::write(&path, [b'\n'; 2 * NOTE_BYTES]).expect("written");
        assert!(matches!(open(), Err(Error::Forgotten(_))), "no first time");
        Ok(())
    }

    #[test]
    fn what_is_not_a_note_on_a_place_is_no_first_time() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut note = PlaceNote::new(dir.path(), OsStr::new("a place"), ".x", "head 1\n");
        assert_eq!(note.volume().expect("none yet"), None);
        note.keep(VolumeId([7; 16])).expect("kept");
        assert_eq!(note.volume().expect("whole"), Some(VolumeId([7; 16])));
        assert!(matches!(note.check(VolumeId([8; 16]), false), Err(Error::OtherVolume(_))));
        note.check(VolumeId([8; 16]), true).expect("any one");
        for text in ["", "head 2\nvolume 07070707070707070707070707070707\n", "head 1\nvolume 0\n"]
        {
            fs::write(&note.path, text).expect("written");
            assert!(matches!(note.volume(), Err(Error::Forgotten(_))), "{text:?}");
        }
    }

    #[test]
    fn a_lock_is_one_session_s() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("lock");
        let first = lock(&path)?;
        assert!(matches!(lock(&path), Err(Error::Busy)));
        drop(first);
        lock(&path).map(drop)
    }
}
