//! How far a scrub of the volume at a place is.
//!
//! Nothing else follows from this note. A wrong one costs reads, or leaves some to the next round,
//! so one that cannot be read is a first time, unlike what else is remembered of a volume.

use super::lines::{WRONG_LINE, framed, unframed};
use super::state_folder;
use oblivio_crypto::VolumeId;
use oblivio_volume::notes::{
    NOTE_BYTES, NoteFormat, Parsed, TwoNotes, make_folder, place_file, unkept,
};
use oblivio_volume::{Error, Keep, Result};
use std::fs;
use std::path::Path;

/// The first line of a note; the number is the format's version.
const MAGIC: &str = "oblivio-scrub 1";

/// The form of the notes on one volume's scrubs: where to go on.
struct PlaceLines(VolumeId);

impl NoteFormat for PlaceLines {
    type Note = u64;

    fn encode(&self, number: u64, next: &u64) -> [u8; NOTE_BYTES] {
        framed(MAGIC, (self.0, number), &format!("next {next}\n"))
    }

    fn decode(&self, bytes: &[u8]) -> Parsed<Option<(u64, u64)>> {
        let Some((number, mut lines)) = unframed(MAGIC, self.0, bytes)? else { return Ok(None) };
        let next = lines.field("next").and_then(|next| next.parse().ok());
        next.map(|next| Some((number, next))).ok_or(WRONG_LINE)
    }
}

/// This computer's note of how far it scrubbed the volume at a place.
pub struct ScrubNote {
    notes: TwoNotes<PlaceLines>,
    next: u64,
}

impl ScrubNote {
    /// The note on this volume at this place. A session must have the volume: one at a time writes
    /// it.
    ///
    /// # Errors
    /// `Forgotten` when there is no home directory, or no note can be kept there.
    pub fn at(place: &Path, volume: VolumeId) -> Result<Self> {
        Self::in_folder(&state_folder()?, place, volume)
    }

    /// The same in a folder of the caller's.
    ///
    /// # Errors
    /// As [`Self::at`].
    pub fn in_folder(folder: &Path, place: &Path, volume: VolumeId) -> Result<Self> {
        let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let path = place_file(folder, place.as_os_str(), ".scrub");
        let folder = path.parent().unwrap_or(folder);
        make_folder(folder).map_err(|error| unkept(folder, &error))?;
        let (notes, next) = match TwoNotes::open(path.clone(), PlaceLines(volume)) {
            Err(Error::Forgotten(_)) => {
                fs::remove_file(&path).map_err(|error| unkept(&path, &error))?;
                TwoNotes::open(path, PlaceLines(volume))?
            }
            opened => opened?,
        };
        Ok(Self { notes, next: next.unwrap_or(0) })
    }

    /// Where to go on; 0 for the beginning.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Notes where to go on. It survives the process.
    ///
    /// # Errors
    /// `Forgotten` if it cannot.
    pub fn keep(&mut self, next: u64) -> Result<()> {
        self.next = next;
        self.notes.write(&next, Keep::Soon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scrub_goes_on_where_it_was_and_a_wrong_note_is_a_first_time() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let volume = VolumeId([7; 16]);
        let at = |place: &str, volume| ScrubNote::in_folder(dir.path(), Path::new(place), volume);
        let mut note = at("/one", volume)?;
        assert_eq!(note.next(), 0);
        for next in [12, u64::MAX, 13] {
            note.keep(next)?;
            assert_eq!(at("/one", volume)?.next(), next);
        }
        assert_eq!(at("/two", volume)?.next(), 0, "a copy elsewhere has a note of its own");
        let file = fs::read_dir(dir.path().join("places")).expect("there").next();
        let path = file.expect("one").expect("there").path();
        let whole = fs::read(&path).expect("read");
        for at_byte in [0, 20, 600] {
            let mut torn = whole.clone();
            torn[at_byte..].fill(0);
            fs::write(&path, &torn).expect("written");
            assert!([0, u64::MAX, 13].contains(&at("/one", volume)?.next()));
        }
        fs::write(&path, &whole).expect("written");
        assert_eq!(at("/one", VolumeId([8; 16]))?.next(), 0, "another volume");
        assert_eq!(at("/one", volume)?.next(), 0, "of which there was a note since");
        Ok(())
    }
}
